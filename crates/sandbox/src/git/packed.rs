//! The packed references of a repository, without what has no place among them.

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::read::Top;
use super::snapshot::open;
use crate::remover::remove_some;

const PACKED: &str = "packed-refs";
/// What git makes while it writes them, and what becomes the new file.
const LOCK: &str = "packed-refs.lock";
/// How often, and after which pause, a lock that is there is looked at again: a git of the person's ends.
const TRIES_MAX: usize = 50;
const TRIES_PAUSE: Duration = Duration::from_millis(20);
/// Most of what stands in the place of the lock that is removed.
const REMOVED_MAX: u64 = 10_000;
/// A larger one is an error: a command could hide a line in it.
const BYTES_MAX: u64 = 256 << 20;

/// Takes all lines out of the packed references of the repository's folder `git` below `top` that name nothing below `refs/`.
/// Git writes no such line, and reads it.
pub(super) fn purge(top: &Top, git: &Path) -> Result<()> {
    // If the folder of the repository is gone, the put-back has handled or reported that.
    let Ok(folder) = open(top, git) else { return Ok(()) };
    match read(&folder)? {
        Some((bytes, _)) if kept(&bytes).len() < bytes.len() => {}
        _ => return Ok(()),
    }
    let lock = lock(&folder)?;
    // Whoever wrote them meanwhile has ended.
    let Some((bytes, stat)) = read(&folder)? else { return Ok(unlinkat(&folder, LOCK, AtFlags::empty())?) };
    fchmod(&lock, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    if rustix::process::geteuid().is_root() {
        fchown(&lock, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))?;
    }
    File::from(lock).write_all(&kept(&bytes))?;
    Ok(renameat(&folder, LOCK, &folder, PACKED)?)
}

/// The packed references, and what file they are in.
fn read(folder: &OwnedFd) -> Result<Option<(Vec<u8>, Stat)>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(folder, PACKED, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&file)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() || stat.st_size.unsigned_abs() > BYTES_MAX {
        return Err(Error::other("it is no file, or too large"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some((bytes, stat)))
}

/// Locks them as git does. A lock that stays was left by a command.
fn lock(folder: &OwnedFd) -> Result<OwnedFd> {
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for n in 0.. {
        match openat(folder, LOCK, create, Mode::from_raw_mode(0o600)) {
            Err(Errno::EXIST) if n < TRIES_MAX => std::thread::sleep(TRIES_PAUSE),
            Err(Errno::EXIST) if n == TRIES_MAX => remove_some(folder, LOCK, REMOVED_MAX)?,
            opened => return Ok(opened?),
        }
    }
    Err(Errno::EXIST.into())
}

/// The lines that name something below `refs/`, each with the line of what its tag leads to, and comments.
fn kept(bytes: &[u8]) -> Vec<u8> {
    let mut is_kept = true;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| {
        if !line.starts_with(b"^") {
            let name = line.iter().position(|byte| *byte == b' ').map_or(&line[..0], |at| &line[at + 1..]);
            is_kept = line.starts_with(b"#") || name.starts_with(b"refs/");
        }
        is_kept
    });
    lines.flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn only_what_is_below_refs_stays() {
        let whole =
            b"# pack-refs with: peeled fully-peeled sorted \n1 refs/heads/a\n2 refs/tags/t\n^3\n4 refs/tags/\xff\n";
        assert_eq!(kept(whole), whole);
        assert_eq!(
            kept(b"# x\n1 refs/heads/a\n2 MERGE_AUTOSTASH\n^3\n4 refs/heads/b\n"),
            b"# x\n1 refs/heads/a\n4 refs/heads/b\n"
        );
        assert_eq!(kept(b"5 HEAD"), b"");
        assert_eq!(kept(b"6\trefs/heads/x\n\n"), b"");
    }
}
