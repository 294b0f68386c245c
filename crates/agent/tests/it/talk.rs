//! A provider's model that speaks to a pretended server, and what is heard of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{
    Arguments, Delta, Follow, Message, Model, ModelError, Provider, ProviderConfig, ProviderKind, Reply, Request,
    Retry, Secret, SystemBlock, Timeouts, ToolCall, ToolSpec,
};
use toolhost_contract::Clock;
use toolhost_testkit::{FakeClock, ModelFormat, ModelServer};

pub(crate) const BOTH: [ModelFormat; 2] = [ModelFormat::Anthropic, ModelFormat::OpenAi];

/// What a follower was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    Text(String),
    Thought(String),
    Call { index: usize, name: String, arguments: String },
    Again { attempt: u32, wait_ms: u64, why: String },
}

/// Keeps all of it; may stop the whole when it is told to wait, or when the first word comes.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) told: Mutex<Vec<Told>>,
    pub(crate) cancels_on_again: Option<CancellationToken>,
    pub(crate) cancels_on_text: Option<CancellationToken>,
}

impl Follow for Heard {
    fn delta(&self, delta: Delta<'_>) {
        let told = match delta {
            Delta::Text(text) => Told::Text(text.to_owned()),
            Delta::Thought(text) => Told::Thought(text.to_owned()),
            Delta::Call { index, name, arguments } => {
                Told::Call { index, name: name.to_owned(), arguments: arguments.to_owned() }
            }
            Delta::Again { attempt, wait_ms, why } => Told::Again { attempt, wait_ms, why: why.to_owned() },
        };
        let cancels = match &told {
            Told::Again { .. } => &self.cancels_on_again,
            Told::Text(_) => &self.cancels_on_text,
            _ => &None,
        };
        if let Some(cancel) = cancels {
            cancel.cancel();
        }
        self.told.lock().unwrap().push(told);
    }
}

impl Heard {
    pub(crate) fn all(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The text since the last time everything was void.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for told in self.all() {
            match told {
                Told::Text(piece) => text.push_str(&piece),
                Told::Again { .. } => text.clear(),
                _ => {}
            }
        }
        text
    }

    pub(crate) fn thought(&self) -> String {
        let pieces = self.all().into_iter().filter_map(|told| match told {
            Told::Thought(piece) => Some(piece),
            _ => None,
        });
        pieces.collect()
    }

    /// The arguments of the call at this place, put together.
    pub(crate) fn arguments(&self, place: usize) -> String {
        let pieces = self.all().into_iter().filter_map(|told| match told {
            Told::Call { index, arguments, .. } if index == place => Some(arguments),
            _ => None,
        });
        pieces.collect()
    }

    pub(crate) fn waits_ms(&self) -> Vec<u64> {
        let waits = self.all().into_iter().filter_map(|told| match told {
            Told::Again { wait_ms, .. } => Some(wait_ms),
            _ => None,
        });
        waits.collect()
    }
}

pub(crate) fn kind(format: ModelFormat) -> ProviderKind {
    if format == ModelFormat::Anthropic { ProviderKind::Anthropic } else { ProviderKind::OpenAi }
}

/// Hasty where a test waits, patient where it must not.
pub(crate) fn config(format: ModelFormat, url: &str) -> ProviderConfig {
    let mut config = ProviderConfig::new(kind(format), "mock-1");
    config.base_url = Some(url.to_owned());
    config.key = Secret::new(ModelServer::KEY);
    let patience = Duration::from_secs(60);
    config.timeouts = Timeouts { connect: patience, first_byte: patience, stall: patience, whole: patience };
    config.retry = Retry { attempts: 3, base: Duration::from_millis(2), max: Duration::from_millis(20) };
    config
}

pub(crate) fn provider(config: ProviderConfig) -> Provider {
    provider_at(config, Arc::new(FakeClock::default()))
}

pub(crate) fn provider_at(config: ProviderConfig, clock: Arc<dyn Clock>) -> Provider {
    Provider::new(config, clock).unwrap()
}

pub(crate) fn user(content: &str) -> Message {
    Message::User { content: content.to_owned() }
}

pub(crate) fn assistant(content: &str, calls: &[(&str, &str, Value)]) -> Message {
    let calls = calls.iter().map(|(id, name, arguments)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: Arguments::Json(arguments.clone()),
    });
    Message::Assistant { content: content.to_owned(), calls: calls.collect(), signatures: Vec::new() }
}

pub(crate) fn answer(id: &str, name: &str, content: &str, failed: bool) -> Message {
    Message::Tool { tool_call_id: id.to_owned(), name: name.to_owned(), content: content.to_owned(), failed }
}

/// What a reply becomes in the conversation.
pub(crate) fn said(reply: &Reply) -> Message {
    Message::Assistant { content: reply.text.clone(), calls: reply.calls.clone(), signatures: reply.signatures.clone() }
}

pub(crate) fn system() -> Vec<SystemBlock> {
    let block = |text: &str, cache| SystemBlock { text: text.to_owned(), cache };
    vec![block("You build.", true), block("Be brief.", true), block("It is Monday.", false)]
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, field: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: json!({
            "type": "object", "properties": { field: { "type": "string" } }, "required": [field],
            "additionalProperties": false
        }),
    };
    vec![tool("file_read", "path"), tool("file_search", "pattern")]
}

/// Asks with these messages, and the instructions and tools above.
pub(crate) async fn ask(model: &dyn Model, messages: &[Message], heard: &Heard) -> Result<Reply, ModelError> {
    ask_until(model, messages, heard, &CancellationToken::new()).await
}

pub(crate) async fn ask_until(
    model: &dyn Model,
    messages: &[Message],
    heard: &Heard,
    cancel: &CancellationToken,
) -> Result<Reply, ModelError> {
    let (system, tools) = (system(), tools());
    model
        .reply(
            Request { system: &system, messages, tools: &tools, output_tokens_max: Some(500), json: false },
            heard,
            cancel,
        )
        .await
}

/// Asks "Hi?".
pub(crate) async fn hi(model: &dyn Model, heard: &Heard) -> Result<Reply, ModelError> {
    ask(model, &[user("Hi?")], heard).await
}

/// A server that takes no connection and does not say so: its queue is full.
pub(crate) struct Full {
    pub(crate) address: std::net::SocketAddr,
    _listener: tokio::net::TcpListener,
    _waiting: tokio::task::JoinSet<()>,
}

pub(crate) async fn full_queue() -> Full {
    // A queue that has room takes a connection at once; one that took none so often in a row has none.
    const MISSES: usize = 5;
    const SOON: Duration = Duration::from_millis(50);
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let (mut waiting, mut missed) = (tokio::task::JoinSet::new(), 0);
    while missed < MISSES {
        let (taken, is_taken) = tokio::sync::oneshot::channel();
        waiting.spawn(async move {
            let stream = tokio::net::TcpStream::connect(address).await;
            let _ = taken.send(());
            std::future::pending::<()>().await;
            drop(stream);
        });
        missed = if tokio::time::timeout(SOON, is_taken).await.is_ok() { 0 } else { missed + 1 };
    }
    Full { address, _listener: listener, _waiting: waiting }
}
