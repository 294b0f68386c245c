//! Tools as an agent of adk-rust sees and calls them, over the real gate.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agent;
mod calls;
mod listed;
mod notes;
