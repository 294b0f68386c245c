//! From what an operator says to a model: files, keys and settings belong to the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use toolhost::{Error, ModelConfig, ModelFiles, Models, OpenModel};
use toolhost_agent::ModelError;
use toolhost_agent::model::Lines;

use crate::Usage;
use crate::keys::Vault;

/// Largest script or cassette, bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What the operator says of models.
#[derive(Debug, Clone)]
pub(crate) struct ModelSettings {
    /// The model where none is named.
    pub(crate) default: Option<String>,
    pub(crate) configs: BTreeMap<String, ModelConfig>,
    /// Names of further keys: the tokens of granted remotes, and what signs the webhook.
    pub(crate) others: Vec<String>,
    pub(crate) vault: Vault,
}

impl ModelSettings {
    /// Names of keys that the configuration speaks of.
    pub(crate) fn key_names(&self) -> BTreeSet<String> {
        let mut names = self.models().key_names();
        names.extend(self.others.iter().cloned());
        names
    }

    /// The models, with keys from the vault and files of this machine.
    fn models(&self) -> Models {
        let models = Models::new().keys(Arc::new(self.vault.clone())).files(Arc::new(Files));
        self.configs.iter().fold(models, |models, (spec, config)| models.config(spec, config.clone()))
    }
}

/// The model that was chosen, ready to be asked.
pub(crate) fn open(said: &ModelSettings, chosen: Option<&str>) -> anyhow::Result<OpenModel> {
    let Some(text) = chosen.map(str::to_owned).or_else(|| said.default.clone()) else {
        return Err(Usage::error(
            "no model is chosen: say --model, or set TOOLHOST_MODEL or `model` in the configuration (such as \
             anthropic:claude-sonnet-4-5, or script:FILE, which needs no network)",
        ));
    };
    said.models().open(&text).map_err(|error| match error {
        Error::HeaderKey { header, name } => {
            anyhow::anyhow!("the header {header} needs {name}: `toolhost key set {name}`")
        }
        error => error.into(),
    })
}

/// Scripts and cassettes of this machine.
struct Files;

impl ModelFiles for Files {
    fn read(&self, file: &str) -> Result<(String, String), ModelError> {
        read(file).map_err(told)
    }

    fn create(&self, file: &str) -> Result<Box<dyn Lines>, ModelError> {
        Ok(Box::new(Cassette::new(file).map_err(told)?))
    }
}

fn told(error: anyhow::Error) -> ModelError {
    ModelError::Disabled(format!("{error:#}"))
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
