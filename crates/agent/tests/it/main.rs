//! Models, through real connections to pretended providers.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bridge;
mod faults;
mod record;
mod replies;
mod requests;
mod script;
mod spec;
mod talk;
