//! Which hosts are alive: each holds a lock on a file of its own, which the kernel lets go when the process dies.

use std::fs::File;
use std::path::{Path, PathBuf};

/// This host's lock, held until it is dropped.
pub(crate) struct Presence {
    folder: PathBuf,
    host: String,
    _lock: File,
}

impl Presence {
    pub(crate) fn announce(state: &Path) -> std::io::Result<Self> {
        let folder = state.join("hosts");
        std::fs::create_dir_all(&folder)?;
        sweep(&folder);
        let host = uuid::Uuid::now_v7().to_string();
        let lock = File::create(folder.join(&host))?;
        lock.try_lock().map_err(std::io::Error::other)?;
        Ok(Self { folder, host, _lock: lock })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether the process behind `host` still runs. A dead one's file is removed.
    pub(crate) fn is_alive(&self, host: &str) -> bool {
        if host == self.host {
            return true;
        }
        let path = self.folder.join(host);
        let Ok(file) = File::open(&path) else { return false };
        if file.try_lock().is_err() {
            return true;
        }
        // Whoever else looks finds no file, which says the same.
        let _ = std::fs::remove_file(path);
        false
    }
}

/// Removes what dead hosts left behind.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let dead = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        // Calls they left open are closed all the same: no file means dead.
        if dead {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Left behind, it is removed by the next host that looks.
        let _ = std::fs::remove_file(self.folder.join(&self.host));
    }
}
