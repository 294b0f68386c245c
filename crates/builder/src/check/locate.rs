//! Line and column of what was found: a finding names its place with a pointer, an editor wants a line.

use std::collections::{BTreeMap, HashMap};

use crate::document::front_of;
use crate::finding::Finding;
use crate::package::Package;
use crate::spans::Tree;
use crate::yaml;

/// Gives each finding about a file that is at hand its line and its column, where it has none yet.
pub(crate) fn locate(package: &Package, findings: &mut [Finding]) {
    let mut texts: BTreeMap<String, Option<Text<'_>>> = BTreeMap::new();
    for finding in findings.iter_mut().filter(|finding| finding.line.is_none() && !finding.file.is_empty()) {
        if finding.code == "NOT_UTF8" {
            // What stands before the first byte that is no text says where it is.
            let bytes = package.files().get(&finding.file).map(Vec::as_slice).unwrap_or_default();
            let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            let (line, column) = position(text, text.len());
            (finding.line, finding.column) = (Some(line), Some(column));
            continue;
        }
        let text = texts.entry(finding.file.clone()).or_insert_with(|| Text::of(package, &finding.file));
        if let Some(text) = text {
            let (line, column) = text.position(text.begin(&finding.pointer));
            (finding.line, finding.column) = (Some(line), Some(column));
        }
    }
}

/// Line and column of a place in a text, both from 1.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

struct Text<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    inside: Inside,
}

enum Inside {
    Json(Option<Tree>),
    Front(HashMap<String, usize>),
}

impl<'a> Text<'a> {
    fn of(package: &'a Package, file: &str) -> Option<Self> {
        let text = std::str::from_utf8(package.files().get(file)?).ok()?;
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let inside = if file.ends_with(".json") {
            Inside::Json(Tree::of(text))
        } else {
            let (front, start) = front_of(text);
            let places = yaml::places(front).into_iter();
            Inside::Front(
                places.map(|place| (place.pointer, start + place.name_at.unwrap_or(place.at.start))).collect(),
            )
        };
        Some(Self { text, lines, inside })
    }

    /// Where the value of a pointer begins; of a value that is not there, what it would be in.
    fn begin(&self, pointer: &str) -> usize {
        if pointer.is_empty() {
            return 0;
        }
        match &self.inside {
            Inside::Json(tree) => tree.as_ref().map_or(0, |tree| tree.begin(pointer)),
            Inside::Front(places) => {
                let mut pointer = pointer;
                while !pointer.is_empty() {
                    if let Some(at) = places.get(pointer) {
                        return *at;
                    }
                    pointer = pointer.rfind('/').map_or("", |end| &pointer[..end]);
                }
                0
            }
        }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line.saturating_sub(1)];
        (line, self.text[start..at].chars().count() + 1)
    }
}
