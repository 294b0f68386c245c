//! The branches before and after a command that can write `.git`.
//!
//! In the Landlock tier a command can commit and move branches, so a rule about `git.commit` does not stop `bash` there. The
//! host cannot prevent it, but it reads `HEAD` and the references before and after the command, and the answer and the
//! audit say what changed. The list of a rebase is compared, too: it can name programs that `git rebase --continue` runs.
//! Only the workspace's own repository is compared: neither submodules nor other worktrees.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use toolhost_contract::workspace::RefChange;

use super::read::Top;
use super::snapshot::{names, open};

/// What is told of references that are not compared, after each command that can change them.
const NOT_COMPARED: &str = "not compared: unreadable, or too many";
/// Most references compared. A repository with more of them is not compared at all.
const REFS_MAX: usize = 20_000;
/// Most files and folders read below `.git/refs`.
const FILES_MAX: usize = 2_000;
/// Largest `packed-refs` read.
const PACKED_BYTES_MAX: u64 = 2 << 20;
/// Largest text reported for one reference; git writes 40 or 64 characters, or the name of another reference.
const VALUE_CHARS_MAX: usize = 200;
/// What a rebase still has to do.
const REBASE_TODO: &str = "rebase-merge/git-rebase-todo";
/// Largest such list read.
const TODO_BYTES_MAX: u64 = 1 << 20;
/// The lock files that git makes while it writes, and that a command can leave behind.
const LOCKS: [&str; 4] = ["HEAD.lock", "config.lock", "index.lock", "packed-refs.lock"];

/// The references of a workspace's repository; nothing if they are too many, or no references.
pub(crate) struct Refs(Option<BTreeMap<String, String>>);

impl Refs {
    /// Reads the repository in `.git` below `root`, through no link. Whatever a command left there is no error.
    pub(crate) fn read(root: &Top) -> Self {
        Self(read(root))
    }

    /// What differs now: first the references that existed before, then the new ones. Where others are
    /// at work no lock is told: it may be theirs, for git keeps one while it writes.
    pub(crate) fn changes(&self, now: &Self, others_are_at_work: bool) -> Vec<RefChange> {
        let (before, now) = match (&self.0, &now.0) {
            (Some(before), Some(now)) => (before, now),
            // Else a command could hide what it changes behind thousands of references, or of folders.
            (before, now) => {
                let told = |refs: &Option<_>| Some(if refs.is_some() { "compared" } else { NOT_COMPARED }.to_owned());
                return vec![RefChange { name: "refs".to_owned(), from: told(before), to: told(now) }];
            }
        };
        let change = |name: &String| {
            let (from, to) = (before.get(name).cloned(), now.get(name).cloned());
            let is_told = !others_are_at_work || !LOCKS.contains(&name.as_str());
            (from != to && is_told).then(|| RefChange { name: name.clone(), from, to })
        };
        let new = now.keys().filter(|name| !before.contains_key(*name));
        before.keys().chain(new).filter_map(change).collect()
    }
}

/// What is at a path.
enum Found {
    Nothing,
    File(String),
    Folder(Vec<OsString>),
}

fn read(root: &Top) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for lock in LOCKS {
        match look(root, Path::new(lock), 0) {
            Some(Found::Nothing) => {}
            _ => drop(found.insert(lock.to_owned(), "a lock: git changes nothing while it is there".to_owned())),
        }
    }
    match look(root, Path::new("packed-refs"), PACKED_BYTES_MAX)? {
        Found::File(text) => {
            let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
            let pairs = lines.filter_map(|line| line.split_once(' '));
            found.extend(pairs.map(|(commit, name)| (name.to_owned(), clip(commit))));
        }
        Found::Nothing => {}
        Found::Folder(_) => return None,
    }
    // A file of its own counts more than a line among the packed ones.
    let mut todo = VecDeque::from([PathBuf::from("HEAD"), PathBuf::from("refs")]);
    let mut left = FILES_MAX;
    while let Some(path) = todo.pop_front() {
        left = left.checked_sub(1)?;
        match look(root, &path, VALUE_CHARS_MAX as u64 * 4)? {
            Found::File(text) => _ = found.insert(path.to_string_lossy().into_owned(), clip(text.trim_end())),
            Found::Nothing => {}
            Found::Folder(names) => todo.extend(names.iter().map(|name| path.join(name))),
        }
    }
    found.extend(rebase(root));
    (found.len() <= REFS_MAX).then_some(found)
}

/// The list of a rebase that is under way: `git rebase --continue` runs its `exec` lines.
fn rebase(root: &Top) -> Option<(String, String)> {
    let value = match look(root, Path::new(REBASE_TODO), TODO_BYTES_MAX) {
        // A link to a folder is none of git's making, and `look` sees nothing through it.
        Some(Found::Nothing) if !root.path().join(".git/rebase-merge").is_symlink() => return None,
        Some(Found::File(text)) => {
            let programs = text.lines().filter(|line| matches!(line.split_whitespace().next(), Some("exec" | "x")));
            let digest = hex::encode(Sha256::digest(text.as_bytes()));
            let programs = match programs.count() {
                1 => "1 program".to_owned(),
                count => format!("{count} programs"),
            };
            // What it goes back to was written by the command, too.
            format!("half done, {programs} in its list ({}): end it with `git rebase --quit`", &digest[..12])
        }
        Some(Found::Folder(_) | Found::Nothing) | None => {
            "half done, with a list that cannot be read: end it with `git rebase --quit`".to_owned()
        }
    };
    Some((REBASE_TODO.to_owned(), value))
}

/// Looks at a path in `.git`; `None` for what git would not have written there.
fn look(root: &Top, path: &Path, bytes_max: u64) -> Option<Found> {
    let path = Path::new(".git").join(path);
    let parent = match open(root, path.parent()?) {
        Ok(parent) => parent,
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR)) => {
            return Some(Found::Nothing);
        }
        Err(_) => return None,
    };
    // A FIFO must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&parent, path.file_name()?, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Some(Found::Nothing),
        Err(_) => return None,
    };
    let stat = rustix::fs::fstat(&file).ok()?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Some(Found::Folder(names(&file).ok()?)),
        FileType::RegularFile if stat.st_size.unsigned_abs() <= bytes_max => {
            let mut bytes = Vec::new();
            std::fs::File::from(file).take(bytes_max).read_to_end(&mut bytes).ok()?;
            Some(Found::File(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => None,
    }
}

fn clip(text: &str) -> String {
    text.chars().take(VALUE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_may_be_another_s_is_not_told() {
        let refs = |names: &[&str]| Refs(Some(names.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect()));
        let (locked, free) = (refs(&["HEAD", "index.lock"]), refs(&["HEAD"]));
        let told = |before: &Refs, now: &Refs, others| before.changes(now, others).len();
        assert_eq!((told(&locked, &free, false), told(&locked, &free, true)), (1, 0));
        assert_eq!((told(&free, &locked, true), told(&free, &locked, false)), (0, 1));
        assert_eq!(told(&free, &refs(&["HEAD", "refs/heads/new"]), true), 1);
    }
}
