//! Starting programs in the repository, and finding out what the terminal can show.

use std::env;
use std::ffi::OsStr;
use std::io::{IsTerminal, stdout};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A shell's convention: 128 and the number of the signal that ended the program.
const EXIT_SIGNAL_BASE: i32 = 128;

/// The repository, fixed when xtask was built: commands work from any folder in it.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The cargo that runs us, so that a toolchain chosen on the command line holds for the steps too.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// The exit code a shell would report.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| EXIT_SIGNAL_BASE + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Runs a program to its end and returns what it printed; its complaints go to the terminal.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let told = told(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{told}`"))?;
    if !output.status.success() {
        bail!("`{told}` failed with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{told}` printed something that is not UTF-8"))
}

/// Runs a program that talks to the person itself; an error unless it succeeds.
pub(crate) fn must_run(command: &mut Command) -> Result<()> {
    let told = told(command);
    let status = command.status().with_context(|| format!("cannot start `{told}`"))?;
    if !status.success() {
        bail!("`{told}` failed with {status}");
    }
    Ok(())
}

/// Whether a program of this name is on the PATH.
pub(crate) fn has_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Text in bold, where the terminal wants it: `NO_COLOR` and anything that is not a terminal get plain text.
pub(crate) fn bold(text: &str) -> String {
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) || !stdout().is_terminal();
    if plain { text.to_owned() } else { format!("\u{1b}[1m{text}\u{1b}[0m") }
}

fn told(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
