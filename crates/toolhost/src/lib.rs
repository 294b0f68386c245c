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
mod host;
mod models;
mod package;
mod persona;
mod place;
mod session;

use std::ffi::OsString;
use std::process::ExitCode;

use toolhost_contract::ToolInfo;
use toolhost_host::Registry;
use toolhost_store::Records;

pub use builder::{Builder, Kit, Need, PROJECT_CHARS_MAX};
pub use changes::{ApplyOptions, Changes};
pub use connection::{Connection, Recording, User, is_unwritable};
pub use error::{Error, Result};
pub use events::Run;
pub use host::{Host, done};
pub use models::{ModelConfig, ModelFiles, ModelPrice, Models, OpenModel};
pub use package::Packages;
pub use persona::PersonaRole;
pub use place::Place;
pub use session::{Session, SessionRequest, WORKSPACE_ITERATIONS, iterations_default};

pub use toolhost_agent as agent;
pub use toolhost_builder as package_format;
pub use toolhost_contract as contract;
pub use toolhost_host as gate;
pub use toolhost_sandbox as sandbox;
pub use toolhost_store as store;

/// The tools there are, over these records.
///
/// # Errors
/// If two tools share a name, or a schema does not compile.
pub fn registry(records: &Records) -> Result<Registry> {
    Ok(Registry::new(toolhost_tools::all(records, None))?)
}

/// What the tools say of themselves, which is the same whatever records they find.
fn info() -> Vec<ToolInfo> {
    toolhost_tools::all(&Records::nowhere(), None).iter().map(|tool| tool.info()).collect()
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
