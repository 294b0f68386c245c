//! Two projects in one database, each with people of its own: nobody reads, changes or learns of what is the other's.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::{Call, Outcome, ToolInfo};
use toolhost_records::Kind;
use toolhost_store::Role;
use toolhost_testkit::engines::{Engine, engines, exported, furnish, next_door, refusal};
use toolhost_testkit::{House, Seed};

use crate::vocabulary::{good, id_text, kinds_named, naming, properties, record_tools};

/// In every text of the one project, and of the other.
const OURS: &str = "albatross";
const THEIRS: &str = "zebra";
/// How often the other project is furnished, so that its last ids are beyond those of the first.
const THEIR_ROUNDS: i64 = 4;
/// A number that no record has.
const NOBODYS: i64 = 987;
/// A project that does not exist.
const NO_PROJECT: i64 = 999_999;

/// A database with two projects in it.
struct Street {
    house: House,
    ours: i64,
    theirs: i64,
    people: Vec<Person>,
}

struct Person {
    id: i64,
    /// In ours; `None` for a stranger.
    ours: Option<Role>,
    theirs: Option<Role>,
}

/// In which project a record is that an argument names.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    Ours,
    Theirs,
    Nobodys,
}

impl Street {
    async fn furnished(engine: &Engine) -> Self {
        let house = engine.house().await;
        let ours = house.project.id;
        let theirs = next_door(&house, "olga").await;
        let known = house.store.people();
        let mut people = Vec::new();
        for (name, at_ours, at_theirs) in [
            ("local", Some(Role::Owner), None),
            ("olga", None, Some(Role::Owner)),
            ("edda", Some(Role::Editor), None),
            ("vera", Some(Role::Viewer), None),
            ("emil", None, Some(Role::Editor)),
            ("viktor", None, Some(Role::Viewer)),
            ("stranger", None, None),
            ("both", Some(Role::Editor), Some(Role::Editor)),
        ] {
            let id = known.add_user(name).await.unwrap();
            for (project, role) in [(ours, at_ours), (theirs, at_theirs)] {
                if let Some(role) = role {
                    known.set_role(project, id, role).await.unwrap();
                }
            }
            people.push(Person { id, ours: at_ours, theirs: at_theirs });
        }
        let street = Self { house, ours, theirs, people };
        assert_eq!(furnish(&street.house, street.person("local"), ours, OURS).await, 1);
        for _ in 0..THEIR_ROUNDS {
            furnish(&street.house, street.person("olga"), theirs, THEIRS).await;
        }
        street
    }

    fn person(&self, name: &str) -> i64 {
        let at =
            ["local", "olga", "edda", "vera", "emil", "viktor", "stranger", "both"].iter().position(|n| *n == name);
        self.people[at.unwrap()].id
    }

    fn request(&self, user: i64, project: i64, tool: &str, arguments: Value) -> Call {
        let mut call = self.house.request(tool, arguments);
        (call.scope.user_id, call.scope.project_id) = (user, project);
        call
    }

    async fn call(&self, user: i64, project: i64, tool: &str, arguments: Value) -> Outcome {
        self.house.run(self.request(user, project, tool, arguments)).await
    }

    async fn everything(&self) -> [Vec<String>; 2] {
        [exported(&self.house.store, self.ours).await, exported(&self.house.store, self.theirs).await]
    }
}

fn number(kind: Kind, whose: Whose) -> i64 {
    // Two tasks a round.
    let each = if kind == Kind::Task { 2 } else { 1 };
    match whose {
        Whose::Ours => 1,
        Whose::Theirs => each * THEIR_ROUNDS,
        Whose::Nobodys => NOBODYS,
    }
}

/// What a caller learns, but for the id that was asked for.
fn learnt(outcome: &Outcome, kind: Kind, whose: Whose) -> String {
    let error = outcome.error.as_ref();
    let all = json!({
        "ok": outcome.ok,
        "data": outcome.data,
        "error": error,
        "text": outcome.text,
    });
    all.to_string().replace(&id_text(kind, number(kind, whose)), "<id>")
}

/// Every argument of every tool that may name a record, with the kind it names.
fn names() -> Vec<(ToolInfo, String, Kind, Value)> {
    let mut found = Vec::new();
    for info in record_tools() {
        for (field, schema) in properties(&info) {
            for kind in kinds_named(&info, &field) {
                found.push((info.clone(), field.clone(), kind, naming(&schema, kind, 1)));
            }
        }
    }
    found
}

#[test]
fn every_argument_that_takes_an_id_is_among_those_tried() {
    // What says something and names no record.
    const SAYS: &str = "acceptanceCriteria architectureStyle assignee before cascade category codeExample \
        completionCriteria componentType consequences content context current cursor dataModels dataType deadline \
        decision deployment description done estimatedEffort expectedState expectedStatus expectedVersion externalId filesToCreate \
        importance inheritance interfaces keywords kind labels leaseSeconds limit maxTokens name newState newStatus newestFirst \
        number otherType personality priority resolution responsibilities role scope stage state status statusFilter \
        tags technology technologyStack title type usage version why";
    let says: Vec<&str> = SAYS.split(' ').collect();
    for info in record_tools() {
        for field in properties(&info).keys() {
            let named = !kinds_named(&info, field).is_empty();
            assert!(
                named != says.contains(&field.as_str()),
                "{}: does `{field}` name a record? Say so in this test",
                info.name
            );
        }
    }
    assert!(names().len() > 90, "{}", names().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_the_other_project_s_answers_as_what_does_not_exist() {
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let before = street.everything().await;
        // Not only strangers to the other project: who is in both works in one at a time.
        for user in [street.person("edda"), street.person("both")] {
            for (info, field, kind, like) in names() {
                let mut told = Vec::new();
                for whose in [Whose::Theirs, Whose::Nobodys] {
                    let mut arguments = good(&info);
                    let value = match &like {
                        Value::Number(_) => json!(number(kind, whose)),
                        Value::Array(_) => json!([id_text(kind, number(kind, whose))]),
                        _ => json!(id_text(kind, number(kind, whose))),
                    };
                    arguments.insert(field.clone(), value);
                    let outcome = street.call(user, street.ours, &info.name, Value::Object(arguments)).await;
                    let learnt = learnt(&outcome, kind, whose);
                    assert!(!learnt.contains(THEIRS), "{} {field}: {learnt}", info.name);
                    // A filter may find nothing; whatever else names what is not there is refused.
                    let filters = outcome.ok && outcome.data["items"] == json!([]);
                    assert!(!outcome.ok || filters, "{} took {field} = {like}: {learnt}", info.name);
                    told.push(learnt);
                }
                assert_eq!(told[0], told[1], "{}: {field} of {}", info.name, kind.as_str());
            }
        }
        assert!(street.everything().await == before, "something was changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_about_a_ticket_of_the_other_project_finds_none() {
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let before = street.everything().await;
        for info in record_tools().iter().filter(|info| properties(info).contains_key("ticketId")) {
            let mut told = Vec::new();
            for whose in [Whose::Theirs, Whose::Nobodys] {
                let mut arguments = good(info);
                arguments.remove("ticketId");
                let mut call = street.request(street.person("edda"), street.ours, &info.name, Value::Object(arguments));
                call.scope.ticket_id = Some(id_text(Kind::Ticket, number(Kind::Ticket, whose)));
                let outcome = street.house.run(call).await;
                assert_eq!(refusal(&outcome).1, "not_found", "{}", info.name);
                told.push(learnt(&outcome, Kind::Ticket, whose));
            }
            assert_eq!(told[0], told[1], "{}", info.name);
        }
        assert!(street.everything().await == before, "something was changed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_cannot_tell_a_project_from_none() {
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let before = street.everything().await;
        for tool in toolhost_testkit::every_tool() {
            let info = tool.info();
            let fitting = info.examples.first().map_or(json!({}), |example| example.arguments.clone());
            for arguments in [fitting, json!({ "no": "sense" }), json!([])] {
                for user in [street.person("stranger"), street.person("edda"), street.person("vera"), 424_242] {
                    let mut told = Vec::new();
                    for project in [street.theirs, NO_PROJECT, 0, -1] {
                        let outcome = street.call(user, project, &info.name, arguments.clone()).await;
                        let error = outcome.error.as_ref().unwrap();
                        let text = format!("{:?} {}", refusal(&outcome), outcome.text);
                        assert_eq!((error.kind.as_str(), &error.details), ("permission", &None), "{text}");
                        told.push(text.replace(&format!("project {project}"), "project <id>"));
                    }
                    assert!(told.iter().all(|one| *one == told[0]), "{}: {told:?}", info.name);
                }
            }
        }
        assert!(street.everything().await == before, "something was changed");
        // What was asked of projects that do not exist keeps nobody from working.
        let after = street.call(street.person("edda"), street.ours, "ticket.create", json!({ "title": "on" })).await;
        assert!(after.ok, "{after:?}");
        let verdict = street.house.verify().await;
        assert!(verdict.problems.is_empty(), "{verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn viewers_read_with_every_tool_and_write_with_none() {
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let before = street.everything().await;
        let (mut reading, mut writing) = (0, 0);
        for info in record_tools() {
            let arguments = Value::Object(good(&info));
            let outcome = street.call(street.person("vera"), street.ours, &info.name, arguments.clone()).await;
            if info.facts.effect.may_change() {
                writing += 1;
                let (code, kind, message) = refusal(&outcome);
                assert_eq!((code, kind), ("AI_TOOL_FORBIDDEN", "permission"), "{}: {message}", info.name);
                assert!(message.contains("viewer"), "{message}");
            } else {
                reading += 1;
                assert!(outcome.ok, "{} {arguments}: {outcome:?}", info.name);
            }
        }
        assert!(reading > 15 && writing > 35, "{reading} {writing}");
        assert!(street.everything().await == before, "a viewer has changed something");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_given_or_taken_holds_within_two_seconds() {
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let people = street.house.store.people();
        let stranger = street.person("stranger");
        let create = async || {
            let outcome = street.call(stranger, street.ours, "ticket.create", json!({ "title": "mine" })).await;
            outcome.error.map(|error| error.message)
        };
        let no_member = format!("user {stranger} has no project {}", street.ours);
        assert_eq!(create().await, Some(no_member.clone()));
        for (role, writes) in [(Role::Viewer, false), (Role::Editor, true), (Role::Viewer, false), (Role::Owner, true)]
        {
            people.set_role(street.ours, stranger, role).await.unwrap();
            street.house.clock.advance(Duration::from_secs(2));
            let said = create().await;
            assert_eq!(said.is_none(), writes, "{role:?}: {said:?}");
            assert!(said.is_none_or(|said| said.contains("viewer")));
            let read = street.call(stranger, street.ours, "ticket.list", json!({})).await;
            assert!(read.ok, "{role:?}: {read:?}");
        }
        assert!(people.remove(street.ours, stranger).await.unwrap());
        street.house.clock.advance(Duration::from_secs(2));
        assert_eq!(create().await, Some(no_member));
    }
}

/// Some arguments, in which each that names a record names one of anybody's.
fn some_arguments(seed: &mut Seed, info: &ToolInfo) -> Value {
    let mut arguments = good(info);
    for (field, schema) in properties(info) {
        let kinds = kinds_named(info, &field);
        if kinds.is_empty() || (!arguments.contains_key(&field) && seed.below(4) != 0) {
            continue;
        }
        let kind = kinds[usize::try_from(seed.below(kinds.len() as u64)).unwrap()];
        let whose = [Whose::Ours, Whose::Ours, Whose::Theirs, Whose::Nobodys][usize::try_from(seed.below(4)).unwrap()];
        arguments.insert(field, naming(&schema, kind, number(kind, whose)));
    }
    if properties(info).contains_key("cascade") && seed.below(2) == 0 {
        arguments.insert("cascade".to_owned(), json!(true));
    }
    Value::Object(arguments)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_calls_whatever_wherever_the_other_project_stays_as_it_is() {
    const STEPS: u64 = 200;
    for engine in engines() {
        let street = Street::furnished(&engine).await;
        let mut seed = Seed::of_this_run();
        let began = seed.value();
        let tools = record_tools();
        let (mut written, mut refused) = (0, 0);
        let mut before = street.everything().await;
        for step in 0..STEPS {
            let person = &street.people[usize::try_from(seed.below(street.people.len() as u64)).unwrap()];
            let place = usize::try_from(seed.below(3)).unwrap();
            let (project, role) =
                [(street.ours, person.ours), (street.theirs, person.theirs), (NO_PROJECT, None)][place];
            let info = &tools[usize::try_from(seed.below(tools.len() as u64)).unwrap()];
            let arguments = some_arguments(&mut seed, info);
            let outcome = street.call(person.id, project, &info.name, arguments.clone()).await;
            let after = street.everything().await;
            let told = format!("seed {began}, step {step}: {role:?} of {project}: {} {arguments}", info.name);
            for (other, word) in [(1, THEIRS), (0, OURS)] {
                // Whoever is not in a project neither changes it nor reads of it.
                if place != other {
                    assert!(after[other] == before[other], "{told} changed the other project");
                    assert!(!format!("{outcome:?}").contains(word), "{told} tells of the other project: {outcome:?}");
                }
            }
            let may = role.is_some_and(|role| role != Role::Viewer || !info.facts.effect.may_change());
            let permission = outcome.error.as_ref().is_some_and(|error| error.kind.as_str() == "permission");
            assert_eq!(may, !permission, "{told}: {outcome:?}");
            let changed = after != before;
            assert!(!changed || (outcome.ok && info.facts.effect.may_change()), "{told}: refused, and yet it wrote");
            written += u64::from(changed);
            refused += u64::from(permission);
            before = after;
        }
        assert!(written > STEPS / 20 && refused > STEPS / 4, "{written} {refused}: a walk that goes nowhere");
    }
}
