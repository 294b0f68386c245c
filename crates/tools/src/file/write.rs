//! `file.write`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{WriteGuard, WsPath, decode};
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Meaning, OtherName, Preview, Tool, ToolError};

use super::{Approved, check_marks, named, preview_of, read_whole};

const NAMES: &[OtherName] = &[
    OtherName::argument("contents", "content"),
    OtherName::argument("text", "content"),
    OtherName::argument("file_text", "content"),
    OtherName::argument("file_content", "content"),
    OtherName::argument("data", "content"),
    OtherName::means("overwrite", Meaning::Not("createOnly")),
    OtherName::anyway("encoding", "utf-8"),
    OtherName::anyway("create_directories", "true"),
];

pub(crate) struct Write;

/// Writes a text file, whole: creates it, its folders too, or replaces what is there. The change is atomic. For a part
/// of a file use `file.edit`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The path, relative to the workspace root.
    path: String,
    /// The whole new content.
    content: String,
    /// Refuse unless the content has this SHA-256 (hex), which `file.read` gives.
    #[schemars(regex(pattern = r"^[0-9a-fA-F]{64}$"))]
    expected_sha256: Option<String>,
    /// Refuse if the file exists.
    #[serde(default)]
    create_only: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    path: String,
    /// Whether the file was not there before.
    created: bool,
    bytes: u64,
    /// SHA-256 of the new content, hex.
    sha256: String,
}

impl Tool for Write {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.write";
    const TITLE: &'static str = "Write a file";
    const FACTS: Facts = Facts::WRITES_FILE;
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[super::NAMES_OF_FILE, NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] =
        &["Write", "create_file", "save_file", "write_to_file", "NotebookEdit"];

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("write_file")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a new file in a new folder",
                arguments: json!({"path": "docs/notes.md", "content": "# Notes\n"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/created", "true"), ("/bytes", "8")]),
            },
            Example {
                says: "never over an existing file",
                arguments: json!({"path": "a.txt", "content": "new", "createOnly": true}),
                files: &[("a.txt", "old")],
                before: &[],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let did = if output.created { "created" } else { "replaced" };
        format!("{did} {} ({} bytes, sha256 {})", output.path, output.bytes, output.sha256)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let path = WsPath::parse(&input.path)?;
        let spot = ctx.workspace.spot(&path, true).await?;
        let does = if spot.kind.is_none() { "create" } else { "replace" };
        let size = input.content.len();
        let bytes = if size == 1 { "byte" } else { "bytes" };
        let summary = format!("{does} {}, {size} {bytes}", named(&path, &spot.path));
        preview_of(ctx, &spot, Some(&input.content), summary).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let path = WsPath::parse(&input.path)?;
        if input.content.contains(toolhost_contract::REDACTED) {
            // What cannot be read whole as text holds no mark that was there before.
            let before = read_whole(ctx, &path).await.ok().and_then(|content| decode(&content.bytes));
            check_marks(before.as_ref().map_or("", |decoded| &decoded.text), &input.content)?;
        }
        let guard = WriteGuard {
            expected_sha256: input.expected_sha256,
            create_only: input.create_only,
            ..WriteGuard::default()
        };
        let approved = Approved::of(ctx, "place", &path)?;
        let guard = approved.guard(guard);
        let written = approved.workspace.write(&approved.path, input.content.into_bytes(), guard).await?;
        Ok(Output { path: path.to_string(), created: written.created, bytes: written.bytes, sha256: written.sha256 })
    }
}
