//! A command to run in the fence, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Tier, WsPath};
use crate::background::Listener;
use crate::session::Session;

/// Bytes kept of each end of a stream.
pub const CAPTURE_BYTES_DEFAULT: usize = 32 * 1024;

/// A program with arguments; no shell unless the program is one.
#[derive(Debug, Clone)]
pub struct Command {
    /// A name looked up in the fence's `PATH`, then its arguments.
    pub argv: Vec<String>,
    pub cwd: WsPath,
    /// Variables besides those of the fence.
    pub env: Vec<(String, String)>,
    /// Bytes for standard input; empty means end of file at once.
    pub stdin: Vec<u8>,
    /// A file that is standard input instead.
    pub stdin_file: Option<Arc<std::fs::File>>,
    pub timeout: Duration,
    /// Bytes kept of each end of each stream.
    pub capture_bytes: usize,
    /// Whether it sees the toolchains. A program of the system starts sooner without: each is a mount.
    pub toolchains: bool,
    /// It is git as a tool of the host runs it: it may change the data of `.git`, which other commands see read-only.
    pub is_git: bool,
    /// It changes files of the workspace with `.git` writable, and follows a link that takes a folder's place meanwhile: it runs
    /// while no other command does, and none begins before its end.
    pub changes_files: bool,
    /// It is asked to end by SIGTERM before it is killed: git then removes its lock files, which would stop every later git.
    pub ends_in_order: bool,
    /// A process of it that waits for the other end of a FIFO is ended after a second.
    pub ends_fifo_waits: bool,
    /// The session whose private `/tmp` and home it has. `None`: it has empty ones, which are removed when it ends.
    pub session: Option<Session>,
}

impl Command {
    /// A command in the workspace root with empty input.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>, timeout: Duration) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: WsPath::root(),
            env: Vec::new(),
            stdin: Vec::new(),
            stdin_file: None,
            timeout,
            capture_bytes: CAPTURE_BYTES_DEFAULT,
            toolchains: true,
            is_git: false,
            changes_files: false,
            ends_in_order: false,
            ends_fifo_waits: false,
            session: None,
        }
    }
}

/// How a caller follows and ends a running command.
#[derive(Clone)]
pub struct Watch {
    pub cancel: CancellationToken,
    /// Called now and then while the command runs.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Takes what the command prints, as it comes: stdout and stderr.
    pub output: Option<Listener>,
}

impl Watch {
    /// Nobody watches; only the deadline ends the command.
    pub fn unattended() -> Self {
        Self { cancel: CancellationToken::new(), progress: None, output: None }
    }

    /// The same, with another that takes the output.
    #[must_use]
    pub fn heard_by(mut self, other: Listener) -> Self {
        self.output = Some(match self.output.take() {
            Some(first) => Arc::new(move |piece: &[u8]| {
                first(piece);
                other(piece);
            }),
            None => other,
        });
        self
    }
}

/// Where a running command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub elapsed: Duration,
    pub output_bytes: u64,
}

/// What came of a command. A failing one is a result, not an error.
#[derive(Debug, Clone)]
pub struct CommandResult {
    /// As a shell says it: 128 + n when signal n ended the command.
    pub exit_code: i32,
    pub signal: Option<Signal>,
    pub stdout: Captured,
    pub stderr: Captured,
    pub timed_out: bool,
    /// The command wrote more than the limit and was ended for it.
    pub output_limit_reached: bool,
    /// The command used more memory than this limit, in bytes, or so much that the machine ran out, and was ended for it.
    pub memory_limit_reached: Option<u64>,
    /// The private folder of its session came to hold more than it may, and the command was ended for it.
    pub folder_limit_reached: Option<FolderLimit>,
    /// Programs that were ended because they waited for a terminal, which no command has.
    pub waited_for_terminal: Vec<String>,
    /// Whether one was ended because it waited for the other end of a FIFO.
    pub waited_for_fifo: bool,
    pub duration: Duration,
    /// The fence this very command ran in.
    pub tier: Tier,
    /// Files that arm git, which the command had changed and the host has put back.
    pub restored: Vec<String>,
    /// Branches and other references that changed while the command ran, where it could write `.git`: in the Landlock tier.
    pub refs_changed: Vec<RefChange>,
}

/// The limit of a session's private folder that a command has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderLimit {
    /// `/tmp` or `~`, as the command names it.
    pub folder: &'static str,
    pub bytes_max: u64,
    pub files_max: u64,
    /// It held so much that the host has emptied it.
    pub emptied: bool,
}

/// A signal that ended a command, by its number on Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// The usual name, such as `SIGKILL`.
    pub fn name(self) -> String {
        let known = [
            (1, "SIGHUP"),
            (2, "SIGINT"),
            (3, "SIGQUIT"),
            (4, "SIGILL"),
            (5, "SIGTRAP"),
            (6, "SIGABRT"),
            (7, "SIGBUS"),
            (8, "SIGFPE"),
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (13, "SIGPIPE"),
            (15, "SIGTERM"),
            (24, "SIGXCPU"),
            (25, "SIGXFSZ"),
            (31, "SIGSYS"),
        ];
        known
            .iter()
            .find(|(number, _)| *number == self.0)
            .map_or_else(|| format!("signal {}", self.0), |(_, name)| (*name).to_owned())
    }
}

/// A stream as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Text with one line in place of what was left out; invalid UTF-8 replaced.
    pub text: String,
    /// Bytes the command wrote in all.
    pub bytes: u64,
    pub truncated: bool,
}

/// A reference that is not what it was before a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// `HEAD`, a full name such as `refs/heads/main`, or `rebase-merge/git-rebase-todo`.
    pub name: String,
    /// The commit, or `ref: ` and another reference; `None` if the reference did not exist.
    pub from: Option<String>,
    /// `None` if the reference does not exist any more.
    pub to: Option<String>,
}
