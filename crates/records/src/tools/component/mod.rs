//! Tools for components.

pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod update;
