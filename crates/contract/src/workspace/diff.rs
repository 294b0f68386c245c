//! What two texts have in common, line by line.
//!
//! Lines end at a line feed alone: a lone carriage return is shown within its line, where no text can make up a line of the diff.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Lines that differ, of both texts together, up to which a diff looks for what they have in common. Beyond it, all of the one is
/// replaced by all of the other: comparing them is quadratic.
const LINES_MAX: usize = 10_000;
/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// A text as its lines, each with its end.
pub fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Lines that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// Where two texts differ, in order; between two hunks there is at least one line that both have.
pub fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    if start == old_end && start == new_end {
        return Vec::new();
    }
    if start == old_end || start == new_end || old_end + new_end - 2 * start > LINES_MAX {
        return vec![Hunk { old: start..old_end, new: start..new_end }];
    }
    // Numbers are compared faster than lines.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut all: Vec<u32> = Vec::new();
    for line in old[start..old_end].iter().chain(&new[start..new_end]) {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        all.push(*numbers.entry(line).or_insert(next));
    }
    let (a, b) = all.split_at(old_end - start);
    let mut found: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, a, b) {
        if op.tag() == DiffTag::Equal {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let (old, new) = (old.start + start..old.end + start, new.start + start..new.end + start);
        match found.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => found.push(Hunk { old, new }),
        }
    }
    found
}

/// A unified diff without a header, and how many lines it adds and removes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unified {
    pub text: String,
    pub added: usize,
    pub removed: usize,
}

/// The unified diff of two texts, with the lines that name the file. Empty where they are the same.
pub fn diff(path: &str, before: &str, after: &str) -> String {
    let text = unified(before, after).text;
    if text.is_empty() { text } else { format!("--- a/{path}\n+++ b/{path}\n{text}") }
}

/// The unified diff of two texts.
pub fn unified(old: &str, new: &str) -> Unified {
    let (old, new) = (split(old), split(new));
    let hunks = hunks(&old, &new);
    let mut text = String::new();
    // Changes that share their context stand together.
    for hunks in hunks.chunk_by(|one, next| next.old.start - one.old.end <= 2 * CONTEXT_LINES) {
        group(&mut text, &old, &new, hunks);
    }
    let lines = |range: fn(&Hunk) -> &Range<usize>| hunks.iter().map(|hunk| range(hunk).len()).sum();
    Unified { text, added: lines(|hunk| &hunk.new), removed: lines(|hunk| &hunk.old) }
}

/// Changes that share their context.
fn group(out: &mut String, old: &[&str], new: &[&str], hunks: &[Hunk]) {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return };
    let before = first.old.start.min(CONTEXT_LINES);
    let after = (old.len() - last.old.end).min(CONTEXT_LINES);
    let shown = |start: usize, end: usize| {
        let count = end - start;
        // An empty range is named by the line before it.
        let at = if count == 0 { start } else { start + 1 };
        if count == 1 { at.to_string() } else { format!("{at},{count}") }
    };
    let old_at = shown(first.old.start - before, last.old.end + after);
    let new_at = shown(first.new.start - before, last.new.end + after);
    out.push_str(&format!("@@ -{old_at} +{new_at} @@\n"));
    let mut at = first.old.start - before;
    for hunk in hunks {
        lines(out, ' ', &old[at..hunk.old.start]);
        lines(out, '-', &old[hunk.old.clone()]);
        lines(out, '+', &new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    lines(out, ' ', &old[at..at + after]);
}

fn lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, diff, unified};

    #[test]
    fn no_carriage_return_ends_a_line_of_a_diff() {
        let check = |before: &str, after: &str, expected: &str| {
            assert_eq!(diff("a", before, after), expected);
        };
        check("a\n", "a\n", "");
        check("1\n2\n3\n", "1\nb\r+c\n3\n", "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+b\r+c\n 3\n");
        check(
            "a\r",
            "b",
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\r\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
        );
        check("", "a\r\n", "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+a\r\n");
    }

    #[test]
    fn a_diff_counts_what_it_shows() {
        let check = |old: &str, new: &str, expected: (usize, usize, &str)| {
            let found = unified(old, new);
            assert_eq!((found.added, found.removed, found.text.as_str()), expected);
        };
        check("", "", (0, 0, ""));
        check("a\nb\n", "x\na\nb\n", (1, 0, "@@ -1,2 +1,3 @@\n+x\n a\n b\n"));
        check("", "a", (1, 0, "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"));
        check("a\n", "b\n", (1, 1, "@@ -1 +1 @@\n-a\n+b\n"));
        check("a\nb\n", "", (0, 2, "@@ -1,2 +0,0 @@\n-a\n-b\n"));
    }

    #[test]
    fn texts_that_differ_in_too_much_are_replaced_whole() {
        let text = |letter: char| (0..LINES_MAX).map(|n| format!("{letter}{n}\nsame\n")).collect::<String>();
        let found = unified(&text('a'), &text('b'));
        assert_eq!((found.added, found.removed), (2 * LINES_MAX - 1, 2 * LINES_MAX - 1));
    }
}
