//! Which fence holds around commands, as people and outcomes are told of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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

/// What was found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    pub kernel: String,
    /// 0: the kernel has no Landlock, or it is switched off.
    pub landlock_abi: i32,
    pub bwrap: Option<PathBuf>,
    /// Who commands run as.
    pub runs_as: String,
}

/// How the memory of a command's processes together is limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryReport {
    pub limit_bytes: u64,
    /// The host's cgroup, in which the kernel holds the limit. `None`: each process has the limit, and the host watches
    /// the sum.
    pub cgroup: Option<PathBuf>,
    /// Why there is no cgroup.
    pub why: Option<String>,
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
