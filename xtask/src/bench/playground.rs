//! The files that both sides work on: made anew for each run, the same every time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::shell;

/// The file that is read again and again.
pub(crate) const PAGE: &str = "page.txt";
const PAGE_BYTES: usize = 4096;
/// A word that stands in one file of the tree only.
pub(crate) const RARE_WORD: &str = "zanzibar";
const RARE_AT: usize = 7_321;
pub(crate) const TREE_FILES: usize = 10_000;
const FILES_PER_FOLDER: usize = 100;
const REPOSITORY_FILES: usize = 500;

/// A folder for the run: workspaces, and the state folders of our server beside them.
pub(crate) struct Playground {
    folder: TempDir,
}

impl Playground {
    pub(crate) fn make() -> Result<Self> {
        let playground = Self { folder: tempfile::tempdir().context("cannot make a temporary folder")? };
        fs::create_dir(playground.pages())?;
        fs::write(playground.page(), page())?;
        write_tree(&playground.tree(), TREE_FILES)?;
        write_tree(&playground.repository(), REPOSITORY_FILES)?;
        commit(&playground.repository())?;
        Ok(playground)
    }

    /// A workspace with one page in it.
    pub(crate) fn pages(&self) -> PathBuf {
        self.folder.path().join("pages")
    }

    pub(crate) fn page(&self) -> PathBuf {
        self.pages().join(PAGE)
    }

    /// A workspace with many files.
    pub(crate) fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// A git repository with one changed and one untracked file.
    pub(crate) fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// A state folder of our server, kept from one start to the next.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join("state").join(name)
    }
}

/// Lines of prose, cut at the size: what a model reads is rarely one long line.
fn page() -> String {
    let mut text: String =
        (0..).map(|line| format!("{line:04} a page is read again and again, whole\n")).take(100).collect();
    text.truncate(PAGE_BYTES);
    text
}

pub(crate) fn write_tree(root: &Path, files: usize) -> Result<()> {
    for index in 0..files {
        let folder = root.join(format!("folder-{:03}", index / FILES_PER_FOLDER));
        if index % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let word = if index == RARE_AT { RARE_WORD } else { "ordinary" };
        let line = format!("file {index} has {word} words, line by line\n");
        fs::write(folder.join(format!("file-{index:05}.txt")), line.repeat(20))?;
    }
    Ok(())
}

fn commit(repository: &Path) -> Result<()> {
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgSign=false"];
        shell::must_run(Command::new("git").args(author).args(arguments).current_dir(repository))
    };
    git(&["init", "--quiet"])?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "--message", "the beginning"])?;
    fs::write(repository.join("folder-000/file-00000.txt"), "changed\n")?;
    fs::write(repository.join("untracked.txt"), "untracked\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, page};

    #[test]
    fn the_page_has_its_size() {
        assert_eq!(page().len(), PAGE_BYTES);
    }
}
