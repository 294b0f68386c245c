//! What can go wrong with a package, told so that a model can fix it.

use std::fmt;

use crate::Finding;
use crate::change::{ContractError, Refused, Report};
use crate::envelope::EnvelopeError;
use serde::Serialize;
use serde_json::{Value, json};
use toolhost_contract::{ErrorCode, ErrorKind, ToolError, did_you_mean};

use super::conflict::Conflicts;
use super::set_id;
use toolhost_store::Error;

pub type Result<T> = std::result::Result<T, PackageError>;

/// Findings told in one message; more are counted.
const SHOWN: usize = 3;
/// The same of what keeps a set from being staged: a model mends all of it at once.
const SHOWN_OF_SET: usize = 10;
/// Names told where one is not there; more are counted.
pub(super) const NAMES_SHOWN_MAX: usize = 20;

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
    #[error("no {0} is named")]
    Unnamed(&'static str),
    /// The same, with the names that there are: those most like it, the first ones, and how many there are in all.
    #[error("{error}{}{}", did_you_mean(.near), names_text(.there, *.count))]
    Near { error: Box<PackageError>, near: Vec<String>, there: Vec<String>, count: usize },
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
    #[error("{}", rejected_text(.0))]
    Rejected(Vec<Finding>),
    #[error("{}", contract_text(.0))]
    Contract(Refused),
    #[error(
        "{scope} has no revision `{revision}`, which the set gives for {object}: it is unknown here, or of another object"
    )]
    UnknownRevision { scope: String, revision: String, object: String, several: bool },
    #[error("`{field}` has the revision of {object} itself, and takes the one of `{scope}`, which it is part of")]
    RevisionOfObject { field: &'static str, scope: String, object: String },
    #[error("{}", no_revision_text(.0))]
    NoRevision(Vec<NoRevision>),
    #[error("this session has staged nothing that could be {0}")]
    NothingStaged(&'static str),
    #[error("cs-{number} is {state}: it can no longer be {wish}")]
    Ended { number: i64, state: String, wish: &'static str },
    #[error("cs-{number} has no operation {position} that could be applied")]
    NoOperation { number: i64, position: i64 },
    #[error("cs-{number} is based on cs-{by}, which contains its change of {object}: that cannot be left out")]
    Inseparable { number: i64, by: i64, object: String },
    #[error(
        "operations {position} and {with} of cs-{number} say one thing in two places, the graph and a step ({object}): neither \
         can be left out"
    )]
    SaidTwice { number: i64, position: i64, with: i64, object: String },
    #[error("cs-{number} renames something, and a rename is made as a whole: none of its operations can be left out")]
    RenameInPart { number: i64 },
    #[error("cs-{number} was made on cs-{on}, which was rejected: it cannot be {wish}")]
    Blocked { number: i64, on: i64, wish: &'static str },
    #[error("deleting {} has to be confirmed by name", .0.join(", "))]
    DeletesUnconfirmed(Vec<String>),
    #[error("{0}")]
    Conflict(Conflicts),
    #[error("cs-{number} clashes with the package at other places than a side is taken for")]
    OtherClashes { number: i64 },
    #[error("one side has deleted {object}: the same side has to be taken at all of its places")]
    OneSide { object: String },
    #[error("change {moment} cannot be taken back: {} changed the same places since", changes(.since, .conflicts))]
    UndoConflict { moment: i64, since: Vec<i64>, conflicts: Conflicts },
    #[error("{} of this session {} the same places of {}", .sets.join(" and "), if .sets.len() == 1 { "changes" } else { "change" }, .conflicts.names())]
    OverDraft { sets: Vec<String>, conflicts: Conflicts },
    #[error("change {moment} cannot be taken back: {why}")]
    NoUndo { moment: i64, why: String },
    #[error("change {moment} cannot be taken back: no change has this number")]
    NoChange { moment: i64 },
    #[error("a session keeps at most {max} {what}")]
    TooMany { max: usize, what: &'static str },
    #[error("{object} is used by more than {max} workflows, agents and assets")]
    UsedTooMuch { object: String, max: usize },
    #[error(transparent)]
    Store(#[from] Error),
}

/// A revision that a set does not give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoRevision {
    /// Where the set has it, such as `revisions.assetsRevision`.
    pub field: String,
    /// The object that it is the revision of, or of what the object is in.
    pub object: String,
}

fn findings_text(what: &str, findings: &[impl fmt::Display]) -> String {
    let shown: Vec<String> = findings.iter().take(SHOWN).map(ToString::to_string).collect();
    format!("{what}: {}{}", shown.join("; "), and_more(findings.len(), SHOWN))
}

fn and_more(count: usize, shown: usize) -> String {
    let more = count.saturating_sub(shown);
    if more > 0 { format!(", and {more} more") } else { String::new() }
}

/// Several things in a line each, so that none is overlooked; one alone in the line of what it belongs to.
fn lines_text(what: &str, lines: &[String], count: usize) -> String {
    match lines {
        [one] if count == 1 => format!("{what}: {one}"),
        several => {
            let lines: String = several.iter().map(|line| format!("\n- {line}")).collect();
            format!("{what}, in {count} places:{lines}{}", and_more(count, several.len()))
        }
    }
}

fn rejected_text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| match finding.file.is_empty() && !finding.pointer.is_empty() {
        true if findings.len() > 1 => format!("{}: {finding}", finding.pointer),
        _ => finding.to_string(),
    };
    let lines: Vec<String> = findings.iter().take(SHOWN_OF_SET).map(line).collect();
    lines_text("the change cannot be made", &lines, findings.len())
}

fn contract_text(refused: &Refused) -> String {
    let line = |error: &ContractError| {
        // The most of them begin with where it is.
        let names_it = error.path.is_empty() || error.message.contains(&format!("`{}`", error.path));
        let said = if names_it { error.message.clone() } else { format!("{}: {}", error.path, error.message) };
        match error.message.contains(&error.expected) && error.message.contains(&error.actual) {
            true => said,
            false => format!("{said} (expected {}, got {})", error.expected, error.actual),
        }
    };
    let lines: Vec<String> = refused.errors.iter().take(SHOWN_OF_SET).map(line).collect();
    lines_text("the change set is not as its contract says", &lines, refused.errors.len())
}

fn no_revision_text(missing: &[NoRevision]) -> String {
    if let [NoRevision { field, object }] = missing {
        return format!(
            "`{field}` is missing: {object} is there already, and a change says which revision of it was read"
        );
    }
    let line = |one: &NoRevision| format!("`{}` is missing, for {}", one.field, one.object);
    let lines: Vec<String> = missing.iter().take(NAMES_SHOWN_MAX).map(line).collect();
    let what = "what is there already is changed on the revision that was read";
    lines_text(what, &lines, missing.len())
}

fn names_text(there: &[String], count: usize) -> String {
    if there.is_empty() {
        return "; there is none yet".to_owned();
    }
    let names: Vec<String> = there.iter().map(|name| format!("`{name}`")).collect();
    format!("; there are: {}{}", names.join(", "), and_more(count, there.len()))
}

/// What the findings say is to be done, each once.
fn hints_of(findings: &[Finding]) -> String {
    let mut hints: Vec<&str> = Vec::new();
    for finding in findings {
        if !finding.hint.is_empty() && !hints.contains(&finding.hint.as_str()) && hints.len() < SHOWN {
            hints.push(&finding.hint);
        }
    }
    hints.join("; ")
}

impl PackageError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPackage | Self::NotFound { .. } | Self::NoChange { .. } => ErrorKind::NotFound,
            Self::Envelope(EnvelopeError::Missing { .. }) => ErrorKind::NotFound,
            Self::Context(inside) | Self::Near { error: inside, .. } => inside.kind(),
            Self::Envelope(_)
            | Self::Unnamed(_)
            | Self::Invalid(_)
            | Self::Unfit { .. }
            | Self::Rejected(_)
            | Self::Contract(_)
            | Self::NoRevision(_)
            | Self::RevisionOfObject { .. }
            | Self::NoOperation { .. }
            | Self::Inseparable { .. }
            | Self::SaidTwice { .. }
            | Self::RenameInPart { .. }
            | Self::DeletesUnconfirmed(_)
            | Self::OneSide { .. }
            | Self::NothingStaged(_) => ErrorKind::Validation,
            Self::Exists
            | Self::UnknownRevision { .. }
            | Self::Ended { .. }
            | Self::Blocked { .. }
            | Self::Conflict(_)
            | Self::OtherClashes { .. }
            | Self::UndoConflict { .. }
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
            Self::NoRevision(_) | Self::RevisionOfObject { .. } | Self::Rejected(_) => ErrorCode::ChangeSetContract,
            Self::Invalid(_) | Self::Unfit { .. } => ErrorCode::ValidationFailed,
            Self::UnknownRevision { .. } | Self::Conflict(_) | Self::UndoConflict { .. } | Self::OverDraft { .. } => {
                ErrorCode::RevisionMismatch
            }
            Self::NothingStaged(_) => ErrorCode::NothingStaged,
            Self::DeletesUnconfirmed(_) => ErrorCode::ApplyUnconfirmed,
            Self::NoUndo { .. } | Self::NoChange { .. } => ErrorCode::ApplyFailed,
            _ => return None,
        })
    }

    pub(super) fn hint(&self) -> Option<String> {
        let said = match self {
            Self::Rejected(findings) => match hints_of(findings).as_str() {
                "" => "fix what is named and send the whole set again".to_owned(),
                hints => format!("{hints}; send the whole set again"),
            },
            Self::UnknownRevision { scope, several: true, .. } => format!(
                "the set changes several workflows: send the revision of each in `extensions`, such as `{{\"baseRevisions\": \
                 {{\"{scope}\": \"…\"}}}}`; nothing was changed"
            ),
            Self::Envelope(
                EnvelopeError::Ambiguous { workflows, .. } | EnvelopeError::WhichWorkflow { workflows, .. },
            ) => {
                let first = workflows.first().map(String::as_str).unwrap_or_default();
                format!("send `workflowId`, too, such as \"{first}\"")
            }
            Self::Near { error, near, there, .. } => match (near.is_empty() && there.is_empty(), &**error) {
                (true, PackageError::NotFound { what: "workflow", .. }) => {
                    "the package has no workflow yet: stage an upsert of one, with `graph_json` and `workflow_md`"
                        .to_owned()
                }
                (true, inside) => return inside.hint(),
                (false, _) => "send one of the names that there are".to_owned(),
            },
            Self::Context(inside) => return inside.hint(),
            other => other.fixed_hint()?.to_owned(),
        };
        Some(said)
    }

    fn fixed_hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoPackage => "a person brings one: `toolhost package new NAME`, or `toolhost package import PATH`",
            Self::Exists => "the texts of the one that is there are kept in the history",
            Self::NotFound { what: "change set", .. } => {
                "send the `changeSetId` that `builder.change.stage` answered with; a person lists all with \
                 `toolhost change list --all`"
            }
            Self::NotFound { .. } | Self::Envelope(EnvelopeError::Missing { .. }) => {
                "`builder.refs.find` shows what refers to what"
            }
            Self::UnknownRevision { .. } => {
                "read the object again, make the change anew and send `data.revisions` of that read, or for a set over several \
                 workflows the revision of each in `extensions.baseRevisions`; nothing was changed"
            }
            Self::RevisionOfObject { .. } => {
                "send `data.revisions` of the read as `revisions`, not `meta.revision`; nothing was changed"
            }
            Self::NoRevision(missing) => match missing.len() {
                1 => "read the object, and send the revision that came with it; nothing was changed",
                _ => {
                    "a read of an asset or an agent gives them: its `revisions`, and `baseRevisions` of the workflows that refer \
                     to it; nothing was changed"
                }
            },
            Self::Contract(_) => "fix what is named and send the whole set again",
            Self::Invalid(_) => "fix what is named; nothing was changed",
            Self::Unfit { .. } => "stage the set again with what is named put right; nothing was applied",
            Self::Envelope(EnvelopeError::Profile(_)) => {
                "fix that field, or take it out: what is not said is found in the texts"
            }
            Self::Conflict(_) => {
                "validate the set: `builder.change.validate` (on the command line `toolhost change validate`) shows both texts and \
                 says how to go on from there; nothing was changed"
            }
            Self::UndoConflict { .. } => {
                "take the later changes back first, the newest first (`toolhost change undo N`); or stage what is to become of \
                 these places as a new change; nothing was changed"
            }
            Self::OverDraft { .. } => {
                "read the object again, which shows what this session has staged, and make the change on that; or discard \
                 the earlier set first; nothing was changed"
            }
            Self::UsedTooMuch { .. } => "change some of those first, so that fewer use it; nothing was changed",
            Self::DeletesUnconfirmed(_) => {
                "name each object that goes, in `confirmDeletes` or with `toolhost change apply --delete OBJECT`; nothing was \
                 changed"
            }
            Self::RenameInPart { .. } => "apply the whole set; nothing was changed",
            Self::Inseparable { .. } | Self::SaidTwice { .. } => {
                "choose that operation, too, or apply the whole set; nothing was changed"
            }
            Self::Blocked { .. } => {
                "it contains the rejected text: read the objects again and stage the change anew; `builder.change.discard` \
                 (on the command line `toolhost change discard`) gives it up"
            }
            Self::Ended { state, .. } if state == "applied" => {
                "stage another set for what is to change further; a person can take it back with `toolhost change undo`"
            }
            Self::Ended { .. } => "read the objects again, and stage the change anew if it is still wanted",
            Self::NothingStaged(_) => "stage a set first, with `builder.change.stage`",
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
            Self::Conflict(conflicts) | Self::UndoConflict { conflicts, .. } => {
                json!({ "conflicts": conflicts.0, "blocking": true })
            }
            Self::OverDraft { sets, conflicts } => {
                json!({ "changeSets": sets, "conflicts": conflicts.0, "blocking": true })
            }
            Self::NoRevision(missing) => json!({ "missing": missing }),
            Self::UnknownRevision { scope, revision, .. } => {
                json!({ "field": scope, "provided": revision, "blocking": true })
            }
            Self::Blocked { on, .. } => json!({ "rejected": set_id(*on), "blocking": true }),
            Self::Near { near, there, count, .. } => json!({ "nearest": near, "there": there, "count": count }),
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
        said.hint = error.hint();
        said.details = error.details();
        said
    }
}

impl From<serde_json::Error> for PackageError {
    fn from(error: serde_json::Error) -> Self {
        Self::Store(Error::Row(error.to_string()))
    }
}

/// The changes that are in the way of an undo.
fn changes(since: &[i64], conflicts: &Conflicts) -> String {
    let names: Vec<String> = since.iter().map(i64::to_string).collect();
    match names.as_slice() {
        [] => format!("something else has, in {},", conflicts.names()),
        [one] => format!("change {one} has"),
        several => format!("changes {} have", several.join(", ")),
    }
}
