//! Tools of an agent's own session.

pub(crate) mod result;
