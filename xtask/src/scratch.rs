//! A copy of the repository, below the target folder, in which something may be changed.
//!
//! It stays there, so that the next run builds only what it changes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::tidy::Tree;

pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The repository in it.
    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Where what is built of it may be kept.
    pub(crate) fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// Makes the copy what the repository is, and leaves alone what is already so: its time says whether it is built again.
    pub(crate) fn mirror(&self, root: &Path, tree: &Tree) -> Result<()> {
        let wanted: BTreeSet<PathBuf> = tree.paths().map(|path| self.tree().join(path)).collect();
        for path in tree.paths() {
            let (from, to) = (root.join(path), self.tree().join(path));
            let text = fs::read(&from).with_context(|| format!("cannot read {path}"))?;
            if fs::read(&to).ok().as_ref() != Some(&text) {
                fs::create_dir_all(to.parent().context("a path has a folder")?)?;
                fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
            }
        }
        let mut folders = vec![self.tree()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else if !wanted.contains(&entry.path()) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }
}
