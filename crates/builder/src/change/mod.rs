//! Sets of changes: what a model may propose and a person may apply.
//!
//! [`parse`] takes a set as it was written and says what breaks the contract; [`complete`](complete()) makes whole texts of
//! the small edits in it. An object of a package is a [`Snapshot`]:
//! [`snapshot`](snapshot()) takes it, [`proposed`] says what an operation makes of it, [`write`](write()) and
//! [`overlay`] put it into the files without touching a byte of anything else. [`merge`](merge()) brings two edits of
//! one object together; [`diff`](diff()), [`impact`](impact()) and [`validate`](validate()) say what a set does and
//! whether it may be done; [`renames`] makes the operations that let references follow a name.
//!
//! Nothing here keeps, applies or undoes a set: that is `packages`.

mod diff;
mod doubt;
mod explain;
mod graph;
mod impact;
mod merge;
mod moved;
mod rename;
mod report;
mod set;
mod small;
mod snapshot;
mod splice;
mod twice;
mod validate;
mod write;

pub use diff::{Change, FileDiff, ObjectDiff, diff, masked_diff, render};
pub use explain::explain;
pub(crate) use graph::compare;
pub use graph::{FieldChange, GraphDiff, ItemChange};
pub use impact::{Counts, Impact, impact, impact_on};
pub use merge::{Clash, ClashPlace, Merged, Side, WrongSides, merge, merge_taking, with_current};
pub use rename::{Rename, renames, wanted};
pub use report::{Found, Report, Stage};
pub use set::{
    ChangeSet, ContractError, EdgeName, Implied, LEGACY, Op, Operation, Parsed, Payload, Refused, Revision, Revisions,
    SCHEMA_UNSUPPORTED, SmallEdits, StepPayload, TextEdit, VIOLATION, WorkflowPayload, both, parse,
};
pub(crate) use set::{parse_by, parse_staged};
pub use small::complete;
pub use snapshot::{Part, Snapshot, affected, proposed, snapshot};
pub use twice::says_twice;
pub use validate::{Check, validate};
pub use write::{overlay, write};

pub use crate::envelope::{Mode, TargetType};
