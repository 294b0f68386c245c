//! What `toolhost doctor` looks at besides the fence: each finding says what is, and what to do where it is not well.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use serde::Serialize;
use serde_json::{Map, Value};
use toolhost::Need;
use toolhost_contract::Redactor;
use toolhost_contract::workspace::{FenceReport, Tier};
use toolhost_host::Profiles;
use toolhost_store::Store;

use crate::hosting::key_of;
use crate::print::{self, visible_line};
use crate::settings::{Resolved, Settings};
use crate::{model, wire};

/// Most bytes of a client's settings that are looked at.
const CLIENT_FILE_BYTES_MAX: u64 = 4 << 20;
/// The name of the program that a client's settings start.
const PROGRAM: &str = "toolhost";

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    Good,
    /// It works, and something could be better.
    Note,
    /// Something does not work.
    Bad,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    pub(super) about: &'static str,
    pub(super) standing: Standing,
    pub(super) says: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    pub(super) fn good(about: &'static str, says: impl Into<String>) -> Self {
        Self { about, standing: Standing::Good, says: says.into(), fix: None }
    }

    pub(super) fn note(about: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, standing: Standing::Note, says: says.into(), fix: Some(fix.into()) }
    }

    pub(super) fn bad(about: &'static str, says: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { about, standing: Standing::Bad, says: says.into(), fix: Some(fix.into()) }
    }
}

/// Whether commands can run, and behind what.
pub(super) fn fence(report: &FenceReport, refused: Option<&str>) -> Finding {
    const INSTALL: &str = "install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)";
    if let Some(refused) = refused {
        return Finding::bad("fence", format!("commands are refused: {refused}"), super::LOOK);
    }
    let why = || report.why.join("; ");
    match (report.tier, &report.probe.bwrap) {
        (Some(Tier::Full), _) => Finding::good("fence", "the full tier holds: bwrap, Landlock, seccomp and limits"),
        (Some(Tier::Landlock), None) => {
            Finding::note("fence", "only the Landlock tier holds: `bwrap` is not installed", INSTALL)
        }
        (Some(Tier::Landlock), Some(_)) => Finding::note(
            "fence",
            match &*why() {
                "" => "only the Landlock tier holds, as it was chosen".to_owned(),
                why => format!("only the Landlock tier holds: {why}"),
            },
            "leave out `--sandbox landlock`, or allow user namespaces to this user; or accept what the Landlock tier does not hold: `toolhost doctor --fence`",
        ),
        (Some(Tier::Off), _) => Finding::bad(
            "fence",
            "it is off: commands run with your rights",
            "leave out `--sandbox off` and `sandbox = \"off\"` in the configuration",
        ),
        (None, None) => Finding::bad("fence", format!("none holds, so commands are refused: {}", why()), INSTALL),
        (None, Some(_)) => Finding::bad(
            "fence",
            format!("none holds, so commands are refused: {}", why()),
            "use a kernel with Landlock, or allow user namespaces to this user",
        ),
    }
}

/// Whether the database opens, and what is in it.
pub(super) async fn database(resolved: &Resolved) -> Finding {
    const ABOUT: &str = "database";
    if resolved.database.is_none() && !Store::is_in(&resolved.state) {
        if resolved.known.as_ref().is_some_and(crate::known::Known::had_database) {
            return Finding::bad(
                ABOUT,
                format!("it was in {}, and is not there any more", resolved.state.display()),
                "bring it back from a backup (`toolhost restore FILE`), or begin a new one with `toolhost init --new`",
            );
        }
        return Finding::good(ABOUT, "not made yet: the first call makes it");
    }
    let connection = match wire::connect(resolved, Need::Reading).await {
        Ok(connection) => connection,
        Err(error) => {
            let fix = match &resolved.database {
                Some(_) => "check the address, that the server runs, and your login (`toolhost login --status`)",
                None => "bring it back from a backup: `toolhost restore FILE`",
            };
            return Finding::bad(ABOUT, format!("it does not open: {}", print::all_of(&error)), fix);
        }
    };
    let (place, name) = (connection.store().place().to_string(), connection.project().name.clone());
    let rows = connection.store().reader().audit_end(connection.project().id).await;
    let closed = wire::close_reading(&connection).await;
    match (rows, closed) {
        (Ok(rows), Ok(())) => {
            Finding::good(ABOUT, format!("{place} opens; project {}, {rows} rows in the audit", visible_line(&name)))
        }
        (Err(error), _) => Finding::bad(
            ABOUT,
            format!("{place} opens and cannot be read: {error}"),
            "bring it back from a backup: `toolhost restore FILE`",
        ),
        (_, Err(error)) => {
            Finding::bad(ABOUT, format!("{place}: {}", print::all_of(&error)), "see that its folder can be written")
        }
    }
}

/// Whether git is there, which the `git_*` tools run.
pub(super) fn git(resolved: &Resolved) -> Finding {
    match on_path("git", &resolved.path) {
        Some(path) => Finding::good("git", path.display().to_string()),
        None => Finding::note("git", "not installed: the git tools fail", "install it: apt-get install git"),
    }
}

/// Whether a model can be asked, where one is chosen.
pub(super) fn model(settings: &Settings, resolved: &Resolved) -> Finding {
    const ABOUT: &str = "model";
    let said = match settings.models_of(&key_of(resolved)) {
        Ok(said) => said,
        Err(error) => return Finding::bad(ABOUT, print::all_of(&error), "correct the configuration"),
    };
    let chosen = std::env::var("TOOLHOST_MODEL").ok().or_else(|| said.default.clone());
    let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) else {
        return Finding::good(ABOUT, "none is chosen; only `toolhost run` and the workbench's assistant need one");
    };
    match model::open(&said, Some(&chosen)) {
        Ok(_) => Finding::good(
            ABOUT,
            format!("{} is chosen, and what it needs is there; it was not asked", visible_line(&chosen)),
        ),
        Err(error) => Finding::bad(
            ABOUT,
            format!("{}: {}", visible_line(&chosen), print::all_of(&error)),
            "correct its name or its file, keep the key that it needs with `toolhost key set NAME`, or choose another with `model` in \
             the configuration",
        ),
    }
}

/// A client whose settings are looked at.
struct Client {
    name: &'static str,
    file: PathBuf,
}

/// Which clients start Toolhost for this folder, and whether they find the program.
pub(super) fn clients(resolved: &Resolved, profiles: &Profiles) -> Vec<Finding> {
    const ABOUT: &str = "client";
    let (root, home) = (&resolved.root, &resolved.home);
    let places = [
        ("Claude Code", root.join(".mcp.json")),
        ("Claude Code", home.join(".claude.json")),
        ("Codex", home.join(".codex/config.toml")),
        ("VS Code", root.join(".vscode/mcp.json")),
        ("Cursor", root.join(".cursor/mcp.json")),
        ("opencode", root.join("opencode.json")),
    ];
    let mut found = Vec::new();
    for client in places.map(|(name, file)| Client { name, file }) {
        let told = format!("{} ({})", client.name, client.file.display());
        match client.settings() {
            Ok(None) => {}
            Ok(Some(settings)) => {
                found.extend(started_by(&settings).iter().map(|words| started(&told, words, root, profiles)));
                found.extend(connected_by(&settings).iter().map(|url| connected(&told, url)));
            }
            Err(error) => {
                found.push(Finding::note(ABOUT, format!("{told} cannot be read: {error}"), "correct the file"))
            }
        }
    }
    if found.is_empty() {
        found.push(Finding::note(
            ABOUT,
            "no client of this folder starts Toolhost",
            format!(
                "connect one, such as Claude Code: claude mcp add toolhost -- toolhost mcp --root {}",
                quoted_word(root)
            ),
        ));
    }
    found
}

impl Client {
    fn settings(&self) -> Result<Option<Value>, String> {
        let about = match std::fs::metadata(&self.file) {
            Ok(about) if about.is_file() => about,
            Ok(_) => return Err("it is no file".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if about.len() > CLIENT_FILE_BYTES_MAX {
            return Err(format!("it has more than {} MiB", CLIENT_FILE_BYTES_MAX >> 20));
        }
        let text = std::fs::read_to_string(&self.file).map_err(|error| error.to_string())?;
        let is_toml = self.file.extension().is_some_and(|extension| extension == "toml");
        // What stands there may be a secret: an error tells the place alone.
        let read = if is_toml {
            toml::from_str(&text).map_err(|error| crate::toml_file::without_value(error.message()))
        } else {
            serde_json::from_str(&text)
                .map_err(|error| format!("it is not JSON, line {}, column {}", error.line(), error.column()))
        };
        read.map(Some)
    }
}

/// What is to be said of a command line of Toolhost in a client's settings. An agent may have written them: what looks like a secret is masked.
fn started(told: &str, words: &[String], root: &Path, profiles: &Profiles) -> Finding {
    const ABOUT: &str = "client";
    let without_secrets = |mut text: String| {
        Redactor::default().redact(&mut text);
        visible_line(&text).to_string()
    };
    let told = format!("{told} starts `{}`", without_secrets(words.join(" ")));
    let path = std::env::var("PATH").unwrap_or_default();
    let Some(program) = on_path(&words[0], &path) else {
        let fix = "write the program's whole path there (`command -v toolhost`)";
        return Finding::bad(ABOUT, format!("{told}, and no such program is found"), fix);
    };
    if program.canonicalize().is_ok_and(|program| program.starts_with(root)) {
        let fix = "keep the program outside of every workspace, and look at who wrote that file";
        return Finding::bad(
            ABOUT,
            format!("{told}, which lies in the workspace: an agent can write another there"),
            fix,
        );
    }
    if let Some(wrong) = wrong_with(words, profiles).map(without_secrets) {
        return Finding::bad(ABOUT, format!("{told}, which fails: {wrong}"), "correct it in that file");
    }
    if value(words, "--sandbox") == Some("off") {
        return Finding::bad(ABOUT, format!("{told}, whose commands have no fence"), "leave `--sandbox off` out there");
    }
    match value(words, "--root").filter(|named| Path::new(named).canonicalize().is_ok_and(|named| named != root)) {
        Some(_) => Finding::note(
            ABOUT,
            format!("{told}, for another folder than this one"),
            "name this one there, if it is meant",
        ),
        None => Finding::good(ABOUT, told),
    }
}

/// What is to be said of an address in a client's settings. It is not tried: an agent may have written it.
fn connected(told: &str, url: &str) -> Finding {
    // A token may stand behind the question mark.
    let mut url = url.split_once('?').map_or(url.to_owned(), |(url, _)| format!("{url}?…"));
    Redactor::default().redact(&mut url);
    Finding::good("client", format!("{told} connects to {}, which was not tried", visible_line(&url)))
}

/// A path as a shell takes it.
fn quoted_word(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map_or_else(|_| path.clone(), Into::into)
}

/// The value of an option in a command line.
fn value<'a>(words: &'a [String], option: &str) -> Option<&'a str> {
    let place = words.iter().position(|word| word == option);
    let behind = place.and_then(|place| words.get(place + 1)).map(String::as_str);
    behind.or_else(|| words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('=')))
}

/// Why a command line of Toolhost would fail at once, if it would.
fn wrong_with(words: &[String], profiles: &Profiles) -> Option<String> {
    if words.len() < 2 {
        return Some("it names no command, such as `mcp`".to_owned());
    }
    if let Err(error) = crate::Cli::try_parse_from(words) {
        let text = error.render().to_string();
        let first = text.lines().next().unwrap_or_default();
        return Some(first.strip_prefix("error: ").unwrap_or(first).to_owned());
    }
    let root = value(words, "--root").filter(|root| !Path::new(root).is_dir());
    let profile = value(words, "--profile").filter(|profile| profiles.get(profile).is_err());
    let root = root.map(|root| format!("the folder {root} does not exist"));
    root.or(profile.map(|profile| format!("no profile is called `{profile}`")))
}

/// All objects of a client's settings, at any depth.
fn objects_of(settings: &Value) -> Vec<&Map<String, Value>> {
    let (mut left, mut found) = (vec![settings], Vec::new());
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                left.extend(fields.values());
                found.push(fields);
            }
            _ => {}
        }
    }
    found
}

/// A text, or the texts of a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// The command lines of Toolhost that stand in a client's settings, wherever that is; none is empty.
fn started_by(settings: &Value) -> Vec<Vec<String>> {
    // Most have `command` and `args`; opencode has all of it in `command`.
    let line = |fields: &Map<String, Value>| [texts(fields.get("command")), texts(fields.get("args"))].concat();
    let is_ours = |line: &Vec<String>| {
        line.first().is_some_and(|command| Path::new(command).file_name().is_some_and(|name| name == PROGRAM))
    };
    objects_of(settings).into_iter().map(line).filter(is_ours).collect()
}

/// The addresses of servers whose name has the name of this program in it, wherever they stand in a client's settings.
fn connected_by(settings: &Value) -> Vec<String> {
    let servers = objects_of(settings).into_iter().flatten().filter(|(name, _)| name.contains(PROGRAM));
    servers.filter_map(|(_, server)| server.get("url")?.as_str().map(str::to_owned)).collect()
}

/// Where a program is: below one of the folders of a search path, or where it says.
fn on_path(program: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    std::env::split_paths(path).map(|folder| folder.join(program)).find(runs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_is_found_by_what_it_starts() {
        let settings = json!({
            "mcpServers": { "a": { "command": "/opt/bin/toolhost", "args": ["mcp", "--profile", "developer"] },
                            "b": { "command": "npx", "args": ["toolhost"] } },
            "mcp": { "c": { "type": "local", "command": ["toolhost", "mcp"] } },
            "projects": { "/home/me": { "mcpServers": { "d": { "command": "toolhost" } } } },
        });
        let mut found: Vec<String> = started_by(&settings).iter().map(|words| words.join(" ")).collect();
        found.sort();
        assert_eq!(found, ["/opt/bin/toolhost mcp --profile developer", "toolhost", "toolhost mcp"]);
        let settings = json!({ "mcp_servers": { "toolhost": { "url": "http://127.0.0.1:7420/mcp" }, "other": { "url": "http://b" } } });
        assert_eq!(connected_by(&settings), ["http://127.0.0.1:7420/mcp"]);
    }
}
