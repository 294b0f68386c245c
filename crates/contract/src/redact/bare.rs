//! A text without what is not seen in it, so that a secret with such a character inside is still found.

use std::ops::Range;

use crate::visible::is_deceptive;

/// How many non-ASCII characters between two ASCII letters or digits are skipped, at most. A byte that is no valid text counts as one.
const STRANGE_MAX: usize = 3;

/// What is left out besides what is not seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Colours and the like; of other commands to a terminal what begins them: the rest may be of a secret.
    Plain,
    /// Of each command to a terminal what begins it, also of colours: its numbers and its letter may be of a secret.
    Open,
    /// All commands to a terminal, with their texts, such as titles and addresses of links.
    Strings,
    /// Those, and each character that a backspace takes back.
    Overstruck,
}

/// Of a text the characters that are seen, and where each of them stands.
pub(super) struct Bare {
    pub(super) text: String,
    /// Where each part begins, in `text` and in the text it was taken from.
    parts: Vec<(usize, usize)>,
}

impl Bare {
    /// The text in each way to read it. None of a text in which everything is seen, as in nearly all.
    pub(super) fn all_of(text: &str) -> impl Iterator<Item = Self> {
        // Without a branch, so that the compiler looks at many bytes at once.
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        let is_clean = text.bytes().fold(true, |plain, byte| plain & is_plain(byte));
        let has = |marks: &[char]| text.contains(marks);
        let ways = [
            (Way::Plain, !is_clean),
            (Way::Open, !is_clean && (text.contains("\x1b[") || has(&['\u{9b}']))),
            (Way::Strings, !is_clean && has(&['\x1b', '\u{90}', '\u{98}', '\u{9d}', '\u{9e}', '\u{9f}'])),
            (Way::Overstruck, !is_clean && has(&['\x08'])),
        ];
        ways.into_iter().filter(|(_, is_wanted)| *is_wanted).filter_map(|(way, _)| Self::of(text, way))
    }

    fn of(text: &str, way: Way) -> Option<Self> {
        let (mut bare, mut from) = (Self { text: String::new(), parts: Vec::new() }, 0);
        while let Some(mark) = next_unseen(text, from, way) {
            bare.push(text, from..mark.start);
            if way == Way::Overstruck && text[mark.clone()] == *"\x08" {
                bare.take_back();
            }
            from = mark.end;
        }
        if bare.parts.is_empty() {
            return None;
        }
        bare.push(text, from..text.len());
        Some(bare)
    }

    fn push(&mut self, whole: &str, part: Range<usize>) {
        self.parts.push((self.text.len(), part.start));
        self.text.push_str(&whole[part]);
    }

    /// Takes the last character back, if it is of the same line.
    fn take_back(&mut self) {
        if self.text.ends_with('\n') {
            return;
        }
        self.text.pop();
        let end = self.text.len();
        while self.parts.len() > 1 && self.parts.last().is_some_and(|(begin, _)| *begin > end) {
            self.parts.pop();
        }
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

/// The next that is not seen, or is none of a secret where it stands.
fn next_unseen(text: &str, from: usize, way: Way) -> Option<Range<usize>> {
    let mut before = text[..from].chars().next_back();
    for (at, c) in text.get(from..)?.char_indices() {
        let at = from + at;
        let rest = &text[at + c.len_utf8()..];
        if c.is_ascii() && !c.is_ascii_control() {
            before = Some(c);
            continue;
        }
        let is_end_of_line = matches!(c, '\n' | '\t') || (c == '\r' && rest.starts_with('\n'));
        if !is_end_of_line && (is_deceptive(c) || c == char::REPLACEMENT_CHARACTER) {
            return Some(at..at + c.len_utf8() + command(c, rest, way));
        }
        if !c.is_ascii() && before.is_some_and(is_of_word) {
            let run: usize =
                text[at..].chars().take_while(|c| !c.is_ascii()).take(STRANGE_MAX + 1).map(char::len_utf8).sum();
            let count = text[at..at + run].chars().count();
            if count <= STRANGE_MAX && text[at + run..].starts_with(is_of_word) {
                return Some(at..at + run);
            }
        }
        before = Some(c);
    }
    None
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Bytes of the rest of a command to a terminal that a control character begins (ECMA-48, sections 5.3 to 5.6).
fn command(c: char, rest: &str, way: Way) -> usize {
    // A character of 8 bits says what two of 7 bits say.
    let (kind, begun) = match c {
        '\x1b' => match rest.chars().next() {
            Some(kind) if kind.is_ascii() => (kind, 1),
            _ => return 0,
        },
        '\u{80}'..='\u{9f}' => (char::from(u8::try_from(u32::from(c) - 0x40).unwrap_or_default()), 0),
        _ => return 0,
    };
    let rest = &rest[begun..];
    let length = |is_inner: fn(char) -> bool, is_final: fn(char) -> bool| {
        let inner = rest.find(|c| !is_inner(c)).unwrap_or(rest.len());
        rest[inner..].starts_with(is_final).then_some(begun + inner + 1)
    };
    match kind {
        '[' if way == Way::Open => begun,
        '[' => length(|c| matches!(c, ' '..='?'), |c| matches!(c, '@'..='~')).unwrap_or_default(),
        // What follows may be a letter of a secret.
        _ if matches!(way, Way::Plain | Way::Open) => 0,
        ']' | 'P' | 'X' | '^' | '_' => {
            // Any other control character breaks it off. So each is looked at once, however many begin one.
            let Some(ends) = rest.find(char::is_control) else { return begun };
            match &rest.as_bytes()[ends..] {
                [0x07, ..] => begun + ends + 1,
                [0x1b, b'\\', ..] | [0xc2, 0x9c, ..] => begun + ends + 2,
                _ => begun,
            }
        }
        ' '..='/' => length(|c| matches!(c, ' '..='/'), |c| matches!(c, '0'..='~')).unwrap_or_default(),
        '0'..='~' => begun,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_unseen_characters_is_not_copied() {
        for text in ["", "plain\n\ttext", "line\r\nline\r\n", "ümlä 語", "a — b", "日本語 words"] {
            assert!(Bare::all_of(text).next().is_none(), "{text:?}");
        }
    }

    #[test]
    fn each_byte_is_found_where_it_was_written() {
        let text = "\x1b[1;31ma\x1b[0mb\u{200b}\u{200b}é \0語\u{fffd}c\rd\x1b[";
        let bare = Bare::all_of(text).next().expect("it has unseen characters");
        assert_eq!(bare.text, "abé 語cd[");
        for (at, c) in bare.text.char_indices() {
            let places = bare.places(text, at..at + c.len_utf8());
            assert_eq!(places.iter().map(|place| &text[place.clone()]).collect::<Vec<_>>(), [c.to_string()]);
        }
        assert!(bare.places(text, 0..0).is_empty());
        let end = bare.text.find('[').expect("it is there");
        let all: Vec<&str> = bare.places(text, 0..end).into_iter().map(|place| &text[place]).collect();
        assert_eq!(all, ["a\x1b[0mb\u{200b}\u{200b}é \0語\u{fffd}c", "d"]);
    }

    #[test]
    fn commands_to_a_terminal_are_left_out_whole() {
        for command in [
            "\x1b(B",
            "\x1bc",
            "\x1b7",
            "\x1b[0;1m",
            "\u{9b}31m",
            "\x1b]8;;http://a\x07",
            "\x1b]0;t\x1b\\",
            "\x1bPx\x1b\\",
            "\x1b_x\x1b\\",
            "\x1b^x\u{9c}",
            "\u{9d}0;t\u{9c}",
            "\u{85}",
            "x\x08",
            "xy\x08\x08",
            "\x1b%G",
            "ÿ",
            "\u{c3}\u{28}",
            "\x1b[",
            "\u{9b}",
        ] {
            let text = format!("ab{command}cd");
            let read: Vec<String> = Bare::all_of(&text).map(|bare| bare.text).collect();
            let is_kept = command.ends_with('(');
            assert_eq!(read.iter().any(|read| read == "abcd"), !is_kept, "{command:?}: {read:?}");
        }
        // A command without an end hides nothing that follows it.
        let read: Vec<String> = Bare::all_of("a\x1b]0;b\x1b[").map(|bare| bare.text).collect();
        assert_eq!(read, ["a]0;b[", "a]0;b", "a0;b["]);
    }

    #[test]
    fn a_character_that_was_taken_back_is_of_the_range_around_it() {
        let text = "\x08abX\x08c\nY\x08\x08\x08d";
        let bare = Bare::of(text, Way::Overstruck).expect("it has marks");
        assert_eq!(bare.text, "abc\nd");
        let places = |range| bare.places(text, range).into_iter().map(|place| &text[place]).collect::<Vec<_>>();
        assert_eq!((places(0..3), places(4..5)), (vec!["abX\x08c"], vec!["d"]));
    }
}
