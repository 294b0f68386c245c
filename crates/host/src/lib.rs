//! The gate every call passes, and what it asks on the way: registry, profiles, policy, limits, approval.
//!
//! It refuses to know which tools there are, which model calls, which door it came through, and SQL. Start with
//! [`Gate::call`].

mod approve;
mod digest;
mod error;
mod gate;
mod limits;
mod members;
mod policy;
mod profile;
mod record;
mod redact;
mod registry;
mod tighten;
mod validate;

pub use approve::{ApprovalRequest, Approver, Decision, NobodyHere};
pub use error::{Error, Result};
pub use gate::{Gate, GateConfig, Hooks};
pub use limits::{CallLimits, Limits};
pub use members::{Members, Membership};
pub use policy::{Decide, Rule, Verdict};
pub use profile::{Profile, Profiles};
pub use redact::Redactor;
pub use registry::{Registered, Registry, wire_name};
pub use tighten::Tightening;
