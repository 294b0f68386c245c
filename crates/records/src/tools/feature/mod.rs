//! Tools for features.

pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod update;
pub(crate) mod update_status;
