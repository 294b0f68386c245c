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

/// The peers' programs, where they are installed.
pub(crate) struct Peers {
    node: Result<PathBuf, String>,
    rust: Result<PathBuf, String>,
    ripgrep: Result<(), String>,
}

impl Peers {
    /// Looks for them; a missing one costs its rows their ratio, nothing more.
    pub(crate) fn find(folder: &Path) -> Self {
        let installed =
            |file: PathBuf, name: &str| if file.is_file() { Ok(file) } else { Err(format!("{name} is missing")) };
        Self {
            node: installed(folder.join("node_modules").join(NODE_PACKAGE).join("dist/index.js"), NODE_PACKAGE),
            rust: installed(folder.join("bin").join(RUST_PACKAGE), RUST_PACKAGE),
            ripgrep: if shell::has_program("rg") { Ok(()) } else { Err("ripgrep (`rg`) is missing".to_owned()) },
        }
    }

    /// What is said about those that were not found.
    pub(crate) fn missing(&self) -> Vec<&str> {
        let said = [self.node.as_ref().err(), self.rust.as_ref().err(), self.ripgrep.as_ref().err()];
        said.into_iter().flatten().map(String::as_str).collect()
    }

    pub(crate) fn node_server(&self, root: &Path) -> Option<Server> {
        let script = self.node.as_ref().ok()?;
        Some(Server::new("server-filesystem", "node").arg(script).arg(root))
    }

    pub(crate) fn rust_server(&self, root: &Path) -> Option<Server> {
        Some(Server::new(RUST_PACKAGE, self.rust.as_ref().ok()?).arg(root))
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
    shell::must_run(&mut cargo)
}
