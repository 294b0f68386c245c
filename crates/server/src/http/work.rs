//! The port to what people do with a project besides calls of tools: its workflow package, its changes, its sessions and its members.

use std::sync::Arc;

use serde_json::Value;
use toolhost_contract::{BoxFuture, ToolError};
use toolhost_host::Origin;

/// What comes of it.
pub type Done<'a, T> = BoxFuture<'a, Result<T, ToolError>>;

/// A workflow package as one file.
pub struct Archive {
    pub zip: Vec<u8>,
    /// Changes with any byte of any of its files.
    pub revision: String,
}

/// What of the package of a project must be true for it to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaces {
    /// There is none.
    Nothing,
    /// It is of this revision.
    Revision(String),
    Any,
}

/// A session to be started.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub goal: String,
    pub profile: String,
    /// Who works, as commits and comments name them.
    pub persona: Option<String>,
    /// One that the operator has configured; the usual one if left out.
    pub model: Option<String>,
    pub ticket: Option<String>,
    /// An object of the workflow package.
    pub target: Option<Target>,
    /// Where the request came from.
    pub origin: Option<Arc<Origin>>,
}

/// What a session on a workflow package works on.
#[derive(Debug, Clone)]
pub struct Target {
    /// `workflow`, `step`, `agent` or `asset`.
    pub kind: String,
    pub id: String,
    /// The workflow it is in, where that does not follow from `id`.
    pub workflow: Option<String>,
    pub is_new: bool,
}

/// What a session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// To stop after the call under way, and go on later.
    Pause,
    /// To stop for good.
    Cancel,
}

/// What a user does with a project. Each checks the user's role, and leaves rows in the audit, as at a terminal.
pub trait Work: Send + Sync {
    fn export<'a>(&'a self, user: &'a str) -> Done<'a, Archive>;

    /// Puts a package in the place of what the project has.
    fn import<'a>(&'a self, user: &'a str, zip: &'a [u8], replaces: Replaces) -> Done<'a, Value>;

    /// What is wrong with a package; the project is not looked at.
    fn findings<'a>(&'a self, zip: &'a [u8]) -> Done<'a, Value>;

    fn workflows<'a>(&'a self, user: &'a str) -> Done<'a, Value>;

    /// The change sets, the newest first.
    fn changes<'a>(&'a self, user: &'a str, session: Option<&'a str>, open_only: bool) -> Done<'a, Value>;

    /// What an apply of a change set, or of some of its operations, would say and change now.
    fn preview<'a>(&'a self, user: &'a str, id: &'a str, operations: Option<Vec<i64>>) -> Done<'a, Value>;

    /// What has been applied, the newest first.
    fn history<'a>(&'a self, user: &'a str) -> Done<'a, Value>;

    /// Starts a session, which runs on this server. Answers where it stands.
    fn start<'a>(&'a self, user: &'a str, run: NewRun) -> Done<'a, Value>;

    /// Goes on with a session, with a message or as it was.
    fn go_on<'a>(&'a self, user: &'a str, session: &'a str, message: Option<String>) -> Done<'a, Value>;

    /// Stops a session, wherever it runs.
    fn stop<'a>(&'a self, user: &'a str, session: &'a str, how: Stop) -> Done<'a, Value>;

    /// Begins another session with all that one has come to.
    fn fork<'a>(&'a self, user: &'a str, session: &'a str, turns: Option<u32>) -> Done<'a, Value>;

    /// Makes somebody a member, changes what they are, or takes the membership away (`None`).
    fn set_member<'a>(&'a self, user: &'a str, name: &'a str, role: Option<&'a str>) -> Done<'a, Value>;
}
