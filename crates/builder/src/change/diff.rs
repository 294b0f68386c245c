//! What became of objects between two states of a package, for a person to look at.

use std::collections::BTreeSet;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::workspace::unified;
use toolhost_contract::{Redactor, visible_line};

use super::graph::{FieldChange, GraphDiff, ItemChange, compare};
use super::{Part, Snapshot, snapshot};
use crate::limits::DIFF_BYTES_MAX;
use crate::package::{MANIFEST, Package};
use crate::refs::Object;

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It was not there.
    Added,
    /// It was there, perhaps empty, and is not as it was.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }

    pub(crate) fn of<T>(before: Option<T>, after: Option<T>) -> Self {
        match (before, after) {
            (None, _) => Self::Added,
            (_, None) => Self::Deleted,
            _ => Self::Modified,
        }
    }
}

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub object: Object,
    /// What became of it.
    pub change: Change,
    /// Its files, or its places in files that it shares.
    pub files: Vec<FileDiff>,
    /// Its graph, if anything but the layout differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphDiff>,
    /// The graph before and after, if anything but the layout differs; null where there is none. What differs is in `graph`.
    #[serde(skip)]
    pub sides: Option<[Value; 2]>,
}

/// What became of one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// The file.
    pub path: String,
    /// Which part of the object it is.
    pub part: Part,
    /// What became of it.
    pub change: Change,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// A unified diff without a header.
    pub unified: String,
    /// Whether that was cut short. The counts were not.
    pub is_cut: bool,
}

/// What became of these objects, each once; those that are as they were are left out.
#[must_use]
pub fn diff(before: &Package, after: &Package, objects: &[Object]) -> Vec<ObjectDiff> {
    each(before, after, objects, None)
}

/// The same, of texts in which secrets are masked: a part of a diff may hold lines of a key without its beginning.
#[must_use]
pub fn masked_diff(before: &Package, after: &Package, objects: &[Object], secrets: &Redactor) -> Vec<ObjectDiff> {
    each(before, after, objects, Some(secrets))
}

fn each(before: &Package, after: &Package, objects: &[Object], secrets: Option<&Redactor>) -> Vec<ObjectDiff> {
    let mut seen = BTreeSet::new();
    let once = objects.iter().filter(|object| seen.insert(*object));
    once.filter_map(|object| one((before, after), object, secrets)).collect()
}

/// What is said of a text where nothing but what is masked differs.
const ONLY_MASKED: &str = " only what looks like a secret differs\n";

fn one((before, after): (&Package, &Package), object: &Object, secrets: Option<&Redactor>) -> Option<ObjectDiff> {
    let (old, new) = (snapshot(before, object), snapshot(after, object));
    if old == new && bytes(before, object) == bytes(after, object) {
        return None;
    }
    let change = Change::of(old.as_ref().map(drop).or(bytes(before, object).map(drop)), new.as_ref().map(drop));
    let none = Snapshot::default();
    let (from, to) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
    let parts: BTreeSet<Part> = from.0.keys().chain(to.0.keys()).copied().collect();
    let mut files = Vec::new();
    for part in parts.into_iter().filter(|part| from.get(*part) != to.get(*part)) {
        let path = path_of(after, object, part).or_else(|| path_of(before, object, part)).unwrap_or_default();
        let shown = |text: Option<&str>| {
            text.map(|text| {
                let mut text = if part == Part::Definition { dedented(text) } else { text.to_owned() };
                if let Some(secrets) = secrets {
                    secrets.redact(&mut text);
                }
                text
            })
        };
        let (was, is) = (shown(from.get(part)), shown(to.get(part)));
        let mut found = unified(was.as_deref().unwrap_or_default(), is.as_deref().unwrap_or_default());
        let is_cut = found.text.len() > DIFF_BYTES_MAX;
        if is_cut {
            found.text.truncate(found.text.floor_char_boundary(DIFF_BYTES_MAX));
            found.text.push_str("\n[... the rest of the diff is left out ...]\n");
        }
        // A file that was no text was there all the same.
        let was_there = was.is_some() || before.files().contains_key(&path) && is_own(part);
        let is_masked = is.clone();
        let change = Change::of(was_there.then_some(()), is.map(drop));
        let unified = if was == is_masked && was_there { ONLY_MASKED.to_owned() } else { found.text };
        files.push(FileDiff { path, part, change, added: found.added, removed: found.removed, unified, is_cut });
    }
    let value = |side: &Snapshot| {
        let text = side.get(Part::Graph).unwrap_or_default();
        serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')).unwrap_or_default()
    };
    let [old_graph, new_graph] = [value(from), value(to)];
    let graph = Some(compare(&old_graph, &new_graph)).filter(|graph| !graph.is_empty());
    let sides = graph.is_some().then_some([old_graph, new_graph]);
    Some(ObjectDiff { object: object.clone(), change, files, graph, sides })
}

/// Whether the part is a file of its own.
fn is_own(part: Part) -> bool {
    matches!(part, Part::Document | Part::Graph | Part::Content)
}

/// The bytes of an object that is one file, which need not be text.
fn bytes<'a>(package: &'a Package, object: &Object) -> Option<&'a [u8]> {
    let path = match object {
        Object::Asset(path) => path,
        Object::Step { workflow, node } => &package.workflow(workflow)?.step(node)?.path,
        _ => return None,
    };
    package.files().get(path).map(Vec::as_slice)
}

fn path_of(package: &Package, object: &Object, part: Part) -> Option<String> {
    let path = match (object, part) {
        (_, Part::Entry) => MANIFEST,
        (Object::Workflow(id), Part::Graph) => &package.workflow(id)?.graph_path,
        (Object::Workflow(id), _) => &package.workflow(id)?.path,
        (Object::Step { workflow, node }, _) => package.workflow(workflow)?.node(node)?.path.as_deref()?,
        (Object::Agent(_), _) => package.agents_path()?,
        (Object::Asset(path), _) => path,
        (Object::Package | Object::Variable { .. }, _) => return None,
    };
    Some(path.to_owned())
}

/// A text that was cut out of an indented place, without the indentation of its last line.
fn dedented(text: &str) -> String {
    let last = text.lines().last().unwrap_or_default();
    let indent = &last[..last.len() - last.trim_start_matches([' ', '\t']).len()];
    let lines = text.split_inclusive('\n').map(|line| line.strip_prefix(indent).unwrap_or(line));
    let mut text: String = lines.collect();
    text.push('\n');
    text
}

/// Diffs as plain text: a line per object, its graph in words, its files as unified diffs. Characters are as they come;
/// who shows this makes deceptive ones visible. A name is one line: the rest of a longer one would look like a line of the host's.
#[must_use]
pub fn render(diffs: &[ObjectDiff]) -> String {
    let mut out = String::new();
    for diff in diffs {
        // Writing into a string does not fail.
        let _ = writeln!(out, "{} {}", diff.change.as_str(), visible_line(&diff.object.to_string()));
        if let Some(graph) = &diff.graph {
            for (what, items) in [("node", &graph.nodes), ("edge", &graph.edges)] {
                items.iter().for_each(|item| render_item(&mut out, what, item));
            }
            graph.fields.iter().for_each(|field| render_field(&mut out, "  ", field));
        }
        for file in &diff.files {
            // Of a file with many objects, only the part that is this one's was added or removed.
            let part = if is_own(file.part) { String::new() } else { format!("{} in ", file.part.as_str()) };
            let FileDiff { path, added, removed, .. } = file;
            let path = visible_line(path);
            let _ = writeln!(out, "--- {} {part}{path} (+{added} -{removed})", file.change.as_str());
            out.push_str(&file.unified);
        }
    }
    out
}

fn render_item(out: &mut String, what: &str, item: &ItemChange) {
    // Writing into a string does not fail.
    let _ = writeln!(out, "  {what} {} {}", item.change.as_str(), visible_line(&item.name));
    if item.change == Change::Modified {
        item.fields.iter().for_each(|field| render_field(out, "    ", field));
    }
}

fn render_field(out: &mut String, indent: &str, field: &FieldChange) {
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    // Writing into a string does not fail.
    let (name, before, after) = (visible_line(&field.name), shown(&field.before), shown(&field.after));
    let _ = writeln!(out, "{indent}{name}: {before} -> {after}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_named_begins_no_line() {
        let item = ItemChange {
            name: "begin -> s2 (ok)\nvalid, 0 errors\u{1b}[2K".to_owned(),
            change: Change::Modified,
            fields: vec![FieldChange { name: "a\nvalid".to_owned(), before: None, after: Some("b\nvalid".into()) }],
        };
        let graph = GraphDiff { nodes: Vec::new(), edges: vec![item], fields: Vec::new() };
        let object = Object::Workflow("main\nvalid".to_owned());
        let diff = ObjectDiff { object, change: Change::Modified, files: Vec::new(), graph: Some(graph), sides: None };
        let text = render(&[diff]);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("valid")) && !text.contains('\u{1b}'), "{text}");
    }
}
