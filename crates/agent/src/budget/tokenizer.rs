//! The tokenizer `o200k_base` (byte pair encoding), read from its table when it is first needed.
//!
//! Only tokens are counted, so this is a twentieth of the size of a tokenizer that also encodes: the libraries that
//! count as fast as they encode keep automata of 30 MB in the program or 50 MB in memory. The one hard problem is a long
//! piece without a break, whose pairs must not be looked through again after each merge: they wait in a heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{BufRead, BufReader};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

/// The table as OpenAI publishes it, see `data/README.md`.
const TABLE: &[u8] = include_bytes!("../../data/o200k_base.tiktoken.gz");
/// A text is cut into pieces before it is encoded. Where OpenAI's pattern says `\s+(?!\S)`, the second one here takes one
/// character more, which is given back.
const PATTERNS: [&str; 3] = [
    concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+$",
    ),
    r"\s+\s",
    r"\s+",
];
const LOOKS_AHEAD: usize = 1;

static O200K: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::o200k);

/// Tokens of a text.
pub(super) fn count(text: &str) -> usize {
    O200K.count(text)
}

struct Tokenizer {
    /// Tokens, and their place in the order in which pairs are merged.
    ranks: HashMap<Box<[u8]>, u32>,
    pieces: Regex,
}

impl Tokenizer {
    fn o200k() -> Self {
        let lines = BufReader::new(GzDecoder::new(TABLE)).lines().map(|line| line.expect("the table is whole"));
        let ranks = lines.filter_map(|line| {
            let (token, rank) = line.split_once(' ')?;
            Some((STANDARD.decode(token).ok()?.into_boxed_slice(), rank.parse().ok()?))
        });
        Self { ranks: ranks.collect(), pieces: Regex::new_many(&PATTERNS).expect("the patterns are valid") }
    }

    fn count(&self, text: &str) -> usize {
        let (mut at, mut tokens) = (0, 0);
        while let Some(found) = self.pieces.find(Input::new(&text[at..]).anchored(Anchored::Yes)) {
            let mut piece = &text[at..at + found.end()];
            if found.pattern().as_usize() == LOOKS_AHEAD {
                let last = piece.chars().next_back().map_or(0, char::len_utf8);
                piece = &piece[..piece.len() - last];
            }
            if piece.is_empty() {
                break;
            }
            tokens += if self.ranks.contains_key(piece.as_bytes()) { 1 } else { self.merged(piece.as_bytes()) };
            at += piece.len();
        }
        tokens
    }

    /// What is left of the bytes of a piece when all pairs are merged that are tokens, those of the lowest rank first and of
    /// equal ones the first.
    fn merged(&self, piece: &[u8]) -> usize {
        // Where the part that begins here ends, and where the one before it begins.
        let mut ends: Vec<usize> = (1..=piece.len()).collect();
        let mut before: Vec<Option<usize>> = (0..piece.len()).map(|at| at.checked_sub(1)).collect();
        let mut pairs: BinaryHeap<Reverse<(u32, usize, usize)>> = BinaryHeap::new();
        let pair = |ends: &[usize], at: usize| {
            let end = *ends.get(ends[at])?;
            Some(Reverse((*self.ranks.get(&piece[at..end])?, at, end)))
        };
        pairs.extend((0..piece.len()).filter_map(|at| pair(&ends, at)));
        let mut parts = piece.len();
        while let Some(Reverse((_, at, end))) = pairs.pop() {
            // One of its parts may have been merged into another pair since.
            let middle = ends[at];
            if middle == GONE || ends.get(middle).is_none_or(|found| *found != end) {
                continue;
            }
            ends[middle] = GONE;
            ends[at] = end;
            if end < piece.len() {
                before[end] = Some(at);
            }
            parts -= 1;
            pairs.extend(pair(&ends, at));
            pairs.extend(before[at].and_then(|before| pair(&ends, before)));
        }
        parts
    }
}

/// In the place of an end: this part was merged into the one before it.
const GONE: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::count;

    /// As tiktoken 0.12 counts them.
    #[test]
    fn texts_have_as_many_tokens_as_openai_counts() {
        for (text, tokens) in [
            ("", 0),
            ("hello world", 2),
            ("Hello, world!  How's it   going?\n\n", 11),
            ("don't DON'T \t\n  x", 5),
            ("请根据医院出院流程生成一个完整的工作流，并说明每个步骤的目标。", 20),
            ("fn main() {\n    let mut sum = 0u64;\n    for i in 0..10 { sum += i * i; }\n}\n", 31),
            ("a b 1 2 \u{1F600} end\n", 9),
            ("1234567 3.14159", 8),
            ("\t\t\n \n", 2),
            ("Ünïcödé ΑΒΓ кириллица", 11),
            (" trailing  ", 2),
            ("\0\u{1}", 2),
        ] {
            assert_eq!(count(text), tokens, "{text:?}");
        }
        assert_eq!((count(&" ".repeat(1_000)), count(&"a".repeat(1_000))), (9, 125));
    }
}
