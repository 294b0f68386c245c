//! Why a set is refused: each place of it that breaks the contract.

use serde::{Deserialize, Serialize};

use super::VIOLATION;
use crate::finding::quoted;

/// A set that does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {} places break the contract of a change set", .errors.len())]
pub struct Refused {
    /// [`SCHEMA_UNSUPPORTED`](super::SCHEMA_UNSUPPORTED) or [`VIOLATION`].
    pub code: &'static str,
    /// Each place that is wrong, at least one.
    pub errors: Vec<ContractError>,
}

/// One place of a set that breaks the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractError {
    /// Which rule. Stable.
    pub code: String,
    /// Where, such as `operations[0].target.workflowId`; empty for the set as a whole.
    pub path: String,
    /// What would be right.
    pub expected: String,
    /// What stands there.
    pub actual: String,
    /// Both in a sentence.
    pub message: String,
}

pub(super) fn refused(error: ContractError) -> Refused {
    Refused { code: VIOLATION, errors: vec![error] }
}

pub(super) fn error(
    code: &str,
    path: impl Into<String>,
    expected: impl Into<String>,
    actual: &str,
    message: String,
) -> ContractError {
    ContractError {
        code: code.to_owned(),
        path: path.into(),
        expected: expected.into(),
        actual: quoted(actual),
        message,
    }
}
