//! `file.delete`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Preview, Tool, ToolError};
use toolhost_sandbox::WsPath;

use super::preview_of;

pub(crate) struct Delete;

/// Deletes one file, one link or one empty folder of the workspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The path, relative to the workspace root.
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    path: String,
}

impl Tool for Delete {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.delete";
    const TITLE: &'static str = "Delete a file";
    const EFFECT: Effect = Effect::Writes;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "one file",
                arguments: json!({"path": "a.txt"}),
                files: &[("a.txt", "a")],
                before: &[],
                expect: Expect::Data(&[("/path", "\"a.txt\"")]),
            },
            Example {
                says: "git's own folder is never touched",
                arguments: json!({"path": ".git/config"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Security),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        format!("deleted {}", output.path)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let path = WsPath::parse(&input.path)?;
        match preview_of(ctx, &path, None, format!("delete {path}")).await {
            // A folder or a link: what goes is its name.
            Err(error) if error.kind != ErrorKind::Security => Ok(None),
            preview => preview.map(Some),
        }
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let path = WsPath::parse(&input.path)?;
        ctx.workspace.remove(&path).await?;
        Ok(Output { path: path.to_string() })
    }
}
