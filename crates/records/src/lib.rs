//! Records: what agents and people keep, in one table for all kinds; and their tools.
//!
//! It knows the kinds, their state machines, search, import and export, and refuses to know policy, doors and packages.
//!
//! A kind is a type with serde ([`Body`]) and a row in `table.rs`; storing, versions, history, references, deleting,
//! export and import are the same for all. Every change is one transaction which holds the project's lock, so whatever it
//! checks stays true until it is committed. Start with [`Records::desk`].

#[macro_use]
mod table;

mod again;
mod artifact;
mod body;
mod claims;
mod error;
mod facts;
pub mod foreign;
mod iteration;
mod iterations;
mod kind;
mod machine;
mod memory;
mod persona;
mod planning;
mod read;
mod row;
mod salvage;
mod search;
mod terms;
mod text;
mod ticket;
pub mod tools;
mod traces;
mod transfer;
mod whole;
mod write;

use std::sync::Arc;

use toolhost_contract::Clock;

pub use artifact::{Artifact, ArtifactKind};
pub use body::{Body, OnDelete, Reference};
pub use claims::{Claim, Claimant, Graph, Node};
pub use error::{RecordError, Result, chain_text};
pub use iteration::{Inheritance, Iteration, IterationStatus};
pub use iterations::NewIteration;
pub use kind::{Kind, RecordId};
pub use machine::{FEATURE, ITERATION, Machine, TASK, TICKET};
pub use memory::{Decision, Importance, Insight, Issue, Learning, Pattern};
pub use persona::Persona;
pub use planning::{
    Category, Component, ComponentType, DataModel, Design, Feature, Interface, Milestone, Priority, Requirement,
    Status, Task, TechnologyStack,
};
pub use read::{Page, Query, Version};
pub use row::{Holder, Removed, Saved, Stored};
pub use search::{Found, Search, SearchScope};
pub use ticket::{AuthorKind, Comment, Criterion, Document, DocumentType, Ticket, TicketState, TicketType, loses_most};
pub use traces::Traces;
pub(crate) use transfer::TIME_MS_MAX;
pub use transfer::{Again, Draft, Imported};
pub use whole::Extent;
pub use write::Edit;

use toolhost_store::db::Db;
use toolhost_store::{Database, Who};

/// Longest record, bytes of its JSON: an answer that holds one, and says it as text too, must pass the gate's limit.
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// A page ends with the record that brings it beyond this, bytes of contents.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// The tables that records fill.
const TABLES: &[&str] = &["record", "link", "history", "memory_term", "memory_near"];
/// Records read from the database at once.
const READ_RECORDS: i64 = 100;
/// Most records of one page.
pub const PAGE_RECORDS_MAX: i64 = 1000;

/// All records of a database; [`Records::desk`] narrows them to a project.
#[derive(Clone)]
pub struct Records {
    database: Database,
}

/// The records of one project, changed in one name.
pub struct ProjectRecords {
    db: Db,
    clock: Arc<dyn Clock>,
    who: Who,
}

impl Records {
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// # Errors
    /// The database is not open.
    pub fn desk(&self, who: Who) -> Result<ProjectRecords> {
        let (db, clock) = self.database.opened()?;
        Ok(ProjectRecords { db, clock, who })
    }
}

impl ProjectRecords {
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Milliseconds since 1970, by the clock of the store.
    pub fn now_ms(&self) -> i64 {
        self.clock.unix_ms()
    }
}
