//! From what an operator says to a model: files, keys and settings belong to the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use toolhost_agent::Model;
use toolhost_agent::model::{
    Lines, ModelSpec, Price, Provider, ProviderConfig, Recorder, Replay, Script, Secret, output_default,
    parse_model_spec,
};
use toolhost_contract::SystemClock;

use crate::Usage;
use crate::keys::Vault;
use crate::settings::Settings;

/// Largest script or cassette, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What the operator knows of a model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelTable {
    /// Tokens that it reads.
    window: Option<u32>,
    /// Tokens that one reply may have, thoughts included.
    output_tokens: Option<u32>,
    /// US dollars for a million tokens.
    price: Option<PriceTable>,
    /// The name of its key; a server at an address of its own gets none otherwise.
    key: Option<String>,
    /// How often a request is tried.
    attempts: Option<u32>,
    connect_seconds: Option<u64>,
    first_byte_seconds: Option<u64>,
    stall_seconds: Option<u64>,
    reply_seconds: Option<u64>,
    /// Further headers, each with the name of the key that is its value: a gateway's often are keys.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Further fields of a request's body, as the provider's documentation has them.
    #[serde(default)]
    extra: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: f64,
    cached_input: f64,
    cache_write: f64,
    output: f64,
}

/// What the operator says of models.
#[derive(Debug, Clone)]
pub(crate) struct Models {
    /// The model where none is named.
    pub(crate) default: Option<String>,
    pub(crate) tables: BTreeMap<String, ModelTable>,
    /// Names of the tokens of granted remotes.
    pub(crate) remotes: Vec<String>,
    pub(crate) vault: Vault,
}

impl Models {
    /// Names of keys that the tables of models and of remotes speak of.
    pub(crate) fn key_names(&self) -> BTreeSet<String> {
        let of_models = self.tables.values().flat_map(|table| table.key.iter().chain(table.headers.values()));
        of_models.chain(&self.remotes).cloned().collect()
    }
}

/// A model, and what to call it so that any process finds it again.
pub(crate) struct Opened {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) spec: String,
}

/// The model that was chosen, ready to be asked.
pub(crate) fn open(settings: &Settings, chosen: Option<&str>) -> anyhow::Result<Opened> {
    let models = settings.models()?;
    let Some(text) = chosen.map(str::to_owned).or_else(|| models.default.clone()) else {
        return Err(Usage::error(
            "no model is chosen: say --model, or set TOOLHOST_MODEL or `model` in the configuration (such as \
             anthropic:claude-sonnet-4-5, or script:FILE, which needs no network)",
        ));
    };
    let spec = parse_model_spec(&text).map_err(|error| Usage::error(error.to_string()))?;
    let (model, spec) = of_spec(spec, &text, &models)?;
    Ok(Opened { model, spec })
}

fn of_spec(spec: ModelSpec, text: &str, models: &Models) -> anyhow::Result<(Arc<dyn Model>, String)> {
    Ok(match spec {
        ModelSpec::Script { file } => {
            let (file, content) = read(&file)?;
            (Arc::new(Script::parse("script", &content).with_context(|| file.clone())?), format!("script:{file}"))
        }
        ModelSpec::Replay { file } => {
            let (file, content) = read(&file)?;
            (Arc::new(Replay::parse(&content).with_context(|| file.clone())?), format!("replay:{file}"))
        }
        ModelSpec::Record { file, model } => {
            // A session that is resumed goes on with the model itself: its cassette has its beginning already.
            let prefix = format!("record:{file}:");
            let inner = text.strip_prefix(&prefix).unwrap_or(text).to_owned();
            let (model, inner) = of_spec(*model, &inner, models)?;
            let lines = Cassette::new(&file)?;
            (Arc::new(Recorder::new(model, Box::new(lines))), inner)
        }
        ModelSpec::Provider { provider, model, base_url } => {
            let table = models.tables.get(text).cloned().unwrap_or_default();
            let (url, key) = (base_url.as_deref(), table.key.as_deref());
            let mut config = ProviderConfig::found(provider, &model, url, key, &models.vault)?;
            settle(&mut config, &table).with_context(|| format!("[models.\"{text}\"]"))?;
            config.headers = headers(&table, &models.vault)?;
            (Arc::new(Provider::new(config, Arc::new(SystemClock::default()))?), text.to_owned())
        }
    })
}

fn headers(table: &ModelTable, vault: &Vault) -> anyhow::Result<Vec<(String, Secret)>> {
    let value = |(header, name): (&String, &String)| {
        let found = vault.find(name)?;
        let (value, _) =
            found.with_context(|| format!("the header {header} needs {name}: `toolhost key set {name}`"))?;
        Ok((header.clone(), value))
    };
    table.headers.iter().map(value).collect()
}

fn settle(config: &mut ProviderConfig, table: &ModelTable) -> anyhow::Result<()> {
    config.window = table.window.unwrap_or(config.window);
    config.output_tokens = table.output_tokens.unwrap_or_else(|| output_default(config.window));
    if let Some(PriceTable { input, cached_input, cache_write, output }) = table.price {
        if ![input, cached_input, cache_write, output].iter().all(|dollars| dollars.is_finite() && *dollars >= 0.0) {
            bail!("a price is a number of dollars from 0");
        }
        config.price = Some(Price { input, cached_input, cache_write, output });
    }
    config.extra.clone_from(&table.extra);
    config.retry.attempts = table.attempts.unwrap_or(config.retry.attempts);
    let waits = [
        (table.connect_seconds, &mut config.timeouts.connect),
        (table.first_byte_seconds, &mut config.timeouts.first_byte),
        (table.stall_seconds, &mut config.timeouts.stall),
        (table.reply_seconds, &mut config.timeouts.whole),
    ];
    for (said, wait) in waits {
        *wait = said.map_or(*wait, Duration::from_secs);
    }
    Ok(())
}

/// The file's absolute path, and what is in it.
fn read(file: &str) -> anyhow::Result<(String, String)> {
    let path = Path::new(file).canonicalize().with_context(|| format!("{file} cannot be opened"))?;
    let about = std::fs::metadata(&path)?;
    if !about.is_file() {
        anyhow::bail!("{file} is not a file");
    }
    let size = about.len();
    if size > FILE_BYTES_MAX {
        anyhow::bail!("{file} has {size} bytes; {FILE_BYTES_MAX} is the most");
    }
    let content = std::fs::read_to_string(&path).with_context(|| format!("{file} cannot be read"))?;
    Ok((path.to_string_lossy().into_owned(), content))
}

/// A cassette that is being written. Only its owner may read what was said.
struct Cassette(Mutex<std::fs::File>);

impl Cassette {
    fn new(file: &str) -> anyhow::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        Ok(Self(Mutex::new(options.with_context(|| format!("the cassette {file} cannot be made"))?)))
    }
}

impl Lines for Cassette {
    fn line(&self, line: &str) -> std::io::Result<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }
}
