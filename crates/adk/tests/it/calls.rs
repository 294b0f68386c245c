//! What becomes of an agent's calls.

use std::time::Duration;

use serde_json::{Value, json};
use toolhost_adk::Toolset;
use toolhost_contract::{Answer, Scope};
use toolhost_host::{Asking, Decision, Unattended};

use crate::agent::{SESSION, asking_house, caller, context, house, scope, tool, toolset};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

fn asking(hold: Duration) -> Asking {
    Asking { unattended: Unattended::Wait, hold, ..Asking::default() }
}

/// Rules: 002.7, 002.42.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_passes_the_gate_and_comes_back_as_its_outcome() {
    let (builder, notes) = house();
    let house = builder.build().await;
    let set = toolset(&house, "writer");
    let context = context();
    let arguments = json!({ "name": "a", "text": "hello" });
    let written = tool(&set, "note_write").execute(context.clone(), arguments).await.unwrap();
    let said = (&written["ok"], &written["data"], &written["error"]);
    assert_eq!(said, (&json!(true), &json!({ "text": "hello" }), &Value::Null));
    assert_eq!(written["meta"]["tool"], "note.write");
    assert_eq!(notes.lock().unwrap().get("a").map(String::as_str), Some("hello"));
    let rows = house.rows().await;
    let events: Vec<_> = rows.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "finished"]);
    assert_eq!(rows[0]["callId"], written["meta"]["callId"]);
    // Whatever its owner says of themselves, an agent is a model.
    let caller = json!({ "door": "adk", "kind": "model", "profile": "writer", "persona": "adk agent" });
    assert_eq!((&rows[0]["caller"], rows[0]["sessionId"].as_str()), (&caller, Some(SESSION)));
    let read = tool(&set, "note_read").execute(context, json!({ "name": "a" })).await.unwrap();
    assert_eq!(read["data"]["text"], "hello");
}

/// Rules: 002.7, 002.54, 004.30.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_of_tool_results_answers_in_bonsai_s_form() {
    let house = house().0.build().await;
    let set = Toolset::of_tool_results(&house.gate, scope(&house), caller("writer")).unwrap();
    let written = tool(&set, "note_write").execute(context(), json!({ "name": "a", "text": "hello" })).await.unwrap();
    assert_eq!((&written["metadata"], &written["error"]), (&json!({ "text": "hello" }), &Value::Null));
    assert!(written["output"].is_string() && written["ok"].is_null(), "{written}");
    let failed = tool(&set, "note_read").execute(context(), json!({ "name": "none" })).await.unwrap();
    assert_eq!((&failed["output"], &failed["metadata"]["kind"]), (&json!(""), &json!("not_found")), "{failed}");
    assert!(!failed["error"].as_str().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_an_outcome_that_a_model_can_go_on_from() {
    let house = house().0.build().await;
    let read = tool(&toolset(&house, "reader"), "note_read");
    for (arguments, kind) in [
        (json!({ "name": "none" }), "not_found"),
        (json!({ "nmae": "a" }), "validation"),
        (json!({ "name": 7 }), "validation"),
        (json!([]), "validation"),
        (Value::Null, "validation"),
    ] {
        let outcome = read.execute(context(), arguments.clone()).await.unwrap();
        assert_eq!(
            (&outcome["ok"], &outcome["error"]["kind"]),
            (&json!(false), &json!(kind)),
            "{arguments}: {outcome}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_belong_to_the_session_that_the_scope_names() {
    let house = house().0.build().await;
    let named = Scope { session_id: Some("mine".to_owned()), ..scope(&house) };
    let set = Toolset::new(&house.gate, named, caller("reader")).unwrap();
    let outcome = tool(&set, "note_read").execute(context(), json!({ "name": "a" })).await.unwrap();
    assert_eq!(outcome["meta"]["sessionId"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_works_for_a_stranger_is_refused_before_anything_is_read() {
    let (builder, notes) = house();
    let house = builder.build().await;
    notes.lock().unwrap().insert("a".to_owned(), "secret".to_owned());
    let stranger = Scope { user_id: scope(&house).user_id + 1, ..scope(&house) };
    let set = Toolset::new(&house.gate, stranger, caller("writer")).unwrap();
    let outcome = tool(&set, "note_read").execute(context(), json!({ "name": "a" })).await.unwrap();
    assert_eq!(outcome["error"]["code"], "AI_TOOL_FORBIDDEN", "{outcome}");
    assert!(!outcome.to_string().contains("secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_person_is_pending_and_runs_once_they_say_yes() {
    let (builder, notes) = asking_house();
    let house = builder.asking(asking(Duration::ZERO)).build().await;
    let write = tool(&toolset(&house, "writer"), "note_write");
    let arguments = json!({ "name": "a", "text": "x" });
    let pending = write.execute(context(), arguments.clone()).await.unwrap();
    assert_eq!((&pending["ok"], &pending["data"]["status"]), (&json!(true), &json!("pending_approval")), "{pending}");
    assert!(notes.lock().unwrap().is_empty());
    let decision = Decision { answer: Answer::Allow, rule: None };
    house.gate.queue().decide(&house.owner(), 1, decision, "test").await.unwrap();
    let done = write.execute(context(), arguments).await.unwrap();
    assert_eq!((&done["data"]["text"], notes.lock().unwrap().len()), (&json!("x"), 1), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_hears_how_far_a_call_is_and_dropping_it_cancels_the_call() {
    let house = house().0.build().await;
    let wait = tool(&toolset(&house, "writer"), "note_wait");
    let context = context();
    let running = tokio::spawn({
        let context = context.clone();
        async move { wait.execute(context, json!({})).await }
    });
    toolhost_testkit::until("it says that it waits", || !context.progress.lock().unwrap().is_empty()).await;
    assert_eq!(*context.progress.lock().unwrap(), ["progress: waiting"]);
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    tokio::time::timeout(PATIENCE, house.gate.settle()).await.unwrap();
    let rows = house.rows().await;
    let last = rows.last().unwrap();
    assert_eq!((&last["event"], &last["outcome"]["kind"]), (&json!("finished"), &json!("cancelled")), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_goes_takes_its_question_back() {
    let (builder, notes) = asking_house();
    let house = builder.asking(asking(PATIENCE)).build().await;
    let write = tool(&toolset(&house, "writer"), "note_write");
    let running = tokio::spawn(async move { write.execute(context(), json!({ "name": "a", "text": "x" })).await });
    let asked = async {
        while house.gate.queue().get(house.project.id, 1).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    tokio::time::timeout(PATIENCE, house.gate.settle()).await.unwrap();
    let (ask, _) = house.gate.queue().get(house.project.id, 1).await.unwrap();
    let state = serde_json::to_value(ask.state).unwrap();
    assert_eq!((state, notes.lock().unwrap().len()), (json!("withdrawn"), 0));
}
