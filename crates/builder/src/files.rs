//! The files of a package, and which paths they may have.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use unicode_normalization::UnicodeNormalization;

use crate::limits::PATH_CHARS_MAX;

/// Path to bytes. Paths are relative to the package, with `/` between their parts.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What is wrong with a path, if anything. A path that passes names one place below the package on every system.
#[must_use]
pub fn problem(path: &str) -> Option<&'static str> {
    let bytes = path.as_bytes();
    let is_drive = bytes.len() >= 2 && bytes[1] == b':' && bytes[0].is_ascii_alphabetic();
    if path.is_empty() {
        Some("is empty")
    } else if path.chars().count() > PATH_CHARS_MAX {
        Some("is too long")
    } else if path.chars().any(char::is_control) {
        Some("contains a control character")
    } else if path.contains('\\') {
        Some("contains a backslash")
    } else if path.starts_with('/') || is_drive {
        Some("is absolute")
    } else if path.split('/').any(|part| part == ".." || part == ".") {
        Some("contains `.` or `..`")
    } else if path.split('/').any(is_repository) {
        Some("is in a repository's own folder")
    } else if path.split('/').any(str::is_empty) {
        Some("has an empty part")
    } else {
        None
    }
}

/// Whether a file was left there by an operating system and not by a person, as most zips made on a Mac have some, or belongs to
/// a repository that the package was kept in: git would run programs that such a repository names, wherever it is exported.
pub(crate) fn is_left_over(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    path.split('/').any(is_repository)
        || matches!(name, ".DS_Store" | "Thumbs.db" | "ehthumbs.db" | "desktop.ini" | ".localized")
        || name.starts_with("._")
        || folders.split('/').any(|folder| folder == "__MACOSX")
}

/// Some systems take names in another case for the same.
fn is_repository(name: &str) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// The folder a file is in, with a `/` at its end; empty for the package's own.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// What is behind the last `/` of a path.
pub(crate) fn file_name_of(path: &str) -> &str {
    &path[folder_of(path).len()..]
}

/// Paths that differ only in case, or in how accents are encoded: on some systems, one of them would overwrite the other.
pub(crate) fn case_twins<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut twins = Vec::new();
    for path in paths {
        match seen.entry(folded(path)) {
            Entry::Occupied(first) => twins.push((*first.get(), path)),
            Entry::Vacant(free) => drop(free.insert(path)),
        }
    }
    twins
}

/// Whether two paths differ only in case, or in how accents are encoded.
pub(crate) fn is_twin(one: &str, other: &str) -> bool {
    one != other && folded(one) == folded(other)
}

/// What a file system that tells neither case nor forms of Unicode apart takes a path for.
fn folded(path: &str) -> String {
    path.nfc().collect::<String>().to_lowercase()
}
