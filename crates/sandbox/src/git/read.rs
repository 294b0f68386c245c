//! Reading small files of git that a command may have put another thing in place of.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

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
