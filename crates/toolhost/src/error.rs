//! What can go wrong while a host is opened and used.

use std::path::PathBuf;

use toolhost_agent::ModelError;
use toolhost_agent::start::StartError;
use toolhost_builder::packages::PackageError;
use toolhost_contract::{ErrorKind, JournalError, Outcome, ToolError};
use toolhost_records::RecordError;
use toolhost_store::Role;

use crate::limits::{PERSONA_CHARS_MAX, POLICY_BYTES_MAX, PROJECT_CHARS_MAX};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a host was not opened, or an action not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no database is named: use Builder::state for a folder or Builder::database for a PostgreSQL server")]
    NoDatabase,
    #[error("no project is named: use Builder::project, or Builder::workspace for the project of a folder")]
    NoProject,
    #[error("a project's name has at most {PROJECT_CHARS_MAX} characters, none of them a control")]
    ProjectName,
    #[error("a workspace needs a state folder for what git obeys while commands run: use Builder::state")]
    NoState,
    #[error("a workspace needs the program that begins fenced commands: use Builder::fence_program")]
    NoFenceProgram,
    #[error("the state folder {state} would be inside the workspace, where an agent could change it", state = .state.display())]
    StateInWorkspace { state: PathBuf },
    #[error("a host with a workspace is for one project: open another host for `{project}`")]
    OneProject { project: String },
    #[error("the workspace {root}", root = .root.display())]
    Workspace { root: PathBuf, source: std::io::Error },
    /// The project's own `toolhost.toml`.
    #[error("{} of the project cannot be read", toolhost_contract::workspace::POLICY_FILE)]
    Policy { source: toolhost_contract::workspace::Error },
    #[error("{} is larger than {POLICY_BYTES_MAX} bytes", toolhost_contract::workspace::POLICY_FILE)]
    PolicySize,
    /// `whose`: of which program or file they are.
    #[error("the profiles (built in, and {whose})")]
    Profiles { whose: String, source: toolhost_host::Error },
    #[error("there is no user `{user}` in {place}: an owner of the project adds one with `toolhost member add`")]
    NoUser { user: String, place: String },
    #[error("you are not signed in to {place}: sign in with `toolhost login`")]
    NotSignedIn { place: String },
    #[error(
        "you are signed in to {place} as {user}, not as {named}: leave out `--user`, or sign in as {named} with `toolhost logout` and `toolhost login`"
    )]
    SignedInAsOther { named: String, user: String, place: String },
    #[error("{user} may not do this in the project {project}: it takes the role {}", role.as_str())]
    Denied { user: String, project: String, role: Role },
    #[error("the project has no persona `{asked}`; did you mean `{near}`?")]
    NoPersona { asked: String, near: String },
    #[error("a persona's name has at most {PERSONA_CHARS_MAX} characters, all of which can be seen")]
    PersonaName,
    #[error(
        "{name} is a member of this project: what an agent does in that name would look like theirs, so give it another"
    )]
    PersonaOfMember { name: String },
    #[error(
        "an agent cannot be called `{name}`: people would take its words for somebody else's, so give it another name"
    )]
    PersonaReserved { name: String },
    #[error("the persona {persona} has the role `{role}`, which is not a profile")]
    PersonaRole { persona: String, role: String },
    #[error("the profile `{asked}` allows more than `{own}`, the role of the persona {persona}")]
    PersonaNarrower { persona: String, own: String, asked: String },
    #[error("{id} is another user's session: `fork` it")]
    SessionOfOther { id: String },
    #[error("{id} was cancelled for good: `fork` it")]
    SessionCancelled { id: String },
    #[error("{id} has given its answer: say what comes next")]
    SessionDone { id: String },
    #[error("{id} has {turns} turns, not {asked}")]
    TooFewTurns { id: String, turns: u32, asked: u32 },
    #[error("the message is empty")]
    EmptyMessage,
    #[error("this has {chars} characters; {max} is the most: put a long text into a file, and name the file")]
    SaidTooLong { chars: usize, max: usize },
    #[error("a session on the workflow package works with the package alone: name no files of the workspace for it")]
    FilesOfPackage,
    #[error("a session is given at most {most} files to begin with, not {asked}")]
    TooManyFiles { most: usize, asked: usize },
    /// One of the files that a session is to begin with.
    #[error("one of the files for the session, `{file}`: {why}")]
    SessionFile { file: String, why: String },
    #[error("the task that ran the session {id} ended early: {why}")]
    RunEnded { id: String, why: String },
    #[error("`{0}` is not the id of a change set, such as cs-3")]
    ChangeSetId(String),
    #[error("a package has a name")]
    PackageName,
    /// The specification of a model cannot be read.
    #[error(transparent)]
    ModelSpec(ModelError),
    #[error("{file}")]
    ModelFile { file: String, source: ModelError },
    #[error("[models.\"{spec}\"]: {problem}")]
    ModelConfig { spec: String, problem: &'static str },
    #[error("the header {header} needs the key {name}, which was not found")]
    HeaderKey { header: String, name: String },
    /// The gate refused a call, or its tool failed.
    #[error("{}", told(.0))]
    Call(Box<Outcome>),
    /// A rule of the profile asks a person before this call runs.
    #[error("{} has not run: it waits for a person's approval", .0.meta.tool)]
    Pending(Box<Outcome>),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Store(#[from] toolhost_store::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Host(#[from] toolhost_host::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether the user may not do what was asked for.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(
            self,
            Self::Denied { .. } | Self::SessionOfOther { .. } | Self::NotSignedIn { .. } | Self::SignedInAsOther { .. }
        )
    }

    /// Whether what was asked for makes no sense, whoever asks.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoDatabase
                | Self::NoProject
                | Self::ProjectName
                | Self::NoState
                | Self::NoFenceProgram
                | Self::OneProject { .. }
                | Self::NoUser { .. }
                | Self::NoPersona { .. }
                | Self::PersonaName
                | Self::PersonaOfMember { .. }
                | Self::PersonaReserved { .. }
                | Self::PersonaRole { .. }
                | Self::PersonaNarrower { .. }
                | Self::SessionCancelled { .. }
                | Self::SessionDone { .. }
                | Self::TooFewTurns { .. }
                | Self::EmptyMessage
                | Self::SaidTooLong { .. }
                | Self::FilesOfPackage
                | Self::TooManyFiles { .. }
                | Self::SessionFile { .. }
                | Self::ChangeSetId(_)
                | Self::ModelSpec(_)
                | Self::Host(toolhost_host::Error::UnknownProfile { .. })
        )
    }
}

/// For doors: what a caller is told, in the words and kinds of the gate.
impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        match error {
            Error::Package(error) => error.into(),
            Error::Record(error) => error.into(),
            Error::Store(error) => error.into(),
            Error::Call(outcome) => match outcome.error {
                Some(error) => error.into(),
                None => Self::internal("a call failed without an error"),
            },
            Error::Start(error) => Self::new(ErrorKind::Validation, error.to_string()).code(error.code()),
            error if error.is_denied() => Self::new(ErrorKind::Permission, error.to_string()),
            error if error.is_usage() => Self::new(ErrorKind::Validation, error.to_string()),
            error @ (Error::Pending(_) | Error::Model(_) | Error::PackageName | Error::HeaderKey { .. }) => {
                Self::new(ErrorKind::Conflict, error.to_string())
            }
            error => Self::internal(error),
        }
    }
}

fn told(outcome: &Outcome) -> String {
    match &outcome.error {
        Some(error) => format!("{}: {} ({})", outcome.meta.tool, error.message, error.code.as_str()),
        None => outcome.meta.tool.clone(),
    }
}
