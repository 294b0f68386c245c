//! What a host is called: in its rows, at its server, and in the files that say that it is alive.

use std::sync::{Arc, PoisonError, RwLock};

/// What a host is called, everywhere in its process. One that was taken for dead goes on under another name.
#[derive(Clone)]
pub(crate) struct HostName(Arc<RwLock<Arc<str>>>);

impl HostName {
    pub(crate) fn new() -> Self {
        Self(Arc::new(RwLock::new(fresh())))
    }

    pub(crate) fn get(&self) -> Arc<str> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn change(&self, name: Arc<str>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

pub(crate) fn fresh() -> Arc<str> {
    // Random throughout: a name does not depend on what the clock says.
    uuid::Uuid::new_v4().to_string().into()
}
