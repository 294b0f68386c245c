//! The file and catalog tools through a real gate. Commands and git, which need the program as the fence's helper, are
//! tried in `crates/cli/tests`.

#![expect(clippy::unwrap_used, reason = "tests")]

mod catalog;
mod edit;
mod outline;
mod pages;
mod read;
mod room;
mod symbols;
mod write;
