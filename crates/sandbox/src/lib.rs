//! The only way to files, processes and the network.
//!
//! It knows files, processes, outgoing requests and limits, and refuses to know tools, JSON-RPC and SQL. Nothing here reads
//! the environment or the configuration: the caller says where the workspace is and what may be reached.
//!
//! Start with [`LocalExecutor`], which implements the port of `toolhost_contract::workspace` for this machine; then the `fence` module, what the kernel is asked to hold around a command.

mod allocator;
mod cgroup;
mod child;
mod error;
mod fence;
mod files;
mod git;
pub mod helper;
mod job;
mod limits;
mod local;
mod mark;
mod memory;
mod output;
mod proxy;
mod remote;
mod remover;
mod running;
mod session_folders;
mod spawner;
mod terminal;
pub mod typing;
mod walk;

pub use allocator::{Allocator, give_memory_back, give_thread_memory_back, keep_little_memory};
pub use error::from_io;
pub use fence::FenceChoice;
pub use files::{Tree, real_folder, repository_around, sha256_of, what_it_is};
pub use limits::Limits;
pub use local::{LocalConfig, LocalExecutor};
pub use memory::machine_memory_bytes;
pub use remover::{remove_folder, remove_tree};
pub use walk::{IGNORE_BYTES_MAX, WALK_ENTRIES_MAX};

/// The signal that comes with a write beyond a limit on the size of files.
#[must_use]
pub fn file_limit_signal() -> i32 {
    libc::SIGXFSZ
}
