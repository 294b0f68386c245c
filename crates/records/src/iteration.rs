//! Iterations: rounds of planning and building, each of which may begin with what another one had.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{Body, OnDelete, Reference, references};
use super::error::Result;
use super::kind::{Kind, words};

words! {
    /// What a new iteration takes over from its base.
    Inheritance {
        /// Nothing.
        None = "none",
        /// The plan: requirements, features, components, design, tasks and milestones.
        Partial = "partial",
        /// The plan, and the latest version of every artifact.
        Full = "full",
    }
}

words! {
    /// Where an iteration stands.
    IterationStatus {
        Draft = "draft",
        Running = "running",
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
    }
}

/// A round of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Iteration {
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub status: IterationStatus,
    pub inheritance: Inheritance,
    /// The iteration it builds on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_iteration_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
}

impl Body for Iteration {
    const KIND: Kind = Kind::Iteration;

    fn title(&self) -> &str {
        &self.title
    }

    fn state(&self) -> &str {
        self.status.as_str()
    }

    fn references(&self) -> Result<Vec<Reference>> {
        references("baseIterationId", Kind::Iteration, OnDelete::Refuse, &self.base_iteration_id)
    }
}
