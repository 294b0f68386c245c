//! Tools about tools: what the caller's profile has.

pub(crate) mod describe;
pub(crate) mod list;
pub(crate) mod search;
