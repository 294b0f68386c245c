//! `ticket.read_document`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::given;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Document, DocumentType, ProjectRecords, Query, Ticket};

pub(crate) struct ReadDocument;

/// Reads a document of a ticket: its latest version, or an earlier one.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// Which document.
    #[serde(rename = "type")]
    document_type: DocumentType,
    /// An earlier version.
    #[schemars(range(min = 1))]
    version: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    id: String,
    version: i64,
    /// The newest version there is.
    latest_version: i64,
    author: String,
    content: String,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!(
            "{} version {} of {}, by {}\n\n{}",
            self.id, self.version, self.latest_version, self.author, self.content
        )
    }
}

impl RecordTool for ReadDocument {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "ticket.read_document";
    const TITLE: &'static str = "Read a document of a ticket";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the latest",
                arguments: json!({"ticketId":"TKT-001","type":"research"}),
                files: &[],
                before: &[
                    given::TICKET,
                    ("ticket.save_document", r#"{"ticketId":"TKT-001","type":"research","content":"found it"}"#),
                ],
                expect: Expect::Data(&[("/content", r#""found it""#)]),
            },
            Example {
                says: "none yet",
                arguments: json!({"ticketId":"TKT-001","type":"research"}),
                files: &[],
                before: &[given::TICKET],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let title = Some(input.document_type.as_str().to_owned());
        let query = Query { names: ticket.record_id(), title, limit: 1, ..Query::default() };
        let Some(found) = desk.list::<Document>(&query).await?.items.pop() else {
            let message = format!("{id} has no `{}` yet", input.document_type.as_str());
            return Err(
                ToolError::new(ErrorKind::NotFound, message).hint("`ticket.read` shows the documents there are")
            );
        };
        let (version, document) = match (input.version, found.record_id()) {
            (Some(version), Some(id)) if version != found.version => (
                version,
                serde_json::from_value(desk.version(id, version).await?.content).map_err(ToolError::internal)?,
            ),
            _ => (found.version, found.content),
        };
        Ok(Output {
            id: found.id,
            version,
            latest_version: found.version,
            author: document.author,
            content: document.content,
        })
    }
}
