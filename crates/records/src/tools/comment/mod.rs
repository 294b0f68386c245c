//! Tools for what is said about tickets.

pub(crate) mod list;
pub(crate) mod post;
