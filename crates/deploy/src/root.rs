//! A folder tree seen through its handle: nothing below it is ever reached through a link.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use toolhost_contract::Durability;
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::from_io;
use toolhost_sandbox::{Tree, what_it_is};

/// Most threads that hash and copy.
const THREADS_MAX: usize = 8;
/// Files that a thread takes at a time.
const BATCH: usize = 32;
const BUFFER_BYTES: usize = 64 * 1024;
/// The bits of a mode that a deploy writes: what it brings, or brings back, never runs as its owner or group.
const MODE_BITS: u32 = 0o777;
/// Bytes of a path that are opened at once: fewer than the kernel's `PATH_MAX`.
const OPENED_BYTES_MAX: usize = 2048;

/// Asked now and then by whatever takes long.
pub(super) type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// The root of a tree, held open.
pub(super) struct Root {
    tree: Tree,
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// What stands at a name, and when it was last touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stat {
    raw_mode: u32,
    pub(super) bytes: u64,
    pub(super) device: u64,
    inode: u64,
    modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl Stat {
    pub(super) fn is_file(&self) -> bool {
        FileType::from_raw_mode(self.raw_mode).is_file()
    }

    pub(super) fn is_folder(&self) -> bool {
        FileType::from_raw_mode(self.raw_mode).is_dir()
    }

    pub(super) fn what(&self) -> &'static str {
        what_it_is(self.raw_mode)
    }

    /// The part of the mode that deploys carry over.
    pub(super) fn mode(&self) -> u32 {
        self.raw_mode & MODE_BITS
    }

    /// Whether a program here would run as its owner or its group.
    pub(super) fn runs_as_owner(&self) -> bool {
        self.raw_mode & 0o6000 != 0
    }
}

impl From<rustix::fs::Stat> for Stat {
    fn from(stat: rustix::fs::Stat) -> Self {
        Self {
            raw_mode: stat.st_mode,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            device: stat.st_dev,
            inode: stat.st_ino,
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let io = |e| from_io(".", e);
        let tree = Tree::open(path, Durability::Power).map_err(io)?;
        let stat = Stat::from(rustix::fs::fstat(tree.dir()).map_err(|e| io(e.into()))?);
        Ok(Self { tree, device: stat.device, inode: stat.inode })
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A folder to act in; the empty path is the root itself.
    pub(super) fn folder(&self, path: &str) -> std::io::Result<OwnedFd> {
        self.open_beneath(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// A folder to list.
    pub(super) fn listed_folder(&self, path: &str) -> std::io::Result<OwnedFd> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The folder that a path is in, and its last name.
    pub(super) fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str)> {
        let (folder, name) = split(path);
        let folder = self.folder(folder).map_err(|e| from_io(path, e))?;
        Ok((folder, name))
    }

    /// A regular file to read; it never blocks.
    pub(super) fn file(&self, path: &str) -> Result<(File, Stat)> {
        let file = self.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
        let file = file.map_err(|e| from_io(path, e))?;
        let stat = Stat::from(rustix::fs::fstat(&file).map_err(|e| from_io(path, e.into()))?);
        if !stat.is_file() {
            return Err(Error::NotRegular { path: path.to_owned(), what: stat.what() });
        }
        Ok((file.into(), stat))
    }

    fn open_beneath(&self, path: &str, flags: OFlags) -> std::io::Result<OwnedFd> {
        let mut rest = if path.is_empty() { "." } else { path };
        let mut folder = rustix::io::fcntl_dupfd_cloexec(self.tree.dir(), 0)?;
        // The kernel takes no longer path at once.
        while rest.len() > OPENED_BYTES_MAX {
            let end = rest.as_bytes()[..OPENED_BYTES_MAX].iter().rposition(|byte| *byte == b'/');
            let Some((step, below)) = end.map(|end| (&rest[..end], &rest[end + 1..])) else { break };
            folder = open_in(&folder, step, OFlags::PATH | OFlags::DIRECTORY)?;
            rest = below;
        }
        open_in(&folder, rest, flags)
    }
}

/// Opens a path below an open folder, through no link.
fn open_in(folder: &OwnedFd, path: &str, flags: OFlags) -> std::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
        // A kernel or a container without it: one name at a time, each in the folder just opened.
        Err(Errno::NOSYS) => {
            let mut folder = rustix::io::fcntl_dupfd_cloexec(folder, 0)?;
            let (folders, name) = split(path);
            let steps = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            for step in folders.split('/').filter(|step| !step.is_empty()) {
                folder = rustix::fs::openat(&folder, step, steps, Mode::empty())?;
            }
            Ok(rustix::fs::openat(&folder, name, flags, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// The folder of a path, empty for the root, and its last name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The mode that is written for a recorded one.
pub(super) fn plain_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & MODE_BITS)
}

/// What stands at a name of an open folder.
pub(super) fn look(folder: impl AsFd, name: &str) -> std::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// A name in an open folder.
pub(super) type At<'a, F> = (&'a F, &'a str);

/// Gives a thing a name that must be free; `false` if it is not.
pub(super) fn move_to_free<A: AsFd, B: AsFd>(from: At<'_, A>, to: At<'_, B>) -> std::io::Result<bool> {
    match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // File systems that cannot promise it (NFS, some FUSE): look, then leap.
        Err(e) if cannot(e) => {
            if look(to.0, to.1)?.is_some() {
                return Ok(false);
            }
            rustix::fs::renameat(from.0, from.1, to.0, to.1)?;
            Ok(true)
        }
        Err(e) => Err(e.into()),
    }
}

/// Lets two things change places in one step; `false` where the file system cannot.
pub(super) fn exchange<A: AsFd, B: AsFd>(one: At<'_, A>, other: At<'_, B>) -> std::io::Result<bool> {
    match rustix::fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(e) if cannot(e) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

fn cannot(e: Errno) -> bool {
    matches!(e, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Does `work` for 0, 1, 2, ... `count` on all cores, each with a buffer of its own; answers in that order.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    stop: Stop<'_>,
    work: impl Fn(usize, &mut [u8]) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let worker = || {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= count || failed.load(Ordering::Relaxed) {
                return Ok(done);
            }
            let batch = if stop() {
                Err(Error::Cancelled)
            } else {
                (first..count.min(first + BATCH)).map(|n| work(n, &mut buffer)).collect::<Result<Vec<T>>>()
            };
            match batch {
                Ok(batch) => done.push((first, batch)),
                Err(e) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err(e);
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(THREADS_MAX).min(count.div_ceil(BATCH));
    let batches = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let ended = started.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<Result<_>>>()
    });
    let mut all: Vec<_> = batches.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(first, _): &(usize, Vec<T>)| *first);
    Ok(all.into_iter().flat_map(|(_, batch)| batch).collect())
}
