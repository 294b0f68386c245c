//! `bash`

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::shell::{Analyzed, SimpleCommand};
use toolhost_contract::workspace::{Access, Command, FolderLimit, RefChange, WsPath};
use toolhost_contract::{
    Alias, Begun, CommandArgument, Ctx, Effect, ErrorKind, Example, Expect, Facts, Listening, Meaning, OtherName,
    Preview, Success, Tool, ToolError, named, visible, visible_line,
};

use crate::{git_hint, interactive, network_hint};

const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// The tool that reads what was left out.
const READS_ON: &str = "bash.output";
/// Most programs named that waited for a terminal.
const WAITED_MAX: usize = 5;
/// Most changed references listed, and most names of what was put back.
const CHANGED_MAX: usize = 50;

const NAMES: &[OtherName] = &[
    OtherName::argument("cmd", "command"),
    OtherName::argument("script", "command"),
    OtherName::argument("shell_command", "command"),
    OtherName::argument("workdir", "cwd"),
    OtherName::argument("working_dir", "cwd"),
    OtherName::argument("working_directory", "cwd"),
    OtherName::argument("directory", "cwd"),
    OtherName::argument("input", "stdin"),
    OtherName::argument("timeout_milliseconds", "timeoutMs"),
    OtherName::means("timeout", Meaning::Time("timeoutMs")),
    OtherName::means("timeout_seconds", Meaning::Seconds("timeoutMs")),
    OtherName::argument("run_in_background", "background"),
    OtherName::argument("is_background", "background"),
];

pub(crate) struct Bash;

/// Runs a bash command in the workspace, in a fence: no network unless granted, nothing outside the workspace but a private
/// /tmp, no input unless given. A command that fails is an answer with its exit code. `.git` is read-only: the git tools commit,
/// switch, restore, stash.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The command; pipes, `&&` and redirections work.
    #[schemars(length(min = 1, max = 100000))]
    command: String,
    /// The folder to run in, from the workspace root.
    #[serde(default = "root")]
    cwd: String,
    /// Time limit in milliseconds; 120000 by default.
    #[schemars(range(min = 1, max = 86400000))]
    timeout_ms: Option<u64>,
    /// Text for standard input, which is empty otherwise.
    stdin: Option<String>,
    /// Answers at once with a handle for `bash_output` and `bash_kill`. The session ends the command.
    #[serde(default)]
    background: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// 0 is success; 128 + n: ended by signal n; null: it goes on in the background.
    exit_code: Option<i32>,
    /// By which `bash.output` reads a command in the background, or what was left out: `command-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<String>,
    /// The signal that ended it, such as `SIGKILL`.
    signal: Option<String>,
    stdout: String,
    stderr: String,
    /// The middle of stdout or stderr was left out.
    truncated: bool,
    /// The time limit was reached and everything it had started was ended.
    timed_out: bool,
    duration_ms: u64,
    /// The fence this very command ran in: `full`, `landlock` or `off`.
    fence: String,
    /// Branches and other git references that changed while the command ran, at most 50; only in the fence `landlock`,
    /// where a command can write `.git`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refs_changed: Vec<Changed>,
    /// What git or this host obeys that was put back when the command ended, at most 50 names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    put_back: Vec<String>,
}

impl Output {
    /// The answer of a command that goes on.
    fn begun(handle: String) -> Self {
        Self {
            exit_code: None,
            handle: Some(handle),
            signal: None,
            stdout: String::new(),
            stderr: String::new(),
            truncated: false,
            timed_out: false,
            duration_ms: 0,
            fence: String::new(),
            refs_changed: Vec::new(),
            put_back: Vec::new(),
        }
    }
}

/// A git reference that changed.
#[derive(Serialize, JsonSchema)]
struct Changed {
    /// `HEAD`, or a full name such as `refs/heads/main`.
    name: String,
    /// The commit before; null for a new reference.
    from: Option<String>,
    /// The commit now; null for a deleted reference.
    to: Option<String>,
}

fn root() -> String {
    ".".to_owned()
}

impl Tool for Bash {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "bash";
    const TITLE: &'static str = "Run a command";
    const FACTS: Facts = Facts {
        effect: Effect::Executes,
        runs_program: true,
        command: Some(CommandArgument { name: "command", input: "stdin" }),
        paths: &["cwd"],
        ..Facts::READS
    };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &[
        "shell",
        "sh",
        "exec",
        "execute",
        "execute_command",
        "exec_command",
        "local_shell",
        "run_shell_command",
        "run_terminal_cmd",
        "run_in_terminal",
        "terminal",
    ];

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("run_command")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a pipe",
                arguments: json!({"command": "printf 'b\\na\\n' | sort | head -1"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/exitCode", "0"), ("/stdout", "\"a\\n\"")]),
            },
            Example {
                says: "a failure is an answer",
                arguments: json!({"command": "exit 3"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/exitCode", "3")]),
            },
            Example {
                says: "programs that wait for a person are refused",
                arguments: json!({"command": "vim notes.txt"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        if let Some(handle) = output.handle.as_ref().filter(|_| output.exit_code.is_none()) {
            return format!("[{handle} runs in the background]");
        }
        let mut text = output.stdout.clone();
        let mut line = |part: &str| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(part);
        };
        if !output.stderr.is_empty() {
            line("[stderr]\n");
            line(&output.stderr);
        }
        if output.timed_out {
            line(&format!(
                "[the time limit was reached after {} ms: everything was ended; a longer `timeoutMs` gives it more time]",
                output.duration_ms
            ));
        }
        match &output.signal {
            Some(signal) => line(&format!("[ended by {signal}]")),
            None if output.exit_code != Some(0) || (output.stdout.is_empty() && output.stderr.is_empty()) => {
                line(&format!("[exit code {}]", output.exit_code.unwrap_or_default()));
            }
            None => {}
        }
        text
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        // A person is not asked about what will not run.
        check(ctx, &input)?;
        let programs = match ctx.command {
            Some(Analyzed::Commands(commands)) => {
                let more = |command: &SimpleCommand| match command.runs_its_input() {
                    true => ", and the commands in its input",
                    false => "",
                };
                let told = |command: &SimpleCommand| match command.words.is_empty() && command.assignments.is_empty() {
                    true => "  runs no program: it opens the files after > and <\n".to_owned(),
                    false => format!("  runs: {}{}\n", visible_line(&command.shown()), more(command)),
                };
                commands.iter().map(told).collect()
            }
            Some(Analyzed::NotAnalyzable { why }) => not_told(why),
            None => not_told("it was not analyzed"),
        };
        let fence = ctx.workspace.fence();
        let access = match fence.workspace {
            Access::Read => "read-only",
            Access::Write => "writable",
        };
        let hosts: Vec<String> = fence.network.iter().map(ToString::to_string).collect();
        let network = match (hosts.is_empty(), fence.loopback) {
            (false, _) => hosts.join(", "),
            (true, true) => "none but its own loopback".to_owned(),
            (true, false) => "none".to_owned(),
        };
        let cwd = WsPath::parse(&input.cwd)?;
        // A link may lead elsewhere by the time a person has said yes.
        let folder = ctx.workspace.spot(&cwd, true).await.map(|spot| spot.path).ok();
        let place = match folder.as_ref().filter(|folder| **folder != cwd) {
            Some(folder) => format!("{}, which leads to {}", visible_line(&input.cwd), visible_line(folder.as_str())),
            None => visible_line(&input.cwd),
        };
        // Marked, no line of theirs looks like one of ours.
        let marked = |text: &str| visible(text).replace('\n', "\n> ");
        let stdin = input.stdin.map(|text| format!("input:\n> {}\n", marked(&text))).unwrap_or_default();
        let goes_on = if input.background { "goes on in the background until its session ends\n" } else { "" };
        let detail = format!(
            "$ {}\n\n{programs}in {place}, the workspace {access}, network: {network}\n{goes_on}{stdin}",
            marked(&input.command)
        );
        let mut lines = input.command.lines();
        let first = visible_line(lines.next().unwrap_or_default());
        let more = if lines.next().is_some() { " …" } else { "" };
        let summary = format!("run {first}{more}");
        let folder = folder.as_ref().map(WsPath::as_str);
        let rests_on = json!({ "workspace": access, "network": network, "folder": folder });
        Ok(Some(Preview { summary, detail, left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let time = check(ctx, &input)?;
        let mut command = Command::new(["bash", "-c", &input.command], time);
        // What a person has allowed runs where it was then said to run.
        let allowed = ctx.approved.as_ref().and_then(|seen| seen.get("folder")?.as_str());
        command.cwd = WsPath::parse(allowed.unwrap_or(&input.cwd))?;
        command.stdin = input.stdin.unwrap_or_default().into_bytes();
        let begun = if input.background { Some(ctx.background.begin()?) } else { None };
        let (mut watch, mut handle) = (ctx.watch(), None);
        if let Some(Begun { handle: given, listener, answer, .. }) = begun {
            let first = Output::begun(given.clone());
            let (text, data) = (self.render(&first), serde_json::to_value(first).map_err(ToolError::internal)?);
            answer(Success { data, text, attachments: Vec::new(), revision: None, workflow: None });
            (watch, handle) = (watch.heard_by(listener), Some(given));
        }
        // Where the caller could read on.
        let reads_on = ctx.catalog.called(READS_ON).filter(|_| handle.is_none());
        let listening = reads_on.as_ref().and_then(|_| ctx.background.listen());
        if let Some(Listening { listener, .. }) = &listening {
            watch = watch.heard_by(Arc::clone(listener));
        }
        command.session = ctx.session.clone();
        let result = ctx.workspace.run(command, watch).await?;
        if result.output_limit_reached {
            return Err(ToolError::new(
                ErrorKind::Limit,
                "the command wrote more than the limit on output and was ended",
            )
            .hint("write to a file, or filter the output"));
        }
        if let Some(limit) = result.memory_limit_reached {
            let message = format!("the command used more than {} MiB of memory, its limit, and was ended", limit >> 20);
            return Err(ToolError::new(ErrorKind::Limit, message)
                .hint("run less at once, or let the person raise the limit (`--command-memory`)"));
        }
        if let Some(limit) = result.folder_limit_reached {
            return Err(folder_full(&limit));
        }
        let hint = git_hint::for_command(ctx.command, &result, &|tool| ctx.catalog.called(tool));
        let network = network_hint::for_command(ctx.workspace.fence(), &result);
        let mut stderr = result.stderr.text;
        if !result.restored.is_empty() {
            stderr.push_str(&format!(
                "[toolhost put back {}: what git or this host obeys stays as it was before the command; what was new there, if anything, is now in `toolhost-planted-…`]\n",
                named(&result.restored, CHANGED_MAX)
            ));
        }
        let waited = waited_note(&result.waited_for_terminal);
        for note in hint.into_iter().chain(waited).chain(network).chain(changed_note(&result.refs_changed)) {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(&format!("[toolhost: {note}]\n"));
        }
        let truncated = result.stdout.truncated || result.stderr.truncated;
        let kept = listening.filter(|_| truncated).map(|listening| (listening.keep)());
        if let (Some(kept), Some(tool)) = (&kept, reads_on) {
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(&format!("[toolhost: `{tool}` with the handle `{kept}` reads what was left out]\n"));
        }
        let put_back = result.restored.into_iter().take(CHANGED_MAX).collect();
        let refs_changed = result.refs_changed.into_iter().take(CHANGED_MAX);
        let refs_changed = refs_changed.map(|RefChange { name, from, to }| Changed { name, from, to }).collect();
        Ok(Output {
            exit_code: Some(result.exit_code),
            handle: handle.or(kept),
            signal: result.signal.map(|signal| signal.name()),
            truncated,
            stdout: result.stdout.text,
            stderr,
            timed_out: result.timed_out,
            duration_ms: u64::try_from(result.duration.as_millis()).unwrap_or(u64::MAX),
            fence: result.tier.as_str().to_owned(),
            refs_changed,
            put_back,
        })
    }
}

/// How long the command may take.
///
/// # Errors
/// It cannot run as it was asked for.
fn check(ctx: &Ctx<'_>, input: &Input) -> Result<Duration, ToolError> {
    if input.command.contains('\0') {
        return Err(ToolError::new(ErrorKind::Validation, "the command holds a NUL character"));
    }
    interactive::check(ctx.command, input.stdin.is_some())?;
    let (most, default) = match input.background {
        true => (ctx.grants.background_timeout_ms_max, u64::MAX),
        false => (ctx.grants.command_timeout_ms_max, TIMEOUT_MS_DEFAULT),
    };
    let timeout_ms = input.timeout_ms.unwrap_or(default.min(most));
    if timeout_ms > most {
        let message = format!("`timeoutMs` is {timeout_ms}; this profile grants {most} at most");
        return Err(ToolError::new(ErrorKind::Validation, message)
            .hint("run less at once, or let the person raise the profile's limit"));
    }
    Ok(Duration::from_millis(timeout_ms))
}

/// A command that filled a private folder of its session.
fn folder_full(limit: &FolderLimit) -> ToolError {
    let FolderLimit { folder, bytes_max, files_max, emptied } = limit;
    let message = format!(
        "the command was ended: `{folder}` held more than its limit of {} MiB or {files_max} files{}",
        bytes_max >> 20,
        if *emptied { ", and was emptied" } else { "" }
    );
    let hint = match emptied {
        true => "write less there: it lasts for the session, and what is there counts",
        false => "remove files there with the next command: they last for the session",
    };
    ToolError::new(ErrorKind::Limit, message).hint(hint)
}

fn not_told(why: &str) -> String {
    format!("  what it runs cannot be told ({why}): read it as it stands\n")
}

/// What is added to the answer where a program of the command waited for somebody to type.
fn waited_note(programs: &[String]) -> Option<String> {
    let mut programs = programs.to_vec();
    programs.sort_unstable();
    programs.dedup();
    let names: Vec<String> = programs.iter().take(WAITED_MAX).map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("{names} waited for a terminal and was ended: a command has none"))
}

/// What is added to the answer where the command, or something beside it, moved a branch.
fn changed_note(changes: &[RefChange]) -> Option<String> {
    let line = |change: &RefChange| {
        let name = visible_line(&change.name);
        let value = |value: &str| visible_line(value).chars().take(60).collect::<String>();
        match (&change.from, &change.to) {
            (Some(from), Some(to)) => format!("{name} from {} to {}", value(from), value(to)),
            (None, Some(to)) => format!("{name} to {}, new", value(to)),
            (Some(from), None) => format!("{name} from {}, deleted", value(from)),
            (None, None) => name,
        }
    };
    let mut lines: Vec<String> = changes.iter().take(CHANGED_MAX).map(line).collect();
    if changes.len() > CHANGED_MAX {
        lines.push(format!("{} more", changes.len() - CHANGED_MAX));
    }
    (!lines.is_empty()).then(|| format!("git references changed while this command ran: {}", lines.join("; ")))
}
