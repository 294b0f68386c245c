//! Tools for artifacts.

pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod save;
