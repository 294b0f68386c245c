//! Safety facts that many tools share. Each tool names its own: one of these, or one of these with what differs.

use toolhost_contract::{Approval, Callers, Effect, Facts, Trace};

/// Reads: records, packages, what the host keeps. A tool that reads the workspace names its paths besides.
pub(crate) const READS: Facts = Facts {
    effect: Effect::Reads,
    callers: Callers::Anyone,
    approval: Approval::ByPolicy,
    waits: false,
    trace: Trace::None,
    paths: &[],
    command: None,
    dry_run: None,
};

/// Changes records or a package, in one transaction.
pub(crate) const WRITES_RECORDS: Facts = Facts { effect: Effect::Writes, trace: Trace::Records, ..READS };

/// Changes the file or folder `path` of the workspace, through nothing but the workspace.
pub(crate) const WRITES_FILE: Facts = Facts { effect: Effect::Writes, trace: Trace::Files, paths: &["path"], ..READS };

/// Changes a repository and the workspace through git.
pub(crate) const CHANGES_REPOSITORY: Facts = Facts { effect: Effect::Writes, ..READS };

/// Speaks with the server of a repository.
pub(crate) const REACHES_SERVER: Facts = Facts { effect: Effect::Reaches, ..READS };

/// Asks a person, and waits for the answer as its question says.
pub(crate) const ASKS: Facts = Facts { effect: Effect::Asks, ..READS };
