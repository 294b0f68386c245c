//! What the holder of a session and the writer of its steps both know.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolhost_contract::{JournalError, Signal};

use super::Key;

/// A session that this process runs.
pub(super) struct Shared {
    pub(super) key: Key,
    pub(super) epoch: i64,
    /// What a person wants.
    pub(super) wanted: watch::Sender<Option<Signal>>,
    /// Why nothing can be written any more.
    broken: Mutex<Option<JournalError>>,
}

impl Shared {
    pub(super) fn new(key: Key, epoch: i64) -> Self {
        let (wanted, _) = watch::channel(None);
        Self { key, epoch, wanted, broken: Mutex::default() }
    }

    pub(super) fn fail(&self, error: JournalError) {
        self.broken().get_or_insert(error);
    }

    pub(super) fn check(&self) -> std::result::Result<(), JournalError> {
        self.broken().clone().map_or(Ok(()), Err)
    }

    fn broken(&self) -> MutexGuard<'_, Option<JournalError>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
