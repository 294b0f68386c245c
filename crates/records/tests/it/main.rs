//! What agents and people keep, on real databases of both engines: versions, references, states, search, export and import.

#![expect(clippy::unwrap_used, reason = "tests")]

mod claims;
mod hostile;
mod links;
mod machines;
mod memory;
mod numbers;
mod rounds;
mod transfer;
mod versions;
mod walk;
mod whole;
