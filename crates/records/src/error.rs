//! What can go wrong with a record, told so that a model can fix it.

use serde_json::json;
use toolhost_contract::{BYTES_MAX, ErrorKind, ToolError};

use super::kind::{Kind, RecordId};
use toolhost_store::Error;

pub type Result<T> = std::result::Result<T, RecordError>;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("there is no {} `{id}` in this project", .id.kind.as_str())]
    NotFound { id: RecordId },
    #[error("{id} has no version {version}")]
    NoVersion { id: RecordId, version: i64 },
    #[error("`{text}` is not the id of {}: it looks like {}-001", named(*kind), .kind.prefix())]
    BadId { text: String, kind: Kind },
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
    #[error("{field}: there is no {} `{to}` in this project", .to.kind.as_str())]
    Reference { field: String, to: RecordId },
    #[error("{id} has changed: it is at version {found}, not {expected}")]
    Stale { id: RecordId, expected: i64, found: i64 },
    #[error("{id} is completed: it is reopened only with a reason")]
    NoReason { id: RecordId },
    #[error("{id} is {from}, not {expected}")]
    NotInState { id: RecordId, from: String, expected: String },
    #[error("{id} cannot go from {from} to {to}: {}", allowed_text(from, allowed))]
    Transition { id: RecordId, from: String, to: String, allowed: &'static [&'static str] },
    #[error("a new {} begins as {start}, not as {found}", .kind.as_str())]
    Start { kind: Kind, start: &'static str, found: String },
    #[error("{id} is used by {}", ids_text(by))]
    InUse { id: RecordId, by: Vec<RecordId> },
    #[error("the dependencies would go in a circle: {}", chain_text(chain))]
    Cycle { chain: Vec<RecordId> },
    #[error("{id} is held by {holder} for another {} s", (left_ms + 999) / 1000)]
    Held { id: RecordId, holder: String, left_ms: i64 },
    #[error("{id} waits for {}", ids_text(on))]
    Waits { id: RecordId, on: Vec<RecordId> },
    #[error("the export is not whole: {what}. `--partial` imports what is there")]
    NotWhole { what: String },
    #[error("{what} is {bytes} bytes long; {max} is the most")]
    TooLarge { what: String, bytes: usize, max: usize },
    #[error("more than {max} records depend on {id}")]
    TooMany { id: RecordId, max: usize },
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{by} has already been made of {id}")]
    Promoted { id: RecordId, by: RecordId },
    #[error("there is already {id}")]
    Exists { id: RecordId },
    #[error("the content of {} is not as it should be: {problem}", named(*kind))]
    Content { kind: Kind, problem: String },
    #[error("the new text has {new} characters where the present one has {old}: it would lose most of it")]
    LosesText { old: usize, new: usize },
    #[error(transparent)]
    Store(#[from] Error),
}

/// Ids named in one message; more are counted.
const IDS_SHOWN: usize = 20;

/// The tool that lists records of this kind.
fn shown_by(kind: Kind) -> String {
    match kind {
        Kind::Component | Kind::Design => "design.get".to_owned(),
        Kind::Document => "ticket.read".to_owned(),
        Kind::Insight | Kind::Issue | Kind::Learning | Kind::Decision | Kind::Pattern => "memory.query".to_owned(),
        other => format!("{}.list", other.as_str()),
    }
}

/// `a task`, `an issue`.
fn named(kind: Kind) -> String {
    let name = kind.as_str();
    let article = if name.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}

fn allowed_text(from: &str, allowed: &[&str]) -> String {
    if allowed.is_empty() { format!("{from} is final") } else { format!("allowed is {}", allowed.join(" or ")) }
}

fn ids_text(ids: &[RecordId]) -> String {
    let shown: Vec<String> = ids.iter().take(IDS_SHOWN).map(ToString::to_string).collect();
    let more = ids.len().saturating_sub(IDS_SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// `TASK-001 → TASK-002 → TASK-001`.
pub fn chain_text(chain: &[RecordId]) -> String {
    chain.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
}

impl RecordError {
    /// What is wrong with an export, without the way out.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::NotWhole { what } => what.clone(),
            error => error.to_string(),
        }
    }

    pub(crate) fn in_field(self, field: &str) -> Self {
        Self::Field { field: field.to_owned(), problem: self.to_string() }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } | Self::NoVersion { .. } => ErrorKind::NotFound,
            Self::BadId { .. }
            | Self::Field { .. }
            | Self::Reference { .. }
            | Self::Start { .. }
            | Self::NoReason { .. }
            | Self::Content { .. }
            | Self::NotWhole { .. }
            | Self::Cycle { .. } => ErrorKind::Validation,
            Self::Stale { .. }
            | Self::NotInState { .. }
            | Self::Transition { .. }
            | Self::InUse { .. }
            | Self::Held { .. }
            | Self::Waits { .. }
            | Self::Promoted { .. }
            | Self::Exists { .. }
            | Self::LosesText { .. } => ErrorKind::Conflict,
            Self::TooLarge { .. } | Self::TooMany { .. } => ErrorKind::Limit,
            Self::Io(_) => ErrorKind::Io,
            Self::Store(_) => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { id } => format!("`{}` shows which there are", shown_by(id.kind)),
            Self::Reference { to, .. } => format!("`{}` shows which there are; nothing was changed", shown_by(to.kind)),
            Self::NoVersion { .. } => "`record.history` shows the versions".to_owned(),
            Self::Stale { id, .. } | Self::NotInState { id, .. } => {
                format!("read {id} again and decide anew; nothing was changed")
            }
            Self::NoReason { .. } => "give the reason as `why`; nothing was changed".to_owned(),
            Self::Transition { from, allowed, .. } if !allowed.is_empty() => {
                format!("from {from} it goes to {}; nothing was changed", allowed.join(" or "))
            }
            Self::InUse { .. } => "change those first, so that they no longer name it; nothing was changed".to_owned(),
            Self::Cycle { .. } => "leave one of these dependencies out; nothing was changed".to_owned(),
            Self::Waits { on, .. } => format!("{} has to be completed first; nothing was changed", ids_text(on)),
            Self::Held { .. } => "`task.ready` shows the tasks that are free".to_owned(),
            Self::TooLarge { .. } => "keep long texts in files of the workspace, and name them here".to_owned(),
            Self::TooMany { .. } => "delete what depends on it in parts first; nothing was changed".to_owned(),
            Self::Promoted { by, .. } => format!("it is kept already: `record.history` shows {by}"),
            Self::LosesText { .. } => "send the whole text; the versions before are kept".to_owned(),
            _ => return None,
        };
        Some(hint)
    }

    fn details(&self) -> Option<serde_json::Value> {
        let texts = |ids: &[RecordId]| ids.iter().take(IDS_SHOWN).map(ToString::to_string).collect::<Vec<_>>();
        Some(match self {
            Self::Transition { id, from, to, allowed } => {
                json!({ "id": id.to_string(), "from": from, "to": to, "allowed": allowed })
            }
            Self::Stale { id, expected, found } => {
                json!({ "id": id.to_string(), "expectedVersion": expected, "version": found })
            }
            Self::TooLarge { max, .. } => json!({ BYTES_MAX: max }),
            Self::InUse { by, .. } => json!({ "usedBy": texts(by) }),
            Self::Cycle { chain } => json!({ "chain": texts(chain) }),
            Self::Waits { on, .. } => json!({ "waitsFor": texts(on) }),
            _ => return None,
        })
    }
}

impl From<RecordError> for ToolError {
    fn from(error: RecordError) -> Self {
        if let RecordError::Store(error) = error {
            return error.into();
        }
        let kind = error.kind();
        let (hint, details) = (error.hint(), error.details());
        let mut said = Self::new(kind, error.to_string());
        said.hint = hint;
        said.details = details;
        said
    }
}

impl From<serde_json::Error> for RecordError {
    fn from(error: serde_json::Error) -> Self {
        Self::Store(Error::Row(error.to_string()))
    }
}
