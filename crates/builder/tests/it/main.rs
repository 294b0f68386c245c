//! Packages from their bytes to what is said of them: the sample, each rule broken once, and whatever else may come.

#![expect(clippy::unwrap_used, reason = "tests")]

mod begun;
mod cascades;
mod change;
mod change_merge;
mod change_stages;
mod change_validate;
mod change_write;
mod corpus;
mod envelope;
mod gate;
mod generated;
mod hints;
mod hostile;
mod large;
mod parts;
mod refs;
mod renames;
mod revisions;
mod rules;
mod sample;
mod schemas;
mod small;
mod small_edits;
mod small_lines;
mod small_more;
mod zips;
