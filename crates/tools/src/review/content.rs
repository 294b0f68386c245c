//! `review.content`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::{Output, Subject, ask};

pub(crate) struct Content;

/// Puts a text before a person, such as a requirements document or a design. They pass it, edit it or, with `feedback`,
/// say what to do better. Waits for their answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What it is; rounds about the same title are counted.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// The text, whole.
    #[schemars(length(min = 1, max = 1_000_000))]
    content: String,
    /// Let the person answer with feedback, after which you try again.
    #[serde(default)]
    feedback: bool,
    /// What the person should look at.
    #[schemars(length(max = 2000))]
    prompt: Option<String>,
}

impl Tool for Content {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "review.content";
    const TITLE: &'static str = "Have a text reviewed";
    const FACTS: Facts = Facts::ASKS;

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("review_and_edit_content").preset(json!({ "feedback": false })),
            Alias::new("review_with_feedback_content").preset(json!({ "feedback": true })),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a person has to be there",
            arguments: json!({"title": "PRD", "content": "# Todo List\n", "feedback": true}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::Denied),
        }]
    }

    fn render(&self, output: &Output) -> String {
        super::render("the text", output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let subject = Subject {
            key: format!("content:{}", input.title),
            title: &input.title,
            text: &input.content,
            prompt: input.prompt.as_deref(),
            feedback: input.feedback,
        };
        ask(ctx, subject).await
    }
}
