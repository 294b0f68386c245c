//! The parts of a payload that change a part of an object: contract 1.1.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Small edits of one object, beside which a payload need not hold the object as a whole. Contract 1.1.
///
/// In a set as it is kept there are none: staging makes whole texts of them, see [`complete`](super::super::complete()).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SmallEdits {
    /// Nodes of the graph by id: the fields to set. One that is not there is added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Map<String, Value>>,
    /// Edges by id, or by their ends and their label: the fields to set. One that is not there is added.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Map<String, Value>>,
    /// Ids of nodes that go, with the edges at them and their steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_nodes: Vec<String>,
    /// Edges that go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_edges: Vec<EdgeName>,
    /// The node to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_node_id: Option<String>,
    /// Fields of the front matter to set; null takes one out.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub front_matter: Map<String, Value>,
    /// Transitions of a step by their target, and by their label where it leads there twice: the fields to set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Map<String, Value>>,
    /// Targets to which a step no longer leads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_transitions: Vec<String>,
    /// Fields of an agent to set, as a JSON Merge Patch (RFC 7396).
    #[serde(rename = "agent_fields", skip_serializing_if = "Map::is_empty")]
    pub agent_fields: Map<String, Value>,
    /// Passages of the text to replace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_edits: Vec<TextEdit>,
}

/// A passage that stands in the text once, and what stands there afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextEdit {
    /// The passage, letter by letter.
    pub find: String,
    /// Its replacement; empty takes the passage out.
    pub replace: String,
}

/// An edge that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EdgeName {
    /// By its id.
    Id(String),
    /// By its ends, and by its label where several edges have these.
    Ends {
        from: String,
        to: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
}

impl SmallEdits {
    /// The fields of a payload that are small edits.
    pub(super) const FIELDS: [&'static str; 10] = [
        "nodes",
        "edges",
        "deleteNodes",
        "deleteEdges",
        "entryNodeId",
        "frontMatter",
        "transitions",
        "deleteTransitions",
        "agent_fields",
        "textEdits",
    ];

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether they are passages of a text alone.
    #[must_use]
    pub fn are_only_texts(&self) -> bool {
        let texts = Self { text_edits: self.text_edits.clone(), ..Self::default() };
        !self.text_edits.is_empty() && texts == *self
    }

    /// Whether some are about the graph.
    pub(crate) fn has_graph(&self) -> bool {
        let Self { nodes, edges, delete_nodes, delete_edges, entry_node_id, .. } = self;
        !(nodes.is_empty() && edges.is_empty() && delete_nodes.is_empty() && delete_edges.is_empty())
            || entry_node_id.is_some()
    }

    /// Whether some are about the Markdown.
    pub(crate) fn has_document(&self) -> bool {
        let Self { front_matter, transitions, delete_transitions, text_edits, .. } = self;
        !(front_matter.is_empty() && transitions.is_empty() && delete_transitions.is_empty() && text_edits.is_empty())
    }
}
