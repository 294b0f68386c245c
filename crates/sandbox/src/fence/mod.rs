//! What the kernel is asked to hold around a command.
//!
//! Two tiers, probed once and never lowered silently:
//! - **full**: `bwrap` gives namespaces and a minimal view of the file system; inside it the helper (`toolhost-fence`,
//!   or this program again as `sandbox-exec`) takes a real unprivileged user, Landlock, resource limits, no-new-privileges and seccomp.
//! - **landlock**: where `bwrap` or user namespaces are missing, the helper alone. Its holes are named in [`FenceReport::holes`].
//!
//! Where neither holds, commands are refused unless the operator turned the fence off.

mod bwrap;
mod identity;
mod kernel;
mod policy;
mod probe;
mod remote;

use serde::{Deserialize, Serialize};

pub(crate) use bwrap::{Method, Plan, TEMP_PREFIX, plan};
pub(crate) use kernel::{LANDLOCK_ABI_SIGNALS, apply, landlock_abi, landlock_thread};
pub(crate) use policy::{HANDED_DOWN, HandedDown, Mounted, NetworkMode, Policy};
pub(crate) use probe::Probed;
pub use probe::{MemoryReport, Probe};
pub(crate) use remote::plan_remote;

/// How strong the fence around a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// The operator turned the fence off: commands run bare.
    Off,
    /// Landlock and seccomp, without namespaces.
    Landlock,
    /// `bwrap` with Landlock and seccomp inside.
    Full,
}

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

/// What was probed and what is enforced, for `doctor`, outcomes and the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FenceReport {
    /// The tier commands run in; `None`: they are refused.
    pub tier: Option<Tier>,
    pub probe: Probe,
    pub memory: MemoryReport,
    /// What this tier does not stop on this machine.
    pub holes: Vec<String>,
    /// Why the tier is not higher.
    pub why: Vec<String>,
}

impl Tier {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Landlock => "landlock",
            Self::Full => "full",
        }
    }
}

impl FenceReport {
    /// The tier as one word for an outcome: `full`, `landlock`, `off` or `refused`.
    pub fn word(&self) -> &'static str {
        self.tier.map_or("refused", Tier::as_str)
    }
}
