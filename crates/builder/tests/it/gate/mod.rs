//! The tools for packages through a real gate, on both engines.

mod answers;
mod chains;
mod changes;
mod documents;
#[expect(clippy::disallowed_methods, reason = "it reads packages of its own")]
mod edits;
mod guide;
mod lifecycle;
mod looks;
mod races;
mod reads;
mod renames;
mod small;
mod walk;
mod walk_files;
mod walk_model;
mod walk_plan;
