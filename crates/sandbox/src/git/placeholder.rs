//! An empty folder, or an empty file, where nothing may be made.
//!
//! A name that does not exist cannot be mounted over. So an empty folder or file, which means nothing to git, stands there
//! while a command runs, and is mounted read-only. Removing it would take the mount of every command away, so each command holds a
//! shared lock on it, and only who holds it alone removes it.

use std::fs::Metadata;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, ResolveFlags, flock, fstat, mkdirat, openat, openat2, unlinkat,
};
use rustix::io::Errno;

/// How often, and after which pause, making and locking is tried anew where somebody removes it meanwhile.
const TRIES_MAX: usize = 100;
const TRIES_PAUSE: Duration = Duration::from_millis(2);
/// Nobody writes into it; that also tells ours from an empty folder of the person's. The rest of a mode does not: a umask
/// takes bits away, and a folder around it with the set-group-id bit adds that one.
const MODE: Mode = Mode::from_raw_mode(0o555);
const FILE_MODE: Mode = Mode::from_raw_mode(0o444);
const WRITABLE: u32 = 0o222;

/// What stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    Folder,
    /// Where a file is read: a configuration, a hook.
    File,
}

impl Empty {
    /// What is at `path` and could be a placeholder of another command: an empty folder, or an empty file that nobody may write.
    pub(crate) fn found(path: &Path, found: &Metadata) -> Option<Self> {
        if found.is_dir() {
            let is_empty = match std::fs::read_dir(path) {
                Ok(mut entries) => entries.next().is_none(),
                // Another command's end has removed it since: what stands there now may be the next one's.
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            };
            return is_empty.then_some(Self::Folder);
        }
        (found.is_file() && found.len() == 0 && found.mode() & WRITABLE == 0).then_some(Self::File)
    }
}

/// Held for as long as this lives.
pub(crate) struct Placeholder {
    /// The folders that were made for it, the outermost first: each with its parent and name.
    made: Vec<(OwnedFd, String)>,
    parent: OwnedFd,
    name: String,
    folder: OwnedFd,
    what: Empty,
}

impl Placeholder {
    /// Makes and locks `path`, relative to the folder `top`, with the folders above it that are missing.
    ///
    /// `None`: something is there by now, or nobody could make anything there.
    pub(crate) fn hold(top: &OwnedFd, path: &Path, what: Empty) -> Result<Option<Self>> {
        let names: Vec<&str> = path
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or(Errno::INVAL)?;
        let Some((name, above)) = names.split_last() else { return Ok(None) };
        let (mut parent, mut made) = (top.try_clone()?, Vec::new());
        for folder in above {
            match mkdirat(&parent, *folder, Mode::from_raw_mode(0o755)) {
                Ok(()) => made.push((parent.try_clone()?, (*folder).to_owned())),
                Err(Errno::EXIST) => {}
                Err(Errno::ACCESS | Errno::ROFS) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            parent = open_folder(&parent, folder)?;
        }
        for _ in 0..TRIES_MAX {
            let there = match what {
                Empty::Folder => mkdirat(&parent, *name, MODE),
                Empty::File => {
                    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::CLOEXEC;
                    openat(&parent, *name, flags, FILE_MODE).map(drop)
                }
            };
            match there {
                Ok(()) | Err(Errno::EXIST) => {}
                // Whom the kernel lets nothing make here, neither can a command.
                Err(Errno::ACCESS | Errno::ROFS) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            let folder = match open(&parent, name, what) {
                Ok(folder) => folder,
                Err(Errno::NOENT) => continue,
                // A file by now.
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            if flock(&folder, FlockOperation::NonBlockingLockShared).is_err() {
                std::thread::sleep(TRIES_PAUSE);
                continue;
            }
            // Who held it alone may have removed it before we got it.
            if is_at(&parent, name, &folder) {
                return Ok(Some(Self { made, parent, name: (*name).to_owned(), folder, what }));
            }
        }
        Err(std::io::Error::other("an empty folder could not be held in the workspace"))
    }

    /// Removes what a host that was killed has left at `path`, if nobody uses it.
    pub(crate) fn sweep(top: &OwnedFd, path: &str) {
        let Ok(folder) = open_folder(top, path) else { return };
        let ours = fstat(&folder).is_ok_and(|stat| stat.st_mode & WRITABLE == 0);
        if let (true, Ok(parent)) = (ours, top.try_clone()) {
            drop(Self { made: Vec::new(), parent, name: path.to_owned(), folder, what: Empty::Folder });
        }
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // Where another command still needs it, that one removes it.
        if flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.remove();
        }
        // Closing it alone would not do: a process that is being started just then has a handle of it, too.
        let _ = flock(&self.folder, FlockOperation::Unlock);
    }
}

impl Placeholder {
    /// Ours and still empty, or it stays: `rmdir` takes nothing else.
    fn remove(&self) {
        let flags = if self.what == Empty::Folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        let ours = fstat(&self.folder)
            .is_ok_and(|stat| stat.st_mode & WRITABLE == 0 && (self.what == Empty::Folder || stat.st_size == 0));
        if !ours || !is_at(&self.parent, &self.name, &self.folder) {
            return;
        }
        if unlinkat(&self.parent, &*self.name, flags).is_ok() {
            for (parent, name) in self.made.iter().rev() {
                if unlinkat(parent, &**name, AtFlags::REMOVEDIR).is_err() {
                    return;
                }
            }
        }
    }
}

fn is_at(parent: &OwnedFd, name: &str, folder: &OwnedFd) -> bool {
    let there = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    matches!((there, fstat(folder)), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

fn open_folder(parent: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    open(parent, name, Empty::Folder)
}

fn open(parent: &OwnedFd, name: &str, what: Empty) -> rustix::io::Result<OwnedFd> {
    let folder = if what == Empty::Folder { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
    let flags = OFlags::RDONLY | folder | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(parent, name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => openat(parent, name, flags, Mode::empty()),
        opened => opened,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_goes_while_it_is_looked_at_is_no_work_of_somebody_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("here");
        std::fs::create_dir(&path).unwrap();
        let found = path.symlink_metadata().unwrap();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(Empty::found(&path, &found), Some(Empty::Folder));
    }

    #[test]
    fn a_folder_is_held_again_though_a_process_that_is_being_started_has_a_handle_of_it() {
        let folder = tempfile::tempdir().unwrap();
        // One of the person's, which is not taken away.
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        let top = openat(rustix::fs::CWD, folder.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let held = Placeholder::hold(&top, Path::new("empty"), Empty::Folder).unwrap().unwrap();
        let _inherited = held.folder.try_clone().unwrap();
        drop(held);
        assert!(Placeholder::hold(&top, Path::new("empty"), Empty::Folder).unwrap().is_some());
    }
}
