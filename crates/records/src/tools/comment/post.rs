//! `comment.post`

use crate::Records;
use crate::{Comment, Saved, Ticket};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{author_kind, desk, ticket_id};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Post(pub(crate) Records);

/// Says something about a ticket, in your name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as TKT-001; the one this session is about if left out.
    ticket_id: Option<String>,
    /// What you say, in Markdown.
    #[schemars(length(min = 1))]
    content: String,
}

impl Tool for Post {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = ticket_id(ctx, input.ticket_id)?;
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
