//! The tools through a real gate, with real commands and git in the fence. What they do in the program is tried in
//! `crates/cli/tests`.

#![expect(clippy::unwrap_used, reason = "tests")]

mod analyzed_once;
mod bad_input;
mod catalog;
mod commands;
mod edit;
mod examples;
mod file_links;
mod git_changes;
mod git_held;
mod git_hostile;
mod git_remotes;
mod git_seen;
mod git_tools;
mod host_paths;
mod outline;
mod pages;
mod people_reviews;
mod read;
mod room;
mod write;
