//! A unified diff side by side: what was on the left, what is to be on the right, with line numbers and the words that differ.
//!
//! Everything that the unified view shows is here, too, and in the same order: what belongs to no hunk stands across both columns.

use std::ops::Range;

use askama::Template;
use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::marks::without_marks;

/// The view of a diff that is side by side, as addresses name it.
pub(super) const SPLIT: &str = "split";
/// Most words of a line of which it is told which of them differ: comparing takes the square of this.
const WORDS_MAX: usize = 200;

/// A diff in two columns.
#[derive(Default, Template)]
#[template(path = "split.html")]
pub(super) struct Split {
    rows: Vec<Row>,
}

/// A row of the table.
enum Row {
    /// What belongs to no hunk, across both columns.
    Across(String),
    /// What was, and what is to be; `None` where that side has no such line.
    Sides([Option<Side>; 2]),
}

/// A line of one side.
struct Side {
    /// `None`: it goes on from the row above.
    number: Option<u64>,
    /// `+`, `-` or a blank.
    sign: char,
    /// Texts, and whether each differs from the other side.
    words: Vec<(String, bool)>,
}

impl Side {
    fn text(&self) -> &str {
        self.words.first().map_or("", |(text, _)| text)
    }

    fn class(&self) -> &'static str {
        match self.sign {
            '-' => "old",
            '+' => "new",
            _ => "",
        }
    }
}

/// A diff that is being read, line by line.
#[derive(Default)]
pub(super) struct Splitter {
    rows: Vec<Row>,
    /// Lines that are gone and have come, not yet beside each other.
    old: Vec<Side>,
    new: Vec<Side>,
    /// The next numbers of both sides, and how many lines of the hunk each has left.
    next: [u64; 2],
    left: [u64; 2],
    /// The sign of a line whose next piece comes.
    goes_on: Option<char>,
}

impl Split {
    /// A whole diff.
    pub(super) fn of<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        let mut splitter = Splitter::default();
        for line in lines {
            splitter.push(line, false);
        }
        splitter.end()
    }
}

impl Splitter {
    /// A piece of a line, and whether the line goes on in the next piece.
    pub(super) fn push(&mut self, piece: &str, goes_on: bool) {
        let (sign, text, is_first) = match (self.goes_on.take(), self.sign_of(piece)) {
            (Some(sign), _) => (Some(sign).filter(|sign| *sign != '@'), piece, false),
            (None, Some(sign)) => (Some(sign), piece.get(1..).unwrap_or_default(), true),
            (None, None) => (None, piece, true),
        };
        if goes_on {
            self.goes_on = Some(sign.unwrap_or('@'));
        }
        let shown = without_marks(text) + if goes_on { " …" } else { "" };
        // That a file has no last line break is said of the side before.
        let beside = if self.new.is_empty() { &mut self.old } else { &mut self.new };
        if sign.is_none() && !beside.is_empty() && text.starts_with('\\') {
            beside.push(Side { number: None, sign: '\\', words: vec![(shown[1..].to_owned(), false)] });
            return;
        }
        let Some(sign) = sign else {
            self.pair();
            if is_first {
                self.begin(piece);
            }
            self.rows.push(Row::Across(shown));
            return;
        };
        if sign == ' ' {
            self.pair();
        }
        let mut side = |at: usize| {
            let number = is_first.then_some(self.next[at]);
            if is_first {
                self.next[at] = self.next[at].saturating_add(1);
                self.left[at] = self.left[at].saturating_sub(1);
            }
            Side { number, sign, words: vec![(shown.clone(), false)] }
        };
        match sign {
            '-' => {
                let side = side(0);
                // A line that is gone after one that has come begins another change.
                if !self.new.is_empty() {
                    self.pair();
                }
                self.old.push(side);
            }
            '+' => {
                let side = side(1);
                self.new.push(side);
            }
            _ => {
                let (old, new) = (side(0), side(1));
                self.rows.push(Row::Sides([Some(old), Some(new)]));
            }
        }
    }

    /// Forgets the rows so far, and keeps where they have come to: what follows is another part of the diff.
    pub(super) fn skip(&mut self) {
        self.rows.clear();
        self.old.clear();
        self.new.clear();
    }

    /// The rows, and a word about what comes after them.
    pub(super) fn end_with(mut self, rest: &str) -> Split {
        self.pair();
        self.rows.push(Row::Across(rest.to_owned()));
        self.end()
    }

    pub(super) fn end(mut self) -> Split {
        self.pair();
        Split { rows: self.rows }
    }

    /// What a line is in the hunk, as far as its head says that there are such lines. `None`: it is none of the hunk.
    fn sign_of(&self, line: &str) -> Option<char> {
        let [old, new] = self.left.map(|left| left > 0);
        match line.as_bytes().first() {
            Some(b'-') if old => Some('-'),
            Some(b'+') if new => Some('+'),
            // Some programs leave out the blank of an empty line.
            Some(b' ') | None if old && new => Some(' '),
            _ => None,
        }
    }

    /// Takes the numbers of the head of a hunk: `@@ -3,4 +3,5 @@`. A line that says that a file has no last line break ends none.
    fn begin(&mut self, line: &str) {
        if line.starts_with('\\') {
            return;
        }
        let range = |text: &str, sign: char| {
            let text = text.strip_prefix(sign)?;
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((first.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let mut words = line.strip_prefix("@@ ").unwrap_or_default().split(' ');
        let old = words.next().and_then(|text| range(text, '-'));
        let new = words.next().and_then(|text| range(text, '+'));
        let (old, new) = old.zip(new).unwrap_or_default();
        self.next = [old.0, new.0];
        self.left = [old.1, new.1];
    }

    /// Puts what is gone and what has come beside each other.
    fn pair(&mut self) {
        let (mut old, mut new) = (self.old.drain(..), self.new.drain(..));
        loop {
            match (old.next(), new.next()) {
                (None, None) => break,
                (Some(mut old), Some(mut new)) => {
                    compare(&mut old, &mut new);
                    self.rows.push(Row::Sides([Some(old), Some(new)]));
                }
                (old, new) => self.rows.push(Row::Sides([old, new])),
            }
        }
    }
}

/// Marks the words that differ, unless all do or they are many.
fn compare(old: &mut Side, new: &mut Side) {
    if (old.sign, new.sign) != ('-', '+') {
        return;
    }
    let [before, after] = [words(old.text()), words(new.text())];
    if before.len() > WORDS_MAX || after.len() > WORDS_MAX {
        return;
    }
    let changes = capture_diff_slices(Algorithm::Myers, &before, &after);
    let is_same = |text: &&str| !text.trim().is_empty();
    let same = changes.iter().filter(|change| change.tag() == DiffTag::Equal).map(|change| change.old_range());
    if !same.flat_map(|range| before[range].iter()).any(is_same) {
        return;
    }
    let marked = |words: &[&str], range: fn(&similar::DiffOp) -> Range<usize>| {
        let texts = changes.iter().map(|change| (words[range(change)].concat(), change.tag() != DiffTag::Equal));
        texts.filter(|(text, _)| !text.is_empty()).collect::<Vec<_>>()
    };
    let (was, is) = (marked(&before, similar::DiffOp::old_range), marked(&after, similar::DiffOp::new_range));
    (old.words, new.words) = (was, is);
}

/// A line in words, and what stands between them.
fn words(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut words, mut begin, mut before) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        // Each sign is a word of its own; letters and blanks stand together.
        let kind = if is_word(c) { 0 } else { 1 + u8::from(!c.is_whitespace()) };
        if at > begin && (before != Some(kind) || kind == 2) {
            words.push(&line[begin..at]);
            begin = at;
        }
        before = Some(kind);
    }
    if begin < line.len() {
        words.push(&line[begin..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as `1-old|1+new`, with what differs in braces; `=` before what stands across.
    fn rows(split: &Split) -> Vec<String> {
        let side = |side: &Option<Side>| {
            side.as_ref().map_or_else(String::new, |side| {
                let number = side.number.map(|number| number.to_string()).unwrap_or_default();
                let word =
                    |(text, differs): &(String, bool)| if *differs { format!("{{{text}}}") } else { text.clone() };
                format!("{number}{}{}", side.sign, side.words.iter().map(word).collect::<String>())
            })
        };
        let row = |row: &Row| match row {
            Row::Across(text) => format!("={text}"),
            Row::Sides([old, new]) => format!("{}|{}", side(old), side(new)),
        };
        split.rows.iter().map(row).collect()
    }

    fn split(diff: &str) -> Vec<String> {
        rows(&Split::of(diff.split('\n')))
    }

    #[test]
    fn old_and_new_stand_beside_each_other_with_their_numbers_and_words() {
        let diff = "--- a/x\n+++ b/x\n@@ -3,4 +3,4 @@\n same\n-let a = one(2);\n-gone\n+let a = two(2);\n last\n+more\n@@ -90 +90,0 @@\n-x";
        assert_eq!(
            split(diff),
            [
                "=--- a/x",
                "=+++ b/x",
                "=@@ -3,4 +3,4 @@",
                "3 same|3 same",
                "4-let a = {one}(2);|4+let a = {two}(2);",
                "5-gone|",
                "6 last|5 last",
                "|6+more",
                "=@@ -90 +90,0 @@",
                "90-x|"
            ]
        );
    }

    #[test]
    fn what_is_no_line_of_a_hunk_stands_across() {
        let diff = "- a list\n@@ -1 +1 @@\n--- a\n\\ No newline at end of file\n+++ b\n- after\n@@ what\n+c\n@@ -1,99999999999999999999 +1 @@\n-d";
        assert_eq!(
            split(diff),
            [
                "=- a list",
                "=@@ -1 +1 @@",
                "1--- a|1+++ b",
                "\\ No newline at end of file|",
                "=- after",
                "=@@ what",
                "=+c",
                "=@@ -1,99999999999999999999 +1 @@",
                "=-d"
            ]
        );
        assert_eq!(split("plain\n\u{202e}x"), ["=plain", "=\\u{202e}x"]);
        let tricks = split("@@ -1 +1 @@\n-\u{1b}\n+\u{202e}");
        assert_eq!(
            tricks,
            ["=@@ -1 +1 @@", "1-\\u{{1b}}|1+\\u{{202e}}"],
            "the marks are written out, and what differs is in braces"
        );
    }

    #[test]
    fn a_line_in_pieces_has_one_number_and_lines_that_were_skipped_are_counted() {
        let mut splitter = Splitter::default();
        for (piece, goes_on) in [("@@ -1,3 +1,3 @@", false), ("-a", true), ("-b", false), (" c", false)] {
            splitter.push(piece, goes_on);
        }
        splitter.skip();
        for (piece, goes_on) in [("-d", false), ("+e", true), ("f", false)] {
            splitter.push(piece, goes_on);
        }
        assert_eq!(rows(&splitter.end()), ["3-d|2+e …", "|+f"]);
    }

    #[test]
    fn lines_of_many_words_are_not_compared() {
        let long = |first: &str| format!("{first} {}", "a ".repeat(WORDS_MAX));
        let rows = split(&format!("@@ -1 +1 @@\n-{}\n+{}", long("x"), long("y")));
        assert!(!rows[1].contains('{'), "{rows:?}");
    }
}
