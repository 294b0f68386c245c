//! A client of 2026-07-28 that can open addresses: an ask with a preview is asked by its page.

use serde_json::{Value, json};

use crate::browser::asking;
use crate::pages::{Browser, form};
use crate::rig::Rig;

async fn called(rig: &Rig, token: &str, asks: &Value, params: Value) -> Value {
    let answer = rig.modern_with(token, asks.clone(), "tools/call", params).await.json();
    if answer["result"].is_null() { answer } else { answer["result"].clone() }
}

fn write() -> Value {
    json!({ "name": "file_write", "arguments": { "path": "a.txt", "content": "hello" } })
}

/// The same request, after the client was asked to open the page.
fn again(before: &Value, action: &str) -> Value {
    let mut params = write();
    params["requestState"] = before["requestState"].clone();
    params["inputResponses"] = json!({ "decision": { "action": action } });
    params
}

/// The token has no right to decide: whoever opens the page decides as the person who has signed in.
#[tokio::test]
async fn an_ask_with_a_preview_is_asked_by_its_page() {
    let (rig, token) = asking().await;
    let asks = json!({ "url": {} });
    let first = called(&rig, &token, &asks, write()).await;
    assert_eq!(first["resultType"], "input_required", "{first}");
    let params = &first["inputRequests"]["decision"]["params"];
    assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("http://localhost/asks/p0/ask-1")), "{first}");
    assert!(params["message"].as_str().unwrap().contains("a.txt"), "{first}");
    let file = rig.houses[0].workspace.root().join("a.txt");

    let refused = called(&rig, &token, &asks, again(&first, "decline")).await;
    assert_eq!(
        refused["structuredContent"]["data"]["status"], "pending_approval",
        "not to open it is no answer: {refused}"
    );

    let local = Browser::signed_in(&rig, "local").await;
    let page = local.get("/asks/p0/ask-1").await;
    let digest = page.body.split("name=\"digest\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let allow = form(&[("decision", "allow"), ("digest", digest)]);
    let (done, answered) =
        tokio::join!(called(&rig, &token, &asks, again(&first, "accept")), local.post("/asks/p0/ask-1", &allow));
    assert_eq!(answered.status, 303, "{answered:?}");
    assert_eq!((&done["structuredContent"]["ok"], file.exists()), (&json!(true), true), "{done}");
    let rows = rig.houses[0].rows().await;
    let decided = rows.iter().find(|row| row["event"] == "decision").unwrap();
    assert_eq!(decided["decision"]["place"], "workbench", "{decided}");
}

#[tokio::test]
async fn forms_stay_for_questions_and_for_clients_without_addresses() {
    let (rig, _) = asking().await;
    let token = rig.token(&["call", "approve"]).await;
    let mode = |result: &Value| result["inputRequests"]["decision"]["params"]["mode"].clone();
    let question = json!({ "name": "human_ask", "arguments": { "question": "Which color?" } });
    let both = json!({ "form": {}, "url": {} });
    assert_eq!(mode(&called(&rig, &token, &both, question).await), "form");
    assert_eq!(mode(&called(&rig, &token, &both, write()).await), "url");
    assert_eq!(mode(&called(&rig, &token, &json!({ "form": {} }), write()).await), "form");
}
