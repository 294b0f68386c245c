//! One request to a provider in next to no time: what a step of the loop pays for its model's words to be written, sent,
//! read and put together.
//!
//! The server is another task of this process and does next to nothing, so nearly all that is measured is ours.
//! `cargo bench -p toolhost-agent` prints the table; the number is how many messages the conversation has.

#![expect(clippy::unwrap_used, reason = "a measurement")]

use std::sync::Arc;

use divan::Bencher;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{
    Arguments, Message, Model, Provider, ProviderConfig, ProviderKind, Request, Secret, SystemBlock, ToolCall,
    ToolSpec, Unfollowed,
};
use toolhost_contract::SystemClock;
use toolhost_testkit::{ModelFormat, ModelServer, Turn};

/// As many as a profile of ours shows at most.
const TOOLS: usize = 90;

fn main() {
    divan::main();
}

/// A schema with a dozen described fields.
fn tool(number: usize) -> ToolSpec {
    let fields = (0..12).map(|field| {
        let description = "What it is for, in a sentence that a model can do something with.";
        (format!("field_{field}"), json!({ "type": "string", "description": description, "maxLength": 200 }))
    });
    let properties = fields.collect::<serde_json::Map<_, _>>();
    ToolSpec {
        name: format!("family_verb_{number}"),
        description: "Does something to something. Use it when something is to be done to something.".to_owned(),
        schema: json!({ "type": "object", "properties": properties, "required": ["field_0"], "additionalProperties": false }),
    }
}

/// Calls and results of half a kilobyte, taking turns.
fn conversation(length: usize) -> Vec<Message> {
    let mut messages = vec![Message::User { content: "Do it.".to_owned() }];
    for step in 0..length / 2 {
        let id = format!("call_{step}");
        let arguments = Arguments::Json(json!({ "path": "src/main.rs", "limit": step }));
        let calls = vec![ToolCall { id: id.clone(), name: "family_verb_1".to_owned(), arguments }];
        messages.push(Message::Assistant { content: "Let me look.".to_owned(), calls, signatures: Vec::new() });
        let content = format!("{{\"ok\":true,\"data\":\"{}\"}}", "lorem ipsum ".repeat(40));
        messages.push(Message::Tool { tool_call_id: id, name: "family_verb_1".to_owned(), content, failed: false });
    }
    messages
}

#[divan::bench(consts = [1, 50, 300])]
fn anthropic<const LENGTH: usize>(bencher: Bencher<'_, '_>) {
    step::<LENGTH>(bencher, ModelFormat::Anthropic, ProviderKind::Anthropic);
}

#[divan::bench(consts = [1, 50, 300])]
fn openai<const LENGTH: usize>(bencher: Bencher<'_, '_>) {
    step::<LENGTH>(bencher, ModelFormat::OpenAi, ProviderKind::OpenAi);
}

fn step<const LENGTH: usize>(bencher: Bencher<'_, '_>, format: ModelFormat, kind: ProviderKind) {
    let runtime = Runtime::new().unwrap();
    let turn = Turn::text("Let me look.").and_call("family_verb_1", &json!({ "path": "src/main.rs" }));
    let server = runtime.block_on(ModelServer::quick(format, &[turn]));
    let mut config = ProviderConfig::new(kind, "mock-1");
    config.base_url = Some(server.url().to_owned());
    config.key = Secret::new(ModelServer::KEY);
    let model = Provider::new(config, Arc::new(SystemClock::default())).unwrap();
    let system = [SystemBlock { text: "You build. ".repeat(300), cache: true }];
    let tools = (0..TOOLS).map(tool).collect::<Vec<_>>();
    let messages = conversation(LENGTH);
    let cancel = CancellationToken::new();
    bencher.bench_local(|| {
        let request =
            Request { system: &system, messages: &messages, tools: &tools, output_tokens_max: None, json: false };
        runtime.block_on(model.reply(request, &Unfollowed, &cancel)).unwrap()
    });
}
