//! The gate, step by step, over tools made for it.

#![expect(clippy::unwrap_used, reason = "tests")]

mod approve;
mod ends;
mod envelope;
mod limits;
mod names;
mod policy;
mod probes;
mod profiles;
mod secrets;
mod spoken;
