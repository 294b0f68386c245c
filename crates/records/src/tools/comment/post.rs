//! `comment.post`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::OfTicket;
use crate::tools::desk::author_kind;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Comment, ProjectRecords, Saved, Ticket};

pub(crate) struct Post;

/// Says something about a ticket, in your name.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    #[serde(flatten)]
    of: OfTicket,
    /// What you say, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
}

impl RecordTool for Post {
    type Input = Input;
    type Output = Saved<Comment>;
    const NAME: &'static str = "comment.post";
    const TITLE: &'static str = "Comment on a ticket";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a word",
            arguments: json!({"ticketId":"TKT-001","content":"I begin"}),
            files: &[],
            before: &[given::TICKET],
            expect: Expect::Data(&[("/author", r#""Test Agent""#), ("/authorKind", r#""agent""#)]),
        }]
    }

    async fn run(&self, ctx: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = input.of.id(ctx)?;
        // The ticket is asked for first, so that what is said names it as it is.
        let ticket = desk.get::<Ticket>(&id).await?;
        let content = Comment {
            ticket_id: ticket.id,
            author: ctx.call.caller.persona.clone(),
            author_kind: author_kind(ctx),
            content: input.content,
        };
        Ok(desk.create(content, 0, None).await?)
    }
}
