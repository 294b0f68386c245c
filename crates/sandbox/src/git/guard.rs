//! What cannot be mounted, kept on disk before a command and put back after it.
//!
//! Commands overlap, in one host and in several. So the snapshot is taken before the first of them, kept in a folder that all
//! hosts of a user share and no command reaches, and shared by whoever comes later: what one command has planted is never
//! another's truth. Each command holds a lock for as long as anything of it may run; a snapshot that nobody holds is one of a
//! host that was killed, and is put back by whoever comes next. Where putting back fails, the snapshot stays, and commands
//! are refused until it succeeds.

mod alone;

use std::fs::File;
use std::io::{ErrorKind, Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use alone::Alone;

use super::mounted::MountedPlace;
use super::places::{GIT_DIR, Place, Places};
use super::read::Top;
use super::snapshot::Snapshot;
use crate::mark::Mark;
use toolhost_contract::named;
use toolhost_contract::workspace::Error;

/// The lock of those that keep all that git obeys; no workspace is called so.
const AMONG_ALL: &str = "all.turn";
/// The mark of a workspace that is held alone.
const ALONE: &str = "alone";
/// What was there before the commands under way.
const KEPT: &str = "kept";
/// These files have a folder of their own for each kind, since each command looks through those of all workspaces. The other
/// files, of which each workspace that was ever used leaves some, do not make that slower.
const SEARCHED: [&str; 2] = [ALONE, KEPT];
/// The lock of the hosts that run commands.
const HOST: &str = "host";
/// The names of files that somebody exchanged while a command had them mounted, or began to name in settings while it ran. The
/// command may have written into these files.
const EXCHANGED: &str = "exchanged";
/// What the last try to put git's files back in its workspace could not put back. Hosts and commands of that workspace try
/// again. Hosts of other workspaces skip it, because each try can take seconds.
const FAILED: &str = "failed";
/// How often, and after which pause, a lock is tried again that is held: who only looks whether somebody has it holds it for a
/// moment, and so does a process of this host's that is being started.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// How long a host waits for commands whose host was killed to end, and how often it looks. The kernel needs seconds to free a
/// large memory.
const ORPHANS_END_MAX: Duration = Duration::from_secs(10);
const ORPHAN_PAUSE: Duration = Duration::from_millis(20);
/// How long the processes of a command whose supervisor was killed may take to end. The host holds the workspace's turn meanwhile.
const LEFT_END_MAX: Duration = Duration::from_secs(5);
/// Most names in one message.
pub(crate) const NAMED_MAX: usize = 100;
/// The time between two looks of a host for what killed hosts have left.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// The guard of one workspace.
#[derive(Clone)]
pub(crate) struct Guard {
    root: Top,
    /// Where snapshots of all workspaces are kept.
    folder: PathBuf,
    /// This workspace's name there.
    id: String,
}

/// What is kept on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The workspace.
    root: Top,
    snapshot: Snapshot,
    /// What was found before the first command: later ones cannot tell, for git could be another by then.
    places: Places,
    /// The places that are in the snapshot.
    held: Vec<Place>,
    /// What is mounted while they run.
    mounted: Vec<MountedPlace>,
    /// What the commands under way reach.
    reach: Reach,
}

/// The workspace of a [`Kept`], without the rest, which is long.
#[derive(Deserialize)]
struct KeptRoot {
    root: Top,
}

/// A [`Kept`], to be written.
#[derive(Serialize)]
struct Keeping<'a> {
    root: &'a Top,
    snapshot: &'a Snapshot,
    places: &'a Places,
    held: &'a [Place],
    mounted: &'a [MountedPlace],
    reach: Reach,
}

/// What git obeyed before commands that could write the index, until what they added to it is taken out again.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    places: Places,
}

/// The names that a person has to look at, as a message shows them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noted {
    names: String,
}

/// What a command's tier keeps from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reach {
    /// Nearly all that git obeys: it is mounted read-only.
    Mounted,
    /// Nothing of it: all is put back afterwards.
    All,
}

/// How a command begins.
pub(crate) enum Begun {
    /// No other is at work: what is there now is the person's.
    Alone(Turn),
    /// Others are; the places were found before them.
    Beside(Lease, Places),
}

/// Nobody else begins or ends meanwhile.
pub(crate) struct Turn {
    guard: Guard,
    in_use: File,
    _turn: Locked,
    reach: Reach,
}

impl Turn {
    /// What there was before commands that could write the index, if what they added to it is not taken out yet.
    pub(crate) fn unsettled(&self) -> toolhost_contract::workspace::Result<Option<Places>> {
        self.guard.before().map_err(failed)
    }

    /// Makes this host and later ones refuse commands until a person has accepted git's files ([`Guard::accept`]).
    pub(crate) fn refuse_until_accepted(&self, names: String) -> toolhost_contract::workspace::Result<()> {
        self.guard.write(EXCHANGED, &Noted { names }).map_err(failed)
    }

    /// It ends without a command: the next one may begin.
    pub(crate) fn end(self) {
        drop(Locked(self.in_use));
    }

    /// It is taken out.
    pub(crate) fn settled(&self) -> toolhost_contract::workspace::Result<()> {
        self.guard.forget("before").map_err(failed)
    }

    /// Keeps what is at the names in `alone` and in `kept`, which are among all the `places`.
    pub(crate) fn keep(
        self,
        alone: &[&str],
        kept: &[&Place],
        mounted: &[MountedPlace],
        places: &Places,
    ) -> toolhost_contract::workspace::Result<Lease> {
        // Hosts of other workspaces begin before this one or after it: theirs may have the same repository.
        let _among_all = match self.reach {
            Reach::All => self.guard.alone_with(kept)?,
            Reach::Mounted => self.guard.beside_no_change()?,
        };
        let snapshot = Snapshot::take(&self.guard.root, alone, kept).map_err(failed)?;
        let held: Vec<Place> = kept.iter().map(|place| (*place).clone()).collect();
        self.guard.keep(&snapshot, places, (&held, mounted), self.reach).map_err(failed)?;
        flock(&self.in_use, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
        self.guard.lease(self.in_use)
    }
}

/// A lock that is given back at once. Closing its file alone would not do: a process that is being started just then has a
/// handle of it, too, until it has become another program.
pub(crate) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing it is all that is left then.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes a lock that nobody holds for longer than a moment.
fn lock_soon(file: &File, how: FlockOperation) -> rustix::io::Result<()> {
    for _ in 1..LOCK_TRIES {
        match flock(file, how) {
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
            other => return other,
        }
    }
    flock(file, how)
}

/// One command's share in the guard.
pub(crate) struct Lease {
    guard: Guard,
    _workspace: Locked,
    /// Only the host holds this lock, and its command does not. A command that runs while no host holds it is an orphan: its host
    /// was killed.
    _host: Locked,
    /// Held until the last process of the command has ended.
    in_use: File,
    ended: bool,
}

impl Guard {
    /// The guard of this very folder. If another folder takes its path, that one has a guard of its own.
    pub(crate) fn new(root: Top, folder: &Path) -> Self {
        let which = format!("{:?}", root.identity());
        let digest =
            Sha256::new().chain_update(root.path().as_os_str().as_bytes()).chain_update([0]).chain_update(which);
        let id = hex::encode(digest.finalize());
        Self { root, folder: folder.to_owned(), id: id[..32].to_owned() }
    }

    /// The part of the mark that the processes of commands in this workspace carry after which something is put back.
    pub(crate) fn mark(&self) -> Mark {
        Mark::of_workspace(&self.id)
    }

    /// At its start a host puts back what the commands of killed hosts have left, in its own workspace and in all others of this
    /// user: one of them may have the same repository.
    pub(crate) fn finish_all(&self) {
        if !self.folder.exists() {
            return;
        }
        let until = Instant::now() + ORPHANS_END_MAX;
        tell_finished(&self.finish(until));
        for (other, _) in self.all_others().unwrap_or_default() {
            if other.has_failed() {
                continue;
            }
            // A failure there is no reason to refuse commands here.
            tell_finished(&other.finish(until));
        }
    }

    /// Waits for orphans to end, then puts back what they have left, and names it. `None`: a command is still under way, and
    /// whoever ends it puts that back.
    fn finish(&self, until: Instant) -> toolhost_contract::workspace::Result<Option<Vec<String>>> {
        self.wait_for_orphans(until)?;
        let _turn = self.turn().map_err(failed)?;
        self.finish_in_turn()
    }

    fn finish_in_turn(&self) -> toolhost_contract::workspace::Result<Option<Vec<String>>> {
        let in_use = self.lock_file("use").map_err(failed)?;
        if flock(&in_use, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        self.restore_kept(true).map(Some)
    }

    /// Waits until no command of a killed host is under way, or the time is up.
    fn wait_for_orphans(&self, until: Instant) -> toolhost_contract::workspace::Result<()> {
        loop {
            let turn = self.turn().map_err(failed)?;
            let is_held = |what| {
                let file = Locked(self.lock_file(what).map_err(failed)?);
                Ok::<_, Error>(flock(&file.0, FlockOperation::NonBlockingLockExclusive).is_err())
            };
            if !is_held("use")? || is_held(HOST)? || Instant::now() >= until {
                return Ok(());
            }
            drop(turn);
            std::thread::sleep(ORPHAN_PAUSE);
        }
    }

    /// Starts a thread that puts back what hosts leave that are killed from now on. It ends when `alive` is dropped.
    pub(crate) fn watch(&self, alive: &Arc<()>) -> Result<()> {
        let (guard, alive) = (self.clone(), Arc::downgrade(alive));
        let watch = move || {
            while alive.strong_count() > 0 {
                let others = guard.all_others().unwrap_or_default().into_iter().map(|(other, _)| other);
                let own = guard.file(KEPT).exists().then(|| guard.clone());
                let kept: Vec<Self> = others.chain(own).collect();
                // The thread reports a failure once.
                for guard in kept.into_iter().filter(|guard| !guard.has_failed()) {
                    tell_finished(&guard.finish(Instant::now()));
                }
                std::thread::sleep(WATCH_PAUSE);
            }
        };
        std::thread::Builder::new().name("git-guard".to_owned()).spawn(watch).map(drop)
    }

    /// Gives a command its share. The caller holds the turn.
    fn lease(&self, in_use: File) -> toolhost_contract::workspace::Result<Lease> {
        let workspace = self.workspace_lock(FlockOperation::NonBlockingLockShared)?;
        let host = Locked(self.lock_file(HOST).map_err(failed)?);
        flock(&host.0, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
        Ok(Lease { guard: self.clone(), _workspace: workspace, _host: host, in_use, ended: false })
    }

    /// Forgets what is kept: a person says that all is as it should be. Refused while a command is under way: what it changes
    /// after the person has looked would be nobody's to put back.
    pub(crate) fn accept(&self) -> toolhost_contract::workspace::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let _turn = self.turn().map_err(failed)?;
        let in_use = self.lock_file("use").map_err(failed)?;
        if lock_soon(&in_use, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::CommandUnderWay);
        }
        [KEPT, "before", EXCHANGED, FAILED].iter().try_for_each(|what| self.forget(what)).map_err(failed)
    }

    /// Whether commands may run here again, as far as nothing is tried.
    ///
    /// # Errors
    /// [`Error::Exchanged`] and [`Error::NotRestored`]: a person has to look first.
    pub(crate) fn looked_at(&self) -> toolhost_contract::workspace::Result<()> {
        if let Some(Noted { names }) = self.read(EXCHANGED).map_err(failed)? {
            return Err(Error::Exchanged { names });
        }
        match self.read(FAILED).map_err(failed)? {
            Some(Noted { names }) => Err(Error::NotRestored { names }),
            None => Ok(()),
        }
    }

    /// The same, after another try to put back what could not be.
    ///
    /// # Errors
    /// As those of [`looked_at`](Self::looked_at).
    pub(crate) fn finish_failed(&self) -> toolhost_contract::workspace::Result<()> {
        match self.looked_at() {
            Err(Error::NotRestored { .. }) => self.finish(Instant::now()).map(drop),
            looked_at => looked_at,
        }
    }

    /// From now on this host and later ones refuse commands, until a person accepts what is there ([`accept`](Self::accept)).
    pub(crate) fn refuse_until_accepted(&self, names: String) -> toolhost_contract::workspace::Result<()> {
        let _turn = self.turn().map_err(failed)?;
        self.write(EXCHANGED, &Noted { names }).map_err(failed)
    }

    /// A turn in which what commands have added to an index can be taken out of it: none, if nothing is to be, or a command
    /// is under way that could add to it again.
    pub(crate) fn unsettled(&self) -> toolhost_contract::workspace::Result<Option<Turn>> {
        if !self.file("before").exists() {
            return Ok(None);
        }
        let turn = self.turn().map_err(failed)?;
        let in_use = self.lock_file("use").map_err(failed)?;
        if flock(&in_use, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        Ok(Some(Turn { guard: self.clone(), in_use, _turn: turn, reach: Reach::Mounted }))
    }

    /// Whether a command is under way whose end will put something back.
    pub(crate) fn is_in_use(&self) -> bool {
        let is_held = |file: File| {
            // Whoever finishes what a killed host has left holds it for a moment, too.
            let look = lock_soon(&file, FlockOperation::NonBlockingLockExclusive);
            drop(Locked(file));
            look.is_err()
        };
        self.folder.exists() && self.lock_file("use").is_ok_and(is_held)
    }

    /// Takes part. What a host that was killed has left is put back first.
    ///
    /// # Errors
    /// [`Error::Overlap`]: a command under way elsewhere reaches what would be kept here; [`Error::OtherTier`]: one under way here
    /// is in another tier.
    pub(crate) fn begin(&self, reach: Reach) -> toolhost_contract::workspace::Result<Begun> {
        self.make_folders().map_err(failed)?;
        if reach == Reach::All {
            self.finish_others()?;
        }
        self.wait_for_orphans(Instant::now() + ORPHANS_END_MAX)?;
        let turn = self.turn().map_err(failed)?;
        if let Some(Noted { names }) = self.read(EXCHANGED).map_err(failed)? {
            return Err(Error::Exchanged { names });
        }
        let in_use = self.lock_file("use").map_err(failed)?;
        if flock(&in_use, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.restore_kept(true)?;
        } else if let Some(kept) = self.kept().map_err(failed)? {
            // What one holds by a mount, the other could take away under it.
            if kept.reach != reach {
                return Err(Error::OtherTier);
            }
            flock(&in_use, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
            return Ok(Begun::Beside(self.lease(in_use)?, kept.places));
        }
        Ok(Begun::Alone(Turn { guard: self.clone(), in_use, _turn: turn, reach }))
    }

    /// The guards of workspaces around this one and inside it, each with what is kept there.
    fn others(&self) -> Result<Vec<(Self, Kept)>> {
        let mut others = self.all_others()?;
        others.retain(|(other, _)| is_over(other.root.path(), self.root.path()));
        Ok(others)
    }

    /// The guards of all other workspaces of this user, each with what is kept there. One of them may have the same repository,
    /// as worktrees and submodules do.
    fn all_others(&self) -> Result<Vec<(Self, Kept)>> {
        let mut others = Vec::new();
        for id in self.others_with(KEPT)? {
            // One that is gone meanwhile, or cannot be read, is its own host's to tell.
            let text = std::fs::read(self.file_of(&id, KEPT)).unwrap_or_default();
            let Ok(KeptRoot { root }) = serde_json::from_slice(&text) else { continue };
            // What is kept of a folder that is gone waits until it is back.
            if root.open().is_ok()
                && let Ok(kept) = serde_json::from_slice::<Kept>(&text)
            {
                others.push((Self { root, folder: self.folder.clone(), id }, kept));
            }
        }
        Ok(others)
    }

    /// The names of all other workspaces that have a file of this kind, which is one of [`SEARCHED`].
    fn others_with(&self, what: &str) -> Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.folder.join(what)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names
            .filter_map(|name: Result<_>| name.transpose())
            .filter(|id| !matches!(id, Ok(id) if *id == self.id))
            .collect()
    }

    /// Puts back what killed hosts have left in other workspaces: it must not be kept here as the person's. A host whose turn it is
    /// there does so itself.
    ///
    /// # Errors
    /// It fails in a workspace around this one or inside it. In any other one a failure is no reason to refuse commands here.
    fn finish_others(&self) -> toolhost_contract::workspace::Result<()> {
        for (other, kept) in self.all_others().map_err(failed)? {
            let is_over_this = is_over(kept.root.path(), self.root.path());
            if other.has_failed() && !is_over_this {
                continue;
            }
            let turn = Locked(other.lock_file("turn").map_err(failed)?);
            if lock_soon(&turn.0, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let finished = other.finish_in_turn();
            match &finished {
                Err(_) if is_over_this => return finished.map(drop),
                _ => tell_finished(&finished),
            }
        }
        Ok(())
    }

    /// Refuses while a command under way in another workspace can change these places: what it has planted would be kept here
    /// as the person's, and put back after that other one has taken it away. None begins there while the answer is held.
    fn alone_with(&self, places: &[&Place]) -> toolhost_contract::workspace::Result<Locked> {
        let among_all = self.beside_no_change()?;
        for (other, kept) in self.others().map_err(failed)? {
            let reaches = |place: &&Place| kept.held.iter().any(|held| is_over(&held.full(), &place.full()));
            if places.iter().any(reaches) && other.is_in_use() {
                return Err(Error::Overlap);
            }
        }
        Ok(among_all)
    }

    /// Puts the kept snapshot back. The last one to do so forgets it.
    fn restore_kept(&self, last: bool) -> toolhost_contract::workspace::Result<Vec<String>> {
        let restored = self.restore(last);
        if last {
            match &restored {
                Ok(_) => self.forget(FAILED),
                Err(Error::NotRestored { names }) => self.write(FAILED, &Noted { names: names.clone() }),
                Err(error) => self.write(FAILED, &Noted { names: error.to_string() }),
            }
            .map_err(failed)?;
        }
        restored
    }

    /// Whether the last try to put git's files back has failed here.
    fn has_failed(&self) -> bool {
        self.file(FAILED).exists()
    }

    fn restore(&self, last: bool) -> toolhost_contract::workspace::Result<Vec<String>> {
        let Some(mut kept) = self.kept().map_err(failed)? else { return Ok(Vec::new()) };
        if last && kept.reach == Reach::All {
            // A killed supervisor holds no lock any more, but processes of its command may still run and plant again.
            self.mark().end_processes(Instant::now() + LEFT_END_MAX).map_err(|_| Error::CommandUnderWay)?;
        }
        match kept.snapshot.restore() {
            Ok(changed) => {
                if last {
                    // Before the snapshot goes: a host that is killed in between leaves both.
                    let names: Vec<String> = kept.mounted.iter().filter_map(MountedPlace::exchanged).collect();
                    let names = named(&names, NAMED_MAX);
                    let is_exchanged = !names.is_empty();
                    if is_exchanged {
                        // The host that ran the command was killed and could not report it.
                        self.write(EXCHANGED, &Noted { names: names.clone() }).map_err(failed)?;
                    }
                    self.keep_before(&kept).and_then(|()| self.forget(KEPT)).map_err(failed)?;
                    if is_exchanged {
                        return Err(Error::Exchanged { names });
                    }
                } else if !changed.is_empty() {
                    // A folder that was made anew has another identity.
                    self.write(KEPT, &kept).map_err(failed)?;
                }
                Ok(changed)
            }
            Err(left) => {
                let names = named(&left, NAMED_MAX);
                tracing::error!(names, snapshot = %self.file(KEPT).display(), "git's files are not as they were: commands are refused");
                Err(Error::NotRestored { names })
            }
        }
    }

    fn kept(&self) -> Result<Option<Kept>> {
        self.read(KEPT)
    }

    fn before(&self) -> Result<Option<Places>> {
        Ok(self.read("before")?.map(|before: Before| before.places))
    }

    /// What is written there.
    fn read<T: DeserializeOwned>(&self, what: &str) -> Result<Option<T>> {
        match std::fs::read(self.file(what)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text).map_err(std::io::Error::other)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn keep(
        &self,
        snapshot: &Snapshot,
        places: &Places,
        (held, mounted): (&[Place], &[MountedPlace]),
        reach: Reach,
    ) -> Result<()> {
        self.write(KEPT, &Keeping { root: &self.root, snapshot, places, held, mounted, reach })
    }

    /// Notes what there was before commands that could write the index. An older note goes on: its commands came first.
    fn keep_before(&self, kept: &Kept) -> Result<()> {
        let reached_the_index = kept.held.iter().any(|place| place.path.ends_with(GIT_DIR));
        if !reached_the_index || self.before()?.is_some() {
            return Ok(());
        }
        self.write("before", &Before { places: kept.places.clone() })
    }

    /// Written aside and renamed: a host that is killed leaves the former one or this one.
    fn write(&self, what: &str, content: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(content)?;
        let temp = self.file("new");
        let mut file = File::create(&temp)?;
        file.write_all(&text)?;
        drop(file);
        std::fs::rename(&temp, self.file(what))
    }

    fn forget(&self, what: &str) -> Result<()> {
        match std::fs::remove_file(self.file(what)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// One at a time, in all hosts. Held for as long as the file is open.
    fn turn(&self) -> Result<Locked> {
        let file = self.lock_file("turn")?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Locked(file))
    }

    /// One at a time, in all hosts of all workspaces. Whoever holds it waits for nobody else's turn.
    fn turn_among_all(&self) -> Result<Locked> {
        let file = File::options().create(true).truncate(false).write(true).open(self.folder.join(AMONG_ALL))?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Locked(file))
    }

    fn lock_file(&self, what: &str) -> Result<File> {
        File::options().create(true).truncate(false).write(true).open(self.file(what))
    }

    fn file(&self, what: &str) -> PathBuf {
        self.file_of(&self.id, what)
    }

    fn file_of(&self, id: &str, what: &str) -> PathBuf {
        if SEARCHED.contains(&what) {
            self.folder.join(what).join(id)
        } else {
            self.folder.join(format!("{id}.{what}"))
        }
    }

    fn make_folders(&self) -> Result<()> {
        let make = |folder: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        SEARCHED.iter().try_for_each(|what| make(&self.folder.join(what)))
    }
}

impl Lease {
    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// A handle of the lock, for a supervisor that outlives this host.
    pub(crate) fn lock(&self) -> Result<OwnedFd> {
        Ok(self.in_use.try_clone()?.into())
    }

    /// Puts back what has changed and names it. If no other command is under way, none begins before the turn in the answer ends:
    /// until then it can be seen what the person's git obeys now.
    pub(crate) fn restore(mut self) -> toolhost_contract::workspace::Result<(Vec<String>, Option<Turn>)> {
        self.ended = true;
        let turn = self.guard.turn().map_err(failed)?;
        let last = flock(&self.in_use, FlockOperation::NonBlockingLockExclusive).is_ok();
        let restored = self.guard.restore_kept(last)?;
        if !last {
            return Ok((restored, None));
        }
        let in_use = self.in_use.try_clone().map_err(failed)?;
        let turn = Turn { guard: self.guard.clone(), in_use, _turn: turn, reach: Reach::All };
        Ok((restored, Some(turn)))
    }
}

impl Drop for Lease {
    /// Nobody waits for the command any more, and something of it may still run: it is put back now, and the next command
    /// looks again.
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let restored = self.guard.turn().map_err(failed).and_then(|_turn| self.guard.restore_kept(false));
        if let Err(error) = restored {
            tracing::error!(%error, "a command was dropped");
        }
    }
}

/// Logs what was put back of what killed hosts have left. After a failure, commands in that workspace are refused.
fn tell_finished(finished: &toolhost_contract::workspace::Result<Option<Vec<String>>>) {
    match finished {
        Ok(Some(names)) if !names.is_empty() => {
            tracing::warn!(names = named(names, NAMED_MAX), "put back what the command of a killed host had changed");
        }
        Ok(_) => {}
        Err(error) => tracing::error!(%error, "a former host's commands"),
    }
}

/// Whether one is the other or is inside it.
fn is_over(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn failed(source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::StaleNetworkFileHandle => Error::OtherFolder,
        _ => Error::Io { path: "what git obeys".to_owned(), source },
    }
}

#[cfg(test)]
mod tests;
