//! Records: what agents and people keep, in one table for all kinds.
//!
//! A kind is a type with serde ([`Body`]) and a row in [`Kind`]; storing, versions, history, references, deleting,
//! export and import are the same for all. Every change is one transaction which holds the project's lock, so whatever it
//! checks stays true until it is committed. Start with [`Records::desk`].

mod again;
mod artifact;
mod error;
mod iteration;
mod kind;
mod machine;
mod memory;
mod persona;
mod planning;
mod read;
mod rounds;
mod row;
mod salvage;
mod search;
mod ticket;
mod transfer;
mod whole;
mod words;
mod work;
mod write;

use std::sync::Arc;

use toolhost_contract::Clock;

pub use artifact::{Artifact, ArtifactKind};
pub use error::{RecordError, Result, chain_text};
pub use iteration::{Inheritance, Iteration, IterationStatus};
pub use kind::{Body, Kind, OnDelete, RecordId, Reference};
pub use machine::{FEATURE, ITERATION, Machine, TASK, TICKET};
pub use memory::{Decision, Importance, Insight, Issue, Learning, Pattern};
pub use persona::Persona;
pub use planning::{
    Category, Component, ComponentType, DataModel, Design, Feature, Interface, Milestone, Priority, Requirement,
    Status, Task, TechnologyStack,
};
pub use read::{Page, Query, Version};
pub use rounds::NewIteration;
pub use row::{Holder, Removed, Saved, Stored};
pub use search::{Found, Search, SearchScope};
pub use ticket::{AuthorKind, Comment, Criterion, Document, DocumentType, Ticket, TicketState, TicketType, loses_most};
pub(crate) use transfer::TIME_MS_MAX;
pub use transfer::{Again, Draft, Imported};
pub use whole::Extent;
pub use work::{Claim, Claimant, Graph, Node};
pub use write::Edit;

use crate::db::Db;
use crate::error::Error;
use crate::packages::Packages;
use crate::sessions::Steps;

/// Longest record, bytes of its JSON: an answer that holds one, and says it as text too, must pass the gate's limit.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// A page ends with the record that brings it beyond this, bytes of contents.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Records read from the database at once.
const READ_RECORDS: i64 = 100;
/// Most records of one page.
pub const PAGE_RECORDS_MAX: i64 = 1000;

/// All records of a database; [`Records::desk`] narrows them to a project.
#[derive(Clone)]
pub struct Records {
    db: Option<Db>,
    clock: Option<Arc<dyn Clock>>,
}

/// Who reads and writes, and in which project. The host has made sure that they may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub project_id: i64,
    pub user_id: i64,
    /// The persona or person that history names.
    pub name: String,
    pub call_id: String,
}

/// The records of one project, changed in one name.
pub struct Desk {
    db: Db,
    clock: Arc<dyn Clock>,
    who: Who,
}

impl Records {
    pub(crate) fn new(db: Db, clock: Arc<dyn Clock>) -> Self {
        Self { db: Some(db), clock: Some(clock) }
    }

    /// Without a database: for who wants to see which tools there are, and calls none.
    pub fn nowhere() -> Self {
        Self { db: None, clock: None }
    }

    /// The workflow packages of the same database.
    pub fn packages(&self) -> Packages {
        match (&self.db, &self.clock) {
            (Some(db), Some(clock)) => Packages::new(db.clone(), Arc::clone(clock)),
            _ => Packages::nowhere(),
        }
    }

    /// The steps of agents' sessions.
    pub fn steps(&self) -> Steps {
        Steps::new(self.db.clone())
    }

    pub fn desk(&self, who: Who) -> Result<Desk> {
        match (&self.db, &self.clock) {
            (Some(db), Some(clock)) => Ok(Desk { db: db.clone(), clock: Arc::clone(clock), who }),
            _ => Err(Error::Closed.into()),
        }
    }
}

impl Desk {
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Milliseconds since 1970, by the clock of the store.
    pub fn now_ms(&self) -> i64 {
        self.clock.unix_ms()
    }
}
