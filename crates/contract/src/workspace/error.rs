//! What can go wrong in the workspace, said without a host path.

use super::PathError;

pub type Result<T> = std::result::Result<T, Error>;

/// A failed file operation or command. Messages name workspace paths only.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Path(#[from] PathError),
    /// The kernel or the walker refused to follow something out of the workspace.
    #[error("`{path}` leads out of the workspace")]
    Escape { path: String },
    #[error("`{path}` is inside git's own folder, which file tools do not change")]
    GitInternal { path: String },
    #[error("`{path}` is the project's policy, which tools do not change")]
    Policy { path: String },
    #[error("`{path}` belongs to deploys into this folder, which tools do not change")]
    State { path: String },
    #[error("`{path}` is what a person's git obeys, which tools do not change")]
    GitObeys { path: String },
    #[error("the workspace's `.git` is a link, which cannot be guarded")]
    LinkedGit,
    /// What git takes for hooks would be each file of the workspace.
    #[error(
        "`core.hooksPath` of a repository here names the workspace itself: each file that a command makes could be a hook"
    )]
    HooksEverywhere,
    #[error(
        "git's settings include `{path}`, which cannot be read in the fence, so it is not known what git obeys here"
    )]
    GitUnreadable { path: String },
    #[error(
        "while a command ran, what git or this host obeys was exchanged, or settings began to name it, and the command may have written it: {names}"
    )]
    Exchanged { names: String },
    /// The person's settings name something since a command began that is under way, and that command can write it.
    #[error("git's settings name {names} since a command began that is still under way and can write there")]
    NamedSince { names: String },
    #[error("git does not say what it obeys here, so no command runs: {said}")]
    GitRefuses { said: String },
    #[error("git did not answer within {seconds} s when asked which files it obeys")]
    GitSilent { seconds: u64 },
    #[error("git would wait without end for these, which are FIFOs or lead to one or to a device: {names}")]
    GitWaits { names: String },
    /// A read-only mount of one name does not cover another.
    #[error(
        "git obeys these files, and each has a second name (a hard link) through which a command could change it: {names}"
    )]
    Shared { names: String },
    /// A command changed what git obeys, and that could not be undone; commands are refused until it is.
    #[error("what a command has changed of git's own files could not be put back: {names}")]
    NotRestored { names: String },
    #[error("a command is under way in the workspace")]
    CommandUnderWay,
    /// Two hosts of one workspace differ in their tier.
    #[error(
        "a command is under way in the workspace, in another tier of the fence, and the two cannot be held beside each other"
    )]
    OtherTier,
    #[error(
        "a command is under way in a workspace around or inside this one, and without the full fence the git repository that \
         they share cannot be guarded for both"
    )]
    Overlap,
    #[error("the workspace is read-only for this profile")]
    ReadOnly,
    #[error("this project has no workspace: tools for files, commands and git cannot be used in it")]
    NoWorkspace,
    #[error("no file or folder `{path}` in the workspace")]
    NotFound { path: String },
    #[error("`{path}` already exists")]
    Exists { path: String },
    /// A folder where a file was expected, a FIFO, a device, a socket.
    #[error("`{path}` is {what}, not a regular file")]
    NotRegular { path: String, what: &'static str },
    #[error("`{path}` is not a folder")]
    NotFolder { path: String },
    /// Where a plain path was meant.
    #[error("a link stands at `{path}` or on the way there")]
    Linked { path: String },
    #[error("`{path}` has changed: its SHA-256 is {actual}, not {expected}")]
    Changed { path: String, expected: String, actual: String },
    #[error("{what} is {actual}, more than the limit of {limit}")]
    Limit { what: String, actual: u64, limit: u64 },
    #[error("{what}: {message}")]
    Pattern { what: &'static str, message: String },
    #[error("no fence holds here, so commands are refused: {why}")]
    NoFence { why: String },
    /// No weaker fence is taken instead: another command may have used these things up on purpose.
    #[error(
        "the machine is too busy to build a fence (processes, memory, handles or space are used up), so nothing was done"
    )]
    FenceBusy,
    /// The fence could not be built for this command; `detail` is for the log.
    #[error("the fence could not be built for this command")]
    FenceBuild { detail: String },
    #[error("{why}")]
    DeployFolders { why: &'static str },
    #[error("the world has changed since the plan was made ({what}): plan again")]
    PlanStale { what: String },
    #[error("changed since the deploy, so it is not undone: {paths}")]
    UndoBlocked { paths: String },
    #[error("another deploy into this folder is under way: wait for its end")]
    DeployBusy,
    #[error("the remote `{name}` cannot be used: {why}")]
    Remote { name: String, why: String },
    #[error("no deploy {what}")]
    NoDeploy { what: String },
    /// The folder that deploys keep their state in is not one to trust.
    #[error("`{path}` {why}")]
    DeployState { path: String, why: String },
    #[error("cancelled")]
    Cancelled,
    /// A command was cancelled, and had changed what it may not keep, or moved git's references.
    #[error("the call was cancelled{}", told(restored, refs_changed))]
    CancelledAfter { restored: Vec<String>, refs_changed: Vec<String> },
    /// Its former content could not be kept; `why` is for the caller, the source for the log.
    #[error("`{path}` was not changed, because what is there could not be kept for an undo: {why}")]
    Unkept { path: String, why: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// Nothing was done in the other folder.
    #[error("another folder has taken the place of the one that was opened as the workspace, or of its repository")]
    OtherFolder,
    #[error("`{path}`: {source}")]
    Io { path: String, source: std::io::Error },
}

/// The family of an error, for callers that map it to their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Security,
    NotFound,
    Conflict,
    Validation,
    Limit,
    Io,
    Cancelled,
    Internal,
}

/// What a cancelled command had done, as an error goes on with it.
fn told(restored: &[String], refs_changed: &[String]) -> String {
    let part = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("; {what} {}", crate::named(names, TOLD_MAX)),
    };
    part("the host put back", restored) + &part("git references changed while it ran:", refs_changed)
}

/// Most names in one message.
const TOLD_MAX: usize = 50;

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Path(PathError::Empty | PathError::TooLong(_) | PathError::NameTooLong(_)) => ErrorKind::Validation,
            Self::Path(_)
            | Self::Escape { .. }
            | Self::GitInternal { .. }
            | Self::Policy { .. }
            | Self::State { .. }
            | Self::GitObeys { .. }
            | Self::LinkedGit
            | Self::HooksEverywhere
            | Self::GitUnreadable { .. }
            | Self::GitRefuses { .. }
            | Self::Exchanged { .. }
            | Self::NamedSince { .. }
            | Self::OtherFolder
            | Self::GitSilent { .. }
            | Self::GitWaits { .. }
            | Self::Shared { .. }
            | Self::NotRestored { .. }
            | Self::ReadOnly
            | Self::DeployState { .. }
            | Self::NoFence { .. } => ErrorKind::Security,
            Self::NotFound { .. } | Self::NoDeploy { .. } => ErrorKind::NotFound,
            Self::Exists { .. }
            | Self::Changed { .. }
            | Self::Linked { .. }
            | Self::PlanStale { .. }
            | Self::UndoBlocked { .. }
            | Self::CommandUnderWay
            | Self::OtherTier
            | Self::Overlap
            | Self::Remote { .. }
            | Self::DeployBusy => ErrorKind::Conflict,
            Self::NotRegular { .. }
            | Self::NotFolder { .. }
            | Self::Pattern { .. }
            | Self::DeployFolders { .. }
            | Self::NoWorkspace => ErrorKind::Validation,
            Self::Limit { .. } | Self::FenceBusy => ErrorKind::Limit,
            Self::Io { .. } | Self::Unkept { .. } => ErrorKind::Io,
            Self::Cancelled | Self::CancelledAfter { .. } => ErrorKind::Cancelled,
            Self::FenceBuild { .. } => ErrorKind::Internal,
        }
    }
}
