//! Waiting for what people decide.

pub(crate) mod wait;
