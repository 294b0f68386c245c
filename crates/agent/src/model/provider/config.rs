//! What makes a provider's model, and what it is allowed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::price::{WINDOW_DEFAULT, known, output_default};
use crate::model::spec::{check_url, is_loopback};
use crate::model::{Keys, ModelError, Price, ProviderKind, Secret};

/// Bytes of a reply as it comes, events and all. The longest replies of 2026 are a tenth of it.
const REPLY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Headers that say how a request is carried.
const FRAMING: [&str; 7] = ["connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"];

/// A provider's model.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    pub provider: ProviderKind,
    /// As the provider names it.
    pub model: String,
    /// Where, if not where the provider is at home.
    pub base_url: Option<String>,
    pub key: Secret,
    pub timeouts: Timeouts,
    pub retry: Retry,
    /// Further headers. Their values are kept as keys are: a gateway's often are keys.
    pub headers: Vec<(String, Secret)>,
    /// Further fields of the request's body, as the provider's documentation has them: `thinking`, `temperature`.
    /// What we write ourselves goes before them.
    pub extra: Map<String, Value>,
    /// Tokens of a request and its reply together.
    pub window: u32,
    pub price: Option<Price>,
    /// Tokens that one reply may have.
    pub output_tokens: u32,
    /// Bytes of a reply, as they come.
    pub reply_bytes_max: usize,
}

/// How long each thing is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// From the request to the first byte of its reply.
    pub first_byte: Duration,
    /// From one piece of the reply to the next.
    pub stall: Duration,
    /// From the request to the end of its reply: a server may send signs of life for ever.
    pub whole: Duration,
}

/// When a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// All of them, the first one too.
    pub attempts: u32,
    /// The first wait; each further one is twice as long.
    pub base: Duration,
    /// No wait is longer, whatever a provider asks for.
    pub max: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // A model that thinks first, behind a server that says nothing meanwhile.
            first_byte: Duration::from_mins(2),
            stall: Duration::from_mins(1),
            whole: Duration::from_mins(30),
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, base: Duration::from_millis(500), max: Duration::from_secs(30) }
    }
}

impl ProviderConfig {
    /// With the defaults, and no key.
    #[must_use]
    pub fn new(provider: ProviderKind, model: &str) -> Self {
        let known = known(provider, model);
        let window = known.map_or(WINDOW_DEFAULT, |known| known.window);
        Self {
            provider,
            model: model.to_owned(),
            base_url: None,
            key: Secret::none(),
            timeouts: Timeouts::default(),
            retry: Retry::default(),
            headers: Vec::new(),
            extra: Map::new(),
            window,
            price: known.map(|known| known.price),
            output_tokens: output_default(window),
            reply_bytes_max: REPLY_BYTES_MAX,
        }
    }

    /// As a specification has it, with the key of this name, or else the one that its provider is known to want. A server
    /// at any other address gets none unless one is named:
    /// who listens there is not the provider, and who wrote the address may be somebody else than whose key it is. Nor is
    /// a price known of it.
    ///
    /// # Errors
    ///
    /// [`ModelError::Disabled`] naming the key that is missing, or the place that should have it and does not.
    pub fn found(
        provider: ProviderKind,
        model: &str,
        base_url: Option<&str>,
        key_name: Option<&str>,
        keys: &dyn Keys,
    ) -> Result<Self, ModelError> {
        let mut config = Self::new(provider, model);
        config.base_url = base_url.map(ToOwned::to_owned);
        if base_url.is_some() {
            config.price = None;
        }
        if let Some(name) = key_name.or(provider.key_name().filter(|_| base_url.is_none())) {
            let missing = || {
                let model = format!("{}:{model}", provider.name());
                ModelError::Disabled(format!("{model} needs a key: set {name}, or say `toolhost key set {name}`"))
            };
            config.key = keys.key(name)?.ok_or_else(missing)?;
        }
        config.check()?;
        Ok(config)
    }

    /// `text` without any key: a server, or a gateway before it, may quote what it was sent.
    pub(super) fn scrub(&self, text: &str) -> String {
        self.headers.iter().fold(self.key.scrub(text), |text, (_, value)| value.scrub(&text))
    }

    /// Where requests go.
    pub(super) fn address(&self) -> &str {
        self.base_url.as_deref().unwrap_or(self.provider.base_url()).trim_end_matches('/')
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        if self.model.trim().is_empty() {
            return Err(ModelError::Disabled("the model has no name".to_owned()));
        }
        if self.output_tokens == 0 {
            return Err(ModelError::Disabled("a reply of 0 tokens is none".to_owned()));
        }
        if let Some((name, _)) = self.headers.iter().find(|(name, _)| FRAMING.contains(&name.to_lowercase().as_str())) {
            return Err(ModelError::Disabled(format!("the header {name} belongs to the connection")));
        }
        if self.output_tokens >= self.window {
            let (output, window) = (self.output_tokens, self.window);
            let text = format!("a reply of {output} tokens leaves nothing of a window of {window} for a request");
            return Err(ModelError::Disabled(text));
        }
        check_url(self.address())?;
        let in_clear = self.address().starts_with("http://") && !is_loopback(self.address());
        if in_clear && (!self.key.is_empty() || !self.headers.is_empty()) {
            return Err(ModelError::Disabled(format!(
                "{} would carry a key in clear: give an https address, or no key",
                self.address()
            )));
        }
        let needs_key = self.base_url.is_none() && self.provider.key_name().is_some();
        if needs_key && self.key.is_empty() {
            let name = self.provider.key_name().unwrap_or_default();
            return Err(ModelError::Disabled(format!("{}:{} needs a key: {name}", self.provider.name(), self.model)));
        }
        if self.retry.attempts == 0 {
            return Err(ModelError::Disabled("a model that may never be asked".to_owned()));
        }
        Ok(())
    }
}

/// The settings' own fields, those left out that we write.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Extra<'a>(BTreeMap<&'a str, &'a Value>);

pub(super) fn extra<'a>(fields: &'a Map<String, Value>, ours: &[&str]) -> Extra<'a> {
    let others = fields.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
    Extra(others.map(|(name, value)| (name.as_str(), value)).collect())
}
