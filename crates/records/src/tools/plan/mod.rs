//! Tools for the plan as a whole.

pub(crate) mod get;
