//! What is left of a project's quota: calls a minute, and calls open at once.
//!
//! The audit knows the calls that have ended on every host of the database, so a minute's calls are counted together. It does not know
//! of those that are under way, or have ended just now: each gate counts its own besides.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use toolhost_contract::{Call, CallerKind, Clock, Effect, ErrorKind, RETRY_AFTER_SECONDS, ToolError, WORKBENCH_DOOR};
use toolhost_store::{Quota, Quotas};

use crate::registry::Registered;

/// How long a quota that was read is believed.
const QUOTA_TTL: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// How long a caller is told to wait when too many calls are open. When one of them will end is not known.
const OPEN_RETRY: Duration = Duration::from_secs(1);

/// The quotas of the projects whose calls pass a gate.
pub(crate) struct QuotaKeeper {
    quotas: Quotas,
    clock: Arc<dyn Clock>,
    projects: Mutex<HashMap<i64, Arc<Mutex<Used>>>>,
}

/// What a project has of its quota.
#[derive(Default)]
struct Used {
    /// The quota, and until when it is believed.
    known: Option<(Quota, Duration)>,
    /// When the calls of the last minute were let through, the first first; as many as the quota of a minute at most.
    begun: VecDeque<Duration>,
    open: u32,
}

/// A call that is open until this is dropped.
pub(crate) struct OpenCall(Arc<Mutex<Used>>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        locked(&self.0).open -= 1;
    }
}

fn locked(used: &Mutex<Used>) -> std::sync::MutexGuard<'_, Used> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

impl QuotaKeeper {
    pub(crate) fn new(quotas: Quotas, clock: Arc<dyn Clock>) -> Self {
        Self { quotas, clock, projects: Mutex::default() }
    }

    /// Admits a call, where the quota counts it.
    ///
    /// # Errors
    /// The quota is used up, or cannot be read.
    pub(crate) async fn admit_call(&self, call: &Call, tool: &Registered) -> Result<Option<OpenCall>, ToolError> {
        if is_read_of_page(call, tool) {
            return Ok(None);
        }
        self.admit(call.scope.project_id, !tool.waits()).await
    }

    /// Admits a call of a project that the caller belongs to. `is_open`: whether it counts among the open ones. A call that only waits for
    /// others does not: they could be the ones that it would keep out.
    ///
    /// # Errors
    /// The quota is used up, or cannot be read.
    pub(crate) async fn admit(&self, project: i64, is_open: bool) -> Result<Option<OpenCall>, ToolError> {
        let used = Arc::clone(self.projects.lock().unwrap_or_else(PoisonError::into_inner).entry(project).or_default());
        let now = self.clock.monotonic();
        let known = locked(&used).known.filter(|(_, until)| *until > now);
        let quota = match known {
            Some((quota, _)) => quota,
            None => {
                let quota = self.quotas.get(project).await?;
                locked(&used).known = Some((quota, now + QUOTA_TTL));
                quota
            }
        };
        if let Some(most) = quota.calls_per_minute()
            && let Some(ended) = self.quotas.ended(project, most - 1).await?
        {
            let since = Duration::from_millis(u64::try_from(self.clock.unix_ms() - ended).unwrap_or(0));
            if since < MINUTE {
                return Err(too_often(most, MINUTE - since));
            }
        }
        let mut left = locked(&used);
        if let Some(most) = quota.calls_open().filter(|most| is_open && left.open >= *most) {
            return Err(refused(format!("{most} calls of this project are open, which is its quota"), OPEN_RETRY));
        }
        if let Some(most) = quota.calls_per_minute() {
            while left.begun.front().is_some_and(|begun| *begun + MINUTE <= now) {
                left.begun.pop_front();
            }
            let most_kept = usize::try_from(most).unwrap_or(usize::MAX);
            if let Some(first) = left.begun.front().filter(|_| left.begun.len() >= most_kept) {
                return Err(too_often(most, *first + MINUTE - now));
            }
            left.begun.push_back(now);
        }
        if !is_open {
            return Ok(None);
        }
        left.open += 1;
        drop(left);
        Ok(Some(OpenCall(used)))
    }
}

/// Whether a call reads for a page that a person looks at. The quota bounds what agents and programs do with the project; with it used up,
/// its people must still see what is going on. The server names the door itself, so no client can claim it, and a call that changes
/// anything counts there, too. [`Quotas::ended`] leaves out the same calls.
fn is_read_of_page(call: &Call, tool: &Registered) -> bool {
    let caller = &call.caller;
    caller.kind == CallerKind::Person && caller.door == WORKBENCH_DOOR && tool.info.facts.effect == Effect::Reads
}

fn too_often(most: u32, wait: Duration) -> ToolError {
    refused(format!("this project has made the {most} calls of its quota in a minute"), wait)
}

/// Says when to try again, to people and to programs.
fn refused(message: String, wait: Duration) -> ToolError {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    let word = if seconds == 1 { "second" } else { "seconds" };
    ToolError::new(ErrorKind::Limit, message)
        .hint(format!("try again in {seconds} {word}; an owner of the project can change the quota"))
        .details(json!({ RETRY_AFTER_SECONDS: u64::try_from(seconds).unwrap_or(u64::MAX) }))
}
