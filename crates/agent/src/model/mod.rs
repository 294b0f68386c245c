//! The one port to models: a conversation goes in, a reply comes out, its pieces are told as they come.

mod error;
mod message;
mod price;
mod provider;
mod record;
mod script;
mod secret;
mod spec;

pub use error::{ModelError, Phase};
pub(crate) use message::DEPTH_MAX;
pub use message::{Arguments, Message, Reply, Stop, SystemBlock, ToolCall, ToolSpec, Usage, is_too_deep};
pub use price::{Known, WINDOW_DEFAULT, cost, known, output_default};
pub use provider::{Provider, ProviderConfig, Retry, Timeouts};
pub use record::{Lines, Recorder, Replay};
pub use script::Script;
pub use secret::Secret;
pub use spec::{Keys, ModelSpec, ProviderKind, parse_model_spec};

use tokio_util::sync::CancellationToken;
use toolhost_contract::BoxFuture;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Stable parts first.
    pub system: &'a [SystemBlock],
    pub messages: &'a [Message],
    /// Empty: the model may call nothing.
    pub tools: &'a [ToolSpec],
    pub output_tokens_max: Option<u32>,
    /// Whether the last word is to be a JSON object: asked for where a provider can hold a model to that and lets it call
    /// tools meanwhile.
    pub json: bool,
}

/// A piece of a reply, as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    Text(&'a str),
    /// What the model thinks; not part of the reply's text.
    Thought(&'a str),
    /// A call has begun, or more of its arguments has come.
    Call {
        index: usize,
        name: &'a str,
        arguments: &'a str,
    },
    /// The provider was busy or broke off: what came so far is void, and it is asked again.
    Again {
        attempt: u32,
        wait_ms: u64,
        why: &'a str,
    },
}

/// Who follows a reply while it comes.
pub trait Follow: Send + Sync {
    fn delta(&self, delta: Delta<'_>);
}

/// Nobody follows.
#[derive(Debug, Default, Clone, Copy)]
pub struct Unfollowed;

impl Follow for Unfollowed {
    fn delta(&self, _: Delta<'_>) {}
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// As sessions and journals name it: `anthropic::claude-sonnet-5`, `script`.
    pub name: String,
    /// Tokens of a request and its reply together.
    pub window: u32,
    /// Tokens that one reply may have.
    pub output_tokens: u32,
    pub price: Option<Price>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub cached_input: f64,
    pub cache_write: f64,
    pub output: f64,
}

/// A model.
pub trait Model: Send + Sync {
    fn facts(&self) -> &ModelFacts;

    /// One reply to one conversation. Retries what a provider says may be retried; ends soon after `cancel`.
    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

impl<M: Model + ?Sized> Model for std::sync::Arc<M> {
    fn facts(&self) -> &ModelFacts {
        (**self).facts()
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        (**self).reply(request, follow, cancel)
    }
}
