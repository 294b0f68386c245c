//! What is in a folder that commands fill: bytes on the disk and entries.
//!
//! Commands may change the folder meanwhile, and may have made it however deep. As in the remover nothing recurses, two folders are open
//! at a time, each name is a single component below an open handle, no link is followed, and the way up must be the very folder that
//! the way down came through.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::io::Result;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// How the kernel ends the name of an open file that has none any more.
const UNLINKED: &[u8] = b" (deleted)";
/// Most open files that are looked at.
const DESCRIPTORS_MAX: usize = 200_000;
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// Bytes and entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Size {
    /// Whether there is more of either.
    pub(super) fn exceeds(self, other: Self) -> bool {
        self.bytes > other.bytes || self.files > other.files
    }

    pub(super) fn most(self, other: Self) -> Self {
        Self { bytes: self.bytes.max(other.bytes), files: self.files.max(other.files) }
    }

    pub(super) fn less(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), files: self.files.saturating_sub(other.files) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), files: self.files.saturating_add(other.files) }
    }
}

/// What was counted.
pub(super) struct Counted {
    pub(super) size: Size,
    /// Nothing was passed over: no folder was closed to this host or moved to another place meanwhile.
    pub(super) is_whole: bool,
}

/// Counts what is in `top`, or until there is more than `enough`. With `open_up` a folder that is closed to this host is opened for as
/// long as it is looked at; otherwise it is passed over.
pub(super) fn count(top: OwnedFd, enough: Size, open_up: bool) -> Result<Counted> {
    let mut counting = Counting { size: Size::default(), enough, is_whole: true, linked: HashSet::new() };
    let mut here = top;
    let mut way = vec![counting.enter(&here, None)?];
    while let Some(level) = way.last_mut() {
        if counting.size.exceeds(enough) {
            break;
        }
        if let Some(name) = level.folders.pop() {
            let Some((folder, closed)) = counting.open(&here, &name, open_up)? else { continue };
            way.push(counting.enter(&folder, closed)?);
            here = folder;
            continue;
        }
        // Closed again at the end of this round, after the way up.
        let _done = way.pop();
        let Some(above) = way.last() else { break };
        // Needs no more of a folder than that it can be passed.
        let up = openat(&here, c"..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        match up.and_then(|up| Ok((identity(&up)?, up))) {
            Ok((found, up)) if found == above.identity => here = up,
            _ => {
                counting.is_whole = false;
                break;
            }
        }
    }
    Ok(Counted { size: counting.size, is_whole: counting.is_whole })
}

/// Bytes of files that lie, or lay, below one of these folders, have no name any more, and are open in one of the processes.
pub(super) fn unlinked_bytes(processes: &[u32], folders: &[PathBuf]) -> u64 {
    let open =
        processes.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let mut seen = HashSet::new();
    let sizes = open.take(DESCRIPTORS_MAX).filter_map(|entry| {
        // Nothing else is asked for its size: a network's file may not answer.
        let target = std::fs::read_link(entry.path()).ok()?;
        let is_there = folders.iter().any(|folder| target.starts_with(folder))
            && target.as_os_str().as_bytes().ends_with(UNLINKED);
        let file = is_there.then(|| std::fs::metadata(entry.path()).ok())??;
        let is_new = file.nlink() == 0 && seen.insert((file.dev(), file.ino()));
        is_new.then(|| file.blocks().saturating_mul(BLOCK_BYTES))
    });
    sizes.sum()
}

struct Counting {
    size: Size,
    enough: Size,
    is_whole: bool,
    /// Files with several names, which are counted once.
    linked: HashSet<u64>,
}

/// A folder on the way down.
struct Level {
    /// Its device and inode.
    identity: (u64, u64),
    /// Folders in it that were not looked at yet.
    folders: Vec<CString>,
    /// It was closed to this host.
    _closed: Option<Closed>,
}

/// A folder that was opened to be looked at, and the mode that it had, which dropping this gives back.
struct Closed {
    handle: OwnedFd,
    mode: Mode,
}

impl Drop for Closed {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = rustix::fs::chmod(name_of(&self.handle), self.mode);
    }
}

impl Counting {
    /// Counts the entries of a folder, and answers the folders among them.
    fn enter(&mut self, folder: &OwnedFd, closed: Option<Closed>) -> Result<Level> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.size.exceeds(self.enough) {
                break;
            }
            let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(_) => {
                    self.is_whole = false;
                    continue;
                }
            };
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            self.size.files += 1;
            if is_folder || stat.st_nlink == 1 || self.linked.insert(stat.st_ino) {
                self.size.bytes = self
                    .size
                    .bytes
                    .saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES));
            }
            if is_folder {
                folders.push(name.to_owned());
            }
        }
        Ok(Level { identity: identity(folder)?, folders, _closed: closed })
    }

    /// Opens a folder to be read. `None` where that cannot be done.
    fn open(&mut self, parent: impl AsFd, name: &CStr, open_up: bool) -> Result<Option<(OwnedFd, Option<Closed>)>> {
        let way = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&parent, name, way | OFlags::RDONLY, Mode::empty()) {
            Ok(folder) if is_passable(&folder) => return Ok(Some((folder, None))),
            Ok(_) | Err(Errno::ACCESS) => {}
            // Removed, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        if open_up
            && let Ok(handle) = openat(&parent, name, way | OFlags::PATH, Mode::empty())
            && let Ok(stat) = fstat(&handle)
        {
            let mode = Mode::from_raw_mode(stat.st_mode);
            let opened = rustix::fs::chmod(name_of(&handle), mode | Mode::RWXU)
                .and_then(|()| openat(&handle, c".", way | OFlags::RDONLY, Mode::empty()));
            if let Ok(folder) = opened {
                return Ok(Some((folder, Some(Closed { handle, mode }))));
            }
        }
        self.is_whole = false;
        Ok(None)
    }
}

/// Whether names in a folder can be looked up.
fn is_passable(folder: &OwnedFd) -> bool {
    statat(folder, c"..", AtFlags::empty()).is_ok()
}

/// By the handle: another name could meanwhile lead elsewhere.
fn name_of(handle: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

fn identity(folder: &OwnedFd) -> rustix::io::Result<(u64, u64)> {
    let stat = fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}
