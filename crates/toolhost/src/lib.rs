//! Toolhost in another program: the tools behind their gate, sessions of a model, and workflow packages.
//!
//! This is the one place that wires the crates together; the command line stands on it, too. It reads no environment and
//! no configuration file, and prints nothing: whatever it needs is handed to the [`Builder`]. It refuses to go around the
//! gate: a change is a call, or is recorded in the audit before and after.
//!
//! Start with [`Host::builder`]; then [`Host::start`] for a session, [`Host::packages`] and [`Host::changes`] for the
//! project's workflow package. `examples/service.rs` has all of it in one file.

mod builder;
mod changes;
mod connection;
mod error;
mod events;
mod fork;
mod host;
mod kit;
mod limits;
mod models;
mod package;
mod persona;
mod place;
mod semantic;
mod session;
mod session_tools;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use toolhost_contract::AnyTool;
use toolhost_deploy::Deployment;
use toolhost_host::Registry;
use toolhost_records::Records;
use toolhost_store::{Database, Steps, Subjects};

pub use builder::{Builder, Need};
pub use changes::{ApplyOptions, Changes};
pub use connection::{Connection, Recording, User, is_unwritable};
pub use error::{Error, Result};
pub use events::Run;
pub use fork::Fork;
pub use host::{Host, PROFILE_OF_PEOPLE, done};
pub use kit::Kit;
pub use limits::PROJECT_CHARS_MAX;
pub use models::{ModelConfig, ModelFiles, ModelPrice, Models, OpenModel};
pub use package::Packages;
pub use persona::PersonaRole;
pub use place::Place;
pub use semantic::{SEMANTIC_READ_TOOLS, execute_semantic_read_tool};
pub use session::{Session, SessionRequest, WORKSPACE_ITERATIONS, iterations_default};

pub use session_tools::{BUILDER_LOOP_TOOLS, SESSION_TOOLS};
pub use terminal::Terminal;
pub use toolhost_agent as agent;
pub use toolhost_builder as package_format;
pub use toolhost_contract as contract;
pub use toolhost_deploy as deploy;
pub use toolhost_host as gate;
pub use toolhost_records as records;
pub use toolhost_sandbox as sandbox;
pub use toolhost_store as store;
pub use toolhost_tools::PROFILES;

/// Those who keep tables of their own in the database.
pub const SUBJECTS: Subjects = &[&toolhost_records::Traces, &toolhost_builder::packages::Traces];

/// Every built-in tool, in the order lists show them. Those for records and packages find them in `database`, which may be opened
/// later; `deployment` says where the workspace is deployed to.
#[must_use]
pub fn tools(database: &Database, deployment: Option<&Deployment>) -> Vec<Box<dyn AnyTool>> {
    let families = [
        toolhost_tools::of_the_workspace(),
        toolhost_records::tools::all(&Records::new(database.clone())),
        toolhost_builder::tools::all(&toolhost_builder::Packages::new(database.clone())),
        toolhost_tools::of_people(),
        toolhost_deploy::tools(deployment),
        toolhost_tools::of_the_host(&Steps::new(database.clone())),
    ];
    families.into_iter().flatten().collect()
}

/// The built-in tools by their names, over a database.
///
/// # Errors
/// If two tools share a name, or a schema does not compile.
pub fn registry(database: &Database) -> Result<Registry> {
    Ok(Registry::new(tools(database, None))?)
}

/// The inside of the fence, for a program that names itself as [`Builder::fence_program`].
///
/// Such a program is started once more for each fenced command, as `PROGRAM sandbox-exec ...`. Its `main` therefore begins
/// with this, before it starts a runtime or a thread:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(code) = toolhost::fence_helper(std::env::args_os()) {
///         return code;
///     }
///     ExitCode::SUCCESS // the program itself
/// }
/// ```
///
/// `None`: the program was started for its own work. `arguments` are the whole command line.
pub fn fence_helper(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_helper = arguments.next().is_some_and(|first| first == toolhost_sandbox::helper::SUBCOMMAND);
    is_helper.then(|| toolhost_sandbox::helper::main(arguments.collect()))
}
