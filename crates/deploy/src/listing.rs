//! What is in a tree, and the contents' hashes.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::ignored::{Inherited, Rules};
use super::journal::may_be_deployed;
use super::root::{Root, Stat, Stop, in_parallel, look};
use super::rules::{Filter, lineage};
use super::{DEPTH_MAX, Reason, WORK_FOLDER};
use toolhost_contract::workspace::{Error, PATH_BYTES_MAX, POLICY_FILE, Result, is_git_internal};
use toolhost_sandbox::WALK_ENTRIES_MAX;
use toolhost_sandbox::from_io;
use toolhost_sandbox::sha256_of;

/// How long a file must have rested before its stamps stand for its content: stamps are as coarse as the kernel's tick.
const SETTLED_AFTER: Duration = Duration::from_millis(200);

/// Why a folder is left out that could not be looked into, or a file that could not.
pub(super) const CLOSED: &str = "it cannot be read";

const TOO_DEEP: &str = "it is deeper than 256 folders";
const _: () = assert!(DEPTH_MAX == 256, "TOO_DEEP says so");

/// One entry of a walk.
pub(super) struct Entry<'a> {
    pub(super) path: &'a str,
    pub(super) name: &'a str,
    pub(super) stat: Stat,
    pub(super) ignored: bool,
    /// Otherwise the path is only an approximation.
    pub(super) utf8: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Descend,
    Pass,
}

/// Shows every entry of a tree; answers the folders that could not be looked into.
pub(super) fn walk(
    root: &Root,
    above: Inherited,
    stop: Stop<'_>,
    visit: &mut dyn FnMut(Entry<'_>) -> Result<Next>,
) -> Result<Vec<String>> {
    let mut folders = vec![(String::new(), above)];
    let mut closed = Vec::new();
    let mut seen = 0;
    while let Some((folder, above)) = folders.pop() {
        if stop() {
            return Err(Error::Cancelled);
        }
        let opened = match root.listed_folder(&folder) {
            Ok(opened) => opened,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) if folder.is_empty() => return Err(from_io(".", e)),
            Err(_) => {
                closed.push(folder);
                continue;
            }
        };
        let rules = match Rules::of(root, &folder, above) {
            Ok(rules) => rules,
            Err(e) if folder.is_empty() => return Err(e),
            // Without its ignore file nobody knows what in it ships.
            Err(_) => {
                closed.push(folder);
                continue;
            }
        };
        let io = |e: Errno| from_io(if folder.is_empty() { "." } else { &folder }, e.into());
        for entry in Dir::read_from(&opened).map_err(io)? {
            let entry = entry.map_err(io)?;
            let raw = entry.file_name();
            if raw == c"." || raw == c".." {
                continue;
            }
            seen += 1;
            if seen > WALK_ENTRIES_MAX {
                let limit = WALK_ENTRIES_MAX as u64;
                return Err(Error::Limit {
                    what: "the number of entries in a folder".to_owned(),
                    actual: seen as u64,
                    limit,
                });
            }
            let name = raw.to_string_lossy();
            let path = if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
            let utf8 = raw.to_str().is_ok();
            let stat = match rustix::fs::statat(&opened, raw, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Stat::from(stat),
                Err(Errno::NOENT) => continue,
                // It may be listed and not entered.
                Err(Errno::ACCESS) if !folder.is_empty() => {
                    closed.push(folder);
                    break;
                }
                Err(e) => return Err(from_io(&path, e.into())),
            };
            let ignored = rules.as_ref().is_some_and(|rules| rules.ignore(&path, stat.is_folder()));
            let next = visit(Entry { path: &path, name: &name, stat, ignored, utf8 })?;
            if stat.is_folder() && next == Next::Descend {
                folders.push((path, rules.clone()));
            }
        }
    }
    Ok(closed)
}

/// The workspace, sorted into what ships and what does not.
#[derive(Default)]
pub(super) struct Source {
    pub(super) files: Vec<(String, Stat)>,
    /// Modes of the folders that were looked into.
    pub(super) folders: HashMap<String, u32>,
    /// Everything that is no folder, and folders that were not looked into.
    present: HashSet<String>,
    pub(super) refused: Vec<Reason>,
}

impl Source {
    /// `own` is where the workspace itself is in the target, if it is below it.
    pub(super) fn list(
        root: &Root,
        filter: &Filter<'_>,
        files_max: usize,
        own: Option<&str>,
        above: Inherited,
        stop: Stop<'_>,
    ) -> Result<Self> {
        let mut found = Self::default();
        let closed = walk(root, above, stop, &mut |entry| {
            let folder = entry.stat.is_folder();
            if let Some(why) = refusal(&entry, filter, own) {
                found.refuse(Reason::new(entry.path, folder, why), entry.path);
                return Ok(Next::Pass);
            }
            if let Some(why) = unreachable(&entry) {
                found.hold_back(entry.path, folder, why);
                return Ok(Next::Pass);
            }
            if entry.stat.is_folder() {
                found.folders.insert(entry.path.to_owned(), entry.stat.mode());
                return Ok(Next::Descend);
            }
            if found.files.len() >= files_max {
                let (actual, limit) = (files_max as u64 + 1, files_max as u64);
                return Err(Error::Limit { what: "the number of files to deploy".to_owned(), actual, limit });
            }
            found.files.push((entry.path.to_owned(), entry.stat));
            Ok(Next::Pass)
        })?;
        for folder in closed {
            found.hold_back(&folder, true, CLOSED);
        }
        found.present.extend(found.files.iter().map(|(path, _)| path.clone()));
        found.refuse_twins();
        found.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    fn refuse(&mut self, reason: Reason, path: &str) {
        self.present.insert(path.to_owned());
        self.refused.push(reason);
    }

    /// Leaves out what would ship if it could.
    pub(super) fn hold_back(&mut self, path: &str, folder: bool, why: &str) {
        self.refuse(Reason::hindrance(path, folder, why), path);
    }

    /// Two names that are one where case does not count: whichever came last would win, so neither ships.
    fn refuse_twins(&mut self) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        for (path, _) in &self.files {
            *counts.entry(path.to_lowercase()).or_default() += 1;
        }
        let files = std::mem::take(&mut self.files);
        for (path, stat) in files {
            if counts.get(&path.to_lowercase()).is_some_and(|&count| count > 1) {
                self.hold_back(&path, false, "it differs only in case from another");
            } else {
                self.files.push((path, stat));
            }
        }
    }

    /// Whether the workspace has this path, or did not look into a folder that would hold it.
    pub(super) fn has(&self, path: &str) -> bool {
        lineage(path).any(|part| self.present.contains(part))
    }
}

fn refusal(entry: &Entry<'_>, filter: &Filter<'_>, own: Option<&str>) -> Option<&'static str> {
    let folder = entry.stat.is_folder();
    match () {
        () if is_git_internal(entry.name) => Some("it belongs to git"),
        () if entry.path.eq_ignore_ascii_case(WORK_FOLDER) => Some("it belongs to Toolhost"),
        () if entry.path.eq_ignore_ascii_case(POLICY_FILE) => Some("it is the project's policy"),
        () if own == Some(entry.path) => Some("its place is the workspace itself"),
        () if entry.ignored => Some("git ignores it"),
        () if !folder && !entry.stat.is_file() => Some(match entry.stat.what() {
            "a link" => "it is a link",
            _ => "it is not a regular file",
        }),
        () if !folder && !filter.ships(entry.name) => Some("its kind of file is not in the list of what ships"),
        () => None,
    }
}

/// Why an entry cannot be deployed or deleted whatever the rules say. Whoever makes files of the workspace must not be
/// able to stop a deploy by their names or their depth.
pub(super) fn unreachable(entry: &Entry<'_>) -> Option<&'static str> {
    match () {
        () if !entry.utf8 => Some("its name is not UTF-8"),
        () if entry.path.len() > PATH_BYTES_MAX => Some("its path is too long"),
        () if entry.stat.is_folder() && lineage(entry.path).count() > DEPTH_MAX => Some(TOO_DEEP),
        () if !may_be_deployed(entry.path) => Some("its path is not one that can be named here"),
        () => None,
    }
}

/// A file to hash.
pub(super) struct Job<'a> {
    pub(super) root: &'a Root,
    pub(super) path: &'a str,
}

/// A file's content at the moment of its stamps.
#[derive(Clone)]
pub(super) struct Hashed {
    pub(super) sha256: String,
    pub(super) stat: Stat,
}

/// Hashes of files that have rested since: their stamps tell whether they still have. Between a plan and its run
/// nothing has usually changed, and what is copied is hashed again while it is copied.
#[derive(Default)]
pub(super) struct Hashes(Mutex<HashMap<Stat, String>>);

impl Hashes {
    /// Hashes all of them; `None` for one that may not be read.
    pub(super) fn all(&self, jobs: &[Job<'_>], stop: Stop<'_>) -> Result<Vec<Option<Hashed>>> {
        let now = SystemTime::now();
        // Taken out while the threads work, so that they need no lock; two plans at once only hash twice.
        let known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let hashed = in_parallel(jobs.len(), stop, |n, buffer| one(&jobs[n], &known, buffer));
        let fresh = hashed.iter().flatten().flatten().filter(|hashed| settled(&hashed.stat, now));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            fresh.map(|hashed| (hashed.stat, hashed.sha256.clone())).collect();
        hashed
    }
}

fn one(job: &Job<'_>, known: &HashMap<Stat, String>, buffer: &mut [u8]) -> Result<Option<Hashed>> {
    let (file, stat) = match job.root.file(job.path) {
        Ok(opened) => opened,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => return Ok(None),
        Err(Error::Io { path, source }) => return Err(Error::Io { path, source }),
        Err(_) => return Err(Error::PlanStale { what: format!("`{}`", job.path) }),
    };
    if let Some(sha256) = known.get(&stat) {
        return Ok(Some(Hashed { sha256: sha256.clone(), stat }));
    }
    let sha256 = sha256_of(file, buffer).map_err(|e| from_io(job.path, e))?;
    Ok(Some(Hashed { sha256, stat }))
}

fn settled(stat: &Stat, now: SystemTime) -> bool {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(stat.changed.0), u32::try_from(stat.changed.1)) else { return false };
    now.duration_since(UNIX_EPOCH + Duration::new(seconds, nanos)).is_ok_and(|rested| rested > SETTLED_AFTER)
}

/// What stands in the way at the target, or does not.
pub(super) enum Place {
    Free,
    File(Stat),
    Blocked(&'static str),
}

/// Looks at paths of the target, a folder at a time.
pub(super) struct EntryChecker<'a> {
    root: &'a Root,
    folder: Option<(String, FolderAt)>,
}

/// What stands where a folder should be.
pub(super) enum FolderAt {
    Open(std::os::fd::OwnedFd),
    Missing,
    Blocked(&'static str),
}

impl<'a> EntryChecker<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, folder: None }
    }

    pub(super) fn at(&mut self, path: &str) -> Result<Place> {
        let (folder, name) = super::root::split(path);
        if self.folder.as_ref().is_none_or(|(open, _)| open != folder) {
            self.folder = Some((folder.to_owned(), folder_at(self.root, folder)?));
        }
        let open = match self.folder.as_ref().map(|(_, at)| at) {
            Some(FolderAt::Open(open)) => open,
            Some(FolderAt::Blocked(why)) => return Ok(Place::Blocked(why)),
            Some(FolderAt::Missing) | None => return Ok(Place::Free),
        };
        let found = look(open, name).map_err(|e| from_io(path, e))?;
        Ok(match found {
            None => Place::Free,
            Some(stat) if stat.is_file() => Place::File(stat),
            Some(stat) if stat.is_folder() => Place::Blocked("a folder stands at its place in the target"),
            Some(stat) if stat.what() == "a link" => Place::Blocked("a link stands at its place in the target"),
            Some(_) => Place::Blocked("something special stands at its place in the target"),
        })
    }
}

/// What a path goes through that is no folder.
fn in_the_way(root: &Root, path: &str) -> Result<&'static str> {
    for part in lineage(path) {
        let (parent, name) = root.parent(part)?;
        match look(&parent, name).map_err(|e| from_io(part, e))? {
            Some(stat) if stat.is_folder() => {}
            Some(stat) if stat.what() == "a link" => break,
            _ => return Ok("a file stands in its path in the target"),
        }
    }
    Ok("its path leads through a link in the target")
}

/// Whether a folder of the target can be worked in.
pub(super) fn folder_at(root: &Root, folder: &str) -> Result<FolderAt> {
    use rustix::fs::{Access, AtFlags};
    let open = match root.folder(folder) {
        Ok(open) => open,
        Err(e) => {
            return match Errno::from_io_error(&e) {
                Some(Errno::NOENT) => Ok(FolderAt::Missing),
                Some(Errno::LOOP | Errno::XDEV | Errno::NOTDIR) => Ok(FolderAt::Blocked(in_the_way(root, folder)?)),
                Some(Errno::ACCESS) => Ok(FolderAt::Blocked("its folder in the target cannot be entered")),
                _ => Err(from_io(folder, e)),
            };
        }
    };
    let stat = Stat::from(rustix::fs::fstat(&open).map_err(|e| from_io(folder, e.into()))?);
    if stat.device != root.device {
        return Ok(FolderAt::Blocked("its folder in the target is another file system"));
    }
    if rustix::fs::accessat(&open, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_err() {
        return Ok(FolderAt::Blocked("its folder in the target cannot be written to"));
    }
    Ok(FolderAt::Open(open))
}
