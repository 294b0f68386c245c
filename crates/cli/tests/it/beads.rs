//! Issues of beads, read line by line; and exports, which go around between engines without a letter lost.

use serde_json::{Value, json};
use toolhost_testkit::engines::{Engine, engines, furnish};
use toolhost_testkit::{Postgres, Program, TempWorkspace};

use crate::room::program;

/// What `bd` writes: an epic with its children, every status, every kind of dependency.
fn issues() -> Vec<Value> {
    let issue = |id: &str, title: &str, status: &str, kind: &str, more: Value| {
        let mut all = json!({
            "id": id, "title": title, "status": status, "issue_type": kind, "priority": 2, "content_hash": "ab12",
            "created_at": "2026-01-01T01:00:00+01:00", "updated_at": "2026-01-02T00:00:00.123456-07:00",
        });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let on =
        |other: &str, how: &str| json!({ "issue_id": "x", "depends_on_id": other, "type": how, "created_by": "ada" });
    vec![
        issue(
            "bd-1",
            "Sign in",
            "open",
            "epic",
            json!({ "owner": "bob", "created_by": "eve", "labels": ["big"], "assignee": "ada", "estimated_minutes": 60,
                "priority": 1, "description": "users sign in", "acceptance_criteria": "- [ ] a form\n- [x] a page\n\n* a link" }),
        ),
        issue(
            "bd-2",
            "Build the form",
            "closed",
            "task",
            json!({
                "description": "with two fields", "design": "plain HTML", "notes": "see the mockup", "assignee": "ada",
                "estimated_minutes": 90, "priority": 0, "labels": ["ui", "bd-1"], "close_reason": "it is built", "external_ref": "gh-9",
                "started_at": "2026-01-01T02:00:00Z", "closed_at": "2026-01-01T03:30:00Z", "dependencies": [on("bd-1", "parent-child")],
                "comments": [{ "id": 1, "issue_id": "bd-2", "author": "bob", "text": "looks good", "created_at": "2026-01-01T03:00:00Z" }],
            }),
        ),
        issue(
            "bd-3",
            "The form is blue",
            "in_progress",
            "bug",
            json!({ "dependencies": [on("bd-2", "blocks"), on("bd-2", "discovered-from")] }),
        ),
        issue(
            "bd-4",
            "Test the form",
            "blocked",
            "chore",
            json!({ "dependencies": [on("bd-2", "blocks"), on("bd-404", "blocks"), on("bd-3", "related")] }),
        ),
        issue(
            "bd-5",
            "Dark mode",
            "deferred",
            "feature",
            json!({ "dependencies": [on("bd-1", "blocks")], "acceptance_criteria": "it is dark" }),
        ),
        issue("bd-6", "Welcome", "pinned", "task", json!({ "dependencies": [on("bd-4", "parent-child")] })),
        issue("bd-7", "An agent is at it", "hooked", "task", json!({})),
        issue("bd-8", "bd-2", "open", "task", json!({ "description": "bd-3" })),
        issue("bd-9", "Sign out", "in_progress", "epic", json!({ "dependencies": [on("bd-1", "blocks")] })),
        issue("bd-10", "Gone", "tombstone", "task", json!({ "deleted_at": "2026-01-01T00:00:00Z" })),
    ]
}

fn lines(issues: &[Value]) -> String {
    issues.iter().map(|issue| format!("{issue}\n")).collect()
}

#[track_caller]
fn ok(program: &Program, arguments: &[&str]) -> String {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran.stdout
}

#[track_caller]
fn data(program: &Program, arguments: &[&str]) -> Value {
    serde_json::from_str::<Value>(&ok(program, &[&["--json"], arguments].concat())).unwrap()["data"].clone()
}

fn field<'a>(items: &'a Value, name: &str) -> Vec<&'a Value> {
    items.as_array().unwrap().iter().map(|one| &one[name]).collect()
}

#[test]
fn issues_of_beads_become_features_and_tasks() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        workspace.write_beside("issues.jsonl", &lines(&issues()));
        let program = engine.under(program(&workspace));
        let told: Value = serde_json::from_str(&ok(
            &program,
            &["--json", "import", "beads", &workspace.beside("issues.jsonl").display().to_string()],
        ))
        .unwrap();
        assert_eq!(told["imported"]["records"], json!({ "feature": 2, "task": 7 }), "{told}");
        let notes = told["notes"].to_string();
        for said in ["bd-10 was deleted", "bd-5: `blocks` bd-1", "bd-6: `parent-child` bd-4"] {
            assert!(notes.contains(said), "{said} is not in {notes}");
        }
        let features = data(&program, &["feature", "list"]);
        assert_eq!(field(&features["items"], "status"), ["pending", "in_progress"]);
        assert_eq!(field(&features["items"], "externalId"), ["bd-1", "bd-9"]);
        let labels = json!(["big", "P1", "assignee: ada", "owner: bob", "created by: eve"]);
        assert_eq!(
            (&features["items"][0]["labels"], &features["items"][0]["estimatedEffort"]),
            (&labels, &json!("60 min"))
        );
        let found = data(&program, &["feature", "list", "--external-id", "bd-9"]);
        assert_eq!(field(&found["items"], "name"), ["Sign out"]);
        assert_eq!(data(&program, &["task", "list", "--external-id", "bd-9"])["items"], json!([]));
        assert_eq!(data(&program, &["task", "list", "--external-id", "bd_"])["items"], json!([]), "it is no pattern");
        assert_eq!(features["items"][0]["completionCriteria"], json!(["a form", "a page", "a link"]));
        assert_eq!(features["items"][1]["dependencies"], json!(["FEAT-001"]), "an epic after an epic");
        assert_eq!(features["items"][0]["assignedToTasks"], json!(["TASK-001"]));
        let tasks = data(&program, &["task", "list"])["items"].clone();
        assert_eq!(field(&tasks, "externalId"), ["bd-2", "bd-3", "bd-4", "bd-5", "bd-6", "bd-7", "bd-8"]);
        let states = ["completed", "in_progress", "blocked", "pending", "pending", "in_progress", "pending"];
        assert_eq!(field(&tasks, "status"), states);
        first_task(&tasks[0]);
        assert_eq!(
            (&tasks[1]["dependencies"], &tasks[2]["dependencies"]),
            (&json!(["TASK-001"]), &json!(["TASK-001"]))
        );
        assert_eq!(tasks[2]["unknownDependencies"], json!(["bd-404"]));
        let said = |n: usize| tasks[n]["description"].as_str().unwrap().to_owned();
        assert!(said(1).contains("discovered-from: bd-2") && said(2).contains("related: bd-3"), "{tasks}");
        assert!(
            said(3).contains("blocks: bd-1") && said(4).contains("parent-child: bd-4"),
            "what has no place is told"
        );
        assert_eq!(
            (&tasks[6]["title"], &tasks[6]["description"]),
            (&json!("bd-2"), &json!("bd-3")),
            "texts stay texts"
        );
        for (n, label) in
            [(1, "bug"), (2, "chore"), (3, "status: deferred"), (4, "status: pinned"), (5, "status: hooked"), (0, "P0")]
        {
            assert!(tasks[n]["labels"].as_array().unwrap().contains(&json!(label)), "{label}: {}", tasks[n]);
        }
        let ready = data(&program, &["task", "ready"]);
        // Who had begun there does not come along: their work can be taken over.
        let expected = ["bd-3", "bd-7", "bd-5", "bd-6", "bd-8"];
        assert_eq!(field(&ready["items"], "externalId"), expected, "what waits or is stuck is not ready");
        let taken = data(&program, &["task", "claim", "TASK-002"]);
        assert_eq!((&taken["takenOver"], &taken["task"]["externalId"]), (&json!(true), &json!("bd-3")), "{taken}");
        let checked = data(&program, &["check", "task-dependencies"]);
        assert_eq!(checked["unknownReferences"], json!([{ "task": "TASK-003", "names": "bd-404" }]));
    }
}

#[test]
fn issues_that_come_again_are_updated_and_what_was_changed_here_stays() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let file = workspace.beside("issues.jsonl").display().to_string();
        let import = |issues: &[Value]| -> Value {
            workspace.write_beside("issues.jsonl", &lines(issues));
            serde_json::from_str(&ok(&program, &["--json", "import", "beads", &file])).unwrap()
        };
        let mut there = issues();
        import(&there);
        let before = ok(&program, &["export"]);
        let again = import(&there);
        assert_eq!(again["imported"], json!({ "records": {}, "versions": 0, "unchanged": 9 }));
        let records = |export: &str| {
            export.lines().filter(|line| line.contains("\"line\":\"record\"")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(records(&ok(&program, &["export"])), records(&before), "nothing has changed there");
        // Here a title and a feature are changed; there another title, a state, and one more issue.
        ok(&program, &["task", "update", "TASK-007", "--title", "renamed here"]);
        ok(&program, &["task", "update", "TASK-003", "--title", "also renamed here"]);
        there[7]["description"] = json!("more to say");
        there[3]["title"] = json!("renamed there");
        there[0]["title"] = json!("Sign in and out");
        there[1]["dependencies"] = json!([]);
        there[5]["status"] = json!("closed");
        there[5]["dependencies"] = json!([{ "depends_on_id": "bd-11", "type": "blocks" }]);
        let more = json!({ "id": "bd-11", "title": "One more", "dependencies": [{ "depends_on_id": "bd-6", "type": "related" }] });
        there.push(more);
        let told = import(&there);
        assert_eq!(told["imported"]["records"], json!({ "task": 1 }), "{told}");
        assert_eq!((&told["imported"]["updated"], &told["imported"]["unchanged"]), (&json!(5), &json!(4)), "{told}");
        let tasks = data(&program, &["task", "list"])["items"].clone();
        assert_eq!(tasks.as_array().unwrap().len(), 8, "{tasks}");
        let one = |id: &str| tasks.as_array().unwrap().iter().find(|task| task["externalId"] == id).unwrap().clone();
        let last = one("bd-8");
        assert_eq!((&last["title"], &last["description"]), (&json!("renamed here"), &json!("more to say")));
        assert_eq!(one("bd-4")["title"], "renamed there", "changed on both sides, it is what it is there");
        assert_eq!((&one("bd-2")["featureId"], &one("bd-6")["status"]), (&Value::Null, &json!("completed")));
        assert_eq!(one("bd-6")["dependencies"], json!([one("bd-11")["id"]]));
        assert_eq!(data(&program, &["feature", "list"])["items"][0]["name"], "Sign in and out");
        // What was changed here is no change of theirs: it stays for good.
        there[7]["description"] = json!("still more");
        assert_eq!(import(&there)["imported"]["updated"], 1);
        let last = data(&program, &["task", "list", "--external-id", "bd-8"])["items"][0].clone();
        assert_eq!((&last["title"], &last["description"]), (&json!("renamed here"), &json!("still more")));
        assert_eq!(import(&there)["imported"]["unchanged"], 10);
        assert!(ok(&program, &["task", "ready"]).contains("One more"));
    }
}

fn first_task(task: &Value) {
    let said = task["description"].as_str().unwrap();
    for part in [
        "with two fields",
        "## Design\nplain HTML",
        "## Notes\nsee the mockup",
        "## Closed because\nit is built",
        "## bob said\nlooks good",
        "gh-9",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert_eq!((&task["featureId"], &task["estimatedEffort"]), (&json!("FEAT-001"), &json!("90 min")));
    assert_eq!(task["labels"], json!(["ui", "bd-1", "P0", "assignee: ada"]), "a label is no reference");
    assert_eq!(
        (&task["createdAtMs"], &task["completedAtMs"]),
        (&json!(1_767_225_600_000_i64), &json!(1_767_238_200_000_i64))
    );
}

#[test]
fn a_file_that_is_none_of_beads_is_named_with_its_line_and_nothing_is_read() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        ok(&program, &["ticket", "create", "there before"]);
        let before = ok(&program, &["export"]);
        let file = workspace.beside("issues.jsonl").display().to_string();
        let good = issues();
        for (bad, said) in [
            ("not JSON", "line 3"),
            ("{\"id\":\"bd-7\"", "line 3"),
            (r#"{"id":"bd-70"}"#, "line 3: an issue has an `id` and a `title`"),
            (r#"["bd-70"]"#, "line 3"),
            ("42", "line 3"),
            (r#"{"id":"bd-1","title":"again"}"#, "bd-1: is there twice"),
        ] {
            let mut text = lines(&good[..2]);
            text.push_str(bad);
            text.push('\n');
            text.push_str(&lines(&good[2..]));
            workspace.write_beside("issues.jsonl", &text);
            let ran = program.run(&["import", "beads", &file]);
            assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{bad}: {ran:?}");
            assert!(
                ran.stderr.contains(said) && ran.stderr.contains("issues.jsonl"),
                "{said} is not in {}",
                ran.stderr
            );
        }
        for (bad, said) in
            [("", "no issue"), ("\n\n", "no issue"), (r#"{"id":"a\u0000b","title":"x"}"#, "zero character")]
        {
            workspace.write_beside("issues.jsonl", bad);
            let ran = program.run(&["import", "beads", &file]);
            assert!(ran.code == Some(1) && ran.stderr.contains(said), "{bad}: {ran:?}");
        }
        std::fs::write(&file, b"\xff\xfe").unwrap();
        assert!(program.run(&["import", "beads", &file]).stderr.contains("cannot be read as text"));
        assert_eq!(ok(&program, &["export"]), before, "nothing was read");
    }
}

#[test]
fn an_export_that_is_damaged_is_named_with_its_line_and_nothing_is_read() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        ok(&program, &["ticket", "create", "one"]);
        ok(&program, &["ticket", "create", "two"]);
        let whole = ok(&program, &["export"]);
        let empty = TempWorkspace::new();
        let other = engines().find(|one| one.url.is_some() == engine.url.is_some()).unwrap();
        let target = other.under(crate::room::program(&empty));
        ok(&target, &["init"]);
        let before = ok(&target, &["export"]);
        let file = empty.beside("export.jsonl").display().to_string();
        let at = whole.lines().position(|line| line.contains("\"id\":\"TKT-002\"")).unwrap();
        for (from, to) in [
            ("\"record\"", "\"recrod\""),
            ("TKT-002", "TKT-0x2"),
            ("backlog", "nowhere"),
            ("\"title\"", "\"titel\""),
            ("{", "["),
            ("\"version\":1", "\"version\":-1"),
        ] {
            let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
            lines[at] = lines[at].replace(from, to);
            empty.write_beside("export.jsonl", &lines.join("\n"));
            let ran = target.run(&["import", &file]);
            assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{from}: {ran:?}");
            let line = format!("line {}", at + 1);
            assert!(
                ran.stderr.contains(&line) && ran.stderr.contains("export.jsonl"),
                "{from}: {line} is not in {}",
                ran.stderr
            );
            assert_eq!(ok(&target, &["export"]), before, "{from}: nothing was read");
        }
        let newer = whole.replacen("\"version\":2", "\"version\":99", 1);
        empty.write_beside("export.jsonl", &newer);
        assert!(target.run(&["import", &file]).stderr.contains("update toolhost"));
    }
}

#[test]
fn an_export_that_was_cut_inside_a_character_is_refused_and_its_whole_lines_can_be_imported() {
    let workspace = TempWorkspace::new();
    let program = crate::room::program(&workspace);
    ok(&program, &["ticket", "create", "one"]);
    ok(&program, &["ticket", "create", "zwölf"]);
    let whole = ok(&program, &["export"]);
    let inside = whole.find('ö').unwrap() + 1;
    let empty = TempWorkspace::new();
    let target = crate::room::program(&empty);
    let file = empty.beside("cut.jsonl").display().to_string();
    std::fs::write(&file, &whole.as_bytes()[..inside]).unwrap();
    let refused = target.run(&["import", &file]);
    let told = refused.stderr.contains("the last one, is incomplete") && refused.stderr.contains("`--partial`");
    assert!(refused.code == Some(1) && told, "{refused:?}");
    let part = target.run(&["import", "--partial", &file]);
    assert!(part.code == Some(0) && part.stderr.contains("is incomplete and was left out"), "{part:?}");
    let list = ok(&target, &["ticket", "list"]);
    assert!(list.contains("TKT-001") && !list.contains("TKT-002"), "{list}");
}

/// Imports a file and tells the export that comes of it.
fn through(engine: &Engine, export: &str) -> String {
    let workspace = TempWorkspace::new();
    workspace.write_beside("export.jsonl", export);
    let program = engine.under(program(&workspace));
    let file = workspace.beside("export.jsonl").display().to_string();
    ok(&program, &["import", &file]);
    let once = ok(&program, &["export"]);
    let again: Value = serde_json::from_str(&ok(&program, &["--json", "import", &file])).unwrap();
    assert_eq!((&again["imported"]["records"], &again["imported"]["versions"]), (&json!({}), &json!(0)), "{again}");
    let records = export.lines().filter(|line| line.contains("\"line\":\"record\"")).count();
    assert_eq!(again["imported"]["unchanged"], records);
    assert_eq!(ok(&program, &["export"]), once, "importing twice changes nothing");
    // It is no dead copy: what comes next counts on, and finds what was kept.
    ok(&program, &["ticket", "create", "the next"]);
    assert!(ok(&program, &["memory", "query", "albatross"]).contains("albatross"));
    ok(&program, &["audit", "verify"]);
    once
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_comes_back_the_same_on_either_engine() {
    for engine in engines() {
        let house = engine.house().await;
        for _ in 0..2 {
            furnish(&house, 1, house.project.id, "albatross").await;
        }
        // Versions, a deleted record, a held task, and the end of a run of numbers.
        for (tool, arguments) in [
            (
                "requirement.update",
                json!({ "id": "REQ-001", "title": "gr\u{fc}\u{df}e \u{1f600}\u{202e}", "why": "tidy\nup" }),
            ),
            ("persona.delete", json!({ "id": "PERS-002" })),
            ("task.claim", json!({ "id": "TASK-003" })),
            ("iteration.update_status", json!({ "id": "ITER-001", "current": true })),
        ] {
            house.data(tool, arguments).await;
        }
        let whole = toolhost_testkit::engines::exported(&house.store, house.project.id).await;
        let first: String = whole.iter().map(|line| format!("{line}\n")).collect();
        assert!(whole.len() > 70, "{}", whole.len());
        let sqlite = Engine { url: None };
        let second = through(&sqlite, &first);
        assert_eq!(second, first);
        if let Some(server) = Postgres::shared() {
            let third = through(&Engine { url: Some(server.fresh_database()) }, &second);
            assert_eq!(third, first);
            assert_eq!(through(&sqlite, &third), first);
        }
    }
}
