//! From the specification of a model to the model: its settings, its key and, for scripts and cassettes, its file.
//!
//! Nothing is looked up here: keys are handed in, as values or through the port [`Keys`], files through [`ModelFiles`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolhost_agent::model::{
    Keys, Lines, ModelSpec, Price, Provider, ProviderConfig, Recorder, Replay, Script, Secret, output_default,
    parse_model_spec,
};
use toolhost_agent::{Model, ModelError};
use toolhost_contract::{Clock, SystemClock};

use crate::error::{Error, Result};

/// What the operator knows of a model. Fields that are left out have the provider's or the house's defaults.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Tokens that it reads.
    pub window: Option<u32>,
    /// Tokens that one reply may have, thoughts included.
    pub output_tokens: Option<u32>,
    /// US dollars for a million tokens.
    pub price: Option<ModelPrice>,
    /// The name of its key; a server at an address of its own gets none otherwise.
    pub key: Option<String>,
    /// How often a request is tried.
    pub attempts: Option<u32>,
    /// How long a connection may take.
    pub connect_seconds: Option<u64>,
    /// How long the first byte of a reply may take.
    pub first_byte_seconds: Option<u64>,
    /// How long a reply may stand still.
    pub stall_seconds: Option<u64>,
    /// How long a whole reply may take.
    pub reply_seconds: Option<u64>,
    /// Further headers, each with the name of the key that is its value: a gateway's often are keys.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Further fields of a request's body, as the provider's documentation has them.
    #[serde(default)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Of tokens that are read.
    pub input: f64,
    /// Of tokens that are read from the provider's cache.
    pub cached_input: f64,
    /// Of tokens that are written to the provider's cache.
    pub cache_write: f64,
    /// Of tokens of replies.
    pub output: f64,
}

/// Where `script:FILE`, `replay:FILE` and `record:FILE:MODEL` have their files.
pub trait ModelFiles: Send + Sync {
    /// The name under which any process finds the file again, and what is in it.
    ///
    /// # Errors
    /// [`ModelError::Disabled`] with the reason.
    fn read(&self, file: &str) -> std::result::Result<(String, String), ModelError>;

    /// A new file for the lines of a cassette.
    ///
    /// # Errors
    /// As [`ModelFiles::read`], also if there is a file of this name.
    fn create(&self, file: &str) -> std::result::Result<Box<dyn Lines>, ModelError>;
}

/// A model, and what to call it so that any process finds it again.
#[derive(Clone)]
pub struct OpenModel {
    pub model: Arc<dyn Model>,
    pub spec: String,
}

/// The models that a program may use.
#[derive(Clone)]
#[must_use]
pub struct Models {
    configs: BTreeMap<String, ModelConfig>,
    secrets: BTreeMap<String, Secret>,
    keys: Option<Arc<dyn Keys + Send + Sync>>,
    scripts: BTreeMap<String, String>,
    files: Option<Arc<dyn ModelFiles>>,
    clock: Arc<dyn Clock>,
}

impl Default for Models {
    fn default() -> Self {
        Self {
            configs: BTreeMap::new(),
            secrets: BTreeMap::new(),
            keys: None,
            scripts: BTreeMap::new(),
            files: None,
            clock: Arc::new(SystemClock::default()),
        }
    }
}

impl Models {
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a key: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, or one that a [`ModelConfig`] names.
    pub fn key(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.secrets.insert(name.into(), value);
        self
    }

    /// Where keys are looked for that [`Models::key`] did not name: a vault, the environment.
    pub fn keys(mut self, keys: Arc<dyn Keys + Send + Sync>) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Settings of the model of a specification, such as `openai:qwen3@http://127.0.0.1:8080/v1`.
    pub fn config(mut self, spec: impl Into<String>, config: ModelConfig) -> Self {
        self.configs.insert(spec.into(), config);
        self
    }

    /// A script that `script:NAME` plays: a model without a network, for tests and demonstrations.
    pub fn script(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.scripts.insert(name.into(), text.into());
        self
    }

    /// Where scripts and cassettes are that [`Models::script`] did not name.
    pub fn files(mut self, files: Arc<dyn ModelFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Names of keys that the settings of models speak of.
    #[must_use]
    pub fn key_names(&self) -> BTreeSet<String> {
        let named = self.configs.values().flat_map(|config| config.key.iter().chain(config.headers.values()));
        named.cloned().collect()
    }

    /// The model of a specification: `anthropic:NAME`, `openai:NAME`, `openai:NAME@URL`, `gemini:NAME`, `ollama:NAME`,
    /// `script:FILE`, `replay:FILE` or `record:FILE:MODEL`.
    ///
    /// # Errors
    /// If it names no model, its key is missing, or its settings or its file make no sense.
    pub fn open(&self, spec: &str) -> Result<OpenModel> {
        let parsed = parse_model_spec(spec).map_err(Error::ModelSpec)?;
        let (model, spec) = self.of_spec(parsed, spec)?;
        Ok(OpenModel { model, spec })
    }

    fn of_spec(&self, spec: ModelSpec, text: &str) -> Result<(Arc<dyn Model>, String)> {
        let in_file = |file: &str| {
            let file = file.to_owned();
            move |source| Error::ModelFile { file, source }
        };
        Ok(match spec {
            ModelSpec::Script { file } => {
                let (file, content) = self.read(&file)?;
                let script = Script::parse("script", &content).map_err(in_file(&file))?;
                (Arc::new(script), format!("script:{file}"))
            }
            ModelSpec::Replay { file } => {
                let (file, content) = self.read(&file)?;
                (Arc::new(Replay::parse(&content).map_err(in_file(&file))?), format!("replay:{file}"))
            }
            ModelSpec::Record { file, model } => {
                // A session that is resumed goes on with the model itself: its cassette has its beginning already.
                let prefix = format!("record:{file}:");
                let inner = text.strip_prefix(&prefix).unwrap_or(text).to_owned();
                // A specification inside another one is no recording: the parser refuses that.
                let (model, inner) = self.of_spec(*model, &inner)?;
                let files = self.files.as_deref().ok_or_else(|| no_file(&file))?;
                (Arc::new(Recorder::new(model, files.create(&file)?)), inner)
            }
            ModelSpec::Provider { provider, model, base_url } => {
                let given = self.configs.get(text).cloned().unwrap_or_default();
                let (url, key) = (base_url.as_deref(), given.key.as_deref());
                let mut config = ProviderConfig::found(provider, &model, url, key, self)?;
                settle(&mut config, &given).map_err(|problem| Error::ModelConfig { spec: text.to_owned(), problem })?;
                config.headers = self.headers(&given)?;
                (Arc::new(Provider::new(config, Arc::clone(&self.clock))?), text.to_owned())
            }
        })
    }

    fn read(&self, file: &str) -> Result<(String, String)> {
        if let Some(text) = self.scripts.get(file) {
            return Ok((file.to_owned(), text.clone()));
        }
        Ok(self.files.as_deref().ok_or_else(|| no_file(file))?.read(file)?)
    }

    fn headers(&self, config: &ModelConfig) -> Result<Vec<(String, Secret)>> {
        let value = |(header, name): (&String, &String)| {
            let found = Keys::key(self, name)?;
            let value = found.ok_or_else(|| Error::HeaderKey { header: header.clone(), name: name.clone() })?;
            Ok((header.clone(), value))
        };
        config.headers.iter().map(value).collect()
    }
}

impl Keys for Models {
    fn key(&self, name: &str) -> std::result::Result<Option<Secret>, ModelError> {
        match (self.secrets.get(name), &self.keys) {
            (Some(secret), _) => Ok(Some(secret.clone())),
            (None, Some(keys)) => keys.key(name),
            (None, None) => Ok(None),
        }
    }
}

fn no_file(file: &str) -> ModelError {
    ModelError::Disabled(format!("there is no `{file}`: Models::script adds a script, Models::files opens files"))
}

fn settle(config: &mut ProviderConfig, given: &ModelConfig) -> std::result::Result<(), &'static str> {
    config.window = given.window.unwrap_or(config.window);
    config.output_tokens = given.output_tokens.unwrap_or_else(|| output_default(config.window));
    if let Some(ModelPrice { input, cached_input, cache_write, output }) = given.price {
        if ![input, cached_input, cache_write, output].iter().all(|dollars| dollars.is_finite() && *dollars >= 0.0) {
            return Err("a price is a number of dollars from 0");
        }
        config.price = Some(Price { input, cached_input, cache_write, output });
    }
    config.extra.clone_from(&given.extra);
    config.retry.attempts = given.attempts.unwrap_or(config.retry.attempts);
    let waits = [
        (given.connect_seconds, &mut config.timeouts.connect),
        (given.first_byte_seconds, &mut config.timeouts.first_byte),
        (given.stall_seconds, &mut config.timeouts.stall),
        (given.reply_seconds, &mut config.timeouts.whole),
    ];
    for (said, wait) in waits {
        *wait = said.map_or(*wait, Duration::from_secs);
    }
    Ok(())
}
