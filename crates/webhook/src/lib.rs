//! Signed webhooks, as the specification Standard Webhooks has them (<https://www.standardwebhooks.com>).
//!
//! It refuses to know what is told and to whom: the caller hands it a URL, a key and the text of a message. Start with [`Endpoint`].

mod endpoint;
mod error;
mod key;

pub use endpoint::{Endpoint, Message};
pub use error::{Error, Result};
pub use key::SigningKey;
