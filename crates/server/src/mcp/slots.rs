//! How much of one client is in hand at once.
//!
//! A request is handed on with a slot, and the slot is free again when its answer is written, not when it is made: a client
//! that does not read gets no further requests served, and what it costs stays what it is. Calls and other requests have
//! slots of their own, so that a `ping` is answered while every call waits for a person.
//!
//! Answers are bounded in bytes as well. Few calls run at once, each until its answer is encoded, and encoded answers share a
//! room until they are written. What a call costs that has a slot and does not run yet is its request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use toolhost_contract::BoxFuture;
use toolhost_host::Pace;

/// What a host does while nobody asks anything of it: it gives memory back.
pub trait Tidy: Send + Sync {
    /// Does it. Calls that come meanwhile are served.
    fn tidy(&self) -> BoxFuture<'_, ()>;
}

/// Nothing is done.
pub struct NotTidied;

impl Tidy for NotTidied {
    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Calls of one client that are served at once, unless the operator says otherwise.
pub const CALLS_MAX_DEFAULT: usize = 64;
/// The same for requests that are no calls.
const OTHERS_MAX: usize = 16;
/// Bytes of requests that are served at once; a longer one is served alone.
const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Calls that run at once, commands and those that wait for a person aside. More do not make a machine faster, and each
/// has a whole answer in memory.
const RUNS_MAX: usize = 8;
/// Bytes of answers that are encoded and not written; a longer one is written alone.
const UNWRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long nothing may have been asked before memory is given back.
const QUIET: Duration = Duration::from_secs(1);

/// What a request takes a slot of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Call,
    Other,
}

/// The slots of one client.
#[derive(Clone)]
pub(crate) struct Slots {
    inner: Arc<Inner>,
}

struct Inner {
    calls_max: usize,
    calls: Arc<Semaphore>,
    others: Arc<Semaphore>,
    runs: Arc<Semaphore>,
    /// A permit for each byte.
    unwritten: Arc<Semaphore>,
    /// Of the requests that are served.
    bytes: AtomicUsize,
    /// Requests that are handed on and not answered.
    given: Mutex<HashMap<RequestId, Slot>>,
    /// Calls that wait for an answer of this very client's.
    waiting: AtomicUsize,
    /// Rung when something is free again.
    freed: Notify,
    /// Rung when everything is.
    idle: Notify,
    last_taken: Mutex<Instant>,
}

/// Held by the handler of a request and until its answer is written, whichever is longer.
#[derive(Clone)]
pub(crate) struct Slot(Arc<Taken>);

struct Taken {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Its place among the calls that run.
    run: Mutex<Option<OwnedSemaphorePermit>>,
    bytes: AtomicUsize,
    inner: Arc<Inner>,
}

impl Taken {
    /// Frees the place and what the request has of the bytes.
    fn free(&self) {
        drop(lock(&self.permit).take());
        self.inner.bytes.fetch_sub(self.bytes.swap(0, Ordering::AcqRel), Ordering::AcqRel);
        self.inner.freed.notify_one();
    }
}

/// A call that waits for the client.
pub(crate) struct Waiting(Slot);

impl Slots {
    pub(crate) fn new(calls_max: usize) -> Self {
        let inner = Inner {
            calls_max,
            calls: Arc::new(Semaphore::new(calls_max)),
            others: Arc::new(Semaphore::new(OTHERS_MAX)),
            runs: Arc::new(Semaphore::new(RUNS_MAX)),
            unwritten: Arc::new(Semaphore::new(UNWRITTEN_BYTES_MAX)),
            bytes: AtomicUsize::new(0),
            given: Mutex::default(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
            idle: Notify::new(),
            last_taken: Mutex::new(Instant::now()),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A slot for a request of so many bytes, if one is free.
    pub(crate) fn take(&self, class: Class, id: &RequestId, bytes: usize) -> Option<Slot> {
        let served = self.inner.bytes.load(Ordering::Acquire);
        if served > 0 && served.saturating_add(bytes) > REQUEST_BYTES_MAX {
            return None;
        }
        let of_class = match class {
            Class::Call => &self.inner.calls,
            Class::Other => &self.inner.others,
        };
        let permit = Arc::clone(of_class).try_acquire_owned().ok()?;
        *lock(&self.inner.last_taken) = Instant::now();
        self.inner.bytes.fetch_add(bytes, Ordering::AcqRel);
        let permit = Mutex::new(Some(permit));
        let inner = Arc::clone(&self.inner);
        let slot = Slot(Arc::new(Taken { permit, run: Mutex::default(), bytes: AtomicUsize::new(bytes), inner }));
        // Where a client uses an id twice only one answer is ever written; the other slot is its handler's alone.
        let before = lock(&self.inner.given).insert(id.clone(), slot.clone());
        drop(before);
        Some(slot)
    }

    /// The slot of a request that is answered, or will not be: whoever has it holds it for as long as the answer is there.
    pub(crate) fn ended(&self, id: &RequestId) -> Option<Slot> {
        lock(&self.inner.given).remove(id)
    }

    /// Whether no request is handed on that is not answered.
    pub(crate) fn are_all_answered(&self) -> bool {
        lock(&self.inner.given).is_empty()
    }

    /// Whether a request of this id is handed on that is not answered.
    pub(crate) fn has(&self, id: &RequestId) -> bool {
        lock(&self.inner.given).contains_key(id)
    }

    /// Room for an answer of so many bytes, held until it is written.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(UNWRITTEN_BYTES_MAX)).unwrap_or(u32::MAX);
        // Never closed.
        Arc::clone(&self.inner.unwritten).acquire_many_owned(bytes).await.ok()
    }

    /// The same where there is room now.
    pub(crate) fn room_now(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.inner.unwritten).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }

    /// Returns when something may be free that was not.
    pub(crate) async fn freed(&self) {
        self.inner.freed.notified().await;
    }

    pub(crate) fn tell_freed(&self) {
        self.inner.freed.notify_one();
    }

    /// Whether every call that is served waits for the client itself: then nothing goes on until it is heard.
    pub(crate) fn all_wait_for_the_client(&self) -> bool {
        let served = self.inner.calls_max - self.inner.calls.available_permits();
        served > 0 && self.inner.waiting.load(Ordering::Acquire) >= served
    }

    /// Tidies each time the client has asked nothing for a moment and everything is answered.
    pub(crate) async fn when_idle(self, tidy: Arc<dyn Tidy>) {
        loop {
            self.inner.idle.notified().await;
            loop {
                let quiet_at = *lock(&self.inner.last_taken) + QUIET;
                if Instant::now() >= quiet_at {
                    break;
                }
                tokio::time::sleep_until(quiet_at).await;
            }
            if self.inner.is_idle() {
                tidy.tidy().await;
            }
        }
    }
}

impl Inner {
    fn is_idle(&self) -> bool {
        self.calls.available_permits() == self.calls_max && self.others.available_permits() == OTHERS_MAX
    }
}

impl Slot {
    /// While this is held, the call waits for the client.
    pub(crate) fn wait_for_the_client(&self) -> Waiting {
        self.0.inner.waiting.fetch_add(1, Ordering::AcqRel);
        // Whoever reads may have to go on reading now.
        self.0.inner.freed.notify_one();
        Waiting(self.clone())
    }

    /// The answer is encoded: what the call itself had in memory is gone.
    pub(crate) fn ran(&self) {
        drop(lock(&self.0.run).take());
    }
}

impl Pace for Slot {
    fn is_ready(&self) -> bool {
        let mut run = lock(&self.0.run);
        if run.is_none() {
            *run = Arc::clone(&self.0.inner.runs).try_acquire_owned().ok();
        }
        run.is_some()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.is_ready() {
                return;
            }
            // Never closed.
            if let Ok(permit) = Arc::clone(&self.0.inner.runs).acquire_owned().await {
                *lock(&self.0.run) = Some(permit);
            }
        })
    }

    fn goes_on(&self) {
        drop(lock(&self.0.run).take());
        self.0.free();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.inner.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Free before anybody is told.
        self.free();
        if self.inner.is_idle() {
            self.inner.idle.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
