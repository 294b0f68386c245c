//! Files of the workspace, opened beneath a directory handle.
//!
//! Every access starts at the root's handle and goes through `cap-std`, which opens with `openat2(RESOLVE_BENEATH)` or
//! walks component by component where the kernel lacks it: nothing can be swapped between check and use. The hard
//! problem is the write: the bytes go to an unnamed file first, so that a crash leaves either the former or the
//! finished content and nothing else.

use std::io::{IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, StatxFlags};
use rustix::io::ReadWriteFlags;
use sha2::{Digest, Sha256};
use toolhost_contract::Durability;
use toolhost_contract::workspace::{
    Content, EntryKind, Error, POLICY_FILE, ReadSpan, Result, Spot, WriteGuard, Written, WsPath, is_git_internal,
    is_state,
};

use crate::error::from_io;

/// The permission bits that a written file keeps: without those by which it would run as its owner or group.
const MODE_KEPT: u32 = 0o777;
/// Most bytes that are copied on a thread on which others wait.
const CACHED_BYTES_MAX: u64 = 128 * 1024;
/// Largest file whose hash is compared before a write.
const HASHED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A folder held open, and what is done below it: no link that leads out is followed. For deploys, whose target is another folder of
/// the person's; everybody else has a `Workspace`.
pub struct Tree {
    dir: Dir,
    /// Who new files belong to, when the host runs as root in somebody else's workspace.
    owner: Option<(u32, u32)>,
    temp_count: AtomicU64,
    changing: std::sync::Mutex<()>,
    durability: Durability,
    /// It is a workspace: what deploys into it keep there is not its own.
    holds_state: bool,
}

/// A name in an open folder: what a write, move or removal acts on.
struct Place {
    parent: Dir,
    name: String,
}

impl Tree {
    /// Opens a folder by its path on this machine.
    ///
    /// # Errors
    /// It is not there, or is no folder.
    pub fn open(root: &Path, durability: Durability) -> std::io::Result<Self> {
        let dir = Dir::open_ambient_dir(root, ambient_authority())?;
        let metadata = std::fs::metadata(root)?;
        let foreign = rustix::process::geteuid().is_root() && metadata.uid() != 0;
        let owner = foreign.then(|| (metadata.uid(), metadata.gid()));
        Ok(Self { owner, holds_state: true, durability, ..Self::of_ours(dir) })
    }

    /// A folder that the host keeps for itself: what is written there stays the host's own.
    pub fn of_ours(dir: Dir) -> Self {
        Self {
            dir,
            owner: None,
            temp_count: AtomicU64::new(0),
            changing: std::sync::Mutex::new(()),
            durability: Durability::Power,
            holds_state: false,
        }
    }

    /// The folder itself.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// A part of a regular file.
    ///
    /// # Errors
    /// There is none at the path, or it cannot be read.
    pub fn read(&self, path: &WsPath, span: ReadSpan) -> Result<Content> {
        let (mut file, size) = self.open_regular(path)?;
        let io = |e| from_io(path.as_str(), e);
        let mode = file.metadata().map_err(io)?.mode() & 0o7777;
        if span.start > 0 {
            file.seek(SeekFrom::Start(span.start)).map_err(io)?;
        }
        // The size is a hint only: the file may grow or be sparse, so the cap is on bytes read.
        let hint = size.saturating_sub(span.start).min(span.bytes_max);
        let mut bytes = Vec::with_capacity(usize::try_from(hint).unwrap_or(0));
        file.take(span.bytes_max).read_to_end(&mut bytes).map_err(io)?;
        Ok(Content { bytes, size, mode })
    }

    /// The same where the kernel has all of it in memory; `None` where it does not, for longer files and for every error.
    /// It waits for nothing, so it needs no thread that may wait.
    pub(crate) fn read_cached(&self, path: &WsPath, span: ReadSpan) -> Option<Content> {
        // What cap-std asks for, and `CACHED`: no name that would have to be looked up on a disk.
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(&self.dir, path.as_str(), flags, Mode::empty(), resolve).ok()?;
        let known = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::SIZE;
        let stat = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, known).ok()?;
        let left = stat.stx_size.saturating_sub(span.start);
        // One byte more than there should be shows a file that grows.
        let most = (left + 1).min(span.bytes_max);
        if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile || most > CACHED_BYTES_MAX {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(most).ok()?];
        let mut filled = 0;
        while filled < bytes.len() {
            let mut rest = [IoSliceMut::new(&mut bytes[filled..])];
            match rustix::io::preadv2(&file, &mut rest, span.start + filled as u64, ReadWriteFlags::NOWAIT).ok()? {
                0 => break,
                read => filled += read,
            }
        }
        if filled as u64 > left {
            return None;
        }
        bytes.truncate(filled);
        Some(Content { bytes, size: stat.stx_size, mode: u32::from(stat.stx_mode) & 0o7777 })
    }

    /// Opens a regular file for reading without ever blocking; tells its size.
    pub(crate) fn open_regular(&self, path: &WsPath) -> Result<(std::fs::File, u64)> {
        let mut options = OpenOptions::new();
        // Without O_NONBLOCK the open of a FIFO waits for a writer, perhaps forever.
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = self.dir.open_with(path.as_str(), &options).map_err(|e| from_io(path.as_str(), e))?;
        let metadata = file.metadata().map_err(|e| from_io(path.as_str(), e))?;
        if !metadata.is_file() {
            return Err(Error::NotRegular {
                path: path.to_string(),
                what: what_it_is(cap_std::fs::MetadataExt::mode(&metadata)),
            });
        }
        Ok((file.into_std(), metadata.len()))
    }

    /// Writes a whole file, at once or not at all.
    ///
    /// # Errors
    /// The guard forbids it, or the file system does.
    pub fn write(&self, path: &WsPath, bytes: &[u8], guard: &WriteGuard) -> Result<Written> {
        let _turn = self.turn();
        // A file that must be there already is in folders that are; a refused write leaves none behind.
        let missing = if guard.expected_sha256.is_some() { Missing::Refuse } else { Missing::CreateParents };
        let place = if guard.exact { self.place_of_link(path, missing, true)? } else { self.place(path, missing)? };
        let io = |e: std::io::Error| from_io(path.as_str(), e);
        let present = match place.parent.symlink_metadata(&place.name) {
            Ok(metadata) if metadata.is_file() => Some(metadata),
            Ok(metadata) => {
                return Err(Error::NotRegular {
                    path: path.to_string(),
                    what: what_it_is(cap_std::fs::MetadataExt::mode(&metadata)),
                });
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => return Err(io(e)),
        };
        if guard.create_only && present.is_some() {
            return Err(Error::Exists { path: path.to_string() });
        }
        if let Some(expected) = &guard.expected_sha256 {
            check_unchanged(&place, path, expected)?;
        }
        let mode = guard.mode.or(present.as_ref().map(cap_std::fs::MetadataExt::mode)).map(|mode| mode & MODE_KEPT);
        self.replace(&place, bytes, mode, guard.create_only).map_err(io)?;
        Ok(Written {
            created: present.is_none(),
            bytes: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(bytes)),
        })
    }

    pub(crate) fn rename(&self, from: &WsPath, to: &WsPath) -> Result<()> {
        let _turn = self.turn();
        let source = self.place_of_link(from, Missing::Refuse, true)?;
        source.parent.symlink_metadata(&source.name).map_err(|e| from_io(from.as_str(), e))?;
        let target = self.place_of_link(to, Missing::CreateParents, true)?;
        clear_set_id(&source).map_err(|e| from_io(from.as_str(), e))?;
        rustix::fs::renameat_with(&source.parent, &source.name, &target.parent, &target.name, RenameFlags::NOREPLACE)
            .map_err(|e| from_io(to.as_str(), e.into()))?;
        self.sync_folder(&source.parent);
        self.sync_folder(&target.parent);
        Ok(())
    }

    pub(crate) fn remove(&self, path: &WsPath, expected: Option<&str>) -> Result<()> {
        let _turn = self.turn();
        let place = self.place_of_link(path, Missing::Refuse, true)?;
        let io = |e| from_io(path.as_str(), e);
        if let Some(expected) = expected {
            check_unchanged(&place, path, expected)?;
        }
        let metadata = place.parent.symlink_metadata(&place.name).map_err(io)?;
        if metadata.is_dir() {
            place.parent.remove_dir(&place.name).map_err(io)?;
        } else {
            place.parent.remove_file(&place.name).map_err(io)?;
        }
        self.sync_folder(&place.parent);
        Ok(())
    }

    /// Changes go one at a time: between the look at a file's hash and its replacement nobody else's may come.
    fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Where a path leads, and what is there.
    pub(crate) fn spot(&self, path: &WsPath, follow: bool) -> Result<Spot> {
        let io = |e| from_io(path.as_str(), e);
        if path.is_root() {
            return Ok(Spot { path: path.clone(), kind: Some(EntryKind::Folder), link: None, missing: Vec::new() });
        }
        let (mut names, mut folder) = (vec![path.file_name().to_owned()], path.parent());
        let parent = loop {
            match self.dir.open_dir(folder.as_str()) {
                Ok(parent) => break parent,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && !folder.is_root() => {
                    names.push(folder.file_name().to_owned());
                    folder = folder.parent();
                }
                Err(e) => return Err(io(e)),
            }
        };
        let unknown = || io(std::io::Error::other("where it really is cannot be told"));
        let mut place = self.real_path(&parent).ok_or_else(unknown)?;
        let mut way = Vec::new();
        for name in names.iter().rev() {
            place = place.join(name)?;
            way.push(place.clone());
        }
        way.pop();
        let mut spot = Spot { path: place, kind: None, link: None, missing: way };
        if !spot.missing.is_empty() {
            return Ok(spot);
        }
        let metadata = match parent.symlink_metadata(path.file_name()) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(spot),
            Err(e) => return Err(io(e)),
        };
        if metadata.is_symlink() && follow {
            let target = self.dir.canonicalize(spot.path.as_str()).map_err(io)?;
            let target = WsPath::from_walk(&target).ok_or_else(|| Error::Escape { path: path.to_string() })?;
            return self.spot(&target, false);
        }
        if metadata.is_symlink() {
            let leads_to = parent.read_link_contents(path.file_name()).map_err(io)?;
            spot.link = Some(leads_to.to_string_lossy().into_owned());
        }
        spot.kind = Some(kind_of(metadata.file_type()));
        Ok(spot)
    }

    /// Where a write to `path` lands, following a link at the end as an editor would.
    fn place(&self, path: &WsPath, missing: Missing) -> Result<Place> {
        let is_link = self.dir.symlink_metadata(path.as_str()).is_ok_and(|m| m.is_symlink());
        if !is_link {
            return self.place_of_link(path, missing, false);
        }
        let target = self.dir.canonicalize(path.as_str()).map_err(|e| from_io(path.as_str(), e))?;
        let target = WsPath::from_walk(&target).ok_or_else(|| Error::Escape { path: path.to_string() })?;
        self.place_of_link(&target, missing, false)
    }

    /// Where `path` itself is, not following a link at the end; `exact`: nor anywhere else.
    fn place_of_link(&self, path: &WsPath, missing: Missing, exact: bool) -> Result<Place> {
        if path.is_root() {
            return Err(Error::NotRegular { path: path.to_string(), what: "the workspace root" });
        }
        if is_git_internal(path.as_str()) {
            return Err(Error::GitInternal { path: path.to_string() });
        }
        if path.as_str().eq_ignore_ascii_case(POLICY_FILE) {
            return Err(Error::Policy { path: path.to_string() });
        }
        if self.holds_state && is_state(path.as_str()) {
            return Err(Error::State { path: path.to_string() });
        }
        let folder = path.parent();
        if missing == Missing::CreateParents {
            self.create_folders(&folder, exact)?;
        }
        let parent = self.dir.open_dir(folder.as_str()).map_err(|e| from_io(path.as_str(), e))?;
        // A link may lead into `.git` under another name; the handle knows where it really is.
        match self.real_folder(&parent) {
            Some(real) if is_git_internal(&real) => return Err(Error::GitInternal { path: path.to_string() }),
            Some(real) if self.holds_state && is_state(&real) => return Err(Error::State { path: path.to_string() }),
            Some(real) if real.is_empty() && path.file_name().eq_ignore_ascii_case(POLICY_FILE) => {
                return Err(Error::Policy { path: path.to_string() });
            }
            _ => {}
        }
        if exact {
            self.check_exact(&parent, &folder)?;
        }
        Ok(Place { parent, name: path.file_name().to_owned() })
    }

    /// The folder a handle really stands for, relative to the root. `None` where `/proc` cannot tell.
    fn real_folder(&self, folder: &Dir) -> Option<String> {
        let real = std::fs::read_link(proc_path(folder)).ok()?;
        let root = std::fs::read_link(proc_path(&self.dir)).ok()?;
        Some(real.strip_prefix(root).ok()?.to_string_lossy().into_owned())
    }

    /// The same as a path; `None` also where it is not UTF-8.
    fn real_path(&self, folder: &Dir) -> Option<WsPath> {
        let real = std::fs::read_link(proc_path(folder)).ok()?;
        let root = std::fs::read_link(proc_path(&self.dir)).ok()?;
        let real = real.strip_prefix(root).ok()?;
        if real.as_os_str().is_empty() { Some(WsPath::root()) } else { WsPath::from_walk(real) }
    }

    /// Refuses a folder that was reached through a link. The handle is what is acted upon, whatever the name becomes.
    fn check_exact(&self, opened: &Dir, folder: &WsPath) -> Result<()> {
        let same = self.real_path(opened).is_some_and(|real| real == *folder);
        if same { Ok(()) } else { Err(Error::Linked { path: folder.to_string() }) }
    }

    fn create_folders(&self, folder: &WsPath, exact: bool) -> Result<()> {
        // A list and no recursion: a path may have two thousand folders, and this thread's stack is small.
        let mut missing = Vec::new();
        let mut next = folder.clone();
        while !next.is_root() && self.dir.open_dir(next.as_str()).is_err() {
            let parent = next.parent();
            missing.push(next);
            next = parent;
        }
        missing.iter().rev().try_for_each(|folder| self.create_folder(folder, exact))
    }

    fn create_folder(&self, folder: &WsPath, exact: bool) -> Result<()> {
        let io = |e| from_io(folder.as_str(), e);
        let parent = self.dir.open_dir(folder.parent().as_str()).map_err(io)?;
        // Asked before each one is made: a link may lead into `.git`, and nothing is to be left there.
        if self.real_folder(&parent).is_some_and(|real| is_git_internal(&real)) {
            return Err(Error::GitInternal { path: folder.to_string() });
        }
        if self.holds_state && self.real_folder(&parent).is_some_and(|real| is_state(&real)) {
            return Err(Error::State { path: folder.to_string() });
        }
        if exact {
            self.check_exact(&parent, &folder.parent())?;
        }
        match parent.create_dir(folder.file_name()) {
            Ok(()) => {
                let made = parent.open_dir(folder.file_name()).map_err(io)?;
                self.give_to_owner(&made).and_then(|()| clear_set_id_of_folder(&made)).map_err(io)
            }
            // Somebody else made it meanwhile, or something that is no folder is there: the open will say.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(io(e)),
        }
    }

    /// Puts `bytes` at the place in one step.
    fn replace(&self, place: &Place, bytes: &[u8], mode: Option<u32>, create_only: bool) -> std::io::Result<()> {
        let unnamed = rustix::fs::openat(
            &place.parent,
            ".",
            OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o666),
        );
        let (file, temp) = match unnamed {
            Ok(fd) => (std::fs::File::from(fd), None),
            // Not every file system has unnamed files (NFS, some FUSE); a named one serves, and a crash may leave it.
            Err(_) => {
                let temp = self.temp_name();
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let fd = rustix::fs::openat(&place.parent, &temp, flags, Mode::from_raw_mode(0o666))?;
                (std::fs::File::from(fd), Some(temp))
            }
        };
        let result = self.fill_and_place(file, place, temp.as_deref(), bytes, mode, create_only);
        if let (Err(_), Some(temp)) = (&result, &temp) {
            // Best effort: the write has failed already and that is what the caller hears.
            let _ = place.parent.remove_file(temp);
        }
        result
    }

    fn fill_and_place(
        &self,
        mut file: std::fs::File,
        place: &Place,
        temp: Option<&str>,
        bytes: &[u8],
        mode: Option<u32>,
        create_only: bool,
    ) -> std::io::Result<()> {
        self.give_to_owner(&file)?;
        if let Some(mode) = mode {
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        file.write_all(bytes)?;
        if self.durability == Durability::Power {
            file.sync_all()?;
        }
        let temp = match temp {
            Some(temp) => temp.to_owned(),
            None => {
                let source = proc_path(&file);
                let follow = AtFlags::SYMLINK_FOLLOW;
                if mode.is_none() {
                    // The name is free: link it directly, and nothing is ever left over.
                    match rustix::fs::linkat(rustix::fs::CWD, &source, &place.parent, &place.name, follow) {
                        Ok(()) => return self.sync_folder_or_fail(&place.parent),
                        Err(rustix::io::Errno::EXIST) if !create_only => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                let temp = self.temp_name();
                rustix::fs::linkat(rustix::fs::CWD, &source, &place.parent, &temp, follow)?;
                temp
            }
        };
        let flags = if create_only { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        let renamed = rustix::fs::renameat_with(&place.parent, &temp, &place.parent, &place.name, flags);
        if renamed.is_err() {
            // Best effort, as above.
            let _ = place.parent.remove_file(&temp);
        }
        renamed?;
        self.sync_folder_or_fail(&place.parent)
    }

    fn sync_folder_or_fail(&self, folder: &Dir) -> std::io::Result<()> {
        if self.durability == Durability::Process {
            return Ok(());
        }
        let fd = rustix::fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(rustix::fs::fsync(fd)?)
    }

    fn sync_folder(&self, folder: &Dir) {
        // A file system that cannot sync folders has done what it can.
        let _ = self.sync_folder_or_fail(folder);
    }

    fn temp_name(&self) -> String {
        let n = self.temp_count.fetch_add(1, Ordering::Relaxed);
        // In a container the process id may be the same every time: the time tells one run from the next.
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        format!(".toolhost-{}-{}-{n}.tmp", std::process::id(), since.as_nanos())
    }

    pub fn give_to_owner(&self, file: &impl AsFd) -> std::io::Result<()> {
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
        Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refuse,
    CreateParents,
}

/// A file that a tool moves does not go on to run as its owner or group.
fn clear_set_id(place: &Place) -> std::io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.parent, &place.name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&file)?.st_mode;
    if FileType::from_raw_mode(mode).is_file() && mode & 0o6000 != 0 {
        rustix::fs::chmod(proc_path(&file), Mode::from_raw_mode(mode & MODE_KEPT))?;
    }
    Ok(())
}

/// The kernel gives a new folder the set-group-id bit of the folder around it.
fn clear_set_id_of_folder(folder: &Dir) -> std::io::Result<()> {
    let mode = rustix::fs::fstat(folder)?.st_mode;
    if mode & 0o6000 != 0 {
        rustix::fs::chmod(proc_path(folder), Mode::from_raw_mode(mode & MODE_KEPT))?;
    }
    Ok(())
}

/// What is at the place, and not what a link there leads to.
fn check_unchanged(place: &Place, path: &WsPath, expected: &str) -> Result<()> {
    let io = |e: std::io::Error| from_io(path.as_str(), e);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&place.parent, &place.name, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::LOOP) => return Err(Error::Linked { path: path.to_string() }),
        Err(e) => return Err(io(e.into())),
    };
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(Error::NotRegular { path: path.to_string(), what: what_it_is(metadata.mode()) });
    }
    let size = metadata.len();
    if size > HASHED_BYTES_MAX {
        let what = format!("the size of `{path}` in bytes, of which the hash is asked,");
        return Err(Error::Limit { what, actual: size, limit: HASHED_BYTES_MAX });
    }
    let actual = sha256_of(file, &mut vec![0; 64 * 1024]).map_err(io)?;
    if actual == expected.to_ascii_lowercase() {
        return Ok(());
    }
    Err(Error::Changed { path: path.to_string(), expected: expected.to_owned(), actual })
}

fn proc_path(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}

fn kind_of(file_type: cap_std::fs::FileType) -> EntryKind {
    match () {
        () if file_type.is_symlink() => EntryKind::Link,
        () if file_type.is_dir() => EntryKind::Folder,
        () if file_type.is_file() => EntryKind::File,
        () => EntryKind::Other,
    }
}

/// The path of a folder through no link.
///
/// # Errors
/// There is none at `path`, or no folder.
pub fn real_folder(path: &Path) -> std::io::Result<PathBuf> {
    let real = path.canonicalize()?;
    if real.is_dir() { Ok(real) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
}

/// The folder of the repository that a folder lies in; `None` where it is one itself, or lies in none.
pub fn repository_around(folder: &Path) -> Option<&Path> {
    let is_repository = |folder: &Path| folder.join(".git").exists();
    folder.ancestors().skip(1).find(|above| is_repository(above)).filter(|_| !is_repository(folder))
}

/// What stands at a name, from its mode.
pub fn what_it_is(mode: u32) -> &'static str {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something special",
    }
}

/// The SHA-256 of all that is still to be read.
pub fn sha256_of(mut file: impl Read, buffer: &mut [u8]) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    loop {
        match file.read(buffer)? {
            0 => return Ok(hex::encode(hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}
