//! Those who keep their own tables in the database: records, packages.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use toolhost_contract::{BoxFuture, Clock};

use crate::db::{Db, Tx};
use crate::error::{Error, Result};

/// What the engine asks of a subject, such as records.
pub trait Subject: Sync {
    /// What the one transaction of a call wrote, as the caller is told of it: a JSON object for each thing. Nothing where it
    /// was not committed.
    fn wrote<'a>(&'a self, tx: &'a mut Tx, project: i64, call: &'a str) -> BoxFuture<'a, Result<Vec<Value>>>;

    /// Whether the rows of this tool do not name the call: that there are none then says nothing.
    fn is_silent(&self, tool: &str) -> bool;
}

/// All subjects of a database, in the order in which they tell.
pub type Subjects = &'static [&'static dyn Subject];

/// Who reads and writes, and in which project. The host has made sure that they may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub project_id: i64,
    pub user_id: i64,
    /// The persona or person that history names.
    pub name: String,
    pub call_id: String,
}

/// A database, as a subject is handed it. Tools are made before the database is opened: until then it leads nowhere, and
/// whatever is asked of it fails with [`Error::Closed`].
#[derive(Clone, Default)]
pub struct Database(Arc<OnceLock<(Db, Arc<dyn Clock>)>>);

impl Database {
    /// The connections and the clock.
    ///
    /// # Errors
    /// Nothing has been opened yet.
    pub fn opened(&self) -> Result<(Db, Arc<dyn Clock>)> {
        self.0.get().cloned().ok_or(Error::Closed)
    }

    pub(crate) fn lead_to(&self, db: Db, clock: Arc<dyn Clock>) {
        // It is given one database at most.
        let _ = self.0.set((db, clock));
    }
}
