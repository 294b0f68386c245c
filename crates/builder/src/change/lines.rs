//! What two texts have in common, line by line.

use std::collections::HashMap;
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

use crate::limits::{DIFF_BYTES_MAX, DIFF_LINES_MAX};

/// Unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// A text as its lines, each with its end.
pub(super) fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Lines that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// Where two texts differ, in order; between two hunks there is at least one line that both have.
pub(super) fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    if start == old_end && start == new_end {
        return Vec::new();
    }
    if start == old_end || start == new_end || old_end + new_end - 2 * start > DIFF_LINES_MAX {
        return vec![Hunk { old: start..old_end, new: start..new_end }];
    }
    // Numbers are compared faster than lines.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut all: Vec<u32> = Vec::new();
    for line in old[start..old_end].iter().chain(&new[start..new_end]) {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        all.push(*numbers.entry(line).or_insert(next));
    }
    let (a, b) = all.split_at(old_end - start);
    let mut found: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, a, b) {
        if op.tag() == DiffTag::Equal {
            continue;
        }
        let (old, new) = (op.old_range(), op.new_range());
        let (old, new) = (old.start + start..old.end + start, new.start + start..new.end + start);
        match found.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => found.push(Hunk { old, new }),
        }
    }
    found
}

/// A unified diff of two texts and how many lines it adds and removes.
#[derive(Debug, Default)]
pub(super) struct Unified {
    pub(super) text: String,
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Whether the text was cut short. The counts were not.
    pub(super) is_cut: bool,
}

/// The unified diff, without a header.
pub(super) fn unified(old: &str, new: &str) -> Unified {
    let (old, new) = (split(old), split(new));
    let hunks = hunks(&old, &new);
    let mut unified = Unified {
        added: hunks.iter().map(|hunk| hunk.new.len()).sum(),
        removed: hunks.iter().map(|hunk| hunk.old.len()).sum(),
        ..Unified::default()
    };
    let mut from = 0;
    while from < hunks.len() {
        let mut to = from + 1;
        while to < hunks.len() && hunks[to].old.start - hunks[to - 1].old.end <= 2 * CONTEXT_LINES {
            to += 1;
        }
        group(&mut unified, &old, &new, &hunks[from..to]);
        from = to;
    }
    if unified.text.len() > DIFF_BYTES_MAX {
        unified.text.truncate(unified.text.floor_char_boundary(DIFF_BYTES_MAX));
        unified.text.push_str("\n[... the rest of the diff is left out ...]\n");
        unified.is_cut = true;
    }
    unified
}

/// Changes that share their context.
fn group(unified: &mut Unified, old: &[&str], new: &[&str], hunks: &[Hunk]) {
    let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return };
    if unified.text.len() > DIFF_BYTES_MAX {
        return;
    }
    let before = first.old.start.min(CONTEXT_LINES);
    let after = (old.len() - last.old.end).min(CONTEXT_LINES);
    let shown = |start: usize, end: usize| {
        let count = end - start;
        // An empty range is named by the line before it.
        let at = if count == 0 { start } else { start + 1 };
        if count == 1 { at.to_string() } else { format!("{at},{count}") }
    };
    let old_at = shown(first.old.start - before, last.old.end + after);
    let new_at = shown(first.new.start - before, last.new.end + after);
    unified.text.push_str(&format!("@@ -{old_at} +{new_at} @@\n"));
    let mut at = first.old.start - before;
    for hunk in hunks {
        lines(&mut unified.text, ' ', &old[at..hunk.old.start]);
        lines(&mut unified.text, '-', &old[hunk.old.clone()]);
        lines(&mut unified.text, '+', &new[hunk.new.clone()]);
        at = hunk.old.end;
    }
    lines(&mut unified.text, ' ', &old[at..at + after]);
}

fn lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_diff_counts_what_it_shows() {
        let check = |old: &str, new: &str, expected: (usize, usize, &str)| {
            let found = unified(old, new);
            assert_eq!((found.added, found.removed, found.text.as_str()), expected);
        };
        check("", "", (0, 0, ""));
        check("a\nb\n", "x\na\nb\n", (1, 0, "@@ -1,2 +1,3 @@\n+x\n a\n b\n"));
        check("", "a", (1, 0, "@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n"));
        check("a\n", "b\n", (1, 1, "@@ -1 +1 @@\n-a\n+b\n"));
        check("a\nb\n", "", (0, 2, "@@ -1,2 +0,0 @@\n-a\n-b\n"));
    }
}
