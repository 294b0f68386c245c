//! A Markdown file with YAML front matter.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::finding::Finding;
use crate::json;
use crate::yaml;

/// The parts of a document. The text is kept whole, so nothing of it is lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    text: String,
    front: Value,
    body_at: usize,
}

impl Document {
    /// Takes a file apart.
    ///
    /// # Errors
    /// What is wrong with the text or its front matter.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Box<Finding>> {
        let text = std::str::from_utf8(bytes).map_err(|error| json::not_utf8(file, error))?;
        let (yaml, body_at) = split(text).ok_or_else(|| no_front_matter(file, text))?;
        let front = yaml::parse(yaml).map_err(|problem| {
            let message = format!("the front matter of `{file}`: {}", problem.message);
            // The opening line comes before the text that was parsed.
            Finding::error(problem.code, file, "", message)
                .at(problem.line + 1, problem.column)
                .expected("YAML that has a JSON form, without bombs")
                .hint("fix the front matter at this line")
        })?;
        if !front.is_object() {
            let message = format!("the front matter of `{file}` is not a set of fields");
            let finding = Finding::error("FRONT_MATTER_NOT_OBJECT", file, "", message);
            return Err(Box::new(
                finding.expected("`name: value` lines").hint("write each field on a line of its own, as `name: value`"),
            ));
        }
        Ok(Self { text: text.to_owned(), front, body_at })
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields of the front matter.
    #[must_use]
    pub fn front(&self) -> &Value {
        &self.front
    }

    /// The text of the front matter, between its two lines of `---`, and where in the file it begins: bytes.
    pub(crate) fn yaml(&self) -> (&str, usize) {
        front_of(&self.text)
    }

    /// What stands below the front matter.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.text[self.body_at..]
    }

    /// The line of the file on which the body begins, from 1.
    #[must_use]
    pub fn body_line(&self) -> usize {
        self.text[..self.body_at].matches('\n').count() + 1
    }

    /// A text of the front matter.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.front.get(name).and_then(Value::as_str)
    }

    /// Whether the body has a heading of this text, outside of code blocks.
    #[must_use]
    pub fn has_section(&self, heading: &str) -> bool {
        !self.sections(heading).is_empty()
    }

    /// The lines of the body that are a heading of this text, outside of code blocks: from 0.
    #[must_use]
    pub fn sections(&self, heading: &str) -> Vec<usize> {
        let code = code_lines(self.body());
        let lines = self.body().lines().zip(code).enumerate();
        lines.filter(|(_, (line, is_code))| !is_code && is_heading(line, heading)).map(|(at, _)| at).collect()
    }
}

impl Document {
    /// Whether a section is there once, and nothing stands between its heading and the next one that is not below it.
    pub(crate) fn is_empty_section(&self, heading: &str) -> bool {
        let sections = self.sections(heading);
        let [at] = sections.as_slice() else { return false };
        let code = code_lines(self.body());
        let is_next = |line: &str, is_code: bool| !is_code && (line.starts_with("# ") || line.starts_with("## "));
        let behind = self.body().lines().zip(code).skip(at + 1);
        behind.take_while(|(line, is_code)| !is_next(line, *is_code)).all(|(line, _)| line.trim().is_empty())
    }
}

impl Document {
    /// The line of the body, from 0, that was probably meant to end the front matter: fields stand between it and the line that
    /// did.
    pub(crate) fn cut_at(&self) -> Option<usize> {
        let lines: Vec<&str> = self.body().lines().collect();
        let end = lines.iter().position(|line| line.trim_end() == "---")?;
        let is_field = |line: &str| {
            let name = line.split_once(':').map_or("", |(name, _)| name);
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        let fields: Vec<&&str> = lines[..end].iter().filter(|line| !line.trim().is_empty()).collect();
        let are_fields = fields.iter().all(|line| is_field(line) || line.starts_with([' ', '-']));
        (fields.first().is_some_and(|line| is_field(line)) && are_fields).then_some(end)
    }
}

/// Whether a line is this heading: with up to three blanks before it and a row of `#` behind it, as Markdown has them
/// (CommonMark, ATX headings).
fn is_heading(line: &str, heading: &str) -> bool {
    let plain = line.trim_start_matches(' ');
    if line.len() - plain.len() > 3 {
        return false;
    }
    let plain = plain.trim_end();
    let closed = plain.trim_end_matches('#');
    plain == heading || (closed.ends_with([' ', '\t']) && closed.trim_end() == heading)
}

/// A document of these fields and this body. Each field is one line of JSON, which YAML reads as it is.
#[must_use]
pub fn render(front: &Map<String, Value>, body: &str) -> String {
    let mut text = String::from("---\n");
    for (name, value) in front {
        text.push_str(&format!("{}: {value}\n", Value::String(name.clone())));
    }
    text.push_str("---\n");
    text.push_str(body);
    text
}

/// The text of the front matter, and where in the document it begins: bytes.
pub(crate) fn front_of(text: &str) -> (&str, usize) {
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let first = text[bom..].find('\n').map_or(0, |end| bom + end + 1);
    (split(text).map_or("", |(yaml, _)| yaml), first)
}

/// The YAML, and where the body begins.
fn split(text: &str) -> Option<(&str, usize)> {
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lines = text[bom..].split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    let start = bom + first.len();
    let mut at = start;
    for line in lines {
        let end = at + line.len();
        if line.trim_end() == "---" {
            return Some((&text[start..at], end));
        }
        at = end;
    }
    None
}

/// Which lines of a Markdown text are in a block of code, or begin or end one.
pub(crate) fn code_lines(text: &str) -> Vec<bool> {
    let mut fence: Option<&str> = None;
    let is_code = |line: &str| {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        let was_open = fence.is_some();
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        was_open || fence.is_some()
    };
    text.lines().map(is_code).collect()
}

/// The comments of a Markdown text, `<!-- … -->`: bytes.
pub(crate) fn comments(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(begun) = text[at..].find("<!--").map(|begun| at + begun) {
        let end = text[begun..].find("-->").map_or(text.len(), |end| begun + end);
        found.push(begun..end);
        at = end;
    }
    found
}

fn no_front_matter(file: &str, text: &str) -> Finding {
    if text.trim_start_matches('\u{feff}').lines().next().is_some_and(|first| first.trim_end() == "---") {
        let message = format!("the front matter of `{file}` has no end: no second line is `---`");
        return Finding::error("FRONT_MATTER_UNCLOSED", file, "", message)
            .expected("a line `---` behind the YAML")
            .hint("add a line `---` where the front matter ends");
    }
    let message = format!("`{file}` does not begin with front matter between two lines of `---`");
    Finding::error("FRONT_MATTER_MISSING", file, "", message)
        .expected("a first line `---`, YAML, and a line `---`")
        .hint("begin the file with `---`")
}
