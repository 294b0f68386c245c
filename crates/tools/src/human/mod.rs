//! Questions to people.

pub(crate) mod ask;
