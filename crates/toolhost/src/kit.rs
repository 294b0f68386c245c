//! What a host is made of besides its database.

use std::sync::Arc;

use toolhost_contract::workspace::{Executor, NoWorkspace};
use toolhost_deploy::Deployment;
use toolhost_host::{Profiles, Registry};
use toolhost_sandbox::LocalExecutor;

/// What needs no database: tools, profiles, the fence.
pub struct Kit {
    pub registry: Arc<Registry>,
    pub profiles: Arc<Profiles>,
    /// None without a workspace.
    pub local: Option<Arc<LocalExecutor>>,
    /// Where the workspace is deployed to, if that was said.
    pub deployment: Option<Deployment>,
}

impl Kit {
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        match &self.local {
            Some(local) => Arc::<LocalExecutor>::clone(local),
            None => Arc::new(NoWorkspace),
        }
    }
}
