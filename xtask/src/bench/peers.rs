//! The programs we are measured against: which, in which version, and how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::client::Server;
use crate::shell;

/// The reference server of the protocol's authors: the one most people start.
const NODE_PACKAGE: &str = "@modelcontextprotocol/server-filesystem";
const NODE_VERSION: &str = "2026.8.31";
/// The same idea in Rust, with neither policy nor audit: what speed costs nothing to reach.
const RUST_PACKAGE: &str = "rust-mcp-filesystem";
const RUST_VERSION: &str = "0.4.5";

/// A gateway that serves a server on stdio over HTTP.
const PROXY_PACKAGE: &str = "mcp-proxy";
const PROXY_VERSION: &str = "0.6.0";
/// The framework for servers in Python.
const FASTMCP: &str = "fastmcp==4.2.3";

/// The loop of adk-rust, beside its example.
const ADK_LOOP: &str = "loop_cost";
/// Other loops with tools.
const PYTHON_LOOPS: [&str; 2] = ["openai-agents==0.24.0", "pydantic-ai-slim[openai]==2.68.0"];

/// The peers' programs, where they are installed.
pub(crate) struct Peers {
    node: Result<PathBuf, String>,
    rust: Result<PathBuf, String>,
    ripgrep: Result<(), String>,
    adk: Result<PathBuf, String>,
    /// A Python with the other loops.
    python: Result<PathBuf, String>,
    proxy: Result<PathBuf, String>,
    /// A Python with fastmcp.
    fastmcp: Result<PathBuf, String>,
}

impl Peers {
    /// Looks for them; a missing one costs its rows their ratio, nothing more.
    pub(crate) fn find(folder: &Path) -> Self {
        let installed =
            |file: PathBuf, name: &str| if file.is_file() { Ok(file) } else { Err(format!("{name} is missing")) };
        Self {
            node: installed(folder.join("node_modules").join(NODE_PACKAGE).join("dist/index.js"), NODE_PACKAGE),
            rust: installed(folder.join("bin").join(RUST_PACKAGE), RUST_PACKAGE),
            adk: installed(folder.join("bin").join(ADK_LOOP), "adk-rust's loop"),
            python: installed(folder.join("loops/bin/python"), "a Python with openai-agents and pydantic-ai"),
            proxy: installed(folder.join("bin").join(PROXY_PACKAGE), PROXY_PACKAGE),
            fastmcp: installed(folder.join("fastmcp/bin/python"), "a Python with fastmcp"),
            ripgrep: if shell::has_program("rg") { Ok(()) } else { Err("ripgrep (`rg`) is missing".to_owned()) },
        }
    }

    /// What is said about those that were not found.
    pub(crate) fn missing(&self) -> Vec<&str> {
        let said = [&self.node, &self.rust, &self.adk, &self.python, &self.proxy, &self.fastmcp]
            .map(|found| found.as_ref().err());
        let said = said.into_iter().chain([self.ripgrep.as_ref().err()]);
        said.flatten().map(String::as_str).collect()
    }

    pub(crate) fn node_server(&self, root: &Path) -> Option<Server> {
        let script = self.node.as_ref().ok()?;
        Some(Server::new("server-filesystem", "node").arg(script).arg(root))
    }

    pub(crate) fn rust_server(&self, root: &Path) -> Option<Server> {
        Some(Server::new(RUST_PACKAGE, self.rust.as_ref().ok()?).arg(root))
    }

    /// The gateway, and the server that it is to start.
    pub(crate) fn mcp_proxy(&self) -> Option<(PathBuf, PathBuf)> {
        Some((self.proxy.as_ref().ok()?.clone(), self.rust.as_ref().ok()?.clone()))
    }

    /// A server of fastmcp's: `PORT`.
    pub(crate) fn fastmcp_server(&self, root: &Path) -> Option<Command> {
        let mut command = Command::new(self.fastmcp.as_ref().ok()?);
        command.arg(root.join("xtask/src/bench/fastmcp_server.py"));
        Some(command)
    }

    /// adk-rust's loop with a tool in memory: `URL STEPS`.
    pub(crate) fn adk_loop(&self) -> Option<Command> {
        self.adk.as_ref().ok().map(Command::new)
    }

    /// A loop of Python's: `NAME URL STEPS`.
    pub(crate) fn python_loop(&self, root: &Path, name: &str) -> Option<Command> {
        let mut command = Command::new(self.python.as_ref().ok()?);
        command.arg(root.join("xtask/src/bench/loops.py")).arg(name);
        Some(command)
    }

    /// ripgrep in a folder, without the person's own configuration.
    pub(crate) fn ripgrep(&self, root: &Path, arguments: &[&str]) -> Option<Command> {
        self.ripgrep.as_ref().ok()?;
        let mut command = Command::new("rg");
        command.arg("--no-config").args(arguments).current_dir(root);
        Some(command)
    }
}

/// Installs the peers at the versions above, each with its own language's client.
pub(crate) fn install(root: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(folder)
        .arg(format!("{NODE_PACKAGE}@{NODE_VERSION}"));
    shell::must_run(&mut npm)?;
    let mut cargo = shell::cargo(root);
    cargo.args(["install", "--locked", RUST_PACKAGE, "--version", RUST_VERSION, "--root"]).arg(folder);
    shell::must_run(&mut cargo)?;
    let mut cargo = shell::cargo(root);
    cargo.args(["install", "--locked", "--bin", ADK_LOOP, "--path", "examples/adk", "--root"]).arg(folder);
    shell::must_run(&mut cargo)?;
    // What it can do besides is neither built nor measured.
    let mut cargo = shell::cargo(root);
    cargo.args(["install", "--locked", "--no-default-features", PROXY_PACKAGE, "--version", PROXY_VERSION, "--root"]);
    shell::must_run(cargo.arg(folder))?;
    install_python(&folder.join("fastmcp"), &[FASTMCP])?;
    install_python(&folder.join("loops"), &PYTHON_LOOPS)
}

fn install_python(folder: &Path, packages: &[&str]) -> Result<()> {
    shell::must_run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    shell::must_run(Command::new(folder.join("bin/pip")).args(["install", "--quiet"]).args(packages))
}
