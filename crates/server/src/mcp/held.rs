//! Requests that were read and have no slot yet: kept as the bytes they came in, within a limit.
//!
//! They are read because what comes after them may be a cancellation, or the answer to a form that a call waits for.

use std::collections::{HashSet, VecDeque};

use rmcp::model::RequestId;

use super::slots::Class;

/// Bytes of requests that wait; while it is reached, nothing further is read. One message may go beyond it.
const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What a request costs beside its bytes, about.
const OVERHEAD_BYTES: usize = 128;

/// The requests of one client that wait, those of a class in the order they came.
#[derive(Default)]
pub(crate) struct Held {
    calls: VecDeque<(RequestId, Vec<u8>)>,
    others: VecDeque<(RequestId, Vec<u8>)>,
    ids: HashSet<RequestId>,
    /// Those of `ids` that were taken back meanwhile.
    cancelled: HashSet<RequestId>,
    bytes: usize,
}

impl Held {
    pub(crate) fn push(&mut self, class: Class, id: RequestId, mut line: Vec<u8>) {
        line.shrink_to_fit();
        self.bytes += line.len() + OVERHEAD_BYTES;
        self.ids.insert(id.clone());
        self.of(class).push_back((id, line));
    }

    /// The oldest one of a class, if `admit` lets it in.
    pub(crate) fn pop<T>(
        &mut self,
        class: Class,
        admit: impl FnOnce(&RequestId, usize) -> Option<T>,
    ) -> Option<(T, Vec<u8>)> {
        loop {
            let id = self.of(class).front()?.0.clone();
            if self.cancelled.remove(&id) {
                self.take_front(class);
                continue;
            }
            let (id, line) = self.of(class).front()?;
            let admitted = admit(id, line.len())?;
            return Some((admitted, self.take_front(class)?));
        }
    }

    fn take_front(&mut self, class: Class) -> Option<Vec<u8>> {
        let (id, line) = self.of(class).pop_front()?;
        self.bytes -= line.len() + OVERHEAD_BYTES;
        self.ids.remove(&id);
        if self.is_empty() {
            // The room that a burst took is not kept.
            *self = Self::default();
        }
        Some(line)
    }

    /// A request that is not wanted any more is not begun. Says whether it was held.
    pub(crate) fn cancel(&mut self, id: &RequestId) -> bool {
        let is_held = self.ids.contains(id);
        if is_held {
            self.cancelled.insert(id.clone());
        }
        is_held
    }

    pub(crate) fn has(&self, id: &RequestId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn is_empty_of(&self, class: Class) -> bool {
        match class {
            Class::Call => self.calls.is_empty(),
            Class::Other => self.others.is_empty(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.others.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= HELD_BYTES_MAX
    }

    fn of(&mut self, class: Class) -> &mut VecDeque<(RequestId, Vec<u8>)> {
        match class {
            Class::Call => &mut self.calls,
            Class::Other => &mut self.others,
        }
    }
}
