//! People sign in at a real OpenID provider (npm `oidc-provider`), and a client gets a token of it that our server takes.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{npm, shell};

const PROVIDER: &str = "oidc-provider@9.13.3";
/// Who signs in.
const NAME: &str = "ada";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the provider is installed; a relative path begins at the root of the repository
    #[arg(long, value_name = "DIR", default_value = "target/clients/sign-in")]
    folder: PathBuf,
}

/// A program that is ended with us.
struct Started(Child);

impl Started {
    /// Starts it, and waits for the line that says it is ready.
    fn new(command: &mut Command) -> Result<Self> {
        let told = format!("{command:?}");
        let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {told}"))?;
        let output = child.stdout.take().context("its output is a pipe")?;
        let started = Self(child);
        let (mut output, mut line) = (BufReader::new(output), String::new());
        output.read_line(&mut line).with_context(|| format!("{told} says nothing"))?;
        ensure!(!line.is_empty(), "{told} ended before it was ready");
        // What it says later is read, too: a program that writes to a closed pipe ends.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(started)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // One that has ended by itself is ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let folder = root.join(&arguments.folder);
    npm::install(&folder, &[npm::NODE, PROVIDER])?;
    let program = shell::program(root)?;
    let room = tempfile::tempdir_in("/var/tmp").context("cannot make a folder")?;
    let workspace = room.path().join("workspace");
    std::fs::create_dir(&workspace).context("cannot make a workspace")?;
    let toolhost = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--json").args(arguments).arg("--root").arg(&workspace).env("HOME", room.path());
        command
    };
    let made = shell::stdout_of(&mut toolhost(&["token", "create", "first"]))?;
    let made: Value = serde_json::from_str(&made).context("a token is told as JSON")?;
    let project = made["project"].as_str().context("a token has a project")?;
    shell::stdout_of(&mut toolhost(&["member", "add", NAME, "editor"]))?;

    let (at_provider, at_server) = (free_port()?, free_port()?);
    let server = format!("http://localhost:{at_server}");
    let script = |name: &str| -> Result<Command> {
        // Beside the modules that it imports.
        let script = folder.join(name);
        std::fs::copy(root.join("xtask/src/sign_in").join(name), &script).context("cannot copy a script")?;
        let mut node = Command::new(folder.join("node_modules/.bin/node"));
        node.arg(script);
        Ok(node)
    };
    let _provider = Started::new(script("provider.mjs")?.args([&at_provider.to_string(), &server]))?;
    let listen = format!("127.0.0.1:{at_server}");
    let issuer = format!("http://127.0.0.1:{at_provider}");
    let mut serve = toolhost(&["serve", "--listen", &listen, "--public-url", &server]);
    serve.args(["--oauth-issuer", &issuer, "--openid-client", "toolhost"]).env("TOOLHOST_OPENID_SECRET", "s3cret");
    let _server = Started::new(&mut serve)?;
    shell::must_run(script("visit.mjs")?.args([server.as_str(), project, NAME]))?;
    Ok(ExitCode::SUCCESS)
}

/// A port that is free now.
fn free_port() -> Result<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(socket.local_addr().context("a socket has an address")?.port())
}
