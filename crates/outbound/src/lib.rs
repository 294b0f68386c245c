//! What Toolhost sends over HTTP besides requests to models: signed webhooks, documents of an identity provider, messages of MCP to
//! another Toolhost, and telemetry.
//!
//! It goes where the operator says, to `https` or to this machine, and follows no redirect. Only telemetry without headers may go to other
//! machines by `http`. It does not know what a message means, and does not choose where it goes.

mod client;
mod collector;
mod documents;
pub mod mcp;
pub mod webhook;

pub use collector::{Collector, CollectorError};
pub use documents::{DocumentError, answer_to_form, document};
