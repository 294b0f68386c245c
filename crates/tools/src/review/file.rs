//! `review.file`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{Access, WriteGuard, WsPath, encode};
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::{Output, Subject, ask};
use crate::file::{as_text, read_whole};

pub(crate) struct File;

/// Puts a file before a person. They pass it, edit it (their text is saved) or, with `feedback`, say what to do better.
/// Waits for their answer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The path, relative to the workspace root.
    path: String,
    /// Let the person answer with feedback, after which you try again.
    #[serde(default)]
    feedback: bool,
    /// What the person should look at.
    #[schemars(length(max = 2000))]
    prompt: Option<String>,
}

impl Tool for File {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "review.file";
    const TITLE: &'static str = "Have a file reviewed";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::ASKS };

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("review_and_edit_file").preset(json!({ "feedback": false })),
            Alias::new("review_with_feedback_file").preset(json!({ "feedback": true })),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a person has to be there",
                arguments: json!({"path": "plan.md"}),
                files: &[("plan.md", "# Plan\n")],
                before: &[],
                expect: Expect::Fails(ErrorKind::Denied),
            },
            Example {
                says: "a file that is not there",
                arguments: json!({"path": "none.md"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        super::render("the file", output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let asked = WsPath::parse(&input.path)?;
        // What the person sees is of this place, and it is where their text goes.
        let path = ctx.workspace.spot(&asked, true).await?.path;
        let content = read_whole(ctx, &path).await?;
        let before = as_text(&path, &content.bytes, content.size)?;
        let subject = Subject {
            key: format!("file:{asked}"),
            title: asked.as_str(),
            text: &before.text,
            prompt: input.prompt.as_deref(),
            feedback: input.feedback,
        };
        let mut output = ask(ctx, subject).await?;
        // A profile that only reads hands the text back.
        if let (Some(text), Access::Write) = (&output.content, ctx.workspace.fence().workspace) {
            let bytes = encode(text, before.encoding).unwrap_or_else(|| text.clone().into_bytes());
            // What the person saw is what they changed: anything else is not written over.
            let seen = Some(hex::encode(Sha256::digest(&content.bytes)));
            let guard = WriteGuard { expected_sha256: seen, exact: true, ..WriteGuard::default() };
            ctx.workspace.write(&path, bytes, guard).await?;
            output.saved = true;
        }
        Ok(output)
    }
}
