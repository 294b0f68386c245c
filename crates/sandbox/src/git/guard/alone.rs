//! A workspace held alone: git changes files, and no command runs in it, around it or inside it meanwhile.

use std::fs::File;
use std::io::{ErrorKind, Result, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use toolhost_contract::workspace::Error;

use super::{ALONE, Guard, Locked, failed, is_over, lock_soon};

/// No command is under way in the workspace, around it or inside it, and none begins there meanwhile.
pub(crate) struct Alone {
    guard: Guard,
    /// Held until the last process of the git command has ended, also if the host is killed.
    workspace: Option<File>,
    _turn: Locked,
    _in_use: Locked,
    _mark: Locked,
}

impl Alone {
    /// A handle of the lock, for a supervisor that outlives this host.
    pub(crate) fn lock(&self) -> Result<OwnedFd> {
        let workspace = self.workspace.as_ref().ok_or(ErrorKind::NotFound)?;
        Ok(workspace.try_clone()?.into())
    }

    /// The command has ended.
    pub(crate) fn end(mut self) {
        drop(self.workspace.take().map(Locked));
    }
}

impl Drop for Alone {
    /// A mark that stays, as one of a killed host does, marks nothing: it is only one more to look at.
    fn drop(&mut self) {
        let Ok(_among_all) = self.guard.turn_among_all() else { return };
        let _ = self.guard.forget(ALONE);
    }
}

impl Guard {
    /// Holds the workspace for one git command alone: no other command begins until the answer is dropped. What the commands of a
    /// killed host have left is put back first.
    ///
    /// # Errors
    /// [`Error::CommandUnderWay`] and [`Error::Overlap`]: a command is under way here, or in a workspace around or inside.
    pub(crate) fn alone(&self) -> toolhost_contract::workspace::Result<Alone> {
        self.make_folders().map_err(failed)?;
        let turn = self.turn().map_err(failed)?;
        let in_use = self.lock_file("use").map_err(failed)?;
        if lock_soon(&in_use, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Error::CommandUnderWay);
        }
        let workspace = self.workspace_file(FlockOperation::NonBlockingLockExclusive)?;
        self.restore_kept(true)?;
        let _among_all = self.turn_among_all().map_err(failed)?;
        let mut mark = self.lock_file(ALONE).map_err(failed)?;
        flock(&mark, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        mark.set_len(0).and_then(|()| mark.write_all(self.root.path().as_os_str().as_bytes())).map_err(failed)?;
        if self.others().map_err(failed)?.iter().any(|(other, _)| other.is_in_use()) {
            return Err(Error::Overlap);
        }
        Ok(Alone {
            guard: self.clone(),
            workspace: Some(workspace),
            _turn: turn,
            _in_use: Locked(in_use),
            _mark: Locked(mark),
        })
    }

    /// A lock on the workspace's folder itself: hosts whose guards are kept elsewhere, for another `HOME`, see this one.
    pub(super) fn workspace_lock(&self, how: FlockOperation) -> toolhost_contract::workspace::Result<Locked> {
        self.workspace_file(how).map(Locked)
    }

    fn workspace_file(&self, how: FlockOperation) -> toolhost_contract::workspace::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = |folder| Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?);
        let folder = File::from(self.root.open().and_then(readable).map_err(failed)?);
        match lock_soon(&folder, how) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::CommandUnderWay),
            // A file system without locks of folders: the guard's own file remains.
            _ => Ok(folder),
        }
    }

    /// Waits until no [`alone`](Self::alone) of a workspace around this one or inside it is held. None begins while the answer
    /// is held.
    pub(super) fn beside_no_change(&self) -> toolhost_contract::workspace::Result<Locked> {
        loop {
            let among_all = self.turn_among_all().map_err(failed)?;
            let Some(mark) = self.held_alone().map_err(failed)? else { return Ok(among_all) };
            drop(among_all);
            flock(&mark, FlockOperation::LockShared).map_err(|error| failed(error.into()))?;
        }
    }

    /// The mark of another workspace, around this one or inside it, that is held alone.
    fn held_alone(&self) -> Result<Option<File>> {
        for id in self.others_with(ALONE)? {
            let path = self.file_of(&id, ALONE);
            // One that is gone meanwhile is nobody's.
            let (Ok(root), Ok(mark)) = (std::fs::read(&path), File::open(&path)) else { continue };
            let root = Path::new(std::ffi::OsStr::from_bytes(&root));
            if is_over(root, self.root.path()) && flock(&mark, FlockOperation::NonBlockingLockShared).is_err() {
                return Ok(Some(mark));
            }
        }
        Ok(None)
    }

    /// Waits until no git command holds the workspace alone. None can begin to until the returned files are dropped.
    ///
    /// # Errors
    /// [`Error::CommandUnderWay`]: a host that keeps its guard elsewhere holds it alone.
    pub(crate) fn while_nobody_is_alone(&self) -> toolhost_contract::workspace::Result<Vec<Locked>> {
        let mut held = Vec::new();
        if self.folder.exists() {
            held.push(self.turn().map_err(failed)?);
            held.push(self.beside_no_change()?);
        }
        held.push(self.workspace_lock(FlockOperation::NonBlockingLockShared)?);
        Ok(held)
    }
}
