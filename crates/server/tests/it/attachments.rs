//! What an answer has beside its text, and when the notes of a call's progress come.

use serde_json::{Value, json};
use toolhost_contract::{
    AnyTool, Attachment, AttachmentContent, BoxFuture, Ctx, Facts, Packed, Progress, Success, ToolError, ToolInfo,
};
use toolhost_server::http::HttpLimits;
use toolhost_testkit::HouseBuilder;

use crate::rig::{Rig, asking_nobody};

/// Answers with one attachment of each kind, and tells three times where it stands.
struct Attaches;

fn attachment(mime: &str, uri: Option<&str>, content: AttachmentContent) -> Attachment {
    Attachment { mime_type: mime.to_owned(), uri: uri.map(str::to_owned), content }
}

impl AnyTool for Attaches {
    fn info(&self) -> ToolInfo {
        ToolInfo {
            name: "test.attach".into(),
            title: "Attach".into(),
            description: "attaches".to_owned(),
            facts: Facts::READS,
            version: 1,
            aliases: Vec::new(),
            other_names: &[],
            called_elsewhere: &[],
            input_schema: json!({ "type": "object", "additionalProperties": false }),
            output_schema: Packed::new(&json!({})),
            examples: Vec::new(),
        }
    }

    fn run<'a>(&'a self, ctx: &'a Ctx<'a>, _: Value) -> BoxFuture<'a, Result<Success, ToolError>> {
        for done in [1.0, 2.0, 3.0] {
            ctx.progress.report(Progress { done, total: Some(3.0), message: "under way".to_owned(), output: None });
        }
        let text = |text: &str| AttachmentContent::Text(text.to_owned());
        let bytes = || AttachmentContent::Base64("AAAA".to_owned());
        let attachments = vec![
            attachment("image/png", None, bytes()),
            attachment("audio/wav", None, bytes()),
            attachment("text/markdown", Some("test://a"), text("see TOKEN=hunter2hunter2")),
            attachment("application/pdf", Some("test://b"), bytes()),
            attachment("text/plain", None, text("without an address")),
        ];
        let text = "five things".to_owned();
        Box::pin(async { Ok(Success { data: json!({}), text, attachments, revision: None, workflow: None }) })
    }
}

async fn rig(builder: impl FnOnce(HouseBuilder) -> HouseBuilder) -> (Rig, String) {
    let house = asking_nobody(HouseBuilder::new(vec![Box::new(Attaches)])).host_variable("TOKEN", "hunter2hunter2");
    let rig = Rig::start(vec![builder(house)], HttpLimits::default()).await;
    let token = rig.token(&["call"]).await;
    (rig, token)
}

#[tokio::test]
async fn a_client_is_shown_what_an_answer_has_beside_its_text() {
    let (rig, token) = rig(|house| house).await;
    let answer = rig.modern(&token, "tools/call", json!({ "name": "test_attach", "arguments": {} })).await.json();
    let expected = json!([
        { "type": "text", "text": "five things" },
        { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "test://a", "mimeType": "text/markdown", "text": "see TOKEN=[redacted]" } },
        { "type": "resource", "resource": { "uri": "test://b", "mimeType": "application/pdf", "blob": "AAAA" } },
        { "type": "resource", "resource": { "uri": "toolhost://attachment", "mimeType": "text/plain", "text": "without an address" } },
    ]);
    assert_eq!(answer["result"]["content"], expected, "{answer}");
    assert!(answer["result"]["structuredContent"]["attachments"].is_null(), "once is enough: {answer}");
    let api = rig.call(&token, "test.attach", json!({})).await.json();
    assert_eq!(api["attachments"][0], json!({ "mimeType": "image/png", "base64": "AAAA" }), "{api}");
}

/// A call that a person allowed answers through `approval.wait`, whose data a model reads as text: no image belongs there.
#[tokio::test]
async fn a_call_that_was_waited_for_has_its_attachments() {
    let house = asking_nobody(HouseBuilder::of(|database, deployment| {
        let tools = toolhost::tools(database, deployment);
        tools.into_iter().chain([Box::new(Attaches) as Box<dyn AnyTool>]).collect()
    }));
    let policy = "[[rules]]\ntool = \"test.attach\"\ndecide = \"ask\"\n";
    let rig = Rig::start(vec![house.project_policy(policy)], HttpLimits::default()).await;
    let token = rig.token(&["call", "read", "approve"]).await;
    let asked = rig.call(&token, "test.attach", json!({})).await.json();
    let id = asked["data"]["approvalId"].as_str().unwrap();
    let address = format!("/api/v1/projects/p0/asks/{id}");
    let digest = rig.send(&token, ("GET", &address), "").await.json()["data"]["digest"].clone();
    let yes = json!({ "decision": "allow", "digest": digest }).to_string();
    let decided = rig.send(&token, ("POST", &format!("{address}/decision")), &yes).await;
    assert_eq!(decided.status, 200, "{decided:?}");
    for _ in ["by this wait", "before"] {
        let done = rig.call(&token, "approval.wait", json!({ "approvalId": id })).await.json();
        assert_eq!(done["attachments"][0], json!({ "mimeType": "image/png", "base64": "AAAA" }), "{done}");
        let outcome = &done["data"]["outcome"];
        assert!(outcome["ok"] == true && outcome["attachments"].is_null(), "{done}");
    }
}

#[tokio::test]
async fn attachments_count_among_the_bytes_of_an_answer() {
    let limits = toolhost_host::Limits { answer_bytes: 60, ..toolhost_host::Limits::default() };
    let (rig, token) = rig(|house| house.limits(limits)).await;
    let answer = rig.call(&token, "test.attach", json!({})).await.json();
    assert_eq!(answer["error"]["kind"], "limit", "{answer}");
}

#[tokio::test]
async fn the_notes_of_a_call_come_before_its_answer() {
    let (rig, token) = rig(|house| house).await;
    let params = json!({ "name": "test_attach", "arguments": {}, "_meta": { "progressToken": "p" } });
    let reply = rig.modern(&token, "tools/call", params).await;
    let said: Vec<Value> =
        reply.body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()).collect();
    let notes: Vec<&Value> = said.iter().map(|message| &message["params"]["progress"]).collect();
    assert_eq!(notes, [&json!(1.0), &json!(2.0), &json!(3.0), &Value::Null], "{reply:?}");
    assert!(said.last().unwrap()["result"].is_object(), "{reply:?}");
}
