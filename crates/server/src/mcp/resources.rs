//! MCP resources: what a client shows to people, or hands to a model before it begins. Each is what one of the profile's tools answers,
//! and is read through the gate as a call of that tool.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use toolhost_contract::Outcome;

use super::attached;

const MARKDOWN: &str = "text/markdown";
const PLAIN: &str = "text/plain";

/// Something that can be read.
pub struct ResourceKind {
    /// As a URI begins, before the argument.
    pub start: &'static str,
    /// As a URI ends, after the argument.
    pub end: &'static str,
    /// The tool that answers.
    pub tool: &'static str,
    /// The argument of the tool that stands between `start` and `end`; `None`: there is one resource.
    pub argument: Option<&'static str>,
    /// The only values of the argument, each with what a person reads of it: a resource each. Empty: a template.
    pub values: &'static [(&'static str, &'static str)],
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    /// Of the text that the tool answers. What it attaches to its answer has a type of its own.
    pub mime: &'static str,
}

/// Those of the built-in tools.
pub(super) const KINDS: [ResourceKind; 8] = [
    ResourceKind {
        start: "toolhost://plan",
        end: "",
        tool: "plan.get",
        argument: None,
        values: &[],
        name: "plan",
        title: "The plan",
        description: "Features, components and tasks of the current iteration, and how far they are.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://ticket/",
        end: "",
        tool: "ticket.read",
        argument: Some("ticketId"),
        values: &[],
        name: "ticket",
        title: "A ticket",
        description: "A ticket with its criteria, comments and documents, such as TKT-001.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://document/",
        end: "",
        tool: "artifact.load",
        argument: Some("kind"),
        values: &[],
        name: "document",
        title: "A document of the project",
        description: "The newest version of a document: idea, prd, design, plan, check_report or delivery_report.",
        mime: MARKDOWN,
    },
    ResourceKind {
        start: "toolhost://record/",
        end: "",
        tool: "record.get",
        argument: Some("id"),
        values: &[],
        name: "record",
        title: "A record",
        description: "A record of any kind as it is now, such as REQ-001, FEAT-001 or TASK-001.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://workflow/",
        end: "",
        tool: "builder.workflow.read",
        argument: Some("workflowId"),
        values: &[],
        name: "workflow",
        title: "A workflow of the package",
        description: "A workflow with its graph, by its number or its id.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://agent/",
        end: "",
        tool: "builder.agent.read",
        argument: Some("agentId"),
        values: &[],
        name: "agent",
        title: "An agent of the package",
        description: "An agent with its prompt and its settings, by its id.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://asset/",
        end: "",
        tool: "builder.asset.read",
        argument: Some("path"),
        values: &[],
        name: "asset",
        title: "An asset of the package",
        description: "An asset with what refers to it, by its path from `assets/` on.",
        mime: PLAIN,
    },
    ResourceKind {
        start: "toolhost://builder/schema/",
        end: "",
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
pub(crate) fn any(kinds: &[ResourceKind], has: impl Fn(&str) -> bool) -> bool {
    kinds.iter().any(|kind| has(kind.tool))
}

/// The resources of a profile that has these tools.
pub(crate) fn all(kinds: &[ResourceKind], has: impl Fn(&str) -> bool) -> Vec<Resource> {
    let kinds = kinds.iter().filter(|kind| has(kind.tool));
    kinds
        .flat_map(|kind| {
            let one = |uri: String, name: String, title: String, description: String| {
                Resource::new(uri, name).with_title(title).with_description(description).with_mime_type(kind.mime)
            };
            let only = kind.argument.is_none().then(|| {
                one(kind.start.to_owned(), kind.name.to_owned(), kind.title.to_owned(), kind.description.to_owned())
            });
            let values = kind.values.iter().map(move |(value, says)| {
                let (uri, name) = (format!("{}{value}{}", kind.start, kind.end), format!("{}-{value}", kind.name));
                one(uri, name, format!("{}: {value}", kind.title), format!("{says}: {}", kind.description))
            });
            only.into_iter().chain(values).collect::<Vec<_>>()
        })
        .collect()
}

/// Those of which there are many.
pub(crate) fn templates(kinds: &[ResourceKind], has: impl Fn(&str) -> bool) -> Vec<ResourceTemplate> {
    let kinds = kinds.iter().filter(|kind| has(kind.tool));
    kinds
        .filter_map(|kind| {
            let uri = kind.template()?;
            let template = ResourceTemplate::new(uri, kind.name).with_title(kind.title);
            Some(template.with_description(kind.description).with_mime_type(kind.mime))
        })
        .collect()
}

/// The tool of a template, and its argument that the variable stands for.
pub(crate) fn variable_of(kinds: &[ResourceKind], template: &str) -> Option<(&'static str, &'static str)> {
    let kind = kinds.iter().find(|kind| kind.template().is_some_and(|known| known == template))?;
    Some((kind.tool, kind.argument?))
}

impl ResourceKind {
    fn template(&self) -> Option<String> {
        let argument = self.argument.filter(|_| self.values.is_empty())?;
        Some(format!("{}{{{argument}}}{}", self.start, self.end))
    }

    /// The arguments of the call that reads this URI, if it is one of these.
    fn arguments(&self, uri: &str) -> Option<Value> {
        let value = uri.strip_prefix(self.start)?.strip_suffix(self.end)?;
        let Some(argument) = self.argument else { return value.is_empty().then(|| json!({})) };
        let is_known = self.values.is_empty() || self.values.iter().any(|(known, _)| *known == value);
        (is_known && !value.is_empty()).then(|| json!({ argument: value }))
    }
}

/// The call that reads this resource.
pub(crate) fn reading(kinds: &[ResourceKind], uri: &str) -> Result<Reading, ErrorData> {
    let read =
        |kind: &ResourceKind| Some(Reading { tool: kind.tool, arguments: kind.arguments(uri)?, mime: kind.mime });
    kinds.iter().find_map(read).ok_or_else(|| {
        let known = |kind: &ResourceKind| {
            let values = kind.values.iter().map(|(value, _)| format!("{}{value}{}", kind.start, kind.end));
            let other = kind.template().or_else(|| kind.argument.is_none().then(|| kind.start.to_owned()));
            values.chain(other).collect::<Vec<_>>()
        };
        let known: Vec<String> = kinds.iter().flat_map(known).collect();
        let message = format!("there is no resource with this URI; there are {}", known.join(", "));
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    })
}

/// The answer to a read; a refusal of the gate is an error of the protocol, which knows no other for resources.
///
/// Where the tool has attached something to its answer, that is the resource, and the text only says what it is.
pub(crate) fn contents(uri: String, reading: &Reading, outcome: Outcome) -> Result<ReadResourceResult, ErrorData> {
    let attachments = outcome.attachments.clone();
    let text = text_of(outcome, &json!({ "uri": uri }))?;
    let contents = if attachments.is_empty() {
        vec![ResourceContents::text(text, uri).with_mime_type(reading.mime)]
    } else {
        attachments.into_iter().map(|attachment| attached::document(attachment, &uri)).collect()
    };
    Ok(ReadResourceResult::new(contents))
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_argument_of_a_resource_stands_between_two_parts_of_its_address() {
        let kind = ResourceKind {
            start: "a://",
            end: "/b",
            tool: "a.read",
            argument: Some("id"),
            values: &[],
            name: "a",
            title: "A",
            description: "a",
            mime: PLAIN,
        };
        let kinds = [kind];
        assert_eq!(reading(&kinds, "a://7/b").unwrap().arguments, json!({ "id": "7" }));
        for other in ["a://7", "a:///b", "a://7/bc", "a://b", "x"] {
            assert!(reading(&kinds, other).is_err(), "{other}");
        }
        assert_eq!(variable_of(&kinds, "a://{id}/b"), Some(("a.read", "id")));
        assert_eq!(templates(&kinds, |_| true)[0].uri_template, "a://{id}/b");
    }
}
