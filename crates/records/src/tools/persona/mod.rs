//! Tools for personas.

pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod update;
