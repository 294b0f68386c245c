//! Keys of the providers of models: where they are looked for, and where `toolhost key set` keeps them.
//!
//! The environment, then what the configuration names, then what was kept here: a file that only its owner reads, or
//! the keyring. The keyring is the desktop's Secret Service, through `secret-tool` of libsecret; a machine without one
//! has files.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhost_agent::ModelError;
use toolhost_agent::model::{Keys, Secret};

use crate::Usage;
use crate::print::visible_line;

/// Longest key, bytes.
pub(crate) const KEY_BYTES_MAX: u64 = 64 << 10;
/// The mode of the folder of keys, and what of a file's gives it to others.
const OWNER_ALONE: u32 = 0o700;
const OTHERS: u32 = 0o077;
/// Longest name of a key, bytes.
const NAME_BYTES_MAX: usize = 64;
/// The client of the Secret Service, and what our entries are found by.
const SECRET_TOOL: &str = "secret-tool";
const SERVICE: [&str; 2] = ["service", "toolhost"];

/// Where the configuration says that a key is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub(crate) enum KeyPlace {
    /// A file with the key alone.
    File(PathBuf),
    /// A command that prints it, such as a password manager's: `["pass", "show", "anthropic"]`.
    Command(Vec<String>),
}

/// Where `toolhost key set` keeps one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    /// The desktop's keyring
    Keyring,
    /// A file beside the configuration that only its owner reads
    File,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Whereabouts {
    Environment,
    /// A file: the configuration's or our own.
    File(PathBuf),
    /// The program of the configuration's command.
    Command(String),
    Keyring,
}

impl std::fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment => f.write_str("the environment"),
            Self::File(file) => write!(f, "the file {}", file.display()),
            Self::Command(program) => write!(f, "the command {program}"),
            Self::Keyring => f.write_str("the keyring"),
        }
    }
}

/// All places of keys.
#[derive(Debug, Clone)]
pub(crate) struct Vault {
    /// The configuration's.
    pub(crate) places: BTreeMap<String, KeyPlace>,
    /// Of our own files.
    pub(crate) folder: PathBuf,
    /// Which other key stands for one, in the project that it is looked for.
    pub(crate) instead: BTreeMap<String, String>,
}

impl Vault {
    /// The key of this name and where it is; the first place that has one.
    ///
    /// # Errors
    /// A place of the configuration that does not give its key, by name: another key in its stead would be a surprise.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<Option<(Secret, Whereabouts)>> {
        let Some(own) = self.instead.get(name) else { return self.looked_for(name) };
        match self.looked_for(own)? {
            // The usual key would charge the calls of this project to another account.
            None => {
                bail!("this project has a key of its own, which is missing: `toolhost key set {}`", visible_line(own))
            }
            found => Ok(found),
        }
    }

    fn looked_for(&self, name: &str) -> anyhow::Result<Option<(Secret, Whereabouts)>> {
        check_name(name)?;
        if let Some(key) = std::env::var(name).ok().filter(|key| !key.trim().is_empty()) {
            return Ok(Some((Secret::new(&key), Whereabouts::Environment)));
        }
        if let Some(place) = self.places.get(name) {
            return configured(place).with_context(|| format!("the key {name}")).map(Some);
        }
        let file = self.file(name);
        if file.exists() {
            return Ok(Some((read(&file)?, Whereabouts::File(file))));
        }
        let kept = secret_tool("lookup", name, &[], None).ok().filter(|ran| ran.status.success());
        let key = kept.and_then(|ran| Some(Secret::new(std::str::from_utf8(&ran.stdout).ok()?)));
        Ok(key.filter(|key| !key.is_empty()).map(|key| (key, Whereabouts::Keyring)))
    }

    /// Keeps a key where it is asked for; in the keyring where there is one, and else in a file. A former one of the name
    /// in the other place is found no more: its file is removed, or goes before the keyring.
    pub(crate) fn keep(&self, name: &str, key: &Secret, store: Option<Store>) -> anyhow::Result<Whereabouts> {
        check_name(name)?;
        if store != Some(Store::File) {
            match stored(name, key) {
                Ok(()) => {
                    remove(&self.file(name))?;
                    return Ok(Whereabouts::Keyring);
                }
                Err(error) if store == Some(Store::Keyring) => {
                    return Err(error.context("the keyring does not take it"));
                }
                Err(error) => tracing::info!("no keyring: {error:#}"),
            }
        }
        let made = std::fs::DirBuilder::new().recursive(true).mode(OWNER_ALONE).create(&self.folder);
        made.with_context(|| self.folder.display().to_string())?;
        // A temporary file is its owner's alone from its first moment, and has the name when the key is in it.
        let mut made = tempfile::NamedTempFile::new_in(&self.folder).context("the file of the key")?;
        made.write_all(key.reveal().as_bytes())?;
        made.as_file().sync_all()?;
        let file = self.file(name);
        made.persist(&file).with_context(|| file.display().to_string())?;
        Ok(Whereabouts::File(file))
    }

    /// Forgets what was kept here. Says from where.
    pub(crate) fn forget(&self, name: &str) -> anyhow::Result<Vec<Whereabouts>> {
        check_name(name)?;
        let mut from = Vec::new();
        if remove(&self.file(name))? {
            from.push(Whereabouts::File(self.file(name)));
        }
        let had =
            secret_tool("lookup", name, &[], None).is_ok_and(|ran| ran.status.success() && !ran.stdout.is_empty());
        if had {
            let ran = secret_tool("clear", name, &[], None)?;
            if !ran.status.success() {
                bail!("the keyring keeps the key {name}: {}", complaint(&ran));
            }
            from.push(Whereabouts::Keyring);
        }
        Ok(from)
    }

    /// Names of the keys that the configuration places and of those in our files.
    pub(crate) fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names: Vec<String> = self.places.keys().cloned().collect();
        match std::fs::read_dir(&self.folder) {
            Ok(files) => {
                for file in files {
                    let name = file?.file_name();
                    names.extend(name.to_str().filter(|name| check_name(name).is_ok()).map(str::to_owned));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| self.folder.display().to_string()),
        }
        Ok(names)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Keys for Vault {
    fn key(&self, name: &str) -> Result<Option<Secret>, ModelError> {
        let found = self.find(name).map_err(|error| ModelError::Disabled(format!("{error:#}")))?;
        Ok(found.map(|(key, _)| key))
    }
}

/// A name of a variable, so that it is no path and no option.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_one = name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit();
    if !is_one {
        let text = format!(
            "`{}` is not the name of a key: use letters, digits and _, as in ANTHROPIC_API_KEY",
            visible_line(name)
        );
        return Err(Usage::error(text));
    }
    Ok(())
}

fn configured(place: &KeyPlace) -> anyhow::Result<(Secret, Whereabouts)> {
    let (key, place) = match place {
        KeyPlace::File(file) => (read(file)?, Whereabouts::File(file.clone())),
        KeyPlace::Command(command) => {
            let (program, arguments) = command.split_first().context("its command is empty")?;
            let ran = run(program, arguments, None).with_context(|| format!("the command {program}"))?;
            if !ran.status.success() {
                // What it says itself may hold the key.
                bail!("the command {program} gives none ({}): run it by hand to see why", ran.status);
            }
            let printed = String::from_utf8(ran.stdout).ok().with_context(|| format!("{program} prints no text"))?;
            (Secret::new(&printed), Whereabouts::Command(program.clone()))
        }
    };
    if key.is_empty() {
        bail!("there is nothing in {place}");
    }
    Ok((key, place))
}

fn read(file: &Path) -> anyhow::Result<Secret> {
    let about = std::fs::metadata(file).with_context(|| format!("{} cannot be read", file.display()))?;
    if !about.is_file() || about.len() > KEY_BYTES_MAX {
        bail!("{} is not a key file: a key file has at most {KEY_BYTES_MAX} bytes", file.display());
    }
    if about.permissions().mode() & OTHERS != 0 {
        tracing::warn!("others may read the key in {0}: `chmod 600 {0}`", file.display());
    }
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(Secret::new(&text))
}

/// Whether there was something to remove.
fn remove(file: &Path) -> anyhow::Result<bool> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} cannot be removed", file.display())),
    }
}

fn stored(name: &str, key: &Secret) -> anyhow::Result<()> {
    let label = format!("--label=toolhost: {name}");
    let ran = secret_tool("store", name, &[&label], Some(key))?;
    if !ran.status.success() {
        bail!("{}", key.scrub(&complaint(&ran)));
    }
    Ok(())
}

/// Secrets go through standard input: arguments can be read by every process of the machine.
fn secret_tool(verb: &str, name: &str, options: &[&str], key: Option<&Secret>) -> anyhow::Result<Output> {
    let arguments = [&[verb], options, &SERVICE, &["name", name]].concat();
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    run(SECRET_TOOL, &arguments, key).with_context(|| format!("{SECRET_TOOL} (of libsecret)"))
}

/// Runs an operator's own command; it is no agent's, and has no workspace.
#[expect(clippy::disallowed_methods, reason = "the operator's command, from the operator's configuration")]
fn run(program: &str, arguments: &[String], input: Option<&Secret>) -> std::io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let (Some(secret), Some(mut stdin)) = (input, child.stdin.take()) {
        // One that does not read it says why with its exit code.
        let _ = stdin.write_all(secret.reveal().as_bytes());
    }
    child.wait_with_output()
}

/// The first line that a command complained with.
fn complaint(ran: &Output) -> String {
    let text = String::from_utf8_lossy(&ran.stderr);
    visible_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why"))
}
