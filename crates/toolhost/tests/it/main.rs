//! What programs that embed Toolhost rely on.

#![expect(clippy::unwrap_used, reason = "tests")]

mod gate;
#[expect(clippy::disallowed_methods, reason = "it reads the sources of crates that name no tool")]
mod laws;
mod opening;
mod room;
mod service;
mod sessions;
