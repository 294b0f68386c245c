//! The state machines, as the seeds fix them.

/// Which state may follow which.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// The content's field that holds the state.
    pub field: &'static str,
    /// Each state with those that may follow it; the first is where a record begins.
    pub states: &'static [(&'static str, &'static [&'static str])],
}

/// Cowork Forge's: a task that is stuck goes on where it was; one that is completed stays so.
pub const TASK: Machine = Machine {
    field: "status",
    states: &[
        ("pending", &["in_progress"]),
        ("in_progress", &["completed", "blocked"]),
        ("blocked", &["in_progress"]),
        ("completed", &[]),
    ],
};

/// As a task's, and a feature that was completed can be reopened: later work on it is no reason for another record.
pub const FEATURE: Machine = Machine {
    field: "status",
    states: &[
        ("pending", &["in_progress"]),
        ("in_progress", &["completed", "blocked"]),
        ("blocked", &["in_progress"]),
        ("completed", &["in_progress"]),
    ],
};

/// Bonsai's, with its ways back.
pub const TICKET: Machine = Machine {
    field: "state",
    states: &[
        ("backlog", &["research"]),
        ("research", &["plan_approval", "backlog"]),
        ("plan_approval", &["in_progress", "research"]),
        ("in_progress", &["verification", "research"]),
        ("verification", &["done", "in_progress"]),
        ("done", &[]),
    ],
};

/// Cowork Forge's life cycle: a paused one continues, a failed one is tried again.
pub const ITERATION: Machine = Machine {
    field: "status",
    states: &[
        ("draft", &["running"]),
        ("running", &["paused", "completed", "failed"]),
        ("paused", &["running"]),
        ("failed", &["running"]),
        ("completed", &[]),
    ],
};

impl Machine {
    /// The states that may follow this one.
    pub fn next(&self, state: &str) -> &'static [&'static str] {
        self.states.iter().find(|(name, _)| *name == state).map_or(&[], |(_, next)| next)
    }

    pub fn start(&self) -> &'static str {
        self.states.first().map_or("", |(name, _)| name)
    }
}
