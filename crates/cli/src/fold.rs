//! Lines that fit the terminal.
//!
//! A terminal breaks a long line at its right edge and puts the rest at the left of the next row, where the host's own lines
//! begin. An agent that fills its text with blanks could so imitate a line of the host. Therefore the host breaks long
//! lines itself and marks each continuation.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use toolhost_contract::{QUOTE_CONTINUED, QUOTE_MARK};

/// What stands before the rest of a line that was broken to fit; quoted lines have [`QUOTE_CONTINUED`].
pub(crate) const CONTINUED: &str = "  … ";
/// Columns of a terminal that does not say how many it has.
const COLUMNS_DEFAULT: usize = 78;
/// Nothing can be read in fewer.
const COLUMNS_MIN: usize = 20;
const TAB_COLUMNS: usize = 8;
const ESCAPE: char = '\u{1b}';

/// The text such that no line is broken by the terminal; as it is where none reads it.
pub(crate) fn folded(text: String, stream: &(impl IsTerminal + AsFd)) -> String {
    match Fold::of(stream) {
        Some(mut fold) => fold.push(&text),
        None => text,
    }
}

/// As much of a text as fits into one line.
pub(crate) fn fitting(text: &str, stream: &(impl IsTerminal + AsFd)) -> String {
    let Some(mut fold) = Fold::of(stream) else { return text.to_owned() };
    fold.push(text).lines().next().unwrap_or_default().to_owned()
}

/// Columns of a terminal; `None` where the stream is none.
pub(crate) fn columns_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let columns = || match terminal_size::terminal_size_of(stream) {
        Some((columns, _)) if columns.0 > 0 => usize::from(columns.0).max(COLUMNS_MIN),
        _ => COLUMNS_DEFAULT,
    };
    stream.is_terminal().then(columns)
}

/// Columns that a text takes which has no escapes of the terminal's.
pub(crate) fn width_of(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// The beginning of a text that takes no more than so many columns, with `…` at its end where it is cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width_of(text) <= columns {
        return text.to_owned();
    }
    let (mut shown, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += width(c);
        if taken > columns {
            break;
        }
        shown.push(c);
    }
    shown + "…"
}

/// Where a text that comes in pieces stands.
#[derive(Debug)]
pub(crate) struct Fold {
    columns: usize,
    /// Taken of the line.
    column: usize,
    /// What the line began with, as far as it tells whether it is quoted.
    start: String,
    /// Inside an escape of the terminal's, which takes no room.
    escaped: bool,
}

impl Fold {
    /// `None` where the stream is no terminal.
    pub(crate) fn of(stream: &(impl IsTerminal + AsFd)) -> Option<Self> {
        columns_of(stream).map(Self::to)
    }

    fn to(columns: usize) -> Self {
        Self { columns, column: 0, start: String::new(), escaped: false }
    }

    /// The next piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            if c == '\n' {
                (self.column, self.escaped) = (0, false);
                self.start.clear();
            } else if self.escaped || c == ESCAPE {
                self.escaped = !(self.escaped && c.is_ascii_alphabetic());
            } else {
                let taken = width(c);
                if self.column + taken > self.columns {
                    let mark = if self.start.starts_with(QUOTE_MARK) { QUOTE_CONTINUED } else { CONTINUED };
                    shown.push('\n');
                    shown.push_str(mark);
                    self.column = mark.chars().count();
                }
                self.column += taken;
                if self.start.len() < QUOTE_MARK.len() {
                    self.start.push(c);
                }
            }
            shown.push(c);
        }
        shown
    }
}

/// Columns of a character, or more: a tab takes up to eight, and whatever may be wide two.
fn width(c: char) -> usize {
    match c {
        '\t' => TAB_COLUMNS,
        '…' => 1,
        '\u{1100}'.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str, columns: usize) -> String {
        Fold::to(columns).push(text)
    }

    #[test]
    fn the_rest_of_a_line_has_a_mark() {
        assert_eq!(fold("0123456789", 10), "0123456789");
        assert_eq!(fold("0123456789ab", 10), "0123456789\n  … ab");
        assert_eq!(fold("0123456789abcdefgh", 10), "0123456789\n  … abcdef\n  … gh");
        assert_eq!(fold("| 0123456789", 10), "| 01234567\n|… 89");
        assert_eq!(fold("|0123456789", 10), "|012345678\n  … 9", "it only begins like a quoted line");
        assert_eq!(fold("a\n0123456789", 10), "a\n0123456789", "each line has its own columns");
        assert_eq!(fold("日本語日本語", 10), "日本語日本\n  … 語");
        assert_eq!(fold("0123\tab", 10), "0123\n  … \t\n  … ab");
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_fits() {
        for (text, columns, expected) in [
            ("0123456789", 10, "0123456789"),
            ("0123456789", 9, "01234567…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
        ] {
            assert_eq!(cut(text, columns), expected);
        }
    }

    #[test]
    fn colours_take_no_room() {
        assert_eq!(fold("\u{1b}[1;31m01234\u{1b}[0m56789", 10), "\u{1b}[1;31m01234\u{1b}[0m56789");
        assert_eq!(fold("\u{1b}[2m| \u{1b}[0m012345678", 10), "\u{1b}[2m| \u{1b}[0m01234567\n|… 8");
    }

    #[test]
    fn pieces_of_a_line_are_one_line() {
        let text = "| 0123456789abcdef\nagain 0123456789";
        let whole = fold(text, 10);
        let mut fold = Fold::to(10);
        let pieces: String = text.chars().map(|c| fold.push(&c.to_string())).collect();
        assert_eq!(pieces, whole);
    }
}
