//! `file.delete`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{EntryKind, WsPath};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

use super::{Approved, named, preview_of};

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
    const FACTS: Facts = Facts::WRITES_FILE;
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[super::NAMES_OF_FILE, super::NAMES_OF_FOLDER];
    const CALLED_ELSEWHERE: &'static [&'static str] = &["Delete", "remove_file", "rm", "unlink"];

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
        let spot = ctx.workspace.spot(&path, false).await?;
        let place = named(&path, &spot.path);
        let (what, detail) = match (spot.kind, &spot.link) {
            (Some(EntryKind::Link), link) => {
                let leads_to = link.as_deref().unwrap_or_default();
                let detail = format!("`{}` is a link to `{leads_to}`; what it leads to stays", spot.path);
                ("the link", detail)
            }
            (Some(EntryKind::Folder), _) => ("the folder", "it goes only if it is empty".to_owned()),
            (Some(EntryKind::Other), _) => ("what is no file", String::new()),
            (Some(EntryKind::File) | None, _) => {
                return preview_of(ctx, &spot, None, format!("delete {place}")).await.map(Some);
            }
        };
        let rests_on = json!({ "place": spot.path.as_str(), "is": what, "link": spot.link });
        Ok(Some(Preview { summary: format!("delete {what} {place}"), detail, left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let path = WsPath::parse(&input.path)?;
        let approved = Approved::of(ctx, "place", &path)?;
        approved.workspace.remove(&approved.path, approved.sha256.as_deref()).await?;
        Ok(Output { path: path.to_string() })
    }
}
