//! The tools that keep records, arguments that fit them, and which of those name a record.

use serde_json::{Map, Value, json};
use toolhost_contract::ToolInfo;
use toolhost_records::Kind;

/// Families of tools that keep no records.
const WITHOUT_RECORDS: [&str; 10] =
    ["file", "bash", "git", "tool", "session", "approval", "review", "human", "deploy", "builder"];

/// The tools that keep records.
pub(crate) fn record_tools() -> Vec<ToolInfo> {
    let all = toolhost_testkit::every_tool().into_iter().map(|tool| tool.info());
    let of_records = |info: &ToolInfo| !WITHOUT_RECORDS.contains(&info.name.split('.').next().unwrap());
    let tools: Vec<ToolInfo> = all.filter(of_records).collect();
    assert!(tools.len() > 55, "{}", tools.len());
    tools
}

pub(crate) fn properties(info: &ToolInfo) -> Map<String, Value> {
    info.input_schema["properties"].as_object().cloned().unwrap_or_default()
}

/// The kinds of record that an argument may name; nothing for one that names none.
pub(crate) fn kinds_named(info: &ToolInfo, field: &str) -> Vec<Kind> {
    let family = info.name.split('.').next().unwrap();
    let of_family = || Kind::ALL.into_iter().find(|kind| kind.as_str() == family);
    match field {
        "id" => match info.name.as_ref() {
            "memory.resolve_issue" => vec![Kind::Issue],
            name if name.starts_with("record.") => Kind::ALL.to_vec(),
            name => vec![of_family().unwrap_or_else(|| unreachable!("{name}: whose id?"))],
        },
        "dependencies" => vec![of_family().unwrap()],
        "ticketId" => vec![Kind::Ticket],
        "featureId" | "features" | "relatedFeatures" => vec![Kind::Feature],
        "componentId" => vec![Kind::Component],
        "requirementId" | "requirementIds" => vec![Kind::Requirement],
        "sourceId" => vec![Kind::Insight, Kind::Issue, Kind::Learning],
        "iteration" | "base" => vec![Kind::Iteration],
        _ => Vec::new(),
    }
}

/// An id as tools write it.
pub(crate) fn id_text(kind: Kind, number: i64) -> String {
    format!("{}-{number:03}", kind.prefix())
}

/// An argument that names a record, as its schema wants it.
pub(crate) fn naming(schema: &Value, kind: Kind, number: i64) -> Value {
    let types = schema["type"].to_string();
    if types.contains("integer") {
        json!(number)
    } else if types.contains("array") {
        json!([id_text(kind, number)])
    } else {
        json!(id_text(kind, number))
    }
}

/// Arguments that fit, of an example, which name the first records of their kinds.
pub(crate) fn good(info: &ToolInfo) -> Map<String, Value> {
    let required: Vec<&str> =
        info.input_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fits = |one: &Map<String, Value>| required.iter().all(|name| one.contains_key(*name));
    let found = info.examples.iter().map(|one| one.arguments.as_object().unwrap().clone()).find(fits);
    let mut arguments = found.unwrap_or_else(|| unreachable!("{} has no example with all it requires", info.name));
    for (field, schema) in properties(info) {
        let kinds = kinds_named(info, &field);
        // An example that takes all away stays as it is.
        let given = arguments.get_mut(&field).filter(|value| **value != json!([]));
        if let (Some(value), Some(kind)) = (given, kinds.first()) {
            *value = naming(&schema, *kind, 1);
        }
    }
    arguments
}
