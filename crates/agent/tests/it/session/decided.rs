//! Calls that a crash left open, of which the files or the history tell whether they were made: at each point at which the
//! host may have died, the call is made once, and its session is told what is true.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_agent::model::{Arguments, Reply, Stop, ToolCall, Usage};
use toolhost_agent::session::{Status, TurnStep, step};
use toolhost_builder::packages::Whose;
use toolhost_contract::{CallId, Effect};
use toolhost_deploy::{DeployKey, DeployMark, DeployRules, Deployment};
use toolhost_records::{Edit, IterationStatus, Kind, Learning, RecordId, Ticket};
use toolhost_store::Who;
use toolhost_store::{Event as Row, NewChange};
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, STEP, house_with_sample, in_session, set, shelf_of, step_operation};
use toolhost_testkit::session::{Sitting, script, work};
use toolhost_testkit::{House, HouseBuilder, TempWorkspace, USER};

const REPEATED: &str = "";
const DONE: &str = "ran and succeeded";
const UNKNOWN: &str = "It is unknown whether";

fn turn(id: &CallId, tool: &str, arguments: &Value) -> Value {
    let arguments = Arguments::Json(arguments.clone());
    let calls = vec![ToolCall { id: step::call(0, 0), name: tool.to_owned(), arguments }];
    let reply = Reply { text: String::new(), calls, stop: Stop::Calls, usage: Usage::default(), signatures: vec![] };
    let said = TurnStep { reply, call_ids: vec![id.clone()], cost: None, ms: 0, elapsed_ms: 0 };
    serde_json::to_value(said).unwrap()
}

async fn house(database: Option<String>) -> House {
    let workspace = TempWorkspace::new();
    HouseBuilder::of(toolhost::tools).workspace(workspace).database(database).build().await
}

/// A session whose host died after "started" of this call.
async fn killed<'a>(house: &'a House, id: &CallId, tool: &str, arguments: &Value) -> Sitting<'a> {
    let sitting = Sitting::new(house, "all");
    let opening = sitting.opening(&script(&json!([{ "text": "not asked" }])), &work("do")).await.unwrap();
    sitting.killed_after(&opening, &[(step::turn(0), turn(id, tool, arguments))]).await;
    sitting.noted((&tool.replacen('_', ".", 1), Effect::Writes), Row::Started, id, None).await;
    sitting
}

/// Resumes it, and gives what it was told of the call.
async fn told(sitting: &Sitting<'_>) -> (bool, String) {
    let result = sitting.go_on(&script(&json!([{ "text": "not asked" }, { "text": "Done." }]))).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
    let body = sitting.contents().await.remove(0).1;
    (body["ok"] == true, body["content"].as_str().unwrap().to_owned())
}

fn hash(text: &str) -> Option<String> {
    Some(hex::encode(Sha256::digest(text)))
}

/// What a call has logged: path, where it moves to, content before and after.
type Logged<'a> = (&'a str, Option<&'a str>, Option<String>, Option<String>);

fn folder(path: &str) -> Logged<'_> {
    (path, None, None, Some("folder".to_owned()))
}

/// One point at which the host may have died.
struct Point<'a> {
    tool: &'a str,
    arguments: Value,
    logged: Vec<Logged<'a>>,
    /// The files as they are then, and as they must be in the end.
    files: &'a [(&'a str, &'a str)],
    end: &'a [(&'a str, &'a str)],
    told: &'a str,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_file_that_a_crash_left_open_is_decided_by_the_file() {
    let edit = || ("file_edit", json!({ "path": "a", "edits": [{ "search": "1", "replace": "11" }] }));
    let moves = || ("file_move", json!({ "from": "a", "to": "d/b" }));
    let write = || ("file_write", json!({ "path": "d/n", "content": "new", "createOnly": true }));
    let delete = || ("file_delete", json!({ "path": "a" }));
    let edited = || vec![("a", None, hash("1"), hash("11"))];
    let moved = || vec![folder("d"), ("a", Some("d/b"), hash("1"), hash("1"))];
    let written = || vec![folder("d"), ("d/n", None, None, hash("new"))];
    let deleted = || vec![("a", None, hash("1"), None)];
    // Somebody else wrote while the call was trying: it logged what it was about to replace each time.
    let twice = || vec![("a", None, hash("0"), hash("11")), ("a", None, hash("1"), hash("11"))];
    let large = || vec![("a", None, Some("unkept".to_owned()), hash("11"))];
    type Case<'a> = ((&'a str, Value), Vec<Logged<'a>>, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a str);
    let points: Vec<Case<'_>> = vec![
        (edit(), vec![], &[("a", "1")], &[("a", "11")], REPEATED),
        (edit(), edited(), &[("a", "1")], &[("a", "11")], REPEATED),
        (edit(), edited(), &[("a", "11")], &[("a", "11")], DONE),
        (edit(), edited(), &[("a", "else")], &[("a", "else")], UNKNOWN),
        (edit(), edited(), &[], &[], UNKNOWN),
        (edit(), twice(), &[("a", "1")], &[("a", "11")], REPEATED),
        (edit(), twice(), &[("a", "11")], &[("a", "11")], DONE),
        (edit(), large(), &[("a", "1")], &[("a", "1")], UNKNOWN),
        (moves(), vec![folder("d")], &[("a", "1")], &[("d/b", "1")], REPEATED),
        (moves(), moved(), &[("a", "1"), ("d/other", "2")], &[("d/b", "1")], REPEATED),
        (moves(), moved(), &[("d/b", "1")], &[("d/b", "1")], DONE),
        (moves(), moved(), &[("a", "1"), ("d/b", "1")], &[("a", "1"), ("d/b", "1")], UNKNOWN),
        (moves(), moved(), &[("a", "2")], &[("a", "2")], UNKNOWN),
        (write(), vec![folder("d")], &[("d/other", "2")], &[("d/n", "new")], REPEATED),
        (write(), written(), &[("d/other", "2")], &[("d/n", "new")], REPEATED),
        (write(), written(), &[("d/n", "new")], &[("d/n", "new")], DONE),
        (write(), written(), &[("d/n", "else")], &[("d/n", "else")], UNKNOWN),
        (delete(), deleted(), &[("a", "1")], &[], REPEATED),
        (delete(), deleted(), &[], &[], DONE),
        (delete(), deleted(), &[("a", "2")], &[("a", "2")], UNKNOWN),
    ];
    for engine in engines() {
        for (n, ((tool, arguments), logged, files, end, told)) in points.iter().cloned().enumerate() {
            let point = Point { tool, arguments, logged, files, end, told };
            left_open(&house(engine.url.clone()).await, &point, &format!("{engine}, point {n}")).await;
        }
    }
}

async fn left_open(house: &House, point: &Point<'_>, story: &str) {
    let id = CallId::new("call-left-open");
    let sitting = killed(house, &id, point.tool, &point.arguments).await;
    for (path, moved_to, former, after) in &point.logged {
        let change = NewChange {
            project_id: house.project.id,
            call_id: id.to_string(),
            session_id: Some(sitting.id.clone()),
            path: (*path).to_owned(),
            moved_to: moved_to.map(str::to_owned),
            former_sha256: former.clone(),
            former_mode: None,
            former: None,
            after_sha256: after.clone(),
        };
        house.store.file_log().before(&change).await.unwrap();
    }
    for (path, content) in point.files {
        house.workspace.write(path, content);
    }
    let (ok, content) = told(&sitting).await;
    assert_eq!(ok, point.told != UNKNOWN, "{story}: {content}");
    assert!(content.contains(point.told), "{story}: {content}");
    assert_eq!(point.told == REPEATED, !content.contains("It was not run again"), "{story}: {content}");
    for path in ["a", "d/b", "d/n"] {
        let end = point.end.iter().find(|(known, _)| *known == path).map(|(_, content)| (*content).to_owned());
        let now = house.workspace.has(path).then(|| house.workspace.read(path));
        assert_eq!(now, end, "{story}: {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_records_that_a_crash_left_open_is_decided_by_the_history() {
    let calls = [
        ("memory_save_learning", json!({ "content": "Commit first." })),
        ("ticket_update", json!({ "ticketId": "TKT-001", "title": "Fix both gates" })),
        ("ticket_delete", json!({ "id": "TKT-001" })),
    ];
    for engine in engines() {
        for (tool, arguments) in &calls {
            for committed in [false, true] {
                let story = format!("{engine}, {tool}, committed: {committed}");
                of_records(&house(engine.url.clone()).await, (tool, arguments), committed, &story).await;
            }
        }
    }
}

async fn of_records(house: &House, (tool, arguments): (&str, &Value), committed: bool, story: &str) {
    house.data("ticket.create", json!({ "title": "Fix a gate", "type": "bug" })).await;
    let id = CallId::new("call-left-open");
    let sitting = killed(house, &id, tool, arguments).await;
    if committed {
        let who = Who { project_id: house.project.id, user_id: USER, name: "Ada".to_owned(), call_id: id.to_string() };
        let desk = toolhost_records::Records::new(house.store.database()).desk(who).unwrap();
        match tool {
            "memory_save_learning" => {
                desk.create(Learning { content: "Commit first.".to_owned() }, 0, None).await.map(drop).unwrap();
            }
            "ticket_update" => {
                let title = |ticket: &mut Ticket| {
                    ticket.title = "Fix both gates".to_owned();
                    Ok(())
                };
                desk.update::<Ticket>("TKT-001", &Edit::default(), title).await.map(drop).unwrap();
            }
            _ => desk
                .delete(RecordId { kind: Kind::Ticket, number: 1 }, &Edit::default(), false)
                .await
                .map(drop)
                .unwrap(),
        }
    }
    let (ok, content) = told(&sitting).await;
    assert!(ok, "{story}: {content}");
    assert_eq!(content.contains(DONE), committed, "{story}: {content}");
    let (kind, number, versions, says) = match tool {
        "memory_save_learning" => (Kind::Learning, 1, 1, "Commit first."),
        "ticket_update" => (Kind::Ticket, 1, 2, "Fix both gates"),
        _ => (Kind::Ticket, 1, 2, "TKT-001"),
    };
    assert!(content.contains(says), "{story}: what it wrote is told: {content}");
    let who = Who { project_id: house.project.id, user_id: USER, name: "reader".to_owned(), call_id: String::new() };
    let desk = toolhost_records::Records::new(house.store.database()).desk(who).unwrap();
    let history = desk.history(RecordId { kind, number }, None, 10).await.unwrap();
    assert_eq!(history.len(), versions, "{story}: it was made once");
    let other = desk.history(RecordId { kind, number: 2 }, None, 10).await;
    assert!(other.is_err(), "{story}: it was made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_an_iteration_that_a_crash_left_open_is_decided_by_its_history() {
    for engine in engines() {
        for committed in [false, true] {
            let house = house(engine.url.clone()).await;
            for title in ["one", "two"] {
                house.data("iteration.create", json!({ "title": title, "description": "d" })).await;
            }
            let id = CallId::new("call-left-open");
            let arguments = json!({ "id": "ITER-001", "newStatus": "running", "current": true });
            let sitting = killed(&house, &id, "iteration_update_status", &arguments).await;
            let who =
                Who { project_id: house.project.id, user_id: USER, name: "Ada".to_owned(), call_id: id.to_string() };
            let desk = toolhost_records::Records::new(house.store.database()).desk(who).unwrap();
            if committed {
                desk.move_iteration("ITER-001", IterationStatus::Running, &Edit::default(), true).await.unwrap();
            }
            let (ok, content) = told(&sitting).await;
            assert!(ok && content.contains(DONE) == committed, "{engine}, {committed}: {content}");
            let history = desk.history(RecordId { kind: Kind::Iteration, number: 1 }, None, 10).await.unwrap();
            assert_eq!(history.len(), 2, "{engine}, {committed}: it was moved once");
            assert_eq!(desk.current_iteration().await.unwrap(), 1, "{engine}, {committed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_sets_that_a_crash_left_open_are_staged_validated_and_discarded_once() {
    for engine in engines() {
        for (tool, committed) in
            ["stage", "validate", "discard"].into_iter().flat_map(|tool| [(tool, false), (tool, true)])
        {
            let story = format!("{engine}, {tool}, committed: {committed}");
            let house = house_with_sample(&engine).await;
            let read = json!({ "workflowId": FLOW, "nodeId": STEP });
            let read = in_session(&house, "reader", "builder.step.read", read).await;
            let markdown = format!("{}\nMore.\n", read.data["step_markdown"].as_str().unwrap());
            let change = set(json!([step_operation(STEP, &markdown)]), read.data["revisions"].clone());
            let id = CallId::new("call-left-open");
            let arguments = if tool == "stage" { change.clone() } else { json!({}) };
            let sitting = killed(&house, &id, &format!("builder_change_{tool}"), &arguments).await;
            if committed || tool != "stage" {
                assert!(in_session(&house, &sitting.id, "builder.change.stage", change).await.ok, "{story}");
            }
            let who =
                Who { project_id: house.project.id, user_id: USER, name: "Ada".to_owned(), call_id: id.to_string() };
            let shelf = toolhost_builder::Packages::new(house.store.database()).shelf(who).unwrap();
            let whose = Whose::Session(&sitting.id);
            match tool {
                "validate" if committed => drop(shelf.validate(whose, None).await.unwrap()),
                "discard" if committed => drop(shelf.discard(whose, None).await.unwrap()),
                _ => {}
            }
            let (ok, content) = told(&sitting).await;
            assert!(ok && content.contains("cs-1"), "{story}: {content}");
            assert_eq!(content.contains(DONE), tool == "discard" && committed, "{story}: {content}");
            let sets = shelf_of(&house, house.project.id).change_sets(None, false).await.unwrap();
            assert_eq!(sets.len(), 1, "{story}: it was staged once");
            let open = shelf_of(&house, house.project.id).change_sets(None, true).await.unwrap();
            assert_eq!(open.is_empty(), tool == "discard", "{story}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_that_a_crash_left_open_is_decided_by_the_journal_at_its_target() {
    for (n, point) in ["nothing", "prepared", "done"].into_iter().enumerate() {
        let workspace = TempWorkspace::new();
        workspace.write("index.html", "one\n");
        let target = workspace.beside("site");
        std::fs::create_dir_all(&target).unwrap();
        let root = workspace.root();
        let house = HouseBuilder::of(toolhost::tools).workspace(workspace);
        let house = house.deploy(target.clone(), DeployRules::default()).build().await;
        let id = CallId::new("call-left-open");
        let sitting = killed(&house, &id, "deploy_copy", &json!({})).await;
        if n > 0 {
            let deployment = Deployment::new(root, target.clone(), DeployRules::default(), DeployKey::new([7; 32]));
            let cancel = tokio_util::sync::CancellationToken::new();
            let plan = deployment.plan(&cancel).await.unwrap();
            let mark = if n == 1 { "earlier".to_owned() } else { id.to_string() };
            let mark = DeployMark { id: mark, at_ms: 1, who: "Ada".to_owned() };
            deployment.run(plan, mark, std::sync::Arc::new(|_, _, _| {}), &cancel).await.unwrap();
        }
        let half = target.join(".toolhost/deploys/call-left-open/new");
        if n == 1 {
            std::fs::create_dir_all(&half).unwrap();
        }
        let (ok, content) = told(&sitting).await;
        assert_eq!((ok, content.contains(DONE)), (n == 2, n == 2), "{point}: {content}");
        // Begun again, a person is asked again; here nobody can be.
        assert_eq!(content.contains("needs a person's approval"), n != 2, "{point}: {content}");
        assert!(!content.contains(UNKNOWN), "{point}: {content}");
        assert!(n == 2 || !half.exists(), "{point}: it was fixed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_says_of_a_call_that_changed_something_that_it_ran() {
    let house = house(None).await;
    house.workspace.write("a.txt", "1");
    let sitting = Sitting::new(&house, "all");
    let turns = json!([
        { "calls": [
            { "tool": "file_write", "arguments": { "path": "b.txt", "content": "2" } },
            { "tool": "file_read", "arguments": { "path": "a.txt" } },
            { "tool": "file_edit", "arguments": { "path": "no.txt", "edits": [{ "search": "1", "replace": "2" }] } },
            { "tool": "deploy_copy", "arguments": {} },
        ] },
        { "text": "Done." },
    ]);
    let model = script(&turns);
    let opening = sitting.opening(&model, &work("do")).await.unwrap();
    sitting.killed_after(&opening, &[]).await;
    assert_eq!(sitting.go_on(&model).await.status, Status::Completed);
    let ran: Vec<bool> = sitting.contents().await.iter().map(|(_, body)| body["ran"] == true).collect();
    assert_eq!(ran, [true, false, false, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_before_1970_breaks_nothing() {
    for engine in engines() {
        let house = house(engine.url.clone()).await;
        for at_ms in [-1, 0, i64::from(i32::MIN) * 1000, 1_767_225_600_000] {
            house.clock.set_unix_ms(at_ms);
            let id = house.data("ticket.create", json!({ "title": format!("at {at_ms}"), "type": "bug" })).await;
            assert!(id["id"].as_str().unwrap().starts_with("TKT-"), "{engine}, {at_ms}");
            house.data("memory.save_learning", json!({ "content": format!("learnt at {at_ms}") })).await;
            house.data("memory.query", json!({ "keywords": ["learnt"] })).await;
            house.data("file.write", json!({ "path": format!("{at_ms}.txt"), "content": "x" })).await;
            let verdict = house.verify().await;
            assert!(verdict.problems.is_empty(), "{engine}, {at_ms}: {verdict:?}");
        }
        let all = house.data("ticket.list", json!({})).await;
        assert!(all.to_string().contains("at -1") && all.to_string().contains("at 1767225600000"), "{all}");
    }
}
