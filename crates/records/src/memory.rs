//! What was learnt: insights, issues and learnings of an iteration, decisions and patterns of the project.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{Body, OnDelete, Reference};
use super::error::{RecordError, Result};
use super::kind::{Kind, RecordId, words};

words! {
    /// How much it matters.
    Importance { Critical = "critical", Important = "important", Normal = "normal" }
}

/// Something noticed in a stage of the work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    pub stage: String,
    pub content: String,
    pub importance: Importance,
}

/// Something that is wrong, until it is resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    pub stage: String,
    pub content: String,
    pub resolved: bool,
    /// How it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at_ms: Option<i64>,
}

/// Something to do better next time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Learning {
    pub content: String,
}

/// What was decided for the project, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub title: String,
    pub context: String,
    pub decision: String,
    #[serde(default)]
    pub consequences: Vec<String>,
    /// The insight, issue or learning it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

/// A way of doing things in the project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pattern {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub usage: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_example: Option<String>,
    /// As a decision's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
}

/// What a decision or a pattern is made of.
const SOURCES: [Kind; 3] = [Kind::Insight, Kind::Issue, Kind::Learning];

fn source(id: Option<&String>) -> Result<Vec<Reference>> {
    let Some(text) = id else { return Ok(Vec::new()) };
    match RecordId::parse(text) {
        Some(to) if SOURCES.contains(&to.kind) => {
            Ok(vec![Reference { field: "sourceId", to, on_delete: OnDelete::Unlink }])
        }
        _ => {
            Err(RecordError::BadId { text: text.chars().take(80).collect(), kind: Kind::Insight }.in_field("sourceId"))
        }
    }
}

impl Body for Insight {
    const KIND: Kind = Kind::Insight;

    fn title(&self) -> &str {
        &self.content
    }

    fn state(&self) -> &str {
        self.importance.as_str()
    }

    fn words(&self) -> Vec<&str> {
        vec![&self.content, &self.stage]
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.content))
    }
}

impl Body for Issue {
    const KIND: Kind = Kind::Issue;

    fn title(&self) -> &str {
        &self.content
    }

    fn state(&self) -> &str {
        if self.resolved { "resolved" } else { "open" }
    }

    fn words(&self) -> Vec<&str> {
        let mut words = vec![self.content.as_str(), &self.stage];
        words.extend(self.resolution.as_deref());
        words
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.content))
    }
}

impl Body for Learning {
    const KIND: Kind = Kind::Learning;

    fn title(&self) -> &str {
        &self.content
    }

    fn words(&self) -> Vec<&str> {
        vec![&self.content]
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.content))
    }
}

impl Body for Decision {
    const KIND: Kind = Kind::Decision;

    fn title(&self) -> &str {
        &self.title
    }

    fn references(&self) -> Result<Vec<Reference>> {
        source(self.source_id.as_ref())
    }

    fn words(&self) -> Vec<&str> {
        let mut words = vec![self.title.as_str(), &self.context, &self.decision];
        words.extend(self.consequences.iter().map(String::as_str));
        words
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.decision))
    }
}

impl Body for Pattern {
    const KIND: Kind = Kind::Pattern;

    fn title(&self) -> &str {
        &self.name
    }

    fn references(&self) -> Result<Vec<Reference>> {
        source(self.source_id.as_ref())
    }

    fn words(&self) -> Vec<&str> {
        let mut words = vec![self.name.as_str(), &self.description];
        words.extend(self.usage.iter().chain(&self.tags).map(String::as_str));
        words.extend(self.code_example.as_deref());
        words
    }

    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.description))
    }
}
