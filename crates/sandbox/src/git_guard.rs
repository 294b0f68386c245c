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
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt, Permissions};

use crate::error::{Error, Result};
use crate::fence::Tier;
use crate::local::Room;
use crate::path::POLICY_FILE;

/// Files that no mount can hold.
const ALWAYS: &[&str] = &["commondir", "config.worktree"];
/// What the full fence holds by mounts.
const WITHOUT_MOUNTS: &[&str] = &["config", "info/attributes"];
/// What arms the repositories kept inside: linked worktrees and submodules.
const OF_OTHERS: &[(&str, &[&str])] = &[
    ("worktrees", &["commondir", "gitdir", "config.worktree"]),
    ("modules", &["config", "config.worktree", "commondir", "info/attributes"]),
];
/// Worktrees and submodules looked after.
const OTHERS_MAX: usize = 200;
const HOOKS: &str = "hooks";
/// Larger files cannot be put back; nobody's git configuration is.
const KEPT_BYTES_MAX: u64 = 1024 * 1024;
/// With more hooks than this commands that may write are refused where the hooks cannot be mounted over.
const HOOKS_MAX: usize = 1000;

/// The guard of one workspace.
#[derive(Clone, Default)]
pub(crate) struct GitGuard {
    /// How many commands are under way, and what was there before the first.
    under_way: Arc<Mutex<Option<UnderWay>>>,
}

type UnderWay = (usize, Arc<Baseline>);

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
    /// How it is called in the workspace.
    name: &'static str,
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
        if let Ok(dir) = Dir::open_ambient_dir(&room.root, ambient_authority()) {
            // The policy is no git file, but it is held for the same reason and in the same way.
            let owner = owner_of(&dir);
            let files = vec![(POLICY_FILE.to_owned(), look(&dir, POLICY_FILE))];
            folders.push(Folder { dir, name: "", owner, with_hooks: false, files });
        }
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
                names.push(HOOKS.to_owned());
                names.extend(hooks);
            }
            names.extend(of_others(&dir));
            let owner = owner_of(&dir);
            let files = names.into_iter().map(|name| (look(&dir, &name), name)).map(|(state, name)| (name, state));
            folders.push(Folder { files: files.collect(), name: ".git/", with_hooks, owner, dir });
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
            restored.push(format!("{}{name}", self.name));
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

fn owner_of(dir: &Dir) -> (u32, u32) {
    dir.dir_metadata().map_or((0, 0), |metadata| (metadata.uid(), metadata.gid()))
}

fn of_others(dir: &Dir) -> Vec<String> {
    let mut names = Vec::new();
    for (folder, files) in OF_OTHERS {
        for entry in dir.read_dir(folder).into_iter().flatten().flatten().take(OTHERS_MAX) {
            let Some(other) = entry.file_name().to_str().map(|name| format!("{folder}/{name}")) else { continue };
            names.extend(files.iter().map(|file| format!("{other}/{file}")));
            let hooks = dir.read_dir(format!("{other}/{HOOKS}")).into_iter().flatten().flatten().take(HOOKS_MAX);
            names.extend(hooks.filter_map(|hook| Some(format!("{other}/{HOOKS}/{}", hook.file_name().to_str()?))));
        }
    }
    names
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
    // Somebody may put a FIFO there in between.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let read = dir.open_with(name, &options).and_then(|file| file.take(KEPT_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or(other, |_| State::File { bytes, permissions: metadata.permissions() })
}

fn remove(dir: &Dir, name: &str) {
    let folder = dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir());
    // Not there is as good; what cannot be removed is said by the writing that follows.
    let _ = if folder { dir.remove_dir_all(name) } else { dir.remove_file(name) };
}
