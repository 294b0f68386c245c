//! What arms git, put back after commands that may write.
//!
//! In the full fence `hooks`, `config` and `info` are read-only mounts. Other files cannot be: they are usually not
//! there, and there is nothing to mount over. `commondir` would move the whole configuration elsewhere, and
//! `config.worktree` adds to it. Without a mount namespace none can be mounted over. So the host looks before and after,
//! and puts back what has changed, before anybody else runs git here.
//!
//! Commands overlap. "Before" is therefore before the first of them: what one has planted is never another's truth.

use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt, Permissions};

use crate::error::{Error, Result};
use crate::fence::Tier;
use crate::local::Room;

/// Files that no mount can hold.
const ALWAYS: &[&str] = &["commondir", "config.worktree"];
/// What the full fence holds by mounts.
const WITHOUT_MOUNTS: &[&str] = &["config", "info/attributes"];
const HOOKS: &str = "hooks";
/// Larger files cannot be put back; nobody's git configuration is.
const KEPT_BYTES_MAX: u64 = 1024 * 1024;
/// With more hooks than this commands that may write are refused where the hooks cannot be mounted over.
const HOOKS_MAX: usize = 1000;

/// The guard of one workspace.
#[derive(Clone, Default)]
pub(crate) struct GitGuard {
    /// How many commands are under way, and what was there before the first.
    under_way: Arc<Mutex<Option<(usize, Arc<Baseline>)>>>,
}

/// One command's share in the guard; dropping it puts everything back.
pub(crate) struct Lease {
    guard: GitGuard,
    baseline: Option<Arc<Baseline>>,
}

struct Baseline {
    folders: Vec<Folder>,
}

struct Folder {
    dir: Dir,
    /// Who files put back belong to.
    owner: (u32, u32),
    with_hooks: bool,
    files: Vec<(String, State)>,
}

/// What is at a name.
#[derive(PartialEq, Eq)]
enum State {
    Absent,
    File {
        bytes: Vec<u8>,
        permissions: Permissions,
    },
    Link(PathBuf),
    /// A folder, or something too large to keep: told apart by identity, left alone while it is the same.
    Other {
        device: u64,
        inode: u64,
        size: u64,
    },
}

impl GitGuard {
    pub(crate) fn enter(&self, room: &Room, tier: Tier) -> Result<Lease> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let baseline = match under_way.as_mut() {
            Some((count, baseline)) => {
                *count += 1;
                Arc::clone(baseline)
            }
            None => {
                let baseline = Arc::new(Baseline::take(room, tier)?);
                *under_way = Some((1, Arc::clone(&baseline)));
                baseline
            }
        };
        Ok(Lease { guard: self.clone(), baseline: Some(baseline) })
    }
}

impl Lease {
    /// Puts back what has changed and names it.
    pub(crate) fn restore(mut self) -> Vec<String> {
        self.end()
    }

    fn end(&mut self) -> Vec<String> {
        let Some(baseline) = self.baseline.take() else { return Vec::new() };
        // Held while restoring: a command that begins meanwhile must not take a half restored state for its truth.
        let mut under_way = self.guard.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let restored = baseline.folders.iter().flat_map(Folder::restore).collect();
        if let Some((count, _)) = under_way.as_mut() {
            *count -= 1;
            if *count == 0 {
                *under_way = None;
            }
        }
        restored
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.end();
    }
}

impl Baseline {
    fn take(room: &Room, tier: Tier) -> Result<Self> {
        let mut folders = Vec::new();
        for path in room.git_folders() {
            let Ok(dir) = Dir::open_ambient_dir(path, ambient_authority()) else { continue };
            let with_hooks = tier != Tier::Full;
            let mut names: Vec<String> = ALWAYS.iter().map(|name| (*name).to_owned()).collect();
            if with_hooks {
                names.extend(WITHOUT_MOUNTS.iter().map(|name| (*name).to_owned()));
                let hooks = hooks(&dir);
                if hooks.len() > HOOKS_MAX {
                    let (actual, limit) = (hooks.len() as u64, HOOKS_MAX as u64);
                    return Err(Error::Limit { what: "the number of git hooks".to_owned(), actual, limit });
                }
                names.extend(hooks);
            }
            let owner = dir.dir_metadata().map_or((0, 0), |metadata| (metadata.uid(), metadata.gid()));
            let files = names.into_iter().map(|name| (look(&dir, &name), name)).map(|(state, name)| (name, state));
            folders.push(Folder { files: files.collect(), with_hooks, owner, dir });
        }
        Ok(Self { folders })
    }
}

impl Folder {
    fn restore(&self) -> Vec<String> {
        let now = if self.with_hooks { hooks(&self.dir) } else { Vec::new() };
        let planted = now.into_iter().filter(|name| !self.files.iter().any(|(known, _)| known == name));
        let planted: Vec<(String, State)> = planted.map(|name| (name, State::Absent)).collect();
        let mut restored = Vec::new();
        for (name, before) in self.files.iter().chain(&planted) {
            if look(&self.dir, name) == *before {
                continue;
            }
            remove(&self.dir, name);
            if let Err(error) = self.put_back(name, before) {
                tracing::error!(%error, name, "a git file could not be put back");
            }
            restored.push(format!(".git/{name}"));
        }
        restored
    }

    fn put_back(&self, name: &str, before: &State) -> std::io::Result<()> {
        match before {
            State::Absent => return Ok(()),
            State::File { bytes, permissions } => {
                self.dir.write(name, bytes)?;
                self.dir.set_permissions(name, permissions.clone())?;
            }
            State::Link(target) => self.dir.symlink_contents(target, name)?,
            State::Other { .. } => return Err(std::io::Error::other("it was not kept")),
        }
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (uid, gid) = (rustix::fs::Uid::from_raw(self.owner.0), rustix::fs::Gid::from_raw(self.owner.1));
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::chownat(&self.dir, name, Some(uid), Some(gid), flags)?)
    }
}

fn hooks(dir: &Dir) -> Vec<String> {
    let entries = dir.read_dir(HOOKS).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(format!("{HOOKS}/{}", entry.file_name().to_str()?))).collect()
}

fn look(dir: &Dir, name: &str) -> State {
    let Ok(metadata) = dir.symlink_metadata(name) else { return State::Absent };
    if metadata.is_symlink() {
        // Its words, not what they lead to.
        return dir.read_link_contents(name).map_or(State::Absent, State::Link);
    }
    let other = State::Other { device: metadata.dev(), inode: metadata.ino(), size: metadata.len() };
    if !metadata.is_file() || metadata.len() > KEPT_BYTES_MAX {
        return if metadata.is_dir() {
            State::Other { device: metadata.dev(), inode: metadata.ino(), size: 0 }
        } else {
            other
        };
    }
    let mut bytes = Vec::new();
    let read = dir.open(name).and_then(|file| file.take(KEPT_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or(other, |_| State::File { bytes, permissions: metadata.permissions() })
}

fn remove(dir: &Dir, name: &str) {
    let folder = dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir());
    // Not there is as good; what cannot be removed is said by the writing that follows.
    let _ = if folder { dir.remove_dir_all(name) } else { dir.remove_file(name) };
}
