//! Errors of the operating system, as errors of the workspace.

use toolhost_contract::workspace::Error;

/// Maps an error of the operating system for a workspace path.
pub fn from_io(path: &str, source: std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    let path = path.to_owned();
    match source.raw_os_error() {
        // What `openat2` answers when a link leaves the tree, and a path through a magic link or a loop.
        Some(libc::EXDEV | libc::ELOOP) => return Error::Escape { path },
        Some(libc::ENOTDIR) => return Error::NotFound { path },
        Some(libc::EISDIR) => return Error::NotRegular { path, what: "a folder" },
        // Opening a socket, or a FIFO that nobody reads, for writing.
        Some(libc::ENXIO) => return Error::NotRegular { path, what: "a socket or a FIFO" },
        _ => {}
    }
    match source.kind() {
        K::NotFound => Error::NotFound { path },
        // What a folder says that is not the one which was opened.
        K::StaleNetworkFileHandle => Error::OtherFolder,
        K::AlreadyExists => Error::Exists { path },
        // cap-std's own word for a path that leaves the directory.
        K::PermissionDenied if source.raw_os_error().is_none() => Error::Escape { path },
        _ => Error::Io { path, source },
    }
}
