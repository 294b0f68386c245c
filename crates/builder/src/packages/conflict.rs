//! Two changes of one object that touch each other: somebody has to choose.

use std::fmt;

use crate::change::Clash;
use schemars::JsonSchema;
use serde::Serialize;

/// Changes of one object that touch each other: the three sides of each place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    pub object: String,
    pub clashes: Vec<Clash>,
}

/// All conflicts of one apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "somebody else has changed the same places of {}", self.names())
    }
}

impl Conflicts {
    /// The objects.
    pub(super) fn names(&self) -> String {
        self.0.iter().map(|conflict| conflict.object.as_str()).collect::<Vec<_>>().join(", ")
    }
}
