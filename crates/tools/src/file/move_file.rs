//! `file.move`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{EntryKind, ListQuery, ReadSpan, WsPath};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

use super::{Approved, WHOLE_BYTES_MAX, named};

/// Entries of a folder whose names and sizes are compared with what a person saw.
const ENTRIES_COMPARED_MAX: usize = 100_000;
/// Files of a folder, and bytes in them, that are compared.
const FILES_COMPARED_MAX: usize = 1_000;
const BYTES_COMPARED_MAX: u64 = 64 << 20;

const NAMES: &[OtherName] = &[
    OtherName::argument("source", "from"),
    OtherName::argument("source_path", "from"),
    OtherName::argument("src", "from"),
    OtherName::argument("old_path", "from"),
    OtherName::argument("destination", "to"),
    OtherName::argument("destination_path", "to"),
    OtherName::argument("dest", "to"),
    OtherName::argument("dst", "to"),
    OtherName::argument("new_path", "to"),
    OtherName::argument("target", "to"),
];

pub(crate) struct Move;

/// Moves or renames a file or folder within the workspace. Nothing is replaced: the target must be free.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The present path, relative to the workspace root.
    from: String,
    /// The new path, relative to the workspace root; its folders are made.
    to: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    from: String,
    to: String,
}

impl Tool for Move {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.move";
    const TITLE: &'static str = "Move a file";
    const FACTS: Facts = Facts { paths: &["from", "to"], ..Facts::WRITES_FILE };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &["Move", "rename_file", "mv", "rename"];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "into a new folder",
                arguments: json!({"from": "a.txt", "to": "old/a.txt"}),
                files: &[("a.txt", "a")],
                before: &[],
                expect: Expect::Data(&[("/to", "\"old/a.txt\"")]),
            },
            Example {
                says: "never over another file",
                arguments: json!({"from": "a.txt", "to": "b.txt"}),
                files: &[("a.txt", "a"), ("b.txt", "b")],
                before: &[],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        format!("moved {} to {}", output.from, output.to)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let (from, to) = (WsPath::parse(&input.from)?, WsPath::parse(&input.to)?);
        let source = ctx.workspace.spot(&from, false).await?;
        let target = ctx.workspace.spot(&to, false).await?;
        let (what, detail) = match (source.kind, &source.link) {
            (Some(EntryKind::Link), Some(link)) => ("the link", format!("it leads to `{link}`")),
            (Some(EntryKind::Folder), _) => ("the folder", "with all that is in it".to_owned()),
            _ => ("the file", String::new()),
        };
        let summary = format!("move {what} {} to {}", named(&from, &source.path), named(&to, &target.path));
        let content = match source.kind {
            Some(EntryKind::File) => Some(content_of(ctx, &source.path).await?),
            Some(EntryKind::Folder) => Some(contents_of(ctx, &source.path).await?),
            _ => None,
        };
        let (from, to) = (source.path.as_str(), target.path.as_str());
        let rests_on = json!({ "from": from, "to": to, "link": source.link, "content": content });
        Ok(Some(Preview { summary, detail, left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let (from, to) = (WsPath::parse(&input.from)?, WsPath::parse(&input.to)?);
        let (source, target) = (Approved::of(ctx, "from", &from)?, Approved::of(ctx, "to", &to)?);
        source.workspace.rename(&source.path, &target.path).await?;
        Ok(Output { from: from.to_string(), to: to.to_string() })
    }
}

/// What tells a file's content from another: its size, and the hash of as much as is read whole.
async fn content_of(ctx: &Ctx<'_>, path: &WsPath) -> Result<String, ToolError> {
    let content = ctx.workspace.read(path, ReadSpan { start: 0, bytes_max: WHOLE_BYTES_MAX }).await?;
    Ok(format!("{} {}", content.size, hex::encode(Sha256::digest(&content.bytes))))
}

/// What tells a folder from another: the names and sizes of all that is in it, and the contents of its first files.
async fn contents_of(ctx: &Ctx<'_>, path: &WsPath) -> Result<String, ToolError> {
    let query = ListQuery {
        path: path.clone(),
        pattern: None,
        depth_max: None,
        include_hidden: true,
        include_ignored: true,
        limit: ENTRIES_COMPARED_MAX,
        after: None,
    };
    let listing = ctx.workspace.list(query).await?;
    let mut all = Sha256::new();
    all.update(format!("{}\n", listing.total));
    let (mut files, mut bytes) = (0, 0);
    for entry in &listing.entries {
        all.update(format!("{} {:?} {:?}\n", entry.path, entry.kind, entry.size));
        bytes = entry.size.unwrap_or_default().saturating_add(bytes);
        if entry.kind == EntryKind::Link {
            let link = ctx.workspace.spot(&WsPath::parse(&entry.path)?, false).await?.link;
            all.update(format!("{link:?}\n"));
        }
        if entry.kind == EntryKind::File && files < FILES_COMPARED_MAX && bytes < BYTES_COMPARED_MAX {
            files += 1;
            all.update(content_of(ctx, &WsPath::parse(&entry.path)?).await?);
        }
    }
    Ok(hex::encode(all.finalize()))
}
