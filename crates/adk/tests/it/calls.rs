//! What becomes of an agent's calls.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_adk::Toolset;
use toolhost_contract::Scope;
use toolhost_host::Asking;
use toolhost_testkit::SaysYes;

use crate::agent::{SESSION, caller, context, house, scope, tool, toolset};

/// Asks a person about every file that is written.
const ASKS: &str = "[[profiles.developer.rules]]\ntool = 'file.write'\ndecide = 'ask'\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_passes_the_gate_and_comes_back_as_its_outcome() {
    let house = house().build().await;
    let set = toolset(&house, "developer");
    let arguments = json!({ "path": "notes/a.txt", "content": "hello\n" });
    let written = tool(&set, "file_write").execute(context(), arguments).await.unwrap();
    assert_eq!(
        (&written["ok"], &written["data"]["created"], &written["error"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    assert_eq!(written["meta"]["tool"], "file.write");
    assert_eq!(house.workspace.read("notes/a.txt"), "hello\n");
    let rows = house.rows().await;
    let events: Vec<_> = rows.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "finished"]);
    assert_eq!(rows[0]["callId"], written["meta"]["callId"]);
    let caller = json!({ "door": "adk", "kind": "model", "profile": "developer", "persona": "adk agent" });
    assert_eq!((&rows[0]["caller"], rows[0]["sessionId"].as_str()), (&caller, Some(SESSION)));
    let read = tool(&set, "file_read").execute(context(), json!({ "path": "notes/a.txt" })).await.unwrap();
    assert!(read.to_string().contains("hello"), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_an_outcome_that_a_model_can_go_on_from() {
    let house = house().build().await;
    let set = toolset(&house, "developer");
    for (name, arguments, kind) in [
        ("file_read", json!({ "path": "no/such.txt" }), "not_found"),
        ("file_read", json!({ "path": "../out.txt" }), "security"),
        ("file_read", json!({ "paht": "a.txt" }), "validation"),
        ("file_read", Value::Null, "validation"),
    ] {
        let outcome = tool(&set, name).execute(context(), arguments.clone()).await.unwrap();
        assert_eq!(
            (&outcome["ok"], &outcome["error"]["kind"]),
            (&json!(false), &json!(kind)),
            "{arguments}: {outcome}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_belong_to_the_session_that_the_scope_names() {
    let house = house().build().await;
    let named = Scope { session_id: Some("mine".to_owned()), ..scope(&house) };
    let set = Toolset::new(&house.gate, named, caller("developer")).unwrap();
    let outcome = tool(&set, "file_list").execute(context(), json!({})).await.unwrap();
    assert_eq!(outcome["meta"]["sessionId"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_person_waits_in_the_queue_and_runs_once_they_say_yes() {
    let asking = Asking { unattended: toolhost_host::Unattended::Wait, hold: Duration::ZERO, ..Asking::default() };
    // The house's own calls have a person beside them; the agent's do not.
    let house = house().operator(ASKS).asking(asking).person(SaysYes).build().await;
    let set = toolset(&house, "developer");
    let arguments = json!({ "path": "a.txt", "content": "x" });
    let pending = tool(&set, "file_write").execute(context(), arguments).await.unwrap();
    assert_eq!((&pending["ok"], &pending["data"]["status"]), (&json!(true), &json!("pending_approval")), "{pending}");
    assert!(!house.workspace.has("a.txt"));
    let decision = toolhost_host::Decision { answer: toolhost_contract::Answer::Allow, rule: None };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.unwrap();
    let id = pending["data"]["approvalId"].clone();
    let waited = tool(&set, "approval_wait").execute(context(), json!({ "approvalId": id })).await.unwrap();
    assert_eq!(waited["ok"], true, "{waited}");
    assert_eq!(house.workspace.read("a.txt"), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_cancels_it_and_its_end_is_written_down() {
    let asking =
        Asking { unattended: toolhost_host::Unattended::Wait, hold: Duration::from_secs(600), ..Asking::default() };
    let house = house().operator(ASKS).asking(asking).build().await;
    let set = toolset(&house, "developer");
    let write = tool(&set, "file_write");
    let running =
        tokio::spawn(async move { write.execute(context(), json!({ "path": "a.txt", "content": "x" })).await });
    // It waits for a person for ten minutes, which nobody here does.
    let asked = async {
        while house.gate.queue().get(house.project.id, 1).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    house.gate.settle().await;
    let rows = house.rows().await;
    let last = rows.last().unwrap();
    assert_eq!((&last["event"], &last["outcome"]["kind"]), (&json!("finished"), &json!("cancelled")), "{rows:?}");
    assert!(!house.workspace.has("a.txt"));
}
