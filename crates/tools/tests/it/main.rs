//! The tools through a real gate, with real commands and git in the fence. What they do in the program is tried in
//! `crates/cli/tests`.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(clippy::disallowed_methods, reason = "it counts how often the gate analyzes")]
mod analyzed_once;
mod bad_input;
mod catalog;
mod commands;
mod edit;
mod examples;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod file_links;
mod git_changes;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod git_held;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod git_hostile;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod git_remotes;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod git_seen;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod git_tools;
#[expect(clippy::disallowed_types, reason = "a socket is one of the things that a path may name")]
mod host_paths;
mod outline;
mod pages;
#[expect(clippy::disallowed_methods, reason = "it acts as a person beside the workspace does")]
mod people_reviews;
mod read;
mod room;
mod symbols;
mod write;
