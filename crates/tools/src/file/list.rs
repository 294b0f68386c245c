//! `file.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{EntryKind, ListQuery, WsPath};
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, OtherName, Tool, ToolError, visible_line};

use toolhost_contract::cursor as page;

const LIMIT_DEFAULT: usize = 200;
const LIMIT_MAX: usize = 1000;

const NAMES: &[OtherName] = &[
    OtherName::argument("glob", "pattern"),
    OtherName::argument("glob_pattern", "pattern"),
    OtherName::argument("include", "pattern"),
    OtherName::argument("depth", "maxDepth"),
];

pub(crate) struct List;

/// Lists files and folders of the workspace, sorted by path. Hidden files and what .gitignore names are left out unless
/// asked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The folder, from the workspace root.
    #[serde(default = "root")]
    path: String,
    /// A glob: `*.rs` matches names at any depth, `src/**/*.rs` paths below `path`.
    pattern: Option<String>,
    /// Go into subfolders. True unless said otherwise when a pattern is given.
    recursive: Option<bool>,
    /// How many folders deep to go; 1 is the folder itself.
    #[schemars(range(min = 1, max = 1000))]
    max_depth: Option<usize>,
    /// Include names that begin with a dot.
    #[serde(default)]
    include_hidden: bool,
    /// Include what .gitignore names.
    #[serde(default)]
    include_ignored: bool,
    /// Most entries of one page.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    entries: Vec<Entry>,
    /// Entries that match in all.
    total: usize,
    /// Present when there are more entries.
    next_cursor: Option<String>,
    /// The folder is so large that not all of it was looked at.
    incomplete: bool,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    path: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// Bytes, for files.
    size: Option<u64>,
}

#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

fn root() -> String {
    ".".to_owned()
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.list";
    const TITLE: &'static str = "List files";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::READS };
    const OTHER_NAMES: &'static [&'static [OtherName]] =
        &[super::NAMES_OF_FOLDER, super::NAMES_OF_FILE, super::NAMES_OF_ALL, NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] =
        &["LS", "ls", "Glob", "find", "list_dir", "list_directory", "directory_tree", "file_search", "find_files"];

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("list_files")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "all Rust files",
                arguments: json!({"pattern": "**/*.rs"}),
                files: &[("src/main.rs", "fn main() {}\n"), ("README.md", "hello\n")],
                before: &[],
                expect: Expect::Data(&[("/entries/0/path", "\"src/main.rs\""), ("/total", "1")]),
            },
            Example {
                says: "one folder",
                arguments: json!({"path": "src"}),
                files: &[("src/a.txt", "a"), ("src/sub/b.txt", "b")],
                before: &[],
                expect: Expect::Data(&[("/entries/1/type", "\"folder\""), ("/total", "2")]),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let mut lines: Vec<String> = output
            .entries
            .iter()
            .map(|entry| {
                // A name may hold a line break: unescaped, one file would look like two.
                let path = visible_line(&entry.path);
                match (entry.kind, entry.size) {
                    (Kind::Folder, _) => format!("{path}/"),
                    (Kind::File, Some(size)) => format!("{path} ({size} bytes)"),
                    (Kind::Link, _) => format!("{path} (link)"),
                    _ => format!("{path} (special)"),
                }
            })
            .collect();
        if lines.is_empty() {
            lines.push("no entries".to_owned());
        }
        if let Some(cursor) = &output.next_cursor {
            lines.push(format!(
                "[{} of {} entries; the next page has cursor=\"{cursor}\"]",
                output.entries.len(),
                output.total
            ));
        }
        if output.incomplete {
            lines.push("[the folder is too large: not all of it was looked at]".to_owned());
        }
        lines.join("\n")
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let limit = input.limit.clamp(1, LIMIT_MAX);
        let recursive = input.recursive.unwrap_or(input.pattern.is_some() || input.max_depth.is_some());
        let query = ListQuery {
            path: WsPath::parse(&input.path)?,
            pattern: input.pattern,
            depth_max: if recursive { input.max_depth } else { Some(1) },
            include_hidden: input.include_hidden,
            include_ignored: input.include_ignored,
            limit,
            after: page::after_path(input.cursor)?,
        };
        let listing = ctx.workspace.list(query).await?;
        let last = listing.entries.last().map(|entry| page::path_cursor(&entry.path));
        let entries = listing.entries.into_iter().map(|entry| Entry {
            path: entry.path,
            kind: match entry.kind {
                EntryKind::File => Kind::File,
                EntryKind::Folder => Kind::Folder,
                EntryKind::Link => Kind::Link,
                EntryKind::Other => Kind::Other,
            },
            size: entry.size,
        });
        Ok(Output {
            entries: entries.collect(),
            total: listing.total,
            next_cursor: last.filter(|_| listing.more),
            incomplete: listing.cut,
        })
    }
}
