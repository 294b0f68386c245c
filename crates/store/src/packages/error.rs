//! What can go wrong with a package, told so that a model can fix it.

use std::fmt;

use serde_json::{Value, json};
use toolhost_builder::Finding;
use toolhost_builder::change::{ContractError, Refused, Report};
use toolhost_builder::envelope::EnvelopeError;
use toolhost_contract::{ErrorCode, ErrorKind, ToolError, did_you_mean};

use super::apply::Conflicts;
use super::sets::set_id;
use crate::error::Error;

pub type Result<T> = std::result::Result<T, PackageError>;

/// Findings told in one message; more are counted.
const SHOWN: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error("this project has no workflow package")]
    NoPackage,
    #[error(
        "this project has a workflow package already; `toolhost package import --replace` puts another in its place"
    )]
    Exists,
    #[error("there is no {what} `{name}` in the package")]
    NotFound { what: &'static str, name: String },
    /// The same, where names that are there may have been meant.
    #[error("{error}{}", did_you_mean(.near))]
    Near { error: Box<PackageError>, near: Vec<String> },
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// Whatever kept a context from being built.
    #[error(transparent)]
    Context(Box<PackageError>),
    #[error("{}", findings_text("the package is not right", .0))]
    Invalid(Vec<Finding>),
    /// What the validation found that an apply begins with.
    #[error("{}", findings_text(&format!("cs-{number} may not be applied"), &report.errors))]
    Unfit { number: i64, report: Box<Report> },
    #[error("{}", findings_text("the change cannot be made", .0))]
    Rejected(Vec<Finding>),
    #[error("{}", contract_text(.0))]
    Contract(Refused),
    #[error("{scope} has no revision `{revision}`: it is unknown here, or of another object")]
    UnknownRevision { scope: String, revision: String },
    #[error("`{field}` has the revision of {object} itself, and takes the one of `{scope}`, which it is part of")]
    RevisionOfObject { field: &'static str, scope: String, object: String },
    #[error("`{field}` is missing: {object} is there already, and a change says which revision of it was read")]
    NoRevision { field: &'static str, object: String },
    #[error("this session has staged nothing that could be {0}")]
    NothingStaged(&'static str),
    #[error("cs-{number} is {state}: it can no longer be {wish}")]
    Ended { number: i64, state: String, wish: &'static str },
    #[error("cs-{number} has no operation {position} that could be applied")]
    NoOperation { number: i64, position: i64 },
    #[error("cs-{number} is based on cs-{by}, which contains its change of {object}: that cannot be left out")]
    Inseparable { number: i64, by: i64, object: String },
    #[error("cs-{number} was made on cs-{on}, which was rejected: it cannot be {wish}")]
    Blocked { number: i64, on: i64, wish: &'static str },
    #[error("deleting {} has to be confirmed by name", .0.join(", "))]
    DeletesUnconfirmed(Vec<String>),
    #[error("{0}")]
    Conflict(Conflicts),
    #[error("{} of this session {} the same places of {}", .sets.join(" and "), if .sets.len() == 1 { "changes" } else { "change" }, .conflicts.names())]
    OverDraft { sets: Vec<String>, conflicts: Conflicts },
    #[error("change {moment} cannot be taken back: {why}")]
    NoUndo { moment: i64, why: String },
    #[error("a session keeps at most {max} {what}")]
    TooMany { max: usize, what: &'static str },
    #[error("{object} is used by more than {max} workflows, agents and assets")]
    UsedTooMuch { object: String, max: usize },
    #[error(transparent)]
    Store(#[from] Error),
}

fn findings_text(what: &str, findings: &[impl fmt::Display]) -> String {
    let shown: Vec<String> = findings.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = findings.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{what}: {}{more}", shown.join("; "))
}

fn contract_text(refused: &Refused) -> String {
    let first = refused.errors.first().map(|error: &ContractError| format!("{}: {}", error.path, error.message));
    format!("the change set is not as its contract says: {}", first.unwrap_or_default())
}

impl PackageError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPackage | Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Envelope(EnvelopeError::Missing { .. }) => ErrorKind::NotFound,
            Self::Context(inside) | Self::Near { error: inside, .. } => inside.kind(),
            Self::Envelope(_)
            | Self::Invalid(_)
            | Self::Unfit { .. }
            | Self::Rejected(_)
            | Self::Contract(_)
            | Self::NoRevision { .. }
            | Self::RevisionOfObject { .. }
            | Self::NoOperation { .. }
            | Self::Inseparable { .. }
            | Self::DeletesUnconfirmed(_)
            | Self::NothingStaged(_) => ErrorKind::Validation,
            Self::Exists
            | Self::UnknownRevision { .. }
            | Self::Ended { .. }
            | Self::Blocked { .. }
            | Self::Conflict(_)
            | Self::OverDraft { .. }
            | Self::NoUndo { .. } => ErrorKind::Conflict,
            Self::TooMany { .. } | Self::UsedTooMuch { .. } => ErrorKind::Limit,
            Self::Store(_) => ErrorKind::Internal,
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        Some(match self {
            Self::Near { error, .. } => return error.code(),
            Self::Context(inside) => inside.code().unwrap_or(ErrorCode::ContextBuild),
            Self::Envelope(EnvelopeError::Profile(_)) => ErrorCode::DomainProfile,
            Self::Contract(refused) => match refused.code {
                "AI_CHANGESET_SCHEMA_UNSUPPORTED" => ErrorCode::ChangeSetUnsupported,
                _ => ErrorCode::ChangeSetContract,
            },
            Self::NoRevision { .. } | Self::RevisionOfObject { .. } | Self::Rejected(_) => ErrorCode::ChangeSetContract,
            Self::Invalid(_) | Self::Unfit { .. } => ErrorCode::ValidationFailed,
            Self::UnknownRevision { .. } | Self::Conflict(_) | Self::OverDraft { .. } => ErrorCode::RevisionMismatch,
            Self::NothingStaged(_) => ErrorCode::NothingStaged,
            Self::DeletesUnconfirmed(_) => ErrorCode::ApplyUnconfirmed,
            Self::NoUndo { .. } => ErrorCode::ApplyFailed,
            _ => return None,
        })
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoPackage => "a person brings one: `toolhost package new NAME`, or `toolhost package import PATH`",
            Self::Exists => "the texts of the one that is there are kept in the history",
            Self::NotFound { what: "change set", .. } => "`toolhost change list --all` shows those of all sessions",
            Self::NotFound { .. } | Self::Envelope(EnvelopeError::Missing { .. }) => {
                "`builder.refs.find` and `builder.workflow.read` show what there is"
            }
            Self::UnknownRevision { .. } => {
                "read the object again, make the change anew and send `data.revisions` of that read, or for a set over several \
                 workflows the revision of each in `extensions.baseRevisions`; nothing was changed"
            }
            Self::RevisionOfObject { .. } => {
                "send `data.revisions` of the read as `revisions`, not `meta.revision`; nothing was changed"
            }
            Self::NoRevision { .. } => "read the object, and send the revision that came with it; nothing was changed",
            Self::Contract(_) | Self::Rejected(_) => "fix what is named and send the whole set again",
            Self::Invalid(_) => "fix what is named; nothing was changed",
            Self::Unfit { .. } => "stage the set again with what is named put right; nothing was applied",
            Self::Context(inside) | Self::Near { error: inside, .. } => return inside.hint(),
            Self::Envelope(EnvelopeError::Profile(_)) => {
                "fix that field, or take it out: what is not said is found in the texts"
            }
            Self::Conflict(_) => "read the objects again and stage the change anew; nothing was changed",
            Self::OverDraft { .. } => {
                "read the object again, which shows what this session has staged, and make the change on that; or discard \
                 the earlier set first; nothing was changed"
            }
            Self::UsedTooMuch { .. } => "change some of those first, so that fewer use it; nothing was changed",
            Self::DeletesUnconfirmed(_) => {
                "name each object that goes, in `confirmDeletes` or with `toolhost change apply --delete OBJECT`; nothing was \
                 changed"
            }
            Self::Inseparable { .. } => "choose that operation, too, or apply the whole set; nothing was changed",
            Self::Blocked { .. } => {
                "it contains the rejected text: read the objects again and stage the change anew; `builder.change.discard` \
                 gives it up"
            }
            _ => return None,
        })
    }

    fn details(&self) -> Option<Value> {
        Some(match self {
            Self::Invalid(findings) | Self::Rejected(findings) => json!({ "findings": findings }),
            Self::Unfit { number, report } => {
                json!({ "changeSetId": set_id(*number), "stages": report.stages, "findings": report.errors })
            }
            Self::Contract(refused) => json!({ "errors": refused.errors }),
            Self::Conflict(conflicts) => json!({ "conflicts": conflicts.0, "blocking": true }),
            Self::OverDraft { sets, conflicts } => {
                json!({ "changeSets": sets, "conflicts": conflicts.0, "blocking": true })
            }
            Self::UnknownRevision { scope, revision } => {
                json!({ "field": scope, "provided": revision, "blocking": true })
            }
            Self::Blocked { on, .. } => json!({ "rejected": set_id(*on), "blocking": true }),
            Self::Near { near, .. } => json!({ "nearest": near }),
            Self::Context(inside) => return inside.details(),
            Self::DeletesUnconfirmed(names) => json!({ "deletes": names }),
            _ => return None,
        })
    }
}

impl From<PackageError> for ToolError {
    fn from(error: PackageError) -> Self {
        if let PackageError::Store(error) = error {
            return error.into();
        }
        let kind = error.kind();
        let mut said = Self::new(kind, error.to_string());
        if let Some(code) = error.code() {
            said.code = code;
        }
        said.hint = error.hint().map(str::to_owned);
        said.details = error.details();
        said
    }
}

impl From<serde_json::Error> for PackageError {
    fn from(error: serde_json::Error) -> Self {
        Self::Store(Error::Row(error.to_string()))
    }
}
