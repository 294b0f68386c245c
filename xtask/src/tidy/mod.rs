//! Rules that no compiler and no lint knows: no process-wide state, no forgotten files, no dead links, no clutter.
//!
//! The files git knows are read once into a [`Tree`]; the rules are pure functions over it, so a test can plant a file
//! that breaks each of them. [`rust`] has the rules for a source file by itself, [`modules`] and [`circles`] those for how files
//! hang together, [`text`] those for all text, and [`source`] tells code from comments and literals.

mod circles;
mod modules;
mod reach;
mod rust;
pub(crate) mod source;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

pub(crate) use self::text::{links, resolve};
use crate::finding::Finding;
use crate::shell;

/// The text files of the repository by path, and the paths of all files.
#[derive(Default)]
pub(crate) struct Tree {
    texts: BTreeMap<String, String>,
    paths: Vec<String>,
}

impl Tree {
    /// The Rust sources the rules are for: what ships, and what proves it.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts()
            .filter(|(path, _)| path.ends_with(".rs") && (path.starts_with("crates/") || path.starts_with("xtask/")))
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether there is a file of this path, or a folder with files in it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        self.paths.iter().any(|known| known == path || known.starts_with(&inside))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        Self {
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
            texts: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
        }
    }
}

/// Reads what git tracks and what it would track: a file is held to the rules before it is added.
pub(crate) fn read(root: &Path) -> Result<Tree> {
    let mut git = Command::new("git");
    // A CI checkout may belong to another user than the one who runs the tests; listing it harms nobody.
    git.args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    let listed = shell::stdout_of(git.current_dir(root))?;
    let mut tree = Tree::default();
    for path in listed.split_terminator('\0') {
        let on_disk = root.join(path);
        // Tracked files may be deleted, and links may lead anywhere: only what is here is read.
        if !fs::symlink_metadata(&on_disk).is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        tree.paths.push(path.to_owned());
        if let Some(text) = String::from_utf8(fs::read(&on_disk)?).ok().filter(|text| !text.contains('\0')) {
            tree.texts.insert(path.to_owned(), text);
        }
    }
    Ok(tree)
}

/// All findings, sorted by place.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_files() {
        findings.extend(rust::check(path, text));
        findings.extend(reach::check(path, text));
        findings.extend(modules::check(tree, path));
    }
    for (path, text) in tree.texts() {
        findings.extend(text::check(path, text));
        findings.extend(text::check_links(tree, path, text));
    }
    findings.extend(circles::check(tree));
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::{check, read};
    use crate::finding::listed;
    use crate::shell;

    #[test]
    fn this_house_is_tidy() {
        let findings = check(&read(shell::root()).expect("git lists this repository"));
        assert!(findings.is_empty(), "{}", listed(&findings));
    }

    #[test]
    fn the_tree_has_this_file_in_it() {
        let tree = read(shell::root()).expect("git lists this repository");
        assert!(tree.text("xtask/src/tidy/mod.rs").is_some());
        assert!(tree.has("xtask/src") && !tree.has("xtask/sr"));
    }
}
