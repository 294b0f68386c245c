//! Workflow packages: one for each project, read in parts, changed as a whole.
//!
//! The bytes of the files are kept as they came. Beside them stand rows that say which workflow a file belongs to, which
//! names it has and what it refers to, so that a question about one step of ten thousand workflows reads that step's
//! workflow and no other. Whatever changes a file goes through `commit` in `change.rs`, which keeps those rows true and what
//! was before. What is said about a package is said by the rest of this crate; here is only where it is kept.
//! Start with [`Packages::shelf`].

mod apply;
mod begun;
mod chain;
mod change;
mod conflict;
mod derive;
mod discard;
mod drafts;
mod error;
mod history;
mod kept;
mod looks;
mod masked;
mod near;
mod part;
mod read;
mod refs;
mod scope;
mod seen;
mod sets;
mod sides;
mod superseded;
mod traces;
mod validated;
mod views;

use std::sync::{Arc, OnceLock};

use toolhost_contract::{Clock, Redactor};

pub use apply::{Applied, Apply, UndoPlan, Undone, UndoneFile};
use looks::KnownLinks;

pub use conflict::{Conflict, Conflicts};
pub use discard::Discarded;
pub use error::{PackageError, Result};
pub use history::{ChangedObject, Deed};
pub use kept::Whose;
pub use read::{Brought, Revisions, Snapshot, WorkflowLine, WorkflowName};
pub use refs::FoundRefs;
pub use seen::Seen;
pub use sets::{ChangeSetLine, LISTED_MAX, Preview, SETS_STAGED_MAX, Staged};
pub use traces::Traces;
pub use validated::Validated;

use toolhost_store::db::Db;
use toolhost_store::{Database, Who};

use crate::change::{Parsed, Refused, parse_by};
use crate::schema::Schemas;
use serde_json::Value;

/// References of one answer.
pub const REFS_MAX: usize = 500;
/// Workflows that one question by name looks into.
const WORKFLOWS_LOOKED_AT_MAX: i64 = 10;
/// Units that may refer to what is renamed or deleted: all of them are looked at.
const UNITS_MAX: usize = 500;
/// Rows asked for or written at once.
const BATCH: usize = 400;

/// All packages of a database; [`Packages::shelf`] narrows them to a project.
#[derive(Clone)]
pub struct Packages {
    database: Database,
    secrets: Arc<Redactor>,
    schemas: Arc<OnceLock<Schemas>>,
    links: Arc<KnownLinks>,
}

/// The package of one project, read and changed in one name.
pub struct ProjectPackage {
    db: Db,
    clock: Arc<dyn Clock>,
    who: Who,
    /// What looks like a secret in a text; the host's own are not known here.
    secrets: Arc<Redactor>,
    /// Compiled when first needed.
    schemas: Arc<OnceLock<Schemas>>,
    links: Arc<KnownLinks>,
}

impl Packages {
    pub fn new(database: Database) -> Self {
        Self { database, secrets: Arc::default(), schemas: Arc::default(), links: Arc::default() }
    }

    /// # Errors
    /// The database is not open.
    pub fn shelf(&self, who: Who) -> Result<ProjectPackage> {
        let (db, clock) = self.database.opened()?;
        let (secrets, schemas) = (Arc::clone(&self.secrets), Arc::clone(&self.schemas));
        Ok(ProjectPackage { db, clock, who, secrets, schemas, links: Arc::clone(&self.links) })
    }
}

impl ProjectPackage {
    fn schemas(&self) -> &Schemas {
        self.schemas.get_or_init(Schemas::compiled)
    }

    /// Reads a change set.
    ///
    /// # Errors
    /// All that breaks the contract.
    fn parsed(&self, set: &Value) -> std::result::Result<Parsed, Refused> {
        parse_by(&self.schemas().change_set, set)
    }
}

/// The name of a change set, such as `cs-3`.
fn set_id(number: i64) -> String {
    format!("cs-{number}")
}
