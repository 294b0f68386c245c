//! Marks in texts: those of a diff, which a page shows, and those that deceive, which it writes out.

use toolhost_contract::{QUOTE_MARK, quoted};

/// How much of a value is shown with its marks written out, characters.
const WRITTEN_OUT_CHARS_MAX: usize = 2000;

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

/// A text with its deceiving marks written out, where it has such.
pub(super) fn written_out(text: &str) -> Option<String> {
    let plain = without_marks(text);
    // A line end deceives nobody.
    (plain.trim_end_matches('\n') != text.trim_end_matches('\n'))
        .then(|| plain.chars().take(WRITTEN_OUT_CHARS_MAX).collect())
}
