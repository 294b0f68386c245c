//! MCP resources: how change sets of a workflow package are written, for clients that show resources to people or hand them
//! to a model before it begins. Each is what the tool `builder.schema.read` answers, and is read through the gate as a
//! call of that tool.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use serde_json::{Value, json};
use toolhost_contract::Outcome;

/// The tool that answers.
pub(crate) const TOOL: &str = "builder.schema.read";
const PREFIX: &str = "toolhost://builder/schema/";
const MARKDOWN: &str = "text/markdown";
/// The topics of the tool, and what a person reads of each.
const TOPICS: [(&str, &str); 5] = [
    ("set", "A change set as a whole, renames and several workflows included"),
    ("workflow", "A workflow in a change set: its document and its graph"),
    ("step", "A step in a change set"),
    ("agent", "An agent in a change set"),
    ("asset", "An asset in a change set"),
];

/// All resources, of a profile that has the tool.
pub(crate) fn all() -> Vec<Resource> {
    let one = |(topic, says): (&str, &str)| {
        Resource::new(format!("{PREFIX}{topic}"), format!("builder-schema-{topic}"))
            .with_title(format!("How to write: {topic}"))
            .with_description(format!("{says}: its fields, and an example of each thing that can be done."))
            .with_mime_type(MARKDOWN)
    };
    TOPICS.into_iter().map(one).collect()
}

/// The arguments of the call that reads this resource.
pub(crate) fn arguments(uri: &str) -> Result<Value, ErrorData> {
    let topic = uri.strip_prefix(PREFIX).filter(|topic| TOPICS.iter().any(|(known, _)| known == topic));
    topic.map(|topic| json!({ "topic": topic })).ok_or_else(|| {
        let known: Vec<String> = TOPICS.iter().map(|(topic, _)| format!("{PREFIX}{topic}")).collect();
        let message = format!("there is no resource with this URI; there are {}", known.join(", "));
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    })
}

/// The answer to a read; a refusal of the gate is an error of the protocol, which knows no other for resources.
pub(crate) fn contents(uri: String, outcome: Outcome) -> Result<ReadResourceResult, ErrorData> {
    if let Some(error) = outcome.error {
        return Err(ErrorData::invalid_request(
            error.message,
            Some(json!({ "uri": uri, "code": error.code.as_str() })),
        ));
    }
    Ok(ReadResourceResult::new(vec![ResourceContents::text(outcome.text, uri).with_mime_type(MARKDOWN)]))
}
