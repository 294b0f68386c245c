//! How a call fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The field of an error's details that says how many bytes are allowed.
pub const BYTES_MAX: &str = "bytesMax";

/// The field of an error's details that says after how many seconds the same call can succeed.
pub const RETRY_AFTER_SECONDS: &str = "retryAfterSeconds";

/// Stable codes, frozen by the CrewAgent seeds. Never an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ErrorCode {
    /// The tool does not exist, or is not in the caller's profile.
    #[serde(rename = "AI_TOOL_NOT_ALLOWED")]
    ToolNotAllowed,
    /// The caller may not do this: project, role, policy, or a tool for people only.
    #[serde(rename = "AI_TOOL_FORBIDDEN")]
    ToolForbidden,
    /// The tool ran, or would have, and failed.
    #[serde(rename = "AI_TOOL_EXECUTION_ERROR")]
    ToolExecution,
    /// What a context was asked for is not there, or cannot be read.
    #[serde(rename = "AI_CONTEXT_BUILD_ERROR")]
    ContextBuild,
    /// A change set of another major version.
    #[serde(rename = "AI_CHANGESET_SCHEMA_UNSUPPORTED")]
    ChangeSetUnsupported,
    /// A change set that is not as its contract says.
    #[serde(rename = "AI_CHANGESET_CONTRACT_VIOLATION")]
    ChangeSetContract,
    /// The session has staged nothing.
    #[serde(rename = "AI_NO_STAGED_CHANGES")]
    NothingStaged,
    /// What was staged may not be applied as it is.
    #[serde(rename = "AI_VALIDATION_FAILED")]
    ValidationFailed,
    /// Somebody else has changed the same; blocking, other than in the seed.
    #[serde(rename = "AI_REVISION_BASE_MISMATCH")]
    RevisionMismatch,
    /// A person has not said that they mean it.
    #[serde(rename = "AI_APPLY_REQUIRES_CONFIRMATION")]
    ApplyUnconfirmed,
    /// It cannot be applied, or taken back.
    #[serde(rename = "AI_APPLY_FAILED")]
    ApplyFailed,
    /// A call names another session than the one it comes from.
    #[serde(rename = "AI_TARGET_CONTEXT_MISMATCH")]
    OtherContext,
    /// A layer that every prompt needs is missing.
    #[serde(rename = "AI_PROMPT_COMPOSE_ERROR")]
    PromptCompose,
    /// Whom a package is for cannot be read: the structure is damaged.
    #[serde(rename = "AI_DOMAIN_PROFILE_INCOMPLETE")]
    DomainProfile,
    /// What may not be left out of a prompt does not fit into it.
    #[serde(rename = "AI_CONTEXT_BUDGET_EXCEEDED")]
    ContextBudget,
    /// A session has asked its model as often as it may. It can be resumed with more.
    #[serde(rename = "AI_TOOL_LOOP_LIMIT_EXCEEDED")]
    LoopLimit,
    /// A session has used the tokens it may. It can be resumed with more.
    #[serde(rename = "AI_TOKEN_LIMIT_EXCEEDED")]
    TokenLimit,
    /// A session has cost what it may. It can be resumed with more.
    #[serde(rename = "AI_COST_LIMIT_EXCEEDED")]
    CostLimit,
    /// A session has run as long as it may. It can be resumed with more.
    #[serde(rename = "AI_TIME_LIMIT_EXCEEDED")]
    TimeLimit,
    /// A model's answer is not what the contract of its session says.
    #[serde(rename = "AI_BAD_RESPONSE")]
    BadResponse,
    /// There is no model, or no key for it.
    #[serde(rename = "AI_DISABLED")]
    Disabled,
    /// The model's provider refuses, or has failed too often.
    #[serde(rename = "AI_PROVIDER_ERROR")]
    Provider,
    /// The model's provider does not answer in time, or stops in the middle.
    #[serde(rename = "AI_PROVIDER_TIMEOUT")]
    ProviderTimeout,
    /// The model's provider cannot be reached.
    #[serde(rename = "AI_PROVIDER_UNREACHABLE")]
    ProviderUnreachable,
}

/// The family of a failure: stable strings that a program can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A path or fence violation.
    Security,
    Permission,
    Validation,
    NotFound,
    Conflict,
    /// Policy or a person said no.
    Denied,
    Limit,
    Io,
    Timeout,
    Cancelled,
    /// Whether it has happened is not known: look before it is repeated.
    Unknown,
    Internal,
}

/// A failed call.
///
/// `message` names the thing, for the model: lower-case start, no period. `hint` says what to try next and never
/// suggests anything destructive. `source` is for the log only.
///
/// ```
/// use toolhost_contract::{ErrorKind, ToolError};
/// let error = ToolError::new(ErrorKind::NotFound, "no file `a/b.txt` in the workspace").hint("list the folder `a`");
/// assert_eq!(error.kind, ErrorKind::NotFound);
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub code: ErrorCode,
    pub kind: ErrorKind,
    pub message: String,
    pub hint: Option<String>,
    /// Further facts for programs, such as the list of violations.
    pub details: Option<Value>,
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolNotAllowed => "AI_TOOL_NOT_ALLOWED",
            Self::ToolForbidden => "AI_TOOL_FORBIDDEN",
            Self::ToolExecution => "AI_TOOL_EXECUTION_ERROR",
            Self::ContextBuild => "AI_CONTEXT_BUILD_ERROR",
            Self::ChangeSetUnsupported => "AI_CHANGESET_SCHEMA_UNSUPPORTED",
            Self::ChangeSetContract => "AI_CHANGESET_CONTRACT_VIOLATION",
            Self::NothingStaged => "AI_NO_STAGED_CHANGES",
            Self::ValidationFailed => "AI_VALIDATION_FAILED",
            Self::RevisionMismatch => "AI_REVISION_BASE_MISMATCH",
            Self::ApplyUnconfirmed => "AI_APPLY_REQUIRES_CONFIRMATION",
            Self::ApplyFailed => "AI_APPLY_FAILED",
            Self::OtherContext => "AI_TARGET_CONTEXT_MISMATCH",
            Self::PromptCompose => "AI_PROMPT_COMPOSE_ERROR",
            Self::DomainProfile => "AI_DOMAIN_PROFILE_INCOMPLETE",
            Self::ContextBudget => "AI_CONTEXT_BUDGET_EXCEEDED",
            Self::LoopLimit => "AI_TOOL_LOOP_LIMIT_EXCEEDED",
            Self::TokenLimit => "AI_TOKEN_LIMIT_EXCEEDED",
            Self::CostLimit => "AI_COST_LIMIT_EXCEEDED",
            Self::TimeLimit => "AI_TIME_LIMIT_EXCEEDED",
            Self::BadResponse => "AI_BAD_RESPONSE",
            Self::Disabled => "AI_DISABLED",
            Self::Provider => "AI_PROVIDER_ERROR",
            Self::ProviderTimeout => "AI_PROVIDER_TIMEOUT",
            Self::ProviderUnreachable => "AI_PROVIDER_UNREACHABLE",
        }
    }
}

impl ErrorKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Security => "security",
            Self::Permission => "permission",
            Self::Validation => "validation",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::Io => "io",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::Internal => "internal",
        }
    }
}

impl ToolError {
    /// An error with the code that belongs to its kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let code = match kind {
            ErrorKind::Permission | ErrorKind::Denied => ErrorCode::ToolForbidden,
            _ => ErrorCode::ToolExecution,
        };
        Self { code, kind, message: message.into(), hint: None, details: None, source: None }
    }

    pub fn code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// An error for input that is too large. Waiting does not help, unlike with other limits, so the details have `bytesMax`.
    pub fn too_large(message: impl Into<String>, bytes_max: usize) -> Self {
        Self::new(ErrorKind::Limit, message).details(serde_json::json!({ BYTES_MAX: bytes_max }))
    }

    /// A failure of ours: the caller sees the call id, the cause goes to the log.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let mut error = Self::new(ErrorKind::Internal, "internal error");
        error.source = Some(source.into());
        error
    }
}

impl From<crate::workspace::Error> for ToolError {
    fn from(error: crate::workspace::Error) -> Self {
        use crate::workspace::{Error as E, ErrorKind as K, PathError};
        let kind = match error.kind() {
            K::Security => ErrorKind::Security,
            K::NotFound => ErrorKind::NotFound,
            K::Conflict => ErrorKind::Conflict,
            K::Validation => ErrorKind::Validation,
            K::Limit => ErrorKind::Limit,
            K::Io => ErrorKind::Io,
            K::Cancelled => ErrorKind::Cancelled,
            K::Internal => return Self::internal(error),
        };
        let hint = match &error {
            E::Path(PathError::Absolute(_) | PathError::Parent(_)) => {
                Some("paths are relative to the workspace root, such as `src/main.rs`; the root itself is `.`")
            }
            E::Path(PathError::Empty) => Some("use `.` for the workspace root"),
            E::Escape { .. } => {
                Some("only files inside the workspace can be reached; links out of it are not followed")
            }
            E::GitInternal { .. } => Some("use the git tools to change the repository"),
            E::Policy { .. } => Some("only a person changes what the project allows"),
            E::GitObeys { .. } => Some("ask the person to change it"),
            E::GitUnreadable { .. } => {
                Some("ask the person to make that file readable for everybody, or to install bubblewrap")
            }
            E::HooksEverywhere => {
                Some("ask the person to name a folder of its own for hooks: `git config core.hooksPath .githooks`")
            }
            E::LinkedGit => Some("ask the person to open the repository where it really is"),
            E::GitSilent { .. } => Some(
                "no command runs until git answers: ask the person to look for FIFOs and very large files among git's (`find .git -type p -o -size +100M`) and at what `git status` waits for",
            ),
            E::GitWaits { .. } => {
                Some("no command runs while they are there: ask the person to look at them and remove them")
            }
            E::Shared { .. } => Some(
                "no command runs until each has one name: ask the person to look at them and give them files of their own, for each F: `cp -p F F.new && mv F.new F`",
            ),
            E::Exchanged { .. } => Some(
                "the person has to look at these before they use git here: they hold what was saved there, and perhaps what the command added. What should not be there is removed, or no longer named by the settings; then `toolhost doctor --accept-git` lets commands run again. Until then the host refuses commands, and the `git_*` tools that change the repository",
            ),
            E::NamedSince { .. } => Some("end that command (`bash.kill`), or wait until it has ended, then try again"),
            E::OtherFolder => Some(
                "nothing was done in it: ask the person to put the former folder back, or to start a new host for this one",
            ),
            E::NotRestored { .. } => Some(
                "no command runs until it is as it was: ask the person to restore it, or to look at it and run `toolhost doctor --accept-git`. What the command put there is in the workspace as `toolhost-planted-…`, or where it is not, still in its place: there `git add`, `git checkout` and `git reset --hard` could make git enter it",
            ),
            E::Remote { .. } => Some("ask the person to look at the remote in Toolhost's config.toml"),
            E::CommandUnderWay | E::Overlap => Some("wait until it has ended, then try again"),
            E::OtherTier => Some(
                "wait until it has ended, then try again; to run both at once, start both hosts with the same `--sandbox`",
            ),
            E::ReadOnly => Some("a profile that may write, such as `developer`, is needed for this"),
            E::NoWorkspace => Some("use the tools for records and workflow packages"),
            E::NotFound { .. } => Some("`file.list` shows what is there"),
            E::Exists { .. } => Some("choose another name"),
            E::NotRegular { path, .. } if path.ends_with("ignore") => {
                Some("`includeIgnored` goes without ignore files")
            }
            E::NotRegular { what: "a folder", .. } => Some("`file.list` lists a folder"),
            E::Changed { .. } => Some("read the file again and repeat the change on its present content"),
            E::Linked { .. } => Some("look at what is there now"),
            E::FenceBusy => Some("try again in a moment; `toolhost doctor` tells the operator what is used up"),
            E::NoFence { .. } => Some("`toolhost doctor` tells the operator what is missing"),
            _ => None,
        };
        let mut tool_error = Self::new(kind, error.to_string());
        tool_error.hint = hint.map(str::to_owned);
        if let E::Io { path, source } = &error {
            // Another program's words may hold host paths; the kernel's number and the kind of an error do not.
            let why = source.raw_os_error().map(std::io::Error::from_raw_os_error);
            let why = why.map_or_else(|| source.kind().to_string(), |error| error.to_string());
            tool_error.message = format!("`{path}`: {why}");
        }
        if let E::CancelledAfter { restored, refs_changed } = &error {
            tool_error.details = Some(serde_json::json!({ "putBack": restored, "refsChanged": refs_changed }));
        }
        tool_error.source = Some(Box::new(error));
        tool_error
    }
}

impl From<crate::workspace::PathError> for ToolError {
    fn from(error: crate::workspace::PathError) -> Self {
        crate::workspace::Error::from(error).into()
    }
}
