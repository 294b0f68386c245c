//! Opening what a command, or somebody beside it, may have put another thing in place of.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

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

/// The folder that places are looked for below, such as the workspace.
///
/// # Errors
/// There is none, or a link is on the way: paths of this kind lead through none when a host opens, so somebody has moved it since.
pub(crate) fn top_folder(top: &Path) -> std::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, top, flags, Mode::empty(), resolve)?)
}
