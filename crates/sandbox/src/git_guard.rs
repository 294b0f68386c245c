//! What arms git, put back after a command that may write.
//!
//! In the full fence `hooks`, `config` and `info` are read-only mounts. Other files cannot be: they are usually not
//! there, and there is nothing to mount over. `commondir` would move the whole configuration elsewhere, and
//! `config.worktree` adds to it. Without a mount namespace none can be mounted over. So the host looks before and after,
//! and puts back what has changed, before anybody else runs git here.

use std::io::Read;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, Permissions};

use crate::fence::Tier;
use crate::local::Room;

/// Files that no mount can hold.
const ALWAYS: &[&str] = &["commondir", "config.worktree"];
/// What the full fence holds by mounts.
const WITHOUT_MOUNTS: &[&str] = &["config", "info/attributes"];
const HOOKS: &str = "hooks";
/// Larger files are not kept; nobody's git configuration is.
const KEPT_BYTES_MAX: u64 = 1024 * 1024;
const HOOKS_MAX: usize = 200;

/// The state before; dropping it puts everything back.
pub(crate) struct GitGuard {
    folders: Vec<Folder>,
}

struct Folder {
    dir: Dir,
    with_hooks: bool,
    /// Name and what it was; `None`: it was not there.
    files: Vec<(String, Option<Kept>)>,
}

#[derive(PartialEq, Eq)]
struct Kept {
    bytes: Vec<u8>,
    permissions: Permissions,
}

impl GitGuard {
    pub(crate) fn take(room: &Room, tier: Tier) -> Self {
        let folders = room.git_folders().into_iter().filter_map(|path| {
            let dir = Dir::open_ambient_dir(path, ambient_authority()).ok()?;
            let with_hooks = tier != Tier::Full;
            let mut names: Vec<String> = ALWAYS.iter().map(|name| (*name).to_owned()).collect();
            if with_hooks {
                names.extend(WITHOUT_MOUNTS.iter().map(|name| (*name).to_owned()));
                names.extend(hooks(&dir));
            }
            let files = names.into_iter().map(|name| {
                let content = content(&dir, &name);
                (name, content)
            });
            Some(Folder { files: files.collect(), with_hooks, dir })
        });
        Self { folders: folders.collect() }
    }

    /// Puts back what has changed and names it.
    pub(crate) fn restore(&mut self) -> Vec<String> {
        let folders = std::mem::take(&mut self.folders);
        folders.iter().flat_map(Folder::restore).collect()
    }
}

impl Drop for GitGuard {
    fn drop(&mut self) {
        self.restore();
    }
}

impl Folder {
    fn restore(&self) -> Vec<String> {
        let mut restored = Vec::new();
        let planted = if self.with_hooks { hooks(&self.dir) } else { Vec::new() };
        let planted = planted.into_iter().filter(|name| !self.files.iter().any(|(known, _)| known == name));
        let planted: Vec<(String, Option<Kept>)> = planted.map(|name| (name, None)).collect();
        for (name, before) in self.files.iter().chain(&planted) {
            if content(&self.dir, name) == *before && (before.is_some() || self.dir.symlink_metadata(name).is_err()) {
                continue;
            }
            remove(&self.dir, name);
            if let Some(kept) = before {
                let put = self.dir.write(name, &kept.bytes);
                if let Err(error) = put.and_then(|()| self.dir.set_permissions(name, kept.permissions.clone())) {
                    tracing::error!(%error, name, "a git file could not be put back");
                }
            }
            restored.push(format!(".git/{name}"));
        }
        restored
    }
}

fn hooks(dir: &Dir) -> Vec<String> {
    let entries = dir.read_dir(HOOKS).into_iter().flatten().flatten().take(HOOKS_MAX);
    entries.filter_map(|entry| Some(format!("{HOOKS}/{}", entry.file_name().to_str()?))).collect()
}

/// A link is as good as absent: following it would read what a command chose.
fn content(dir: &Dir, name: &str) -> Option<Kept> {
    let metadata = dir.symlink_metadata(name).ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    dir.open(name).ok()?.take(KEPT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(Kept { bytes, permissions: metadata.permissions() })
}

fn remove(dir: &Dir, name: &str) {
    let folder = dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir());
    // Not there is as good; what cannot be removed is said by the writing that follows.
    let _ = if folder { dir.remove_dir_all(name) } else { dir.remove_file(name) };
}
