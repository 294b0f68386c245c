//! The program, started as a person starts it.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::workspace::TempWorkspace;

/// How long a program may run where nobody types.
const AT_TERMINAL_MAX: Duration = Duration::from_secs(120);

/// A program with the arguments and variables of every start.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// `None`: ended by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Program {
    /// The program at `path` for this workspace. Nothing of this machine's own settings is used.
    pub fn new(path: impl Into<PathBuf>, workspace: &TempWorkspace) -> Self {
        let home = workspace.beside("home");
        std::fs::create_dir_all(&home).unwrap();
        let mut arguments: Vec<OsString> = Vec::new();
        for (flag, value) in [("--root", workspace.root()), ("--state", workspace.state())] {
            arguments.push(flag.into());
            arguments.push(value.into());
        }
        let variables = vec![
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".to_owned(), home.into_os_string()),
        ];
        Self { path: path.into(), arguments, variables }
    }

    /// Without `--root` and `--state`.
    pub fn bare(mut self) -> Self {
        self.arguments.clear();
        self
    }

    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Not yet started, for a test that ends it itself.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        // Some working directory that is not the repository's.
        command.args(&self.arguments).args(arguments).current_dir("/var/tmp").env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it to its end with nothing on standard input.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with_input(arguments, b"")
    }

    /// Runs it at a terminal of so many columns where nobody types; what stood there, line by line. A shell runs `around`
    /// with the program in the place of `{}`. A program that waits for somebody fails the test.
    pub fn run_at_terminal(&self, columns: u16, around: &str, arguments: &[&str]) -> Vec<String> {
        let mut terminal = self.at_terminal(columns, around, arguments);
        let mut child = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut screen = child.stdout.take().unwrap();
        let (shows, shown) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            // Who has stopped waiting reads nothing.
            let _ = shows.send(screen.read_to_string(&mut text).map(|_| text));
        });
        let shown = shown.recv_timeout(AT_TERMINAL_MAX);
        if shown.is_err() {
            child.kill().unwrap();
        }
        child.wait().unwrap();
        assert!(shown.is_ok(), "it waits for somebody: {arguments:?}");
        rows(&shown.unwrap().unwrap())
    }

    /// As [`Program::run_at_terminal`], not yet started: what is written to its standard input is typed.
    pub fn at_terminal(&self, columns: u16, around: &str, arguments: &[&str]) -> Command {
        let command = self.command(arguments);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let quoted = |word: &OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        let line = format!("stty rows 40 cols {columns}; {}", around.replace("{}", &line));
        let mut terminal = Command::new("script");
        terminal.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir("/var/tmp").env_clear().env("TERM", "xterm");
        terminal.envs(self.variables.iter().map(|(name, value)| (name, value))).env("NO_COLOR", "1");
        terminal
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeding = std::thread::spawn(move || {
            // A program that does not read its input closes the pipe; that is its business.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Standard output as one JSON value.
    pub fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        assert!(parsed.is_ok(), "not JSON: {self:?}");
        parsed.unwrap()
    }
}

/// Processes of the whole machine with `marker` in their command line.
pub fn processes_named(marker: &str) -> usize {
    let cmdline = |pid: &std::fs::DirEntry| std::fs::read(pid.path().join("cmdline")).unwrap_or_default();
    let mut count = 0;
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        count += usize::from(cmdline(&process).windows(marker.len()).any(|part| part == marker.as_bytes()));
    }
    count
}

/// Waits until `holds`; a minute without it is a failure.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(holds(), "not within a minute: {what}");
}

/// Processes of the whole machine with `marker` in their environment.
pub fn environments_with(marker: &str) -> usize {
    let environ = |pid: &std::fs::DirEntry| std::fs::read(pid.path().join("environ")).unwrap_or_default();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|pid| environ(pid).windows(marker.len()).any(|part| part == marker.as_bytes())).count()
}

/// What stands at a terminal in the end, row by row, of what was written to it: lines that were drawn over are gone. Of its
/// commands it knows those that programs draw a status with; others stay in the text.
pub fn rows(written: &str) -> Vec<String> {
    let mut rows: Vec<Vec<char>> = vec![Vec::new()];
    let (mut row, mut column, mut rest) = (0_usize, 0, written.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => (row, column) = (row + 1, 0),
            '\u{1b}' if rest.peek() == Some(&'[') => {
                let mut command = String::new();
                rest.next();
                while let Some(c) = rest.next_if(char::is_ascii_digit) {
                    command.push(c);
                }
                let count = command.parse().unwrap_or(1);
                match rest.next() {
                    Some('A') => row = row.saturating_sub(count),
                    Some('J') => {
                        rows.truncate(row + 1);
                        rows[row].truncate(column);
                    }
                    Some('K') => rows[row].truncate(column),
                    Some('m') => {}
                    other => rows[row].extend(format!("\u{1b}[{command}").chars().chain(other)),
                }
            }
            c => {
                if rows[row].len() <= column {
                    rows[row].resize(column + 1, ' ');
                }
                rows[row][column] = c;
                column += 1;
            }
        }
        if rows.len() <= row {
            rows.resize(row + 1, Vec::new());
        }
    }
    let mut rows: Vec<String> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
    if written.ends_with('\n') || rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}
