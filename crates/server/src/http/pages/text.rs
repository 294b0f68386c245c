//! Texts from elsewhere as a page shows them: cut to a length, with nothing in them that deceives; and times, amounts and durations.

use askama::Template;
use toolhost_contract::visible_line;

use super::Place;
use super::markdown::{Markdown, plain};
use super::marks::{mark, without_marks};
use super::parts::{Line, Parts};
use super::split::{SPLIT, Split};
use super::visitor::Membership;
pub(super) use super::when::When;

/// Longest title or name on a page, characters.
const NAME_CHARS_MAX: usize = 300;

/// The view of a text that shows it as it was written.
const SOURCE: &str = "text";

/// A text on a page: its lines, or what its Markdown means.
#[derive(Default, Template)]
#[template(path = "words.html")]
pub(super) struct Shown {
    pub(super) lines: Vec<Line>,
    /// What the beginning means, of a text that may be Markdown and has marks of it.
    pub(super) markdown: Option<Markdown>,
    /// Whether the text goes on.
    pub(super) is_cut: bool,
}

impl Shown {
    /// The beginning of a text. Lines of a diff are marked as such.
    pub(super) fn of(text: &str, lines_max: usize, bytes_max: usize) -> Self {
        let text = text.trim_end_matches('\n');
        let mut end = text.floor_char_boundary(bytes_max);
        if let Some((at, _)) = text[..end].match_indices('\n').nth(lines_max.saturating_sub(1)) {
            end = at;
        }
        let beginning = &text[..end];
        let is_diff = beginning.lines().any(|line| line.starts_with("@@ "));
        let line =
            |line: &str| Line { class: if is_diff { mark(line) } else { "" }, text: without_marks(line), number: None };
        let lines = if beginning.is_empty() { Vec::new() } else { beginning.split('\n').map(line).collect() };
        Self { lines, markdown: None, is_cut: end < text.len() }
    }

    /// The beginning of a text that may be Markdown, below a heading of this level. A diff is shown as one.
    pub(super) fn markdown(text: &str, level: usize, lines_max: usize, bytes_max: usize) -> Self {
        let shown = Self::of(text, lines_max, bytes_max);
        let is_diff = shown.lines.iter().any(|line| line.class == "hunk");
        let beginning: String = text.split_inclusive('\n').take(shown.lines.len()).collect();
        let beginning = &beginning[..beginning.floor_char_boundary(bytes_max)];
        let markdown = if is_diff { None } else { Markdown::of(beginning, level) };
        Self { markdown, ..shown }
    }

    /// The address of the page that has the text as it was written; empty where this one does.
    pub(super) fn source_of(&self, address: &str) -> String {
        let mark = if address.contains('?') { '&' } else { '?' };
        if self.markdown.is_some() { format!("{address}{mark}view={SOURCE}") } else { String::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// A page that is one text, in parts.
#[derive(Template)]
#[template(path = "text.html")]
pub(super) struct TextPage<'a> {
    place: Place<'a>,
    title: &'a str,
    about: String,
    /// Where the text stands, and what that is called.
    back: (String, &'static str),
    /// What the query has besides the part.
    query: String,
    lines: Vec<Line>,
    part: usize,
    parts: usize,
    /// What the whole text means, if that is shown.
    markdown: Option<Markdown>,
    /// The part as a diff side by side, if that is shown.
    split: Option<Split>,
    /// Where it is shown the other way, and what that is called.
    other: Option<(String, &'static str)>,
}

impl<'a> TextPage<'a> {
    /// The part of a text that is asked for.
    pub(super) fn of(
        place: Place<'a>,
        (title, about): (&'a str, &str),
        back: (String, &'static str),
        query: String,
        (text, part): (&str, Option<&str>),
    ) -> Self {
        let parts = Parts::of(text, "");
        let part = part.and_then(|part| part.parse().ok()).unwrap_or(1).clamp(1, parts.count());
        let is_diff = text.lines().any(|line| line.starts_with("@@ "));
        let lines = parts.lines(part, is_diff).0;
        let (about, parts) = (name(about), parts.count());
        Self { place, title, about, back, query, lines, part, parts, markdown: None, split: None, other: None }
    }

    /// The page, of a text that may be a diff: side by side if that is asked for.
    pub(super) fn or_split(mut self, text: &str, view: Option<&str>) -> Self {
        let parts = Parts::of(text, "");
        if !parts.has_diff() {
            return self;
        }
        if view == Some(SPLIT) {
            self.other = Some((format!("?{}part={}", self.query, self.part), "One below the other"));
            self.query.push_str(&format!("view={SPLIT}&"));
            self.split = Some(parts.split(self.part));
        } else {
            self.other = Some((format!("?{}part={}&view={SPLIT}", self.query, self.part), "Side by side"));
        }
        self
    }

    /// The page, of a text that may be Markdown: what it means, unless it is asked for as it was written.
    pub(super) fn or_markdown(mut self, text: &str, view: Option<&str>) -> Self {
        let Some(markdown) = Markdown::of(text, 1) else { return self };
        if view == Some(SOURCE) {
            self.other = Some((format!("?{}", self.query.trim_end_matches('&')), "As Markdown"));
            self.query.push_str(&format!("view={SOURCE}&"));
        } else {
            self.other = Some((format!("?{}view={SOURCE}", self.query), "As text"));
            (self.markdown, self.parts) = (Some(markdown), 1);
        }
        self
    }
}

/// A message of several lines, in one: the first says what the others are about.
pub(super) fn in_one_line(message: &str) -> String {
    visible_line(&joined(message))
}

/// The lines of a message behind one another.
pub(super) fn joined(message: &str) -> String {
    message.trim_end().replace(":\n", ": ").replace('\n', "; ")
}

/// A title or a name, in one line.
pub(super) fn name(text: &str) -> String {
    let beginning: String = text.chars().take(NAME_CHARS_MAX + 1).collect();
    let line = visible_line(&beginning.replace(['\n', '\t'], " "));
    if beginning.chars().count() <= NAME_CHARS_MAX {
        return line;
    }
    line.chars().take(NAME_CHARS_MAX).chain(['…']).collect()
}

/// A text on one line of at most so many characters; all of it stands elsewhere.
pub(super) fn short(text: &str, chars_max: usize) -> String {
    let line = visible_line(text);
    let mut chars = line.chars();
    let mut cut: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        cut.pop();
        cut.push('…');
    }
    cut
}

/// What a session was asked for, as a title: in one line, without the marks of Markdown, which may stand inside a secret.
pub(super) fn headline(membership: &Membership, text: &str) -> String {
    let mut plain = plain(text);
    membership.project.gate.redact_text(&mut plain);
    name(&plain)
}

/// `plan_approval` as `plan approval`, `startedAtMs` as `started at`.
pub(super) fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for c in name.strip_suffix("Ms").unwrap_or(name).chars() {
        match c {
            '_' | '-' => words.push(' '),
            c if c.is_ascii_uppercase() => words.extend([' ', c.to_ascii_lowercase()]),
            c => words.push(c),
        }
    }
    words
}

/// `12,345`
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `850 ms`, `2.4 s`, `3 min 5 s`, `2 h 4 min`
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// `$0.0123`
pub(super) fn dollars(cost: f64) -> String {
    if cost >= 1.0 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}

/// What stands in an address as it is, besides letters and digits.
const PLAIN: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// A part of an address, or a value of its query.
pub(super) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_its_lines_and_bytes_and_says_so() {
        let lines = |text: &str, lines_max, bytes_max| {
            let shown = Shown::of(text, lines_max, bytes_max);
            (shown.lines.iter().map(|line| format!("{}:{}", line.class, line.text)).collect::<Vec<_>>(), shown.is_cut)
        };
        assert_eq!(lines("", 3, 10), (vec![], false));
        assert_eq!(lines("a\nb\n", 3, 10), (vec![":a".to_owned(), ":b".to_owned()], false));
        assert_eq!(lines("a\nb\nc", 2, 10), (vec![":a".to_owned(), ":b".to_owned()], true));
        assert_eq!(lines("éé", 2, 3), (vec![":é".to_owned()], true));
        let diff = lines("@@ -1 +1 @@\n-a\n+b", 9, 99).0;
        assert_eq!(diff, ["hunk:@@ -1 +1 @@", "old:-a", "new:+b"]);
        assert_eq!(lines("\u{202e}x", 1, 99).0, [":\\u{202e}x"]);
    }

    #[test]
    fn numbers_and_names_read_as_people_write_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let times = [0, 999, 1000, 61_000, 7_440_000].map(duration);
        assert_eq!(times, ["0 ms", "999 ms", "1.0 s", "1 min 1 s", "2 h 4 min"]);
        assert_eq!(
            ["plan_approval", "startedAtMs", "acceptanceCriteria"].map(words),
            ["plan approval", "started at", "acceptance criteria"]
        );
        assert_eq!(name("a\nb"), "a b");
        assert_eq!(name(&"x".repeat(301)).chars().count(), 301);
    }
}
