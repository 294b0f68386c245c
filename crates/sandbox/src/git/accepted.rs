//! Whether git still takes a folder for a repository, and whether it can read it without waiting.
//!
//! Where git does not accept `.git` any more, it looks for a repository elsewhere, first in the folder around it. And it waits
//! without end for a FIFO in the place of one of its files. In the Landlock tier a command can bring about both.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};
use serde::{Deserialize, Serialize};

use super::read::Top;
use super::snapshot::{State, names, open};

/// Most files looked at below one repository's folder, without those that hold its objects.
const FILES_MAX: usize = 200_000;
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
pub(super) fn is_head(state: &State) -> bool {
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

/// What is in a repository's folder that commands may change, and must not leave there.
#[derive(Debug, Default)]
pub(crate) struct Strange {
    /// What git would wait for: FIFOs, and links to them and to devices. Relative to `top`, as the links are.
    pub(crate) waited_for: Vec<PathBuf>,
    /// Links: git writes through one in the place of a file of its own, such as `COMMIT_EDITMSG` or `logs/HEAD`, into the file
    /// that it leads to.
    pub(super) links: Vec<PathBuf>,
    /// Folders that could not be looked into.
    pub(super) closed: Vec<PathBuf>,
    /// Whether there is more than [`FILES_MAX`].
    pub(super) too_many: bool,
}

/// Looks through the repository's folder `git`, relative to `top`.
pub(crate) fn strange(top: &Top, git: &Path) -> Strange {
    let (mut found, mut left) = (Strange::default(), FILES_MAX);
    let mut todo = VecDeque::from([git.to_owned()]);
    while let Some(path) = todo.pop_front() {
        let listed = open(top, &path).and_then(|folder| Ok((names(&folder)?, folder)));
        let (names, folder) = match listed {
            Ok(listed) => listed,
            // One that is gone meanwhile, or too deep for git as well, holds nothing.
            Err(error) => {
                let is_closed = error.kind() == std::io::ErrorKind::PermissionDenied;
                found.closed.extend(is_closed.then_some(path));
                continue;
            }
        };
        for name in names {
            let Some(fewer) = left.checked_sub(1) else {
                found.too_many = true;
                return found;
            };
            left = fewer;
            let at = path.join(&name);
            let Ok(stat) = statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Fifo => found.waited_for.push(at),
                FileType::Directory if !is_fanout(&at) => todo.push_back(at),
                FileType::Symlink => {
                    let target = statat(&folder, &*name, AtFlags::empty());
                    let target = target.map(|stat| FileType::from_raw_mode(stat.st_mode));
                    if matches!(target, Ok(FileType::Fifo | FileType::CharacterDevice)) {
                        found.waited_for.push(at.clone());
                    }
                    found.links.push(at);
                }
                _ => {}
            }
        }
    }
    found
}

/// A folder of loose objects, as large repositories have them in their hundreds: git opens one only when it is asked for it, and
/// writes none over.
fn is_fanout(path: &Path) -> bool {
    let in_objects = path.parent().is_some_and(|above| above.ends_with("objects"));
    in_objects && path.file_name().is_some_and(|name| name.len() == 2)
}
