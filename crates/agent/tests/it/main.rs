//! What a model is told and how much of it; models, through real connections to pretended providers.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::disallowed_types, reason = "tests have servers of their own")]

mod aging;
mod compatible;
mod counting;
mod faults;
mod grown;
mod persona;
mod prefix;
mod prompt;
mod record;
mod replies;
mod requests;
mod sample;
mod script;
mod session;
mod spec;
mod talk;
mod trimming;
