//! The whole house: the built-in tools through a real gate in a real fence, and the program itself.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bad_input;
mod crash;
mod examples;
mod hostile_client;
mod laws;
mod mcp;
mod room;
