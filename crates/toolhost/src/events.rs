//! A session that runs in a task of its own, and its events as they come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use toolhost_agent::session::{Event, LoopResult, Watch};

use crate::error::{Error, Result};

/// Events that may wait for a reader. Beyond it, pieces of text and notes of progress are dropped: what was said in whole and
/// what was called comes all the same, and the limits of a session bound how much that is.
const EVENTS_MAX: usize = 4096;

/// A session that runs. It goes on when this is dropped; [`Session::control`](crate::Session::control) stops it.
pub struct Run {
    session: String,
    queue: Arc<Queue>,
    task: JoinHandle<Result<LoopResult>>,
}

/// The events that nobody has read yet.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    ended: bool,
}

/// Ends the queue, however the task that fills it ends.
pub(crate) struct Filling(pub(crate) Arc<Queue>);

impl Drop for Filling {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.came.notify_one();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self) -> Option<Option<Event>> {
        let mut waiting = self.lock();
        match waiting.events.pop_front() {
            Some(event) => Some(Some(event)),
            None if waiting.ended => Some(None),
            None => None,
        }
    }
}

impl Watch for Queue {
    fn event(&self, event: &Event) {
        let mut waiting = self.lock();
        let is_piece = matches!(event, Event::Text { .. } | Event::Thought { .. } | Event::CallProgress { .. });
        if is_piece && waiting.events.len() >= EVENTS_MAX {
            return;
        }
        waiting.events.push_back(event.clone());
        drop(waiting);
        self.came.notify_one();
    }
}

impl Run {
    pub(crate) fn new(session: String, queue: Arc<Queue>, task: JoinHandle<Result<LoopResult>>) -> Self {
        Self { session, queue, task }
    }

    /// The next event; none after the last one.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(next) = self.queue.pop() {
                return next;
            }
            self.queue.came.notified().await;
        }
    }

    /// Waits until the session ends or is stopped.
    ///
    /// # Errors
    /// If the session could not be taken, or its journal not be written. A session that fails or reaches a limit has a result
    /// that says so.
    pub async fn result(self) -> Result<LoopResult> {
        match self.task.await {
            Ok(result) => result,
            Err(error) => Err(Error::RunEnded { id: self.session, why: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS_MAX, Filling, Queue};
    use std::sync::Arc;
    use toolhost_agent::session::{Event, Watch};

    #[test]
    fn a_slow_reader_misses_pieces_and_nothing_else() {
        let queue = Arc::new(Queue::default());
        for _ in 0..EVENTS_MAX {
            queue.event(&Event::Text { turn: 0, text: "a".to_owned() });
        }
        queue.event(&Event::Text { turn: 0, text: "dropped".to_owned() });
        queue.event(&Event::Asked { turn: 1 });
        drop(Filling(Arc::clone(&queue)));
        let mut read = Vec::new();
        while let Some(Some(event)) = queue.pop() {
            read.push(event);
        }
        assert_eq!((read.len(), read.last()), (EVENTS_MAX + 1, Some(&Event::Asked { turn: 1 })));
        assert_eq!(queue.pop(), Some(None));
    }
}
