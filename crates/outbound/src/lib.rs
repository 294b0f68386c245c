//! What Toolhost sends over HTTP besides requests to models: signed webhooks, documents of an identity provider, and messages of MCP to
//! another Toolhost.
//!
//! It goes where the operator says, to `https` or to this machine, and follows no redirect. It refuses to know what is told and to whom.

mod client;
mod documents;
pub mod mcp;
pub mod webhook;

pub use documents::{DocumentError, answer_to_form, document};
