//! Repositories that the workspace lies in: whose subfolder, submodule or nested repository it is.
//!
//! A person's git, run above the workspace, obeys what such a repository names inside it: hooks, included settings, the
//! repositories of submodules.

use std::path::{Path, PathBuf};

use super::places::way;
use super::read::{Top, small_text};

/// Most folders above the workspace that are looked at.
const ABOVE_MAX: usize = 64;

/// The repository's folder of a linked worktree, which is outside the workspace.
pub(crate) struct Outer {
    /// The folder that it is in.
    pub(crate) top: Top,
    /// Its name there.
    pub(crate) name: PathBuf,
    pub(crate) git: Top,
}

impl Outer {
    /// The common git folder of a linked worktree, if git itself made the link.
    ///
    /// A `.git` *file* could point anywhere; git's own back link from the other side proves that the pair belongs together.
    /// A command can forge both sides inside the workspace, and a `commondir` that names any folder of the machine: so the
    /// other side must be outside, and just where git puts it below the common folder.
    ///
    /// # Errors
    /// It was moved while it was looked at.
    pub(crate) fn of(root: &Path) -> std::io::Result<Option<Self>> {
        let Some(git) = outer_git(root) else { return Ok(None) };
        let (Some(above), Some(name)) = (git.parent(), git.file_name()) else { return Ok(None) };
        Ok(Some(Self { top: Top::at(above)?, name: PathBuf::from(name), git: Top::at(&git)? }))
    }
}

fn outer_git(root: &Path) -> Option<PathBuf> {
    let text = small_text(&root.join(".git"))?;
    let git = root.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = small_text(&git.join("gitdir"))?;
    if Path::new(back.trim()).canonicalize().ok()? != root.join(".git").canonicalize().ok()? {
        return None;
    }
    let common = small_text(&git.join("commondir"))?;
    let common = git.join(common.trim()).canonicalize().ok()?;
    (git.parent()? == common.join("worktrees") && !common.starts_with(root)).then_some(common)
}

/// A repository around the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Around {
    /// Its top folder.
    pub(crate) top: PathBuf,
    /// Its `.git`, or what that file leads to.
    pub(crate) git: PathBuf,
    /// What git reads of it: `git`, and what that shares with other worktrees.
    pub(crate) folders: Vec<PathBuf>,
}

/// The repositories around a folder, and the folder's own where its `.git` leads out of it; outer ones first.
pub(crate) fn around(root: &Path) -> Vec<Around> {
    let mut found: Vec<Around> = root.ancestors().take(ABOVE_MAX).filter_map(|top| repository(root, top)).collect();
    found.reverse();
    found
}

fn repository(root: &Path, top: &Path) -> Option<Around> {
    let dot_git = top.join(".git");
    let git = if dot_git.is_dir() {
        dot_git.canonicalize().ok()?
    } else {
        let text = small_text(&dot_git)?;
        // It may be missing: a command could make it.
        way(&top.join(text.strip_prefix("gitdir:")?.trim())).1
    };
    let mut folders = vec![git.clone()];
    if let Some(common) = small_text(&git.join("commondir")) {
        folders.extend(git.join(common.trim()).canonicalize().ok());
    }
    // What lies in the workspace is seen anyway, and is not believed to be a person's, unless a file above it says so.
    folders.retain(|folder| folder.is_dir() && !folder.starts_with(root));
    let named_above = top != root && git.starts_with(root);
    (named_above || !folders.is_empty()).then(|| Around { top: top.to_owned(), git, folders })
}

/// The repository's own folder that `root` is or lies in: there a command could write what git obeys.
///
/// Above a working tree nothing is looked at: worktrees may lie in the folder of a bare repository, beside its files.
pub(crate) fn repository_around(root: &Path) -> Option<&Path> {
    for folder in root.ancestors().take(ABOVE_MAX) {
        let is_repository = || {
            folder.join("HEAD").symlink_metadata().is_ok()
                && ["objects", "refs"].iter().all(|name| folder.join(name).is_dir())
        };
        if folder.file_name().is_some_and(|name| name == ".git") {
            return Some(folder);
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        if is_repository() {
            return Some(folder);
        }
    }
    None
}
