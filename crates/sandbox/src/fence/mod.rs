//! What the kernel is asked to hold around a command.
//!
//! Two tiers, probed once and never lowered silently:
//! - **full**: `bwrap` gives namespaces and a minimal view of the file system; inside it the helper (`toolhost-fence`,
//!   or this program again as `sandbox-exec`) takes a real unprivileged user, Landlock, resource limits, no-new-privileges and seccomp.
//! - **landlock**: where `bwrap` or user namespaces are missing, the helper alone. Its holes are named in `FenceReport::holes`.
//!
//! Where neither holds, commands are refused unless the operator turned the fence off.

mod bwrap;
mod identity;
mod kernel;
mod policy;
mod probe;
mod remote;

pub(crate) use bwrap::{Method, Plan, TEMP_PREFIX, plan};
pub(crate) use kernel::{LANDLOCK_ABI_SIGNALS, apply, landlock_abi, landlock_thread};
pub(crate) use policy::{HANDED_DOWN, HandedDown, Mounted, NetworkMode, Policy};
pub(crate) use probe::Probed;
pub(crate) use remote::plan_remote;

/// Which fence the operator asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FenceChoice {
    /// The strongest that holds here; none: commands are refused.
    #[default]
    Auto,
    /// The full tier or nothing.
    Full,
    /// The Landlock tier or nothing.
    Landlock,
    /// Commands run bare, and every outcome says so.
    Off,
}
