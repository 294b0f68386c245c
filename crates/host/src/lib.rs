//! The gate every call passes, and what it asks on the way: registry, profiles, policy, limits, approval.
//!
//! It refuses to know which tools there are, which model calls, which door it came through, and SQL. Start with
//! [`Gate::call`].

mod arguments;
mod asking;
mod background;
mod config;
mod digest;
mod error;
mod fit;
mod gate;
mod gate_state;
mod hooks;
mod kinds;
mod limits;
mod members;
mod names;
mod observe;
mod origin;
mod outcome;
mod past;
mod people;
mod policy;
mod profile;
mod queue;
mod quota;
mod record;
mod registry;
mod shell;
mod shown;
mod tighten;
mod undo;
mod unknown;
mod unstopped;
mod validate;

pub use arguments::Analyzer;
pub use asking::edits::EditRules;
pub use config::{Asking, GateConfig};
pub use error::{Error, Result};
pub use gate::{Gate, GateLoad};
pub use hooks::{Hooks, Pace, Through};
pub use kinds::ArgumentKinds;
pub use limits::{CallLimits, Limits};
pub use members::{Members, Membership};
pub use names::Names;
pub use observe::{CallObserver, CallObservers, CallTimes, EndedCall, PersonAnswer};
pub use origin::{McpRequest, Origin, TraceParent, Transport};
pub use policy::{Decide, Rule, Verdict};
pub use profile::{Explained, Profile, Profiles};
pub use queue::{
    ASK_LIVES_MS_DEFAULT, Decision, PERMIT_LIVES_MS_DEFAULT, PERMIT_LIVES_MS_MAX, Person, Presented, Presenter, Queue,
    Standing, Unattended, ask_id, ask_number, rule_id, rule_number,
};
pub use record::keepable;
pub use registry::{Registered, Registry, wire_name};
pub use shell::analyze;
pub use shown::{ANSWER_BYTES_MAX, PAGE_BYTES_MAX, PAGE_LINES_MAX, Shown, rule_words};
pub use tighten::Tightening;
pub use toolhost_contract::Made;
pub use toolhost_contract::Redactor;
pub use undo::{Undo, UndoConflict, UndoStep};
