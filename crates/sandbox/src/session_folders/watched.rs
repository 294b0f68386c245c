//! How much a session's folders hold.
//!
//! To count is to look at each file, which takes seconds where there are hundreds of thousands. What the file system has free takes
//! microseconds: as long as it has not lost so much that a folder could hold too much, nothing is counted.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::Kind;
use super::count::{Size, count};

/// How long a folder is not counted again after it was, in times that counting took: by what the file system has lost, and in any case.
const PAUSE: u32 = 2;
const PAUSE_LONG: u32 = 20;
/// How often it is counted in any case: others may have given back what a command has taken.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// Tries to count a folder in which folders are moved meanwhile.
const TRIES: usize = 3;

/// What is known of the two folders.
pub(super) struct Watched {
    /// Most that one of them may hold.
    limit: Size,
    known: [Known; 2],
    /// Commands of the session that run.
    pub(super) running: usize,
}

struct Known {
    kind: Kind,
    /// It holds this at most.
    at_most: Size,
    /// What it may hold until the commands that run now have ended: what was too much when they began may stay, so that one of
    /// them can remove it.
    allowed: Size,
    /// What the file system had free when it was last looked at.
    free: Size,
    counted: Instant,
    took: Duration,
    /// Nothing was passed over when it was counted.
    is_sure: bool,
}

/// A folder that holds too much.
pub(super) struct Weighed {
    pub(super) kind: Kind,
    /// Half as much again.
    pub(super) is_far: bool,
}

impl Watched {
    pub(super) fn new(limit: Size) -> Self {
        let known = Kind::BOTH.map(|kind| Known {
            kind,
            at_most: Size::default(),
            allowed: limit,
            free: Size::default(),
            counted: Instant::now(),
            took: Duration::ZERO,
            is_sure: true,
        });
        Self { limit, known, running: 0 }
    }

    /// A command begins.
    pub(super) fn begin(&mut self, open: impl Fn(Kind) -> std::io::Result<OwnedFd>) {
        self.running += 1;
        if self.running > 1 {
            return;
        }
        let far = far(self.limit);
        for known in &mut self.known {
            let Ok(folder) = open(known.kind) else { continue };
            // What the file system has lost meanwhile is not this session's.
            known.free = free(&folder).unwrap_or_default();
            known.allowed = self.limit;
            if known.at_most.exceeds(self.limit) {
                known.count(folder, far);
                known.allowed = self.limit.most(known.at_most);
            }
        }
    }

    /// Whether one may hold more than the limit, by what is known of it.
    pub(super) fn may_be_too_much(&self) -> bool {
        self.known.iter().any(|known| known.at_most.exceeds(self.limit))
    }

    /// Whether neither can have come to hold more than it may, by what the file system has lost.
    pub(super) fn has_lost_little(&mut self, open: impl Fn(Kind) -> std::io::Result<OwnedFd>) -> bool {
        self.known.iter_mut().all(|known| {
            let seen = open(known.kind).ok().and_then(|folder| known.see_free(&folder));
            seen.is_some() && !known.at_most.exceeds(known.allowed)
        })
    }

    /// The first of the folders that holds more than it may.
    ///
    /// Blocks for as long as counting takes, where that is due. After the last command of several it is, if one may hold too much.
    /// `unlinked` tells how many bytes processes hold there in files that have no name any more.
    pub(super) fn look(
        &mut self,
        open: impl Fn(Kind) -> std::io::Result<OwnedFd>,
        unlinked: impl Fn(Kind) -> u64,
        is_last: bool,
    ) -> Option<Weighed> {
        let far = far(self.limit);
        self.known.iter_mut().find_map(|known| {
            let folder = open(known.kind).ok()?;
            known.see_free(&folder)?;
            let rests = known.counted.elapsed();
            let is_due = match known.at_most.exceeds(known.allowed) {
                true => is_last || rests >= known.took * PAUSE,
                false => !is_last && rests >= COUNT_EVERY.max(known.took * PAUSE_LONG),
            };
            if is_due {
                known.count(folder, far);
                known.at_most.bytes = known.at_most.bytes.saturating_add(unlinked(known.kind));
            }
            let is_over = is_due && known.at_most.exceeds(known.allowed);
            is_over.then(|| Weighed { kind: known.kind, is_far: known.is_sure && known.at_most.exceeds(far) })
        })
    }

    /// The folder of this kind was emptied.
    pub(super) fn emptied(&mut self, kind: Kind) {
        for known in self.known.iter_mut().filter(|known| known.kind == kind) {
            known.at_most = Size::default();
        }
    }
}

impl Known {
    /// Takes for the folder's what the file system has lost since this was called last.
    fn see_free(&mut self, folder: &OwnedFd) -> Option<()> {
        let now = free(folder)?;
        self.at_most = self.at_most.plus(self.free.less(now));
        self.free = now;
        Some(())
    }

    /// Where something was passed over, what the file system has lost says how much there may be.
    fn count(&mut self, folder: OwnedFd, far: Size) {
        let began = Instant::now();
        self.is_sure = false;
        let tries = [false; TRIES].into_iter().chain([true]);
        for open_up in tries {
            let counted = folder.try_clone().and_then(|folder| count(folder, far, open_up));
            match counted {
                Ok(counted) if counted.is_whole => {
                    (self.at_most, self.is_sure) = (counted.size, true);
                    break;
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the private folder of a session could not be counted"),
            }
            // Only where it matters: a program may see that a folder is open.
            if !self.at_most.exceeds(self.allowed) {
                break;
            }
        }
        (self.counted, self.took) = (Instant::now(), began.elapsed());
    }
}

/// Half as much again.
fn far(limit: Size) -> Size {
    limit.plus(Size { bytes: limit.bytes / 2, files: limit.files / 2 })
}

/// What the file system of a folder has free.
fn free(folder: &OwnedFd) -> Option<Size> {
    let told = rustix::fs::fstatvfs(folder).ok()?;
    Some(Size { bytes: told.f_bfree.saturating_mul(told.f_frsize), files: told.f_ffree })
}
