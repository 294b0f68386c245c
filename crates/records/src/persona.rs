//! Personas: the names under which agents work.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::kind::Kind;

/// A role that an agent plays in the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Persona {
    /// The name that commits, comments and assignments carry.
    pub name: String,
    /// The profile whose tools it gets, such as `developer`.
    pub role: String,
    /// How it works and speaks.
    #[serde(default)]
    pub personality: String,
}

impl Body for Persona {
    const KIND: Kind = Kind::Persona;

    fn title(&self) -> &str {
        &self.name
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.name))
    }
}
