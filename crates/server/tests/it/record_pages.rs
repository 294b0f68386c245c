//! The board, single records and the plan: what is shown, what people change, and that nothing is markup.

use serde_json::{Value, json};
use toolhost_records::{RecordId, Records};
use toolhost_server::http::HttpLimits;
use toolhost_store::{Role, Who};

use crate::pages::{Browser, USER_NAME, form};
use crate::rig::{Rig, house};
use crate::session_pages::assert_is_text;
use crate::working::PackageWork;

const BOARD: &str = "/projects/p0/board";

/// What a tool answers in the house, which must succeed.
async fn made(rig: &Rig, tool: &str, arguments: Value) -> Value {
    rig.houses[0].data(tool, arguments).await
}

fn record(id: &str) -> String {
    format!("/projects/p0/records/{id}")
}

/// The part of a page that begins with a text.
fn after<'p>(page: &'p str, text: &str) -> &'p str {
    page.split_once(text).unwrap_or_else(|| unreachable!("{text}: {page}")).1
}

#[tokio::test]
async fn a_ticket_moves_along_the_edges_of_its_machine_alone() {
    let rig = Rig::one().await;
    made(&rig, "ticket.create", json!({ "title": "Dark mode", "priority": "high" })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let board = browser.get(BOARD).await;
    let card = after(&board.body, "Dark mode").split("</li>").next().unwrap().to_owned();
    assert_eq!(card.matches("name=\"to\"").count(), 1, "{card}");
    assert!(card.contains("value=\"research\"") && card.contains("feature · high"), "{card}");
    let moved = form(&[("id", "TKT-001"), ("from", "backlog"), ("to", "research")]);
    let query = "?priority=high";
    let reply = browser.post(&format!("{BOARD}{query}"), &moved).await;
    assert_eq!((reply.status, reply.header("location")), (303, Some(&*format!("{BOARD}{query}"))), "{reply:?}");
    let board = browser.get(BOARD).await;
    let card = after(&board.body, "Dark mode").split("</li>").next().unwrap().to_owned();
    assert!(card.contains("value=\"plan_approval\"") && card.contains("value=\"backlog\""), "{card}");
    // A page of before, and a move that there is not.
    for (from, to) in [("backlog", "plan_approval"), ("research", "done")] {
        let stale = browser.post(BOARD, &form(&[("id", "TKT-001"), ("from", from), ("to", to)])).await;
        assert!(stale.status == 409 && stale.body.contains("role=\"alert\""), "{from} {to}: {stale:?}");
    }
    let rows = rig.houses[0].rows().await;
    let row = rows.iter().find(|row| row["tool"] == "ticket.update_state" && row["event"] == "started").unwrap();
    assert_eq!((&row["caller"]["door"], &row["caller"]["kind"]), (&json!("workbench"), &json!("person")), "{row}");
}

#[tokio::test]
async fn the_board_is_filtered_and_long_columns_go_on_alone() {
    let rig = Rig::one().await;
    for number in 0..23 {
        let kind = if number == 1 { "bug" } else { "chore" };
        made(&rig, "ticket.create", json!({ "title": format!("ticket {number}."), "type": kind })).await;
    }
    let browser = Browser::signed_in(&rig, "local").await;
    let board = browser.get(BOARD).await;
    assert_eq!(board.body.matches("<strong>ticket ").count(), 20);
    assert!(board.body.contains("href=\"?state=backlog\""), "{}", board.body);
    let alone = browser.get(&format!("{BOARD}?state=backlog")).await;
    assert_eq!(alone.body.matches("<strong>ticket ").count(), 23);
    assert!(!alone.body.contains("aria-label=\"research\""), "the other states are left out");
    let bugs = browser.get(&format!("{BOARD}?type=bug")).await;
    assert!(bugs.body.contains("ticket 1.") && bugs.body.matches("<strong>ticket ").count() == 1, "{}", bugs.body);
    assert!(bugs.body.contains("<option value=\"bug\" selected>"), "{}", bugs.body);
}

#[tokio::test]
async fn a_ticket_is_created_and_changed_by_forms_that_keep_what_was_typed() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, "local").await;
    let new = "/projects/p0/board/new";
    let wrong = browser.post(new, &form(&[("title", " "), ("description", "what <for>")])).await;
    assert_eq!(wrong.status, 400);
    assert!(
        wrong.body.contains("id=\"title-error\"") && wrong.body.contains("what &#60;for&#62;</textarea>"),
        "{}",
        wrong.body
    );
    let typed = form(&[
        ("title", "Dark mode"),
        ("description", "for the night"),
        ("type", "feature"),
        ("priority", "high"),
        ("acceptanceCriteria", "pages are dark\r\n\r\nso is the print"),
        ("assignee", ""),
    ]);
    let created = browser.post(new, &typed).await;
    assert_eq!((created.status, created.header("location")), (303, Some(&*record("TKT-001"))), "{created:?}");
    let page = browser.get(&record("TKT-001")).await;
    for shown in ["Dark mode", "for the night", "so is the print", "ticket: backlog", "Version 1: create, by local"] {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let edit = format!("{}/edit", record("TKT-001"));
    let form_page = browser.get(&edit).await;
    for shown in ["value=\"Dark mode\"", "pages are dark\nso is the print</textarea>", "name=\"version\" value=\"1\""] {
        assert!(form_page.body.contains(shown), "{shown}: {}", form_page.body);
    }
    let changed = form(&[("version", "1"), ("title", "Night mode"), ("acceptanceCriteria", "pages are dark")]);
    assert_eq!(browser.post(&edit, &changed).await.status, 303);
    let page = browser.get(&record("TKT-001")).await;
    assert!(page.body.contains("<h1>Night mode</h1>") && page.body.contains("Version 2: update"), "{}", page.body);
    let stale = browser.post(&edit, &changed).await;
    assert!(stale.status == 409 && stale.body.contains("value=\"Night mode\""), "{stale:?}");
}

/// A plan with a record of each kind that a form changes.
async fn of_each_kind(rig: &Rig) {
    made(
        rig,
        "requirement.create",
        json!({
            "title": "Fast", "description": "Pages are fast", "priority": "high", "category": "functional",
            "acceptanceCriteria": ["one", "two"],
        }),
    )
    .await;
    let feature = json!({
        "name": "Cache", "description": "x", "requirementIds": ["REQ-001"], "completionCriteria": ["done"], "estimatedEffort": "3h",
    });
    made(rig, "feature.add", feature).await;
    made(rig, "milestone.add", json!({ "name": "Beta", "deadline": "2026-12-24", "features": ["FEAT-001"] })).await;
    let component = json!({
        "name": "Store", "componentType": "database", "responsibilities": ["keeps"], "technology": "SQL",
        "interfaces": [{ "name": "GET /a" }],
    });
    made(rig, "component.add", component).await;
    made(rig, "persona.add", json!({ "name": "Ada", "role": "developer", "personality": "dry" })).await;
}

#[tokio::test]
async fn what_stands_in_the_plan_is_changed_by_a_form_and_features_are_listed() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    of_each_kind(&rig).await;
    let list = browser.get("/projects/p0/plan/features").await.body;
    for shown in ["Cache", "FEAT-001", "REQ-001", "Store", "COMP-001", "SQL", "/projects/p0/plan/new/feature"] {
        assert!(list.contains(shown), "{shown}: {list}");
    }
    // The record, what its form shows, what is typed, and what the record holds then.
    type Change = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
    let changes: &[Change] = &[
        (
            "REQ-001",
            "one\ntwo</textarea>",
            &[
                ("title", "Quick"),
                ("description", ""),
                ("priority", "low"),
                ("category", "non_functional"),
                ("acceptanceCriteria", "three"),
            ],
            &["<h1>Quick</h1>", "three", "low"],
        ),
        (
            "FEAT-001",
            "value=\"3h\"",
            &[("name", "Cache it"), ("description", "y"), ("requirementIds", ""), ("completionCriteria", "")],
            &["<h1>Cache it</h1>"],
        ),
        (
            "MILE-001",
            "value=\"2026-12-24\"",
            &[("name", "Gamma"), ("deadline", ""), ("features", "")],
            &["<h1>Gamma</h1>"],
        ),
        (
            "COMP-001",
            "value=\"SQL\"",
            &[("name", "Base"), ("componentType", "database"), ("responsibilities", "holds"), ("technology", "SQL")],
            &["<h1>Base</h1>", "holds", "GET /a"],
        ),
        (
            "PERS-001",
            "dry</textarea>",
            &[("name", "Eve"), ("role", "developer"), ("personality", "warm")],
            &["<h1>Eve</h1>", "warm"],
        ),
    ];
    for (id, shows, typed, holds) in changes {
        let (page, edit) = (record(id), format!("{}/edit", record(id)));
        assert!(browser.get(&page).await.body.contains(&format!("href=\"{edit}\"")), "{id}");
        let shown = browser.get(&edit).await.body;
        assert!(shown.contains(shows) && !shown.contains("name=\"iteration\""), "{id}: {shown}");
        let nameless = browser.post(&edit, &form(&[("version", "1"), (typed[0].0, " ")])).await;
        assert!(nameless.status == 400 && nameless.body.contains("This is needed."), "{id}: {nameless:?}");
        let typed = form(&[&[("version", "1")], *typed].concat());
        let saved = browser.post(&edit, &typed).await;
        assert_eq!((saved.status, saved.header("location")), (303, Some(&*page)), "{id}: {saved:?}");
        let body = browser.get(&page).await.body;
        for held in *holds {
            assert!(body.contains(held), "{id}: {held}: {body}");
        }
        // What somebody else has changed meanwhile is not written over.
        let stale = browser.post(&edit, &typed).await;
        assert_eq!(stale.status, 409, "{id}: {stale:?}");
    }
    let data = |id: &str| json!({ "id": id });
    let read = async |id: &str| made(&rig, "record.get", data(id)).await;
    let feature = read("FEAT-001").await;
    assert_eq!(
        (&feature["requirementIds"], feature.get("estimatedEffort")),
        (&json!([]), Some(&json!("3h"))),
        "{feature}"
    );
    assert_eq!(read("MILE-001").await.get("deadline"), None);
    assert_eq!(read("REQ-001").await["description"], "");
    for (id, status) in [("CMT-001", 404), ("REQ-999", 404)] {
        assert_eq!(browser.get(&format!("{}/edit", record(id))).await.status, status, "{id}");
    }
}

#[tokio::test]
async fn other_records_stand_with_what_they_are_called_and_forms_offer_them() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    of_each_kind(&rig).await;
    let component = json!({
        "name": "Index <b>", "componentType": "database", "responsibilities": ["finds"], "technology": "SQL",
        "relatedFeatures": ["FEAT-001"],
    });
    made(&rig, "component.add", component).await;
    for (page, shown) in [
        ("/projects/p0/plan", "FEAT-001</a> Cache"),
        ("/projects/p0/plan/features", "REQ-001</a> Fast"),
        ("/projects/p0/plan/features", "COMP-002</a> Index &#60;b&#62;"),
        (&record("FEAT-001"), "REQ-001</a> Fast"),
        (&record("FEAT-001"), "COMP-002</a> Index &#60;b&#62;"),
        (&record("FEAT-001"), "<h2>Requirements that it meets</h2>"),
        (&record("FEAT-001"), "<summary>What it is</summary>"),
        ("/projects/p0/plan/new/feature", "<code>REQ-001</code> Fast"),
        ("/projects/p0/plan/new/feature", "<code>FEAT-001</code> Cache"),
        (&format!("{}/edit", record("COMP-001")), "<code>FEAT-001</code> Cache"),
        ("/projects/p0/plan/tasks/new", "<option value=\"COMP-002\">Index &#60;b&#62;</option>"),
    ] {
        let body = browser.get(page).await.body;
        assert!(body.contains(shown), "{page}: {shown}: {body}");
    }
    let nameless = form(&[
        ("name", "x"),
        ("componentType", "other"),
        ("otherType", ""),
        ("responsibilities", ""),
        ("technology", "x"),
    ]);
    let nameless = browser.post("/projects/p0/plan/new/component", &nameless).await;
    assert!(nameless.status == 400 && nameless.body.contains("id=\"otherType-error\""), "{nameless:?}");
}

#[tokio::test]
async fn each_record_that_is_not_there_is_named_beside_its_field() {
    let rig = Rig::start_all(vec![house()], HttpLimits::default(), None, PackageWork::of).await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    of_each_kind(&rig).await;
    let feature = form(&[
        ("name", "x"),
        ("requirementIds", "REQ-001\r\nREQ-098\r\nREQ-99"),
        ("completionCriteria", "done"),
        ("dependencies", "TASK-001\r\n<b>"),
        ("iteration", ""),
    ]);
    let refused = browser.post("/projects/p0/plan/new/feature", &feature).await;
    for said in ["There is no such record: REQ-098, REQ-99.", "There is no such record: TASK-001, &#60;b&#62;."] {
        assert!(refused.status == 400 && refused.body.contains(said), "{said}: {refused:?}");
    }
    let task =
        form(&[("title", "x"), ("featureId", "FEAT-009"), ("componentId", "COMP-009"), ("dependencies", "TASK-9")]);
    let refused = browser.post("/projects/p0/plan/tasks/new", &task).await;
    for field in ["featureId", "componentId", "dependencies"] {
        assert!(refused.body.contains(&format!("id=\"{field}-error\"")), "{field}: {refused:?}");
    }
    let nowhere = form(&[("title", "x"), ("description", ""), ("acceptanceCriteria", "a"), ("iteration", "77")]);
    let refused = browser.post("/projects/p0/plan/new/requirement", &nowhere).await;
    assert!(
        refused.body.contains("id=\"iteration-error\"") && refused.body.contains("There is no iteration"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_a_refused_form_did_not_change_is_in_it_as_before() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    made(&rig, "ticket.create", json!({ "title": "One", "description": "for <ann>" })).await;
    let edit = format!("{}/edit", record("TKT-001"));
    let typed = form(&[("version", "1"), ("title", "One"), ("description", "for <ann>"), ("priority", "no such")]);
    let refused = browser.post(&edit, &typed).await;
    assert!(refused.status == 400 && refused.body.contains("for &#60;ann&#62;</textarea>"), "{refused:?}");
}

#[tokio::test]
async fn a_form_writes_over_nothing_that_it_has_not_shown() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let text = format!("with {secret} in it");
    of_each_kind(&rig).await;
    made(&rig, "requirement.update", json!({ "id": "REQ-001", "description": text })).await;
    made(&rig, "ticket.create", json!({ "title": "One", "description": text })).await;
    // As the database keeps it.
    let house = &rig.houses[0];
    let who = Who { project_id: house.project.id, user_id: 1, name: USER_NAME.to_owned(), call_id: "test".to_owned() };
    let desk = Records::new(house.store.database()).desk(who).unwrap();
    for (id, version) in [("REQ-001", "2"), ("TKT-001", "1")] {
        let edit = format!("{}/edit", record(id));
        let page = browser.get(&edit).await.body;
        assert!(page.contains("with [redacted] in it</textarea>"), "{page}");
        // A version that says nothing is none.
        for wrong in ["", "x", "null", "2.0", "99999999999999999999"] {
            let sent = browser.post(&edit, &form(&[("version", wrong), ("title", "Written over")])).await;
            assert!(sent.status == 409 && sent.body.contains("value=\"Written over\""), "{wrong}: {sent:?}");
        }
        assert_eq!(browser.post(&edit, &form(&[("title", "Written over")])).await.status, 409);
        let none = browser.post(&edit, &form(&[("version", version), ("role", "x")])).await;
        assert!(none.status == 400 && none.body.contains("Nothing is different"), "{none:?}");
        let masked = [("version", version), ("title", "Two"), ("description", "now [redacted] here")];
        let masked = browser.post(&edit, &form(&masked)).await;
        assert!(masked.status == 400 && masked.body.contains("A secret of it is masked here"), "{masked:?}");
        // What is sent as it was shown stays as it is kept.
        let sent = [("version", version), ("title", "Two"), ("description", "with [redacted] in it")];
        assert_eq!(browser.post(&edit, &form(&sent)).await.status, 303, "{id}");
        assert!(browser.get(&record(id)).await.body.contains("<h1>Two</h1>"), "{id}");
        let kept = desk.get_any(RecordId::parse(id).unwrap()).await.unwrap();
        assert!(format!("{kept:?}").contains(&text), "{id}: {kept:?}");
    }
}

#[tokio::test]
async fn a_ticket_is_commented_ticked_and_moved_on_its_page() {
    let rig = Rig::one().await;
    made(&rig, "ticket.create", json!({ "title": "Dark mode", "acceptanceCriteria": ["one", "two"] })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let path = record("TKT-001");
    for typed in [
        form(&[("do", "comment"), ("text", "I begin\r\nnow")]),
        form(&[("do", "tick"), ("number", "2")]),
        form(&[("do", "move"), ("from", "backlog"), ("to", "research"), ("why", "it is time")]),
    ] {
        let done = browser.post(&path, &typed).await;
        assert_eq!((done.status, done.header("location")), (303, Some(&*path)), "{typed}: {done:?}");
    }
    let page = browser.get(&path).await;
    for shown in
        ["local (human)", "<p>I begin</p>", "<strong>done:</strong> two", "<strong>open:</strong> one", "it is time"]
    {
        assert!(page.body.contains(shown), "{shown}: {}", page.body);
    }
    let empty = browser.post(&path, &form(&[("do", "comment"), ("text", " ")])).await;
    assert!(empty.status == 400 && empty.body.contains("id=\"text-error\""), "{}", empty.body);
    let dance = browser.post(&path, &form(&[("do", "dance")])).await;
    assert_eq!(dance.status, 400);
}

/// A requirement with a feature, a component and two tasks of which one waits for the other; and one that nothing covers.
async fn planned(rig: &Rig) {
    for (tool, arguments) in [
        (
            "requirement.create",
            json!({ "title": "Sign in", "description": "", "priority": "high", "category": "functional", "acceptanceCriteria": ["a form"] }),
        ),
        (
            "requirement.create",
            json!({ "title": "Sign out", "description": "", "priority": "low", "category": "functional", "acceptanceCriteria": [] }),
        ),
        (
            "feature.add",
            json!({ "name": "Login", "description": "", "requirementIds": ["REQ-001"], "completionCriteria": ["works"] }),
        ),
        (
            "component.add",
            json!({ "name": "web", "componentType": "other", "responsibilities": ["shows"], "technology": "HTML", "relatedFeatures": ["FEAT-001"] }),
        ),
        ("task.create", json!({ "title": "Build", "featureId": "FEAT-001", "componentId": "COMP-001" })),
        (
            "task.create",
            json!({ "title": "Test", "featureId": "FEAT-001", "componentId": "COMP-001", "dependencies": ["TASK-001"] }),
        ),
        ("milestone.add", json!({ "name": "Beta", "features": ["FEAT-001"], "deadline": "2026-12-24" })),
        ("artifact.save", json!({ "kind": "prd", "content": "Todo List\nA list of things to do." })),
        ("memory.save_learning", json!({ "content": "migrations are slow" })),
        ("persona.add", json!({ "name": "Ada", "role": "developer", "personality": "calm" })),
    ] {
        made(rig, tool, arguments).await;
    }
}

#[tokio::test]
async fn the_plan_tells_what_covers_a_requirement_and_what_a_task_waits_for() {
    let rig = Rig::one().await;
    planned(&rig).await;
    let browser = Browser::signed_in(&rig, "local").await;
    let plan = browser.get("/projects/p0/plan").await;
    let covered = after(&plan.body, "<strong>Sign in</strong>").split("</li>").next().unwrap().to_owned();
    for shown in ["/records/FEAT-001\"", "/records/TASK-001\"", "/records/TASK-002\""] {
        assert!(covered.contains(shown), "{shown}: {covered}");
    }
    let bare = after(&plan.body, "not covered").split("</li>").next().unwrap().to_owned();
    assert!(bare.contains("Sign out") && bare.contains("no feature is to meet it"), "{bare}");
    assert!(plan.body.contains("<strong>Beta</strong>") && plan.body.contains("2026-12-24"), "{}", plan.body);
    let tasks = browser.get("/projects/p0/plan/tasks?status=pending").await;
    let test = after(&tasks.body, "<strong>Test</strong>").split("</li>").next().unwrap().to_owned();
    assert!(test.contains("Waits for: <a href=\"/projects/p0/records/TASK-001\""), "{test}");
    for (below, shown) in [
        ("artifacts", "/plan/artifacts/prd\""),
        ("artifacts/prd", "A list of things to do."),
        ("memory?q=migration", "migrations are slow"),
        ("iterations", "There is no iteration"),
        ("personas", "profile developer"),
    ] {
        let page = browser.get(&format!("/projects/p0/plan/{below}")).await;
        assert!(page.status == 200 && page.body.contains(shown), "{below}: {}", page.body);
    }
    let again = json!({ "kind": "prd", "content": "Another list." });
    made(&rig, "artifact.save", again).await;
    let versions = browser.get(&record("ART-001")).await;
    assert!(versions.body.contains("/plan/artifacts/prd?version=1&#38;iteration=0\">Its text"), "{}", versions.body);
    let first = browser.get("/projects/p0/plan/artifacts/prd?version=1&iteration=0").await;
    assert!(first.body.contains("A list of things to do.") && first.body.contains("version 1 of 2"), "{}", first.body);
    let requirement = browser.get(&record("REQ-001")).await;
    assert!(after(&requirement.body, "<h2>Refers to it</h2>").contains("/records/FEAT-001"), "{}", requirement.body);
    let feature = browser.get(&record("FEAT-001")).await;
    let refers = after(&feature.body, "<h2>Refers to it</h2>");
    assert!(refers.contains("/records/TASK-002") && refers.contains("/records/COMP-001"), "{refers}");
}

#[tokio::test]
async fn each_kind_tells_what_refers_to_it() {
    let rig = Rig::one().await;
    planned(&rig).await;
    for (tool, arguments) in [
        ("memory.save_insight", json!({ "stage": "coding", "content": "one writer is enough" })),
        (
            "memory.promote_to_pattern",
            json!({ "sourceId": "INS-001", "name": "One writer", "description": "one connection" }),
        ),
    ] {
        made(&rig, tool, arguments).await;
    }
    let browser = Browser::signed_in(&rig, "local").await;
    for (id, label, named) in [
        ("REQ-001", "Features", "FEAT-001"),
        ("FEAT-001", "Milestones", "MILE-001"),
        ("FEAT-001", "Components", "COMP-001"),
        ("COMP-001", "Tasks", "TASK-001"),
        ("TASK-001", "Tasks", "TASK-002"),
        ("INS-001", "Patterns", "PAT-001"),
    ] {
        let page = browser.get(&record(id)).await;
        let refers = after(&page.body, "<h2>Refers to it</h2>").split("</section>").next().unwrap().to_owned();
        assert!(
            after(&refers, &format!("<dt>{label}</dt>")).contains(&format!("/records/{named}\"")),
            "{id}: {refers}"
        );
        assert!(!page.body.contains("<h2>referred by</h2>"), "it is no field: {}", page.body);
    }
    for id in ["REQ-002", "TASK-002", "PAT-001"] {
        let page = browser.get(&record(id)).await;
        assert!(page.status == 200 && !page.body.contains("Refers to it"), "{id}: {}", page.body);
    }
}

#[tokio::test]
async fn who_holds_a_task_is_named_and_a_task_is_created_and_moved() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, "local").await;
    let typed = form(&[("title", "Renew the certificate"), ("labels", "a\r\nb"), ("estimatedEffort", "3h")]);
    let created = browser.post("/projects/p0/plan/tasks/new", &typed).await;
    assert_eq!((created.status, created.header("location")), (303, Some(&*record("TASK-001"))), "{created:?}");
    let waits = form(&[("title", "x"), ("dependencies", "TASK-009")]);
    let wrong = browser.post("/projects/p0/plan/tasks/new", &waits).await;
    assert!(wrong.status == 400 && wrong.body.contains("TASK-009</textarea>"), "{wrong:?}");
    let started = form(&[("do", "move"), ("from", "pending"), ("to", "in_progress")]);
    assert_eq!(browser.post(&record("TASK-001"), &started).await.status, 303);
    made(&rig, "task.create", json!({ "title": "Look at the logs" })).await;
    made(&rig, "task.claim", json!({ "id": "TASK-002" })).await;
    let tasks = browser.get("/projects/p0/plan/tasks").await;
    assert!(tasks.body.contains("<span class=\"badge\">in progress</span>"), "{}", tasks.body);
    let task = after(&tasks.body, "Look at the logs").split("</li>").next().unwrap().to_owned();
    assert!(task.contains("held by Test Agent") && task.contains("left"), "{task}");
}

#[tokio::test]
async fn what_agents_write_is_text_in_every_field_of_a_record() {
    let rig = Rig::one().await;
    let tricks = "<script>alert(1)</script><svg onload=alert(1)>\"'><img src=x onerror=alert(1)> {{ 7 * 7 }} \
                  \u{1b}[2J\u{202e}gpj</textarea></title>";
    let long = format!("{tricks}\n{}", "x".repeat(200_000));
    made(
        &rig,
        "ticket.create",
        json!({ "title": tricks, "description": long, "acceptanceCriteria": [tricks], "assignee": tricks }),
    )
    .await;
    made(&rig, "comment.post", json!({ "ticketId": "TKT-001", "content": long })).await;
    let requirement = json!({ "title": tricks, "description": long, "priority": "high", "category": "functional", "acceptanceCriteria": [tricks] });
    made(&rig, "requirement.create", requirement).await;
    made(
        &rig,
        "feature.add",
        json!({ "name": tricks, "description": long, "requirementIds": ["REQ-001"], "completionCriteria": [tricks] }),
    )
    .await;
    made(&rig, "task.create", json!({ "title": tricks, "description": long, "labels": [tricks] })).await;
    made(&rig, "artifact.save", json!({ "kind": "prd", "content": long })).await;
    made(&rig, "memory.save_learning", json!({ "content": long })).await;
    made(&rig, "persona.add", json!({ "name": "Eve <b>", "role": "developer", "personality": tricks })).await;
    let browser = Browser::signed_in(&rig, "local").await;
    for below in [
        "board",
        "records/TKT-001",
        "records/TKT-001?field=description",
        "records/CMT-001",
        "records/REQ-001",
        "records/FEAT-001",
        "records/TASK-001",
        "plan",
        "plan/tasks",
        "plan/artifacts/prd",
        "plan/memory",
        "plan/personas",
    ] {
        let page = browser.get(&format!("/projects/p0/{below}")).await;
        assert_is_text(&page, below);
        assert!(page.body.contains("&#60;script&#62;") && page.body.contains("{{ 7 * 7 }}"), "{below}: it is readable");
        assert!(page.body.len() < 600_000, "{below}: {} bytes", page.body.len());
    }
}

#[tokio::test]
async fn records_are_for_members_and_changes_for_editors() {
    let rig = Rig::start(vec![house(), house()], HttpLimits::default()).await;
    planned(&rig).await;
    made(&rig, "ticket.create", json!({ "title": "Dark mode" })).await;
    let people = rig.houses[0].store.people();
    people.add_user("eve").await.unwrap();
    let eve = Browser::signed_in(&rig, "eve").await;
    for below in
        ["board", "board/new", "records/TKT-001", "records/TKT-001/edit", "plan", "plan/tasks", "plan/artifacts/prd"]
    {
        let (theirs, none) =
            (eve.get(&format!("/projects/p0/{below}")).await, eve.get(&format!("/projects/p9/{below}")).await);
        assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{below}");
        assert_eq!(theirs.status, 404, "{below}");
    }
    let ann = people.add_user("ann").await.unwrap();
    people.set_role(rig.houses[0].project.id, ann, Role::Viewer).await.unwrap();
    let viewer = Browser::signed_in(&rig, "ann").await;
    for below in ["board", "records/TKT-001", "plan/tasks"] {
        let page = viewer.get(&format!("/projects/p0/{below}")).await;
        assert!(
            page.status == 200 && !page.body.contains("method=\"post\" action=\"/projects"),
            "{below}: {}",
            page.body
        );
    }
    for (below, typed) in [
        ("board", form(&[("id", "TKT-001"), ("from", "backlog"), ("to", "research")])),
        ("board/new", form(&[("title", "x")])),
        ("records/TKT-001", form(&[("do", "comment"), ("text", "x")])),
        ("records/TKT-001/edit", form(&[("title", "x")])),
    ] {
        assert_eq!(viewer.post(&format!("/projects/p0/{below}"), &typed).await.status, 403, "{below}");
    }
    for below in ["records/TKT-999", "records/x", "records/TKT-001?field=nope", "plan/artifacts/nope"] {
        assert_eq!(viewer.get(&format!("/projects/p0/{below}")).await.status, 404, "{below}");
    }
}

#[tokio::test]
async fn each_kind_of_the_plan_is_created_by_a_form() {
    let rig = Rig::one().await;
    let browser = Browser::signed_in(&rig, USER_NAME).await;
    let plan = browser.get("/projects/p0/plan").await.body;
    assert!(plan.contains("/projects/p0/plan/new/requirement"), "{plan}");
    // The kind, what is typed, and where that leads.
    type Typed = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let kinds: &[Typed] = &[
        (
            "iteration",
            &[("title", "First"), ("description", "All of it"), ("base", ""), ("inheritance", "none")],
            "/projects/p0/plan/iterations",
        ),
        (
            "requirement",
            &[
                ("title", "Fast"),
                ("description", "<b>"),
                ("priority", "high"),
                ("category", "functional"),
                ("acceptanceCriteria", "one\r\ntwo"),
            ],
            "/projects/p0/records/REQ-001",
        ),
        (
            "feature",
            &[("name", "Cache"), ("description", "x"), ("requirementIds", "REQ-001"), ("completionCriteria", "done")],
            "/projects/p0/records/FEAT-001",
        ),
        (
            "milestone",
            &[("name", "Beta"), ("deadline", "2026-12-24"), ("features", "FEAT-001")],
            "/projects/p0/records/",
        ),
        (
            "component",
            &[("name", "Store"), ("componentType", "database"), ("responsibilities", "keeps"), ("technology", "SQL")],
            "/projects/p0/records/",
        ),
        ("artifact", &[("kind", "idea"), ("content", "# Idea\r\n\r\nIt is one.")], "/projects/p0/plan/artifacts"),
        (
            "insight",
            &[("stage", "design"), ("content", "Keep it small."), ("importance", "normal")],
            "/projects/p0/plan/memory",
        ),
        ("issue", &[("stage", "coding"), ("content", "It is slow.")], "/projects/p0/plan/memory"),
        ("learning", &[("content", "Measure first.")], "/projects/p0/plan/memory"),
        ("persona", &[("name", "Ada"), ("role", "developer"), ("personality", "dry")], "/projects/p0/plan/personas"),
    ];
    for (kind, fields, leads_to) in kinds {
        let path = format!("/projects/p0/plan/new/{kind}");
        assert_eq!(browser.get(&path).await.status, 200, "{kind}");
        let empty = browser.post(&path, &form(&[("iteration", "x")])).await;
        assert!(empty.status == 400 && empty.body.contains("-error\""), "{kind}: {empty:?}");
        let made = browser.post(&path, &form(fields)).await;
        let location = made.header("location").unwrap_or_default();
        assert!(made.status == 303 && location.starts_with(leads_to), "{kind}: {made:?}");
        assert_eq!(browser.get(location).await.status, 200, "{kind}: {location}");
    }
    let wrong = form(&[("name", "Typed <here>"), ("deadline", "tomorrow")]);
    let refused = browser.post("/projects/p0/plan/new/milestone", &wrong).await;
    assert!(refused.status == 400 && refused.body.contains("Typed &#60;here&#62;"), "{refused:?}");
    let beside = refused.body.split("id=\"deadline-error\">").nth(1).and_then(|rest| rest.split('<').next());
    assert_eq!(beside, Some("This is not written as it has to be: see below."), "{refused:?}");
    for (day, status) in [("2026-02-30", 400), ("2026-13-01", 400), ("2028-02-29", 303)] {
        let sent = browser.post("/projects/p0/plan/new/milestone", &form(&[("name", "Day"), ("deadline", day)])).await;
        let beside = sent.body.contains(&format!("id=\"deadline-error\">The calendar has no {day}"));
        assert_eq!((sent.status, beside), (status, status == 400), "{day}: {sent:?}");
    }
    assert_eq!(browser.get("/projects/p0/plan/new/nothing").await.status, 404);
}
