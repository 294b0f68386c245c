//! Starting programs in the repository, and finding out what the terminal can show.

use std::env;
use std::ffi::OsStr;
use std::io::{IsTerminal, stdout};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A shell's convention: 128 and the number of the signal that ended the program.
const EXIT_SIGNAL_BASE: i32 = 128;

/// The repository, fixed when xtask was built: commands work from any folder in it.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The folder that cargo builds into.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// `toolhost` as the tests have it, built if it is not up to date. Built for its package alone, the crates of others would get
/// other features, and all of them be built once more.
pub(crate) fn program(root: &Path) -> Result<PathBuf> {
    must_run(cargo(root).args(["build", "--quiet", "--locked", "--workspace", "--bin", "toolhost"]))?;
    Ok(target(root).join("debug/toolhost"))
}

/// The cargo that runs us, so that a toolchain chosen on the command line holds for the steps too. What cargo tells a program
/// of its package is not handed on: build scripts that look at it (ring's) would run again, and half of the crates with them.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    let of_a_package = |name: &OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| of_a_package(name)) {
        command.env_remove(name);
    }
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
