//! A text without what is not seen in it, so that a secret with such a character inside is still found.

use std::ops::Range;

use crate::visible::is_deceptive;

/// Of a text the characters that are seen, and where each of them stands.
pub(super) struct Bare {
    pub(super) text: String,
    /// Where each part begins, in `text` and in the text it was taken from.
    parts: Vec<(usize, usize)>,
}

impl Bare {
    /// `None` for a text in which everything is seen, as in nearly all.
    pub(super) fn of(text: &str) -> Option<Self> {
        // Without a branch, so that the compiler looks at many bytes at once.
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if text.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
            return None;
        }
        let (mut bare, mut parts, mut from) = (String::new(), Vec::new(), 0);
        while let Some(mark) = next_unseen(text, from) {
            parts.push((bare.len(), from));
            bare.push_str(&text[from..mark.start]);
            from = mark.end;
        }
        if parts.is_empty() {
            return None;
        }
        parts.push((bare.len(), from));
        bare.push_str(&text[from..]);
        Some(Self { text: bare, parts })
    }

    /// Where a range of the bare text stands in the text itself, of which `whole` is all. A carriage return may begin a line: what
    /// stands on both sides of one is two ranges, so that no line is hidden by the one before it.
    pub(super) fn places(&self, whole: &str, range: Range<usize>) -> Vec<Range<usize>> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else { return Vec::new() };
        let (start, end) = (self.place(range.start), self.place(last) + 1);
        let mut places = Vec::new();
        let mut from = start;
        for line in whole[start..end].split('\r') {
            if !line.is_empty() {
                places.push(from..from + line.len());
            }
            from += line.len() + 1;
        }
        places
    }

    fn place(&self, at: usize) -> usize {
        // Parts may be empty: the last that begins here is the one with this byte.
        let part = self.parts.partition_point(|(bare, _)| *bare <= at) - 1;
        let (bare, written) = self.parts[part];
        written + (at - bare)
    }
}

/// The next character that is not seen, with all of the command to a terminal that it begins (ECMA-48, section 5.4: colours and
/// the like).
fn next_unseen(text: &str, from: usize) -> Option<Range<usize>> {
    let is_unseen = |c: char| (is_deceptive(c) || c == char::REPLACEMENT_CHARACTER) && !matches!(c, '\n' | '\t');
    let rest = text.get(from..)?;
    let (at, c) =
        rest.char_indices().find(|(at, c)| is_unseen(*c) && !(*c == '\r' && rest[at + 1..].starts_with('\n')))?;
    let (start, end) = (from + at, from + at + c.len_utf8());
    let command = text[end..].strip_prefix('[').filter(|_| c == '\x1b').map(|command| {
        let is_parameter = |c: char| matches!(c, ' '..='?');
        let parameters = command.find(|c| !is_parameter(c)).unwrap_or(command.len());
        let is_ended = command[parameters..].starts_with(|c| matches!(c, '@'..='~'));
        if is_ended { 1 + parameters + 1 } else { 0 }
    });
    Some(start..end + command.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_unseen_characters_is_not_copied() {
        for text in ["", "plain\n\ttext", "line\r\nline\r\n", "ümläut 語 é"] {
            assert!(Bare::of(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn each_byte_is_found_where_it_was_written() {
        let text = "\x1b[1;31ma\x1b[0mb\u{200b}\u{200b}é\0語\u{fffd}c\rd\x1b[";
        let bare = Bare::of(text).expect("it has unseen characters");
        assert_eq!(bare.text, "abé語cd[");
        for (at, c) in bare.text.char_indices() {
            let places = bare.places(text, at..at + c.len_utf8());
            assert_eq!(places.iter().map(|place| &text[place.clone()]).collect::<Vec<_>>(), [c.to_string()]);
        }
        assert!(bare.places(text, 0..0).is_empty());
        let end = bare.text.find('[').expect("it is there");
        let all: Vec<&str> = bare.places(text, 0..end).into_iter().map(|place| &text[place]).collect();
        assert_eq!(all, ["a\x1b[0mb\u{200b}\u{200b}é\0語\u{fffd}c", "d"]);
    }
}
