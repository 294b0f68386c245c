//! The only way to files, processes and the network.
//!
//! It knows paths, files, processes, outgoing requests and limits, and refuses to know tools, JSON-RPC and SQL. Nothing
//! here reads the environment or the configuration: the caller says where the workspace is and what may be reached.
//!
//! Start with [`Workspace`], what a caller is handed; then [`Executor`], the trait below it; [`LocalExecutor`], this
//! machine; and the `fence` module, what the kernel is asked to hold around a command. [`Deployer`] carries a finished
//! workspace into the user's own folder.

mod absent;
mod allocator;
mod cgroup;
mod command;
mod deploy;
mod deployment;
mod error;
mod executor;
mod fence;
mod files;
mod git;
mod glob;
pub mod helper;
mod local;
mod memory;
mod output;
mod path;
mod proxy;
mod remote;
mod remover;
mod running;
mod shell;
mod spawner;
mod terminal;
mod text;
mod walk;

pub use absent::NoWorkspace;
pub use allocator::{Allocator, give_memory_back, give_thread_memory_back, keep_little_memory};
pub use command::{Command, CommandResult, Progress, Signal, Watch};
pub use deploy::{
    DeployKey, DeployMark, DeployPlan, DeployRecord, DeployRules, DeployState, DeployStep, DeployWatch, Deployed,
    Deployer, FormerFile, Orphans, PROTECT_DEFAULT, PlannedFile, PlannedRemoval, Reason, Recovered, SHIP_DEFAULT,
    UndoPlan, Undone,
};
pub use deployment::{DeployProgress, Deployment};
pub use error::{Error, ErrorKind, Result};
pub use executor::{
    Access, BoxFuture, ChangeLog, Content, Entry, EntryKind, Executor, FORMER_BYTES_MAX, Fence, FileChange, Former,
    HostRule, ListQuery, Listing, MatchLine, Present, ReadSpan, SearchPage, SearchQuery, Spot, Workspace, WriteGuard,
    Written,
};
pub use fence::{FenceChoice, FenceReport, MemoryReport, Probe, Tier};
pub use git::RefChange;
pub use glob::{GLOB_BRACES_MAX, GLOB_BYTES_MAX, Glob, GlobStyle};
pub use local::{Limits, LocalConfig, LocalExecutor};
pub use memory::machine_memory_bytes;
pub use output::{CAPTURE_BYTES_DEFAULT, Captured};
pub use path::{NAME_BYTES_MAX, PATH_BYTES_MAX, POLICY_FILE, PathError, WsPath, is_git_internal};
pub use remote::{Remote, RemoteAccess, RemoteCommand, RemoteResult, RemoteUrl, TokenSource};
pub use remover::remove_folder;
pub use shell::{Analyzed, SimpleCommand, Word, analyze};
pub use text::{Decoded, Encoding, decode, diff, encode};

/// The signal that comes with a write beyond a limit on the size of files.
#[must_use]
pub fn file_limit_signal() -> i32 {
    libc::SIGXFSZ
}
