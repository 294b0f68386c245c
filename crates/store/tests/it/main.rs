//! The audit under attack, under load and after a crash, in real SQLite files.

#![expect(clippy::unwrap_used, reason = "tests")]

mod chain;
mod many;
mod open;
mod shelf;
mod unwritable;
