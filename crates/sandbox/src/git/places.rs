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

use crate::command::Command;
use crate::error::{Error, Result};

/// Most places held for one workspace: each is a mount.
pub(crate) const PLACES_MAX: usize = 500;
/// How long git may take to name them.
const GIT_TIMEOUT: Duration = Duration::from_secs(30);
const GIT_DIR: &str = ".git";

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
    pub(crate) top: PathBuf,
    /// Plain names only.
    pub(crate) path: PathBuf,
    pub(crate) rule: Rule,
}

impl Place {
    pub(crate) fn full(&self) -> PathBuf {
        self.top.join(&self.path)
    }
}

/// Everything that commands leave as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) all: Vec<Place>,
    /// Working trees whose index was read, relative to the workspace.
    read: BTreeSet<PathBuf>,
    /// Those indexes, as absolute paths.
    indexes: BTreeSet<PathBuf>,
}

impl Places {
    /// Folders of repositories that were not there `before`, relative to the workspace.
    pub(crate) fn new_repositories(&self, before: &Self) -> Vec<String> {
        let new = self.all.iter().filter(|place| place.rule == Rule::Git && !before.all.contains(place));
        let folders = new.filter_map(|place| place.path.parent()).filter(|folder| !folder.as_os_str().is_empty());
        // What could not be read before is no addition.
        let added = folders.filter(|folder| {
            let around = folder.ancestors().skip(1).find(|above| self.read.contains(*above));
            around.is_some_and(|above| before.read.contains(above))
        });
        added.filter_map(|folder| Some(folder.to_str()?.to_owned())).collect()
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
        self.all.iter().filter(move |place| place.top == top && place.path != Path::new(GIT_DIR))
    }
}

/// What the places were found by: they are looked for again when any of it is another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen(Vec<Option<[i64; 6]>>);

impl Seen {
    /// Looks at `.git`, what it lists its places in, and the places found before.
    pub(crate) fn now(root: &Path, outer: Option<&Path>, places: &Places) -> Self {
        const NAMES: [&str; 7] = ["", "config", "config.worktree", "index", "hooks", "worktrees", "modules"];
        let inner = root.join(GIT_DIR);
        let gits = std::iter::once(inner.as_path()).chain(outer);
        let named = gits.flat_map(|git| NAMES.map(|name| git.join(name)));
        let found = places.all.iter().map(Place::full).chain(places.indexes.iter().cloned());
        Self(named.chain(found).map(|path| stamp(&path)).collect())
    }
}

fn stamp(path: &Path) -> Option<[i64; 6]> {
    let seen = path.metadata().ok()?;
    let (inode, size) = (seen.ino().cast_signed(), seen.len().cast_signed());
    Some([seen.dev().cast_signed(), inode, size, seen.mtime(), seen.mtime_nsec(), seen.ctime_nsec()])
}

/// The command that names the places; it wants a read-only fence.
pub(crate) fn find() -> Command {
    let mut command = Command::new(["bash", "-c", SCRIPT], GIT_TIMEOUT);
    command.toolchains = false;
    command.capture_bytes = 4 << 20;
    let pairs = [
        // Names are bytes.
        ("LC_ALL", "C"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", "false"),
    ];
    command.env = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    command
}

/// The command that takes what a command has added to an index as a repository of its own out of it again: a person's git would
/// enter it. Its arguments are the folders.
pub(crate) fn forget(folders: impl IntoIterator<Item = String>) -> Command {
    const SCRIPT: &str = r#"for folder; do
        (cd -- "$(dirname -- "$folder")" && git update-index --force-remove -- "$(basename -- "$folder")") || exit
    done"#;
    let argv = ["bash", "-c", SCRIPT, "git"].map(str::to_owned).into_iter().chain(folders);
    Command { argv: argv.collect(), is_git: true, ..find() }
}

/// Prints kinds and absolute paths, each ended by NUL: `git` for a repository's `.git`, `hooks`, and `whole` for the rest.
///
/// It runs before the first command after each change of a repository, so it starts few processes: four a repository.
const SCRIPT: &str = r#"
shopt -s nullglob dotglob
top=$PWD
say() { # as it is called: where it leads is found outside
    case "$2" in /*) printf '%s\0%s\0' "$1" "$2" ;; *) printf '%s\0%s/%s\0' "$1" "$PWD" "$2" ;; esac
}
links_in() { # each of these folders, and the links in it
    local folder entry
    for folder; do
        for entry in "$folder" "$folder"/*; do
            [ ! -L "$entry" ] || say whole "$entry"
        done
    done
}
of_repository() { # at the folder $1; sets the variable index
    local git_dir hooks elsewhere last origin item file value paths own_hooks=
    index=
    cd -- "$1" 2>/dev/null || return
    mapfile -t paths < <(git rev-parse --path-format=absolute --git-dir --git-common-dir --git-path index 2>/dev/null)
    if [ "${#paths[@]}" != 3 ]; then # no repository, or a name with a line end
        paths=()
        for item in --git-dir --git-common-dir '--git-path index'; do
            value=$(git rev-parse --path-format=absolute $item 2>/dev/null) || return
            paths+=("$value")
        done
    fi
    git_dir=${paths[0]} common=${paths[1]} index=${paths[2]}
    say git "$git_dir"
    say git "$common"
    if [ -f .git ]; then
        IFS= read -r elsewhere <.git
        case "$elsewhere" in 'gitdir: '*) say git "${elsewhere#gitdir: }" ;; esac
    fi
    if [ -f "$git_dir/commondir" ]; then
        IFS= read -r elsewhere <"$git_dir/commondir"
        case "$elsewhere" in /*) say git "$elsewhere" ;; *) say git "$git_dir/$elsewhere" ;; esac
    fi
    last=
    while IFS= read -r -d '' origin && IFS= read -r -d '' item; do
        case "$item" in core.hookspath|core.hookspath$'\n'*) own_hooks=1 ;; esac
        case "$origin" in file:*) ;; *) continue ;; esac
        if [ "$origin" != "$last" ]; then
            last=$origin
            file=${origin#file:}
            case "$file" in /*) ;; *) file=$PWD/$file ;; esac
            say whole "$file"
        fi
        case "$item" in
            include.path$'\n'*|includeif.*.path$'\n'*)
                value=${item##*$'\n'}
                case "$value" in '~'*) ;; /*) say whole "$value" ;; *) say whole "${file%/*}/$value" ;; esac ;;
        esac
    done < <(git config --list --show-origin --includes -z 2>/dev/null)
    hooks=$common/hooks
    [ -z "$own_hooks" ] || hooks=$(git config --type=path --get core.hooksPath 2>/dev/null) || hooks=$common/hooks
    say hooks "$hooks"
    say hooks "$common/hooks"
    links_in "$common" "$git_dir" "$common/info" "$hooks" "$common/hooks"
}
common=
of_repository .
if [ -d "$common/worktrees" ]; then
    while IFS= read -r -d '' line; do
        case "$line" in 'worktree '*) say git "${line#worktree }/.git" ;; esac
    done < <(git worktree list --porcelain -z 2>/dev/null)
fi
todo=(.)
n=0
while [ "$n" -lt "${#todo[@]}" ] && [ "$n" -lt 1000 ]; do
    at=${todo[n]}
    n=$((n + 1))
    [ "$n" = 1 ] || of_repository "$at"
    cd -- "$top" || exit
    [ -n "$index" ] || continue
    say read "$at"
    say index "$index"
    while IFS= read -r -d '' entry; do
        inner=$at/${entry#*$'\t'}
        say git "$inner/.git"
        [ ! -e "$inner/.git" ] || todo+=("$inner")
    done < <(git -C "$at" ls-files --stage -z 2>/dev/null | grep -za '^160000 ')
done
true
"#;

/// Reads what [`find`] printed: what of it lies in the workspace and not in a place that is held anyway.
///
/// # Errors
/// More than [`PLACES_MAX`], or a name that is no text.
///
/// `global` is what a person's configuration outside names, of the same kinds.
pub(crate) fn read_places(
    root: &Path,
    outer: Option<&Path>,
    printed: &str,
    global: &[(String, PathBuf)],
) -> Result<Places> {
    let mut found = BTreeSet::new();
    let (mut read, mut indexes) = (BTreeSet::new(), BTreeSet::new());
    let place = |top: &Path, path: &Path, rule| Place { top: top.to_owned(), path: path.to_owned(), rule };
    found.insert(place(root, Path::new(GIT_DIR), Rule::Git));
    if let Some((top, name)) = outer.and_then(|git| Some((git.parent()?, git.file_name()?))) {
        found.insert(place(top, Path::new(name), Rule::Git));
    }
    if printed.contains(char::REPLACEMENT_CHARACTER) {
        // It could be told from no other.
        return Err(Error::Pattern {
            what: "a name that git obeys",
            message: "a submodule, worktree, hook or configuration file has a name that is not UTF-8".to_owned(),
        });
    }
    if printed.is_empty() && root.join("HEAD").symlink_metadata().is_err() {
        // Without a repository of its own the workspace itself could be made one, for which git looks at this name.
        found.insert(place(root, Path::new("HEAD"), Rule::Hooks));
    }
    let said = printed.split('\0').collect::<Vec<_>>();
    let pairs = said.chunks_exact(2).map(|pair| (pair[0].to_owned(), absolute(root, pair[1])));
    for (kind, path) in pairs.chain(global.iter().cloned()) {
        let (links, end) = way(&path);
        let inside = |path: &Path| {
            let inside = path.strip_prefix(root).ok()?.to_owned();
            let of_git = inside.starts_with(GIT_DIR) && inside != Path::new(GIT_DIR);
            (!inside.as_os_str().is_empty() && !of_git).then_some(inside)
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
            _ => {}
        }
        // Each link on the way, too: who exchanges it leads git elsewhere.
        found.extend(links.iter().filter_map(|link| Some(place(root, &inside(link)?, Rule::Whole))));
        let rule = match kind.as_str() {
            "git" => Rule::Git,
            "hooks" => Rule::Hooks,
            _ => Rule::Whole,
        };
        found.extend(inside(&end).map(|end| place(root, &end, rule)));
    }
    // What lies in another place is held with it.
    let all: Vec<Place> = found.into_iter().collect();
    let holds = |p: &Place, one: &Place| p.top == one.top && p != one && one.path.starts_with(&p.path) && p < one;
    let places: Vec<Place> = all.iter().filter(|one| !all.iter().any(|p| holds(p, one))).cloned().collect();
    if places.len() > PLACES_MAX {
        let what = "the number of submodules, worktrees and files of git's configuration in the workspace".to_owned();
        return Err(Error::Limit { what, actual: places.len() as u64, limit: PLACES_MAX as u64 });
    }
    Ok(Places { all: places, read, indexes })
}

/// Most links followed on one way, as the kernel's own limit.
const LINKS_MAX: usize = 40;

/// What a command prints of the workspace is said relative to it.
fn absolute(root: &Path, printed: &str) -> PathBuf {
    match printed.strip_prefix("./") {
        Some(inside) => root.join(inside),
        None if printed == "." => root.to_owned(),
        None => PathBuf::from(printed),
    }
}

/// Every link on the way to an absolute path, and where the way ends.
fn way(path: &Path) -> (Vec<PathBuf>, PathBuf) {
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

/// What the person's own configuration outside the workspace obeys: itself, where it leads into the workspace, and a folder
/// of hooks that it names. Kinds as [`find`] prints them.
pub(crate) fn of_the_person(home: &Path, root: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for file in [home.join(".gitconfig"), home.join(".config/git/config")] {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        found.push(("whole".to_owned(), file));
        for line in text.lines() {
            let Some((name, value)) = line.split_once('=') else { continue };
            if !name.trim().eq_ignore_ascii_case("hookspath") {
                continue;
            }
            let value = value.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"');
            if !value.is_empty() && !value.starts_with('~') {
                // Relative to where git runs.
                found.push(("hooks".to_owned(), root.join(value)));
            }
        }
    }
    found
}
