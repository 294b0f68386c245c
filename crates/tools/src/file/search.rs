//! `file.search`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::workspace::{Error, SearchQuery, WsPath};
use toolhost_contract::{Ctx, Example, Expect, Facts, Meaning, OtherName, Tool, ToolError, visible_line};

use toolhost_contract::cursor as page;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;
const CONTEXT_LINES_MAX: usize = 20;

const NAMES: &[OtherName] = &[
    OtherName::argument("query", "pattern"),
    OtherName::argument("regex", "pattern"),
    OtherName::argument("regexp", "pattern"),
    OtherName::argument("search", "pattern"),
    OtherName::argument("search_pattern", "pattern"),
    OtherName::argument("include", "glob"),
    OtherName::argument("include_pattern", "glob"),
    OtherName::argument("file_pattern", "glob"),
    OtherName::argument("-C", "context"),
    OtherName::argument("context_lines", "context"),
    OtherName::argument("-i", "ignoreCase"),
    OtherName::argument("case_insensitive", "ignoreCase"),
    OtherName::means("case_sensitive", Meaning::Not("ignoreCase")),
    OtherName::argument("fixed_strings", "literal"),
    OtherName::means("is_regex", Meaning::Not("literal")),
    OtherName::anyway("output_mode", "content"),
    OtherName::anyway("-n", "true"),
    OtherName::anyway("line_number", "true"),
    OtherName::anyway("recursive", "true"),
];

pub(crate) struct Search;

/// Searches the text of files for a pattern, line by line, as ripgrep does. Binary files are passed over, and
/// unless asked for hidden ones and what .gitignore names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// A regular expression (Rust's dialect), or plain text with `literal`.
    #[schemars(length(min = 1, max = 10000))]
    pattern: String,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: bool,
    /// The folder or file to search, from the workspace root.
    #[serde(default = "root")]
    path: String,
    /// Only files whose name (`*.rs`) or path (`src/**/*.rs`) matches.
    glob: Option<String>,
    /// Lines of context before and after each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// Ignore the case of letters.
    #[serde(default)]
    ignore_case: bool,
    /// Search names that begin with a dot too.
    #[serde(default)]
    include_hidden: bool,
    /// Search what .gitignore names too.
    #[serde(default)]
    include_ignored: bool,
    /// Most matching lines of one page.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    matches: Vec<Match>,
    /// Matching lines in all.
    total: usize,
    files_with_matches: usize,
    /// Present when there are more matches.
    next_cursor: Option<String>,
    /// There are so many matches that not all were counted, or something was not looked at: a folder that is nested too
    /// deep or closed, a file with a line of more than 1 MiB.
    incomplete: bool,
    #[serde(skip)]
    cut: bool,
    /// How the pattern was taken, or what may be wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    path: String,
    /// 1-based.
    line: u64,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    after: Vec<String>,
}

fn root() -> String {
    ".".to_owned()
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl Tool for Search {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.search";
    const TITLE: &'static str = "Search in files";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::READS };
    const OTHER_NAMES: &'static [&'static [OtherName]] =
        &[super::NAMES_OF_FILE, super::NAMES_OF_FOLDER, super::NAMES_OF_ALL, NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &[
        "Grep",
        "grep_search",
        "search_files",
        "ripgrep",
        "rg",
        "code_search",
        "codebase_search",
        "search_file_content",
    ];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "where a function is defined",
                arguments: json!({"pattern": r"fn\s+main", "glob": "*.rs"}),
                files: &[("src/main.rs", "// start\nfn main() {}\n")],
                before: &[],
                expect: Expect::Data(&[("/matches/0/path", "\"src/main.rs\""), ("/matches/0/line", "2")]),
            },
            Example {
                says: "plain text with brackets",
                arguments: json!({"pattern": "a[0]", "literal": true}),
                files: &[("x.c", "int a[0];\n"), ("y.c", "int a0;\n")],
                before: &[],
                expect: Expect::Data(&[("/total", "1")]),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let mut lines = Vec::new();
        for found in &output.matches {
            // A name may hold a line break: unescaped, its rest would look like a match in another file.
            let path = visible_line(&found.path);
            let first = found.line.saturating_sub(found.before.len() as u64);
            for (n, text) in found.before.iter().enumerate() {
                lines.push(format!("{path}-{}-{text}", first + n as u64));
            }
            lines.push(format!("{path}:{}:{}", found.line, found.text));
            for (n, text) in found.after.iter().enumerate() {
                lines.push(format!("{path}-{}-{text}", found.line + 1 + n as u64));
            }
        }
        if lines.is_empty() {
            lines.push("no matches".to_owned());
        }
        lines.extend(output.note.clone().map(|note| format!("[{note}]")));
        if let Some(cursor) = &output.next_cursor {
            lines.push(format!(
                "[{} of {} matches; the next page has cursor=\"{cursor}\"]",
                output.matches.len(),
                output.total
            ));
        }
        if output.incomplete && !output.cut {
            lines.push(
                "[not all was looked at: a folder is nested too deep or closed, or a line is too long]".to_owned(),
            );
        }
        if output.cut {
            lines.push("[too many matches to count: narrow the pattern or the path]".to_owned());
        }
        lines.join("\n")
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        // As `grep` writes it without `-E`: here it is the character itself.
        let is_basic = !input.literal && [r"\|", r"\(", r"\{", r"\+"].iter().any(|mark| input.pattern.contains(mark));
        let query = SearchQuery {
            pattern: input.pattern,
            literal: input.literal,
            ignore_case: input.ignore_case,
            path: WsPath::parse(&input.path)?,
            glob: input.glob,
            context: input.context.min(CONTEXT_LINES_MAX),
            include_hidden: input.include_hidden,
            include_ignored: input.include_ignored,
            limit: input.limit.clamp(1, LIMIT_MAX),
            after: page::after_line(input.cursor)?,
        };
        let (found, is_text) = match ctx.workspace.search(query.clone()).await {
            // A pattern that is not a regular expression, such as `main(`, can only be meant as text.
            Err(Error::Pattern { what: "regular expression", .. }) => {
                (ctx.workspace.search(SearchQuery { literal: true, ..query }).await?, true)
            }
            found => (found?, false),
        };
        let note = if is_text {
            Some("the pattern is no regular expression and was taken as plain text")
        } else if is_basic && found.total == 0 {
            Some(r"`\|`, `\(` and the like are plain characters: without the `\` they are operators")
        } else {
            None
        };
        let last = found.matches.last().map(|m| page::line_cursor(&m.path, m.line));
        let matches = found.matches.into_iter().map(|m| Match {
            path: m.path,
            line: m.line,
            text: m.text,
            before: m.before,
            after: m.later,
        });
        Ok(Output {
            matches: matches.collect(),
            total: found.total,
            files_with_matches: found.files_with_matches,
            next_cursor: last.filter(|_| found.more),
            note: note.map(str::to_owned),
            incomplete: found.cut || found.unseen,
            cut: found.cut,
        })
    }
}
