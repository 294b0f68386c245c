//! `ticket.save_document`

use crate::Records;
use crate::{Document, DocumentType, Query, RecordError, Saved, Ticket, loses_most};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, CallerKind, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct SaveDocument(pub(crate) Records);

/// Saves a document of a ticket as its next version. A version that would lose most of the text there is, is refused: send the whole document, not a part.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
    /// Which document.
    #[serde(rename = "type")]
    document_type: DocumentType,
    /// The whole document, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for SaveDocument {
    type Input = Input;
    type Output = Saved<Document>;
    const NAME: &'static str = "ticket.save_document";
    const TITLE: &'static str = "Save a document of a ticket";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("save_document")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a plan",
                arguments: json!({"ticketId":"TKT-001","type":"implementation_plan","content":"Plan\nFirst this, then that."}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Data(&[("/version", r#"1"#), ("/id", r#""DOC-001""#)]),
            },
            Example {
                says: "a part of it",
                arguments: json!({"ticketId":"TKT-001","type":"design","content":"short"}),
                files: &[],
                before: &[
                    given::TICKET,
                    (
                        "ticket.save_document",
                        r#"{"ticketId":"TKT-001","type":"design","content":"a long text that says all there is to say about it"}"#,
                    ),
                ],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = ticket_id(ctx, input.ticket_id)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let person = ctx.call.caller.kind == CallerKind::Person;
        let (author, edit) = (ctx.call.caller.persona.clone(), edit(input.expected_version, input.why));
        let title = Some(input.document_type.as_str().to_owned());
        let fits = Query { names: ticket.record_id(), title, ..Query::default() };
        let new = Document {
            ticket_id: ticket.id,
            document_type: input.document_type,
            author: author.clone(),
            content: input.content.clone(),
        };
        let change = |document: &mut Document| {
            // A person may mean to throw text away; a model that sends a summary does not.
            if !person && loses_most(&document.content, &input.content) {
                let (old, new) = (document.content.chars().count(), input.content.chars().count());
                return Err(RecordError::LosesText { old, new });
            }
            document.author = author;
            document.content = input.content;
            Ok(())
        };
        Ok(desk.create_or_update(new, 0, &fits, &edit, change).await?)
    }
}
