//! What is mounted for a command, which file or folder it is, and whether somebody exchanges it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, inotify};
use serde::{Deserialize, Serialize};

use super::read::{Identity, Top};
use crate::fence::Mounted;

/// Room for the events that are read at once.
const EVENTS_BYTES: usize = 4096;

/// A mount inside the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Mount {
    pub(crate) at: Mounted,
    pub(crate) writable: bool,
}

/// A name that was mounted, and what it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MountedPlace {
    pub(super) top: Top,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    /// Whether nothing was there but a placeholder.
    pub(super) is_empty: bool,
}

impl MountedPlace {
    /// Whether something else is there now.
    pub(super) fn is_exchanged(&self) -> bool {
        match look(&self.top, &self.path) {
            Some(now) => now.identity != self.identity,
            // A link leads where its maker wants.
            None => self.top.path().join(&self.path).symlink_metadata().is_ok(),
        }
    }

    /// The name, if what a command of a host that was killed had mounted there is another now.
    pub(super) fn exchanged(&self) -> Option<String> {
        let is_exchanged = !self.is_empty && self.top.open().is_ok() && self.is_exchanged();
        is_exchanged.then(|| self.path.to_string_lossy().into_owned())
    }
}

/// What is at a name.
pub(super) struct Looked {
    pub(super) at: Mounted,
    pub(super) identity: Identity,
}

/// What is at `name` below `folder`, if no link leads there.
pub(super) fn look(folder: &Top, name: &Path) -> Option<Looked> {
    let folder_fd = folder.open().ok()?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat2(&folder_fd, name, flags, Mode::empty(), resolve).ok()?;
    let stat = rustix::fs::fstat(&found).ok()?;
    // With O_PATH and O_NOFOLLOW a link at the end is opened itself.
    let link = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink();
    let at = Mounted { path: folder.path().join(name), device: stat.st_dev, inode: stat.st_ino };
    (!link).then_some(Looked { at, identity: Identity::of_opened(&found).ok()? })
}

/// Watches whether somebody moves what is mounted. Somebody who moves it away and back leaves no other trace, and in between the
/// command could write into what stood there.
#[derive(Default)]
pub(super) struct Moves {
    /// `None`: the kernel has no watches left, and only what is another at the end is noticed.
    watches: Option<OwnedFd>,
    names: BTreeMap<i32, String>,
}

impl Moves {
    pub(super) fn watch(root: &Top, mounts: &[Mount]) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let Ok(watches) = inotify::init(flags) else { return Self::default() };
        let mut names = BTreeMap::new();
        for path in mounts.iter().map(|mount| &mount.at.path) {
            // Its placeholders go when they are no longer needed: only moves count.
            if let Ok(watch) = inotify::add_watch(&watches, path, inotify::WatchFlags::MOVE_SELF) {
                let name = path.strip_prefix(root.path()).unwrap_or(path);
                names.insert(watch, name.to_string_lossy().into_owned());
            }
        }
        Self { watches: Some(watches), names }
    }

    /// The names of what was moved.
    pub(super) fn seen(&self) -> Vec<String> {
        let Some(watches) = &self.watches else { return Vec::new() };
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; EVENTS_BYTES];
        let mut reader = inotify::Reader::new(watches, &mut buffer);
        let mut moved = BTreeSet::new();
        while let Ok(event) = reader.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                return self.names.values().cloned().collect();
            }
            moved.extend(
                self.names.get(&event.wd()).cloned().filter(|_| event.events().contains(inotify::ReadFlags::MOVE_SELF)),
            );
        }
        moved.into_iter().collect()
    }
}
