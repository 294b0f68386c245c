//! `toolhost key`

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolhost_agent::model::{ProviderKind, Secret};

use crate::keys::{KEY_BYTES_MAX, Store, Vault, Whereabouts};
use crate::settings::Settings;
use crate::{Usage, print};

/// The keys of models' providers: in the keyring, or in files that only you read
///
/// `toolhost run` looks for a key in the environment, then where `[keys]` of the configuration says, then in the files
/// and the keyring that `key set` fills. No key is ever printed.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Keep a key; it is asked for, or read from standard input
    Set {
        /// As the environment would name it: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, or a name of your own
        name: String,
        /// Where [default: the keyring where there is one, else a file]
        #[arg(long = "in", value_name = "PLACE")]
        store: Option<Store>,
    },
    /// List the names of keys, and where each one is found
    List,
    /// Forget a key that was kept here
    Remove { name: String },
}

pub(crate) fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let models = settings.models()?;
    let vault = &models.vault;
    match args.command {
        Command::Set { name, store } => {
            let key = asked_for(&name)?;
            let place = vault.keep(&name, &key, store)?;
            warn_of_others(vault, &name, &place)?;
            tell(settings, &json!({ "name": name, "kept": place }), format_args!("{name} is in {place}"))?;
        }
        Command::List => list(settings, vault, models.key_names())?,
        Command::Remove { name } => {
            let from = vault.forget(&name)?;
            if from.is_empty() {
                return Err(Usage::error(format!("no key {} is kept here", print::visible_line(&name))));
            }
            let places: Vec<String> = from.iter().map(ToString::to_string).collect();
            let told = places.join(" and ");
            tell(settings, &json!({ "name": name, "removed": from }), format_args!("{name} is removed from {told}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(settings: &Settings, value: &serde_json::Value, text: impl std::fmt::Display) -> anyhow::Result<()> {
    if settings.json {
        return print::json(value);
    }
    print::line(text);
    Ok(())
}

/// What the person types, unseen, or what standard input has.
fn asked_for(name: &str) -> anyhow::Result<Secret> {
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("{} (is not shown): ", print::visible_line(name)))?
    } else {
        let mut text = String::new();
        std::io::stdin().take(KEY_BYTES_MAX + 1).read_to_string(&mut text).context("the key on standard input")?;
        text
    };
    let key = Secret::new(&text);
    let is_one = !key.is_empty()
        && text.len() as u64 <= KEY_BYTES_MAX
        && key.reveal().chars().all(|char| char.is_ascii_graphic());
    if !is_one {
        return Err(Usage::error("a key is one word of visible ASCII characters, 64 KiB at most: nothing is kept"));
    }
    Ok(key)
}

/// A key that was kept but is not the one that is found.
fn warn_of_others(vault: &Vault, name: &str, kept: &Whereabouts) -> anyhow::Result<()> {
    if let Some((_, found)) = vault.find(name)?
        && found != *kept
    {
        print::note(format_args!("{found} has a key {name} too, and goes first"));
    }
    Ok(())
}

fn list(settings: &Settings, vault: &Vault, named: BTreeSet<String>) -> anyhow::Result<()> {
    let known = [ProviderKind::Anthropic, ProviderKind::OpenAi, ProviderKind::Gemini];
    let mut names = named;
    names.extend(known.iter().filter_map(|provider| provider.key_name()).map(str::to_owned));
    names.extend(vault.names()?);
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for name in names {
        // One that is broken does not hide the others.
        let (place, error) = match vault.find(&name) {
            Ok(found) => (found.map(|(_, place)| place), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let told = place.as_ref().map(ToString::to_string).or_else(|| error.clone());
        values.push(json!({ "name": name, "found": place, "error": error }));
        rows.push(vec![print::cell(&name), print::visible_line(&told.unwrap_or_else(|| "-".to_owned()))]);
    }
    if settings.json {
        return print::json(&values);
    }
    print::table(&["name", "found in"], &rows);
    Ok(())
}
