//! MCP resources: what a client shows to people, or hands to a model before it begins. Each is what one of the profile's tools answers,
//! and is read through the gate as a call of that tool.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use toolhost_contract::Outcome;

const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Something that can be read.
struct Kind {
    /// As a URI begins; the rest of it is the argument.
    start: &'static str,
    /// The tool that answers.
    tool: &'static str,
    /// What the rest of a URI is to the tool; `None`: there is one resource.
    argument: Option<&'static str>,
    /// The only values of the argument, each with what a person reads of it: a resource each. Empty: a template.
    values: &'static [(&'static str, &'static str)],
    name: &'static str,
    title: &'static str,
    description: &'static str,
    mime: &'static str,
}

const KINDS: [Kind; 8] = [
    Kind {
        start: "toolhost://plan",
        tool: "plan.get",
        argument: None,
        values: &[],
        name: "plan",
        title: "The plan",
        description: "Features, components and tasks of the current iteration, and how far they are.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://ticket/",
        tool: "ticket.read",
        argument: Some("ticketId"),
        values: &[],
        name: "ticket",
        title: "A ticket",
        description: "A ticket with its criteria, comments and documents, such as TKT-001.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://document/",
        tool: "artifact.load",
        argument: Some("kind"),
        values: &[],
        name: "document",
        title: "A document of the project",
        description: "The newest version of a document: idea, prd, design, plan, check_report or delivery_report.",
        mime: MARKDOWN,
    },
    Kind {
        start: "toolhost://record/",
        tool: "record.get",
        argument: Some("id"),
        values: &[],
        name: "record",
        title: "A record",
        description: "A record of any kind as it is now, such as REQ-001, FEAT-001 or TASK-001.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://workflow/",
        tool: "builder.workflow.read",
        argument: Some("workflowId"),
        values: &[],
        name: "workflow",
        title: "A workflow of the package",
        description: "A workflow with its graph, by its number or its id.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://agent/",
        tool: "builder.agent.read",
        argument: Some("agentId"),
        values: &[],
        name: "agent",
        title: "An agent of the package",
        description: "An agent with its prompt and its settings, by its id.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://asset/",
        tool: "builder.asset.read",
        argument: Some("path"),
        values: &[],
        name: "asset",
        title: "An asset of the package",
        description: "An asset with what refers to it, by its path from `assets/` on.",
        mime: PLAIN,
    },
    Kind {
        start: "toolhost://builder/schema/",
        tool: "builder.schema.read",
        argument: Some("topic"),
        values: &[
            ("set", "A change set as a whole, renames and several workflows included"),
            ("workflow", "A workflow in a change set: its document and its graph"),
            ("step", "A step in a change set"),
            ("agent", "An agent in a change set"),
            ("asset", "An asset in a change set"),
        ],
        name: "builder-schema",
        title: "How to write",
        description: "its fields, and an example of each thing that can be done.",
        mime: MARKDOWN,
    },
];

/// A call that reads a resource.
pub(crate) struct Reading {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    mime: &'static str,
}

/// Whether one of these tools has anything to read.
pub(crate) fn any(has: impl Fn(&str) -> bool) -> bool {
    KINDS.iter().any(|kind| has(kind.tool))
}

/// The resources of a profile that has these tools.
pub(crate) fn all(has: impl Fn(&str) -> bool) -> Vec<Resource> {
    let kinds = KINDS.iter().filter(|kind| has(kind.tool));
    kinds
        .flat_map(|kind| {
            let one = |uri: String, name: String, title: String, description: String| {
                Resource::new(uri, name).with_title(title).with_description(description).with_mime_type(kind.mime)
            };
            let only = kind.argument.is_none().then(|| {
                one(kind.start.to_owned(), kind.name.to_owned(), kind.title.to_owned(), kind.description.to_owned())
            });
            let values = kind.values.iter().map(move |(value, says)| {
                let (uri, name) = (format!("{}{value}", kind.start), format!("{}-{value}", kind.name));
                one(uri, name, format!("{}: {value}", kind.title), format!("{says}: {}", kind.description))
            });
            only.into_iter().chain(values).collect::<Vec<_>>()
        })
        .collect()
}

/// Those of which there are many.
pub(crate) fn templates(has: impl Fn(&str) -> bool) -> Vec<ResourceTemplate> {
    let kinds = KINDS.iter().filter(|kind| has(kind.tool));
    kinds
        .filter_map(|kind| {
            let uri = kind.template()?;
            let template = ResourceTemplate::new(uri, kind.name).with_title(kind.title);
            Some(template.with_description(kind.description).with_mime_type(kind.mime))
        })
        .collect()
}

/// The tool of a template, and its argument that the variable stands for.
pub(crate) fn variable_of(template: &str) -> Option<(&'static str, &'static str)> {
    let kind = KINDS.iter().find(|kind| kind.template().is_some_and(|known| known == template))?;
    Some((kind.tool, kind.argument?))
}

impl Kind {
    fn template(&self) -> Option<String> {
        let argument = self.argument.filter(|_| self.values.is_empty())?;
        Some(format!("{}{{{argument}}}", self.start))
    }

    /// The arguments of the call that reads this URI, if it is one of these.
    fn arguments(&self, uri: &str) -> Option<Value> {
        let value = uri.strip_prefix(self.start)?;
        let Some(argument) = self.argument else { return value.is_empty().then(|| json!({})) };
        let is_known = self.values.is_empty() || self.values.iter().any(|(known, _)| *known == value);
        (is_known && !value.is_empty()).then(|| json!({ argument: value }))
    }
}

/// The call that reads this resource.
pub(crate) fn reading(uri: &str) -> Result<Reading, ErrorData> {
    let read = |kind: &Kind| Some(Reading { tool: kind.tool, arguments: kind.arguments(uri)?, mime: kind.mime });
    KINDS.iter().find_map(read).ok_or_else(|| {
        let known = |kind: &Kind| {
            let values = kind.values.iter().map(|(value, _)| format!("{}{value}", kind.start));
            let other = kind.template().or_else(|| kind.argument.is_none().then(|| kind.start.to_owned()));
            values.chain(other).collect::<Vec<_>>()
        };
        let known: Vec<String> = KINDS.iter().flat_map(known).collect();
        let message = format!("there is no resource with this URI; there are {}", known.join(", "));
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    })
}

/// The answer to a read; a refusal of the gate is an error of the protocol, which knows no other for resources.
pub(crate) fn contents(uri: String, reading: &Reading, outcome: Outcome) -> Result<ReadResourceResult, ErrorData> {
    let text = text_of(outcome, &json!({ "uri": uri }))?;
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(reading.mime)]))
}

/// What a call has answered.
///
/// # Errors
/// The gate refused it, or its tool failed. `about` says in the error what was asked for.
pub(crate) fn text_of(outcome: Outcome, about: &Value) -> Result<String, ErrorData> {
    let Some(error) = outcome.error else { return Ok(outcome.text) };
    let mut data = about.clone();
    data["code"] = Value::from(error.code.as_str());
    Err(ErrorData::invalid_request(error.message, Some(data)))
}
