//! The private `/tmp` and home of agents' sessions: made for a session's first command, removed with the session.
//!
//! Each session has a folder of the host's own on the disk, with the two folders in it that its commands fill. A command cannot reach the
//! outer one, so it cannot put anything else in the place of the two. How much they hold is counted, because no right of an ordinary user's
//! limits the size of a folder; see `watched.rs`.

mod count;
mod points;
mod watched;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, mkdirat, openat};
use tokio::task::AbortHandle;
use toolhost_contract::Session;
use toolhost_contract::workspace::{Error, FolderLimit, Result};

use self::count::Size;
use self::points::Points;
use self::watched::{Watched, Weighed};
use crate::limits::Limits;
use crate::memory;
use crate::remover::{REMOVED_ENTRIES_MAX, Scratch, remove_some};

/// How the names of these folders begin.
pub(crate) const PREFIX: &str = "toolhost-session-";

/// Where the fence mounts something in any case.
const FIXED: [&str; 12] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/dev", "/run", "/nix/store"];

/// Whether sessions can have folders of their own: commands do not see those of other sessions, and nothing that each fence is made of is
/// below their home, where a command could put something in its way.
pub(crate) fn can_be_kept(parent: &Path, home: &Path, seen_by_commands: &[PathBuf]) -> bool {
    let parent = parent.canonicalize();
    let is_apart = |parent: &PathBuf| !seen_by_commands.iter().any(|seen| parent.starts_with(seen));
    parent.as_ref().is_ok_and(is_apart) && !FIXED.iter().any(|fixed| Path::new(fixed).starts_with(home))
}

/// What the folders of a session are made like.
#[derive(Clone)]
pub(crate) struct Making {
    /// Where they are made.
    pub(crate) parent: PathBuf,
    /// Whose they are, where that is not this process's user.
    pub(crate) owner: Option<(u32, u32)>,
    /// The home's path as commands see it, where the folders are mounted; `None`: commands see their real paths.
    pub(crate) mounted_home: Option<PathBuf>,
    /// What is mounted for commands, and may lie in one of the two.
    pub(crate) mounts: Vec<PathBuf>,
    pub(crate) limits: Limits,
}

/// The folders of all sessions of one workspace.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The one that was used last is the last.
    all: Mutex<Vec<Entry>>,
    /// Held while the folders of a session that has ended are removed.
    removing: Mutex<()>,
}

struct Entry {
    session: Session,
    folders: Arc<SessionFolders>,
    /// Waits for the session's end.
    ending: AbortHandle,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ending.abort();
    }
}

impl Sessions {
    /// The folders of a session, made if it has none, for one command. Blocks; to be called within a runtime.
    ///
    /// # Errors
    /// The session has ended, they cannot be made, or all sessions that may have some run commands.
    pub(crate) fn enter(self: &Arc<Self>, session: &Session, making: Making) -> Result<Entered> {
        let mut all = self.lock();
        if session.has_ended() {
            return Err(Error::Cancelled);
        }
        let mut removed = None;
        match all.iter().position(|entry| entry.session.is_same(session)) {
            Some(at) => all[at..].rotate_left(1),
            None => {
                removed = make_room(&mut all, making.limits.session_folders)?;
                let io = |source| Error::Io { path: "the private folders of a session".to_owned(), source };
                let folders = Arc::new(SessionFolders::new(making).map_err(io)?);
                all.push(Entry { session: session.clone(), folders, ending: self.await_end(session.clone()) });
            }
        }
        let folders = all.last().map(|entry| Arc::clone(&entry.folders));
        drop(all);
        // It may hold much.
        drop(removed);
        folders.map(Entered::new).ok_or(Error::Cancelled)
    }

    /// The same where they are there and nothing has to be counted, which takes microseconds.
    pub(crate) fn enter_at_once(&self, session: &Session) -> Option<Entered> {
        let mut all = self.all.try_lock().ok()?;
        let at = all.iter().position(|entry| entry.session.is_same(session))?;
        all[at..].rotate_left(1);
        let folders = Arc::clone(&all.last()?.folders);
        drop(all);
        let mut watched = folders.watched.try_lock().ok()?;
        if watched.may_be_too_much() {
            return None;
        }
        watched.begin(|kind| folders.open(kind));
        drop(watched);
        Some(Entered { folders })
    }

    fn await_end(self: &Arc<Self>, session: Session) -> AbortHandle {
        let sessions = Arc::downgrade(self);
        let waiting = tokio::spawn(async move {
            session.ended().await;
            let Some(sessions) = sessions.upgrade() else { return };
            // Removing them takes as long as what they hold wants.
            tokio::task::spawn_blocking(move || sessions.forget(&session));
        });
        waiting.abort_handle()
    }

    /// Removes the folders of all sessions.
    pub(crate) fn close(&self) {
        // Also those that are being removed.
        let _removing = self.removing.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }

    fn forget(&self, session: &Session) {
        let _removing = self.removing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.lock();
        let at = all.iter().position(|entry| entry.session.is_same(session));
        let entry = at.map(|at| all.remove(at));
        drop(all);
        drop(entry);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes out the folders that were unused longest, if there is no room for one more.
fn make_room(all: &mut Vec<Entry>, most: usize) -> Result<Option<Entry>> {
    if all.len() < most {
        return Ok(None);
    }
    let unused = all.iter().position(|entry| Arc::strong_count(&entry.folders) == 1);
    let what = "sessions with a private `/tmp` and home whose commands run".to_owned();
    let at = unused.ok_or(Error::Limit { what, actual: all.len() as u64 + 1, limit: most as u64 })?;
    tracing::info!("the session whose private folders were unused longest gets new ones with its next command");
    Ok(Some(all.remove(at)))
}

/// One of the two folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tmp,
    Home,
}

impl Kind {
    const BOTH: [Self; 2] = [Self::Tmp, Self::Home];

    /// Its name on the disk.
    fn name(self) -> &'static str {
        match self {
            Self::Tmp => "tmp",
            Self::Home => "home",
        }
    }

    /// As a command's user knows it.
    fn told(self) -> &'static str {
        match self {
            Self::Tmp => "/tmp",
            Self::Home => "~",
        }
    }
}

/// The two folders of one session. Dropping this removes them.
pub(crate) struct SessionFolders {
    scratch: Scratch,
    making: Making,
    points: Points,
    watched: Mutex<Watched>,
}

impl SessionFolders {
    fn new(making: Making) -> std::io::Result<Self> {
        let scratch = Scratch::new(&making.parent, PREFIX)?;
        // Nobody else of the machine gets to what is in it; commands of another user that are given its path pass it.
        let mode = if making.mounted_home.is_none() && making.owner.is_some() { 0o711 } else { 0o700 };
        std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(mode))?;
        let points = match &making.mounted_home {
            Some(home) => Points::new(home, &making.mounts),
            None => Points::default(),
        };
        let watched = Mutex::new(Watched::new(Size { bytes: making.limits.tmp_bytes, files: making.limits.tmp_files }));
        let folders = Self { scratch, making, points, watched };
        Kind::BOTH.into_iter().try_for_each(|kind| folders.furnish(kind))?;
        Ok(folders)
    }

    /// Makes one of the folders, and in it what other mounts need.
    fn furnish(&self, kind: Kind) -> std::io::Result<()> {
        let is_mounted = self.making.mounted_home.is_some();
        // What is mounted is alone in its view with its owner, and programs expect their `/tmp` to be anybody's.
        let mode = if is_mounted && kind == Kind::Tmp { 0o1777 } else { 0o700 };
        self.make_folder(self.scratch.folder(), kind.name(), mode)?;
        let top = self.open(kind)?;
        for point in self.points.in_folder(kind) {
            let mut here = top.try_clone()?;
            for name in &point.ancestors {
                self.make_folder(&here, name, 0o755)?;
                here = openat(&here, name.as_str(), FOLDER, Mode::empty())?;
            }
            if point.is_folder {
                self.make_folder(&here, &point.name, 0o755)?;
            } else {
                openat(&here, point.name.as_str(), OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::RUSR)?;
            }
        }
        Ok(())
    }

    /// One that is there already stays.
    fn make_folder(&self, parent: impl AsFd, name: &str, mode: u32) -> std::io::Result<()> {
        match mkdirat(&parent, name, Mode::RWXU) {
            Err(rustix::io::Errno::EXIST) => return Ok(()),
            made => made?,
        }
        // Apart, because the process's mask takes bits from it.
        rustix::fs::chmodat(&parent, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
        if let Some((uid, gid)) = self.making.owner {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            chownat(&parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    fn open(&self, kind: Kind) -> std::io::Result<OwnedFd> {
        let open = || openat(self.scratch.folder(), kind.name(), FOLDER, Mode::empty());
        match open() {
            // A command can close it to its own user, and go on writing.
            Err(rustix::io::Errno::ACCESS) => {
                rustix::fs::chmodat(self.scratch.folder(), kind.name(), Mode::RWXU, AtFlags::empty())?;
                Ok(open()?)
            }
            opened => Ok(opened?),
        }
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what one of the folders holds.
    fn empty(&self, kind: Kind) -> std::io::Result<()> {
        remove_some(self.scratch.folder(), kind.name(), REMOVED_ENTRIES_MAX)?;
        self.furnish(kind)
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folders of a session as one command has them.
pub(crate) struct Entered {
    folders: Arc<SessionFolders>,
}

impl Entered {
    fn new(folders: Arc<SessionFolders>) -> Self {
        folders.watched().begin(|kind| folders.open(kind));
        Self { folders }
    }

    /// The real paths.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folders.scratch.path().join(Kind::Tmp.name())
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folders.scratch.path().join(Kind::Home.name())
    }

    /// The two folders as commands see them, where they are mounted, with device and inode.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = (PathBuf, u64, u64)> + '_ {
        let home = self.folders.making.mounted_home.as_deref();
        // A home that is `/tmp` covers it.
        let kinds = Kind::BOTH.into_iter().filter(move |kind| *kind == Kind::Home || home != Some(Path::new("/tmp")));
        kinds.filter_map(move |kind| {
            let seen = if kind == Kind::Home { home? } else { Path::new("/tmp") };
            let found = rustix::fs::fstat(self.folders.open(kind).ok()?).ok()?;
            Some((seen.to_owned(), found.st_dev, found.st_ino))
        })
    }

    /// Folders in the two that are mounted over themselves, by real path and as commands see them: every process that could exchange
    /// them has them as mounts, which the kernel does not let it move.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> + '_ {
        let real = |kind: Kind, inside: &Path| self.folders.scratch.path().join(kind.name()).join(inside);
        self.folders.points.pinned().map(move |(kind, inside, seen)| (real(kind, inside), seen.to_owned()))
    }

    /// Where a mount of a path of this machine begins, whose place may be in one of the two.
    pub(crate) fn place_of(&self, path: &Path) -> Place {
        match self.folders.points.find(path) {
            points::Found::Elsewhere => Place::Elsewhere,
            points::Found::Point(kind, inside) => {
                Place::Made(self.folders.scratch.path().join(kind.name()).join(inside))
            }
            points::Found::Unknown => Place::NotMade,
        }
    }

    /// Whether one of the folders holds more than it may, while the processes below `root` run. Blocks for as long as counting takes, where
    /// that is due.
    pub(crate) fn look(&self, root: Option<u32>) -> Option<FolderLimit> {
        let unlinked = |kind| root.map_or(0, |root| count::unlinked_bytes(&memory::tree(root), &self.paths(kind)));
        let over = self.folders.watched().look(|kind| self.folders.open(kind), unlinked, false)?;
        Some(self.told(&over, false))
    }

    /// Whether the command can leave them at once: nothing has to be counted, and they stay.
    pub(crate) fn can_be_left_at_once(&self) -> bool {
        let stay = Arc::strong_count(&self.folders) > 1;
        let look = |mut watched: MutexGuard<'_, Watched>| watched.has_lost_little(|kind| self.folders.open(kind));
        stay && self.folders.watched.try_lock().is_ok_and(look)
    }

    /// The same as [`Self::look`] at the end of a command: what holds much too much is emptied, if no other command of the session runs.
    pub(crate) fn look_last(&self) -> Option<FolderLimit> {
        let mut watched = self.folders.watched();
        let is_last = watched.running == 1;
        let over = watched.look(|kind| self.folders.open(kind), |_| 0, is_last)?;
        let emptied = over.is_far && is_last;
        if emptied {
            if let Err(error) = self.folders.empty(over.kind) {
                tracing::warn!(%error, "the private folder of a session that holds too much could not be emptied");
            }
            watched.emptied(over.kind);
        }
        Some(self.told(&over, emptied))
    }

    /// How the kernel may name one of the folders.
    fn paths(&self, kind: Kind) -> [PathBuf; 2] {
        let real = self.folders.scratch.path().join(kind.name());
        let seen = match (&self.folders.making.mounted_home, kind) {
            (None, _) => real.clone(),
            (Some(_), Kind::Tmp) => PathBuf::from("/tmp"),
            (Some(home), Kind::Home) => home.clone(),
        };
        [real, seen]
    }

    fn told(&self, over: &Weighed, emptied: bool) -> FolderLimit {
        let limits = &self.folders.making.limits;
        FolderLimit { folder: over.kind.told(), bytes_max: limits.tmp_bytes, files_max: limits.tmp_files, emptied }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.folders.watched().running -= 1;
    }
}

/// Where a mount begins.
pub(crate) enum Place {
    /// In neither of the two folders.
    Elsewhere,
    /// In one of them, at this real path, which was made for it before any command.
    Made(PathBuf),
    /// In one of them where nothing was made for it: a command may have put a link on the way there.
    NotMade,
}
