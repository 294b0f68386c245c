//! The only SQL: a project's database, its audit.
//!
//! It refuses to know policy, HTTP and tools. Narrow handles are given out: [`Audit`] appends and is the host's alone,
//! [`Reader`] reads. Start with [`Store::open`].

mod audit;
mod chain;
mod error;
mod open;
mod presence;
mod reader;

pub use audit::{Audit, Entry, Event};
pub use error::{Error, Result};
pub use open::{Project, Store};
pub use reader::{Filter, Problem, Reader, Row, Verdict};
