//! What a gate is made of: everything is handed in.

use std::sync::Arc;
use std::time::Duration;

use toolhost_contract::workspace::Executor;
use toolhost_contract::{Clock, Deploys, IdSource, Redactor};
use toolhost_store::{AskLimits, Audit, FileLog, Quotas};

use crate::arguments::Analyzer;
use crate::limits::Limits;
use crate::members::Membership;
use crate::observe::CallObserver;
use crate::profile::Profiles;
use crate::queue::{ASK_LIVES_MS_DEFAULT, Queue, Unattended};
use crate::registry::Registry;

/// Long enough for a person who looks at the queue, short enough for every client's patience.
const HOLD_DEFAULT: Duration = Duration::from_secs(5);

/// Everything a gate needs, handed in.
pub struct GateConfig {
    pub registry: Arc<Registry>,
    pub profiles: Arc<Profiles>,
    pub executor: Arc<dyn Executor>,
    /// Where the workspace is deployed to, if the operator has said so.
    pub deploys: Option<Arc<dyn Deploys>>,
    pub audit: Audit,
    /// Where what file tools change is written down.
    pub file_log: FileLog,
    /// What people are asked.
    pub queue: Queue,
    pub asking: Asking,
    pub members: Arc<dyn Membership>,
    /// How much of the host the calls of a project may have.
    pub quotas: Quotas,
    pub redactor: Arc<Redactor>,
    pub analyzer: Analyzer,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub limits: Limits,
    /// Is told how each call ends.
    pub observer: Option<Arc<dyn CallObserver>>,
}

/// How people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asking {
    /// How long there is for an answer and its use, from the question on.
    pub lives_ms: u64,
    pub unattended: Unattended,
    /// How long a call with nobody to show it to waits for an answer from elsewhere, before it comes back as pending.
    pub hold: Duration,
    /// Whether a call that policy asks about may only be allowed by somebody else than its user.
    pub second_person: bool,
    /// Limits on open asks, per session.
    pub limits: AskLimits,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            lives_ms: ASK_LIVES_MS_DEFAULT,
            unattended: Unattended::Wait,
            hold: HOLD_DEFAULT,
            second_person: false,
            limits: AskLimits::default(),
        }
    }
}
