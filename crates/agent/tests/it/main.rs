//! What a model is told, and how much of it.

#![expect(clippy::unwrap_used, reason = "tests")]

mod aging;
mod counting;
mod persona;
mod prompt;
mod sample;
mod trimming;
