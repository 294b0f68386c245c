//! Models behind an address: one request, retried where that may help, followed while its reply comes.
//!
//! `Anthropic` and every `OpenAI`-compatible server, Gemini and Ollama among them, are spoken to in their own words
//! ([`anthropic`], [`openai`]): what is promised of replies (torn arguments are kept, a cut stream is no reply, nothing grows
//! without limit) has to be held where the bytes are.

mod anthropic;
mod assembly;
mod config;
mod conversation;
mod failure;
mod lenient;
mod openai;
mod retry;
mod sse;
mod transport;

pub use config::{ProviderConfig, Retry, Timeouts};

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, Clock};

use super::{Delta, Follow, Model, ModelError, ModelFacts, Phase, ProviderKind, Reply, Request};
use assembly::Assembly;
use failure::Failure;
use transport::{Incoming, Transport};

/// A provider's model.
pub struct Provider {
    config: ProviderConfig,
    facts: ModelFacts,
    clock: Arc<dyn Clock>,
    wire: Wire,
}

/// How it is spoken to.
enum Wire {
    Anthropic(Transport),
    OpenAi(Transport),
}

/// What an event of a stream means for the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Goes,
    /// The reply is whole.
    Ends,
}

/// Events that are taken before others of the process have a turn.
const EVENTS_AT_ONCE: usize = 256;
/// How long the rest of a whole reply's body is waited for: read to its end, its connection serves the next request.
const REST: Duration = Duration::from_millis(100);

impl Provider {
    /// Opens nothing yet: the first request does.
    ///
    /// # Errors
    ///
    /// [`ModelError::Disabled`] for settings that make no model: no key where one is needed, an address that keys may
    /// not be sent to.
    pub fn new(config: ProviderConfig, clock: Arc<dyn Clock>) -> Result<Self, ModelError> {
        config.check()?;
        let facts = ModelFacts {
            name: format!("{}::{}", config.provider.name(), config.model),
            window: config.window,
            output_tokens: config.output_tokens,
            price: config.price,
        };
        let wire = match config.provider {
            ProviderKind::Anthropic => Wire::Anthropic(Transport::new(&config, anthropic::PATH, anthropic::headers)?),
            ProviderKind::OpenAi | ProviderKind::Gemini | ProviderKind::Ollama => {
                Wire::OpenAi(Transport::new(&config, openai::PATH, openai::headers)?)
            }
        };
        Ok(Self { config, facts, clock, wire })
    }

    /// What is sent, made once for all attempts, and by what.
    fn prepared(&self, request: &Request<'_>) -> Result<(&Transport, reqwest::Request), ModelError> {
        match &self.wire {
            Wire::Anthropic(transport) => Ok((transport, transport.request(&anthropic::body(&self.config, request))?)),
            Wire::OpenAi(transport) => Ok((transport, transport.request(&openai::body(&self.config, request))?)),
        }
    }

    /// Asks until there is a reply or no more reason to hope for one.
    async fn persist(&self, request: Request<'_>, follow: &dyn Follow) -> Result<Reply, ModelError> {
        let (transport, message) = self.prepared(&request)?;
        let mut attempt = 1;
        loop {
            let limit = self.config.timeouts.whole;
            let reply = tokio::time::timeout(limit, self.once(transport, &message, &request, follow)).await;
            // The next one would take as long, and is paid for.
            let late = |_| Err(Failure::for_good(ModelError::Timeout { phase: Phase::Whole, limit }));
            let failure = match reply.unwrap_or_else(late) {
                Ok(reply) => return Ok(reply),
                // What a server says may quote what it was sent: nothing of it goes further as it is.
                Err(failure) => failure.scrubbed(&self.config),
            };
            if !failure.again || attempt >= self.config.retry.attempts {
                return Err(failure.error);
            }
            let wait = self.config.retry.wait(attempt, failure.retry_after());
            attempt += 1;
            let why = failure.error.to_string();
            tracing::debug!(model = %self.facts.name, attempt, why, "the model is asked again");
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            follow.delta(Delta::Again { attempt, wait_ms, why: &why });
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(
        &self,
        transport: &Transport,
        message: &reqwest::Request,
        request: &Request<'_>,
        follow: &dyn Follow,
    ) -> Result<Reply, Failure> {
        let mut assembly = Assembly::new(follow, request.messages);
        let mut incoming = transport.send(message, self.clock.as_ref()).await?;
        self.read(&mut incoming, &mut assembly).await?;
        if matches!(self.wire, Wire::OpenAi(_)) {
            openai::keep_thoughts(&mut assembly);
        }
        Ok(assembly.finish())
    }

    async fn read(&self, incoming: &mut Incoming<'_>, assembly: &mut Assembly<'_>) -> Result<(), Failure> {
        let (mut events, mut told) = (sse::Decoder::default(), 0_usize);
        loop {
            let piece = incoming.piece().await?;
            let ended = piece.is_none();
            match piece {
                Some(piece) => events.push(&piece)?,
                None => events.end()?,
            }
            while let Some(data) = events.next() {
                told += 1;
                if told % EVENTS_AT_ONCE == 0 {
                    // What came in one piece may be long, and whoever would stop this has to be heard.
                    tokio::task::yield_now().await;
                }
                if self.event(&data, assembly)? == Progress::Ends {
                    // A connection that is not read to its end is closed, and the next request pays for another.
                    let _ = tokio::time::timeout(REST, incoming.drain()).await;
                    return Ok(());
                }
            }
            if ended {
                return self.at_end(assembly);
            }
        }
    }

    fn event(&self, data: &str, assembly: &mut Assembly<'_>) -> Result<Progress, Failure> {
        match &self.wire {
            Wire::Anthropic(_) => anthropic::event(data, assembly),
            Wire::OpenAi(_) => openai::event(data, assembly),
        }
    }

    /// The stream is over, and nothing said that the reply is.
    fn at_end(&self, assembly: &Assembly<'_>) -> Result<(), Failure> {
        // Some compatible servers close where `OpenAI` itself says `[DONE]`. A reason to stop was given, and the body
        // ended as bodies do, so nothing is missing but the word.
        if matches!(self.wire, Wire::OpenAi(_)) && assembly.has_stop() {
            return Ok(());
        }
        Err(Failure::broken("it ends in the middle"))
    }
}

impl Model for Provider {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            // Whatever is being waited for ends here: dropped, a request closes its connection.
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(ModelError::Cancelled),
                reply = self.persist(request, follow) => reply,
            }
        })
    }
}
