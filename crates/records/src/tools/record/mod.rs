//! Tools for records of every kind.

pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod restore;
