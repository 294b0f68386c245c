//! Tools for the design.

pub(crate) mod get;
pub(crate) mod update;
