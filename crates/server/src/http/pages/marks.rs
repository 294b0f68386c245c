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

/// What somebody has typed over a text, with the line ends that the text has: browsers send ends of their own.
pub(super) fn with_ends_of(before: &str, typed: &str) -> String {
    let plain = typed.replace("\r\n", "\n");
    let ends = before.matches('\n').count();
    if plain == before.replace("\r\n", "\n") {
        before.to_owned()
    } else if ends > 0 && before.matches("\r\n").count() == ends {
        plain.replace('\n', "\r\n")
    } else {
        plain
    }
}

/// A text with its deceiving marks written out, where it has such.
pub(super) fn written_out(text: &str) -> Option<String> {
    let plain = without_marks(text);
    // A line end deceives nobody.
    (plain.trim_end_matches('\n') != text.trim_end_matches('\n'))
        .then(|| plain.chars().take(WRITTEN_OUT_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_typed_over_a_text_has_its_line_ends() {
        for (before, typed, is) in [
            ("a\r\nb\n", "a\r\nb\r\n", "a\r\nb\n"),
            ("a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n"),
            ("a\nb\n", "a\r\nc\r\n", "a\nc\n"),
            ("a\r\nb\n", "a\r\nc\r\n", "a\nc\n"),
            ("a", "b\r\nc", "b\nc"),
        ] {
            assert_eq!(super::with_ends_of(before, typed), is, "{before:?} {typed:?}");
        }
    }
}
