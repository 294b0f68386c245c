//! People asked through a client of 2026-07-28 over HTTP: a form comes back in place of the answer, and with it the request again.

use serde_json::{Value, json};
use toolhost_server::http::HttpLimits;

use crate::rig::{Rig, house};

/// A server whose policy asks before these tools, and a token that may call and decide.
async fn asking(tools: &[&str]) -> (Rig, String) {
    let rules: String = tools.iter().map(|tool| format!("[[rules]]\ntool = \"{tool}\"\ndecide = \"ask\"\n")).collect();
    let rig = Rig::start(vec![house().project_policy(&rules)], HttpLimits::default()).await;
    let token = rig.token(&["call", "approve"]).await;
    (rig, token)
}

/// The result of a request whose client shows forms, or its error.
async fn asked(rig: &Rig, token: &str, method: &str, params: Value) -> Value {
    let reply = rig.modern(token, method, params).await;
    let answer = reply.json();
    if answer["result"].is_null() { answer["error"].clone() } else { answer["result"].clone() }
}

/// The same request with the form of `before` filled in.
fn again(mut params: Value, before: &Value, content: Value) -> Value {
    params["requestState"] = before["requestState"].clone();
    params["inputResponses"] = json!({ "decision": { "action": "accept", "content": content } });
    params
}

#[track_caller]
fn message(result: &Value) -> &str {
    assert_eq!(result["resultType"], "input_required", "{result}");
    result["inputRequests"]["decision"]["params"]["message"].as_str().unwrap()
}

fn write() -> Value {
    json!({ "name": "file_write", "arguments": { "path": "a.txt", "content": "hello" } })
}

fn yes() -> Value {
    json!({ "decision": "allow" })
}

#[tokio::test]
async fn a_call_comes_back_with_a_form_and_runs_with_its_yes() {
    let (rig, token) = asking(&["file.write"]).await;
    let first = asked(&rig, &token, "tools/call", write()).await;
    assert!(message(&first).contains("a.txt"), "{first}");
    let file = rig.houses[0].workspace.root().join("a.txt");
    assert!(!file.exists());
    let done = asked(&rig, &token, "tools/call", again(write(), &first, yes())).await;
    assert_eq!((&done["structuredContent"]["ok"], file.exists()), (&json!(true), true), "{done}");
    let rows = rig.houses[0].rows().await;
    let decided = rows.iter().find(|row| row["event"] == "decision").unwrap();
    assert!(decided.to_string().contains("the client forms for local"), "it is named as it names itself: {decided}");
}

#[tokio::test]
async fn a_state_that_the_client_was_not_given_is_refused() {
    let (rig, token) = asking(&["file.write"]).await;
    let first = asked(&rig, &token, "tools/call", write()).await;
    let other = rig.token_of(0, "other", &["all"], &["call", "approve"]).await;
    for (token, state) in
        [(&token, "ask-1-TAMPERED"), (&token, "ask-01"), (&token, "1"), (&token, ""), (&other, "ask-1")]
    {
        let forged = json!({ "requestState": state });
        let refused = asked(&rig, token, "tools/call", again(write(), &forged, yes())).await;
        assert_eq!(refused["code"], -32602, "{state}: {refused}");
    }
    assert!(!rig.houses[0].workspace.root().join("a.txt").exists());
    let done = asked(&rig, &token, "tools/call", again(write(), &first, yes())).await;
    assert_eq!(done["structuredContent"]["ok"], true, "{done}");
}

#[tokio::test]
async fn whoever_has_decided_is_asked_the_next_question() {
    let (rig, token) = asking(&["human.ask"]).await;
    let call = json!({ "name": "human_ask", "arguments": { "question": "Which color?" } });
    let first = asked(&rig, &token, "tools/call", call.clone()).await;
    let question = asked(&rig, &token, "tools/call", again(call.clone(), &first, yes())).await;
    assert!(message(&question).contains("asks:") && message(&question).contains("Which color?"), "{question}");
    assert_ne!(question["requestState"], first["requestState"]);
    // A form that was dismissed is not shown again at once.
    let mut dismissed = again(call.clone(), &question, json!({}));
    dismissed["inputResponses"]["decision"] = json!({ "action": "cancel" });
    let waits = asked(&rig, &token, "tools/call", dismissed).await;
    assert_ne!(waits["resultType"], "input_required", "{waits}");
}

#[tokio::test]
async fn a_question_with_choices_is_answered_with_one_or_with_other_words() {
    let (rig, token) = asking(&[]).await;
    let ask = |question: &str| json!({ "name": "human_ask", "arguments": { "question": question, "choices": ["PostgreSQL", "SQLite"] } });
    for (question, content, told) in [
        ("one", json!({ "decision": "answer", "choice": "2" }), "SQLite"),
        ("two", json!({ "decision": "answer", "choice": "1", "text": "Neither" }), "Neither"),
        // Typed text is never read as the number of a choice.
        ("three", json!({ "decision": "answer", "text": "2" }), "2"),
    ] {
        let form = asked(&rig, &token, "tools/call", ask(question)).await;
        let schema = &form["inputRequests"]["decision"]["params"]["requestedSchema"]["properties"]["choice"];
        assert_eq!(
            (&schema["enum"], &schema["enumNames"]),
            (&json!(["1", "2"]), &json!(["PostgreSQL", "SQLite"])),
            "{form}"
        );
        let done = asked(&rig, &token, "tools/call", again(ask(question), &form, content)).await;
        assert_eq!(done["structuredContent"]["data"]["answer"], told, "{done}");
    }
    // Words alone have no choice.
    let form =
        asked(&rig, &token, "tools/call", json!({ "name": "human_ask", "arguments": { "question": "four" } })).await;
    assert!(form["inputRequests"]["decision"]["params"]["requestedSchema"]["properties"]["choice"].is_null(), "{form}");
    let both = json!({ "name": "human_ask", "arguments": { "question": "five", "kind": "yes_no", "choices": ["a"] } });
    let wrong = asked(&rig, &token, "tools/call", both).await;
    assert_eq!(wrong["structuredContent"]["error"]["kind"], "validation", "{wrong}");
    let odd = [
        json!(["a", "A "]),
        json!(["2", "b"]),
        json!(["a\nb"]),
        json!(["a\u{202e}b"]),
        json!(["Cancel"]),
        json!([" "]),
    ];
    for choices in odd {
        let call = json!({ "name": "human_ask", "arguments": { "question": "six", "choices": choices } });
        let wrong = asked(&rig, &token, "tools/call", call).await;
        assert_eq!(wrong["structuredContent"]["error"]["kind"], "validation", "{choices}: {wrong}");
    }
}

#[tokio::test]
async fn what_comes_back_without_the_form_is_asked_again() {
    let (rig, token) = asking(&["file.write"]).await;
    let first = asked(&rig, &token, "tools/call", write()).await;
    let mut wrong = again(write(), &first, yes());
    wrong["inputResponses"] = json!({ "another": wrong["inputResponses"]["decision"] });
    let second = asked(&rig, &token, "tools/call", wrong).await;
    assert_eq!((message(&second), &second["requestState"]), (message(&first), &first["requestState"]));
}

#[tokio::test]
async fn resources_and_prompts_are_asked_about_as_the_calls_that_they_are() {
    let (rig, token) = asking(&["plan.get", "builder.schema.read"]).await;
    let prompt = json!({ "name": "create-workflow", "arguments": { "goal": "sort the mail" } });
    for (method, params, of) in
        [("resources/read", json!({ "uri": "toolhost://plan" }), "contents"), ("prompts/get", prompt, "messages")]
    {
        let first = asked(&rig, &token, method, params.clone()).await;
        message(&first);
        let done = asked(&rig, &token, method, again(params.clone(), &first, yes())).await;
        assert!(done[of].is_array(), "{method}: {done}");
        let first = asked(&rig, &token, method, params.clone()).await;
        let denied = asked(&rig, &token, method, again(params, &first, json!({ "decision": "deny" }))).await;
        assert!(denied["message"].is_string(), "{method}: {denied}");
    }
}

#[tokio::test]
async fn there_is_no_initialize_in_the_era_without_sessions() {
    let (rig, token) = asking(&[]).await;
    let reply = rig.modern(&token, "initialize", json!({})).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!(-32601)), "{reply:?}");
}
