//! What an ask shows, in parts that a page can hold.

use toolhost_host::Shown;

use super::marks::{mark, without_marks};
use super::split::{Split, Splitter};

/// Most lines of an effect on one page.
const LINES_MAX: usize = 2000;
/// Most bytes of an effect on one page.
const PART_BYTES_MAX: usize = 256 * 1024;
/// The longest piece of a line, bytes.
const PIECE_BYTES_MAX: usize = 4096;

/// What is shown, in the parts of a page.
pub(super) fn parts_of(shown: &Shown) -> Parts<'_> {
    Parts::of(&shown.detail, &shown.unmasked)
}

/// A line of an effect, with how it is marked.
pub(super) struct Line {
    pub(super) class: &'static str,
    pub(super) text: String,
    /// Which line of the whole text it is, from 1; of a long line's pieces only the first has it.
    pub(super) number: Option<usize>,
}

/// A text in parts that a page can hold, and what is masked in it behind it.
pub(super) struct Parts<'t> {
    parts: Vec<Vec<Piece<'t>>>,
}

/// A piece of a line, as it is kept.
struct Piece<'t> {
    text: &'t str,
    /// Which line it begins, from 1.
    number: Option<usize>,
    goes_on: bool,
    /// Whether it is of the text without masks.
    is_unmasked: bool,
}

impl<'t> Parts<'t> {
    pub(super) fn of(detail: &'t str, unmasked: &'t str) -> Self {
        let (mut parts, mut bytes) = (vec![Vec::new()], 0);
        for (text, is_unmasked) in [(detail, false), (unmasked, true)] {
            if text.is_empty() {
                continue;
            }
            for (index, mut line) in text.trim_end_matches('\n').split('\n').enumerate() {
                let mut number = Some(index + 1).filter(|_| !is_unmasked);
                loop {
                    let cut = line.floor_char_boundary(PIECE_BYTES_MAX);
                    let (piece, rest) = line.split_at(cut);
                    let is_full = |part: &Vec<_>| part.len() == LINES_MAX || bytes + piece.len() > PART_BYTES_MAX;
                    if parts.last().is_some_and(is_full) {
                        parts.push(Vec::new());
                        bytes = 0;
                    }
                    bytes += piece.len();
                    if let Some(part) = parts.last_mut() {
                        part.push(Piece { text: piece, number: number.take(), goes_on: !rest.is_empty(), is_unmasked });
                    }
                    line = rest;
                    if line.is_empty() {
                        break;
                    }
                }
            }
        }
        Self { parts }
    }

    pub(super) fn count(&self) -> usize {
        self.parts.len()
    }

    /// Whether a hunk of a diff begins in it.
    pub(super) fn has_diff(&self) -> bool {
        self.parts.iter().flatten().any(|piece| !piece.is_unmasked && piece.text.starts_with("@@ "))
    }

    /// A part, from 1, as a diff side by side. A hunk may have begun in a part before.
    pub(super) fn split(&self, part: usize) -> Split {
        let mut splitter = Splitter::default();
        for pieces in self.parts.iter().take(part) {
            splitter.skip();
            for piece in pieces.iter().filter(|piece| !piece.is_unmasked) {
                splitter.push(piece.text, piece.goes_on);
            }
        }
        splitter.end()
    }

    /// The lines of a part, from 1, and those of the text without masks. Lines of an effect are marked as in a diff; a document may
    /// have a list.
    pub(super) fn lines(&self, part: usize, is_effect: bool) -> (Vec<Line>, Vec<Line>) {
        let pieces = self.parts.get(part.saturating_sub(1)).map_or(&[][..], Vec::as_slice);
        let (unmasked, masked): (Vec<_>, Vec<_>) = pieces.iter().partition(|piece| piece.is_unmasked);
        let line = |piece: &Piece<'_>| Line {
            class: if is_effect && !piece.is_unmasked { mark(piece.text) } else { "" },
            text: without_marks(piece.text) + if piece.goes_on { " …" } else { "" },
            number: piece.number,
        };
        (masked.into_iter().map(line).collect(), unmasked.into_iter().map(line).collect())
    }
}
