//! Git's way to a remote that the operator grants.
//!
//! Nothing here is read from the workspace's repository, which an agent may have written.

mod run;
mod stage;

pub(crate) use run::run;
pub(crate) use stage::Stage;
