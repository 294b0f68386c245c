//! What programs that embed Toolhost rely on.

#![expect(clippy::unwrap_used, reason = "tests")]

mod gate;
mod laws;
mod opening;
mod room;
mod service;
mod sessions;
