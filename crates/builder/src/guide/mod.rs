//! What a change set may say, for who writes one: the fields of each kind of object in a line each, and sets that show
//! each thing that can be done.
//!
//! The lines are made of the published schemas, so that the two never differ. The sets are for the sample package
//! `research-report`; a test stages and validates each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::{AGENTS, ASSET, CHANGE_SET, GRAPH, STEP_FRONT_MATTER, WORKFLOW_FRONT_MATTER};

const EXAMPLES: &str = include_str!("examples.json");

/// What the guide is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// A change set as a whole.
    #[default]
    Set,
    /// A workflow: its document and its graph.
    Workflow,
    /// A step.
    Step,
    /// An agent.
    Agent,
    /// An asset.
    Asset,
}

/// Every topic.
pub const TOPICS: [Topic; 5] = [Topic::Set, Topic::Workflow, Topic::Step, Topic::Agent, Topic::Asset];

impl Topic {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Workflow => "workflow",
            Self::Step => "step",
            Self::Agent => "agent",
            Self::Asset => "asset",
        }
    }
}

/// The guide to one topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Guide {
    /// What it is about.
    pub topic: Topic,
    /// The objects that are written, each with its fields.
    pub parts: Vec<Part>,
    /// Change sets that show what can be done.
    pub examples: Vec<Shown>,
}

/// An object and its fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Where these fields stand, such as `workflow.graph.json`.
    pub name: String,
    /// A line each: `path: kind, required. What it is.`
    pub fields: Vec<String>,
}

/// A change set that shows one thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// What it does.
    pub says: String,
    /// The set, for the package `research-report`. `<…>` stands for a revision that comes with a read.
    pub change_set: Value,
}

/// The guide to a topic.
#[must_use]
pub fn guide(topic: Topic) -> Guide {
    let part = |(name, schema): (&str, Value)| Part { name: name.to_owned(), fields: lines(&schema) };
    Guide { topic, parts: schemas(topic).into_iter().map(part).collect(), examples: examples(topic) }
}

/// The fields of a kind of object, a line for each part, without descriptions: `{id*, title, inputs: [text]}`. A `*` stands
/// behind a required field, a text has no kind, and `…` stands for further fields.
#[must_use]
pub fn compact(topic: Topic) -> String {
    let line = |(name, schema): (&str, Value)| format!("- {name}: {}", shape(&schema));
    schemas(topic).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The parts of an object of this kind, each with its schema.
fn schemas(topic: Topic) -> Vec<(&'static str, Value)> {
    let payload = || ("`payload` of an upsert", payload_schema(topic));
    match topic {
        Topic::Set => vec![("the change set", CHANGE_SET.value())],
        Topic::Workflow => vec![
            ("front matter of `workflow_md`", WORKFLOW_FRONT_MATTER.value()),
            ("`graph_json`", GRAPH.value()),
            payload(),
        ],
        Topic::Step => vec![("front matter of `step_markdown`", STEP_FRONT_MATTER.value()), payload()],
        Topic::Agent => {
            vec![("`agent_definition`", AGENTS.value()["properties"]["agents"]["items"].clone()), payload()]
        }
        Topic::Asset => vec![("the asset", ASSET.value()), payload()],
    }
}

fn examples(topic: Topic) -> Vec<Shown> {
    #[derive(Deserialize)]
    struct Row {
        topic: Topic,
        #[serde(flatten)]
        shown: Shown,
    }
    let rows: Vec<Row> = serde_json::from_str(EXAMPLES).expect("a test reads the examples");
    rows.into_iter().filter(|row| row.topic == topic).map(|row| row.shown).collect()
}

/// What an upsert of this kind of object carries.
fn payload_schema(topic: Topic) -> Value {
    let schema = CHANGE_SET.value();
    let rules = schema["properties"]["operations"]["items"]["allOf"].as_array().cloned().unwrap_or_default();
    let about = |rule: &&Value| rule["if"]["properties"]["targetType"]["const"] == topic.as_str();
    rules.iter().find(about).map(|rule| rule["then"]["properties"]["payload"].clone()).unwrap_or_default()
}

/// The fields of an object in the order of the schema, those of its fields below them.
fn lines(schema: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left = fields_of(schema, "");
    left.reverse();
    while let Some((path, is_required, field)) = left.pop() {
        let required = if is_required { ", required" } else { "" };
        let says = field["description"].as_str().map(|says| format!(". {}", says.trim_end_matches('.')));
        lines.push(format!("{path}: {}{required}{}", kind(&field), says.unwrap_or_default()));
        let mut inner = fields_of(&field, &format!("{path}."));
        inner.extend(fields_of(&field["items"], &format!("{path}[].")));
        left.extend(inner.into_iter().rev());
    }
    lines
}

fn fields_of(schema: &Value, before: &str) -> Vec<(String, bool, Value)> {
    let nothing = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&nothing);
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    fields.iter().map(|(name, field)| (format!("{before}{name}"), is_required(name), field.clone())).collect()
}

/// What a value looks like, with the fields of objects and the items of lists. The published schemas are a few levels deep.
fn shape(schema: &Value) -> String {
    if schema["properties"].is_object() {
        let mut fields: Vec<String> = fields_of(schema, "").into_iter().map(|field| field_shape(&field)).collect();
        if schema["additionalProperties"] != false {
            fields.push("…".to_owned());
        }
        return format!("{{{}}}", fields.join(", "));
    }
    match (schema["type"].as_str(), schema["items"].is_object()) {
        (Some("array"), true) => format!("[{}]", shape(&schema["items"])),
        _ => match kind(schema) {
            plain if plain == "id" => "text".to_owned(),
            other => other,
        },
    }
}

fn field_shape((name, is_required, schema): &(String, bool, Value)) -> String {
    let mark = if *is_required { "*" } else { "" };
    match shape(schema) {
        text if text == "text" => format!("{name}{mark}"),
        other => format!("{name}{mark}: {other}"),
    }
}

/// What kind of value a field takes, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(options) = schema["enum"].as_array() {
        return options.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(options) = schema["anyOf"].as_array() {
        return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match (schema["type"].as_str(), schema["pattern"].as_str()) {
        (Some("string"), Some("^[A-Za-z0-9][A-Za-z0-9._:-]*$")) => "id".to_owned(),
        (Some("string"), Some("^[0-9a-f]{64}$")) => "revision".to_owned(),
        (Some("string"), _) => "text".to_owned(),
        (Some("array"), _) => format!("list of {}", kind(&schema["items"])),
        (Some("boolean"), _) => "true or false".to_owned(),
        (Some("integer" | "number"), _) => "number".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        _ => "any value".to_owned(),
    }
}
