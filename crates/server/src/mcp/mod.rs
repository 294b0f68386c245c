//! The Model Context Protocol, both eras (2025-11-25 with sessions, 2026-07-28 stateless) from one service.

mod attached;
mod callers;
mod door;
mod elicit;
mod held;
mod lines;
mod offers;
mod prompts;
mod render;
mod resources;
mod service;
mod slots;
mod stdio;

pub use door::{Door, Listed, Results};
pub use offers::Offers;
pub use prompts::{ArgumentOfPrompt, PromptTemplate};
pub use resources::ResourceKind;
pub use slots::{CALLS_MAX_DEFAULT, NotTidied, Tidy};
pub use stdio::{StdioError, serve_stdio};

pub(crate) use elicit::{AskPages, Given};
pub(crate) use service::McpService;
