//! The folder `.toolhost` of a target: who works here, what deploys have put there, and what each has done.
//!
//! A deploy's folder tells by its marker files how far it has come. None: it was being prepared, and the target is as
//! it was. `commit`: it is to be finished. `done`. `undo`: it is to be taken back. `undone`. A marker is written once
//! and synced, so every moment is in one of these states.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use cap_std::fs::{Dir, MetadataExt};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::plan::{MadeFolder, PlannedFile, PlannedRemoval};
use super::root::{Root, Stop};
use super::{DeployMark, DeployRecord, DeployState, WORK_FOLDER};
use toolhost_contract::workspace::{Error, POLICY_FILE, ReadSpan, Result, WriteGuard, WsPath, is_git_internal};
use toolhost_sandbox::Tree;
use toolhost_sandbox::from_io;
use toolhost_sandbox::remove_tree;

/// How long a deploy waits for another to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(20);
/// Largest file of the journal that is read.
const NOT_OURS: &str = "was not written by a deploy of yours, so its word is not taken: move the folder away";
const MARKER_BYTES_MAX: u64 = 100;
const JOURNAL_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Begins the name of a deploy's folder that is being removed.
const LEAVING: &str = ".leaving-";

/// What deploys have put into the target.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) files: BTreeMap<String, ManifestFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ManifestFile {
    pub(super) sha256: String,
    pub(super) mode: u32,
}

/// What a deploy sets out to do, written down before it begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) files: Vec<PlannedFile>,
    pub(super) orphans: Vec<PlannedRemoval>,
    pub(super) folders: Vec<MadeFolder>,
    /// What the manifest forgets, because the target does not have it.
    pub(super) gone: Vec<String>,
}

/// The short story of a deploy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) id: String,
    pub(super) sequence: u64,
    pub(super) at_ms: i64,
    pub(super) who: String,
    pub(super) new: usize,
    pub(super) changed: usize,
    pub(super) deleted: usize,
    pub(super) bytes: u64,
}

/// How far a deploy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Preparing,
    Committed,
    Done,
    Undoing,
    Undone,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    Commit,
    Done,
    Undo,
    Undone,
}

impl Marker {
    fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Done => "done",
            Self::Undo => "undo",
            Self::Undone => "undone",
        }
    }
}

/// The work folder, locked while this is held unless it was opened only to look.
pub(super) struct Work {
    tree: Tree,
    key: DeployKey,
    _lock: Option<OwnedFd>,
}

/// One deploy's folder.
pub(super) struct Deploy {
    pub(super) id: String,
    pub(super) new: Dir,
    pub(super) former: Dir,
    pub(super) record: Record,
    /// What stood at a file's place at the last moment instead of what the record says, by its name in `former`.
    pub(super) late: BTreeMap<String, ManifestFile>,
}

impl Work {
    /// Opens and locks the work folder if there is one.
    pub(super) fn open(root: &Root, key: &DeployKey, stop: Stop<'_>) -> Result<Option<Self>> {
        let Some(dir) = trusted(root)? else { return Ok(None) };
        let lock = lock(&dir, stop)?;
        Ok(Some(Self { tree: Tree::of_ours(dir), key: key.clone(), _lock: Some(lock) }))
    }

    /// The same, made if need be.
    pub(super) fn create(root: &Root, key: &DeployKey, stop: Stop<'_>) -> Result<Self> {
        let io = |e: std::io::Error| from_io(WORK_FOLDER, e);
        match rustix::fs::mkdirat(root.tree().dir(), WORK_FOLDER, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(io(e.into())),
        }
        let work = Self::open(root, key, stop)?.ok_or_else(|| Error::PlanStale { what: format!("`{WORK_FOLDER}`") })?;
        if !work.has(".gitignore") {
            work.write(".gitignore", b"*\n")?;
        }
        work.tree.dir().create_dir_all("deploys").map_err(io)?;
        Ok(work)
    }

    /// Opens it without the lock, only to look.
    pub(super) fn look(root: &Root, key: &DeployKey) -> Result<Option<Self>> {
        Ok(trusted(root)?.map(|dir| Self { tree: Tree::of_ours(dir), key: key.clone(), _lock: None }))
    }

    pub(super) fn manifest(&self) -> Result<Manifest> {
        self.manifest_at("manifest.json")
    }

    fn manifest_at(&self, path: &str) -> Result<Manifest> {
        Ok(self.read_json(path)?.unwrap_or_default())
    }

    /// The manifest as it was before a deploy.
    pub(super) fn former_manifest(&self, id: &str) -> Result<Manifest> {
        self.manifest_at(&format!("deploys/{id}/manifest.json"))
    }

    pub(super) fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.write_json("manifest.json", manifest)
    }

    /// Every deploy that has got as far as to say what it is, oldest first.
    pub(super) fn deploys(&self) -> Result<Vec<About>> {
        let mut found = Vec::new();
        for id in self.folders()?.into_iter().filter(|id| !id.starts_with(LEAVING)) {
            if let Some(about) = self.read_json::<About>(&format!("deploys/{id}/about.json"))? {
                found.push(About { id, ..about });
            }
        }
        found.sort_by_key(|about| about.sequence);
        Ok(found)
    }

    /// Names of the deploys' folders.
    pub(super) fn folders(&self) -> Result<Vec<String>> {
        let io = |e| from_io("deploys", e);
        let entries = match self.tree.dir().read_dir("deploys") {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io)?,
        };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<std::io::Result<Vec<_>>>();
        let mut names: Vec<String> =
            names.map_err(io)?.into_iter().filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// How far a deploy has come. A marker that was not written with our key is an error, and nothing is done about it: it
    /// may be somebody's invention, or another user's deploy.
    pub(super) fn stage(&self, id: &str) -> Result<Stage> {
        let has = |marker: Marker| -> Result<bool> {
            let path = format!("deploys/{id}/{}", marker.name());
            let span = ReadSpan { start: 0, bytes_max: MARKER_BYTES_MAX };
            match self.tree.read(&WsPath::parse(&path)?, span) {
                Ok(found) if found.bytes == self.key.seal(&path, b"").as_bytes() => Ok(true),
                Ok(_) => Err(damaged(&path, NOT_OURS)),
                Err(Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        };
        Ok(match () {
            () if id.starts_with(LEAVING) || !has(Marker::Commit)? => Stage::Preparing,
            () if has(Marker::Undone)? => Stage::Undone,
            () if has(Marker::Undo)? => Stage::Undoing,
            () if has(Marker::Done)? => Stage::Done,
            () => Stage::Committed,
        })
    }

    pub(super) fn mark(&self, id: &str, marker: Marker) -> Result<()> {
        let path = format!("deploys/{id}/{}", marker.name());
        // Already there: it was written before a crash.
        if self.has(&path) { Ok(()) } else { self.write(&path, self.key.seal(&path, b"").as_bytes()) }
    }

    /// Writes down what a deploy sets out to do.
    pub(super) fn begin(&self, mark: &DeployMark, record: Record, bytes: u64) -> Result<Deploy> {
        let last = self.deploys()?.last().map_or(0, |about| about.sequence);
        let id = &mark.id;
        let folder = format!("deploys/{id}");
        let dir = self.tree.dir();
        dir.create_dir(&folder).map_err(|e| from_io(&folder, e))?;
        for part in ["new", "former"] {
            dir.create_dir(format!("{folder}/{part}")).map_err(|e| from_io(&folder, e))?;
        }
        let changed = record.files.iter().filter(|file| file.former.is_some()).count();
        let about = About {
            id: id.clone(),
            sequence: last + 1,
            at_ms: mark.at_ms,
            who: mark.who.clone(),
            new: record.files.len() - changed,
            changed,
            deleted: record.orphans.len(),
            bytes,
        };
        self.write_json(&format!("{folder}/manifest.json"), &self.manifest()?)?;
        self.write_json(&format!("{folder}/plan.json"), &record)?;
        self.write_json(&format!("{folder}/about.json"), &about)?;
        self.open_deploy(id, record)
    }

    /// A deploy that was begun earlier.
    pub(super) fn load(&self, id: &str) -> Result<Deploy> {
        let path = format!("deploys/{id}/plan.json");
        let record: Record = self.read_json(&path)?.ok_or_else(|| damaged(&path, "is missing"))?;
        let files = record.files.iter().map(|file| &file.path);
        let paths = files.chain(record.orphans.iter().map(|o| &o.path)).chain(record.folders.iter().map(|f| &f.path));
        // The folder may have come with the project, and be somebody's invention.
        if let Some(bad) = paths.into_iter().find(|path| !may_be_deployed(path)) {
            return Err(damaged(&path, &format!("names `{bad}`, which no deploy touches")));
        }
        self.open_deploy(id, record)
    }

    fn open_deploy(&self, id: &str, record: Record) -> Result<Deploy> {
        let open = |part: &str| {
            let path = format!("deploys/{id}/{part}");
            self.tree.dir().open_dir(&path).map_err(|e| from_io(&path, e))
        };
        let late = self.read_json(&format!("deploys/{id}/late.json"))?.unwrap_or_default();
        Ok(Deploy { id: id.to_owned(), new: open("new")?, former: open("former")?, record, late })
    }

    /// Writes down what was put away and is not what the record says, so that it is known again.
    pub(super) fn note_late(&self, id: &str, late: &BTreeMap<String, ManifestFile>) -> Result<()> {
        if late.is_empty() { Ok(()) } else { self.write_json(&format!("deploys/{id}/late.json"), late) }
    }

    /// Removes a deploy's folder. The first step takes it out of the list, so that no half of it is taken for a whole.
    pub(super) fn remove(&self, id: &str) -> Result<()> {
        let io = |e| from_io(id, e);
        let dir = self.tree.dir();
        let leaving = if id.starts_with(LEAVING) { id.to_owned() } else { format!("{LEAVING}{id}") };
        if leaving != id {
            dir.rename(format!("deploys/{id}"), dir, format!("deploys/{leaving}")).map_err(io)?;
        }
        remove_tree(dir.open_dir("deploys").map_err(io)?, &leaving).map_err(io)
    }

    pub(super) fn history(&self) -> Result<Vec<DeployRecord>> {
        let record = |about: About| -> Result<DeployRecord> {
            let state = match self.stage(&about.id)? {
                Stage::Preparing | Stage::Committed | Stage::Undoing => DeployState::Unfinished,
                Stage::Done => DeployState::Done,
                Stage::Undone => DeployState::Undone,
            };
            let About { id, sequence: _, at_ms, who, new, changed, deleted, bytes } = about;
            Ok(DeployRecord { id, at_ms, who, new, changed, deleted, bytes, state })
        };
        let mut all: Vec<_> = self.deploys()?.into_iter().map(record).collect::<Result<_>>()?;
        all.reverse();
        Ok(all)
    }

    fn has(&self, path: &str) -> bool {
        self.tree.dir().symlink_metadata(path).is_ok()
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.tree.write(&WsPath::parse(path)?, bytes, &WriteGuard::default()).map(|_| ())
    }

    fn write_json(&self, path: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(value).expect("strings and numbers have a JSON form");
        let seal = self.key.seal(path, &text);
        text.push(b'\n');
        text.extend(seal.into_bytes());
        self.write(path, &text)
    }

    /// `None` if there is no such file.
    fn read_json<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        let span = ReadSpan { start: 0, bytes_max: JOURNAL_BYTES_MAX };
        let content = match self.tree.read(&WsPath::parse(path)?, span) {
            Err(Error::NotFound { .. }) => return Ok(None),
            content => content?,
        };
        let sealed = content.bytes.iter().rposition(|byte| *byte == b'\n').map(|at| content.bytes.split_at(at));
        let Some((text, seal)) = sealed.filter(|(text, seal)| self.key.seal(path, text).as_bytes() == &seal[1..])
        else {
            return Err(damaged(path, NOT_OURS));
        };
        debug_assert!(!seal.is_empty(), "it begins with the line break");
        serde_json::from_slice(text).map(Some).map_err(|e| damaged(path, &format!("cannot be read: {e}")))
    }
}

/// What tells a journal that deploys have written from one that came with the files: it is known to no agent.
#[derive(Clone)]
pub struct DeployKey([u8; 32]);

impl DeployKey {
    pub fn new(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// A keyed hash over a file of the journal and its place (a key on both sides, as HMAC has it).
    fn seal(&self, path: &str, content: &[u8]) -> String {
        let inner = Sha256::new().chain_update(self.0).chain_update(path).chain_update([0]).chain_update(content);
        hex::encode(Sha256::new().chain_update(self.0).chain_update(inner.finalize()).finalize())
    }
}

impl std::fmt::Debug for DeployKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeployKey(***)")
    }
}

/// Whether a deploy's record may name this path.
pub(super) fn may_be_deployed(path: &str) -> bool {
    let plain = WsPath::parse(path).is_ok_and(|parsed| parsed.as_str() == path && !parsed.is_root());
    let top = path.split('/').next().unwrap_or_default();
    plain && !is_git_internal(path) && !top.eq_ignore_ascii_case(WORK_FOLDER) && !path.eq_ignore_ascii_case(POLICY_FILE)
}

fn damaged(path: &str, why: &str) -> Error {
    Error::DeployState { path: format!("{WORK_FOLDER}/{path}"), why: why.to_owned() }
}

/// The work folder, if it is there and nobody else's.
fn trusted(root: &Root) -> Result<Option<Dir>> {
    let distrust = |why: &str| Err(Error::DeployState { path: WORK_FOLDER.to_owned(), why: why.to_owned() });
    let dir = match root.listed_folder(WORK_FOLDER) {
        Ok(dir) => Dir::from_std_file(dir.into()),
        Err(e) => {
            return match Errno::from_io_error(&e) {
                Some(Errno::NOENT) => Ok(None),
                Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                    distrust("is not a folder, so nothing can be deployed here: move it away")
                }
                _ => Err(from_io(WORK_FOLDER, e)),
            };
        }
    };
    let metadata = dir.dir_metadata().map_err(|e| from_io(WORK_FOLDER, e))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return distrust("belongs to another user, so its word is not taken: move it away");
    }
    // One that came with a checkout is open to others: what it says was not written by a deploy.
    if metadata.mode() & 0o077 != 0 {
        return distrust(
            "is open to others, so its word is not taken: move it away, or close it (chmod 700) if it is yours",
        );
    }
    if metadata.dev() != root.device {
        return distrust("is on another file system, so files cannot be moved from there");
    }
    Ok(Some(dir))
}

fn lock(dir: &Dir, stop: Stop<'_>) -> Result<OwnedFd> {
    let io = |e: Errno| from_io("lock", e.into());
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(dir, "lock", flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
    let began = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if began.elapsed() < LOCK_WAIT => {
                if stop() {
                    return Err(Error::Cancelled);
                }
                std::thread::sleep(LOCK_LOOK_EVERY);
            }
            Err(Errno::WOULDBLOCK) => return Err(Error::DeployBusy),
            Err(e) => return Err(io(e)),
        }
    }
}
