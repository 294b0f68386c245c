//! Files that git obeys and that have a second name.
//!
//! A read-only mount covers one name of a file. A hard link is another name of the same file, and a command that made one before
//! the file became a hook or a setting can still write through it. So the full tier refuses commands while such a file has more
//! than one name. Objects, references and logs are data and are not looked at: clones of one machine share objects by hard links.

use std::collections::VecDeque;
use std::io::Result;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::places::{Place, Places, Rule};
use super::read::Top;
use super::snapshot::{ARMED_FILES, ARMED_FOLDERS, names, open};
use toolhost_contract::named;
use toolhost_contract::workspace::{Error, POLICY_FILE};

/// Most files looked at for one command.
const FILES_MAX: usize = 20_000;
/// Most files named in an error.
const NAMED_MAX: usize = 10;
/// What git follows in a repository's folder besides its settings: a submodule that is added to the index is entered.
const FOLLOWED: [&str; 2] = ["HEAD", "index"];

/// How a name is looked through, as in a snapshot.
#[derive(Clone, Copy)]
enum Depth {
    Git,
    Whole,
    Repositories,
}

/// Fails if a file of `places`, or the policy, has more than one name.
pub(crate) fn refuse_shared(root: &Top, places: &Places) -> toolhost_contract::workspace::Result<()> {
    let mut search = Search { todo: VecDeque::new(), shared: Vec::new(), left: FILES_MAX };
    search.todo.push_back((root.clone(), PathBuf::from(POLICY_FILE), Depth::Whole));
    for Place { top, path, rule } in &places.all {
        let depth = if *rule == Rule::Git { Depth::Git } else { Depth::Whole };
        search.todo.push_back((top.clone(), path.clone(), depth));
    }
    let whole = search.run().map_err(|source| Error::Io { path: "what git obeys".to_owned(), source })?;
    if !search.shared.is_empty() {
        return Err(Error::Shared { names: named(&search.shared, NAMED_MAX) });
    }
    if !whole {
        let what = "the number of git's hooks and settings files in the workspace".to_owned();
        return Err(Error::Limit { what, actual: FILES_MAX as u64 + 1, limit: FILES_MAX as u64 });
    }
    Ok(())
}

struct Search {
    todo: VecDeque<(Top, PathBuf, Depth)>,
    shared: Vec<String>,
    left: usize,
}

impl Search {
    /// `false`: there is more than may be looked at.
    fn run(&mut self) -> Result<bool> {
        while let Some((top, path, depth)) = self.todo.pop_front() {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let Some(folder) = present(open(&top, above))? else { continue };
            let Some(stat) = present(statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(Into::into))? else {
                continue;
            };
            let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
            self.left = left;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if stat.st_nlink > 1 => self.shared.push(path.to_string_lossy().into_owned()),
                FileType::Directory => self.enter(&top, &path, depth)?,
                _ => {}
            }
        }
        Ok(true)
    }

    fn enter(&mut self, top: &Top, path: &Path, depth: Depth) -> Result<()> {
        let mut go = |name: &Path, depth| self.todo.push_back((top.clone(), path.join(name), depth));
        if let Depth::Git = depth {
            ARMED_FILES.iter().chain(&FOLLOWED).for_each(|name| go(Path::new(name), Depth::Whole));
            ARMED_FOLDERS.iter().for_each(|name| go(Path::new(name), Depth::Whole));
            ["modules", "worktrees"].iter().for_each(|name| go(Path::new(name), Depth::Repositories));
            return Ok(());
        }
        let Some(folder) = present(open(top, path))? else { return Ok(()) };
        let is_repository = |name: &Path| statat(&folder, name.join("HEAD"), AtFlags::SYMLINK_NOFOLLOW).is_ok();
        for name in present(names(&folder))?.unwrap_or_default() {
            let name = Path::new(&name);
            let inner = match depth {
                Depth::Repositories if is_repository(name) => Depth::Git,
                other => other,
            };
            go(name, inner);
        }
        Ok(())
    }
}

/// `None` for a name that is not there, that a link leads to, or that the host may not look at.
fn present<T>(found: Result<T>) -> Result<Option<T>> {
    const ABSENT: [i32; 5] = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::EXDEV, libc::EACCES];
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.raw_os_error().is_some_and(|code| ABSENT.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}
