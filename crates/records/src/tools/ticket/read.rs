//! `ticket.read`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::LIMIT_DEFAULT;
use crate::tools::arguments::OfTicket;
use crate::tools::given;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Comment, Document, DocumentType, ProjectRecords, Query, Saved, Ticket};

pub(crate) struct Read;

/// Reads a ticket, with its newest comments and the documents it has.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    #[serde(flatten)]
    ticket: Saved<Ticket>,
    /// The newest ones, oldest first; `comment.list` shows all.
    comments: Vec<Saved<Comment>>,
    documents: Vec<Paper>,
}

impl RecordAnswer for Output {
    fn revision(&self) -> Option<String> {
        self.ticket.revision()
    }
}

impl RecordTool for Read {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "ticket.read";
    const TITLE: &'static str = "Read a ticket";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "with what was said",
                arguments: json!({"ticketId":"TKT-001"}),
                files: &[],
                before: &[given::TICKET, ("comment.post", r#"{"ticketId":"TKT-001","content":"I begin"}"#)],
                expect: Expect::Data(&[
                    ("/title", r#""Dark mode""#),
                    ("/comments/0/content", r#""I begin""#),
                    ("/comments/0/authorKind", r#""human""#),
                ]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"ticketId":"TKT-009"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        let ticket = desk.get::<Ticket>(&id).await?;
        let names = ticket.record_id();
        let newest = Query { names, newest_first: true, limit: COMMENTS_SHOWN, ..Query::default() };
        let mut comments = desk.list::<Comment>(&newest).await?.items;
        comments.reverse();
        let documents = desk.list::<Document>(&Query { names, limit: LIMIT_DEFAULT, ..Query::default() }).await?.items;
        let documents = documents.into_iter().map(|paper| Paper {
            id: paper.id,
            document_type: paper.content.document_type,
            version: paper.version,
            characters: paper.content.content.chars().count(),
        });
        Ok(Output { ticket, comments, documents: documents.collect() })
    }
}

/// Comments shown with a ticket.
const COMMENTS_SHOWN: i64 = 20;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Paper {
    id: String,
    #[serde(rename = "type")]
    document_type: DocumentType,
    version: i64,
    characters: usize,
}
