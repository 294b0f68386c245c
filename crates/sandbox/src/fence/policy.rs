//! What the helper is told to enforce, passed to it as one JSON argument.

use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The variable that names the descriptors a helper is handed; the command does not get it.
pub(crate) const HANDED_DOWN: &str = "TOOLHOST_HANDED_DOWN";

/// The descriptors that a helper is handed, under the numbers that they have in the host: given fixed ones, one of them could
/// take the place of another, or of the pipe on which a failed start is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandedDown {
    /// The helper writes one byte here when the fence stands, just before the command starts.
    pub(crate) ready: RawFd,
    /// A pipe whose other end only the host has: a byte asks for the command's end, its close says that the host has died.
    pub(crate) host: RawFd,
    /// A lock that the supervisor holds while anything of its command runs.
    pub(crate) lock: Option<RawFd>,
}

impl HandedDown {
    pub(crate) fn numbers(self) -> impl Iterator<Item = RawFd> {
        [self.ready, self.host].into_iter().chain(self.lock)
    }

    pub(crate) fn to_text(self) -> String {
        self.numbers().map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = text.split(',').map(|number| number.parse().ok()).collect::<Option<Vec<_>>>()?;
        match *numbers {
            [ready, host] => Some(Self { ready, host, lock: None }),
            [ready, host, lock] => Some(Self { ready, host, lock: Some(lock) }),
            _ => None,
        }
    }
}

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
    /// The supervisor asks its descendants to end before it kills them, and where the host has died it lets them end by
    /// themselves first.
    pub(crate) ends_in_order: bool,
    /// Where the command starts, if not where the helper does.
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    /// Readable as long as no link is on the way there.
    pub(crate) readable_plain: Vec<PathBuf>,
    /// What must be found where it was mounted.
    pub(crate) mounted: Vec<Mounted>,
    /// What must be found where the folders of these names are opened to let the command in.
    pub(crate) opened: Vec<Mounted>,
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
    /// Internet sockets only, in an empty network namespace without a way out.
    Loopback,
    /// The same, with the host's proxy as its way out.
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
    /// The mark of its processes, in a tier without a namespace of processes.
    pub(crate) mark: Option<u64>,
}
