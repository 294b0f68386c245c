//! Tools for tickets and their documents.

pub(crate) mod check_criterion;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod read_document;
pub(crate) mod save_document;
pub(crate) mod update;
pub(crate) mod update_state;
