//! What the helper is told to enforce, passed to it as one JSON argument.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the helper writes one byte when the fence stands, just before the command starts.
pub(crate) const READY_FD: i32 = 3;

/// Where a supervisor finds the lock that it holds while anything of its command runs.
pub(crate) const LOCK_FD: i32 = 4;

/// Where a supervisor finds a pipe whose other end only the host has: it is closed when the host has died, and when the
/// command is to end.
pub(crate) const HOST_FD: i32 = 5;

/// The helper's orders. Nothing in it is secret: the command can read it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// Become this user and group, without any other group.
    pub(crate) become_user: Option<(u32, u32)>,
    /// Give up every capability where root could not become somebody else.
    pub(crate) drop_capabilities: bool,
    /// Hold a fence at all; `false` only where the operator turned it off.
    pub(crate) enforce: bool,
    /// Stay alive as the parent and end every descendant: there is no pid namespace to do it.
    pub(crate) supervise: bool,
    /// The supervisor was handed [`HOST_FD`]. It asks its descendants to end before it kills them, and where the host has
    /// died it lets them end by themselves first.
    pub(crate) ends_in_order: bool,
    /// The supervisor was handed a lock, which it holds until the last process has ended.
    pub(crate) holds_lock: bool,
    /// Where the command starts, if not where the helper does.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    /// Readable as long as no link is on the way there.
    pub(crate) readable_plain: Vec<PathBuf>,
    /// What must be found where it was mounted.
    pub(crate) mounted: Vec<Mounted>,
    pub(crate) network: NetworkMode,
    /// A namespace of its own for System V's shared memory, semaphores and queues and for POSIX queues: they end with it.
    pub(crate) private_ipc: bool,
    pub(crate) limits: ResourceLimits,
}

/// A mount inside the workspace, and which file or folder the host meant.
///
/// `bwrap` goes by path and follows links, and another command may put one there in the meantime: the mount would show
/// what is outside. So the helper looks again before the command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NetworkMode {
    /// No socket of any family can be made.
    None,
    /// Internet sockets only, in an empty network namespace whose way out is the host's proxy.
    Proxy,
    /// Internet sockets in the host's own network: for git at a remote that the operator grants.
    Direct,
}

/// Limits of one command, set with `setrlimit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceLimits {
    pub(crate) cpu_seconds: u64,
    pub(crate) file_bytes: u64,
    pub(crate) open_files: u64,
    /// Memory of one process's own; not limited where a cgroup holds that of all of them.
    pub(crate) memory_bytes: Option<u64>,
    /// Counted for the whole user, so it is set only where the user is the fence's own.
    pub(crate) processes: Option<u64>,
}
