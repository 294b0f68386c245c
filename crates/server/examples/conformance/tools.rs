//! What the suite calls, under the names that it knows: tools, and the resources and prompts that are read by tools.
//!
//! None of them samples a model of the client's, lists its roots or sends it log messages: the door offers none of these.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_contract::{
    AnyTool, Asked, Attachment, AttachmentContent, BoxFuture, Ctx, ErrorKind, Facts, Packed, Progress, Question,
    Success, ToolError, ToolInfo, Wanted,
};
use toolhost_server::mcp::{ArgumentOfPrompt, Offers, PromptTemplate, ResourceKind};

/// A red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
/// Between two reports of progress, as the suite asks for.
const STEP: Duration = Duration::from_millis(50);

type Run = for<'a> fn(&'a Ctx<'a>, &'a Value) -> BoxFuture<'a, Result<Success, ToolError>>;

/// A tool of the suite's.
struct Fixture {
    name: &'static str,
    facts: Facts,
    /// The names of its arguments, all of them texts.
    arguments: &'static [&'static str],
    run: Run,
}

impl AnyTool for Fixture {
    fn info(&self) -> ToolInfo {
        let text = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
        let properties: serde_json::Map<_, _> = self.arguments.iter().map(text).collect();
        let closed = json!({ "type": "object", "properties": properties, "required": self.arguments, "additionalProperties": false });
        info(self.name, self.facts, closed)
    }

    fn run<'a>(&'a self, ctx: &'a Ctx<'a>, arguments: Value) -> BoxFuture<'a, Result<Success, ToolError>> {
        Box::pin(async move { (self.run)(ctx, &arguments).await })
    }
}

/// Asks a person twice: its second question comes once the first has its answer.
struct AsksTwice {
    has_asked: AtomicBool,
}

impl AnyTool for AsksTwice {
    fn info(&self) -> ToolInfo {
        info(
            "test.input_required_result_multi_round",
            Facts::ASKS,
            json!({ "type": "object", "additionalProperties": false }),
        )
    }

    fn run<'a>(&'a self, ctx: &'a Ctx<'a>, _: Value) -> BoxFuture<'a, Result<Success, ToolError>> {
        Box::pin(async move {
            if !self.has_asked.load(Ordering::Acquire) {
                let first = ask(ctx, "Step 1: what is your name?").await?;
                if let Asked::Pending(pending) = first {
                    return Ok(waits(&pending.approval_id, pending.expires_at_ms));
                }
                self.has_asked.store(true, Ordering::Release);
            }
            let second = ask(ctx, "Step 2: what is your favorite color?").await?;
            if let Asked::Pending(pending) = second {
                return Ok(waits(&pending.approval_id, pending.expires_at_ms));
            }
            self.has_asked.store(false, Ordering::Release);
            Ok(text("both questions have their answers"))
        })
    }
}

/// A tool whose schema has words that a server must not lose.
struct Schema;

impl AnyTool for Schema {
    fn info(&self) -> ToolInfo {
        let street = json!({ "street": { "type": "string" }, "city": { "type": "string" } });
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": street } },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        });
        info("json.schema_2020_12_tool", Facts::READS, schema)
    }

    fn run<'a>(&'a self, _: &'a Ctx<'a>, _: Value) -> BoxFuture<'a, Result<Success, ToolError>> {
        Box::pin(async { Ok(text("it fits")) })
    }
}

fn info(name: &'static str, facts: Facts, input_schema: Value) -> ToolInfo {
    ToolInfo {
        name: name.into(),
        title: name.into(),
        description: "What the conformance suite calls".to_owned(),
        facts,
        version: 1,
        aliases: Vec::new(),
        other_names: &[],
        called_elsewhere: &[],
        input_schema,
        output_schema: Packed::new(&json!({})),
        examples: Vec::new(),
    }
}

fn attached(mime_type: &str, content: AttachmentContent) -> Attachment {
    Attachment { mime_type: mime_type.to_owned(), uri: None, content }
}

fn png() -> Attachment {
    attached("image/png", AttachmentContent::Base64(PNG.to_owned()))
}

fn document(uri: &str, mime_type: &str, text: &str) -> Attachment {
    Attachment { uri: Some(uri.to_owned()), ..attached(mime_type, AttachmentContent::Text(text.to_owned())) }
}

fn text(text: &str) -> Success {
    with(text, Vec::new())
}

fn with(text: &str, attachments: Vec<Attachment>) -> Success {
    Success { data: json!({}), text: text.to_owned(), attachments, revision: None, workflow: None }
}

async fn ask(ctx: &Ctx<'_>, title: &str) -> Result<Asked, ToolError> {
    let question = Question {
        wanted: Wanted::Text,
        subject: format!("{}:{title}", ctx.call.tool),
        title: title.to_owned(),
        text: String::new(),
        choices: Vec::new(),
    };
    ctx.people.ask(&question).await
}

/// What a tool answers whose person has not said anything yet.
fn waits(approval_id: &str, expires_at_ms: i64) -> Success {
    let data = json!({ "status": "pending_answer", "approvalId": approval_id, "expiresAt": expires_at_ms });
    Success { data, ..text("the question waits for a person") }
}

/// Asks one question; whatever the person says to it ends the call.
fn asks<'a>(ctx: &'a Ctx<'a>, arguments: &'a Value) -> BoxFuture<'a, Result<Success, ToolError>> {
    Box::pin(async move {
        let title = arguments.get("message").and_then(Value::as_str).unwrap_or("What is your name?");
        Ok(match ask(ctx, title).await? {
            Asked::Pending(pending) => waits(&pending.approval_id, pending.expires_at_ms),
            Asked::Answered { answer, .. } => text(&format!("the person said: {answer:?}")),
        })
    })
}

fn progresses<'a>(ctx: &'a Ctx<'a>, _: &'a Value) -> BoxFuture<'a, Result<Success, ToolError>> {
    Box::pin(async move {
        for done in [0.0, 50.0, 100.0] {
            ctx.progress.report(Progress { done, total: Some(100.0), message: "under way".to_owned(), output: None });
            tokio::time::sleep(STEP).await;
        }
        Ok(text("it is done"))
    })
}

fn fails<'a>(_: &'a Ctx<'a>, _: &'a Value) -> BoxFuture<'a, Result<Success, ToolError>> {
    Box::pin(async { Err(ToolError::new(ErrorKind::Conflict, "this tool intentionally returns an error for testing")) })
}

/// A tool that answers with the same thing each time.
macro_rules! answers {
    ($success:expr) => {
        |_, _| Box::pin(async { Ok($success) })
    };
}

/// A tool whose answer is made of its arguments.
macro_rules! answers_with {
    ($success:expr) => {
        |_, arguments| Box::pin(async move { Ok($success(arguments)) })
    };
}

fn of_template(arguments: &Value) -> Success {
    text(
        &json!({ "id": arguments["id"], "templateTest": true, "data": format!("Data for ID: {}", arguments["id"]) })
            .to_string(),
    )
}

fn of_prompt(arguments: &Value) -> Success {
    text(&format!("Prompt with arguments: arg1={}, arg2={}", arguments["arg1"], arguments["arg2"]))
}

fn of_document(arguments: &Value) -> Success {
    let uri = arguments["resourceUri"].as_str().unwrap_or_default();
    let attachments = vec![document(uri, "text/plain", "Embedded resource content for testing.")];
    with("Please process the embedded resource above.", attachments)
}

const READS: Facts = Facts::READS;
const ASKS: Facts = Facts::ASKS;

#[rustfmt::skip]
const FIXTURES: &[Fixture] = &[
    Fixture { name: "test.simple_text", facts: READS, arguments: &[], run: answers!(text("This is a simple text response for testing.")) },
    Fixture { name: "test.image_content", facts: READS, arguments: &[], run: answers!(with("a red pixel", vec![png()])) },
    Fixture { name: "test.audio_content", facts: READS, arguments: &[], run: answers!(with("a sound", vec![attached("audio/wav", AttachmentContent::Base64(WAV.to_owned()))])) },
    Fixture { name: "test.embedded_resource", facts: READS, arguments: &[], run: answers!(with("a document", vec![document("test://embedded-resource", "text/plain", "This is an embedded resource content.")])) },
    Fixture { name: "test.multiple_content_types", facts: READS, arguments: &[], run: answers!(with("Multiple content types test:", vec![png(), document("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#)])) },
    Fixture { name: "test.error_handling", facts: READS, arguments: &[], run: fails },
    Fixture { name: "test.tool_with_progress", facts: READS, arguments: &[], run: progresses },
    Fixture { name: "test.logging_tool", facts: READS, arguments: &[], run: answers!(text("nothing is logged to the client")) },
    Fixture { name: "test.elicitation", facts: ASKS, arguments: &["message"], run: asks },
    Fixture { name: "test.streaming_elicitation", facts: ASKS, arguments: &[], run: asks },
    Fixture { name: "test.input_required_result_elicitation", facts: ASKS, arguments: &[], run: asks },
    Fixture { name: "test.input_required_result_request_state", facts: ASKS, arguments: &[], run: asks },
    Fixture { name: "test.input_required_result_tampered_state", facts: ASKS, arguments: &[], run: asks },
    Fixture { name: "test.input_required_result_prompt", facts: ASKS, arguments: &[], run: asks },
    Fixture { name: "test.static_text", facts: READS, arguments: &[], run: answers!(text("This is the content of the static text resource.")) },
    Fixture { name: "test.static_binary", facts: READS, arguments: &[], run: answers!(with("a red pixel", vec![png()])) },
    Fixture { name: "test.template_data", facts: READS, arguments: &["id"], run: answers_with!(of_template) },
    Fixture { name: "test.simple_prompt", facts: READS, arguments: &[], run: answers!(text("This is a simple prompt for testing.")) },
    Fixture { name: "test.prompt_with_arguments", facts: READS, arguments: &["arg1", "arg2"], run: answers_with!(of_prompt) },
    Fixture { name: "test.prompt_with_embedded_resource", facts: READS, arguments: &["resourceUri"], run: answers_with!(of_document) },
    Fixture { name: "test.prompt_with_image", facts: READS, arguments: &[], run: answers!(with("Please analyze the image above.", vec![png()])) },
];

pub(crate) fn all() -> Vec<Box<dyn AnyTool>> {
    let fixtures = FIXTURES.iter().map(|fixture| {
        let Fixture { name, facts, arguments, run } = *fixture;
        Box::new(Fixture { name, facts, arguments, run }) as Box<dyn AnyTool>
    });
    let others: [Box<dyn AnyTool>; 2] = [Box::new(AsksTwice { has_asked: AtomicBool::new(false) }), Box::new(Schema)];
    fixtures.chain(others).collect()
}

/// A resource that has no argument.
const fn resource(uri: &'static str, tool: &'static str, mime: &'static str) -> ResourceKind {
    let description = "What the conformance suite reads";
    ResourceKind { start: uri, end: "", tool, argument: None, values: &[], name: tool, title: tool, description, mime }
}

const fn argument(name: &'static str) -> ArgumentOfPrompt {
    ArgumentOfPrompt { name, description: "What the conformance suite says", is_required: true, to: Some(name) }
}

const fn prompt(name: &'static str, reads: &'static str, arguments: &'static [ArgumentOfPrompt]) -> PromptTemplate {
    let description = "What the conformance suite gets";
    PromptTemplate { name, title: name, description, arguments, needs: &[], says: &[], reads, given: &[] }
}

pub(crate) const OFFERS: Offers = Offers {
    resources: &[
        resource("test://static-text", "test.static_text", "text/plain"),
        resource("test://static-binary", "test.static_binary", "text/plain"),
        ResourceKind {
            argument: Some("id"),
            end: "/data",
            ..resource("test://template/", "test.template_data", "application/json")
        },
    ],
    prompts: &[
        prompt("test_simple_prompt", "test.simple_prompt", &[]),
        prompt("test_prompt_with_arguments", "test.prompt_with_arguments", &[argument("arg1"), argument("arg2")]),
        prompt("test_prompt_with_embedded_resource", "test.prompt_with_embedded_resource", &[argument("resourceUri")]),
        prompt("test_prompt_with_image", "test.prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", "test.input_required_result_prompt", &[]),
    ],
};
