//! The packed references of a repository, without what has no place among them.

use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchown, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::snapshot::open;

const PACKED: &str = "packed-refs";
/// The new one on its way into its place.
const NEW: &str = "packed-refs.toolhost.tmp";
/// A larger one is an error: a command could hide a line in it.
const BYTES_MAX: u64 = 256 << 20;

/// Takes all lines out of the packed references of the repository's folder `git` below `top` that name nothing below `refs/`.
/// Git writes no such line, and reads it.
pub(super) fn purge(top: &Path, git: &Path) -> Result<()> {
    let folder = match open(top, git) {
        Ok(folder) => folder,
        // What is no folder any more has been put back, or has an error of its own.
        Err(_) => return Ok(()),
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&folder, PACKED, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&file)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() || stat.st_size.unsigned_abs() > BYTES_MAX {
        return Err(Error::other("it is no file, or too large"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    let kept = kept(&bytes);
    if kept.len() == bytes.len() {
        return Ok(());
    }
    let _ = unlinkat(&folder, NEW, AtFlags::empty());
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = openat(&folder, NEW, create, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    if rustix::process::geteuid().is_root() {
        fchown(&new, Some(rustix::fs::Uid::from_raw(stat.st_uid)), Some(rustix::fs::Gid::from_raw(stat.st_gid)))?;
    }
    File::from(new).write_all(&kept)?;
    Ok(renameat(&folder, NEW, &folder, PACKED)?)
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
