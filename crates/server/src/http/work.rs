//! The port to what people do with a project besides calls of tools: its workflow package, its changes, its sessions and its members.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_builder::change::{ObjectDiff, Report, Side};
use toolhost_builder::packages::{Brought, ChangeSetLine, Conflict, Deed, Seen, UndoPlan, WorkflowLine};
use toolhost_builder::refs::Index;
use toolhost_builder::{Files, Finding, Package, validate};
use toolhost_contract::{BoxFuture, Redactor, ToolError, canonical_json};
use toolhost_host::{Origin, Undo};
use toolhost_records::RecordId;
use toolhost_store::{Quota, SessionRow, Webhook};

use super::token::Right;

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

/// A package that was imported.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    #[serde(flatten)]
    pub brought: Brought,
    /// What `ETag` says of it, without the quotes.
    pub revision: String,
}

/// The findings of a validation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageFindings {
    /// Whether the package can be used: no finding is an error.
    pub valid: bool,
    pub findings: Vec<Finding>,
}

/// A change set, and what an apply would say and change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePreview {
    pub change_set: ChangeSetLine,
    /// The set as it was staged.
    pub body: Value,
    /// What an apply would say now: errors, warnings, conflicts. Of a set that was applied, what it said then; null of a set that was
    /// given up.
    pub report: Option<Report>,
    /// Places that somebody else has changed, too: while there are any, it cannot be applied.
    pub conflicts: Vec<Conflict>,
    /// What becomes of each object: its texts, and its graph.
    pub diff: Vec<ObjectDiff>,
}

impl ChangePreview {
    /// Changes with anything that is shown. An apply names it.
    pub(super) fn digest(&self) -> Result<String, ToolError> {
        let text = canonical_json(self).map_err(ToolError::internal)?;
        Ok(hex::encode(Sha256::digest(text.as_bytes())))
    }
}

/// The workflow package of a project, read whole.
pub struct WholePackage {
    /// The number of the change that it is of.
    pub moment: i64,
    /// As it is shown: without what looks like a secret.
    pub package: Arc<Package>,
    /// As it is, for whoever changes it.
    pub whole: Arc<Package>,
    pub findings: Vec<Finding>,
    /// What refers to what.
    pub index: Index,
}

impl WholePackage {
    /// Reads, checks and indexes the files: work for a thread that may be busy for a while.
    #[must_use]
    pub fn of(moment: i64, files: Files) -> Self {
        let masked = masked_files(&files);
        let whole = Arc::new(Package::read(files));
        let package = masked.map_or_else(|| Arc::clone(&whole), |files| Arc::new(Package::read(files)));
        Self { moment, findings: validate(&package), index: Index::of(&package), package, whole }
    }
}

/// The files without what looks like a secret; `None` where nothing does.
fn masked_files(files: &Files) -> Option<Files> {
    let secrets = Redactor::default();
    let mut masked = Vec::new();
    for (path, bytes) in files {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        let mut shown = text.to_owned();
        secrets.redact(&mut shown);
        if shown != text {
            masked.push((path.clone(), shown.into_bytes()));
        }
    }
    if masked.is_empty() {
        return None;
    }
    let mut all = files.clone();
    all.extend(masked);
    Some(all)
}

/// A session of an agent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    pub id: String,
    /// The session that it was forked off.
    pub parent: Option<String>,
    pub profile: String,
    pub model: String,
    /// The beginning of what was asked for.
    pub title: String,
    #[schemars(extend("enum" = ["active", "paused", "limited", "failed", "done", "cancelled"]))]
    pub state: &'static str,
    /// The stable code of what ended it.
    pub code: Option<String>,
    /// Whether a host that lives runs it.
    pub running: bool,
    pub steps: i64,
    /// Turns, tokens and cost so far.
    pub tally: Value,
    /// Milliseconds since 1970.
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

impl From<SessionRow> for SessionInfo {
    fn from(row: SessionRow) -> Self {
        Self {
            id: row.id,
            parent: row.parent,
            profile: row.profile,
            model: row.model,
            title: masked(row.title),
            state: row.state.as_str(),
            code: row.code,
            running: row.running,
            steps: row.steps,
            tally: row.tally,
            created_at_ms: row.created_at_ms,
            updated_at_ms: row.updated_at_ms,
        }
    }
}

/// A text without what looks like a secret.
fn masked(mut text: String) -> String {
    Redactor::default().redact(&mut text);
    text
}

/// A session that was forked off another one.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    pub session: SessionInfo,
    /// Turns that it has of the other.
    pub turns: u32,
    /// The turn that was left out because it had not ended.
    pub unended: Option<u32>,
}

/// A membership that was changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberChanged {
    pub name: String,
    /// `owner`, `editor` or `viewer`; null if the membership was taken away.
    pub role: Option<String>,
    /// Whether they may answer what people are asked; null if the membership was taken away.
    pub approver: Option<bool>,
}

/// What somebody is to be in a project.
#[derive(Debug, Clone, Copy)]
pub struct NewRole<'a> {
    pub role: &'a str,
    /// Whether they may answer what people are asked; `None` leaves it unchanged, or as the role says.
    pub approver: Option<bool>,
}

/// A token to be made.
#[derive(Debug, Clone)]
pub struct TokenWish {
    pub name: String,
    /// The first one is that of a client that names none.
    pub profiles: Vec<String>,
    pub rights: Vec<Right>,
    /// The member in whose name its calls are made; the maker if left out.
    pub acts_for: Option<String>,
    pub lives: Duration,
}

/// A token that was made.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenMade {
    pub id: String,
    pub name: String,
    /// The member in whose name its calls are made.
    #[serde(rename = "for")]
    pub acts_for: String,
    pub profiles: Vec<String>,
    pub rights: Vec<String>,
    pub expires_at_ms: i64,
    /// The key of its project.
    pub project: String,
    /// The secret. It is told this once.
    pub token: String,
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
    /// Files and folders of the workspace that the agent looks at first.
    pub files: Vec<String>,
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

/// A model that the operator has configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLine {
    pub name: String,
    /// Whether sessions that name none have it.
    pub is_usual: bool,
}

/// Who does something with a project, and where, as the audit names it.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    pub user: &'a str,
    pub door: &'static str,
}

/// What a user does with a project. Each checks the user's role, and leaves rows in the audit, as at a terminal.
pub trait Work: Send + Sync {
    fn export<'a>(&'a self, by: By<'a>) -> Done<'a, Archive>;

    /// Puts a package in the place of what the project has.
    fn import<'a>(&'a self, by: By<'a>, zip: &'a [u8], replaces: Replaces) -> Done<'a, Imported>;

    /// What is wrong with a package; the project is not looked at.
    fn findings<'a>(&'a self, zip: &'a [u8]) -> Done<'a, PackageFindings>;

    /// The package as it is; `None` where the project has none.
    fn package<'a>(&'a self, by: By<'a>) -> Done<'a, Option<Arc<WholePackage>>>;

    /// The package as a session sees it that has something staged; `None` for one that has nothing.
    fn seen_by<'a>(&'a self, by: By<'a>, session: &'a str) -> Done<'a, Option<Seen>>;

    /// What records are called; those that are not there are left out.
    fn titles<'a>(&'a self, by: By<'a>, ids: &'a [RecordId]) -> Done<'a, BTreeMap<RecordId, String>>;

    fn workflows<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<WorkflowLine>>;

    /// The change sets, the newest first.
    fn changes<'a>(&'a self, by: By<'a>, session: Option<&'a str>, open_only: bool) -> Done<'a, Vec<ChangeSetLine>>;

    /// What an apply of a change set, or of some of its operations, would say and change now.
    fn preview<'a>(&'a self, by: By<'a>, id: &'a str, operations: Option<Vec<i64>>) -> Done<'a, ChangePreview>;

    /// Takes a side at each place where a change set, or some of its operations, clashes: for each object the sides of its clashes, in the order
    /// of [`ChangePreview::conflicts`]. Nothing is applied by it.
    fn take_sides<'a>(
        &'a self,
        by: By<'a>,
        id: &'a str,
        operations: Option<Vec<i64>>,
        sides: &'a BTreeMap<String, Vec<Side>>,
    ) -> Done<'a, ()>;

    /// What has been applied, the newest first.
    fn history<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<Deed>>;

    /// What an undo of a change of the package would do now.
    fn undo_plan<'a>(&'a self, by: By<'a>, moment: i64) -> Done<'a, UndoPlan>;

    /// Starts a session, which runs on this server. Answers where it stands.
    fn start<'a>(&'a self, by: By<'a>, run: NewRun) -> Done<'a, SessionInfo>;

    /// Goes on with a session, with a message or as it was.
    fn go_on<'a>(&'a self, by: By<'a>, session: &'a str, message: Option<String>) -> Done<'a, SessionInfo>;

    /// Stops a session, wherever it runs.
    fn stop<'a>(&'a self, by: By<'a>, session: &'a str, how: Stop) -> Done<'a, SessionInfo>;

    /// Begins another session with all that one has come to.
    fn fork<'a>(&'a self, by: By<'a>, session: &'a str, turns: Option<u32>) -> Done<'a, Forked>;

    /// Makes somebody a member, changes what they are, or takes the membership away (`None`).
    fn set_member<'a>(&'a self, by: By<'a>, name: &'a str, role: Option<NewRole<'a>>) -> Done<'a, MemberChanged>;

    /// How much of the host the project's calls may have.
    fn quota<'a>(&'a self, by: By<'a>) -> Done<'a, Quota>;

    /// Changes that, for an owner.
    fn set_quota<'a>(&'a self, by: By<'a>, quota: Quota) -> Done<'a, ()>;

    /// Where the project's owners want its asks to be told.
    fn webhooks(&self) -> &dyn WebhookWork;

    /// Deploys of the workspace.
    fn deploys(&self) -> &dyn DeployWork;

    /// What an undo of the file changes of one call would put back now.
    fn file_undo<'a>(&'a self, by: By<'a>, call: &'a str) -> Done<'a, Undo>;

    /// Puts back what one call has changed in files, if it is what [`Self::file_undo`] has shown ([`Undo::digest`]).
    fn undo_files<'a>(&'a self, by: By<'a>, call: &'a str, digest: &'a str) -> Done<'a, ()>;

    fn make_token<'a>(&'a self, by: By<'a>, wish: TokenWish) -> Done<'a, TokenMade>;

    /// The models that sessions can have.
    fn models<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<ModelLine>>;

    /// Asks a model for one word, for an owner. What a provider says is not told: it may repeat a key.
    fn try_model<'a>(&'a self, by: By<'a>, name: &'a str) -> Done<'a, ()>;

    /// Ends a token for good.
    fn revoke_token<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, ()>;
}

/// What an owner of a project does with its webhooks.
pub trait WebhookWork: Send + Sync {
    /// The oldest first.
    fn list<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<Webhook>>;

    /// Adds one, if the operator lets requests go there. Answers with it and with the secret that checks its messages.
    fn add<'a>(&'a self, by: By<'a>, url: &'a str) -> Done<'a, (Webhook, String)>;

    fn remove<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, ()>;

    /// Sends a message that says nothing. Answers the status of the answer.
    fn test<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, u16>;
}

/// A deploy that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployLine {
    pub id: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    pub who: String,
    /// `unfinished`, `done` or `undone`.
    pub state: &'static str,
    /// Files of each kind.
    pub new: usize,
    pub changed: usize,
    pub deleted: usize,
}

/// What taking the newest deploy back would do in the project folder: paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeployUndo {
    pub id: String,
    /// Files that get their former content back.
    pub restored: Vec<String>,
    /// Files that the deploy brought.
    pub removed: Vec<String>,
    /// Files that the deploy deleted.
    pub returned: Vec<String>,
    /// What was changed since, and how; with any of these nothing is undone.
    pub conflicts: Vec<String>,
}

impl DeployUndo {
    /// Changes with anything that it would do.
    ///
    /// # Errors
    /// None in practice: it is the error of writing JSON.
    pub fn digest(&self) -> Result<String, ToolError> {
        let text = canonical_json(self).map_err(ToolError::internal)?;
        Ok(hex::encode(Sha256::digest(text.as_bytes())))
    }
}

/// What a user does with the deploys of a project.
pub trait DeployWork: Send + Sync {
    /// Whether the operator has named a folder to deploy to.
    fn has_target(&self) -> bool;

    /// The newest first.
    fn list<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<DeployLine>>;

    /// What taking back the newest deploy would do now; `None` where there is none.
    fn undo_plan<'a>(&'a self, by: By<'a>) -> Done<'a, Option<DeployUndo>>;

    /// Takes the newest deploy back, if that does what [`Self::undo_plan`] has shown ([`DeployUndo::digest`]).
    fn undo<'a>(&'a self, by: By<'a>, digest: &'a str) -> Done<'a, ()>;
}
