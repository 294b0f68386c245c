//! Artifacts: the documents of an iteration. A version of an artifact is the version of its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::kind::{Kind, words};

words! {
    /// Which document.
    ArtifactKind {
        Idea = "idea",
        Prd = "prd",
        Design = "design",
        Plan = "plan",
        CheckReport = "check_report",
        DeliveryReport = "delivery_report",
    }
}

/// A document; an iteration has one of each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    pub kind: ArtifactKind,
    /// Markdown.
    pub content: String,
}

impl Body for Artifact {
    const KIND: Kind = Kind::Artifact;

    fn title(&self) -> &str {
        self.kind.as_str()
    }
}
