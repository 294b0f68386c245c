//! Holding the places of git while one command runs.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::around::Outer;
use super::guard::NAMED_MAX;
use super::guard::{Alone, Lease, Turn};
use super::mounted::{Looked, Mount, MountedPlace, Moves, look};
use super::placeholder::{Empty, Placeholder};
use super::places::{GIT_DIR, Place, Places, Rule};
use super::read::Top;
use super::shared::refuse_shared;
use super::snapshot::set_aside;
use crate::error::from_io;
use toolhost_contract::named;
use toolhost_contract::workspace::{Error, POLICY_FILE, Result, STATE_FOLDER, Tier};

/// How often a place is looked at whose looks contradict each other.
const LOOKS_MAX: usize = 100;

/// What is held for one command. Dropped, nothing is held any more.
#[derive(Default)]
pub(crate) struct Held {
    /// Outer ones before those inside them.
    pub(crate) mounts: Vec<Mount>,
    /// For a supervisor that may outlive this host.
    pub(crate) lock: Option<OwnedFd>,
    lease: Option<Lease>,
    /// While git changes files.
    alone: Option<Alone>,
    /// The names that are mounted. If somebody outside replaces one, what is there then has no mount.
    mounted: Vec<MountedPlace>,
    _placeholders: Vec<Placeholder>,
    moves: Moves,
}

impl Held {
    /// Whether something is put back when the command has ended.
    pub(crate) fn is_leased(&self) -> bool {
        self.lease.is_some()
    }

    /// The same, with the workspace held alone.
    pub(crate) fn with(mut self, alone: Option<Alone>) -> Result<Self> {
        let lock = alone.as_ref().map(Alone::lock).transpose();
        let lock = lock.map_err(|source| Error::Io { path: "the workspace's lock".to_owned(), source })?;
        self.lock = lock.or(self.lock.take());
        self.alone = alone;
        Ok(self)
    }

    /// Ends the hold: puts back what could not be mounted, and names it. The turn is there if no other command is under way, and
    /// none begins until it ends.
    ///
    /// # Errors
    /// Somebody has exchanged a file while it was held, as an editor does that saves it: its mount went with the former one, and
    /// the command may have written into the new one.
    pub(crate) fn end(mut self) -> Result<(Vec<String>, Option<Turn>)> {
        self.lock = None;
        if let Some(alone) = self.alone.take() {
            alone.end();
        }
        let looked = self.look_for_exchanges();
        // Whatever failed, this is put back.
        let (mut restored, turn) = self.lease.take().map_or(Ok((Vec::new(), None)), Lease::restore)?;
        let Exchanges { names, cleared, is_gone } = looked?;
        if is_gone {
            return Err(Error::OtherFolder);
        }
        if !names.is_empty() {
            return Err(Error::Exchanged { names: named(&names, NAMED_MAX) });
        }
        restored.extend(cleared);
        Ok((restored, turn))
    }

    /// Finds what is no longer what was mounted. The command may have written into it, and a later command must not take that for the
    /// person's: so all hosts refuse commands from now on.
    fn look_for_exchanges(&mut self) -> Result<Exchanges> {
        let mut found = Exchanges { names: self.moves.seen(), ..Exchanges::default() };
        let tops: BTreeSet<&Top> = self.mounted.iter().map(|kept| &kept.top).collect();
        // What is at their paths is another's.
        let gone: BTreeSet<Top> = tops.into_iter().filter(|top| top.open().is_err()).cloned().collect();
        found.is_gone = !gone.is_empty();
        let mut set_asides = Ok(());
        let there = self.mounted.drain(..).filter(|kept| !gone.contains(&kept.top));
        for kept in there.filter(MountedPlace::is_exchanged) {
            let name = kept.path.to_string_lossy().into_owned();
            if kept.is_empty {
                let aside = set_aside(&kept.top, &kept.path);
                set_asides = set_asides.and(aside.map_err(|source| Error::Io { path: name.clone(), source }));
                found.cleared.push(name);
            } else if !found.names.contains(&name) {
                found.names.push(name);
            }
        }
        if let Some(lease) = self.lease.as_ref().filter(|_| !found.names.is_empty()) {
            lease.guard().refuse_until_accepted(named(&found.names, NAMED_MAX))?;
        }
        set_asides.map(|()| found)
    }
}

impl Drop for Held {
    /// A cancelled call does not reach [`end`](Self::end): the host looks for exchanges here then.
    fn drop(&mut self) {
        if let Err(error) = self.look_for_exchanges() {
            tracing::error!(%error, "a command was dropped");
        }
    }
}

/// What is another than when it was mounted.
#[derive(Default)]
struct Exchanges {
    names: Vec<String>,
    /// Where nothing was: moved aside.
    cleared: Vec<String>,
    /// Whether another folder has taken the place of the workspace, or of its repository.
    is_gone: bool,
}

/// A command's share in the guard, which may still have to be kept.
pub(crate) enum Started {
    Alone(Turn),
    Beside(Lease),
}

impl Started {
    fn lease(self, alone: &[&str], kept: &[&Place], mounted: &[MountedPlace], places: &Places) -> Result<Lease> {
        match self {
            Self::Alone(turn) => turn.keep(alone, kept, mounted, places),
            Self::Beside(lease) => Ok(lease),
        }
    }
}

/// Holds the policy and `places` for a command that may write.
pub(crate) fn hold(begun: Started, tier: Tier, root: &Top, places: &Places) -> Result<Held> {
    let mut held = Held::default();
    let alone = [POLICY_FILE];
    if tier != Tier::Full {
        let heads = heads(root, places);
        // Commands may make the folders that submodules of other branches would have; their `.git` is looked for afterwards.
        let named = places.all.iter().filter(|place| !places.is_branched(place));
        let mut all: Vec<&Place> = named.chain(&places.within).chain(&heads).collect();
        all.retain(|place| is_in_reach(root, place));
        let lease = begun.lease(&alone, &all, &[], places)?;
        held.lock = Some(lease.lock().map_err(|source| Error::Io { path: ".git".to_owned(), source })?);
        held.lease = Some(lease);
        return Ok(held);
    }
    refuse_shared(root, places)?;
    let mut mounts = BTreeMap::new();
    let mut unmounted = Vec::new();
    for place in &places.all {
        if !mount(place, places.is_branched(place), &mut mounts, &mut held)? {
            unmounted.push(place);
        }
    }
    unmounted.retain(|place| is_in_reach(root, place));
    held.lease = Some(begun.lease(&alone, &unmounted, &held.mounted, places)?);
    // Its own, and where the workspace is itself what another one is deployed to.
    for name in [POLICY_FILE, STATE_FOLDER] {
        if let Some(Looked { at, identity }) = look(root, Path::new(name)) {
            let (top, path) = (root.clone(), PathBuf::from(name));
            held.mounted.push(MountedPlace { top, path, identity, is_empty: false });
            mounts.insert((1, at.path.clone()), Mount { at, writable: false });
        }
    }
    held.mounts = mounts.into_values().collect();
    held.moves = Moves::watch(root, &held.mounts);
    Ok(held)
}

/// Whether a command can write the place: nothing outside the workspace. A repository out there, of which the workspace is a
/// worktree or a submodule, may be in another workspace. If it were kept here while a command there plants something in it, the
/// end of this command would put that back as the person's.
fn is_in_reach(root: &Top, place: &Place) -> bool {
    place.full().starts_with(root.path())
}

/// `HEAD` beside each `.git`: git takes the folder itself for a bare repository while it does not accept its `.git`.
pub(crate) fn heads(root: &Top, places: &Places) -> Vec<Place> {
    let gits = places.all.iter().filter(|place| place.top == *root && place.path.ends_with(".git"));
    let gits = gits.filter(|place| !places.is_branched(place));
    gits.map(|git| Place { path: git.path.with_file_name("HEAD"), rule: Rule::Whole, ..git.clone() }).collect()
}

type Mounts = BTreeMap<(usize, PathBuf), Mount>;

/// Mounts a place read-only, and what it is in over itself, so that none of that can be moved away. `false`: it cannot be.
fn mount(place: &Place, is_branched: bool, mounts: &mut Mounts, held: &mut Held) -> Result<bool> {
    // Where only another branch has a submodule, this one may have files, and an empty `.git` is in nobody's way.
    let folder = if is_branched { None } else { empty_folder_of(place) };
    let place = folder.as_ref().unwrap_or(place);
    let (Looked { at, identity }, is_empty) = match find_or_hold(place, &mut held._placeholders)? {
        Stands::There(looked) => (looked, false),
        Stands::Held(looked) => (looked, true),
        Stands::BehindALink if place.path == Path::new(GIT_DIR) => return Err(Error::LinkedGit),
        Stands::BehindALink => return Ok(false),
        Stands::Nowhere => return Ok(true),
    };
    let above = place.path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
    for path in above {
        let Some(Looked { at, .. }) = look(&place.top, path) else { return Ok(false) };
        mounts.entry((path.components().count(), at.path.clone())).or_insert(Mount { at, writable: true });
    }
    held.mounted.push(MountedPlace { top: place.top.clone(), path: place.path.clone(), identity, is_empty });
    mounts.insert((place.path.components().count(), at.path.clone()), Mount { at, writable: false });
    Ok(true)
}

/// What a place was found as.
enum Stands {
    There(Looked),
    /// Nothing was there but an empty file or folder, which is held now.
    Held(Looked),
    /// The way there is through a link or a file.
    BehindALink,
    /// Nothing is there, and nobody can make anything there.
    Nowhere,
}

/// Finds what is at the place, or holds an empty file or folder there. Other commands make and remove theirs at the same name at
/// any moment, so the place is looked at again where two looks contradict each other.
fn find_or_hold(place: &Place, placeholders: &mut Vec<Placeholder>) -> Result<Stands> {
    let full = place.full();
    let io = |source| from_io(&place.path.to_string_lossy(), source);
    let identity = |found: &std::fs::Metadata| (found.dev(), found.ino(), found.ctime(), found.ctime_nsec());
    for _ in 0..LOOKS_MAX {
        let found = full.symlink_metadata().ok();
        let stays = || full.symlink_metadata().ok().as_ref().map(identity) == found.as_ref().map(identity);
        // What another command holds the place with is held with it, or its end would take the mount of this one away.
        let vacant = match &found {
            None => Some(if place.rule == Rule::Whole { Empty::File } else { Empty::Folder }),
            Some(found) => Empty::found(&full, found),
        };
        let is_held = if let Some(what) = vacant {
            let top = place.top.open().map_err(io)?;
            match Placeholder::hold(&top, &place.path, what) {
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOTDIR | libc::ELOOP | libc::EXDEV) => return Ok(Stands::BehindALink),
                    // Another command's end has removed a folder on the way.
                    Some(libc::ENOENT) => continue,
                    _ => return Err(io(error)),
                },
                Ok(Some(placeholder)) => {
                    placeholders.push(placeholder);
                    true
                }
                Ok(None) => false,
            }
        } else {
            false
        };
        match look(&place.top, &place.path) {
            Some(looked) if is_held => return Ok(Stands::Held(looked)),
            Some(looked) if vacant.is_none() => return Ok(Stands::There(looked)),
            None if found.is_none() && stays() => return Ok(Stands::Nowhere),
            None if vacant.is_none() && stays() => return Ok(Stands::BehindALink),
            _ => {}
        }
    }
    Err(io(std::io::Error::other("it is made and removed again and again")))
}

/// The folder of a submodule or a working tree in which nothing is, or which is not there: it is held itself. Anything at the
/// name `.git` in it would keep a person's git from working above it meanwhile.
fn empty_folder_of(place: &Place) -> Option<Place> {
    let folder = place.path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    if place.rule != Rule::Git || place.path.file_name()? != GIT_DIR {
        return None;
    }
    let is_empty = match std::fs::read_dir(place.top.path().join(folder)) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    is_empty.then(|| Place { path: folder.to_owned(), rule: Rule::Hooks, ..place.clone() })
}

/// What stays read-only for git itself, which the host's own tools run.
pub(crate) fn of_git_itself(root: &Top, outer: Option<&Outer>) -> Held {
    /// Git's files that run programs or redirect git; the tools use a repository, they do not arm it.
    const ARMED: [&str; 3] = ["hooks", "config", "info"];
    let mut mounts = Vec::new();
    let mut add = |found: Option<Looked>, writable| mounts.extend(found.map(|found| Mount { at: found.at, writable }));
    let inner = (root, Path::new(GIT_DIR));
    for (folder, name) in std::iter::once(inner).chain(outer.map(|outer| (&outer.top, outer.name.as_path()))) {
        if !folder.path().join(name).is_dir() {
            continue;
        }
        add(look(folder, name), true);
        ARMED.iter().for_each(|armed| add(look(folder, &name.join(armed)), false));
    }
    add(look(root, Path::new(POLICY_FILE)), false);
    add(look(root, Path::new(STATE_FOLDER)), false);
    let mut held = Held::default();
    held.mounts = mounts;
    held
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_other_commands_hold_and_free_meanwhile_is_held_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let place = |path: &str, rule| Place { top: Top::at(folder.path()).unwrap(), path: PathBuf::from(path), rule };
        let places = [place(".git", Rule::Git), place("deep/in/config", Rule::Whole)];
        std::thread::scope(|scope| {
            let holding = scope.spawn(|| {
                for place in (0..20_000).flat_map(|_| &places) {
                    let mut placeholders = Vec::new();
                    let stands = find_or_hold(place, &mut placeholders).unwrap();
                    assert!(matches!(stands, Stands::Held(_)), "{}", place.full().display());
                    assert_eq!(placeholders.len(), 1);
                }
            });
            while !holding.is_finished() {
                for place in &places {
                    find_or_hold(place, &mut Vec::new()).unwrap();
                }
            }
        });
    }

    #[test]
    fn what_is_behind_a_link_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        std::fs::write(folder.path().join("real/config"), "x").unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        for path in ["link", "link/config", "link/other", "real/config/below"] {
            let place = Place { top: Top::at(folder.path()).unwrap(), path: PathBuf::from(path), rule: Rule::Whole };
            let mut placeholders = Vec::new();
            assert!(matches!(find_or_hold(&place, &mut placeholders).unwrap(), Stands::BehindALink), "{path}");
            assert!(placeholders.is_empty());
        }
    }
}
