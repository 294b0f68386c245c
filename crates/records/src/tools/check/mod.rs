//! Tools that check what was planned.

pub(crate) mod data_format;
pub(crate) mod feature_coverage;
mod graph;
pub(crate) mod task_dependencies;
