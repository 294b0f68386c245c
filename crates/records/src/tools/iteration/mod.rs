//! Tools for iterations.

pub(crate) mod create;
pub(crate) mod list;
pub(crate) mod update_status;
