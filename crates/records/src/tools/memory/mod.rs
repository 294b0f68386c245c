//! Tools for what was learnt.

pub(crate) mod promote_to_decision;
pub(crate) mod promote_to_pattern;
pub(crate) mod query;
pub(crate) mod resolve_issue;
pub(crate) mod save_insight;
pub(crate) mod save_issue;
pub(crate) mod save_learning;
