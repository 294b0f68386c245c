//! The whole house: the built-in tools through a real gate in a real fence, and the program itself.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod command_line;
mod commands;
mod crash;
mod examples;
mod git_hostile;
mod git_tools;
mod host_paths;
mod hostile_client;
mod laws;
mod mcp;
mod profiles;
mod room;
