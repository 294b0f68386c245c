//! Whether git still takes a folder for a repository, and whether it can read it without waiting.
//!
//! Where git does not accept `.git` any more, it looks for a repository elsewhere, first in the folder around it. And it waits
//! without end for a FIFO in the place of one of its files. In the Landlock tier a command can bring about both.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};
use serde::{Deserialize, Serialize};

use super::snapshot::{State, names, open};

/// Most files looked at below one repository's folder.
const FILES_MAX: usize = 20_000;
/// Folders with files that git opens by itself. Loose objects are left out: git opens one only when it is asked for it.
const READ: [&str; 11] = [
    "refs",
    "logs",
    "objects/info",
    "objects/pack",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "reftable",
    "info",
    "modules",
    "worktrees",
];

/// What git needs in a repository's folder, whose contents commands may otherwise change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Need {
    Head,
    /// `objects` and `refs`.
    Folder,
}

impl Need {
    /// Whether git accepts what is there now, or did not accept what was there before either.
    pub(super) fn is_met(self, was: &State, now: &State) -> bool {
        match self {
            Self::Head => is_head(now) || !is_head(was),
            Self::Folder => is_folder(now) || now == was || !(is_folder(was) || matches!(was, State::Link(_))),
        }
    }
}

fn is_folder(state: &State) -> bool {
    matches!(state, State::Folder { mode, .. } if mode & 0o500 == 0o500)
}

/// As git's `validate_headref`, and no name that leads out of `refs`.
fn is_head(state: &State) -> bool {
    let is_ref = |name: &str| name.starts_with("refs/") && !name.contains("..");
    match state {
        State::Link(target) => target.to_str().is_some_and(is_ref),
        State::File { bytes, mode, .. } if mode & 0o400 != 0 => {
            let text = hex::decode(bytes).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            let text = text.trim_end();
            let is_commit = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_commit || text.strip_prefix("ref:").is_some_and(|name| is_ref(name.trim_start()))
        }
        _ => false,
    }
}

/// The names below the repository's folder `git` that git would wait for: FIFOs, and links to them and to devices. Relative to
/// `top`.
pub(crate) fn waited_for(top: &Path, git: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), FILES_MAX);
    let mut todo = VecDeque::from([git.to_owned()]);
    while let Some(path) = todo.pop_front() {
        let Ok(folder) = open(top, &path) else { continue };
        for name in names(&folder).unwrap_or_default() {
            let Some(fewer) = left.checked_sub(1) else { return found };
            left = fewer;
            let at = path.join(&name);
            let Ok(stat) = statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Fifo => found.push(at),
                FileType::Directory if is_read(&at, git) => todo.push_back(at),
                FileType::Symlink => {
                    let target = statat(&folder, &*name, AtFlags::empty());
                    let target = target.map(|stat| FileType::from_raw_mode(stat.st_mode));
                    if matches!(target, Ok(FileType::Fifo | FileType::CharacterDevice)) {
                        found.push(at);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Repositories of submodules have the same folders; there all are looked at.
fn is_read(path: &Path, git: &Path) -> bool {
    let inner = path.strip_prefix(git).unwrap_or(path);
    let in_objects = inner.parent().is_some_and(|above| above.ends_with("objects"));
    let fanout = in_objects && inner.file_name().is_some_and(|name| name.len() == 2);
    !fanout && (inner == Path::new("objects") || READ.iter().any(|read| inner.starts_with(read)))
}
