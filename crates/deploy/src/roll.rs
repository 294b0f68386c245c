//! Moves files into place, and back, so that it can be broken off anywhere and begun again.
//!
//! `new/` holds what is to come into place, `former/` what stood there. A file changes places with what stands at its
//! path in one step, so the path is never empty and whatever was there, even if it came a moment ago, is kept. Which of
//! the two is where tells how far it has come; after a crash their contents tell it, where names alone do not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind as K;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::journal::{Deploy, ManifestFile};
use super::plan::Reason;
use super::root::{At, Root, Stat, exchange, look, move_to_free, plain_mode};
use super::rules::lineage;
use super::{DeployStep, Deployer, Port};
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::from_io;
use toolhost_sandbox::sha256_of;

/// How often somebody may come in between before it is given up.
const ATTEMPTS_MAX: usize = 100;
/// For a folder that went after its last file was deleted; nobody has noted its mode.
const RETURNED_FOLDER_MODE: u32 = 0o755;
/// How many things may have stood at one path.
const KEPT_MAX: usize = 1000;
const PROGRESS_EVERY: usize = 256;

/// How much is known of the state that a roll begins in.
#[derive(Clone, Copy)]
pub(super) enum Known<'a> {
    /// The stamps that everything to be replaced had a moment ago.
    Stamps(&'a BTreeMap<String, Stat>),
    /// All is done, and what was brought is unchanged.
    Whole,
    /// A crash may have come anywhere.
    Nothing,
}

pub(super) struct Roll<'a> {
    root: &'a Root,
    exchanges: bool,
    deploy: &'a Deploy,
    known: Known<'a>,
    pub(super) kept: Vec<Reason>,
}

impl<'a> Roll<'a> {
    pub(super) fn new(deployer: &'a Deployer, deploy: &'a Deploy, known: Known<'a>) -> Self {
        Self { root: &deployer.target, exchanges: deployer.exchanges, deploy, known, kept: Vec::new() }
    }

    /// Brings everything into place.
    pub(super) fn forward(&mut self, port: &mut Port<'_>) -> Result<()> {
        let record = &self.deploy.record;
        let total = record.files.len() + record.orphans.len();
        for (k, folder) in record.folders.iter().enumerate() {
            let name = folder_name(k);
            if self.staged(&name)?.is_some() {
                let (parent, last) = self.root.parent(&folder.path)?;
                // Somebody may have made it meanwhile: then it is theirs.
                move_to_free((&self.deploy.new, &name), (&parent, last)).map_err(|e| from_io(&folder.path, e))?;
                port.step(DeployStep::FolderMade(k))?;
            }
        }
        for n in 0..record.files.len() {
            if self.place(n, port)? {
                port.step(DeployStep::Renamed(n))?;
            }
            if n % PROGRESS_EVERY == 0 {
                port.watch.progress(n, total, "bringing into place");
            }
        }
        for k in 0..record.orphans.len() {
            if self.put_away(k)? {
                port.step(DeployStep::Deleted(k))?;
            }
        }
        port.watch.progress(total, total, "bringing into place");
        Ok(())
    }

    /// Takes everything back.
    pub(super) fn back(&mut self, port: &mut Port<'_>) -> Result<()> {
        let record = &self.deploy.record;
        for k in 0..record.orphans.len() {
            if self.bring_back(k)? {
                port.step(DeployStep::Restored(record.files.len() + k))?;
            }
        }
        for n in 0..record.files.len() {
            if self.restore(n, port)? {
                port.step(DeployStep::Restored(n))?;
            }
            if n % PROGRESS_EVERY == 0 {
                port.watch.progress(n, record.files.len(), "taking back");
            }
        }
        for (k, folder) in record.folders.iter().enumerate().rev() {
            let Ok((parent, last)) = self.root.parent(&folder.path) else { continue };
            // One that is still staged was never brought, so what stands there is somebody else's.
            if self.staged(&folder_name(k))?.is_none() && look(&parent, last).is_ok_and(|found| found.is_some()) {
                // Not empty, or no folder any more: somebody uses it, so it stays.
                let _ = rustix::fs::unlinkat(&parent, last, AtFlags::REMOVEDIR);
                port.step(DeployStep::FolderRemoved(k))?;
            }
        }
        Ok(())
    }

    /// What is kept in `former` for the files, but is not what the record says.
    pub(super) fn late(&self) -> Result<BTreeMap<String, ManifestFile>> {
        let record = &self.deploy.record;
        let mut late = BTreeMap::new();
        for (n, file) in record.files.iter().enumerate() {
            // What the stamps vouch for need not be read again.
            let vouched = matches!(self.known, Known::Stamps(_)) && file.former.is_some();
            let name = n.to_string();
            if vouched && !self.kept.iter().any(|kept| kept.path == file.path) {
                continue;
            }
            let Some(found) = content((&self.deploy.former, &name))? else { continue };
            let known = file.former.as_ref().map(|former| (&former.sha256, former.mode));
            if known != Some((&found.sha256, found.mode)) {
                late.insert(name, found);
            }
        }
        Ok(late)
    }

    /// Whether an orphan has been put away.
    pub(super) fn is_away(&self, k: usize) -> Result<bool> {
        Ok(self.former(&self.orphan_name(k))?.is_some())
    }

    fn place(&mut self, n: usize, port: &mut Port<'_>) -> Result<bool> {
        let deploy = self.deploy;
        let path = &deploy.record.files[n].path;
        let io = |e| from_io(path, e);
        let name = n.to_string();
        if self.staged(&name)?.is_none() {
            return Ok(false);
        }
        if matches!(self.known, Known::Nothing) && !self.is_brought((&deploy.new, &name), n)? {
            // It has changed places already: this is what stood there.
            self.keep((&deploy.new, &name), &name)?;
            return Ok(true);
        }
        let (parent, last) = self.root.parent(path)?;
        let (staged, there) = ((&deploy.new, name.as_str()), (&parent, last));
        let expected = match self.known {
            Known::Stamps(stamps) => look(&parent, last).map_err(io)? == stamps.get(path).copied(),
            Known::Whole | Known::Nothing => true,
        };
        for _ in 0..ATTEMPTS_MAX {
            if move_to_free(staged, there).map_err(io)? {
                return Ok(true);
            }
            match self.exchange(staged, there) {
                Ok(true) => {
                    port.step(DeployStep::MovedAside(n))?;
                    let kept = self.keep(staged, &name)?;
                    if !expected {
                        self.kept.push(Reason::new(
                            path,
                            false,
                            &format!("changed at the last moment; it is in `{kept}`"),
                        ));
                    }
                    return Ok(true);
                }
                Ok(false) => {
                    let kept = self.keep(there, &name)?;
                    port.step(DeployStep::MovedAside(n))?;
                    if !expected {
                        let why = format!("changed at the last moment; it is in `{kept}`");
                        self.kept.push(Reason::new(path, false, &why));
                    }
                }
                // Gone since the look: then the name is free.
                Err(e) if e.kind() == K::NotFound => {}
                Err(e) => return Err(io(e)),
            }
        }
        Err(io(std::io::Error::other("something keeps changing it")))
    }

    fn put_away(&mut self, k: usize) -> Result<bool> {
        let deploy = self.deploy;
        let orphan = &deploy.record.orphans[k];
        let io = |e| from_io(&orphan.path, e);
        let name = self.orphan_name(k);
        if self.former(&name)?.is_some() {
            return Ok(false);
        }
        let (parent, last) = match self.root.parent(&orphan.path) {
            Ok(place) => place,
            // Its folder has gone, and it with it.
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(e) => return Err(e),
        };
        let Some(found) = look(&parent, last).map_err(io)? else { return Ok(false) };
        let same = match self.known {
            Known::Stamps(stamps) => stamps.get(&orphan.path) == Some(&found),
            Known::Whole | Known::Nothing => is_content((&parent, last), orphan.mode, &orphan.sha256)?,
        };
        if !same {
            self.kept.push(Reason::new(&orphan.path, false, "changed at the last moment, so it was not deleted"));
            return Ok(false);
        }
        move_to_free((&parent, last), (&deploy.former, &name)).map_err(io)
    }

    fn bring_back(&mut self, k: usize) -> Result<bool> {
        let deploy = self.deploy;
        let path = &deploy.record.orphans[k].path;
        let io = |e| from_io(path, e);
        let name = self.orphan_name(k);
        if self.former(&name)?.is_none() {
            return Ok(false);
        }
        let Some((parent, last)) = self.way_back(path)? else {
            self.tell_of_rest(path, &name);
            return Ok(false);
        };
        self.make_plain(&name)?;
        let back = move_to_free((&deploy.former, &name), (&parent, last)).map_err(io)?;
        if !back {
            self.tell_of_rest(path, &name);
        }
        Ok(back)
    }

    fn restore(&mut self, n: usize, port: &mut Port<'_>) -> Result<bool> {
        let deploy = self.deploy;
        let path = &deploy.record.files[n].path;
        let io = |e| from_io(path, e);
        let name = n.to_string();
        let (staged, former) = ((&deploy.new, name.as_str()), (&deploy.former, name.as_str()));
        let crash = matches!(self.known, Known::Nothing);
        if crash && self.staged(&name)?.is_some() && !self.is_brought(staged, n)? {
            // On its way into place it had changed places, but what stood there was not yet put away.
            self.keep(staged, &name)?;
        }
        let (has_staged, has_former) = (self.staged(&name)?.is_some(), self.former(&name)?.is_some());
        if has_staged && !has_former {
            return Ok(false);
        }
        let place = if has_former { self.way_back(path)? } else { self.root.parent(path).ok() };
        let Some((parent, last)) = place else {
            // The folder is gone or no folder any more, and what was brought into it with it.
            if has_former {
                self.tell_of_rest(path, &name);
            }
            return Ok(false);
        };
        let there = (&parent, last);
        if has_former {
            self.make_plain(&name)?;
        }
        match (has_staged, has_former) {
            // What was brought is out of the way, what stood there is not yet back.
            (true, _) => {
                if !move_to_free(former, there).map_err(io)? {
                    self.tell_of_rest(path, &name);
                }
            }
            (false, false) => {
                let found = look(&parent, last).map_err(io)?.is_some();
                if !found || (crash && !self.is_brought(there, n)?) {
                    return Ok(false);
                }
                move_to_free(there, staged).map_err(io)?;
            }
            (false, true) if crash && self.is_brought(former, n)? => {
                move_to_free(former, staged).map_err(io)?;
            }
            (false, true) => match self.exchange(former, there) {
                Ok(true) => {
                    port.step(DeployStep::MovedAside(n))?;
                    move_to_free(former, staged).map_err(io)?;
                }
                Ok(false) => {
                    move_to_free(there, staged).map_err(io)?;
                    port.step(DeployStep::MovedAside(n))?;
                    move_to_free(former, there).map_err(io)?;
                }
                Err(e) if e.kind() == K::NotFound => {
                    move_to_free(former, there).map_err(io)?;
                }
                Err(e) => return Err(io(e)),
            },
        }
        if crash && has_former && !has_staged && !self.is_brought(staged, n)? {
            let place = format!("{}/deploys/{}/new/{name}", super::WORK_FOLDER, deploy.id);
            self.kept.push(Reason::new(path, false, &format!("changed since it was brought; that is in `{place}`")));
        }
        Ok(true)
    }

    /// The folder that something returns to, made again if it is gone; `None` if something else is in the way.
    fn way_back<'p>(&self, path: &'p str) -> Result<Option<(OwnedFd, &'p str)>> {
        let io = |e| from_io(path, e);
        for folder in lineage(super::root::split(path).0).filter(|folder| !folder.is_empty()) {
            let Ok((parent, last)) = self.root.parent(folder) else { return Ok(None) };
            match look(&parent, last).map_err(io)? {
                None => make_folder(self.root, &parent, last, RETURNED_FOLDER_MODE).map_err(io)?,
                Some(stat) if stat.is_folder() => {}
                Some(_) => return Ok(None),
            }
        }
        self.root.parent(path).map(Some)
    }

    fn exchange<A: AsFd, B: AsFd>(&self, one: At<'_, A>, other: At<'_, B>) -> std::io::Result<bool> {
        if self.exchanges { exchange(one, other) } else { Ok(false) }
    }

    /// Puts what stood at a path away, under the first free name; answers where it is.
    fn keep<F: AsFd>(&self, from: At<'_, F>, name: &str) -> Result<String> {
        let former = |name: &str| format!("{}/deploys/{}/former/{name}", super::WORK_FOLDER, self.deploy.id);
        let names = std::iter::once(name.to_owned()).chain((1..KEPT_MAX).map(|n| format!("{name}.{n}")));
        for name in names {
            match move_to_free(from, (&self.deploy.former, &name)) {
                Ok(true) => return Ok(former(&name)),
                Ok(false) => {}
                // It has gone by itself.
                Err(e) if e.kind() == K::NotFound => return Ok(former(&name)),
                Err(e) => return Err(from_io(&former(&name), e)),
            }
        }
        Err(Error::Exists { path: former(name) })
    }

    /// Takes from a kept file what would let it run as its owner: somebody may have set that where it is kept.
    fn make_plain(&self, name: &str) -> Result<()> {
        let Some(stat) = self.former(name)?.filter(|stat| stat.is_file() && stat.runs_as_owner()) else {
            return Ok(());
        };
        rustix::fs::chmodat(&self.deploy.former, name, plain_mode(stat.mode()), AtFlags::empty())
            .map_err(|e| from_io(name, e.into()))
    }

    fn tell_of_rest(&mut self, path: &str, name: &str) {
        let place = format!("{}/deploys/{}/former/{name}", super::WORK_FOLDER, self.deploy.id);
        let why = format!("something else came to its place at the last moment; what was there before is in `{place}`");
        self.kept.push(Reason::new(path, false, &why));
    }

    fn staged(&self, name: &str) -> Result<Option<Stat>> {
        look(&self.deploy.new, name).map_err(|e| from_io(name, e))
    }

    fn former(&self, name: &str) -> Result<Option<Stat>> {
        look(&self.deploy.former, name).map_err(|e| from_io(name, e))
    }

    /// Orphans are counted after the files.
    fn orphan_name(&self, k: usize) -> String {
        (self.deploy.record.files.len() + k).to_string()
    }

    fn is_brought<F: AsFd>(&self, at: At<'_, F>, n: usize) -> Result<bool> {
        let file = &self.deploy.record.files[n];
        is_content(at, file.mode, &file.sha256)
    }
}

pub(super) fn folder_name(k: usize) -> String {
    format!("d{k}")
}

/// Makes a folder that belongs to the target's owner, with this very mode.
pub(super) fn make_folder(root: &Root, parent: impl AsFd, name: &str, mode: u32) -> std::io::Result<()> {
    rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
    root.tree().give_to_owner(&folder)?;
    Ok(rustix::fs::fchmod(&folder, plain_mode(mode))?)
}

/// Whether a regular file of this mode and content is at a name.
pub(super) fn is_content<F: AsFd>(at: At<'_, F>, mode: u32, sha256: &str) -> Result<bool> {
    let io = |e: std::io::Error| from_io(at.1, e);
    let is_mode = look(at.0, at.1).map_err(io)?.is_some_and(|stat| stat.mode() == mode);
    Ok(is_mode && content(at)?.is_some_and(|found| found.sha256 == sha256))
}

/// Mode and hash of what is at a name; what is no regular file has a word for a hash.
fn content<F: AsFd>(at: At<'_, F>) -> Result<Option<ManifestFile>> {
    let io = |e: std::io::Error| from_io(at.1, e);
    let Some(stat) = look(at.0, at.1).map_err(io)? else { return Ok(None) };
    let mode = stat.mode();
    if !stat.is_file() {
        return Ok(Some(ManifestFile { sha256: stat.what().to_owned(), mode }));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(at.0, at.1, flags, Mode::empty()).map_err(|e| io(e.into()))?;
    let sha256 = sha256_of(File::from(file), &mut vec![0; 64 * 1024]).map_err(io)?;
    Ok(Some(ManifestFile { sha256, mode }))
}
