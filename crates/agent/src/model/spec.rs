//! Which model is meant: `anthropic:claude-sonnet-4-5`, `openai:qwen3@http://127.0.0.1:8080/v1`, `script:turns.json`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ModelError;
use super::secret::Secret;

/// Who serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    Anthropic,
    /// `OpenAI`, and every server that speaks its chat completions.
    OpenAi,
    Gemini,
    Ollama,
}

/// A model, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    Provider {
        provider: ProviderKind,
        model: String,
        /// Where, if not where the provider is at home.
        base_url: Option<String>,
    },
    /// A file of turns to play.
    Script { file: String },
    /// A cassette to play.
    Replay { file: String },
    /// A model whose replies go to a cassette too.
    Record { file: String, model: Box<ModelSpec> },
}

/// Where keys come from: the environment, a file, a keyring. They belong to the program, so the lookup is handed in.
pub trait Keys {
    /// The key of this name (`ANTHROPIC_API_KEY`), if there is one.
    ///
    /// # Errors
    ///
    /// [`ModelError::Disabled`] naming the place that should have one and does not give it.
    fn key(&self, name: &str) -> Result<Option<Secret>, ModelError>;
}

impl<F: Fn(&str) -> Option<Secret>> Keys for F {
    fn key(&self, name: &str) -> Result<Option<Secret>, ModelError> {
        Ok(self(name))
    }
}

const PROVIDERS: [ProviderKind; 4] =
    [ProviderKind::Anthropic, ProviderKind::OpenAi, ProviderKind::Gemini, ProviderKind::Ollama];

const SCRIPT: &str = "script";
const REPLAY: &str = "replay";
const RECORD: &str = "record";

impl ProviderKind {
    /// As a specification and a session name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where it is at home. Without a slash at the end. Gemini and Ollama: where they speak `OpenAI`'s format.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta/openai",
            Self::Ollama => "http://127.0.0.1:11434/v1",
        }
    }

    /// What its key is called, as its own tools call it.
    #[must_use]
    pub fn key_name(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider { provider, model, base_url: None } => write!(f, "{}:{model}", provider.name()),
            Self::Provider { provider, model, base_url: Some(url) } => write!(f, "{}:{model}@{url}", provider.name()),
            Self::Script { file } => write!(f, "{SCRIPT}:{file}"),
            Self::Replay { file } => write!(f, "{REPLAY}:{file}"),
            Self::Record { file, model } => write!(f, "{RECORD}:{file}:{model}"),
        }
    }
}

/// Reads a specification: `PROVIDER:MODEL`, `PROVIDER:MODEL@URL`, `script:FILE`, `replay:FILE` or `record:FILE:MODEL`.
///
/// # Errors
///
/// [`ModelError::Disabled`] with what is known and what was probably meant.
pub fn parse_model_spec(text: &str) -> Result<ModelSpec, ModelError> {
    let text = text.trim();
    let Some((head, rest)) = text.split_once(':') else {
        return Err(unknown(text, text));
    };
    if let Some(provider) = PROVIDERS.into_iter().find(|provider| provider.name() == head) {
        return parse_provider(provider, rest, text);
    }
    match head {
        SCRIPT | REPLAY | RECORD if rest.is_empty() => Err(bad(format!("`{text}` names no file"))),
        SCRIPT => Ok(ModelSpec::Script { file: rest.to_owned() }),
        REPLAY => Ok(ModelSpec::Replay { file: rest.to_owned() }),
        RECORD => parse_record(rest, text),
        _ => Err(unknown(head, text)),
    }
}

fn parse_provider(provider: ProviderKind, rest: &str, text: &str) -> Result<ModelSpec, ModelError> {
    // A model's name may hold `@` and `:`; an address begins with its scheme.
    let at = rest.find("@http://").or_else(|| rest.find("@https://"));
    let (model, base_url) = match at {
        Some(at) => (&rest[..at], Some(rest[at + 1..].trim_end_matches('/').to_owned())),
        None => (rest, None),
    };
    if model.trim().is_empty() {
        return Err(bad(format!("`{text}` names no model: write `{}:MODEL`", provider.name())));
    }
    if model.contains("://") {
        return Err(bad(format!("`{text}`: an address of a model begins with http:// or https://")));
    }
    if let Some(url) = &base_url {
        check_url(url)?;
    }
    Ok(ModelSpec::Provider { provider, model: model.trim().to_owned(), base_url })
}

/// The file ends where what follows is a specification itself: a path may hold colons too.
fn parse_record(rest: &str, text: &str) -> Result<ModelSpec, ModelError> {
    let mut last = None;
    for (at, _) in rest.match_indices(':') {
        let (file, spec) = (&rest[..at], &rest[at + 1..]);
        match parse_model_spec(spec) {
            Ok(ModelSpec::Record { .. } | ModelSpec::Replay { .. }) => {
                return Err(bad(format!("`{text}`: what is recorded is a provider's model or a script")));
            }
            Ok(model) if !file.is_empty() => {
                return Ok(ModelSpec::Record { file: file.to_owned(), model: Box::new(model) });
            }
            Ok(_) => return Err(bad(format!("`{text}` names no file"))),
            Err(error) => last = last.or(Some(error)),
        }
    }
    let why = last.map(|error| format!(" ({error})")).unwrap_or_default();
    Err(bad(format!("`{text}` is not `record:FILE:MODEL`{why}")))
}

/// An address that keys may be sent to.
pub(super) fn check_url(url: &str) -> Result<(), ModelError> {
    // What stands before an `@` may be a password.
    let shown = url.rsplit('@').next().unwrap_or_default();
    let parsed = reqwest::Url::parse(url).map_err(|error| bad(format!("`{shown}` is no address: {error}")))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        // It would stand in logs and journals.
        return Err(bad("an address of a model holds no user and no password: keys are given by name".to_owned()));
    }
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(bad(format!("`{shown}` is no http or https address")));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(bad(format!(
            "`{shown}` ends in a query: an address of a model is a folder, like `https://host/v1`"
        )));
    }
    Ok(())
}

/// Whether the address is this machine's own: no key is asked for, and none travels.
pub(super) fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => false,
    }
}

fn bad(message: String) -> ModelError {
    ModelError::Disabled(message)
}

fn unknown(head: &str, text: &str) -> ModelError {
    // An address may hold a password.
    let text = if text.contains("://") { head } else { text };
    let known = PROVIDERS.map(ProviderKind::name).into_iter().chain([SCRIPT, REPLAY, RECORD]);
    let nearest = known.clone().map(|name| (distance(head, name), name)).min().filter(|(far, _)| *far <= NEAR);
    let near = nearest.map(|(_, name)| format!(", perhaps `{name}:…`")).unwrap_or_default();
    let guess = guess(head).filter(|_| near.is_empty()).map(|guess| format!(", perhaps `{guess}:{text}`"));
    let known = known.map(|name| format!("`{name}:`")).collect::<Vec<_>>().join(", ");
    bad(format!("`{text}` names no model{near}{}; it begins with one of {known}", guess.unwrap_or_default()))
}

/// More changes than this, and two words are two words.
const NEAR: usize = 3;

/// A model's name without its provider is the usual slip.
fn guess(model: &str) -> Option<&'static str> {
    const FAMILIES: [(&str, ProviderKind); 5] = [
        ("claude", ProviderKind::Anthropic),
        ("gpt", ProviderKind::OpenAi),
        ("o3", ProviderKind::OpenAi),
        ("o4", ProviderKind::OpenAi),
        ("gemini", ProviderKind::Gemini),
    ];
    FAMILIES.into_iter().find(|(family, _)| model.starts_with(family)).map(|(_, provider)| provider.name())
}

/// How many letters differ (Levenshtein). Both are short words.
fn distance(a: &str, b: &str) -> usize {
    let b = b.chars().collect::<Vec<_>>();
    let mut row = (0..=b.len()).collect::<Vec<_>>();
    // Whoever hands in a whole sentence has not misspelled a provider.
    for (i, from) in a.chars().take(LETTERS_MAX).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

const LETTERS_MAX: usize = 64;
