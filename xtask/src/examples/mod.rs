//! `cargo xtask examples`: other agents' loops with our tools, each run as its README says against a model that plays a
//! script.
//!
//! An example is a promise to whoever copies it: that the two houses still fit, that each call passed the gate and was
//! written down. The examples only know the address of a model server, so that any that speaks OpenAI's chat completions
//! will do.

mod model;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::examples::model::{Model, Turn};
use crate::shell;

/// What the model writes, and reads again.
const FILE: &str = "NOTES.md";
const CONTENT: &str = "Written by an example.\n";
/// What it says in the end.
const LAST_WORDS: &str = "The notes are written.";
const GOAL: &str = "Write NOTES.md and look at it.";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only those with this in their name.
    #[arg(long, default_value = "")]
    only: String,
}

/// One example, by the name of its folder.
struct Example {
    name: &'static str,
    prepare: fn(&Stage) -> Result<Ready>,
}

const EXAMPLES: [Example; 2] =
    [Example { name: "openai-agents", prepare: openai_agents }, Example { name: "adk", prepare: adk }];

/// Whether an example can run here.
enum Ready {
    /// The command; the workspace, the state folder and the goal are put in by [`play`].
    Run(fn(&Stage, &Room) -> Command),
    /// Something it needs is not there and cannot be installed.
    Lacks(String),
}

/// What all examples share.
struct Stage {
    root: PathBuf,
    /// `toolhost`, built.
    program: PathBuf,
    /// Where the examples build and install what they need; kept from run to run.
    target: PathBuf,
}

/// Where one example runs.
struct Room {
    workspace: PathBuf,
    state: PathBuf,
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let program = shell::program(root)?;
    let stage = Stage { root: root.to_owned(), program, target: shell::target(root).join("examples") };
    let mut skipped = Vec::new();
    for example in EXAMPLES.iter().filter(|example| example.name.contains(&arguments.only)) {
        println!("{}", shell::bold(&format!("== example {}", example.name)));
        match (example.prepare)(&stage)? {
            Ready::Run(command) => {
                play(&stage, command).with_context(|| format!("the example {}", example.name))?;
                println!("{}: ok", example.name);
            }
            Ready::Lacks(what) => skipped.push(format!("SKIPPED: the example {}: {what}", example.name)),
        }
    }
    skipped.iter().for_each(|line| eprintln!("{}", shell::bold(line)));
    Ok(ExitCode::SUCCESS)
}

/// Runs one example in an empty workspace, and looks at what is there afterwards.
fn play(stage: &Stage, command: fn(&Stage, &Room) -> Command) -> Result<()> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let room = Room { workspace: folder.path().join("workspace"), state: folder.path().join("state") };
    fs::create_dir(&room.workspace)?;
    let model = Model::start(vec![
        Turn::call("file_write", serde_json::json!({ "path": FILE, "content": CONTENT })),
        Turn::call("file_read", serde_json::json!({ "path": FILE })),
        Turn::says(LAST_WORDS),
    ])?;
    let mut command = command(stage, &room);
    command.env("OPENAI_BASE_URL", &model.url).env("OPENAI_API_KEY", "of-nobody").env("OPENAI_MODEL", "script");
    let said = shell::stdout_of(&mut command)?;
    model.played()?;
    ensure!(said.contains(LAST_WORDS), "it did not end with the model's last words, but with: {said:.500}");
    let written = fs::read_to_string(room.workspace.join(FILE)).context("the model's file")?;
    ensure!(written == CONTENT, "{FILE} holds {written:?}");
    let ask = |arguments: &[&str]| {
        let mut toolhost = Command::new(&stage.program);
        toolhost.args(arguments).arg("--root").arg(&room.workspace).arg("--state").arg(&room.state);
        shell::stdout_of(&mut toolhost)
    };
    ask(&["audit", "verify"])?;
    let audit = ask(&["audit", "show"])?;
    for tool in ["file.write", "file.read"] {
        ensure!(audit.contains(tool), "the audit does not know of {tool}:\n{audit:.2000}");
    }
    Ok(())
}

/// The OpenAI Agents SDK, in an environment of its own.
fn openai_agents(stage: &Stage) -> Result<Ready> {
    let requirements = stage.root.join("examples/openai-agents/requirements.txt");
    let wanted = fs::read_to_string(&requirements).context("examples/openai-agents/requirements.txt")?;
    let venv = venv(stage);
    let installed = venv.join("installed.txt");
    if fs::read_to_string(&installed).ok().as_ref() == Some(&wanted) {
        return Ok(Ready::Run(openai_agents_command));
    }
    if !shell::has_program("python3") {
        return Ok(Ready::Lacks("there is no python3".to_owned()));
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv).status();
    if !made.is_ok_and(|status| status.success()) {
        return Ok(Ready::Lacks("python3 cannot make a virtual environment (Debian: python3-venv)".to_owned()));
    }
    let pip = Command::new(venv.join("bin/pip")).args(["install", "--quiet", "-r"]).arg(&requirements).status();
    if !pip.is_ok_and(|status| status.success()) {
        return Ok(Ready::Lacks("pip could not install its requirements".to_owned()));
    }
    fs::write(installed, wanted)?;
    Ok(Ready::Run(openai_agents_command))
}

fn openai_agents_command(stage: &Stage, room: &Room) -> Command {
    let mut command = Command::new(venv(stage).join("bin/python"));
    command.arg(stage.root.join("examples/openai-agents/agent.py")).arg(&room.workspace).arg(GOAL);
    command.env("TOOLHOST", &stage.program).env("TOOLHOST_STATE", &room.state);
    command
}

fn venv(stage: &Stage) -> PathBuf {
    stage.target.join("openai-agents")
}

/// adk-rust; its example is a workspace of its own, which builds beside ours.
fn adk(stage: &Stage) -> Result<Ready> {
    let manifest = stage.root.join("examples/adk/Cargo.toml");
    let mut build = shell::cargo(&stage.root);
    build
        .args(["build", "--locked", "--manifest-path"])
        .arg(manifest)
        .env("CARGO_TARGET_DIR", stage.target.join("adk"));
    shell::must_run(&mut build)?;
    Ok(Ready::Run(adk_command))
}

fn adk_command(stage: &Stage, room: &Room) -> Command {
    let mut command = Command::new(stage.target.join("adk/debug/toolhost-example-adk"));
    command.arg(&room.workspace).arg(&room.state).arg(GOAL);
    command
}

#[cfg(test)]
mod tests {
    use super::EXAMPLES;
    use crate::shell;
    use std::collections::BTreeSet;
    use std::fs;

    /// Folders that hold data rather than a program.
    const DATA: [&str; 1] = ["research-report"];

    #[test]
    fn every_example_that_runs_is_run() {
        let folders = fs::read_dir(shell::root().join("examples")).expect("there are examples");
        let folders: BTreeSet<String> =
            folders.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        let known: BTreeSet<String> =
            EXAMPLES.iter().map(|example| example.name).chain(DATA).map(str::to_owned).collect();
        assert_eq!(folders, known);
    }

    #[test]
    fn every_requirement_is_pinned() {
        let path = shell::root().join("examples/openai-agents/requirements.txt");
        let text = fs::read_to_string(path).expect("there are requirements");
        for line in text.lines() {
            assert!(
                line.split_once("==").is_some_and(|(name, version)| !name.is_empty() && !version.is_empty()),
                "{line}"
            );
        }
    }
}
