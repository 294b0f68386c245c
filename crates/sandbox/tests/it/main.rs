//! What the sandbox holds, tried for real: files by handle, commands in each tier this machine has.

#![expect(clippy::unwrap_used, reason = "tests")]

mod commands;
mod files;
mod network;
mod room;
mod suite;
