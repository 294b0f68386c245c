//! How long what was written lasts.

use serde::{Deserialize, Serialize};

/// What a write that was answered survives. Approvals, deploys and applied change sets survive a power failure either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The end of any process, also by SIGKILL.
    #[default]
    Process,
    /// A power failure, too: each write waits for the disk.
    Power,
}
