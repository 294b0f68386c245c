//! How much one session may ask of the host.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use governor::clock::MonotonicClock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolhost_contract::{Alias, ErrorKind, ToolError};

/// Limits of the host as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls that run at once; further ones wait.
    pub concurrent_calls: usize,
    /// Calls a session may make in a minute.
    pub calls_per_minute: NonZeroU32,
    /// Longest a call may take, milliseconds, commands included.
    pub call_timeout_ms: u64,
    /// Largest answer, bytes of JSON and text each.
    pub answer_bytes: usize,
    /// Longest string argument kept in the audit, bytes; beyond, its head and its hash.
    pub audit_string_bytes: usize,
    /// Commands of a session that may be in the background at once.
    pub background_commands: usize,
    /// The same for all sessions of the host together.
    pub background_commands_of_all: usize,
    /// Longest such a command may take, milliseconds.
    pub background_timeout_ms: u64,
    /// Bytes kept of what it printed and nobody has read; beyond, the oldest go.
    pub background_bytes: usize,
    /// Most bytes of that in one answer.
    pub background_read_bytes: usize,
    /// Sessions whose counters are kept; beyond, the counters of all are begun anew.
    pub sessions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrent_calls: 64,
            calls_per_minute: NonZeroU32::new(60_000).unwrap_or(NonZeroU32::MIN),
            call_timeout_ms: 60 * 60 * 1000,
            answer_bytes: 4 * 1024 * 1024,
            audit_string_bytes: 4096,
            background_commands: 16,
            background_commands_of_all: 256,
            background_timeout_ms: 24 * 60 * 60 * 1000,
            background_bytes: 1024 * 1024,
            background_read_bytes: 64 * 1024,
            sessions: 10_000,
        }
    }
}

/// Limits of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Longest time limit a command may ask for, milliseconds.
    pub command_timeout_ms: u64,
    /// Calls a session may make in all.
    pub calls_per_session: u64,
}

type Rate = RateLimiter<String, HashMapStateStore<String>, MonotonicClock>;

/// Counts and holds back calls.
pub(crate) struct Limiter {
    limits: Limits,
    slots: Arc<Semaphore>,
    rate: Rate,
    sessions: Mutex<HashMap<String, Counts>>,
}

#[derive(Default)]
struct Counts {
    calls: u64,
    by_alias: HashMap<&'static str, u32>,
}

impl Limiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            slots: Arc::new(Semaphore::new(limits.concurrent_calls)),
            rate: RateLimiter::new(
                Quota::per_minute(limits.calls_per_minute),
                HashMapStateStore::default(),
                MonotonicClock,
            ),
            sessions: Mutex::new(HashMap::new()),
        }
    }

    /// Step 5 of the gate.
    pub(crate) fn admit(&self, session: &str, alias: Option<&Alias>, profile: CallLimits) -> Result<(), ToolError> {
        if self.rate.check_key(&session.to_owned()).is_err() {
            let message = format!("more than {} calls in a minute", self.limits.calls_per_minute);
            return Err(ToolError::new(ErrorKind::Limit, message).hint("wait a moment before the next call"));
        }
        self.count(session, alias, profile)
    }

    /// A place among the calls that run at once; held while the call runs, not while a person is asked.
    pub(crate) async fn slot(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        Arc::clone(&self.slots).acquire_owned().await.map_err(ToolError::internal)
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.limits.concurrent_calls.saturating_sub(self.slots.available_permits())
    }

    /// A place, if there is one at once.
    pub(crate) fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    fn count(&self, session: &str, alias: Option<&Alias>, profile: CallLimits) -> Result<(), ToolError> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= self.limits.sessions && !sessions.contains_key(session) {
            sessions.clear();
            self.rate.retain_recent();
        }
        let counts = sessions.entry(session.to_owned()).or_default();
        if counts.calls >= profile.calls_per_session {
            let message = format!("this session has made its {} calls", profile.calls_per_session);
            return Err(ToolError::new(ErrorKind::Limit, message).hint("say what was reached and stop here"));
        }
        if let Some(alias) = alias
            && let Some(most) = alias.calls_per_session
        {
            let used = counts.by_alias.entry(alias.name).or_default();
            if *used >= most {
                let message = format!("`{}` may be called {most} times in a session, and has been", alias.name);
                return Err(ToolError::new(ErrorKind::Limit, message)
                    .hint("work with what was read, or search for the part that is missing"));
            }
            *used += 1;
        }
        counts.calls += 1;
        Ok(())
    }
}
