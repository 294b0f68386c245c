//! `file.edit`

use std::borrow::Cow;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost_contract::workspace::{WriteGuard, WsPath, encode};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Preview, Tool, ToolError};

use super::symbol;
use super::{Approved, WHOLE_BYTES_MAX, as_text, check_marks, diff_of, named, read_whole, shortened};

/// Lines shown when a text was not found.
const NEAREST_LINES_MAX: usize = 3;
/// How alike a line must be to be shown (Jaro-Winkler, 0 to 1).
const SIMILARITY_MIN: f64 = 0.7;
/// Lines longer than this are not compared.
const COMPARED_CHARS_MAX: usize = 300;
/// Text in which the nearest lines are looked for, bytes.
const COMPARED_BYTES_MAX: usize = 512 * 1024;
const EDITS_MAX: usize = 200;

const NAMES: &[OtherName] = &[
    OtherName::field("old_string", "edits", "search"),
    OtherName::field("old_str", "edits", "search"),
    OtherName::field("old_text", "edits", "search"),
    OtherName::field("old", "edits", "search"),
    OtherName::field("search", "edits", "search"),
    OtherName::field("search_text", "edits", "search"),
    OtherName::field("find", "edits", "search"),
    OtherName::field("new_string", "edits", "replace"),
    OtherName::field("new_str", "edits", "replace"),
    OtherName::field("new_text", "edits", "replace"),
    OtherName::field("new", "edits", "replace"),
    OtherName::field("replace", "edits", "replace"),
    OtherName::field("replacement", "edits", "replace"),
    OtherName::field("replace_all", "edits", "all"),
    OtherName::field("all", "edits", "all"),
    OtherName::field("global", "edits", "all"),
    OtherName::argument("replacements", "edits"),
    OtherName::argument("changes", "edits"),
    OtherName::argument("expected_hash", "expectedSha256"),
    OtherName::anyway("expected_replacements", "1"),
];

pub(crate) struct Edit;

/// Changes parts of a text file: replaces text literally, or one definition by its name. All edits are made or none; the answer is the diff.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The path, relative to the workspace root.
    path: String,
    /// The edits, made one after the other.
    #[schemars(length(min = 1, max = 200))]
    edits: Vec<Replacement>,
    /// Refuse unless the content has this SHA-256 (hex), which `file.read` gives.
    #[schemars(regex(pattern = r"^[0-9a-fA-F]{64}$"))]
    expected_sha256: Option<String>,
    /// Only show the diff.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Replacement {
    /// The text to find, exactly as in the file, white space included. It must be there once unless `all` is set. Required
    /// without `symbol`.
    #[schemars(length(min = 1))]
    search: Option<String>,
    /// Look only in this definition, named as for `file.read`. Without `search`, replace it whole, with its comment and attributes.
    symbol: Option<String>,
    /// The text to put in its place.
    replace: String,
    /// Replace every place where it stands.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    path: String,
    /// Unified diff.
    diff: String,
    /// Places that were replaced.
    replacements: usize,
    /// False for a dry run.
    written: bool,
    /// SHA-256 of the content after the edits, hex.
    sha256: String,
    /// How the texts were taken where they do not stand in the file as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
}

impl Tool for Edit {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "file.edit";
    const TITLE: &'static str = "Edit a file";
    const FACTS: Facts = Facts { dry_run: Some("dryRun"), ..Facts::WRITES_FILE };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[super::NAMES_OF_FILE, NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &[
        "Edit",
        "MultiEdit",
        "Update",
        "str_replace",
        "str_replace_editor",
        "replace",
        "apply_diff",
        "search_replace",
    ];

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "one place",
                arguments: json!({"path": "a.txt", "edits": [{"search": "two", "replace": "$& 2"}]}),
                files: &[("a.txt", "one\ntwo\n")],
                before: &[],
                expect: Expect::Data(&[
                    ("/diff", r#""--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+$& 2\n""#),
                    ("/written", "true"),
                ]),
            },
            Example {
                says: "one definition",
                arguments: json!({"path": "a.py", "edits": [{"symbol": "f", "replace": "def f():\n    return 2\n"}]}),
                files: &[("a.py", "def f():\n    return 1\n\ndef g():\n    return 1\n")],
                before: &[],
                expect: Expect::Data(&[
                    (
                        "/diff",
                        r#""--- a/a.py\n+++ b/a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 2\n \n def g():\n     return 1\n""#,
                    ),
                    ("/replacements", "1"),
                ]),
            },
            Example {
                says: "a text that stands there twice is refused",
                arguments: json!({"path": "a.txt", "edits": [{"search": "x", "replace": "y"}]}),
                files: &[("a.txt", "x\nx\n")],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let did = if output.written { "edited" } else { "would edit" };
        let places = places(output.replacements);
        let read: String = output.read.iter().map(|how| format!("[{how}]\n")).collect();
        format!("{did} {} ({places}, sha256 {})\n{read}{}", output.path, output.sha256, output.diff)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let path = WsPath::parse(&input.path)?;
        let place = ctx.workspace.spot(&path, true).await?.path;
        let made = prepare(ctx, place.clone(), input).await?;
        let summary = format!("edit {}, {}", named(&path, &place), places(made.replacements));
        let rests_on = json!({ "place": place.as_str(), "sha256": made.before_sha256 });
        Ok(Some(Preview { summary, detail: made.diff, left_out: 0, rests_on }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let dry_run = input.dry_run;
        let path = WsPath::parse(&input.path)?;
        let approved = Approved::of(ctx, "place", &path)?;
        let made = prepare(ctx, approved.path.clone(), input).await?;
        let Prepared { bytes, before_sha256, sha256, diff, replacements, read } = made;
        if let Some(seen) = &approved.sha256
            && *seen != before_sha256
        {
            let (path, expected, actual) = (path.to_string(), seen.clone(), before_sha256);
            return Err(toolhost_contract::workspace::Error::Changed { path, expected, actual }.into());
        }
        if !dry_run {
            // Between the reading and this moment somebody else may have written.
            let guard = WriteGuard { expected_sha256: Some(before_sha256), ..WriteGuard::default() };
            approved.workspace.write(&approved.path, bytes, guard).await?;
        }
        let diff = shortened(diff);
        Ok(Output { path: path.to_string(), diff, replacements, written: !dry_run, sha256, read })
    }
}

/// The edits made, but not written.
struct Prepared {
    bytes: Vec<u8>,
    before_sha256: String,
    sha256: String,
    /// Whole.
    diff: String,
    replacements: usize,
    read: Vec<String>,
}

async fn prepare(ctx: &Ctx<'_>, path: WsPath, input: Input) -> Result<Prepared, ToolError> {
    let content = read_whole(ctx, &path).await.map_err(|mut error| {
        if error.kind == ErrorKind::NotFound {
            let hint = error.hint.take().unwrap_or_default();
            error.hint = Some(format!("{hint}; `file.write` makes a new file"));
        }
        error
    })?;
    let before_sha256 = hex::encode(Sha256::digest(&content.bytes));
    if let Some(expected) = &input.expected_sha256
        && !expected.eq_ignore_ascii_case(&before_sha256)
    {
        let (path, expected, actual) = (path.to_string(), expected.clone(), before_sha256);
        return Err(toolhost_contract::workspace::Error::Changed { path, expected, actual }.into());
    }
    let before = as_text(&path, &content.bytes, content.size)?;
    // Searching and comparing is work for the processor, where no deadline would reach it among the others.
    let (place, edits) = (path.clone(), input.edits);
    let applied = tokio::task::spawn_blocking(move || {
        let applied = apply(&place, &before.text, &edits).map(|applied| {
            let diff = diff_of(place.as_str(), &before.text, &applied.text);
            (applied, diff)
        });
        (before, applied)
    });
    let (before, applied) = applied.await.map_err(ToolError::internal)?;
    let (Applied { text: after, replacements, read }, diff) = applied?;
    check_marks(&before.text, &after)?;
    let bytes = encode(&after, before.encoding).ok_or_else(|| {
        let message = format!(
            "`{path}` is written in {}, which has no place for some of the new characters",
            before.encoding.name()
        );
        ToolError::new(ErrorKind::Validation, message)
            .hint("use characters of that encoding, or write the whole file anew as UTF-8")
    })?;
    let sha256 = hex::encode(Sha256::digest(&bytes));
    Ok(Prepared { bytes, before_sha256, sha256, diff, replacements, read })
}

/// The text with all edits.
struct Applied {
    text: String,
    replacements: usize,
    read: Vec<String>,
}

/// What one edit looks for and where.
struct Wanted<'e> {
    /// None: all of the part.
    search: Option<Cow<'e, str>>,
    replace: Cow<'e, str>,
    part: Range<usize>,
}

/// Makes the edits in order; each sees what the ones before it made.
fn apply(path: &WsPath, before: &str, edits: &[Replacement]) -> Result<Applied, ToolError> {
    debug_assert!(edits.len() <= EDITS_MAX, "the schema says so");
    let (mut text, mut read) = (before.to_owned(), Vec::new());
    let mut replacements = 0;
    for (n, edit) in edits.iter().enumerate() {
        let which = if edits.len() > 1 { format!("edit {}: ", n + 1) } else { String::new() };
        let found = find(path, &text, edit, (n, &which), &mut read)?;
        let part = &text[found.part.clone()];
        let (made, count) = match &found.search {
            None => (found.replace.to_string(), 1),
            Some(search) => {
                let count = part.matches(search.as_ref()).count();
                check_length(path, &text, (count, search, &found.replace), &which)?;
                (part.replace(search.as_ref(), &found.replace), count)
            }
        };
        text.replace_range(found.part, &made);
        if text.len() as u64 > WHOLE_BYTES_MAX {
            return Err(too_long(path, text.len(), &which));
        }
        replacements += count;
    }
    if text == before {
        let message = format!("the edits leave `{path}` as it is");
        return Err(ToolError::new(ErrorKind::Validation, message).hint("`replace` must differ from what it replaces"));
    }
    Ok(Applied { text, replacements, read })
}

/// What an edit replaces, which is there. Adds to `read` how it was taken.
fn find<'e>(
    path: &WsPath,
    text: &str,
    edit: &'e Replacement,
    (n, which): (usize, &str),
    read: &mut Vec<String>,
) -> Result<Wanted<'e>, ToolError> {
    let place = edit.symbol.as_ref().map(|name| symbol::find(path, text, name)).transpose().map_err(|mut error| {
        error.message.insert_str(0, which);
        error
    })?;
    let part = place.as_ref().map_or(0..text.len(), |place| place.range.clone());
    let inside = &text[part.clone()];
    let Some(search) = &edit.search else {
        let (Some(place), Some(name)) = (place, &edit.symbol) else {
            let message = format!("`/edits/{n}/search`: expected the text to find, got nothing");
            return Err(ToolError::new(ErrorKind::Validation, message)
                .hint("give `search`, or `symbol` to replace a definition whole"));
        };
        if place.is_broken {
            let message =
                format!("{which}`{name}` in `{path}` cannot be parsed without errors, so where it ends is uncertain");
            return Err(ToolError::new(ErrorKind::Validation, message)
                .hint("replace text in it by `search`; nothing was changed"));
        }
        return Ok(Wanted { search: None, replace: whole(text, inside, &edit.replace), part });
    };
    let meant = as_it_stands(text, inside, (search, &edit.replace));
    if let Some((.., how)) = &meant {
        read.push(format!("{which}{how}"));
    }
    let (search, replace) = match meant {
        Some((search, replace, _)) => (Cow::Owned(search), Cow::Owned(replace)),
        None => (Cow::Borrowed(search.as_str()), Cow::Borrowed(edit.replace.as_str())),
    };
    let lines_before = text[..part.start].matches('\n').count();
    match inside.matches(search.as_ref()).count() {
        0 => Err(not_found(path, (inside, lines_before), &search, which)),
        count if count > 1 && !edit.all => {
            let places = lines_of((inside, lines_before), &search);
            let message = format!("{which}the text stands {count} times in `{path}`, on lines {places}");
            Err(ToolError::new(ErrorKind::Validation, message).hint(
                "add lines around it to `search` so that one place is meant, name its definition in `symbol`, or set `all`; nothing was changed",
            ))
        }
        _ => Ok(Wanted { search: Some(search), replace, part }),
    }
}

/// Whether all lines of the file end in `\r\n`.
fn has_returns(text: &str) -> bool {
    text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count()
}

fn with_returns(lines: &str) -> String {
    lines.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// What takes the place of a definition: with the line ends of the file, and an end of its last line where there was one.
fn whole<'e>(text: &str, inside: &str, replace: &'e str) -> Cow<'e, str> {
    let mut made = if has_returns(text) { Cow::Owned(with_returns(replace)) } else { Cow::Borrowed(replace) };
    if inside.ends_with('\n') && !made.is_empty() && !made.ends_with('\n') {
        made.to_mut().push_str(if has_returns(text) { "\r\n" } else { "\n" });
    }
    made
}

/// Refuses a text that would be too long before it is made.
fn check_length(
    path: &WsPath,
    text: &str,
    (count, search, replace): (usize, &str, &str),
    which: &str,
) -> Result<(), ToolError> {
    let length = text.len().saturating_sub(count * search.len()).saturating_add(count.saturating_mul(replace.len()));
    if length as u64 > WHOLE_BYTES_MAX { Err(too_long(path, length, which)) } else { Ok(()) }
}

fn too_long(path: &WsPath, length: usize, which: &str) -> ToolError {
    let message = format!("{which}`{path}` would be {length} bytes long; {WHOLE_BYTES_MAX} is the most");
    ToolError::new(ErrorKind::Limit, message).hint("nothing was changed")
}

/// The edit with the file's own line ends, or without the numbers that a reader shows before lines, where only so its text is in
/// the part; and how it was taken.
fn as_it_stands(text: &str, part: &str, (search, replace): (&str, &str)) -> Option<(String, String, String)> {
    let is_there = |search: &str| !search.is_empty() && part.contains(search);
    if has_returns(text) {
        let (with_search, with_replace) = (with_returns(search), with_returns(replace));
        let is_other = search != with_search || replace != with_replace;
        let how = "with the line ends of the file, \\r\\n".to_owned();
        return (is_other && is_there(&with_search)).then_some((with_search, with_replace, how));
    }
    if is_there(search) {
        return None;
    }
    let search = without_line_numbers(search).filter(|search| is_there(search))?;
    let replace = without_line_numbers(replace).unwrap_or_else(|| replace.to_owned());
    Some((search, replace, "without the numbers before the lines".to_owned()))
}

fn places(count: usize) -> String {
    if count == 1 { "1 place".to_owned() } else { format!("{count} places") }
}

/// The lines on which the text stands in a part of the file that has so many lines before it.
fn lines_of((part, before): (&str, usize), search: &str) -> String {
    let line = |at: usize| (before + part[..at].matches('\n').count() + 1).to_string();
    let lines: Vec<String> = part.match_indices(search).take(10).map(|(at, _)| line(at)).collect();
    lines.join(", ")
}

fn not_found(path: &WsPath, (text, before): (&str, usize), search: &str, which: &str) -> ToolError {
    let unix = search.replace("\r\n", "\n");
    let message = format!("{which}the text is not in `{path}`");
    if text.contains("\r\n") && text.replace("\r\n", "\n").contains(&unix) {
        return ToolError::new(ErrorKind::Validation, message)
            .hint("some of the file's lines end in \\r\\n; so must those of `search`");
    }
    if let Some(first) = line_but_for_blanks(text, search) {
        let message = format!(
            "{message} as it is written: from line {} on it stands there with other white space",
            before + first
        );
        return ToolError::new(ErrorKind::Validation, message).hint(format!(
            "copy the white space of the file, which has {} there; nothing was changed",
            indents(text, first, search.lines().count())
        ));
    }
    let near = nearest_lines((text, before), search);
    let error = ToolError::new(
        ErrorKind::Validation,
        if near.is_empty() { message } else { format!("{message}; the nearest lines are:\n{near}") },
    );
    error.hint("read the file again and copy the text exactly, white space included; nothing was changed")
}

/// The text without a number and a mark before each line, as readers show them: `4\t`, `4:`, `4→`, `4 | `.
fn without_line_numbers(search: &str) -> Option<String> {
    let bare = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = rest.len() < line.trim_start().len();
        let marks = ["\t", "→", ": ", ":", " | ", "|"];
        is_numbered.then(|| marks.iter().find_map(|mark| rest.strip_prefix(mark)).map(str::to_owned)).flatten()
    };
    let lines: Option<Vec<String>> = search.lines().map(bare).collect();
    lines.filter(|lines| lines.iter().any(|line| !line.trim().is_empty())).map(|lines| lines.join("\n"))
}

/// The number of the first line from which on the text stands in the file with other blanks at the ends of its lines, if there is one
/// such place.
fn line_but_for_blanks(text: &str, search: &str) -> Option<usize> {
    let wanted: Vec<&str> = search.lines().map(str::trim).collect();
    let (first, rest) = wanted.split_first().filter(|(first, _)| !first.is_empty())?;
    let lines: Vec<&str> = text[..text.floor_char_boundary(COMPARED_BYTES_MAX)].lines().map(str::trim).collect();
    let fits = |at: usize| {
        let last = rest.len();
        let after = lines.get(at + 1..at + 1 + last)?;
        // The text may begin and end in the middle of a line.
        let begins = if last == 0 { lines[at].contains(first) } else { lines[at].ends_with(first) };
        let inner = after
            .iter()
            .zip(rest)
            .enumerate()
            .all(|(n, (line, wanted))| if n + 1 == last { line.starts_with(wanted) } else { line == wanted });
        (begins && inner).then_some(at + 1)
    };
    let mut places = (0..lines.len()).filter_map(fits);
    places.next().filter(|_| places.next().is_none())
}

/// What the lines of a file begin with.
fn indents(text: &str, first: usize, count: usize) -> &'static str {
    let lines = || text.lines().skip(first - 1).take(count);
    match (lines().any(|line| line.starts_with('\t')), lines().any(|line| line.starts_with(' '))) {
        (true, false) => "tabs",
        (false, true) => "spaces",
        (true, true) => "tabs and spaces",
        (false, false) => "none before its lines, or another between words",
    }
}

/// The lines most like the first telling line of the text, with their numbers.
fn nearest_lines((text, before): (&str, usize), search: &str) -> String {
    let Some(wanted) = search.lines().map(str::trim).find(|line| !line.is_empty()) else { return String::new() };
    if wanted.chars().count() > COMPARED_CHARS_MAX {
        return String::new();
    }
    let compared = &text[..text.floor_char_boundary(COMPARED_BYTES_MAX)];
    let mut scored: Vec<(f64, usize, &str)> = compared
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && line.len() <= COMPARED_CHARS_MAX)
        .map(|(n, line)| (strsim::jaro_winkler(line.trim(), wanted), before + n + 1, line))
        .filter(|(score, ..)| *score >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.truncate(NEAREST_LINES_MAX);
    scored.iter().map(|(_, n, line)| format!("{n}: {line}")).collect::<Vec<_>>().join("\n")
}
