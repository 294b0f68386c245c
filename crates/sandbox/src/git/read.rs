//! Opening what a command, or somebody beside it, may have put another thing in place of.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};

use crate::fence::Mounted;

/// Larger ones are no settings of a person's, and no file that says where a repository is.
const BYTES_MAX: u64 = 1 << 20;

/// The text of a file; none where it is something else, such as a pipe that nobody writes, or too large. It never waits.
pub(crate) fn small_text(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= BYTES_MAX).then_some(text)
}

/// A folder that places are looked for below, such as the workspace, and which folder it is.
///
/// Whoever may write the parent folder can put another folder at this path at any time. So the host changes nothing by the path: it
/// opens the folder with [`open`](Self::open), which fails if another one is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Top {
    path: PathBuf,
    identity: Identity,
}

impl Top {
    /// The folder that is at a path now.
    ///
    /// # Errors
    /// There is none, or a link is on the way: paths of this kind lead through none when a host opens.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let identity = Identity::of_opened(folder_at(path)?)?;
        Ok(Self { path: path.to_owned(), identity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// # Errors
    /// It is gone, a link is on the way, or another folder is at its path.
    pub(crate) fn open(&self) -> Result<OwnedFd> {
        let folder = folder_at(&self.path)?;
        if Identity::of_opened(&folder)? == self.identity {
            return Ok(folder);
        }
        Err(Error::new(
            ErrorKind::StaleNetworkFileHandle,
            "another folder has taken the place of the one that was opened",
        ))
    }

    /// What must be found where it is mounted.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn mounted(&self) -> Result<Mounted> {
        let stat = rustix::fs::fstat(self.open()?)?;
        Ok(Mounted { path: self.path.clone(), device: stat.st_dev, inode: stat.st_ino })
    }
}

fn folder_at(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?)
}

/// Which folder it is. A number alone is soon another's: file systems give it away again at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    /// When it was made, in seconds and nanoseconds; 0 where the file system does not know.
    born: (i64, u32),
}

impl Identity {
    pub(super) fn of(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<Self> {
        Self::found(folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Of what is open, also where it is no folder.
    pub(super) fn of_opened(opened: impl AsFd) -> rustix::io::Result<Self> {
        Self::found(opened, OsStr::new(""), AtFlags::EMPTY_PATH)
    }

    fn found(folder: impl AsFd, name: &OsStr, flags: AtFlags) -> rustix::io::Result<Self> {
        let found = statx(folder, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        let born = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
        let known = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let device = (found.stx_dev_major, found.stx_dev_minor);
        Ok(Self { device, inode: found.stx_ino, born: if known { born } else { (0, 0) } })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_folder_is_told_by_when_it_was_made_too() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Top::at(folder.path()).unwrap().identity;
        let made = folder.path().metadata().unwrap().created();
        // Where the file system does not know it there is nothing to tell.
        let born = made.map_or((0, 0), |made| {
            let since = made.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            (i64::try_from(since.as_secs()).unwrap(), since.subsec_nanos())
        });
        assert_eq!(identity.born, born);
    }
}
