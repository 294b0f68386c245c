//! A set of changes as types, and how it becomes them.

mod contract;
mod legacy;
mod refused;
mod small;
mod spelled;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use contract::{Parsed, parse};
pub(crate) use contract::{check_size, parse_by, parse_staged, parse_with};
pub use refused::{ContractError, Refused};
pub use small::{EdgeName, SmallEdits, TextEdit};

use crate::envelope::{Mode, TargetType};
use crate::finding::Finding;
use crate::refs::Object;

/// The code of a set whose contract is not ours.
pub const SCHEMA_UNSUPPORTED: &str = "AI_CHANGESET_SCHEMA_UNSUPPORTED";
/// The code of a set that breaks the contract.
pub const VIOLATION: &str = "AI_CHANGESET_CONTRACT_VIOLATION";
/// The code of the warning that a set came in the old shape.
pub const LEGACY: &str = "CHANGESET_LEGACY_SHAPE";

/// A set of changes that a person may apply as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeSet {
    /// The version of the contract, such as `1.0`.
    pub schema_version: String,
    /// What the session is about.
    pub target_type: TargetType,
    /// Whether the target is made or made better.
    pub mode: Mode,
    /// The changes, in order.
    pub operations: Vec<Operation>,
    /// What the changes were made against.
    pub revisions: Revisions,
    /// Whatever else is said.
    pub extensions: Map<String, Value>,
    /// The impact as the set declares it. Never believed: see [`super::impact()`].
    pub declared_impact: Option<Value>,
}

/// What a set of contract 1.1 changes besides what it says, because it follows from that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Implied {
    /// The object that it is a change of.
    pub object: Object,
    /// The change, in a sentence.
    pub says: String,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// What to do.
    pub op: Op,
    /// With what: a workflow, a step, an agent or an asset.
    pub object: Object,
    /// What it is to be. Never there for a delete; there for an upsert, but for one of small edits alone.
    pub payload: Option<Payload>,
    /// What of it is to be otherwise.
    pub edits: SmallEdits,
    /// Why.
    pub reason: Option<String>,
}

/// What to do with an object. A move is a delete and an upsert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Make it, or make it so.
    Upsert,
    /// Take it out.
    Delete,
}

/// What an object is to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// A workflow: what is left out stays.
    Workflow(WorkflowPayload),
    /// A step.
    Step(StepPayload),
    /// An agent: its definition as a whole, a JSON object.
    Agent(Value),
    /// An asset: its text.
    Asset(String),
}

/// What of a workflow is to be how. What is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowPayload {
    /// The document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_md: Option<String>,
    /// The graph, as a whole: a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph_json: Option<Value>,
    /// The path of the document, for a new workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path of the graph, for a new workflow.
    #[serde(rename = "graphPath", skip_serializing_if = "Option::is_none")]
    pub graph_path: Option<String>,
    /// Its name for people.
    #[serde(rename = "displayName", skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// What a step is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepPayload {
    /// Its file, as a whole.
    pub step_markdown: String,
    /// Its file's path. The node names it; this only says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What a set was made against. None: it does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revisions {
    /// Of the workflow.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workflow_revision: Option<Revision>,
    /// Of all agents.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agents_revision: Option<Revision>,
    /// Of all assets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub assets_revision: Option<Revision>,
}

/// A revision that a set names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Revision {
    /// As we give them: SHA-256, 64 hexadecimal digits.
    Hash(String),
    /// A number, as older sets have it. It is the revision of nothing here.
    Number(u64),
}

/// The first payload, in which each field that the second one has is the second one's.
#[must_use]
pub fn both(first: Option<Payload>, second: Option<Payload>) -> Option<Payload> {
    match (first, second) {
        (Some(Payload::Workflow(first)), Some(Payload::Workflow(second))) => Some(Payload::Workflow(WorkflowPayload {
            workflow_md: second.workflow_md.or(first.workflow_md),
            graph_json: second.graph_json.or(first.graph_json),
            path: second.path.or(first.path),
            graph_path: second.graph_path.or(first.graph_path),
            display_name: second.display_name.or(first.display_name),
            description: second.description.or(first.description),
            tags: second.tags.or(first.tags),
        })),
        (first, second) => second.or(first),
    }
}

impl Operation {
    /// The kind of its object.
    #[must_use]
    pub fn target_type(&self) -> TargetType {
        match &self.object {
            Object::Step { .. } => TargetType::Step,
            Object::Agent(_) => TargetType::Agent,
            Object::Asset(_) => TargetType::Asset,
            _ => TargetType::Workflow,
        }
    }

    /// As it is written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let target = match &self.object {
            Object::Step { workflow, node } => json!({ "workflowId": workflow, "nodeId": node }),
            Object::Workflow(id) => json!({ "workflowId": id }),
            Object::Agent(id) => json!({ "agentId": id }),
            Object::Asset(path) => json!({ "path": path }),
            Object::Package | Object::Variable { .. } => json!({}),
        };
        let mut value = json!({ "op": self.op, "targetType": self.target_type(), "target": target });
        match &self.payload {
            Some(Payload::Workflow(workflow)) => value["payload"] = json!(workflow),
            Some(Payload::Step(step)) => value["payload"] = json!(step),
            Some(Payload::Agent(agent)) => value["payload"] = json!({ "agent_definition": agent }),
            Some(Payload::Asset(content)) => value["payload"] = json!({ "content": content }),
            None => {}
        }
        if let (false, Value::Object(edits)) = (self.edits.is_empty(), json!(self.edits)) {
            let mut payload = value["payload"].as_object().cloned().unwrap_or_default();
            payload.extend(edits);
            value["payload"] = Value::Object(payload);
        }
        if let Some(reason) = &self.reason {
            value["reason"] = json!(reason);
        }
        value
    }
}

impl ChangeSet {
    /// The numbers of the staged sets that this one takes the place of: `extensions.supersedes`, an id such as `cs-1` or
    /// several.
    ///
    /// # Errors
    /// What is there is no such id.
    pub fn supersedes(&self) -> Result<Vec<i64>, Box<Finding>> {
        let named: Vec<&Value> = match self.extensions.get("supersedes") {
            None => return Ok(Vec::new()),
            Some(Value::Array(names)) => names.iter().collect(),
            Some(one) => vec![one],
        };
        let number = |name: &Value| name.as_str()?.strip_prefix("cs-")?.parse().ok();
        let unclear = |name: &Value| {
            let message = format!("{name} is no id of a change set");
            let finding = Finding::error("SUPERSEDES_UNCLEAR", "", "extensions.supersedes", message);
            Box::new(finding.expected("an id such as `cs-1`, or a list of them").actual(name.to_string()))
        };
        named.into_iter().map(|name| number(name).ok_or_else(|| unclear(name))).collect()
    }

    /// As it is written: [`parse`] reads it as it was.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let operations: Vec<Value> = self.operations.iter().map(Operation::to_value).collect();
        let mut value = json!({
            "schemaVersion": self.schema_version,
            "targetType": self.target_type,
            "mode": self.mode,
            "operations": operations,
        });
        if self.revisions != Revisions::default() {
            value["revisions"] = json!(self.revisions);
        }
        if !self.extensions.is_empty() {
            value["extensions"] = json!(self.extensions);
        }
        if let Some(impact) = &self.declared_impact {
            value["impact"] = impact.clone();
        }
        value
    }
}
