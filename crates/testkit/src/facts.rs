//! Safety facts for tools that only tests have.

use toolhost_contract::{Approval, Callers, Effect, Facts, Trace};

/// Reads, and anyone may.
pub const READS: Facts = Facts {
    effect: Effect::Reads,
    callers: Callers::Anyone,
    approval: Approval::ByPolicy,
    waits: toolhost_contract::Waits::Nothing,
    trace: Trace::None,
    paths: &["path"],
    command: None,
    dry_run: None,
    runs_program: false,
    help: None,
};

/// Changes something, and anyone may.
pub const WRITES: Facts = Facts { effect: Effect::Writes, ..READS };

/// Leaves the machine, where policy lets it.
pub const REACHES: Facts = Facts { effect: Effect::Reaches, ..READS };
