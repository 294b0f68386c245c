//! Marks in texts: those of a diff, which a page shows, and those that deceive, which it writes out.

use toolhost_contract::{QUOTE_MARK, quoted};

/// How a line of a diff is set.
pub(super) fn mark(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "file",
        [b'+', ..] => "new",
        [b'-', ..] => "old",
        [b'@', b'@', ..] => "hunk",
        _ => "",
    }
}

/// A text in which nothing deceives.
pub(super) fn without_marks(text: &str) -> String {
    let marked = quoted(text);
    let plain = marked.split('\n').map(|line| line.strip_prefix(QUOTE_MARK).unwrap_or(line));
    plain.collect::<Vec<_>>().join("\n")
}
