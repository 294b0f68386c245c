//! The only way to files, processes and the network.
//!
//! It knows files, processes, outgoing requests and limits, and refuses to know tools, JSON-RPC and SQL. Nothing here reads
//! the environment or the configuration: the caller says where the workspace is and what may be reached.
//!
//! Start with [`LocalExecutor`], which implements the port of `toolhost_contract::workspace` for this machine; then the `fence` module, what the kernel is asked to hold around a command. [`Deployer`] carries a finished
//! workspace into the user's own folder.

mod allocator;
mod cgroup;
mod child;
mod deploy;
mod deployment;
mod error;
mod fence;
mod files;
mod git;
pub mod helper;
mod job;
mod local;
mod memory;
mod output;
mod proxy;
mod remote;
mod remover;
mod running;
mod spawner;
mod terminal;
mod walk;

pub use allocator::{Allocator, give_memory_back, give_thread_memory_back, keep_little_memory};
pub use deploy::{
    DeployKey, DeployMark, DeployPlan, DeployRecord, DeployRules, DeployState, DeployStep, DeployWatch, Deployed,
    Deployer, FormerFile, Orphans, PROTECT_DEFAULT, PlannedFile, PlannedRemoval, Reason, Recovered, SHIP_DEFAULT,
    UndoPlan, Undone,
};
pub use deployment::{DeployProgress, Deployment};
pub use fence::FenceChoice;
pub use local::{Limits, LocalConfig, LocalExecutor};
pub use memory::machine_memory_bytes;
pub use remover::remove_folder;

/// The signal that comes with a write beyond a limit on the size of files.
#[must_use]
pub fn file_limit_signal() -> i32 {
    libc::SIGXFSZ
}
