//! Real clients, each of which lists the tools of our server and reads a file with one of them: over standard input and output, where the
//! client starts the server, and over HTTP, where it has a token.
//!
//! Those that need a model get one that plays two turns (`model.py`): it calls the tool that reads files, under the name by which the
//! client offers it, and says what it was answered. What a client shows then proves the whole way there and back.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{npm, shell};

/// What is in the file that each client reads.
const SECRET: &str = "the-secret-word is kumquat";
const FILE: &str = "a.txt";
const ASK: &str = "read a.txt";
/// How long one client may take, as `timeout` has it. The first start of opencode fetches a package.
const TIME_MAX: &str = "180";
const PROFILE: [&str; 2] = ["--profile", "developer"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the clients are installed; a relative path begins at the root of the repository
    #[arg(long, value_name = "DIR", default_value = "target/clients")]
    folder: PathBuf,
    /// Try only the clients whose name has this in it
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// From where a client comes.
#[derive(Clone, Copy, PartialEq)]
enum From {
    Npm,
    /// PyPI.
    Pip,
}

struct Client {
    name: &'static str,
    from: From,
    package: &'static str,
    version: &'static str,
    /// Whether a model decides what it calls.
    has_model: bool,
    /// Packages that it needs beside its own.
    needs: &'static [&'static str],
    /// The command that reads the file.
    reads: fn(&Stage) -> Result<Command>,
}

#[rustfmt::skip]
const CLIENTS: [Client; 8] = [
    Client { name: "Claude Code", from: From::Npm, package: "@anthropic-ai/claude-code", version: "2.1.197", has_model: true, needs: &[], reads: claude },
    Client { name: "Codex", from: From::Npm, package: "@openai/codex", version: "0.171.0", has_model: true, needs: &[], reads: codex },
    Client { name: "opencode", from: From::Npm, package: "opencode-ai", version: "1.18.33", has_model: true, needs: &[], reads: opencode },
    Client { name: "Inspector", from: From::Npm, package: "@modelcontextprotocol/inspector", version: "2.12.0", has_model: false, needs: &[npm::NODE], reads: inspector },
    Client { name: "Python SDK", from: From::Pip, package: "mcp", version: "2.3.0", has_model: false, needs: &[], reads: |stage| stage.python("mcp") },
    Client { name: "fastmcp", from: From::Pip, package: "fastmcp", version: "4.2.3", has_model: false, needs: &[], reads: |stage| stage.python("fastmcp") },
    Client { name: "pydantic-ai", from: From::Pip, package: "pydantic-ai-slim[mcp,openai]", version: "2.68.0", has_model: true, needs: &[], reads: |stage| stage.python("pydantic-ai") },
    Client { name: "openai-agents", from: From::Pip, package: "openai-agents", version: "0.24.0", has_model: true, needs: &[], reads: |stage| stage.python("openai-agents") },
];

/// How a client speaks to the server.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    Stdio,
    Http,
}

impl Over {
    fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        }
    }
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let folder = root.join(&arguments.folder);
    let program = shell::program(root)?;
    let chosen: Vec<&Client> = CLIENTS.iter().filter(|client| client.name.contains(&arguments.only)).collect();
    ensure!(!chosen.is_empty(), "no client has `{}` in its name", arguments.only);
    let mut is_whole = true;
    println!("{:<14} {:<10} {:<6} {:<28} read the file", "client", "version", "over", "the model was offered");
    for client in chosen {
        for over in [Over::Stdio, Over::Http] {
            let tried = install(client, &folder).and_then(|()| attempt(client, over, root, &folder, &program));
            is_whole &= tried.is_ok();
            let (name, version, over) = (client.name, client.version, over.name());
            match tried {
                Ok(offered) => println!("{name:<14} {version:<10} {over:<6} {offered:<28} yes"),
                Err(error) => println!("{name:<14} {version:<10} {over:<6} {:<28} NO: {error:#}", ""),
            }
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs one client in its version, if it is not there.
fn install(client: &Client, folder: &Path) -> Result<()> {
    let place = client.place(folder);
    if client.from == From::Npm {
        let own = format!("{}@{}", client.package, client.version);
        let packages: Vec<&str> = [own.as_str()].iter().chain(client.needs).copied().collect();
        return npm::install(&place, &packages);
    }
    let done = place.join(format!("installed-{}", client.version));
    if done.is_file() {
        return Ok(());
    }
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    shell::must_run(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
    let package = format!("{}=={}", client.package, client.version);
    shell::must_run(Command::new(place.join("bin/pip")).args(["install", "--quiet", &package]))?;
    std::fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))
}

/// Lets a client read the file; answers what its model was offered.
fn attempt(client: &Client, over: Over, root: &Path, folder: &Path, program: &Path) -> Result<String> {
    let room = tempfile::tempdir_in("/var/tmp").context("cannot make a folder")?;
    let workspace = room.path().join("workspace");
    std::fs::create_dir(&workspace).context("cannot make a workspace")?;
    std::fs::write(workspace.join(FILE), format!("{SECRET}\n")).context("cannot write the file")?;
    let model = Model::start(root)?;
    let server = match over {
        Over::Stdio => None,
        Over::Http => Some(HttpServer::start(program, room.path(), &workspace)?),
    };
    let stage = Stage {
        server: server.as_ref(),
        root,
        place: client.place(folder),
        room: room.path(),
        workspace: &workspace,
        program,
        port: model.port,
    };
    let command = (client.reads)(&stage)?;
    let mut limited = Command::new("timeout");
    limited.arg(TIME_MAX).arg(command.get_program()).args(command.get_args()).current_dir(&workspace);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    // A home of its own: nothing of the person's configures it, and it changes nothing of theirs.
    limited.env("HOME", room.path()).env("NO_COLOR", "1").env("PWD", &workspace).stdin(Stdio::null());
    let output = limited.output().with_context(|| format!("cannot start {}", client.name))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !said.contains(SECRET) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("it ended with {}, said {said:?} and complained {complaint:?}", output.status);
    }
    if !client.has_model {
        return Ok("-".to_owned());
    }
    let asked = model.end()?;
    let last = asked.last().context("the model was not asked")?;
    ensure!(last["answered"] == true, "the model was not told what the tool answered: {last}");
    Ok(format!("{}, of {} tools", last["name"].as_str().unwrap_or_default(), last["tools"]))
}

impl Client {
    fn place(&self, folder: &Path) -> PathBuf {
        folder.join(self.name.replace(' ', "-"))
    }
}

/// What a client is started with.
struct Stage<'a> {
    root: &'a Path,
    /// Where it is installed.
    place: PathBuf,
    /// A folder of its own.
    room: &'a Path,
    workspace: &'a Path,
    /// Our server.
    program: &'a Path,
    /// Where the model listens.
    port: u16,
    /// The server over HTTP; `None`: the client starts one.
    server: Option<&'a HttpServer>,
}

impl Stage<'_> {
    /// The arguments of our server.
    fn arguments(&self) -> Vec<String> {
        let state = self.room.join("state").display().to_string();
        let named = ["mcp", "--root", &self.workspace.display().to_string(), "--state", &state].map(str::to_owned);
        named.into_iter().chain(PROFILE.map(str::to_owned)).collect()
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A program that npm has installed. It finds the others there first, a Node too.
    fn node(&self, name: &str) -> Command {
        let programs = self.place.join("node_modules/.bin");
        let others = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(programs.clone()).chain(env::split_paths(&others)));
        let mut command = Command::new(programs.join(name));
        // Of a path that cannot be joined, the person's own is left.
        if let Ok(path) = path {
            command.env("PATH", path);
        }
        command
    }

    fn python(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.place.join("bin/python"));
        command.arg(self.root.join("xtask/src/clients/sdks.py")).args([name, &self.port.to_string()]);
        match self.server {
            Some(server) => command.args([&server.url, &server.token]),
            None => command.arg(self.program).args(self.arguments()),
        };
        Ok(command)
    }

    fn write(&self, path: &Path, text: &str) -> Result<()> {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn claude(stage: &Stage) -> Result<Command> {
    let server = match stage.server {
        Some(server) => json!({ "type": "http", "url": server.url, "headers": { "Authorization": server.bearer() } }),
        None => json!({ "command": stage.program, "args": stage.arguments() }),
    };
    let config = stage.room.join("mcp.json");
    stage.write(&config, &json!({ "mcpServers": { "toolhost": server } }).to_string())?;
    let mut command = stage.node("claude");
    command.args([
        "--print",
        ASK,
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__toolhost",
        "--model",
        "claude-sonnet-4-5",
    ]);
    command.arg("--mcp-config").arg(config).env("ANTHROPIC_BASE_URL", stage.url()).env("ANTHROPIC_API_KEY", "sk-ant-x");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_TELEMETRY", "1");
    Ok(command)
}

fn codex(stage: &Stage) -> Result<Command> {
    let home = stage.room.join("codex");
    std::fs::create_dir(&home).context("cannot make a home for Codex")?;
    let server = match stage.server {
        Some(server) => json!({ "url": server.url, "bearer_token_env_var": "TOOLHOST_TOKEN" }),
        None => json!({ "command": stage.program, "args": stage.arguments() }),
    };
    let config = toml::Table::try_from(json!({
        "model": "mock", "model_provider": "mock", "sandbox_mode": "read-only",
        "model_providers": { "mock": { "name": "mock", "base_url": format!("{}/v1", stage.url()), "wire_api": "responses" } },
        "mcp_servers": { "toolhost": server },
    }))?;
    stage.write(&home.join("config.toml"), &config.to_string())?;
    let mut command = stage.node("codex");
    command.args(["exec", "--skip-git-repo-check", ASK]).env("CODEX_HOME", home);
    if let Some(server) = stage.server {
        command.env("TOOLHOST_TOKEN", &server.token);
    }
    Ok(command)
}

fn opencode(stage: &Stage) -> Result<Command> {
    let started: Vec<String> = std::iter::once(stage.program.display().to_string()).chain(stage.arguments()).collect();
    let server = match stage.server {
        Some(server) => {
            json!({ "type": "remote", "url": server.url, "headers": { "Authorization": server.bearer() }, "enabled": true })
        }
        None => json!({ "type": "local", "command": started, "enabled": true }),
    };
    let options = json!({ "baseURL": format!("{}/v1", stage.url()), "apiKey": "x" });
    let models = json!({ "mock": { "name": "mock", "tool_call": true } });
    let provider = json!({ "npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models });
    let config = json!({
        "model": "mock/mock", "small_model": "mock/mock", "provider": { "mock": provider },
        "mcp": { "toolhost": server },
    });
    stage.write(&stage.workspace.join("opencode.json"), &config.to_string())?;
    let mut command = stage.node("opencode");
    command.args(["run", ASK]);
    Ok(command)
}

fn inspector(stage: &Stage) -> Result<Command> {
    let mut command = stage.node("mcp-inspector");
    command.arg("--cli");
    match stage.server {
        Some(server) => command.args([
            &server.url,
            "--transport",
            "http",
            "--header",
            &format!("Authorization: {}", server.bearer()),
        ]),
        None => command.arg(stage.program).args(stage.arguments()),
    };
    command.args(["--method", "tools/call", "--tool-name", "file_read", "--tool-arg", "path=a.txt"]);
    Ok(command)
}

/// Our server over HTTP, and a token for it. Dropped, it ends.
struct HttpServer {
    child: Child,
    url: String,
    token: String,
}

impl HttpServer {
    fn start(program: &Path, room: &Path, workspace: &Path) -> Result<Self> {
        let state = room.join("state");
        let ours = || {
            let mut command = Command::new(program);
            command.arg("--root").arg(workspace).arg("--state").arg(&state).arg("--json");
            command
        };
        let made = shell::stdout_of(ours().args(["token", "create", "client"]).args(PROFILE))?;
        let made: Value = serde_json::from_str(&made).context("the token")?;
        let token = made["token"].as_str().context("there is no token")?.to_owned();
        let mut command = ours();
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let mut said = BufReader::new(child.stdout.take().context("its output was piped above")?);
        let mut text = String::new();
        let told: Value = loop {
            ensure!(said.read_line(&mut text)? > 0, "the server ended: {text}");
            if let Ok(told) = serde_json::from_str(&text) {
                break told;
            }
        };
        let url = format!("http://{}/mcp", told["address"].as_str().context("the server says no address")?);
        Ok(Self { child, url, token })
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The model of one client. Dropped, it ends.
struct Model {
    child: Child,
    said: BufReader<ChildStdout>,
    port: u16,
}

impl Model {
    fn start(root: &Path) -> Result<Self> {
        let mut command = Command::new("python3");
        command.arg("-u").arg(root.join("xtask/src/clients/model.py")).arg(FILE).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the model: it needs python3")?;
        let mut said = BufReader::new(child.stdout.take().context("its output was piped above")?);
        let mut line = String::new();
        said.read_line(&mut line).context("the model says no port")?;
        let port = line.trim().parse().with_context(|| format!("the model says {line:?} for its port"))?;
        Ok(Self { child, said, port })
    }

    /// What it was asked.
    fn end(mut self) -> Result<Vec<Value>> {
        self.child.kill().context("cannot end the model")?;
        let mut said = String::new();
        self.said.read_to_string(&mut said).context("what the model was asked")?;
        said.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
