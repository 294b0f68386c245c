//! Tools for tasks.

pub(crate) mod claim;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod ready;
pub(crate) mod update;
pub(crate) mod update_status;
