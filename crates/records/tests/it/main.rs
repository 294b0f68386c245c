//! What agents and people keep, on real databases of both engines: versions, references, states, search, export and import.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_records;
mod claims;
mod hostile;
mod links;
mod machines;
mod machines_by_tool;
mod memory;
mod numbers;
mod rounds;
mod seeds_bugs;
mod tenants;
mod transfer;
mod versions;
mod vocabulary;
mod walk;
mod whole;
