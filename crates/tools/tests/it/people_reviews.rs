//! People who look at files and texts, or answer a question: what they say is what comes back, and nothing else passes.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::{Answer, Outcome, Wanted};
use toolhost_host::{Asking, Decision, Presented, Shown, Unattended};
use toolhost_store::AskKind;
use toolhost_testkit::engines::{Engine, engines, next_door, refusal};
use toolhost_testkit::{FakeClock, House, TempWorkspace, said};

use crate::room::fenced;

/// Says one thing after the other, and remembers what was shown.
#[derive(Clone, Default)]
struct Reviewer {
    says: Arc<Mutex<VecDeque<Answer>>>,
    saw: Arc<Mutex<Vec<Shown>>>,
}

impl Reviewer {
    fn who_says(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { says: Arc::new(Mutex::new(answers.into_iter().collect())), saw: Arc::default() }
    }

    async fn at(&self, engine: &Engine, workspace: TempWorkspace) -> House {
        let here = self.clone();
        let voice = move |shown: &Shown| {
            here.saw.lock().unwrap().push(shown.clone());
            here.says.lock().unwrap().pop_front().map_or(Presented::Gone, said)
        };
        fenced(workspace).database(engine.url.clone()).person(voice).build().await
    }

    fn last(&self) -> Shown {
        self.saw.lock().unwrap().last().unwrap().clone()
    }
}

fn edit(text: &str) -> Answer {
    Answer::Edit { text: text.to_owned() }
}

fn feedback(text: &str) -> Answer {
    Answer::Feedback { text: text.to_owned() }
}

/// A house where asks wait in the queue.
async fn waiting(engine: &Engine, workspace: TempWorkspace) -> House {
    let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    fenced(workspace).database(engine.url.clone()).asking(asking).build().await
}

async fn decide(house: &House, number: i64, answer: Answer) -> Result<(), toolhost_contract::ToolError> {
    house.gate.queue().decide(&house.owner(), number, Decision { answer, rule: None }, "test").await.map(drop)
}

async fn waited(house: &House, id: &str) -> Value {
    house.data("approval.wait", json!({ "approvalId": id, "timeoutMs": 0 })).await
}

/// Ten thousand characters of many kinds, with line ends of every kind at both ends.
fn long_text() -> String {
    let text: String = "\n\r\nMind 1) ä€😀\t\"quotes\" \\ and {braces}  \n".chars().cycle().take(9_999).collect();
    text + "\n"
}

/// Rules: 002.4, 002.25, 002.26, 002.27, 002.28, 002.53.
#[tokio::test(flavor = "multi_thread")]
async fn each_alias_lets_a_person_answer_as_it_says() {
    for engine in engines() {
        let person = Reviewer::who_says((0..4).map(|_| Answer::Pass));
        let workspace = TempWorkspace::new();
        workspace.write("plan.md", "# Plan\n");
        let house = person.at(&engine, workspace).await;
        let (file, text) = (json!({ "path": "plan.md" }), json!({ "title": "Plan", "content": "# Plan\n" }));
        for (tool, arguments, wanted) in [
            ("review_and_edit_file", &file, Wanted::PassOrEdit),
            ("review_with_feedback_file", &file, Wanted::PassEditOrFeedback),
            ("review_and_edit_content", &text, Wanted::PassOrEdit),
            ("review_with_feedback_content", &text, Wanted::PassEditOrFeedback),
        ] {
            let data = house.data(tool, arguments.clone()).await;
            assert_eq!(
                (&data["status"], &data["by"], &data["saved"]),
                (&json!("pass"), &json!("local"), &json!(false))
            );
            let shown = person.last();
            assert_eq!((shown.wanted, shown.detail.as_str()), (Some(wanted), "# Plan\n"), "{tool} on {engine}");
        }
        assert_eq!(house.workspace.read("plan.md"), "# Plan\n");
    }
}

/// Rules: 002.25.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_s_edit_is_what_is_saved() {
    for engine in engines() {
        let texts = ["# Plan\nmy way\n", "", &long_text()];
        let person = Reviewer::who_says(texts.iter().map(|text| edit(text)));
        let workspace = TempWorkspace::new();
        workspace.write_script("plan.sh", "#!/bin/sh\n");
        let house = person.at(&engine, workspace).await;
        for (round, text) in texts.iter().enumerate() {
            let data = house.data("review.file", json!({ "path": "plan.sh" })).await;
            assert_eq!(
                (&data["status"], &data["content"], &data["saved"]),
                (&json!("edit"), &json!(text), &json!(true))
            );
            assert_eq!(house.workspace.read("plan.sh"), *text, "{engine}: round {round}");
            assert_eq!(data["round"], 1, "an edit settles it");
        }
        use std::os::unix::fs::PermissionsExt;
        let mode = house.workspace.path("plan.sh").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "it may still be run");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_not_written_over_what_the_person_did_not_see() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        workspace.write("plan.md", "seen\n");
        let path: PathBuf = workspace.path("plan.md");
        let meddler = move |_: &Shown| {
            std::fs::write(&path, "changed meanwhile\n").unwrap();
            said(edit("mine\n"))
        };
        let house = fenced(workspace).database(engine.url.clone()).person(meddler).build().await;
        let outcome = house.call("review.file", json!({ "path": "plan.md" })).await;
        assert_eq!(refusal(&outcome).1, "conflict", "{engine}: {outcome:?}");
        assert_eq!(house.workspace.read("plan.md"), "changed meanwhile\n", "{engine}");
    }
}

/// Rules: 002.28.
#[tokio::test(flavor = "multi_thread")]
async fn feedback_comes_back_byte_for_byte_and_its_rounds_are_counted() {
    for engine in engines() {
        let long = long_text();
        assert_eq!(long.chars().count(), 10_000);
        let person = Reviewer::who_says([
            feedback(&long),
            feedback("shorter"),
            Answer::Pass,
            feedback("again"),
            edit("by me"),
            Answer::Pass,
        ]);
        let house = person.at(&engine, TempWorkspace::new()).await;
        let mut told = Vec::new();
        for n in 0..6 {
            let text = json!({ "title": "PRD", "content": format!("draft {n}"), "feedback": true });
            let data = house.data("review.content", text).await;
            told.push((data["status"].as_str().unwrap().to_owned(), data["round"].as_i64().unwrap()));
            if n == 0 {
                assert_eq!(data["feedback"].as_str(), Some(long.as_str()), "{engine}");
            }
        }
        let expected = [("feedback", 1), ("feedback", 2), ("pass", 3), ("feedback", 1), ("edit", 2), ("pass", 1)];
        let told: Vec<(&str, i64)> = told.iter().map(|(status, round)| (status.as_str(), *round)).collect();
        assert_eq!(told, expected, "{engine}");
        // Another title is another matter.
        person.says.lock().unwrap().push_back(Answer::Pass);
        assert_eq!(house.data("review.content", json!({ "title": "Design", "content": "x" })).await["round"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_decides_nothing() {
    for engine in engines() {
        let names = ["Todo List", "pass", "feedback", "cancel", "TODO: fix", "a\u{1b}[2Jb", "ä\u{0}b"];
        let person = Reviewer::who_says(names.iter().map(|_| Answer::Pass));
        let house = person.at(&engine, TempWorkspace::new()).await;
        for name in names {
            let content = format!("# {name}\n\nTODO: everything\n");
            let data = house.data("review.content", json!({ "title": name, "content": content })).await;
            assert_eq!((&data["status"], &data["feedback"]), (&json!("pass"), &Value::Null), "{engine}: {name:?}");
            assert_eq!(person.last().detail, content, "{engine}: the person saw all of it");
            assert!(!person.last().render().contains('\u{1b}'), "nothing in it can deceive them");
        }
    }
}

/// What is no pass is refused, and leaves things as they are.
#[track_caller]
fn not_passed(outcome: &Outcome) {
    assert_eq!(refusal(outcome).1, "cancelled", "{outcome:?}");
    assert!(outcome.data.is_null() && refusal(outcome).2.contains("has not passed"), "{outcome:?}");
}

/// Rules: 002.79.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_never_a_pass() {
    for engine in engines() {
        let person = Reviewer::who_says((0..3).map(|_| Answer::Cancel));
        let workspace = TempWorkspace::new();
        workspace.write("plan.md", "# Plan\n");
        let house = person.at(&engine, workspace).await;
        not_passed(&house.call("review.file", json!({ "path": "plan.md" })).await);
        not_passed(&house.call("review.content", json!({ "title": "PRD", "content": "x", "feedback": true })).await);
        let question = house.call("human.ask", json!({ "question": "May it go?", "kind": "yes_no" })).await;
        assert_eq!(refusal(&question).1, "cancelled", "{engine}: {question:?}");
        // And who says nothing at all has not passed it either.
        let silence = house.call("review.file", json!({ "path": "plan.md" })).await;
        assert_eq!(refusal(&silence).1, "denied", "{engine}");
        assert_eq!(house.workspace.read("plan.md"), "# Plan\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_in_the_person_s_words() {
    for engine in engines() {
        let words = "  Yes, but\nnot on Friday \u{0} ä ";
        let person = Reviewer::who_says([
            Answer::Yes,
            Answer::No,
            Answer::Text { text: words.to_owned() },
            Answer::Text { text: "x".repeat(1 << 20) },
        ]);
        let house = person.at(&engine, TempWorkspace::new()).await;
        let ask = async |kind: &str| house.data("human.ask", json!({ "question": "Well?", "kind": kind })).await;
        assert_eq!(
            (ask("yes_no").await["answer"].as_str(), ask("yes_no").await["answer"].as_str()),
            (Some("yes"), Some("no"))
        );
        assert_eq!(ask("text").await["answer"].as_str(), Some(words), "{engine}");
        assert_eq!(ask("text").await["answer"].as_str().map(str::len), Some(1 << 20), "{engine}");
        assert_eq!(person.last().kind, AskKind::Question);
        // As long as a question may be, of letters that no index makes shorter.
        let mut seed = toolhost_testkit::Seed::of_this_run();
        let long: String = (0..20_000).map(|_| char::from(b'!' + u8::try_from(seed.below(90)).unwrap())).collect();
        person.says.lock().unwrap().extend([Answer::Yes, Answer::Yes]);
        for question in [long, "zero \u{0} in it".to_owned()] {
            let data = house.data("human.ask", json!({ "question": question, "kind": "yes_no" })).await;
            assert_eq!((data["answer"].as_str(), person.last().summary == question), (Some("yes"), true), "{engine}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_in_which_a_tool_waits_for_a_person_is_waiting() {
    for engine in engines() {
        let clock: Arc<OnceLock<Arc<FakeClock>>> = Arc::default();
        let ticking = Arc::clone(&clock);
        let voice = move |_: &Shown| {
            ticking.get().unwrap().advance(Duration::from_secs(5));
            said(Answer::Text { text: "Well.".to_owned() })
        };
        let house = fenced(TempWorkspace::new()).database(engine.url.clone()).person(voice).build().await;
        clock.set(Arc::clone(&house.clock)).unwrap();
        let outcome = house.call("human.ask", json!({ "question": "Well?" })).await;
        let rows = house.rows().await;
        let told = &rows.last().unwrap()["outcome"];
        assert_eq!(outcome.meta.duration_ms, 5000, "{engine}");
        assert_eq!((&told["waitedMs"], &told["ranMs"]), (&json!(5000), &Value::Null), "{engine}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_to_what_was_asked_is_refused_and_leaves_it_open() {
    for engine in engines() {
        let house = waiting(&engine, TempWorkspace::new()).await;
        house.data("review.content", json!({ "title": "no feedback", "content": "x" })).await;
        house.data("review.content", json!({ "title": "feedback", "content": "x", "feedback": true })).await;
        house.data("human.ask", json!({ "question": "text?" })).await;
        house.data("human.ask", json!({ "question": "yes?", "kind": "yes_no" })).await;
        let text = |text: &str| Answer::Text { text: text.to_owned() };
        let foreign = [Answer::Allow, Answer::AllowEdited { arguments: json!({}) }, Answer::Deny { comment: None }];
        let no_answers: [(i64, Vec<Answer>); 4] = [
            (1, vec![feedback("x"), Answer::Yes, text("pass")]),
            (2, vec![feedback(""), feedback(" \n\t"), feedback(&"x".repeat((1 << 20) + 1)), Answer::No]),
            (3, vec![text(""), text("  "), Answer::Yes, Answer::Pass]),
            (4, vec![text("yes"), Answer::Pass, edit("yes")]),
        ];
        for (number, answers) in no_answers {
            for answer in answers.into_iter().chain(foreign.clone()) {
                let error = decide(&house, number, answer.clone()).await.unwrap_err();
                assert!(
                    matches!(error.kind.as_str(), "validation" | "limit"),
                    "{engine}: {number} {answer:?}: {error:?}"
                );
            }
            let waits = waited(&house, &format!("ask-{number}")).await;
            assert_eq!(waits["status"], "pending", "{engine}: {number}");
        }
    }
}

/// Rules: 002.26.
#[tokio::test(flavor = "multi_thread")]
async fn a_review_waits_in_the_queue_until_somebody_answers() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        workspace.write("plan.md", "one\n");
        let house = waiting(&engine, workspace).await;
        let file = json!({ "path": "plan.md", "feedback": true });
        let first = house.data("review.file", file.clone()).await;
        assert_eq!((&first["status"], &first["approvalId"]), (&json!("pending_review"), &json!("ask-1")), "{engine}");
        assert_eq!(house.data("review.file", file.clone()).await["approvalId"], "ask-1", "it is asked once");
        assert_eq!(waited(&house, "ask-1").await["status"], "pending");
        decide(&house, 1, feedback("too short")).await.unwrap();
        let told = waited(&house, "ask-1").await;
        assert_eq!(told["outcome"]["data"]["feedback"], "too short", "{engine}: {told}");
        assert_eq!(waited(&house, "ask-1").await, told, "and whoever waits again is told the same");
        house.workspace.write("plan.md", "one\ntwo\n");
        let second = house.data("review.file", file.clone()).await;
        assert_eq!(second["approvalId"], "ask-2");
        decide(&house, 2, edit("three\n")).await.unwrap();
        let told = waited(&house, "ask-2").await;
        assert_eq!(told["outcome"]["data"]["round"], 2, "{engine}: {told}");
        assert_eq!(house.workspace.read("plan.md"), "three\n", "{engine}");
        waited(&house, "ask-2").await;
        assert_eq!(house.workspace.read("plan.md"), "three\n", "{engine}: it is saved once");
        // What was answered about another text is no answer to this one.
        house.data("review.file", file.clone()).await;
        decide(&house, 3, Answer::Pass).await.unwrap();
        house.workspace.write("plan.md", "sneaked in\n");
        let changed = house.data("review.file", file).await;
        assert_eq!(
            (&changed["status"], &changed["approvalId"]),
            (&json!("pending_review"), &json!("ask-4")),
            "{engine}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_wait_for_is_as_if_it_were_not_there() {
    for engine in engines() {
        let house = waiting(&engine, TempWorkspace::new()).await;
        house.data("human.ask", json!({ "question": "mine?" })).await;
        decide(&house, 1, Answer::Text { text: "a secret".to_owned() }).await.unwrap();
        let people = house.store.people();
        let next = next_door(&house, "olga").await;
        let edda = people.add_user("edda").await.unwrap();
        people.set_role(house.project.id, edda, toolhost_store::Role::Editor).await.unwrap();
        let olga = people.user("olga").await.unwrap().unwrap();
        for (user, project, profile) in [
            (olga, next, "all"),
            (edda, house.project.id, "all"),
            (toolhost_testkit::USER, house.project.id, "planner"),
        ] {
            let mut told = Vec::new();
            for id in ["ask-1", "ask-77"] {
                let mut call = house.request("approval.wait", json!({ "approvalId": id, "timeoutMs": 0 }));
                (call.scope.user_id, call.scope.project_id) = (user, project);
                profile.clone_into(&mut call.caller.profile);
                let outcome = house.run(call).await;
                told.push(format!("{:?}", refusal(&outcome)).replace(id, "<id>"));
            }
            assert_eq!(told[0], told[1], "{engine}");
            assert!(told[0].contains("not_found"), "{engine}: {told:?}");
        }
        assert_eq!(waited(&house, "ask-1").await["outcome"]["data"]["answer"], "a secret", "{engine}");
    }
}

/// Whoever is told a no first uses it up. Until its call has ended, the others must not hear that it was a yes.
#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_one_for_all_who_wait_also_while_the_first_is_told() {
    for engine in engines() {
        let asking = Asking { unattended: Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
        let rule = "[[profiles.all.rules]]\ntool = 'bash'\ndecide = 'ask'\nwhy = 'test'";
        let workspace = TempWorkspace::new();
        let house = fenced(workspace).database(engine.url.clone()).operator(rule).asking(asking).build().await;
        assert_eq!(house.call("bash", json!({ "command": "touch ran" })).await.data["approvalId"], "ask-1");
        decide(&house, 1, Answer::Deny { comment: Some("not now".to_owned()) }).await.unwrap();
        assert!(house.store.asks().take(house.owner().project_id, 1, "the first").await.unwrap());
        let waited = house.call("approval.wait", json!({ "approvalId": "ask-1", "timeoutMs": 1000 })).await;
        let (_, kind, message) = refusal(&waited);
        assert!(kind == "denied" && message.contains("not now"), "{kind}: {message}");
    }
}
