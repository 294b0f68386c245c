//! From the workspace to the user's own folder.

pub(crate) mod copy;
