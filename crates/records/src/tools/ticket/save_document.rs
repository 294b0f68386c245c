//! `ticket.save_document`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, CallerKind, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Document, DocumentType, Edit, ProjectRecords, Query, RecordError, Saved, Ticket, loses_most};

pub(crate) struct SaveDocument;

/// Saves a document of a ticket as its next version. A version that would lose most of the text there is, is refused: send the whole document, not a part.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// Which document.
    #[serde(rename = "type")]
    document_type: DocumentType,
    /// The whole document, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for SaveDocument {
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

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let person = ctx.call.caller.kind == CallerKind::Person;
        let (author, edit) = (ctx.call.caller.persona.clone(), input.edit);
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
