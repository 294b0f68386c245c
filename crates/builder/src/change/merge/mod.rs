//! Two edits of one object, brought together where they do not touch.

mod fields;
mod text;
mod tree;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Part, Snapshot};

/// What two edits of one object come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// Both, together. None: the object is gone.
    Clean(Option<Snapshot>),
    /// The places where a person must choose. At least one.
    Conflict(Vec<Clash>),
}

/// A place that both edits changed, and not in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Clash {
    /// The part of the object.
    pub part: Part,
    /// Where in it.
    pub place: ClashPlace,
    /// The text there before both edits; none if there was nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The text there now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub current: Option<String>,
    /// The text there as it is to be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ours: Option<String>,
}

/// Where a clash is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum ClashPlace {
    /// The part as a whole: one side took it out, or both made it.
    Whole,
    /// Lines of the base.
    Lines {
        /// The first, from 1. Where `count` is 0, both put something before this line.
        first: usize,
        /// How many.
        count: usize,
    },
    /// A value of JSON.
    Pointer {
        /// A JSON pointer into the base, or into the current text where the base has no such value.
        pointer: String,
    },
}

/// Merges what is there now and what is to be, both made from `base`. None: the object is not there.
///
/// Texts are merged by line, and where lines of front matter touch by field; graphs, agents and entries of the manifest by
/// value.
#[must_use]
pub fn merge(base: Option<&Snapshot>, current: Option<&Snapshot>, ours: Option<&Snapshot>) -> Merged {
    if let Some(clean) = unchanged(base, current, ours) {
        return Merged::Clean(clean.cloned());
    }
    let sides = [base, current, ours];
    let parts: BTreeSet<Part> = sides.into_iter().flatten().flat_map(|side| side.0.keys().copied()).collect();
    let mut merged = Snapshot::default();
    let mut clashes = Vec::new();
    for part in parts {
        let [base, current, ours] = sides.map(|side| side.and_then(|side| side.get(part)));
        match self::part(part, base, current, ours) {
            Ok(text) => merged.0.extend(text.map(|text| (part, text))),
            Err(found) => clashes.extend(found),
        }
    }
    // One side took the object out, and the other changed what has no part of its own.
    if clashes.is_empty() && (current.is_none() || ours.is_none()) {
        return Merged::Clean(None);
    }
    if clashes.is_empty() { Merged::Clean(Some(merged)) } else { Merged::Conflict(clashes) }
}

/// Whose text is taken where two edits clash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What is there now.
    Theirs,
    /// What is to be.
    Ours,
}

/// As [`merge`], with a side taken at each clash: one for each that [`merge`] tells, in its order.
///
/// # Errors
/// There are not as many clashes as sides; or one edit took the object out, and not the same side is taken at all of its places.
pub fn merge_taking(
    base: Option<&Snapshot>,
    current: Option<&Snapshot>,
    ours: Option<&Snapshot>,
    sides: &[Side],
) -> Result<Option<Snapshot>, WrongSides> {
    let Merged::Conflict(clashes) = merge(base, current, ours) else { return Err(WrongSides::Number) };
    if clashes.len() != sides.len() {
        return Err(WrongSides::Number);
    }
    if current.is_none() || ours.is_none() {
        return match sides {
            [first, rest @ ..] if rest.iter().all(|side| side == first) => {
                Ok(if *first == Side::Ours { ours.cloned() } else { current.cloned() })
            }
            _ => Err(WrongSides::OfOneObject),
        };
    }
    let mut sides = sides.iter().copied();
    let mut take = || sides.next();
    let all = [base, current, ours];
    let parts: BTreeSet<Part> = all.into_iter().flatten().flat_map(|side| side.0.keys().copied()).collect();
    let mut merged = Snapshot::default();
    for part in parts {
        let [base, current, ours] = all.map(|side| side.and_then(|side| side.get(part)));
        let text = self::part(part, base, current, ours).or_else(|_| taking(part, [base, current, ours], &mut take));
        merged.0.extend(text.map_err(|_| WrongSides::Number)?.map(|text| (part, text)));
    }
    Ok(Some(merged))
}

/// Why the sides that are taken do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongSides {
    /// There are other clashes.
    Number,
    /// An object that one side took out can be had as a whole or not at all.
    OfOneObject,
}

/// A part that clashes, with a side taken at each place.
fn taking(part: Part, sides: Sides<'_>, take: &mut Take<'_>) -> Result<Option<String>, Vec<Clash>> {
    let [Some(base), Some(current), Some(ours)] = sides else {
        let [_, current, ours] = sides;
        return Ok(if take() == Some(Side::Ours) { ours } else { current }.map(str::to_owned));
    };
    merge_texts(part, [base, current, ours], take).map(Some)
}

/// The base, with the current text at the place of each clash. A change by somebody who has seen the clashes is merged from
/// there, so that it does not clash at these places again.
#[must_use]
pub fn with_current(base: &Snapshot, current: Option<&Snapshot>, clashes: &[Clash]) -> Snapshot {
    let mut made = base.clone();
    // From behind, so that the lines of those before stay where they are.
    for clash in clashes.iter().rev() {
        let known = made.get(clash.part).map(str::to_owned);
        let there = current.and_then(|current| current.get(clash.part));
        let text = match (&clash.place, known) {
            (ClashPlace::Lines { first, count }, Some(text)) => {
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let at = (first - 1).min(lines.len());
                let after = lines[(at + count).min(lines.len())..].concat();
                Some(lines[..at].concat() + clash.current.as_deref().unwrap_or_default() + &after)
            }
            (ClashPlace::Pointer { pointer }, Some(text)) => Some(tree::with_current(&text, pointer, clash)),
            _ => there.map(str::to_owned),
        };
        match text {
            Some(text) => drop(made.0.insert(clash.part, text)),
            None => drop(made.0.remove(&clash.part)),
        }
    }
    made
}

/// What both come to where at most one of them differs from the base, or both are the same.
fn unchanged<T: PartialEq + Copy>(base: T, current: T, ours: T) -> Option<T> {
    if ours == base || ours == current {
        Some(current)
    } else if current == base {
        Some(ours)
    } else {
        None
    }
}

type Sides<'a> = [Option<&'a str>; 3];

fn part(
    part: Part,
    base: Option<&str>,
    current: Option<&str>,
    ours: Option<&str>,
) -> Result<Option<String>, Vec<Clash>> {
    if let Some(clean) = unchanged(base, current, ours) {
        return Ok(clean.map(str::to_owned));
    }
    // Two that want the same value do not clash because one of them indents it otherwise.
    if current.zip(ours).is_some_and(|(current, ours)| tree::is_same_value(current, ours)) {
        return Ok(current.map(str::to_owned));
    }
    let (Some(base), Some(current), Some(ours)) = (base, current, ours) else {
        return Err(vec![clash(part, ClashPlace::Whole, [base, current, ours])]);
    };
    match merge_texts(part, [base, current, ours], &mut || None) {
        Err(clashes) => fields::merge(part, base, current, ours).map(Some).ok_or(clashes),
        clean => clean.map(Some),
    }
}

/// Says whose text is taken at the next clash; `None` leaves it a clash.
type Take<'a> = dyn FnMut() -> Option<Side> + 'a;

fn merge_texts(part: Part, sides: [&str; 3], take: &mut Take<'_>) -> Result<String, Vec<Clash>> {
    let is_json = matches!(part, Part::Graph | Part::Entry | Part::Definition);
    let by_value = if is_json { tree::merge(part, sides, take) } else { None };
    // JSON that is broken is a text like any other.
    by_value.unwrap_or_else(|| text::merge(part, sides, take))
}

fn clash(part: Part, place: ClashPlace, [base, current, ours]: Sides<'_>) -> Clash {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Clash { part, place, base: owned(base), current: owned(current), ours: owned(ours) }
}
