//! What git obeys, kept word for word, and put back.
//!
//! A command may have left anything: links in the middle of a path, folders without permissions, another folder under an old
//! name, trees without end. So every access goes to one name below an opened parent, through no link; what stands in the
//! way is renamed aside and not walked through; a folder is the same only if its device and inode are; and after putting
//! back everything is looked at again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, Read, Result, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::accepted::{Need, Strange, is_head, strange};
use super::places::{Place, Rule};
use super::read::{Identity, Top};
use crate::remover::remove_some;

/// Larger files cannot be put back; nobody's git configuration is.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// All of them together.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// Most files and folders kept.
const NODES_MAX: usize = 20_000;
/// How often putting back is tried.
const ROUNDS_MAX: usize = 3;
/// Most entries that are removed when the disk is too full to move them aside.
const REMOVED_MAX: u64 = 10_000;
/// How many entries are looked at for a repository that was moved away.
const SOUGHT_MAX: usize = 50_000;
/// What stands in the way gets a name that begins so.
const ASIDE: &str = "toolhost-planted-";
/// How many such names are counted up; further ones are drawn.
const ASIDE_COUNTED: u32 = 20;
const ASIDE_TRIES_MAX: u32 = 100;
/// A file of the person's on its way back, beside its place.
const BACK: &str = ".toolhost-back.tmp";

/// Files in a repository's folder by which git is told what to do or where to look.
/// `MERGE_AUTOSTASH` names a stash that the next `git commit` puts into the working tree and the index.
pub(super) const ARMED_FILES: [&str; 5] = ["config", "config.worktree", "commondir", "gitdir", "MERGE_AUTOSTASH"];
/// Folders of such files.
pub(super) const ARMED_FOLDERS: [&str; 4] = ["hooks", "info", "branches", "remotes"];

/// Files that say from where else a repository takes its objects: git does not compare what it takes with its name.
const BORROWED: [&str; 2] = ["objects/info/alternates", "objects/info/http-alternates"];

/// Everything kept of one workspace, parents before what is in them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Snapshot {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    /// The folder that is trusted: the workspace, or the parent of a repository outside it.
    top: Top,
    /// Below `top`, plain names; empty for `top` itself.
    path: PathBuf,
    was: State,
    /// Who it belonged to.
    owner: (u32, u32),
    /// Where nothing else may be: the names in this folder.
    entries: Option<BTreeSet<String>>,
    /// A repository's own folder: another one cannot take its place.
    repository: bool,
    /// Commands may change it as long as git accepts it.
    #[serde(default)]
    need: Option<Need>,
}

/// What is at a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) enum State {
    Absent,
    File {
        /// Lower-case hex.
        bytes: String,
        mode: u32,
        /// It has more than one name: through a second one, a later command could change it.
        #[serde(default)]
        shared: bool,
    },
    Link(PathBuf),
    Folder {
        identity: Identity,
        mode: u32,
    },
    /// Something else, or too large to keep: told apart by identity, left alone while it is the same.
    Other {
        device: u64,
        inode: u64,
        size: i64,
    },
}

impl State {
    /// Whether nothing has to be put back. A file that lost its second name is no danger.
    fn is_as(&self, was: &Self) -> bool {
        match (self, was) {
            (
                Self::File { bytes, mode, shared: false },
                Self::File { bytes: bytes_before, mode: mode_before, shared: true },
            ) => bytes == bytes_before && mode == mode_before,
            (now, was) => now == was,
        }
    }
}

/// How a name is looked through.
#[derive(Clone, Copy)]
enum Depth {
    /// A repository's folder: only what git obeys in it.
    Git,
    /// All of it.
    Whole,
    /// A folder of repositories' folders, however deep they lie.
    Repositories,
    /// The name alone.
    Name,
    /// What git needs to accept a repository.
    Needed(Need),
}

impl Snapshot {
    /// Looks at the names in `alone` and at all of `places`.
    ///
    /// # Errors
    /// More than can be kept, and what cannot be read.
    pub(crate) fn take(root: &Top, alone: &[&str], places: &[&Place]) -> Result<Self> {
        let mut taking = Taking::default();
        let name = |path: &str, depth| (root.clone(), PathBuf::from(path), depth);
        taking.todo.push_back(name("", Depth::Name));
        taking.todo.extend(alone.iter().map(|alone| name(alone, Depth::Name)));
        for place in places {
            let depth = if place.rule == Rule::Git { Depth::Git } else { Depth::Whole };
            // The folders on the way are told by identity, so that none of them can be exchanged.
            let above = place.path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
            let mut above: Vec<PathBuf> = above.map(Path::to_owned).collect();
            above.reverse();
            taking.todo.extend(above.into_iter().map(|path| (place.top.clone(), path, Depth::Name)));
            taking.todo.push_back((place.top.clone(), place.path.clone(), depth));
        }
        let mut snapshot = taking.run()?;
        snapshot.keep_links()?;
        Ok(snapshot)
    }

    /// Keeps the links that are in repositories of the workspace already: others may not come.
    fn keep_links(&mut self) -> Result<()> {
        let known: BTreeSet<PathBuf> = self.nodes.iter().map(|node| node.path.clone()).collect();
        for (top, git) in self.outermost() {
            let Strange { links, too_many, .. } = strange(&top, &git);
            if too_many {
                return Err(Error::other(format!("`{}` has more files than can be looked at", git.display())));
            }
            for path in links.into_iter().filter(|path| !known.contains(path)) {
                let (was, owner) = look(&top, &path)?;
                let top = top.clone();
                self.nodes.push(Node { top, path, was, owner, entries: None, repository: false, need: None });
            }
        }
        Ok(())
    }

    /// The folders of repositories in the workspace that are in no other one's.
    fn outermost(&self) -> Vec<(Top, PathBuf)> {
        let Some(root) = self.nodes.first().map(|node| &node.top) else { return Vec::new() };
        let is_outermost = |node: &&Node| {
            let outer =
                |other: &Node| other.repository && node.path != other.path && node.path.starts_with(&other.path);
            node.repository && node.top == *root && !self.nodes.iter().any(outer)
        };
        self.nodes.iter().filter(is_outermost).map(|node| (node.top.clone(), node.path.clone())).collect()
    }

    /// Puts everything back and answers what had been changed, by its name in the workspace.
    ///
    /// # Errors
    /// The names that are still not as they were.
    pub(crate) fn restore(&mut self) -> std::result::Result<Vec<String>, Vec<String>> {
        let exchanged = self.exchanged();
        if !exchanged.is_empty() {
            return Err(exchanged);
        }
        let mut changed = BTreeSet::new();
        let folders: BTreeSet<Identity> = self.nodes.iter().filter_map(Node::folder).collect();
        for _ in 0..ROUNDS_MAX {
            let mut differs = false;
            let mut moved = Moved { folders: &folders, found: BTreeMap::new() };
            for node in &mut self.nodes {
                let differences = node.differences();
                if differences.is_empty() {
                    continue;
                }
                differs = true;
                changed.extend(differences);
                if let Err(error) = node.put_back(&mut moved) {
                    tracing::debug!(%error, path = node.name(), "not put back yet");
                }
            }
            for name in self.remove_strange() {
                differs = true;
                changed.insert(name);
            }
            if !differs {
                return Ok(changed.into_iter().collect());
            }
        }
        // Of what is in a folder that is not there nothing more need be said.
        let mut left: Vec<String> = Vec::new();
        for name in self.nodes.iter().flat_map(Node::differences).chain(self.remove_strange()) {
            if !left.iter().any(|above| Path::new(&name).starts_with(above)) {
                left.push(name);
            }
        }
        if left.is_empty() { Ok(changed.into_iter().collect()) } else { Err(left) }
    }
}

impl Snapshot {
    /// The top folders that are no longer at their paths, with the reason. The host can put nothing back there.
    fn exchanged(&self) -> Vec<String> {
        let tops: BTreeSet<&Top> = self.nodes.iter().map(|node| &node.top).collect();
        let is_root = |top: &Top| self.nodes.first().is_some_and(|node| node.top == *top);
        let named = |top: &Top| if is_root(top) { "the workspace" } else { "the repository's folder" };
        let failed = tops.into_iter().filter_map(|top| top.open().err().map(|error| (top, error)));
        failed.map(|(top, error)| format!("{} ({error})", named(top))).collect()
    }

    /// Moves aside what would stop git for ever, and links that were not there, in repositories of the workspace; answers its
    /// names.
    fn remove_strange(&self) -> Vec<String> {
        let known: BTreeSet<&Path> = self.nodes.iter().map(|node| node.path.as_path()).collect();
        let mut removed = Vec::new();
        for (top, git) in self.outermost() {
            let mut found = strange(&top, &git);
            let mut tried = Vec::new();
            // Each round may show closed folders inside the opened ones. What stays closed to the host is closed to commands, too.
            while found.closed != tried {
                tried = std::mem::take(&mut found.closed);
                for path in &tried {
                    let _ = open(&top, path).and_then(opened_up);
                }
                found = strange(&top, &git);
            }
            let Strange { waited_for, links, too_many, .. } = found;
            let is_new = |path: &PathBuf| !known.contains(path.as_path()) && !is_head_of(&top, path);
            for path in waited_for.into_iter().chain(links.into_iter().filter(is_new)) {
                let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { continue };
                let moved = open(&top, above).and_then(opened_up).and_then(|above| move_aside(&top, &above, name));
                if let Err(error) = moved {
                    tracing::debug!(%error, path = %path.display(), "not removed yet");
                }
                removed.push(path);
            }
            removed.extend(too_many.then_some(git));
        }
        removed.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }
}

#[derive(Default)]
struct Taking {
    todo: VecDeque<(Top, PathBuf, Depth)>,
    nodes: Vec<Node>,
    seen: BTreeSet<(Top, PathBuf)>,
    kept_bytes: usize,
}

impl Taking {
    fn run(mut self) -> Result<Snapshot> {
        while let Some((top, path, depth)) = self.todo.pop_front() {
            if !self.seen.insert((top.clone(), path.clone())) {
                continue;
            }
            if self.nodes.len() >= NODES_MAX {
                return Err(Error::other(format!("git's configuration and hooks are more than {NODES_MAX} files")));
            }
            let (was, owner) = look(&top, &path)?;
            if let State::File { bytes, .. } = &was {
                self.kept_bytes += bytes.len() / 2;
                if self.kept_bytes > KEPT_BYTES_MAX {
                    return Err(Error::other(format!(
                        "git's configuration and hooks are more than {KEPT_BYTES_MAX} bytes"
                    )));
                }
            }
            let folder = matches!(was, State::Folder { .. });
            let entries = if folder { self.enter(&top, &path, depth)? } else { None };
            let repository = folder && matches!(depth, Depth::Git);
            let need = if let Depth::Needed(need) = depth { Some(need) } else { None };
            self.nodes.push(Node { top, path, was, owner, entries, repository, need });
        }
        Ok(Snapshot { nodes: self.nodes })
    }

    /// Goes on with what is in a folder; answers its names where there may be no others.
    fn enter(&mut self, top: &Top, path: &Path, depth: Depth) -> Result<Option<BTreeSet<String>>> {
        let mut go = |name: &str, depth| self.todo.push_back((top.clone(), path.join(name), depth));
        match depth {
            Depth::Name | Depth::Needed(_) => return Ok(None),
            Depth::Git => {
                go("HEAD", Depth::Needed(Need::Head));
                ["objects", "refs"].iter().for_each(|name| go(name, Depth::Needed(Need::Folder)));
                ARMED_FILES.iter().for_each(|name| go(name, Depth::Name));
                ARMED_FOLDERS.iter().for_each(|name| go(name, Depth::Whole));
                BORROWED.iter().for_each(|name| go(name, Depth::Name));
                ["modules", "worktrees"].iter().for_each(|name| go(name, Depth::Repositories));
                return Ok(None);
            }
            Depth::Whole | Depth::Repositories => {}
        }
        let mut known = BTreeSet::new();
        for name in names(&open(top, path)?)? {
            let name = name.into_string().map_err(|_| Error::other("a name among git's files is no text"))?;
            let head = path.join(&name).join("HEAD");
            let inner = match depth {
                Depth::Whole => Depth::Whole,
                _ if matches!(look(top, &head)?.0, State::Absent) => Depth::Repositories,
                _ => Depth::Git,
            };
            go(&name, inner);
            known.insert(name);
        }
        Ok(Some(known))
    }
}

impl Node {
    fn name(&self) -> String {
        if self.path.as_os_str().is_empty() { ".".to_owned() } else { self.path.to_string_lossy().into_owned() }
    }

    fn is_as_it_was(&self, now: &State) -> bool {
        self.need.map_or_else(|| now.is_as(&self.was), |need| need.is_met(&self.was, now))
    }

    /// What of it is not as it was: itself, or what is in it without having been there.
    fn differences(&self) -> Vec<String> {
        match look(&self.top, &self.path) {
            Ok((now, _)) if self.is_as_it_was(&now) => {}
            _ => return vec![self.name()],
        }
        match self.planted() {
            Ok(planted) => planted.iter().map(|name| self.path.join(name).to_string_lossy().into_owned()).collect(),
            Err(_) => vec![self.name()],
        }
    }

    fn planted(&self) -> Result<Vec<OsString>> {
        let Some(entries) = &self.entries else { return Ok(Vec::new()) };
        let there = names(&open(&self.top, &self.path)?)?;
        Ok(there.into_iter().filter(|name| name.to_str().is_none_or(|name| !entries.contains(name))).collect())
    }

    /// Which folder it was.
    fn folder(&self) -> Option<Identity> {
        match self.was {
            State::Folder { identity, .. } => Some(identity),
            _ => None,
        }
    }

    fn put_back(&mut self, moved: &mut Moved<'_>) -> Result<()> {
        let (now, _) = look(&self.top, &self.path)?;
        if !self.is_as_it_was(&now) {
            self.put_itself_back(&now, moved)?;
        }
        let planted = self.planted()?;
        if planted.is_empty() {
            return Ok(());
        }
        let folder = opened_up(open(&self.top, &self.path)?)?;
        planted.iter().try_for_each(|name| self.move_aside(&folder, name))
    }

    fn put_itself_back(&mut self, now: &State, moved: &mut Moved<'_>) -> Result<()> {
        let (Some(above), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            // The workspace itself: only its mode can have changed, for it is opened by a handle of the person's.
            if let State::Folder { mode, .. } = self.was {
                set_mode(&open(&self.top, &self.path)?, mode)?;
            }
            return Ok(());
        };
        let parent = opened_up(open(&self.top, above)?)?;
        match (&self.was, now) {
            (State::Folder { identity, mode }, State::Folder { identity: now, .. }) if identity == now => {
                return set_mode(&open(&self.top, &self.path)?, *mode);
            }
            (State::Other { .. }, _) => return Err(Error::other("it was too large to be kept")),
            _ => {}
        }
        if !matches!((&self.was, now), (_, State::Absent) | (State::File { .. }, State::File { .. } | State::Link(_))) {
            self.move_aside(&parent, name)?;
        }
        match self.was.clone() {
            State::Absent | State::Other { .. } => Ok(()),
            State::Link(target) => Ok(rustix::fs::symlinkat(&target, &parent, name)?),
            State::File { bytes, mode, .. } => {
                let bytes = hex::decode(bytes).map_err(Error::other)?;
                self.write(&parent, name, &bytes, mode)
            }
            State::Folder { identity, mode } => {
                let from = moved.find(&self.top, identity);
                let name = name.to_owned();
                self.fetch_or_make((&parent, &name), from, mode)
            }
        }
    }

    /// Where the disk is full what stands there goes first: git obeys no file that is not there.
    fn write(&self, parent: &OwnedFd, name: &OsStr, bytes: &[u8], mode: u32) -> Result<()> {
        match self.write_beside(parent, name, bytes, mode) {
            Err(error) if is_full(&error) => {
                let _ = rustix::fs::unlinkat(parent, BACK, AtFlags::empty());
                let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
                self.write_beside(parent, name, bytes, mode)
            }
            written => written,
        }
    }

    fn write_beside(&self, parent: &OwnedFd, name: &OsStr, bytes: &[u8], mode: u32) -> Result<()> {
        // All hosts use this one name. If a host is killed here, the next host writes the file again and first removes the
        // temporary file that the killed host left. A command may have put a folder there.
        let temp = BACK;
        if rustix::fs::unlinkat(parent, temp, AtFlags::empty()).is_err() {
            self.move_aside(parent, OsStr::new(temp))?;
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = std::fs::File::from(rustix::fs::openat(parent, temp, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(bytes)?;
        self.give_back(&file)?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        file.sync_all()?;
        Ok(rustix::fs::renameat(parent, temp, parent, name)?)
    }

    /// The folder that was there, from wherever it was moved to; else, if it is no repository's, a new one.
    fn fetch_or_make(
        &mut self,
        (parent, name): (&OwnedFd, &OsStr),
        from: Option<(OwnedFd, OsString)>,
        mode: u32,
    ) -> Result<()> {
        if let Some((from, old)) = from {
            let from = opened_up(from)?;
            rustix::fs::renameat_with(&from, &*old, parent, name, RenameFlags::NOREPLACE)?;
            return set_mode(&open(&self.top, &self.path)?, mode);
        }
        if self.repository || self.need.is_some() {
            return Err(Error::other("it was moved away and is not found"));
        }
        rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
        let made = open(&self.top, &self.path)?;
        let readable =
            rustix::fs::openat(&made, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        self.give_back(&readable)?;
        set_mode(&made, mode)?;
        self.was = State::Folder { identity: Identity::of(parent, name)?, mode };
        Ok(())
    }

    fn give_back(&self, file: impl AsFd) -> Result<()> {
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = self.owner;
            rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
        }
        Ok(())
    }

    fn move_aside(&self, parent: &OwnedFd, name: &OsStr) -> Result<()> {
        move_aside(&self.top, parent, name)
    }
}

/// Whether it is a link that says, as old repositories have it, which branch is the present one.
fn is_head_of(top: &Top, path: &Path) -> bool {
    path.ends_with("HEAD")
        && !path.components().any(|part| part.as_os_str() == "logs")
        && look(top, path).is_ok_and(|(state, _)| is_head(&state))
}

fn is_full(error: &Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT].iter().any(|full| error.raw_os_error() == Some(full.raw_os_error()))
}

/// Moves what is at `path` below `top` out of git's sight, and leaves it there: it may be the person's.
pub(super) fn set_aside(top: &Top, path: &Path) -> Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    aside(top, &open(top, folder)?, name).map(drop)
}

/// Takes away what is at `path` below `top`, if something is there.
pub(super) fn take_away(top: &Top, path: &Path) -> Result<bool> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    let parent = match open(top, folder) {
        Ok(parent) => parent,
        // Nothing of git's is behind a link, or in a folder that is none.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => move_aside(top, &parent, name).map(|()| true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Moves a name out of git's sight. The host then removes it only if it holds nothing (a link, a FIFO, an empty folder or file): a
/// person may have made it, such as a repository, while the command ran.
fn move_aside(top: &Top, parent: &OwnedFd, name: &OsStr) -> Result<()> {
    let Some((top, fresh)) = aside(top, parent, name)? else { return Ok(()) };
    let found = rustix::fs::statat(&top, &*fresh, AtFlags::SYMLINK_NOFOLLOW)?;
    let removed = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => rustix::fs::unlinkat(&top, &*fresh, AtFlags::REMOVEDIR),
        FileType::RegularFile if found.st_size > 0 => return Ok(()),
        _ => rustix::fs::unlinkat(&top, &*fresh, AtFlags::empty()),
    };
    match removed {
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
        Err(error) => tracing::warn!(%error, fresh, "what stood among git's files was moved aside and is not removed"),
    }
    Ok(())
}

/// Moves a name into the workspace's root under a name that says what it is; answers where it is now, if it is anywhere.
fn aside(top: &Top, parent: &OwnedFd, name: &OsStr) -> Result<Option<(OwnedFd, String)>> {
    let top = opened_up(open(top, Path::new(""))?)?;
    for n in 1..=ASIDE_TRIES_MAX {
        // A command could have taken all names that can be foretold.
        let which = if n <= ASIDE_COUNTED { n.to_string() } else { format!("{:016x}", RandomState::new().hash_one(n)) };
        let fresh = format!("{ASIDE}{which}");
        match rustix::fs::renameat_with(parent, name, &top, &*fresh, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Some((top, fresh))),
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(None),
            // Its new name would take space that is not there.
            Err(Errno::NOSPC | Errno::DQUOT) => {
                let name = name.to_str().ok_or(Errno::NOSPC)?;
                return remove_some(parent, name, REMOVED_MAX).map(|()| None);
            }
            // A folder that is closed to its owner cannot be moved to another one.
            Err(Errno::ACCESS) => drop(opened_up(open_name(parent, name)?)?),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::other("it cannot be moved aside"))
}

/// Finds the folders of a snapshot that a command has moved away. One walk looks for all of them.
struct Moved<'a> {
    /// All folders of the snapshot.
    folders: &'a BTreeSet<Identity>,
    found: BTreeMap<Top, BTreeMap<Identity, PathBuf>>,
}

impl Moved<'_> {
    /// The folder that it is in now, and its name there. If an outer folder was put back since the walk, the path is no longer
    /// true; the next round then finds it.
    fn find(&mut self, top: &Top, identity: Identity) -> Option<(OwnedFd, OsString)> {
        let found = self.found.entry(top.clone()).or_insert_with(|| seek(top, self.folders));
        let path = found.get(&identity)?;
        let (above, name) = (open(top, path.parent()?).ok()?, path.file_name()?.to_owned());
        Identity::of(&above, &name).is_ok_and(|there| there == identity).then_some((above, name))
    }
}

/// Looks for folders by their identities below `top`.
fn seek(top: &Top, folders: &BTreeSet<Identity>) -> BTreeMap<Identity, PathBuf> {
    // Each entry is a name and the index of the folder around it: whole paths of deep folders would take much memory.
    let mut seen: Vec<(usize, OsString)> = vec![(0, OsString::new())];
    let (mut found, mut next, mut left) = (BTreeMap::new(), 0, SOUGHT_MAX);
    while next < seen.len() {
        let path = path_of(&seen, next);
        let above = next;
        next += 1;
        let Ok(folder) = open(top, &path) else { continue };
        for name in names(&folder).unwrap_or_default() {
            let Some(fewer) = left.checked_sub(1) else { return found };
            left = fewer;
            let stat = rustix::fs::statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW);
            if !stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()) {
                continue;
            }
            if let Some(identity) = Identity::of(&folder, &name).ok().filter(|found| folders.contains(found)) {
                found.insert(identity, path.join(&name));
            }
            seen.push((above, name));
        }
    }
    found
}

/// The path of an entry; the first entry is the top.
fn path_of(seen: &[(usize, OsString)], mut at: usize) -> PathBuf {
    let mut names = Vec::new();
    while let Some((above, name)) = seen.get(at).filter(|_| at > 0) {
        names.push(name);
        at = *above;
    }
    names.into_iter().rev().collect()
}

/// What is at `path` below `top`, through no link, and who it belongs to.
fn look(top: &Top, path: &Path) -> Result<(State, (u32, u32))> {
    let nobody = (0, 0);
    let (above, name) = (path.parent(), path.file_name());
    let (folder, name) = match (above, name) {
        (Some(above), Some(name)) => match open(top, above) {
            Ok(folder) => (folder, name),
            // Where the way there is no folder, nothing is there.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => {
                return Ok((State::Absent, nobody));
            }
            Err(error) => return Err(error),
        },
        _ => {
            // By the handle, because a command can close the folder to its own owner.
            let folder = open(top, path)?;
            let stat = rustix::fs::fstat(&folder)?;
            let (identity, mode) = (Identity::of_opened(&folder)?, stat.st_mode & 0o7777);
            return Ok((State::Folder { identity, mode }, (stat.st_uid, stat.st_gid)));
        }
    };
    let stat = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok((State::Absent, nobody)),
        Err(error) => return Err(error.into()),
    };
    let owner = (stat.st_uid, stat.st_gid);
    let (device, inode, mode) = (stat.st_dev, stat.st_ino, stat.st_mode & 0o7777);
    let other = State::Other { device, inode, size: stat.st_size };
    let state = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&folder, name, Vec::new())?;
            State::Link(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
        }
        FileType::Directory => State::Folder { identity: Identity::of(&folder, name)?, mode },
        FileType::RegularFile if stat.st_size.unsigned_abs() <= FILE_BYTES_MAX => {
            // Somebody may put a FIFO there in between.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let mut bytes = Vec::new();
            match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
                Ok(file) => {
                    std::fs::File::from(file).take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
                    State::File { bytes: hex::encode(bytes), mode, shared: stat.st_nlink > 1 }
                }
                Err(_) => other,
            }
        }
        _ => other,
    };
    Ok((state, owner))
}

/// Opens a folder below `top`, through no link.
pub(super) fn open(top: &Top, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = top.open()?;
    if path.as_os_str().is_empty() {
        return Ok(top);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(&top, path, flags | OFlags::NOFOLLOW, Mode::empty(), resolve)?)
}

fn open_name(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// The same folder, which its owner may now read and change whatever a command did to its mode.
fn opened_up(folder: OwnedFd) -> Result<OwnedFd> {
    let mode = rustix::fs::fstat(&folder)?.st_mode & 0o7777;
    if mode & 0o700 != 0o700 {
        set_mode(&folder, mode | 0o700)?;
    }
    Ok(folder)
}

/// Through the handle, for a name could meanwhile lead elsewhere.
fn set_mode(folder: &OwnedFd, mode: u32) -> Result<()> {
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), Mode::from_raw_mode(mode))?)
}

pub(super) fn names(folder: &OwnedFd) -> Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&readable)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}
