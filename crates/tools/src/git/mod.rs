//! The repository of the workspace, through the `git` program in the fence.
//!
//! A repository's own configuration can run programs in a dozen ways. Each run therefore overrides what has a fixed name
//! (hooks, fsmonitor, pager, signing, transports), and [`PRELUDE`] looks up and blanks what has not: filter, diff and
//! merge drivers under names of the repository's choosing. Even if one slipped through, it would run in the fence.

pub(crate) mod branch;
mod change;
pub(crate) mod commit;
pub(crate) mod diff;
pub(crate) mod fetch;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod pull;
pub(crate) mod push;
mod remote;
pub(crate) mod restore;
pub(crate) mod show;
pub(crate) mod stash;
pub(crate) mod status;
pub(crate) mod switch;

use std::time::Duration;

use toolhost_contract::workspace::{Captured, Command, CommandResult, WsPath};
use toolhost_contract::{Ctx, ErrorKind, ToolError, is_deceptive, visible_line};

/// How long git may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(60);
/// What to do where git does not end in that time.
const TOO_SLOW: &str = "git may be waiting for a FIFO in the place of a file that it reads, such as `.gitattributes` or \
    `.gitignore`: `find . -type p` lists them";
/// Bytes kept of each end of git's output.
const CAPTURE_BYTES: usize = 256 * 1024;
/// The same for what a person is shown before they allow something. Longer effects are known to be cut, and denied.
const PREVIEW_BYTES: usize = 4 * 1024 * 1024;

/// Configuration that holds over the repository's own.
const CONFIG: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.askPass", "true"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.quotePath", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("safe.bareRepository", "explicit"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.detachedHead", "false"),
    ("color.ui", "false"),
];

/// Blanks every driver the repository defines, then leaves the rest to the verb's own script.
///
/// By environment, not `-c`: a driver's name may hold `=`, and `-c` would split it there.
const PRELUDE: &str = r#"
set -u
blank_drivers() {
    local key value n=$GIT_CONFIG_COUNT
    while IFS= read -r -d '' key; do
        case "$key" in
            *.required) value=false ;;
            *) value= ;;
        esac
        export "GIT_CONFIG_KEY_$n=$key" "GIT_CONFIG_VALUE_$n=$value"
        n=$((n + 1))
    done < <(git config -z --name-only --get-regexp '^(filter|diff|merge|difftool|mergetool|remote|url)\..*\.(clean|smudge|process|required|command|textconv|driver|cmd|path|uploadpack|receivepack|vcs)$' 2>/dev/null)
    export GIT_CONFIG_COUNT=$n
}
blank_drivers
"#;

/// What a script may do to the workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Read-only, whatever the profile grants.
    Read,
    /// The workspace read-only, and the network that the profile grants.
    Look,
    /// What the profile grants, and the data of `.git`: no program but git itself runs in it.
    Write,
    /// As [`Mode::Write`], and it changes files of the workspace: while no command runs that could put a link in their way.
    Change,
    /// What the profile grants, with `.git` read-only as for every command: another repository's hooks may run in it.
    Reach,
}

/// Marks of settings that only [`PRELUDE`] can disarm, in lower case. Without any of them git can be run by itself.
const ARMED: &[&str] =
    &["[filter", "[diff", "[merge", "[include", "uploadpack", "receivepack", "vcs", "worktreeconfig"];
/// Largest configuration that is looked through.
const CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// Runs one reading git command.
pub(crate) async fn read(ctx: &Ctx<'_>, arguments: &[&str]) -> Result<CommandResult, ToolError> {
    if !is_plain(ctx).await {
        return run(ctx, Mode::Read, r#"exec git "$@""#, arguments, "", &[]).await;
    }
    let mut command = command(ctx, std::iter::once("git").chain(arguments.iter().copied()), &[]);
    command.capture_bytes = CAPTURE_BYTES;
    let result = ctx.workspace.run_reading(command, ctx.watch()).await?;
    told(ctx, result).await
}

/// Whether the repository's configuration holds nothing that must be looked up and blanked.
async fn is_plain(ctx: &Ctx<'_>) -> bool {
    let (Ok(path), Ok(elsewhere)) = (WsPath::parse(".git/config"), WsPath::parse(".git/commondir")) else {
        return false;
    };
    let one = toolhost_contract::workspace::ReadSpan { start: 0, bytes_max: 1 };
    if !matches!(ctx.workspace.read(&elsewhere, one).await, Err(toolhost_contract::workspace::Error::NotFound { .. })) {
        return false;
    }
    let span = toolhost_contract::workspace::ReadSpan { start: 0, bytes_max: CONFIG_BYTES_MAX };
    match ctx.workspace.read(&path, span).await {
        Ok(content) if content.size <= CONFIG_BYTES_MAX => {
            let text = String::from_utf8_lossy(&content.bytes).to_lowercase();
            !ARMED.iter().any(|mark| text.contains(mark)) && !text.contains("[ ")
        }
        _ => false,
    }
}

/// Runs a script of git commands. `arguments` are its `$1`, `$2`, …; nothing of the caller's is ever part of the script.
pub(crate) async fn run(
    ctx: &Ctx<'_>,
    mode: Mode,
    script: &str,
    arguments: &[&str],
    stdin: &str,
    extra: &[(&str, &str)],
) -> Result<CommandResult, ToolError> {
    run_keeping(ctx, mode, script, arguments, (stdin, extra, CAPTURE_BYTES)).await
}

/// What a person is shown of an effect, and how many bytes of it were left out.
pub(crate) async fn preview(
    ctx: &Ctx<'_>,
    script: &str,
    arguments: &[&str],
) -> Result<(CommandResult, u64), ToolError> {
    let result = run_keeping(ctx, Mode::Read, script, arguments, ("", &[], PREVIEW_BYTES)).await?;
    let left_out = left_out(&result.stdout);
    Ok((result, left_out))
}

/// How many bytes of an output that is kept for a preview were left out.
fn left_out(output: &Captured) -> u64 {
    let kept = if output.truncated { 2 * PREVIEW_BYTES as u64 } else { output.bytes };
    output.bytes.saturating_sub(kept)
}

async fn run_keeping(
    ctx: &Ctx<'_>,
    mode: Mode,
    script: &str,
    arguments: &[&str],
    (stdin, extra, capture_bytes): (&str, &[(&str, &str)], usize),
) -> Result<CommandResult, ToolError> {
    let mut command = self::script(ctx, script, arguments, extra);
    command.capture_bytes = capture_bytes;
    command.stdin = stdin.as_bytes().to_vec();
    command.ends_in_order = mode != Mode::Read;
    let result = match mode {
        Mode::Read => ctx.workspace.run_reading(command, ctx.watch()).await?,
        Mode::Look => ctx.workspace.run_looking(command, ctx.watch()).await?,
        Mode::Reach => ctx.workspace.run(command, ctx.watch()).await?,
        Mode::Write | Mode::Change => {
            command.is_git = true;
            command.changes_files = mode == Mode::Change;
            ctx.workspace.run(command, ctx.watch()).await?
        }
    };
    told(ctx, result).await
}

fn script(ctx: &Ctx<'_>, script: &str, arguments: &[&str], extra: &[(&str, &str)]) -> Command {
    let program = format!("{PRELUDE}{script}");
    let argv = ["bash", "-c", &program, "git"].into_iter().chain(arguments.iter().copied());
    command(ctx, argv, extra)
}

fn command<'a>(ctx: &Ctx<'_>, argv: impl Iterator<Item = &'a str>, extra: &[(&str, &str)]) -> Command {
    let mut command = Command::new(argv, GIT_TIMEOUT);
    command.toolchains = false;
    command.ends_fifo_waits = true;
    command.env = environment(ctx, extra);
    command
}

/// The failures that mean the same for every command.
async fn told(ctx: &Ctx<'_>, result: CommandResult) -> Result<CommandResult, ToolError> {
    if result.waited_for_fifo {
        let message =
            "git waited for a FIFO in the place of a file that it reads, such as `.gitattributes` or `.gitignore`";
        let error = ToolError::new(ErrorKind::Conflict, message);
        return Err(error.hint("`find . -type p` lists FIFOs: remove it, and call again"));
    }
    if result.timed_out {
        let message = format!("git took longer than {} s", GIT_TIMEOUT.as_secs());
        return Err(ToolError::new(ErrorKind::Timeout, message).hint(TOO_SLOW));
    }
    if result.exit_code == 127 {
        return Err(ToolError::new(ErrorKind::NotFound, "git is not installed here").hint("tell the person"));
    }
    if result.stderr.text.contains("not a git repository") {
        return Err(no_repository(ctx).await);
    }
    Ok(result)
}

/// Why git finds no repository. A `.git` that is a file says where the repository is; outside the workspace it is beyond the
/// fence.
async fn no_repository(ctx: &Ctx<'_>) -> ToolError {
    let none =
        ToolError::new(ErrorKind::NotFound, "the workspace is not a git repository").hint("`git.init` creates one");
    let Ok(path) = WsPath::parse(".git") else { return none };
    let span = toolhost_contract::workspace::ReadSpan { start: 0, bytes_max: 4096 };
    let Ok(content) = ctx.workspace.read(&path, span).await else { return none };
    let text = String::from_utf8_lossy(&content.bytes).into_owned();
    let Some(place) = text.strip_prefix("gitdir:") else { return none };
    let (what, hint) = if place.contains("/worktrees/") {
        (
            "a linked worktree of a repository that does not know it",
            "ask the person to run `git worktree repair`, or to open the main repository as the workspace",
        )
    } else if place.contains("/modules/") {
        (
            "a submodule, and its repository is kept by the repository around it",
            "ask the person to open the folder of the repository around it as the workspace",
        )
    } else {
        (
            "a working tree whose repository is kept elsewhere",
            "ask the person to open a workspace that contains the repository as well",
        )
    };
    let message = format!("the git tools do not work here: the workspace is {what}, outside the workspace");
    ToolError::new(ErrorKind::NotFound, message).hint(hint)
}

fn environment(ctx: &Ctx<'_>, extra: &[(&str, &str)]) -> Vec<(String, String)> {
    let persona: String = ctx.call.caller.persona.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).collect();
    let persona = if persona.trim().is_empty() { "agent".to_owned() } else { persona };
    let mut address: String =
        persona.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    address.push_str("@toolhost.invalid");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut env = vec![
        pair("GIT_CONFIG_NOSYSTEM", "1"),
        pair("GIT_CONFIG_SYSTEM", "/dev/null"),
        pair("GIT_CONFIG_GLOBAL", "/dev/null"),
        pair("GIT_ATTR_NOSYSTEM", "1"),
        pair("GIT_TERMINAL_PROMPT", "0"),
        pair("GIT_OPTIONAL_LOCKS", "0"),
        pair("GIT_PAGER", "cat"),
        pair("GIT_EDITOR", "true"),
        pair("GIT_ASKPASS", "true"),
        pair("GIT_LITERAL_PATHSPECS", "1"),
        pair("GIT_NO_LAZY_FETCH", "1"),
        // A repository says which object is shown for which, and which parents: what is shown is what is there.
        pair("GIT_NO_REPLACE_OBJECTS", "1"),
        pair("GIT_GRAFT_FILE", "/dev/null/none"),
        pair("GIT_AUTHOR_NAME", &persona),
        pair("GIT_AUTHOR_EMAIL", &address),
        pair("GIT_COMMITTER_NAME", &persona),
        pair("GIT_COMMITTER_EMAIL", &address),
    ];
    let config: Vec<(&str, &str)> = CONFIG.iter().chain(extra).copied().collect();
    for (n, (key, value)) in config.iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{n}"), (*key).to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{n}"), (*value).to_owned()));
    }
    env.push(("GIT_CONFIG_COUNT".to_owned(), config.len().to_string()));
    env
}

/// A path for git: the same rule as for every other tool.
pub(crate) fn path(text: &str) -> Result<WsPath, ToolError> {
    Ok(WsPath::parse(text)?)
}

/// A branch that is not there yet: its name is not to mislead who reads the list.
pub(crate) const NEW_BRANCH: &str = "new branch";

/// A revision, branch or remote that git will not take for an option or a refspec.
pub(crate) fn name(what: &str, text: &str) -> Result<String, ToolError> {
    let bad = text.is_empty()
        || text.starts_with(['-', '+'])
        || text.len() > 250
        || text.contains("..")
        || (what == NEW_BRANCH && (text.starts_with("refs/") || text.chars().any(is_deceptive)))
        || text.chars().any(|c| c.is_control() || c.is_whitespace() || ":?*[\\\"'`$;|&<>(){}!".contains(c));
    if !bad {
        return Ok(text.to_owned());
    }
    let shown = visible_line(&text.chars().take(60).collect::<String>());
    Err(ToolError::new(ErrorKind::Validation, format!("`{shown}` is not the name of a {what}"))
        .hint("give a plain name, such as `main`, `origin` or a commit's hash"))
}

/// Git refused; its own words say why.
pub(crate) fn refused(what: &str, result: &CommandResult) -> ToolError {
    let said = if result.stderr.text.trim().is_empty() { &result.stdout.text } else { &result.stderr.text };
    // As ssh ends its lines.
    let said = said.replace('\r', "");
    let said = said.trim();
    ToolError::new(
        ErrorKind::Conflict,
        format!("{what}: {}", if said.is_empty() { "git gave no reason" } else { said }),
    )
}
