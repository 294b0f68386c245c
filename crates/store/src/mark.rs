//! What tells one transaction of a host from all others: a number of its own, in a slot that no other one has meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};

/// Which slots no transaction uses, the one used longest ago first.
pub(crate) struct Slots {
    pub(crate) free: Mutex<VecDeque<i64>>,
    pub(crate) next: AtomicI64,
}

/// What tells one transaction of a host from all others. Its slot is free again when this is dropped.
pub struct Mark {
    pub(crate) host: Arc<str>,
    pub(crate) slot: i64,
    pub(crate) number: i64,
    /// The server's process that runs it.
    pub(crate) process: i32,
    pub(crate) slots: Arc<Slots>,
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.slot, self.number)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.slots.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.slot);
    }
}
