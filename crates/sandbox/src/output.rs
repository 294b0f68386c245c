//! Output that is kept head and tail while it streams, so that ten gigabytes cost kilobytes.

use std::collections::VecDeque;
use std::path::Path;

use toolhost_contract::workspace::Captured;
use toolhost_contract::{Listener, is_of_secret};

/// Bytes of each end that are given up so that no word is cut; at most a quarter of the end.
const WORD_BYTES_MAX: usize = 4096;

/// Collects a stream within `2 * end_bytes` of memory.
pub(crate) struct Capture {
    end_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub(crate) fn new(end_bytes: usize) -> Self {
        Self { end_bytes, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let room = self.end_bytes - self.head.len();
        let (first, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(first);
        if rest.len() >= self.end_bytes {
            self.tail.clear();
            self.tail.extend(&rest[rest.len() - self.end_bytes..]);
        } else {
            let excess = (self.tail.len() + rest.len()).saturating_sub(self.end_bytes);
            self.tail.drain(..excess);
            self.tail.extend(rest);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn finish(self) -> Captured {
        let left_out = self.total - self.head.len() as u64 - self.tail.len() as u64;
        let tail: Vec<u8> = self.tail.into();
        if left_out == 0 {
            let mut bytes = self.head;
            bytes.extend(tail);
            return Captured { text: into_text(bytes), bytes: self.total, truncated: false };
        }
        // Where no word is cut, at a blank if there is one: half of a secret is not known to be one. Where there is neither near, what
        // could be half of one goes, too.
        let (mut head, mut tail) = (self.head, tail);
        let most = WORD_BYTES_MAX.min(self.end_bytes / 4);
        let (back, on) = (
            end_of_word(head.iter().rev().take(most)).unwrap_or(most),
            end_of_word(tail.iter().take(most)).unwrap_or(most),
        );
        head.truncate(head.len() - back);
        tail.drain(..on);
        let left_out = self.total - (head.len() + tail.len()) as u64;
        let text =
            format!("{}\n[... {left_out} of {} bytes left out ...]\n{}", into_text(head), self.total, into_text(tail));
        Captured { text, bytes: self.total, truncated: true }
    }
}

/// The first place where no word is cut.
fn end_of_word<'b>(bytes: impl Iterator<Item = &'b u8> + Clone) -> Option<usize> {
    bytes.clone().position(u8::is_ascii_whitespace).or_else(|| bytes.clone().position(|byte| !is_of_secret(*byte)))
}

/// Longest line that is held until it is whole.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Hands on what a stream prints in whole lines. Two streams that come to one listener would otherwise cut each other's lines, and
/// half of a secret is not known to be one.
pub(crate) struct Lines {
    listener: Listener,
    held: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { listener, held: Vec::new() }
    }

    /// Whether it holds the beginning of a line.
    pub(crate) fn are_unended(&self) -> bool {
        !self.held.is_empty()
    }

    /// Only the line that has not ended is copied.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        // A carriage return ends a line, too: a progress bar writes over itself.
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let mut rest = chunk;
        if self.are_unended() {
            let first = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
            self.held.extend_from_slice(&rest[..first]);
            rest = &rest[first..];
            if rest.is_empty()
                && !self.held.ends_with(b"\n")
                && !self.held.ends_with(b"\r")
                && self.held.len() <= LINE_BYTES_MAX
            {
                return;
            }
            self.tell_all();
        }
        let whole = rest.iter().rposition(ends).map_or(0, |at| at + 1);
        let whole = if rest.len() - whole > LINE_BYTES_MAX { rest.len() } else { whole };
        if whole > 0 {
            (self.listener)(&rest[..whole]);
        }
        self.held.extend_from_slice(&rest[whole..]);
    }

    /// Hands on also a line that has not ended.
    pub(crate) fn tell_all(&mut self) {
        if self.are_unended() {
            (self.listener)(&std::mem::take(&mut self.held));
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.tell_all();
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Replaces a path where it stands as a whole: `/a/b` in `/a/b/c` but not in `/a/bc` or `/x/a/b`.
pub(crate) fn replace_path(text: &mut String, path: &Path, by: &str) {
    let Some(path) = path.to_str().filter(|path| path.len() > 1 && text.contains(path)) else { return };
    let part_of_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let mut replaced = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, _) in text.match_indices(path) {
        let before = text[..at].chars().next_back();
        let after = text[at + path.len()..].chars().next();
        let in_path = before == Some('/') && !text[..at].ends_with("://");
        if in_path || before.is_some_and(part_of_name) || after.is_some_and(part_of_name) || at < rest {
            continue;
        }
        replaced.push_str(&text[rest..at]);
        replaced.push_str(by);
        rest = at + path.len();
    }
    replaced.push_str(&text[rest..]);
    *text = replaced;
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_ends_whatever_the_chunks() {
        for chunk in [1, 3, 7, 100] {
            let mut capture = Capture::new(3);
            let all: Vec<u8> = (b'a'..=b'z').collect();
            all.chunks(chunk).for_each(|c| capture.push(c));
            let captured = capture.finish();
            assert_eq!(captured.text, "abc\n[... 20 of 26 bytes left out ...]\nxyz", "chunks of {chunk}");
            assert!(captured.truncated);
        }
    }

    #[test]
    fn no_word_is_cut_where_a_blank_is_near() {
        let mut capture = Capture::new(20);
        capture.push(b"one two three four five six seven eight nine ten eleven twelve");
        let text = capture.finish().text;
        assert_eq!(text, "one two three four \n[... 25 of 62 bytes left out ...]\n ten eleven twelve");
        // Where no blank is near, at what stands in no token.
        let mut capture = Capture::new(40);
        capture.push(b"{\"a\":\"one_two-three\",\"b\":\"four_five-six\",\"c\":\"seven_eight\",\"d\":\"nine_ten-eleven\",\"e\":1}");
        let text = capture.finish().text;
        assert_eq!(
            text,
            "{\"a\":\"one_two-three\",\"b\":\"four_five-six\"\n[... 17 of 87 bytes left out ...]\n\",\"d\":\"nine_ten-eleven\",\"e\":1}"
        );
        let mut capture = Capture::new(8);
        capture.push(b"abcdefghijklmnopqrstuvwxyz");
        assert_eq!(capture.finish().text, "abcdef\n[... 14 of 26 bytes left out ...]\nuvwxyz");
    }

    #[test]
    fn lines_are_handed_on_whole_and_what_is_left_at_the_end() {
        let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let told = std::sync::Arc::clone(&heard);
        let mut lines = Lines::new(std::sync::Arc::new(move |piece| {
            told.lock().unwrap().push(String::from_utf8_lossy(piece).into_owned())
        }));
        lines.push(b"one\ntw");
        lines.push(b"o\n50%\r60");
        assert!(lines.are_unended());
        lines.tell_all();
        assert!(!lines.are_unended());
        lines.push(b"%\r");
        lines.push(&vec![b'x'; LINE_BYTES_MAX + 1]);
        lines.push(b"end");
        drop(lines);
        let heard = heard.lock().unwrap();
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(*heard, ["one\n", "two\n", "50%\r", "60", "%\r", long.as_str(), "end"]);
    }

    #[test]
    fn says_nothing_when_nothing_was_left_out() {
        let mut capture = Capture::new(5);
        capture.push(b"abcdefghij");
        assert_eq!(capture.finish(), Captured { text: "abcdefghij".into(), bytes: 10, truncated: false });
    }

    #[test]
    fn paths_are_replaced_where_they_stand_as_a_whole() {
        let check = |text: &str, expected: &str| {
            let mut replaced = text.to_owned();
            replace_path(&mut replaced, Path::new("/a/b"), ".");
            assert_eq!(replaced, expected);
        };
        check("/a/b", ".");
        check("error in /a/b/src/x.rs:1", "error in ./src/x.rs:1");
        check("file:///a/b/c (/a/b)", "file://./c (.)");
        check("/a/bc /a/b.c /x/a/b", "/a/bc /a/b.c /x/a/b");
        check("/a/b/a/b", "./a/b");
    }
}
