//! Documents whose front matter both sides changed: field by field, and item by item in lists whose items have names.
//!
//! The lines of a field stay as one of the sides wrote them. How YAML is laid out may mislead who goes by its lines, so what
//! they come to is read again, and counts only if each of its values is the one that a side has changed, or both have.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::tree::order;
use super::{text, unchanged};
use crate::change::Part;
use crate::document::front_of;
use crate::limits::MERGED_FIELDS_MAX;
use crate::yaml;

/// Both edits of a document whose lines touch and whose fields do not. None where its fields touch, too.
pub(super) fn merge(part: Part, base: &str, current: &str, ours: &str) -> Option<String> {
    if part != Part::Document {
        return None;
    }
    let (was, is, will) = (front(base)?, front(current)?, front(ours)?);
    let fronts = [&base[was.clone()], &current[is.clone()], &ours[will.clone()]];
    let merged = block(fronts, Inside::Fields)?;
    let read = |text: &str| yaml::parse(text).ok();
    let (before, there, here) = (read(fronts[0])?, read(fronts[1])?, read(fronts[2])?);
    if !agree([Some(&before), Some(&there), Some(&here)], Some(&read(&merged)?)) {
        return None;
    }
    let body = text::merge(part, [&base[was.end..], &current[is.end..], &ours[will.end..]], &mut || None).ok()?;
    Some(format!("{}{merged}{body}", &current[..is.start]))
}

/// Where the front matter stands, without its two lines of `---`.
fn front(text: &str) -> Option<Range<usize>> {
    let (yaml, at) = front_of(text);
    (!yaml.is_empty()).then(|| at..at + yaml.len())
}

/// What the lines of a block are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Fields, from the first line on.
    Fields,
    /// The name of a field, and what it holds below.
    Field,
    /// An item of a list: its mark, and behind it fields.
    Item,
}

/// Three versions of a block, brought together. The depth of what was parsed is bounded, so recursion is.
fn block(texts: [&str; 3], inside: Inside) -> Option<String> {
    let [before, there, here] = texts.map(|text| Block::of(text, inside));
    let (before, there, here) = (before?, there?, here?);
    if before.are_items != there.are_items || there.are_items != here.are_items {
        return None;
    }
    let (was, is, will) = (before.names(), there.names(), here.names());
    let mut merged = unchanged(before.head, there.head, here.head)?.to_owned();
    let inside = if there.are_items { Inside::Item } else { Inside::Field };
    for name in order(&was, &is, &will)? {
        let lines = [before.lines(name), there.lines(name), here.lines(name)];
        match (unchanged(lines[0], lines[1], lines[2]), lines) {
            (Some(kept), _) => merged.push_str(kept.unwrap_or_default()),
            (None, [Some(before), Some(there), Some(here)]) => merged.push_str(&block([before, there, here], inside)?),
            _ => return None,
        }
    }
    Some(merged)
}

/// The lines of a block, taken apart.
struct Block<'a> {
    /// The name of the field that holds it.
    head: &'a str,
    /// Whether it is a list.
    are_items: bool,
    /// What is in it, each with its name and all of its lines, and with the comments above it.
    parts: Vec<(String, &'a str)>,
}

impl<'a> Block<'a> {
    /// None where something in it has no name of its own.
    fn of(text: &'a str, inside: Inside) -> Option<Self> {
        let mut at = 0;
        let mut lines: Vec<(usize, &str)> = Vec::new();
        for line in text.split_inclusive('\n') {
            lines.push((at, line));
            at += line.len();
        }
        let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let mut said = lines.iter().position(|(_, line)| is_said(line))?;
        if inside == Inside::Field {
            // What stands behind the name is no block.
            lines[said].1.trim_end().ends_with(':').then_some(())?;
            said += 1;
        }
        let head_end = if inside == Inside::Field { lines.get(said)?.0 } else { 0 };
        let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let first = lines[said..].iter().find(|(_, line)| is_said(line))?.1;
        let are_items = inside != Inside::Item && first.trim_start().starts_with("- ");
        let mark = if inside == Inside::Item { "- ".len() } else { 0 };
        let depth = indent(first) + mark;
        let mut starts: Vec<usize> = Vec::new();
        let mut above = head_end;
        for (index, (_, line)) in lines.iter().enumerate().skip(said) {
            if !is_said(line) {
                continue;
            }
            let is_first = starts.is_empty();
            let is_start = is_first || (indent(line) == depth && line[depth..].starts_with("- ") == are_items);
            if is_start {
                starts.push(if is_first { head_end } else { above });
            }
            // Comments and empty lines stand with what comes below them.
            above = lines.get(index + 1).map_or(text.len(), |(at, _)| *at);
        }
        (starts.len() <= MERGED_FIELDS_MAX).then_some(())?;
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
        let mut parts = Vec::new();
        let mut names = BTreeSet::new();
        for (start, end) in starts.into_iter().zip(ends) {
            let lines = &text[start..end];
            let name = name_of(lines, are_items)?;
            names.insert(name.clone()).then_some(())?;
            parts.push((name, lines));
        }
        Some(Self { head: &text[..head_end], are_items, parts })
    }

    fn names(&self) -> Vec<String> {
        self.parts.iter().map(|(name, _)| name.clone()).collect()
    }

    fn lines(&self, name: &str) -> Option<&'a str> {
        self.parts.iter().find(|(known, _)| known == name).map(|(_, lines)| *lines)
    }
}

fn name_of(lines: &str, is_item: bool) -> Option<String> {
    if is_item {
        return named(yaml::parse(lines).ok()?.get(0)?);
    }
    let said = lines.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))?;
    let said = said.trim_start().trim_start_matches("- ");
    Some(said.split_once(':')?.0.trim_matches(['"', '\'']).to_owned())
}

/// What names an item of a list: itself, its id or its name, or where it leads to and what that is called.
fn named(item: &Value) -> Option<String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let plain = item.as_str().or_else(|| text("id")).or_else(|| text("name"));
    plain.map(str::to_owned).or_else(|| Some(format!("{} {}", text("to")?, text("label").unwrap_or_default())))
}

/// Whether a value is what three others come to.
fn agree([before, there, here]: [Option<&Value>; 3], merged: Option<&Value>) -> bool {
    if let Some(clean) = unchanged(before, there, here) {
        return clean == merged;
    }
    match (before, there, here, merged) {
        (
            Some(Value::Object(before)),
            Some(Value::Object(there)),
            Some(Value::Object(here)),
            Some(Value::Object(all)),
        ) => {
            let names: BTreeSet<&String> =
                [before, there, here, all].into_iter().flat_map(|fields| fields.keys()).collect();
            let same = |name: &&String| agree([before.get(*name), there.get(*name), here.get(*name)], all.get(*name));
            names.iter().all(same)
        }
        (Some(Value::Array(before)), Some(Value::Array(there)), Some(Value::Array(here)), Some(Value::Array(all))) => {
            let names: Option<BTreeSet<String>> = [before, there, here, all].into_iter().flatten().map(named).collect();
            let find =
                |items: &'_ Vec<Value>, name: &str| items.iter().position(|item| named(item).as_deref() == Some(name));
            let of = |items: &'_ Vec<Value>, name: &str| find(items, name).map(|at| items[at].clone());
            names.is_some_and(|names| {
                let same = |name: &String| {
                    let (before, there, here) = (of(before, name), of(there, name), of(here, name));
                    agree([before.as_ref(), there.as_ref(), here.as_ref()], of(all, name).as_ref())
                };
                names.iter().all(same)
            })
        }
        _ => false,
    }
}
