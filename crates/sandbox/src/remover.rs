//! Removing a tree that somebody else made, however deep it is.
//!
//! `remove_dir_all` recurses, so a tree of twenty thousand levels ends the process. Here nothing recurses and two folders
//! are open at a time: the way down is kept as a list, and the way up is `..`, which must be the very folder that the way
//! down came through. All names are single components below an open handle, so no path grows too long and no link is
//! followed.

use std::ffi::{CStr, CString};
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// Most files and folders that one removal takes away; what has more stays and is an error.
pub(crate) const REMOVED_ENTRIES_MAX: u64 = 5_000_000;

/// How a folder is opened to be locked.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// How often a folder is made anew that was swept as it was made.
const TRIES: usize = 10;

/// Removes what is at `name` in `parent`: a file, a link or a whole tree. Nothing there is as good.
///
/// # Errors
/// What could not be removed, or more than `REMOVED_ENTRIES_MAX` entries; then part of the tree may be gone.
pub fn remove_tree(parent: impl AsFd, name: &str) -> Result<()> {
    remove_some(parent.as_fd(), name, REMOVED_ENTRIES_MAX)
}

/// Removes a folder with all that is in it, whoever made that and however deep it is.
///
/// # Errors
/// What could not be removed, or more files and folders than are removed at once; then part of it may be gone.
pub fn remove_folder(folder: &Path) -> Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name().and_then(|name| name.to_str())) else {
        return Err(Error::other("it has no name that is text"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    remove_tree(rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?, name)
}

/// The same with a limit of its own on files and folders.
pub(crate) fn remove_some(parent: impl AsFd, name: &str, entries_max: u64) -> Result<()> {
    let name = CString::new(name)?;
    match rustix::fs::unlinkat(&parent, &*name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // A folder; POSIX says EPERM, Linux EISDIR.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    let top = match open_folder(&parent, &name) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    Emptying { left: entries_max, most: entries_max }.run(top)?;
    match rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One removal under way.
struct Emptying {
    /// How many entries may still be removed.
    left: u64,
    most: u64,
}

/// A folder on the way down.
struct Level {
    /// Its device and inode.
    identity: (u64, u64),
    /// Folders in it that are still there.
    folders: Vec<CString>,
}

impl Emptying {
    fn run(mut self, top: OwnedFd) -> Result<()> {
        let mut here = top;
        let mut way = vec![self.enter(&here)?];
        loop {
            let level = way.last_mut().ok_or_else(exchanged)?;
            if let Some(name) = level.folders.last() {
                match rustix::fs::unlinkat(&here, &**name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {
                        level.folders.pop();
                    }
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => {
                        here = open_folder(&here, name)?;
                        let inner = self.enter(&here)?;
                        way.push(inner);
                    }
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            way.pop();
            let Some(above) = way.last() else { return Ok(()) };
            here = open_folder(&here, c"..")?;
            // Somebody may have moved what is being removed to another place, where nothing is to be removed.
            if identity(&here)? != above.identity {
                return Err(exchanged());
            }
        }
    }

    /// Unlinks every file in a folder and answers the folders in it.
    fn enter(&mut self, folder: &OwnedFd) -> Result<Level> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or_else(|| too_many(self.most))?;
            // What the file system says of the kind may be nothing, so unlinking decides.
            match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) if entry.file_type() != FileType::RegularFile => {
                    folders.push(name.to_owned());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Level { identity: identity(folder)?, folders })
    }
}

fn identity(folder: &OwnedFd) -> Result<(u64, u64)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn exchanged() -> Error {
    Error::other("it was moved while it was removed")
}

fn too_many(most: u64) -> Error {
    Error::other(format!("it holds more than {most} files and folders"))
}

/// Opens a folder by one name below a handle and through no link. One of ours that is closed to its owner is opened up first.
fn open_folder(parent: impl AsFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(
        &parent,
        name,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        // Through the handle: a name could meanwhile lead elsewhere. Where it is not ours, the opening says so.
        let _ = rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode | Mode::RWXU);
    }
    rustix::fs::openat(&handle, c".", flags, Mode::empty())
}

/// A private temporary folder of one command or of one session, removed with whatever the command left there when this is dropped, or by
/// [`sweep`] when its host was killed.
pub(crate) struct Scratch {
    parent: PathBuf,
    name: String,
    /// The folder itself, locked for as long as this host uses it.
    lock: OwnedFd,
}

impl Scratch {
    /// Makes `<parent>/<prefix><random>`, readable by its owner alone.
    pub(crate) fn new(parent: &Path, prefix: &str) -> Result<Self> {
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?.keep();
            // Another host may have swept it before it was locked.
            let Ok(lock) = rustix::fs::open(&folder, FOLDER, Mode::empty()) else { continue };
            let locked = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared).is_ok();
            if locked && rustix::fs::fstat(&lock)?.st_nlink > 0 {
                let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
                return Ok(Self { parent: parent.to_owned(), name, lock });
            }
        }
        Err(Error::other("another host removes each new temporary folder"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The folder itself, whatever its path leads to.
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }
}

/// Removes the folders of that prefix in `parent` that hosts of this user have left because they were killed.
pub(crate) fn sweep(parent: &Path, prefix: &str) -> Result<()> {
    let parent = rustix::fs::open(parent, FOLDER, Mode::empty())?;
    let user = rustix::process::geteuid();
    for entry in Dir::read_from(&parent)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| name.starts_with(prefix)) else { continue };
        let Ok(folder) = rustix::fs::openat(&parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { continue };
        // A host that is root gives the folder to the user whom its command becomes.
        let own = user.is_root() || rustix::fs::fstat(&folder)?.st_uid == user.as_raw();
        if own && rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_tree(&parent, name)?;
        }
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let removed = rustix::fs::open(&self.parent, flags, Mode::empty())
            .map_err(Error::from)
            .and_then(|parent| remove_tree(&parent, &self.name));
        if let Err(error) = removed {
            tracing::warn!(%error, "a temporary folder could not be removed");
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A tree deeper than any stack and any path, made without recursion.
    fn deep(folder: &Path, levels: usize) {
        let mut here = rustix::fs::open(folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for _ in 0..levels {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
        rustix::fs::mkdirat(&here, "closed", Mode::empty()).unwrap();
    }

    fn room() -> Scratch {
        // In memory: the trees of these tests are large.
        Scratch::new(Path::new("/dev/shm"), "remover-").unwrap()
    }

    #[test]
    fn what_a_dead_host_has_left_is_swept_and_what_a_live_one_uses_stays() {
        let room = room();
        let alive = Scratch::new(&room.path(), "run-").unwrap();
        let dead = room.path().join("run-dead");
        std::fs::create_dir_all(dead.join("a/b")).unwrap();
        std::fs::create_dir(room.path().join("other")).unwrap();
        std::fs::create_dir(room.path().join("outside")).unwrap();
        symlink(room.path().join("outside"), room.path().join("run-link")).unwrap();
        sweep(&room.path(), "run-").unwrap();
        let there = |name: &str| room.path().join(name).exists();
        assert!(!dead.exists() && alive.path().exists() && there("other") && there("outside") && there("run-link"));
        let left = alive.path();
        drop(alive);
        assert!(!left.exists());
    }

    fn handle(folder: &Path) -> OwnedFd {
        rustix::fs::open(folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn a_tree_of_20_000_levels_is_removed_on_a_small_stack() {
        let room = room();
        let tree = room.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        deep(&tree, 20_000);
        let parent = handle(&room.path());
        let small = std::thread::Builder::new().stack_size(128 * 1024);
        small.spawn(move || remove_tree(&parent, "tree")).unwrap().join().unwrap().unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn closed_folders_wide_folders_and_links_go_and_what_links_lead_to_stays() {
        let room = room();
        let (tree, outside) = (room.path().join("tree"), room.path().join("outside"));
        std::fs::create_dir_all(tree.join("a/b/c")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        for n in 0..3000 {
            std::fs::create_dir_all(tree.join(format!("wide/{n}/x"))).unwrap();
        }
        for closed in ["a/b/c", "a/b", "a"] {
            std::fs::set_permissions(tree.join(closed), PermissionsExt::from_mode(0o000)).unwrap();
        }
        remove_tree(handle(&room.path()), "tree").unwrap();
        assert!(!tree.exists());
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn files_links_and_nothing_at_all_are_removed_by_name() {
        let room = room();
        std::fs::write(room.path().join("file"), "x").unwrap();
        symlink("nowhere", room.path().join("link")).unwrap();
        for name in ["file", "link", "missing"] {
            remove_tree(handle(&room.path()), name).unwrap();
        }
        assert_eq!(std::fs::read_dir(room.path()).unwrap().count(), 0);
    }

    #[test]
    fn more_entries_than_the_limit_are_an_error() {
        let room = room();
        for n in 0..20 {
            std::fs::create_dir_all(room.path().join(format!("tree/{n}"))).unwrap();
        }
        assert!(remove_some(handle(&room.path()), "tree", 10).is_err());
        assert!(room.path().join("tree").exists());
    }
}
