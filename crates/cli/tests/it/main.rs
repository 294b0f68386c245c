//! The whole house: the built-in tools through a real gate in a real fence, and the program itself.

#![expect(clippy::unwrap_used, reason = "tests")]

mod agent_acceptance;
mod agent_builder;
mod agent_commands;
mod agent_crash;
mod agent_loop;
mod agent_resume;
mod agent_room;
mod bad_input;
mod bad_records;
mod beads;
mod builder;
mod builder_changes;
mod builder_first_day;
mod builder_races;
mod command_line;
mod commands;
mod conformance;
mod cowork;
mod crash;
mod deploys;
mod engines;
mod examples;
mod file_links;
mod git_hostile;
mod git_seen;
mod git_tools;
mod host_paths;
mod hostile_client;
mod keys;
mod laws;
mod machines_by_tool;
mod mcp;
mod newcomer;
mod people_commands;
mod people_crash;
mod people_mcp;
mod people_reviews;
mod people_sight;
mod profiles;
mod room;
mod seeds_bugs;
mod tenants;
mod undo;
mod vocabulary;
