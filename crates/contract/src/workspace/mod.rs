//! The port that tools see of a workspace: its files, its commands and its remotes.
//!
//! [`Workspace`] is what a tool is handed; [`Executor`] is what implements it. The crate `sandbox` has the executor of this
//! machine; a container or another machine can be one, too.

mod absent;
mod command;
mod diff;
mod error;
mod executor;
mod glob;
mod path;
mod remote;
mod report;
mod text;

pub use absent::NoWorkspace;
pub use command::{
    CAPTURE_BYTES_DEFAULT, Captured, Command, CommandResult, FolderLimit, Progress, RefChange, Signal, Watch,
};
pub use diff::{Hunk, Unified, diff, hunks, split, unified};
pub use error::{Error, ErrorKind, Result};
pub use executor::{
    Access, ChangeLog, Content, Entry, EntryKind, Executor, FORMER_BYTES_MAX, Fence, FileChange, Former, HostRule,
    ListQuery, Listing, MatchLine, Present, ReadSpan, SearchPage, SearchQuery, Spot, Workspace, WriteGuard, Written,
};
pub use glob::{GLOB_BRACES_MAX, GLOB_BYTES_MAX, Glob, GlobStyle};
pub use path::{
    NAME_BYTES_MAX, PATH_BYTES_MAX, POLICY_FILE, PathError, STATE_FOLDER, WsPath, is_git_internal, is_state,
};
pub use remote::{Remote, RemoteAccess, RemoteCommand, RemoteResult, RemoteUrl, TokenSource};
pub use report::{FenceReport, MemoryReport, Probe, Tier};
pub use text::{Decoded, Encoding, decode, encode};
