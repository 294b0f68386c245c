//! Texts of a package on a page: line by line, in parts that a page can hold, with nothing in them that deceives.

use askama::Template;
use toolhost_contract::Redactor;

use super::super::marks::{mark, without_marks};
use super::super::split::{Split, Splitter};

/// Most lines and bytes of a text on one page.
const LINES_MAX: usize = 2000;
const PART_BYTES_MAX: usize = 256 * 1024;
/// What is said where a diff goes on.
const REST: &str = "[... the rest of the diff is left out here ...]";
/// The longest piece of a line, bytes.
const PIECE_BYTES_MAX: usize = 4096;

/// A part of a text.
#[derive(Template)]
#[template(path = "builder/text.html")]
pub(super) struct TextPart {
    lines: Vec<TextLine>,
    /// From 1.
    part: usize,
    parts: usize,
    /// The address of a part, without its number.
    address: String,
}

struct TextLine {
    /// None: the line goes on.
    number: Option<usize>,
    class: &'static str,
    text: String,
}

/// Which part of a text is asked for.
#[derive(Clone, Copy)]
pub(super) enum Wish {
    /// By its number, from 1.
    Part(usize),
    /// That with this line, from 1.
    Line(usize),
}

impl Wish {
    /// As an address says it.
    pub(super) fn of(part: Option<&str>, line: Option<&str>) -> Self {
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        number(line).map_or_else(|| Self::Part(number(part).unwrap_or(1)), Self::Line)
    }
}

impl TextPart {
    /// A part of a text, with what looks like a secret masked.
    pub(super) fn of(text: &str, wish: Wish, address: String) -> Self {
        let mut text = text.to_owned();
        Redactor::default().redact(&mut text);
        let (mut parts, mut bytes, mut wanted) = (vec![Vec::new()], 0, 1);
        for (number, line) in (1..).zip(text.trim_end_matches('\n').split('\n')) {
            let mut pieces = pieces(line.trim_end_matches('\r')).into_iter().peekable();
            let mut first = Some(number);
            while let Some(piece) = pieces.next() {
                let is_full = |part: &Vec<_>| part.len() == LINES_MAX || bytes + piece.len() > PART_BYTES_MAX;
                if parts.last().is_some_and(is_full) {
                    parts.push(Vec::new());
                    bytes = 0;
                }
                bytes += piece.len();
                let count = parts.len();
                if let Some(part) = parts.last_mut() {
                    part.push((first, piece, pieces.peek().is_some()));
                }
                if first.take().is_some() && matches!(wish, Wish::Line(line) if line == number) {
                    wanted = count;
                }
            }
        }
        if let Wish::Part(part) = wish {
            wanted = part.clamp(1, parts.len());
        }
        let line = |(number, piece, goes_on): &(Option<usize>, &str, bool)| TextLine {
            number: *number,
            class: "",
            text: without_marks(piece) + if *goes_on { " …" } else { "" },
        };
        let lines = parts[wanted - 1].iter().map(line).collect();
        Self { lines, part: wanted, parts: parts.len(), address }
    }

    /// The lines of a diff, which was made without secrets. One that is too long ends with a word about it.
    pub(super) fn of_diff(unified: &str) -> Self {
        let mut bytes = 0;
        let mut lines = Vec::new();
        for line in unified.trim_end_matches('\n').split('\n') {
            for (at, piece) in pieces(line).into_iter().enumerate() {
                bytes += piece.len();
                let class = if at == 0 { mark(piece) } else { lines.last().map_or("", |line: &TextLine| line.class) };
                lines.push(TextLine { number: None, class, text: without_marks(piece) });
            }
            if lines.len() >= LINES_MAX || bytes > PART_BYTES_MAX {
                lines.push(TextLine { number: None, class: "hunk", text: REST.to_owned() });
                break;
            }
        }
        Self { lines, part: 1, parts: 1, address: String::new() }
    }
}

/// The same diff side by side, as far as [`TextPart::of_diff`] shows it.
pub(super) fn split(unified: &str) -> Split {
    let (mut splitter, mut bytes, mut lines) = (Splitter::default(), 0, 0);
    for line in unified.trim_end_matches('\n').split('\n') {
        let mut pieces = pieces(line).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            bytes += piece.len();
            lines += 1;
            splitter.push(piece, pieces.peek().is_some());
        }
        if lines >= LINES_MAX || bytes > PART_BYTES_MAX {
            return splitter.end_with(REST);
        }
    }
    splitter.end()
}

/// A line in pieces that are short enough.
fn pieces(line: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), line);
    while rest.len() > PIECE_BYTES_MAX {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES_MAX));
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, PIECE_BYTES_MAX, TextPart, Wish};

    #[test]
    fn a_line_is_in_the_part_that_is_asked_for_by_its_number() {
        let text: String = (1..=2 * LINES_MAX).map(|number| format!("line {number}\n")).collect();
        let part = TextPart::of(&text, Wish::Line(LINES_MAX + 1), String::new());
        assert_eq!((part.part, part.parts), (2, 2));
        assert_eq!(part.lines[0].number, Some(LINES_MAX + 1));
        assert_eq!(TextPart::of(&text, Wish::Part(9), String::new()).part, 2);
        assert_eq!(TextPart::of(&text, Wish::Line(usize::MAX), String::new()).part, 1);
    }

    #[test]
    fn a_long_line_is_cut_and_has_one_number() {
        let part = TextPart::of(&"ä".repeat(PIECE_BYTES_MAX), Wish::Part(1), String::new());
        assert_eq!(part.lines.iter().map(|line| line.number).collect::<Vec<_>>(), [Some(1), None]);
        assert!(part.lines[0].text.ends_with(" …"));
    }
}
