//! Tickets, what is said about them, and the documents that belong to them (Bonsai's).

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{Body, OnDelete, Reference, references};
use super::error::Result;
use super::kind::{Kind, words};
use super::planning::Priority;

words! {
    /// What kind of work it is.
    TicketType { Feature = "feature", Bug = "bug", Chore = "chore" }
}

words! {
    /// Where a ticket stands.
    TicketState {
        Backlog = "backlog",
        Research = "research",
        PlanApproval = "plan_approval",
        InProgress = "in_progress",
        Verification = "verification",
        Done = "done",
    }
}

words! {
    /// Who wrote it.
    AuthorKind { Human = "human", Agent = "agent", System = "system" }
}

words! {
    /// Which document.
    DocumentType { Research = "research", ImplementationPlan = "implementation_plan", Design = "design" }
}

/// Work that somebody asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ticket {
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(rename = "type")]
    pub ticket_type: TicketType,
    pub state: TicketState,
    pub priority: Priority,
    #[serde(default)]
    pub acceptance_criteria: Vec<Criterion>,
    /// A persona or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignee: Option<String>,
}

/// What must hold before the ticket is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Criterion {
    pub text: String,
    pub done: bool,
}

/// What was said about a ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comment {
    pub ticket_id: String,
    pub author: String,
    pub author_kind: AuthorKind,
    pub content: String,
}

/// A document of a ticket; it has one of each type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    pub ticket_id: String,
    #[serde(rename = "type")]
    pub document_type: DocumentType,
    pub author: String,
    /// Markdown.
    pub content: String,
}

impl Body for Ticket {
    const KIND: Kind = Kind::Ticket;

    fn title(&self) -> &str {
        &self.title
    }

    fn state(&self) -> &str {
        self.state.as_str()
    }
}

impl Body for Comment {
    const KIND: Kind = Kind::Comment;

    fn title(&self) -> &str {
        &self.author
    }

    fn references(&self) -> Result<Vec<Reference>> {
        references("ticketId", Kind::Ticket, OnDelete::Cascade, [&self.ticket_id])
    }
}

impl Body for Document {
    const KIND: Kind = Kind::Document;

    fn title(&self) -> &str {
        self.document_type.as_str()
    }

    fn references(&self) -> Result<Vec<Reference>> {
        references("ticketId", Kind::Ticket, OnDelete::Cascade, [&self.ticket_id])
    }

    /// A ticket has one document of each type.
    fn unique(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Owned(format!("{} {}", self.ticket_id, self.document_type.as_str())))
    }
}

/// A new text must keep at least this share of the former one's length, in percent (Bonsai's guard).
const KEEPS_PERCENT_MIN: usize = 30;

/// Whether a new text looks as if most of the former one had been lost.
pub fn loses_most(old: &str, new: &str) -> bool {
    new.chars().count() * 100 < old.chars().count() * KEEPS_PERCENT_MIN
}
