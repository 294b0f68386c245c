//! What the sandbox holds, tried for real: files by handle, commands in each tier this machine has.

#![expect(clippy::unwrap_used, reason = "tests")]

mod attacks;
mod cgroup;
mod commands;
mod developer;
mod files;
mod git;
mod git_person;
mod network;
mod ordinary;
mod room;
mod session_folders;
mod shell;
mod suite;
