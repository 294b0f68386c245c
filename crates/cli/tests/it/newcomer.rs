//! What somebody does on their first day: a small feature planned at the keyboard, built by an agent, and looked at.

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Era, McpProcess, Program, Ran, TempWorkspace};

use crate::room::program;

/// Runs a command that must succeed.
#[track_caller]
fn run(program: &Program, arguments: &[&str]) -> Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

#[track_caller]
fn data(program: &Program, arguments: &[&str]) -> Value {
    let answer = run(program, &[&["--json"], arguments].concat()).json();
    assert_eq!(answer["ok"], true, "{arguments:?}: {answer}");
    answer["data"].clone()
}

/// Types the plan as a person types it.
fn plan(program: &Program) {
    run(program, &["requirement", "create", "Sign in", "--acceptance-criteria", "a form", "--priority", "high"]);
    run(program, &["feature", "add", "Login", "--requirement-ids", "REQ-001", "--completion-criteria", "it works"]);
    let component =
        ["component", "add", "web", "--component-type", "frontend_component", "--responsibilities", "shows pages"];
    run(program, &[&component[..], &["--technology", "HTML", "--related-features", "FEAT-001"]].concat());
    let task = ["--feature-id", "FEAT-001", "--component-id", "COMP-001", "--acceptance-criteria", "it is there"];
    run(program, &[&["task", "create", "Build the form"][..], &task].concat());
    run(program, &[&["task", "create", "Test the form", "--dependencies", "TASK-001"][..], &task].concat());
}

/// The data of a call over MCP that must succeed.
async fn call(agent: &mut McpProcess, tool: &str, arguments: Value) -> Value {
    let result = agent.call(tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"]["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feature_is_planned_built_and_checked_on_the_first_day() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        run(&program, &["init"]);
        plan(&program);
        let ready = run(&program, &["task", "ready"]);
        assert!(ready.stdout.contains("TASK-001") && !ready.stdout.contains("TASK-002"), "{ready:?}");

        let arguments = ["--profile", "planner", "--persona", "Ada"];
        let mut agent = McpProcess::open(&program, &arguments, Era::Session).await;
        let mut rival = McpProcess::open(&program, &["--profile", "planner", "--persona", "Bob"], Era::Session).await;
        let claimed = call(&mut agent, "task_claim", json!({})).await;
        assert_eq!((&claimed["task"]["id"], &claimed["takenOver"]), (&json!("TASK-001"), &json!(false)), "{claimed}");
        let nothing = call(&mut rival, "task_claim", json!({})).await;
        assert_eq!(nothing, json!({ "takenOver": false }), "there is one ready task, and it is taken");
        let held = rival.call("task_claim", json!({ "id": "TASK-001" })).await;
        assert!(held.to_string().contains("TASK-001 is held by Ada"), "{held}");
        // The person sees who works on it.
        let shown = run(&program, &["task", "list"]).stdout;
        assert!(shown.contains("Ada") && shown.contains("in_progress"), "{shown}");

        let done = json!({ "id": "TASK-001", "newStatus": "completed", "expectedStatus": "in_progress" });
        let finished = call(&mut agent, "task_update_status", done).await;
        assert!(finished["completedAtMs"].is_number() && finished["holder"].is_null(), "{finished}");
        let next = call(&mut rival, "task_claim", json!({})).await;
        assert_eq!(next["task"]["id"], "TASK-002", "what waited is ready");
        let insight = json!({ "stage": "coding", "content": "the form needs a token", "importance": "critical" });
        let insight = call(&mut agent, "memory_save_insight", insight).await;
        let covered = call(&mut agent, "check_feature_coverage", json!({})).await;
        assert_eq!(covered["covered"], true, "{covered}");
        assert!(agent.close().await.success() && rival.close().await.success());

        let decision = ["memory", "promote-to-decision", "Tokens", "--decision", "every form carries one"];
        let source = insight["id"].as_str().unwrap();
        let kept = data(&program, &[&decision[..], &["--source-id", source]].concat());
        assert_eq!((&kept["id"], &kept["sourceId"]), (&json!("DEC-001"), &json!("INS-001")), "{kept}");
        let found = data(&program, &["memory", "query", "token"]);
        let ids: Vec<&str> = found["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert!(ids.contains(&"DEC-001") && ids.contains(&"INS-001"), "{found}");
        let history = run(&program, &["record", "history", "TASK-001"]).stdout;
        assert!(history.contains("Ada") && history.contains("local"), "who made it, who did it: {history}");
        let plan = data(&program, &["plan", "get"]);
        let states: Vec<&str> =
            plan["tasks"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
        assert_eq!(states, ["completed", "in_progress"]);
        run(&program, &["audit", "verify"]);
    }
}

#[test]
fn a_quick_task_is_a_title_and_every_record_is_shown_by_its_id() {
    let workspace = TempWorkspace::new();
    let program = crate::room::program(&workspace);
    run(&program, &["init"]);
    plan(&program);
    let quick = data(&program, &["task", "add", "Renew the certificate"]);
    assert_eq!((&quick["id"], &quick["status"]), (&json!("TASK-003"), &json!("pending")), "{quick}");
    run(&program, &["ticket", "add", "Dark mode"]);
    run(&program, &["memory", "save-insight", "Proxies cache"]);
    for (family, id, title) in [
        ("requirement", "REQ-001", "Sign in"),
        ("feature", "FEAT-001", "Login"),
        ("component", "COMP-001", "web"),
        ("task", "task-3", "Renew the certificate"),
        ("ticket", "TKT-001", "Dark mode"),
        ("memory", "INS-001", "Proxies cache"),
        ("record", "TASK-002", "Test the form"),
    ] {
        let shown = run(&program, &[family, "show", id]);
        assert!(shown.stdout.contains(title), "{family} {id}: {shown:?}");
    }
    let newest = data(&program, &["task", "list", "--newest-first", "--limit", "1"]);
    assert_eq!(newest["items"][0]["id"], "TASK-003", "{newest}");
    let next = data(
        &program,
        &["task", "list", "--newest-first", "--limit", "1", "--cursor", newest["nextCursor"].as_str().unwrap()],
    );
    assert_eq!(next["items"][0]["id"], "TASK-002", "{next}");
    let missing = program.run(&["task", "show", "TASK-009"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("TASK-009"), "{missing:?}");
}
