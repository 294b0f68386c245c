//! `file.read`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{ReadSpan, WsPath};
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Meaning, OtherName, Tool, ToolError};

use super::outline::outline;
use super::symbol;
use super::{NEAR, WHOLE_BYTES_MAX, as_text, read_part, read_whole};

const LINES_DEFAULT: usize = 2000;
const LINES_MAX: usize = 100_000;
const BYTES_DEFAULT: usize = 128 * 1024;
const BYTES_MAX: usize = 1024 * 1024;
/// Lines that `fit` shows by default.
const FIT_LINES_DEFAULT: usize = 200;
/// Lines of each end that `headTail` shows by default.
const END_LINES_DEFAULT: usize = 50;
/// Bytes of each end that are looked at in a file too large to read whole.
const END_BYTES: u64 = 128 * 1024;

const NAMES: &[OtherName] = &[
    OtherName::argument("files", "paths"),
    OtherName::argument("file_paths", "paths"),
    OtherName::argument("symbol_name", "symbol"),
    OtherName::argument("start_line", "offset"),
    OtherName::argument("line_start", "offset"),
    OtherName::argument("line_offset", "offset"),
    OtherName::argument("start", "offset"),
    OtherName::argument("num_lines", "limit"),
    OtherName::argument("n_lines", "limit"),
    OtherName::argument("line_count", "limit"),
    OtherName::argument("max_lines", "limit"),
    OtherName::means("end_line", LAST_LINE),
    OtherName::means("line_end", LAST_LINE),
    OtherName::means("end", LAST_LINE),
    OtherName::means("view_range", Meaning::Lines { first: "offset", count: "limit" }),
    OtherName::means("line_range", Meaning::Lines { first: "offset", count: "limit" }),
    OtherName::anyway("encoding", "utf-8"),
    OtherName::anyway("should_read_entire_file", "true"),
];
const LAST_LINE: Meaning = Meaning::LastLine { first: "offset", count: "limit" };

pub(crate) struct Read;

/// Reads text files: whole, a range of lines, one definition, the two ends, an outline, or what fits into `limit` lines. The answer
/// has each file's SHA-256, which `file.write` and `file.edit` take as `expectedSha256`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The path, relative to the workspace root.
    path: Option<String>,
    /// Several files in place of `path`; the other arguments apply to each. A file that cannot be read stops no other.
    #[schemars(length(min = 1, max = 50))]
    paths: Option<Vec<String>>,
    /// Only this definition or Markdown section, by its name in the outline: `next`, `Parser::next`, or with its line `next:120`.
    symbol: Option<String>,
    /// First line, from 1; 0 is the first, too.
    offset: Option<usize>,
    /// Most lines; with `headTail`, of each end. Default: 2000; `headTail` 50, `fit` 200, `outline` all.
    #[schemars(range(min = 1, max = 100000))]
    limit: Option<usize>,
    /// Most bytes of text, of all files together. Default: 131072.
    #[schemars(range(min = 1, max = 1048576))]
    max_bytes: Option<usize>,
    /// `full`: the lines asked for; `headTail`: the first and last lines; `outline`: definitions with line numbers (Rust, Python,
    /// JavaScript, TypeScript, Go, Java, C, C++) or headings of Markdown; `fit`: the whole file if it has at most `limit` lines, else
    /// its outline or, where it has none, its two ends; with `offset` as `full`.
    #[serde(default)]
    view: View,
}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "camelCase")]
enum View {
    #[default]
    Full,
    HeadTail,
    Outline,
    Fit,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("type" = "object"))]
pub(crate) enum Output {
    /// For `path`.
    One(Box<Shown>),
    /// For `paths`: each file, in order.
    Several { files: Vec<Part> },
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Part {
    Read(Box<Shown>),
    Failed { path: String, error: String },
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    path: String,
    /// The view that was given; another than asked for is explained in `note`.
    view: View,
    content: String,
    /// Bytes of the whole file.
    size: u64,
    /// Lines of the whole file; null if it is too large to count.
    total_lines: Option<usize>,
    /// First line of `content`, 1-based; null for an outline.
    first_line: Option<usize>,
    /// Last line of `content`; null for an outline.
    last_line: Option<usize>,
    /// Whether `content` is less than the whole file.
    truncated: bool,
    /// Where to read on: the next `offset`.
    next_offset: Option<usize>,
    /// Such as `UTF-8`.
    encoding: String,
    /// SHA-256 of the whole file, hex; null if it is too large to read whole.
    sha256: Option<String>,
    note: Option<String>,
}

impl Tool for Read {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.read";
    const TITLE: &'static str = "Read a file";
    const FACTS: Facts = Facts { paths: &["path", "paths"], ..Facts::READS };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[super::NAMES_OF_FILE, NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &[
        "Read",
        "View",
        "cat",
        "open_file",
        "view_file",
        "get_file_contents",
        "NotebookRead",
        "read_multiple_files",
        "read_many_files",
    ];

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("read_file"),
            Alias::new("read_file_truncated").preset(json!({"view": "fit"})),
            Alias::new("read_file_with_limit").calls_per_session(10),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a range of lines",
                arguments: json!({"path": "a.txt", "offset": 2, "limit": 1}),
                files: &[("a.txt", "one\ntwo\nthree\n")],
                before: &[],
                expect: Expect::Data(&[("/content", "\"two\\n\""), ("/totalLines", "3"), ("/nextOffset", "3")]),
            },
            Example {
                says: "the outline of a source file",
                arguments: json!({"path": "a.py", "view": "outline"}),
                files: &[("a.py", "import os\n\nclass A:\n    def run(self):\n        pass\n")],
                before: &[],
                expect: Expect::Data(&[("/content", "\"3: class A:\\n4:     def run(self):\\n\"")]),
            },
            Example {
                says: "a file that fits is shown whole",
                arguments: json!({"path": "a.py", "view": "fit", "limit": 3}),
                files: &[("a.py", "import os\nprint(os.name)\n")],
                before: &[],
                expect: Expect::Data(&[("/content", "\"import os\\nprint(os.name)\\n\""), ("/truncated", "false")]),
            },
            Example {
                says: "paths stay in the workspace",
                arguments: json!({"path": "../secret"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Security),
            },
            Example {
                says: "one definition",
                arguments: json!({"path": "a.py", "symbol": "A.run"}),
                files: &[("a.py", "class A:\n    def run(self):\n        pass\n\n    def stop(self):\n        pass\n")],
                before: &[],
                expect: Expect::Data(&[("/content", "\"    def run(self):\\n        pass\\n\""), ("/firstLine", "2")]),
            },
            Example {
                says: "several files at once",
                arguments: json!({"paths": ["a.txt", "b.txt"]}),
                files: &[("a.txt", "one\n"), ("b.txt", "two\n")],
                before: &[],
                expect: Expect::Data(&[("/files/0/content", "\"one\\n\""), ("/files/1/content", "\"two\\n\"")]),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let files = match output {
            Output::One(shown) => return shown.render(),
            Output::Several { files } => files,
        };
        let mut text = String::new();
        for file in files {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let (path, shown) = match file {
                Part::Read(shown) => (&shown.path, shown.render()),
                Part::Failed { path, error } => (path, format!("[not read: {error}]")),
            };
            text.push_str(&format!("==> {path} <==\n{shown}"));
        }
        text
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let bytes_max = input.max_bytes.unwrap_or(BYTES_DEFAULT).min(BYTES_MAX);
        match (&input.path, &input.paths) {
            (Some(path), None) => Ok(Output::One(Box::new(read_one(ctx, path, &input, bytes_max).await?))),
            (None, Some(paths)) => {
                let files = read_several(ctx, paths, &input, bytes_max).await?;
                Ok(Output::Several { files })
            }
            (path, _) => {
                let given = if path.is_some() { "both" } else { "neither" };
                let message = format!("`/path`: expected `path` or `paths`, got {given}");
                Err(ToolError::new(ErrorKind::Validation, message)
                    .hint("`path` names one file, `paths` a list of files"))
            }
        }
    }
}

/// Reads each file into what the ones before it leave of the room.
async fn read_several(
    ctx: &Ctx<'_>,
    paths: &[String],
    input: &Input,
    bytes_max: usize,
) -> Result<Vec<Part>, ToolError> {
    let mut room = bytes_max;
    let mut files = Vec::with_capacity(paths.len());
    let mut first_error = None;
    for path in paths {
        let read = match room {
            0 => Err(ToolError::new(ErrorKind::Limit, "the files before it fill `maxBytes`")),
            room => read_one(ctx, path, input, room).await,
        };
        files.push(match read {
            Ok(shown) => {
                room = room.saturating_sub(shown.content.len());
                Part::Read(Box::new(shown))
            }
            Err(error) => {
                let meant = error.hint.as_deref().filter(|hint| hint.starts_with(NEAR));
                let meant = meant.and_then(|hint| Some(format!("; {}", hint.split_once("; ")?.0))).unwrap_or_default();
                let part = Part::Failed { path: path.clone(), error: format!("{error}{meant}") };
                first_error.get_or_insert(error);
                part
            }
        });
    }
    match first_error {
        Some(error) if !files.iter().any(|file| matches!(file, Part::Read(_))) => Err(error),
        _ => Ok(files),
    }
}

async fn read_one(ctx: &Ctx<'_>, path: &str, input: &Input, bytes_max: usize) -> Result<Shown, ToolError> {
    let path = WsPath::parse(path)?;
    if matches!(input.view, View::HeadTail | View::Fit) && input.symbol.is_none() {
        let first = read_part(ctx, &path, ReadSpan { start: 0, bytes_max: END_BYTES }).await?;
        if first.size > WHOLE_BYTES_MAX {
            return ends_of_huge(ctx, &path, first.bytes, first.size, input, bytes_max).await;
        }
    }
    let content = read_whole(ctx, &path).await?;
    let decoded = as_text(&path, &content.bytes, content.size)?;
    let file = File {
        path: path.to_string(),
        size: content.size,
        sha256: Some(hex::encode(Sha256::digest(&content.bytes))),
        encoding: decoded.encoding.name().to_owned(),
        text: decoded.text,
    };
    if let Some(symbol) = &input.symbol {
        return definition(file, path, symbol.clone(), input, bytes_max).await;
    }
    match input.view {
        View::Full => file.lines(input, bytes_max),
        View::HeadTail => Ok(file.ends(Ends::of(input), bytes_max, None)),
        View::Fit if input.offset.is_some() || file.fits(fit_lines(input), bytes_max) => file.lines(input, bytes_max),
        View::Outline | View::Fit => {
            // Parsing is work for the processor, where no deadline would reach it among the others.
            let parsed = tokio::task::spawn_blocking(move || {
                let outline = outline(&file.path, &file.text, bytes_max);
                (file, outline)
            });
            Ok(match parsed.await.map_err(ToolError::internal)? {
                (file, Ok(content)) => file.outline(&content, input),
                (file, Err(why)) => file.ends(Ends::of(input), bytes_max, Some(why)),
            })
        }
    }
}

/// The lines of one definition.
async fn definition(
    file: File,
    path: WsPath,
    symbol: String,
    input: &Input,
    bytes_max: usize,
) -> Result<Shown, ToolError> {
    if input.offset.is_some() || matches!(input.view, View::HeadTail | View::Outline) {
        let message = "`symbol` shows the lines of one definition, and takes neither `offset` nor another view";
        return Err(ToolError::new(ErrorKind::Validation, message).hint("leave out `offset` and `view`"));
    }
    let found = tokio::task::spawn_blocking(move || {
        let place = symbol::find(&path, &file.text, &symbol)?;
        let line_of = |at: usize| file.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        // Its last byte is on its last line, be it the end of that line.
        let lines = (line_of(place.range.start), line_of(place.range.end.max(1) - 1));
        Ok::<_, ToolError>((file, lines, place.is_broken))
    });
    let (file, (first, last), is_broken) = found.await.map_err(ToolError::internal)??;
    let count = (last + 1).saturating_sub(first).min(input.limit.unwrap_or(LINES_MAX));
    let shown = file.lines_from(first, count, bytes_max)?;
    let note = is_broken.then(|| "it cannot be parsed without errors, so it may end elsewhere".to_owned());
    Ok(Shown { note: shown.note.or(note), ..shown })
}

impl Shown {
    fn render(&self) -> String {
        let mut text = self.content.clone();
        let mut notes: Vec<String> = self.note.iter().cloned().collect();
        if let (true, View::Full, Some(first), Some(last)) =
            (self.truncated, self.view, self.first_line, self.last_line)
        {
            let of = self.total_lines.map(|total| format!(" of {total}")).unwrap_or_default();
            let next = self.next_offset.map(|next| format!("; read on with offset={next}")).unwrap_or_default();
            notes.push(format!("lines {first}-{last}{of}{next}"));
        }
        if notes.is_empty() {
            return text;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{}]", notes.join("; ")));
        text
    }
}

/// A longer word is cut.
const WORD_BYTES_MAX: usize = 4096;

/// How many lines of the beginning and of the end are shown.
#[derive(Clone, Copy)]
struct Ends {
    first: usize,
    last: usize,
}

impl Ends {
    fn of(input: &Input) -> Self {
        match input.view {
            View::Fit => Self { first: fit_lines(input).div_ceil(2), last: fit_lines(input) / 2 },
            _ => {
                let each = input.limit.unwrap_or(END_LINES_DEFAULT).min(LINES_MAX);
                Self { first: each, last: each }
            }
        }
    }
}

/// Most lines that `fit` shows.
fn fit_lines(input: &Input) -> usize {
    input.limit.unwrap_or(FIT_LINES_DEFAULT).min(LINES_MAX)
}

/// A text file, read whole.
struct File {
    path: String,
    size: u64,
    sha256: Option<String>,
    encoding: String,
    text: String,
}

impl File {
    fn fits(&self, lines_max: usize, bytes_max: usize) -> bool {
        self.text.len() <= bytes_max && self.text.lines().nth(lines_max).is_none()
    }

    fn lines(self, input: &Input, bytes_max: usize) -> Result<Shown, ToolError> {
        let lines_max = input.limit.unwrap_or(LINES_DEFAULT).min(LINES_MAX);
        self.lines_from(input.offset.unwrap_or(1).max(1), lines_max, bytes_max)
    }

    fn lines_from(self, first: usize, lines_max: usize, bytes_max: usize) -> Result<Shown, ToolError> {
        let total = self.text.lines().count();
        if first > total.max(1) {
            let message = format!("`{}` has {total} lines; line {first} is beyond its end", self.path);
            return Err(ToolError::new(ErrorKind::Validation, message).hint("choose an `offset` within the file"));
        }
        let start = line_start(&self.text, first);
        let mut end = start;
        let mut count: usize = 0;
        for line in self.text[start..].split_inclusive('\n').take(lines_max) {
            if end + line.len() - start > bytes_max {
                break;
            }
            end += line.len();
            count += 1;
        }
        let mut note = None;
        if count == 0 && start < self.text.len() {
            // One line longer than all that may be returned: give its beginning rather than nothing.
            end = self.text.floor_char_boundary(start + bytes_max);
            // At a blank if one is near, so that no word is cut: half of a secret is not known to be one.
            let part = &self.text[start..end];
            let blank = part.rfind(char::is_whitespace).filter(|at| *at > 0 && part.len() - at < WORD_BYTES_MAX);
            end = blank.map_or(end, |at| start + at);
            count = 1;
            note = Some(format!("line {first} is cut after {} bytes", end - start));
        }
        let last = first + count.saturating_sub(1);
        let more = end < self.text.len();
        let mut file = self;
        let content = match (start, more) {
            // The whole file, without a copy.
            (0, false) => std::mem::take(&mut file.text),
            _ => file.text[start..end].to_owned(),
        };
        Ok(Shown {
            content,
            first_line: Some(first),
            last_line: Some(last),
            truncated: more || start > 0,
            next_offset: (more && last < total).then_some(last + 1),
            note,
            ..file.described(View::Full, Some(total))
        })
    }

    fn ends(self, ends: Ends, bytes_max: usize, note: Option<String>) -> Shown {
        let lines: Vec<&str> = self.text.split_inclusive('\n').collect();
        let (content, truncated) = head_and_tail(&lines, &lines, lines.len(), ends, bytes_max);
        let total = lines.len();
        Shown {
            content,
            first_line: Some(1),
            last_line: Some(total),
            truncated,
            note,
            ..self.described(View::HeadTail, Some(total))
        }
    }

    fn outline(self, content: &str, input: &Input) -> Shown {
        let total = self.text.lines().count();
        let most = if input.view == View::Fit { fit_lines(input) } else { input.limit.unwrap_or(usize::MAX) };
        let mut lines = content.split_inclusive('\n');
        let mut content: String = lines.by_ref().take(most).collect();
        let left_out = lines.count();
        if left_out > 0 {
            content.push_str(&format!("[... {left_out} more left out ...]\n"));
        }
        Shown { content, truncated: true, ..self.described(View::Outline, Some(total)) }
    }

    fn described(self, view: View, total_lines: Option<usize>) -> Shown {
        Shown {
            path: self.path,
            view,
            content: String::new(),
            size: self.size,
            total_lines,
            first_line: None,
            last_line: None,
            truncated: false,
            next_offset: None,
            encoding: self.encoding,
            sha256: self.sha256,
            note: None,
        }
    }
}

async fn ends_of_huge(
    ctx: &Ctx<'_>,
    path: &WsPath,
    head: Vec<u8>,
    size: u64,
    input: &Input,
    bytes_max: usize,
) -> Result<Shown, ToolError> {
    let tail =
        ctx.workspace.read(path, ReadSpan { start: size.saturating_sub(END_BYTES), bytes_max: END_BYTES }).await?;
    let decoded = as_text(path, &head, size)?;
    let tail = String::from_utf8_lossy(&tail.bytes);
    let head_lines: Vec<&str> = decoded.text.split_inclusive('\n').collect();
    // The first line of the tail began before it.
    let tail_lines: Vec<&str> = tail.split_inclusive('\n').skip(1).collect();
    let (content, _) = head_and_tail(&head_lines, &tail_lines, usize::MAX, Ends::of(input), bytes_max);
    let file = File {
        path: path.to_string(),
        size,
        sha256: None,
        encoding: decoded.encoding.name().to_owned(),
        text: String::new(),
    };
    let note = Some(format!("the file is too large ({size} bytes) to count its lines"));
    Ok(Shown { content, first_line: Some(1), truncated: true, note, ..file.described(View::HeadTail, None) })
}

/// The first lines of `head` and the last of `tail`, with a line that says what is left out between.
fn head_and_tail(head: &[&str], tail: &[&str], total: usize, ends: Ends, bytes_max: usize) -> (String, bool) {
    if total <= ends.first + ends.last && head.iter().map(|line| line.len()).sum::<usize>() <= bytes_max {
        return (head.concat(), false);
    }
    let first = within(head.iter().take(ends.first).copied(), bytes_max / 2);
    let last = within(tail.iter().rev().take(ends.last).copied(), bytes_max / 2);
    let left_out = match total {
        usize::MAX => "[... the middle is left out ...]\n".to_owned(),
        total => format!("[... {} lines left out ...]\n", total.saturating_sub(first.len() + last.len())),
    };
    let tail: String = last.into_iter().rev().collect();
    (format!("{}{left_out}{tail}", first.concat()), true)
}

/// As many of the lines as fit; the first is cut if even it does not.
fn within<'t>(lines: impl Iterator<Item = &'t str>, bytes_max: usize) -> Vec<&'t str> {
    let mut room = bytes_max;
    let mut taken = Vec::new();
    for line in lines {
        if line.len() > room {
            if taken.is_empty() {
                taken.push(&line[..line.floor_char_boundary(room)]);
            }
            break;
        }
        room -= line.len();
        taken.push(line);
    }
    taken
}

/// Byte at which a 1-based line begins.
fn line_start(text: &str, line: usize) -> usize {
    if line <= 1 {
        return 0;
    }
    text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1)
}
