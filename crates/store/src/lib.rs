//! The only SQL: audit, people, records and workflow packages, on SQLite and on PostgreSQL.
//!
//! It refuses to know policy, HTTP and tools. Narrow handles are given out: [`Audit`] appends and is the host's alone,
//! [`Reader`] reads it, [`Records`] and [`Packages`] are for tools, [`People`] says who may, [`Asks`] is
//! what people are asked. Start with [`Store::open`].

mod asks;
mod audit;
mod chain;
mod db;
mod dialect;
mod error;
mod fate;
mod file;
mod file_log;
pub mod foreign;
mod lanes;
mod links;
mod open;
mod outage;
pub mod packages;
mod people;
mod presence;
mod reader;
pub mod records;
mod server;
pub mod sessions;

pub use asks::{
    Ask, AskChange, AskKind, AskLimits, AskPage, AskState, AskSummary, Asks, NewAsk, NewPermit,
    OPEN_MAX as ASKS_OPEN_MAX, Permit,
};
pub use audit::{Audit, Entry, Event};
pub use error::{Error, Result};
pub use file_log::{CHANGES_MAX, CONTENTS_BYTES_MAX, Change, Changes, FileLog, NewChange};
pub use open::{Caches, Project, Store};
pub use outage::Outage;
pub use packages::Packages;
pub use people::{Member, People, Role};
pub use reader::{Filter, Problem, Reader, Row, Undecided, Verdict};
pub use records::Records;
pub use sessions::{Held, NewSession, SessionRow, SessionState, Sessions, StepRow, Steps};
