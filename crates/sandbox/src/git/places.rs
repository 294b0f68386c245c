//! Finding what git obeys, by asking git.
//!
//! Git itself runs in a read-only fence and says which files it reads its configuration from, where its hooks are, which
//! worktrees and submodules there are. Nothing that a command could have written is believed: `.git` is not a command's to
//! write, and whoever else writes there is a person.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::around::{Around, Outer};
use super::packed;
use super::placeholder::Empty;
use super::read::{Top, small_text};
use super::snapshot::{ARMED_FILES, ARMED_FOLDERS, take_away};
use crate::job::Job;
use toolhost_contract::workspace::{Command, Error, Result};

/// Most places held for one workspace: each is a mount.
pub(crate) const PLACES_MAX: usize = 500;
/// Most names that are looked up to find them.
const PAIRS_MAX: usize = 20 * PLACES_MAX;
/// How long git may take to name them.
const GIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes in which it names them.
pub(crate) const FOUND_BYTES_MAX: usize = 4 << 20;
pub(super) const GIT_DIR: &str = ".git";

/// What a place is, and how it is looked after where it cannot be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Rule {
    /// A repository's folder, or the file that says where that is.
    Git,
    /// A folder of hooks.
    Hooks,
    /// All of it stays as it is, such as an included configuration.
    Whole,
}

/// One place below `top`, which is the workspace or the parent of a repository outside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) top: Top,
    /// Plain names only.
    pub(crate) path: PathBuf,
    pub(crate) rule: Rule,
}

impl Place {
    pub(crate) fn full(&self) -> PathBuf {
        self.top.path().join(&self.path)
    }
}

/// Everything that commands leave as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) all: Vec<Place>,
    /// Settings and hooks in a repository's own folder under names that not each repository has. Where that folder is mounted
    /// they are held with it.
    #[serde(default)]
    pub(super) within: Vec<Place>,
    /// Those where only another branch has a submodule, and where nothing is: in the folder there may well be something.
    #[serde(default)]
    branched: BTreeSet<Place>,
    /// Working trees whose index was read, relative to the workspace.
    read: BTreeSet<PathBuf>,
    /// Those indexes, as absolute paths.
    indexes: BTreeSet<PathBuf>,
    /// Files of settings that were read, wherever they are, and those that are included and not there.
    #[serde(default)]
    settings: BTreeSet<PathBuf>,
}

impl Places {
    /// Folders of repositories that were not there `before`, relative to the workspace.
    pub(crate) fn new_repositories(&self, before: &Self) -> Vec<String> {
        let is_of_index = |place: &Place| place.rule == Rule::Git && !self.branched.contains(place);
        let new = self.all.iter().filter(|place| is_of_index(place) && !before.all.contains(place));
        let folders = new.filter_map(|place| place.path.parent()).filter(|folder| !folder.as_os_str().is_empty());
        // What could not be read before is no addition.
        let added = folders.filter(|folder| {
            let around = folder.ancestors().skip(1).find(|above| self.read.contains(*above));
            around.is_some_and(|above| before.read.contains(above))
        });
        added.filter_map(|folder| Some(folder.to_str()?.to_owned())).collect()
    }

    /// What is there and is obeyed now, and was not obeyed `before`. A repository's folder that is mounted holds all in it.
    pub(crate) fn named_since(&self, before: &Self, is_mounted: bool) -> Vec<String> {
        let there = self.new_since(before, is_mounted).filter(|place| place.full().symlink_metadata().is_ok());
        there.map(|place| place.path.to_string_lossy().into_owned()).collect()
    }

    /// The same, with what is not there yet.
    pub(crate) fn obeyed_since(&self, before: &Self, is_mounted: bool) -> Vec<String> {
        self.new_since(before, is_mounted).map(|place| place.path.to_string_lossy().into_owned()).collect()
    }

    fn new_since<'a>(&'a self, before: &'a Self, is_mounted: bool) -> impl Iterator<Item = &'a Place> {
        let is_in = |place: &Place, one: &Place| one.top == place.top && place.path.starts_with(&one.path);
        let all = self.all.iter().filter(move |place| !before.all.iter().any(|one| is_in(place, one)));
        all.chain(self.within.iter().filter(move |place| !is_mounted && !before.within.contains(place)))
    }

    /// Whether one of the indexes cannot be read as it was: then nobody can tell what was added to it.
    pub(crate) fn has_closed_index(&self) -> bool {
        self.indexes.iter().any(|index| match index.symlink_metadata() {
            Ok(found) => !found.is_file() || found.mode() & 0o600 != 0o600,
            // One that is gone names nothing.
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        })
    }

    /// Whether a repository keeps its references in tables, which only git reads.
    pub(crate) fn has_tables(&self) -> bool {
        self.gits().any(|git| git.join("reftable").is_dir())
    }

    fn gits(&self) -> impl Iterator<Item = PathBuf> {
        self.all.iter().filter(|place| place.rule == Rule::Git).map(Place::full).filter(|git| git.is_dir())
    }

    /// Takes names that git keeps in files of their own, such as `MERGE_AUTOSTASH`, out of the packed references of the
    /// repositories, where a command has put them: git finds them there, too.
    ///
    /// # Errors
    /// A file of packed references that cannot be read or written.
    pub(crate) fn purge_packed(&self) -> Result<()> {
        let gits = self.all.iter().filter(|place| place.rule == Rule::Git && place.full().is_dir());
        for Place { top, path, .. } in gits {
            packed::purge(top, path).map_err(|source| Error::Io { path: "packed-refs".to_owned(), source })?;
        }
        Ok(())
    }

    /// Takes away what a command has put where another branch has a submodule; the names of it.
    ///
    /// # Errors
    /// What could not be taken away.
    pub(crate) fn clear_branched(&self) -> Result<Vec<String>> {
        let mut cleared = Vec::new();
        for Place { top, path, .. } in &self.branched {
            let name = path.to_string_lossy().into_owned();
            match take_away(top, path) {
                Ok(false) => {}
                Ok(true) => cleared.push(name),
                Err(source) => return Err(Error::Io { path: name, source }),
            }
        }
        Ok(cleared)
    }

    /// Whether only another branch has a submodule there.
    pub(super) fn is_branched(&self, place: &Place) -> bool {
        self.branched.contains(place)
    }

    /// Whether a file tool would change one of them, or what one of them is in, by changing `path` (relative to `top`).
    pub(crate) fn hold(&self, top: &Path, path: &Path) -> bool {
        self.besides_git(top).any(|place| path.starts_with(&place.path) || place.path.starts_with(path))
    }

    /// Those below `top`, without its `.git`, which no tree of git holds.
    pub(crate) fn named(&self, top: &Path) -> Vec<String> {
        self.besides_git(top).map(|place| place.path.to_string_lossy().into_owned()).collect()
    }

    fn besides_git(&self, top: &Path) -> impl Iterator<Item = &Place> {
        self.all.iter().filter(move |place| place.top.path() == top && place.path != Path::new(GIT_DIR))
    }
}

/// What the places were found by: they are looked for again when any of it is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen(Vec<Option<[i64; 6]>>);

impl Seen {
    /// Looks at `.git`, what it lists its places in, and the places found before.
    pub(crate) fn now(root: &Path, outer: Option<&Path>, places: &Places) -> Self {
        const NAMES: [&str; 15] = [
            "",
            "config",
            "config.worktree",
            "index",
            "hooks",
            "worktrees",
            "modules",
            // Branches may name submodules of their own.
            "HEAD",
            "FETCH_HEAD",
            "packed-refs",
            "refs/heads",
            "refs/remotes",
            "refs/remotes/origin",
            "refs/stash",
            "refs/tags",
        ];
        let inner = root.join(GIT_DIR);
        let gits = std::iter::once(inner.as_path()).chain(outer);
        let named = gits.flat_map(|git| NAMES.map(|name| git.join(name)));
        let read = places.indexes.iter().chain(&places.settings).cloned();
        let read = read.chain(places.indexes.iter().flat_map(|index| shared_parts(index)));
        let found = places.all.iter().chain(&places.within).map(Place::full).chain(read);
        Self(named.chain(found).map(|path| stamp(&path)).collect())
    }
}

/// The files beside an index that have a part of it (`core.splitIndex`): git reads one without comparing it with its hash.
fn shared_parts(index: &Path) -> Vec<PathBuf> {
    let entries = index.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let is_part = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"sharedindex.");
    let mut parts: Vec<PathBuf> =
        entries.filter(|entry| is_part(&entry.file_name())).map(|entry| entry.path()).collect();
    parts.sort();
    parts
}

fn stamp(path: &Path) -> Option<[i64; 6]> {
    let seen = path.metadata().ok()?;
    let (inode, size) = (seen.ino().cast_signed(), seen.len().cast_signed());
    Some([seen.dev().cast_signed(), inode, size, seen.mtime(), seen.mtime_nsec(), seen.ctime_nsec()])
}

/// Whether git could find a repository in the folder. Not in an empty `.git`, such as a command holds the name with.
pub(crate) fn is_repository(root: &Path) -> bool {
    let git = root.join(GIT_DIR);
    git.metadata().is_ok_and(|found| found.is_file() || found.is_dir() && Empty::found(&git, &found).is_none())
}

/// The command that names the places; it wants a read-only fence.
///
/// `also` are files outside that git is to read, too.
pub(crate) fn find(around: &[Around], also: &[PathBuf]) -> Job {
    let pairs = around.iter().flat_map(|around| [&around.top, &around.git]);
    let pairs = pairs.map(|path| path.to_string_lossy().into_owned());
    let script = ["bash", "-c", SCRIPT, "find"].map(str::to_owned);
    let mut command = Command::new(script.into_iter().chain(pairs), GIT_TIMEOUT);
    command.toolchains = false;
    command.capture_bytes = FOUND_BYTES_MAX;
    let pairs = [
        // Names are bytes.
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        // What is not here is not fetched.
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_CONFIG_COUNT", "2"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", "false"),
        // The person's own git may take the folder of another user for safe, and then obeys what it says.
        ("GIT_CONFIG_KEY_1", "safe.directory"),
        ("GIT_CONFIG_VALUE_1", "*"),
    ];
    command.env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    Job { also_reads: also.to_vec(), finds_git: true, ..command.into() }
}

/// The command that takes what a command has added to an index as a repository of its own out of it again: a person's git would
/// enter it. It prints what it took out, each ended by NUL.
///
/// Whatever the command made of the index, that succeeds: names are bytes, a lock that stays and modes are taken away, and an
/// index that cannot be read is made anew from the last commit.
pub(crate) fn forget(root: &Path, before: &Places) -> Command {
    const SCRIPT: &str = r#"
work=$(mktemp -d) || exit
added() { # to the index at hand; nothing if it cannot be read
    local entry path
    git ls-files --stage -z >"$work/all" || return
    while IFS= read -r -d '' entry; do
        path=${entry#*$'\t'}
        case "$entry" in '160000 '*) [ -n "${kept["/$path"]-}" ] || printf '%s\0' "$path" ;; esac
    done <"$work/all" >"$work/added"
}
take_out() {
    added && git update-index --force-remove -z --stdin <"$work/added" && cp -- "$work/added" "$work/out" &&
        added && [ ! -s "$work/added" ]
}
while [ "$#" -gt 0 ]; do
    folder=$1
    shift
    unset kept
    declare -A kept=()
    while [ "$1" != -- ]; do
        kept["/$1"]=1
        shift
    done
    shift
    (
        cd -- "$folder" 2>/dev/null && index=$(git rev-parse --git-path index 2>/dev/null) || exit 0
        # A git of the person's ends, and takes its lock away.
        for wait in {1..50}; do
            [ -e "$index.lock" ] || break
            sleep 0.1
        done
        rm -rf -- "$index.lock" || exit
        [ ! -f "$index" ] || [ -L "$index" ] || chmod u+rw -- "$index"
        # Through a link its text could change later.
        if [ -L "$index" ] || { [ -e "$index" ] && [ ! -f "$index" ]; } || ! take_out; then
            rm -rf -- "$index" && { git read-tree HEAD 2>/dev/null || git read-tree --empty; } && take_out || exit
        fi
        # What a person's next commit would put into their files.
        [ -e "$(git rev-parse --git-path MERGE_AUTOSTASH)" ] || git update-ref --no-deref -d MERGE_AUTOSTASH 2>/dev/null
        cat -- "$work/out"
    ) || exit
done"#;
    let mut argv: Vec<String> = ["bash", "-c", SCRIPT, "git"].map(str::to_owned).into();
    for read in &before.read {
        argv.push(root.join(read).to_string_lossy().into_owned());
        let gits = before.all.iter().filter(|place| place.rule == Rule::Git && place.top.path() == root);
        let folders = gits.filter_map(|git| git.path.parent()?.strip_prefix(read).ok()?.to_str());
        argv.extend(folders.filter(|folder| !folder.is_empty()).map(str::to_owned));
        argv.push("--".to_owned());
    }
    Command { argv, is_git: true, ends_in_order: true, ..find(&[], &[]).command }
}

/// Prints kinds and absolute paths, each ended by NUL: `git` for a repository's `.git`, `hooks`, `setting` for a file of settings, and
/// `whole` for the rest.
///
/// Its arguments are the repositories around the workspace, a top folder and its `.git` each. It runs before the first command
/// after each change of a repository, so it starts few processes: four a repository.
const SCRIPT: &str = include_str!("places.sh");
/// The last that it prints.
const DONE: &str = "done\0.\0";

/// Reads what [`find`] printed: what of it lies in the workspace and not in a place that is held anyway.
///
/// # Errors
/// More than [`PLACES_MAX`], or a name that is no text.
///
/// `home` is the person's: their own settings may name places in the workspace, too.
pub(crate) fn read_places(workspace: &Top, outer: Option<&Outer>, printed: &str, home: &Path) -> Result<Places> {
    let (mut found, mut branched) = (BTreeSet::new(), BTreeSet::new());
    let (mut read, mut indexes, mut settings) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let root = workspace.path();
    let place = |path: &Path, rule| Place { top: workspace.clone(), path: path.to_owned(), rule };
    found.insert(place(Path::new(GIT_DIR), Rule::Git));
    if let Some(outer) = outer {
        found.insert(Place { top: outer.top.clone(), path: outer.name.clone(), rule: Rule::Git });
    }
    if printed.contains(char::REPLACEMENT_CHARACTER) {
        // It could be told from no other.
        return Err(Error::Pattern {
            what: "a name that git obeys",
            message: "a submodule, worktree, hook or configuration file has a name that is not UTF-8".to_owned(),
        });
    }
    let said = printed.split('\0').collect::<Vec<_>>();
    let mut pairs: Vec<(String, PathBuf)> =
        said.chunks_exact(2).map(|pair| (pair[0].to_owned(), PathBuf::from(pair[1]))).collect();
    // Each is looked up on the disk.
    if pairs.len() > PAIRS_MAX {
        let what = "the number of places in which git looks".to_owned();
        return Err(Error::Limit { what, actual: pairs.len() as u64, limit: PAIRS_MAX as u64 });
    }
    let is_repository = pairs.iter().any(|(kind, path)| kind == "git" && *path == root.join(GIT_DIR));
    let head = root.join("HEAD");
    // What another command holds the name with says nothing of the person's: that goes with it.
    let is_vacant = head.symlink_metadata().map_or(true, |found| Empty::found(&head, &found).is_some());
    if !is_repository && !root.join(GIT_DIR).is_file() && is_vacant {
        // Without a repository of its own the workspace itself could be made one, for which git looks at this name.
        found.insert(place(Path::new("HEAD"), Rule::Hooks));
    }
    pairs.extend(of_settings(home, root, &pairs)?);
    let mut of_index = BTreeSet::new();
    for (kind, path) in pairs {
        let (links, end) = way(&path);
        let inside = |path: &Path| {
            let inside = path.strip_prefix(root).ok()?.to_owned();
            (!inside.as_os_str().is_empty()).then_some(inside)
        };
        match kind.as_str() {
            "read" => {
                read.extend(end.strip_prefix(root).map(Path::to_owned));
                continue;
            }
            "index" => {
                indexes.insert(end);
                continue;
            }
            "whole" | "setting" => drop(settings.insert(end.clone())),
            "hooks" if end == root => return Err(Error::HooksEverywhere),
            "tree" | "home" | "include" | "unreadable" | "refused" | "done" => continue,
            "branched" => branched.extend(inside(&end).map(|end| place(&end, Rule::Git))),
            _ => {}
        }
        // Each link on the way, too: who exchanges it leads git elsewhere.
        found.extend(links.iter().filter_map(|link| Some(place(&inside(link)?, Rule::Whole))));
        let rule = match kind.as_str() {
            "git" | "branched" => Rule::Git,
            "hooks" => Rule::Hooks,
            _ => Rule::Whole,
        };
        if kind == "git" {
            of_index.extend(inside(&end).map(|end| place(&end, rule)));
        }
        found.extend(inside(&end).map(|end| place(&end, rule)));
    }
    // What is there is looked after like any other.
    branched.retain(|place| !of_index.contains(place) && place.full().symlink_metadata().is_err());
    // What lies in another place is held with it.
    let all: Vec<Place> = found.into_iter().collect();
    let holds = |p: &Place, one: &Place| p.top == one.top && p != one && one.path.starts_with(&p.path) && p < one;
    let places: Vec<Place> = all.iter().filter(|one| !all.iter().any(|p| holds(p, one))).cloned().collect();
    // Of a repository's folder only some names are looked after where it cannot be mounted.
    let is_missed = |one: &&Place| {
        let mut holders = all.iter().filter(|p| holds(p, one)).peekable();
        one.rule != Rule::Git && holders.peek().is_some() && holders.all(|p| p.rule == Rule::Git && !is_armed(p, one))
    };
    let within: Vec<Place> = all.iter().filter(is_missed).cloned().collect();
    if places.len() + within.len() > PLACES_MAX {
        let what = "the number of submodules, worktrees and files of git's configuration in the workspace".to_owned();
        return Err(Error::Limit { what, actual: (places.len() + within.len()) as u64, limit: PLACES_MAX as u64 });
    }
    Ok(Places { all: places, within, branched, read, indexes, settings })
}

/// Whether a place is among the names that are looked after in each repository's folder.
fn is_armed(repository: &Place, inside: &Place) -> bool {
    let Ok(path) = inside.path.strip_prefix(&repository.path) else { return false };
    let names: Vec<&str> = path.iter().filter_map(|name| name.to_str()).collect();
    let is_inner = matches!(names.first(), Some(&"modules" | &"worktrees"));
    let in_folder = |name: &&str| ARMED_FOLDERS.contains(name);
    match names.as_slice() {
        [first, ..] if ARMED_FOLDERS.contains(first) => true,
        [one] => ARMED_FILES.contains(one),
        [.., last] => is_inner && (ARMED_FILES.contains(last) || names.iter().any(in_folder)),
        [] => true,
    }
}

/// Why git says nothing of a repository that is there: then nobody knows what a person's git obeys in it.
pub(crate) fn refused(printed: &str) -> Option<String> {
    if !printed.ends_with(DONE) {
        return Some("it was ended before it had said all".to_owned());
    }
    let said = printed.split('\0').collect::<Vec<_>>();
    said.chunks_exact(2).find(|pair| pair[0] == "refused").map(|pair| pair[1].to_owned())
}

/// What git could not read, and therefore told nothing of its repository.
pub(crate) fn unreadable(printed: &str) -> Vec<PathBuf> {
    let said = printed.split('\0').collect::<Vec<_>>();
    let pairs = said.chunks_exact(2).filter(|pair| pair[0] == "unreadable");
    pairs.map(|pair| way(Path::new(pair[1])).1).collect()
}

/// Most links followed on one way, as the kernel's own limit.
const LINKS_MAX: usize = 40;

/// Every link on the way to an absolute path, and where the way ends.
pub(super) fn way(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let (mut links, mut here) = (Vec::new(), PathBuf::from("/"));
    let mut todo: Vec<PathBuf> = path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
    while let Some(part) = todo.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                here.pop();
                continue;
            }
            Some(Component::RootDir) => {
                here = PathBuf::from("/");
                continue;
            }
            Some(Component::Normal(_)) => {}
            _ => continue,
        }
        let next = here.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) if links.len() < LINKS_MAX => {
                links.push(next);
                todo.extend(target.components().rev().map(|part| PathBuf::from(part.as_os_str())));
            }
            _ => here = next,
        }
    }
    (links, here)
}

/// Most files of settings that are read.
const SETTINGS_MAX: usize = 512;

/// What any settings name in the workspace: further files, and folders of hooks, which are relative to each working tree. Kinds as
/// [`find`] prints them.
///
/// Git says what it obeys where it stands, and the person's may stand elsewhere, or on another branch: so the conditions of
/// included files hold there that do not hold here, and what those files name is obeyed. Some files git does not see at all
/// in its fence. All are read for these two keys whatever section or condition they stand in: who holds too much holds enough.
///
/// # Errors
/// An included file is named in a way that only git understands: it could be one that a command can write.
fn of_settings(home: &Path, root: &Path, printed: &[(String, PathBuf)]) -> Result<Vec<(String, PathBuf)>> {
    let said = |kind: &'static str| printed.iter().filter(move |(one, _)| one == kind).map(|(_, path)| path);
    let trees: Vec<&Path> = said("tree").map(PathBuf::as_path).chain([root]).collect();
    let mut todo = vec![home.join(".gitconfig"), home.join(".config/git/config")];
    todo.extend(said("setting").chain(said("include")).cloned());
    let of_repository = |git: &PathBuf| ["config", "config.worktree"].map(|name| git.join(name));
    todo.extend(said("git").filter(|git| git.is_dir()).flat_map(of_repository).filter(|file| file.is_file()));
    for named in said("home").filter_map(|path| path.to_str()) {
        // As it was written, after the folder in which git stood.
        let at = named.find("/~").or_else(|| named.find("/%("));
        todo.extend(at.map(|at| expanded(home, &named[at + 1..])).transpose()?);
    }
    let (mut found, mut read) = (Vec::new(), BTreeSet::new());
    while let Some(named) = todo.pop() {
        let (_, file) = way(&named);
        // What a file includes is relative to the folder of the name by which git opened it, and that name may be a link.
        let folder = named.parent().map(|folder| way(folder).1).unwrap_or_default();
        found.push(("setting".to_owned(), named));
        if read.len() >= SETTINGS_MAX || !read.insert((folder.clone(), file.clone())) {
            continue;
        }
        let Some(text) = small_text(&file) else { continue };
        for line in logical_lines(&text) {
            let Some((name, value)) = line.split_once('=') else { continue };
            let name = name.rsplit(']').next().unwrap_or_default().trim().to_ascii_lowercase();
            let value = unquoted(value);
            match name.as_str() {
                _ if value.is_empty() => {}
                // New repositories, submodules among them, get the hooks of a template.
                "hookspath" | "templatedir" => {
                    // Git tells its own folder of hooks. Of another condition's, what is not understood is not followed.
                    let path = expanded(home, &value).unwrap_or_else(|_| PathBuf::from(&value));
                    found.extend(trees.iter().map(|tree| ("hooks".to_owned(), tree.join(&path))));
                }
                "path" => {
                    let path = expanded(home, &value)?;
                    todo.push(folder.join(&path));
                    todo.extend(file.parent().map(|folder| folder.join(&path)));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// The lines of a file of settings; one that ends in a backslash goes on in the next.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        let is_open = (line.len() - line.trim_end_matches('\\').len()) % 2 == 1;
        let line = if is_open { &line[..line.len() - 1] } else { line };
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(line),
            None => lines.push(line.to_owned()),
        }
        goes_on = is_open;
    }
    lines
}

/// The value of a setting as git reads it (git-config, "Syntax"): without quotes, a comment and the blanks around it.
fn unquoted(raw: &str) -> String {
    let (mut value, mut in_quotes, mut kept) = (String::new(), false, 0);
    let mut chars = raw.trim_start().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => in_quotes = !in_quotes,
            '#' | ';' if !in_quotes => break,
            '\\' => value.extend(match chars.next() {
                Some('n') => Some('\n'),
                Some('t') => Some('\t'),
                Some('b') => Some('\u{8}'),
                other => other,
            }),
            c => value.push(c),
        }
        if in_quotes || !c.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

/// A path of settings as git expands it (git-config, "pathname").
///
/// # Errors
/// It begins with a user that is not in `/etc/passwd`, or with git's own prefix.
fn expanded(home: &Path, value: &str) -> Result<PathBuf> {
    let unclear = || Error::Pattern {
        what: "an included file of git's settings",
        message: format!(
            "`{}` is named in a way that only git understands: name it by its whole path",
            value.escape_debug()
        ),
    };
    if value.starts_with("%(") {
        return Err(unclear());
    }
    let Some(rest) = value.strip_prefix('~') else { return Ok(PathBuf::from(value)) };
    let (user, inside) = rest.split_once('/').unwrap_or((rest, ""));
    if user.is_empty() {
        return Ok(home.join(inside));
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&user)).then(|| fields.get(5).map(PathBuf::from)).flatten()
    });
    Ok(of_user.ok_or_else(unclear)?.join(inside))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::{DONE, is_repository, refused};

    #[test]
    fn git_that_does_not_say_all_is_not_taken_to_have_said_that_there_is_nothing() {
        assert!(refused("").is_some() && refused("git\0/a/.git\0hooks\0/a/.git/ho").is_some());
        assert_eq!(refused(&format!("git\0/a/.git\0{DONE}")), None);
        let said = refused(&format!("git\0/a/.git\0refused\0/a: fatal: no\0{DONE}"));
        assert_eq!(said.as_deref(), Some("/a: fatal: no"));
    }

    #[test]
    fn git_is_not_asked_of_an_empty_folder_that_holds_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        assert!(!is_repository(folder.path()));
        std::fs::create_dir(&git).unwrap();
        assert!(!is_repository(folder.path()));
        std::fs::write(git.join("HEAD"), "").unwrap();
        assert!(is_repository(folder.path()));
        std::fs::rename(&git, folder.path().join("elsewhere")).unwrap();
        std::fs::write(&git, "").unwrap();
        assert!(is_repository(folder.path()));
    }
}
