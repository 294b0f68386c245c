//! What the test doubles promise to the tests that use them.

#![expect(clippy::unwrap_used, reason = "tests")]

mod model_server;
mod postgres;
