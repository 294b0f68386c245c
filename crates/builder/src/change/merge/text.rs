//! Texts, line by line.

use std::ops::Range;

use toolhost_contract::workspace::{Hunk, hunks, split};

use super::{Clash, ClashPlace, Side, Take, clash};
use crate::change::Part;

/// Both edits of a text, where they leave at least one line between them.
pub(super) fn merge(part: Part, [base, current, ours]: [&str; 3], take: &mut Take<'_>) -> Result<String, Vec<Clash>> {
    let (base, current, ours) = (split(base), split(current), split(ours));
    let (theirs, mine) = (hunks(&base, &current), hunks(&base, &ours));
    let mut out = String::new();
    let mut clashes = Vec::new();
    let (mut at, mut i, mut j) = (0, 0, 0);
    loop {
        let (from_i, from_j) = (i, j);
        let Some(mut range) = first(theirs.get(i), mine.get(j)) else { break };
        // A group is everything that touches, however long the chain.
        loop {
            let touches = |hunk: Option<&Hunk>| hunk.is_some_and(|h| h.old.start <= range.end);
            if touches(theirs.get(i)) {
                range.end = range.end.max(theirs[i].old.end);
                i += 1;
            } else if touches(mine.get(j)) {
                range.end = range.end.max(mine[j].old.end);
                j += 1;
            } else {
                break;
            }
        }
        out.extend(base[at..range.start].iter().copied());
        at = range.end;
        let there = side(&range, &theirs[from_i..i], &current);
        let here = side(&range, &mine[from_j..j], &ours);
        match (there, here) {
            (Some(text), None) | (None, Some(text)) => out.push_str(&text),
            (Some(there), Some(here)) if there == here => out.push_str(&there),
            (there, here) => {
                if let Some(taken) = take() {
                    let text = if taken == Side::Ours { here } else { there };
                    out.push_str(&text.unwrap_or_default());
                    continue;
                }
                let place = ClashPlace::Lines { first: range.start + 1, count: range.len() };
                let was: String = base[range].concat();
                clashes.push(clash(part, place, [Some(&was), there.as_deref(), here.as_deref()]));
            }
        }
    }
    out.extend(base[at..].iter().copied());
    if clashes.is_empty() { Ok(out) } else { Err(clashes) }
}

/// The lines of the hunk that comes first.
fn first(a: Option<&Hunk>, b: Option<&Hunk>) -> Option<Range<usize>> {
    let next = match (a, b) {
        (Some(a), Some(b)) => Some(if a.old.start <= b.old.start { a } else { b }),
        (one, other) => one.or(other),
    };
    next.map(|hunk| hunk.old.clone())
}

/// What one side makes of these lines of the base; none if it leaves them.
fn side(range: &Range<usize>, hunks: &[Hunk], lines: &[&str]) -> Option<String> {
    let (first, last) = (hunks.first()?, hunks.last()?);
    let start = first.new.start - (first.old.start - range.start);
    let end = last.new.end + (range.end - last.old.end);
    Some(lines[start..end].concat())
}
