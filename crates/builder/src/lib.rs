//! Workflow packages: what they consist of, whether they are right, what refers to what, and what a model is told of
//! them.
//!
//! The rules work on files held in memory and refuse to know where they come from. Start with [`Package::read`], which never
//! fails and never loses a byte; then [`validate`], which says what is wrong with it, [`refs::Index`], [`revision`],
//! [`envelope`], and [`change`] for what may be done to it. [`packages`] keeps the package of a project and its change sets in
//! the database, and [`tools`] are what agents and people call. The crate refuses to know policy, doors and other records.

mod archive;
mod assets;
mod begun;
pub mod change;
mod check;
mod document;
pub mod domain;
pub mod envelope;
mod files;
mod finding;
mod graph;
pub mod guide;
mod hidden;
mod json;
pub mod limits;
mod package;
pub mod packages;
pub mod refs;
pub mod revision;
pub mod schema;
mod spans;
pub mod tools;
mod yaml;

pub use archive::{from_zip, from_zip_up_to, to_zip};
pub use assets::{EXTENSIONS as ASSET_EXTENSIONS, FOLDER as ASSETS_FOLDER, problem as asset_path_problem};
pub use begun::begun;
pub use check::{seal, validate, validate_up_to};
pub use document::{Document, render};
pub use files::{Files, problem as path_problem};
pub use finding::{Finding, Severity};
pub use package::{
    Agent, Asset, Edge, Edits, Elsewhere, MAIN_WORKFLOW, MANIFEST, Node, NodeKind, Package, Place, SECTION_RECOMMENDED,
    SECTIONS_REQUIRED, Step, Workflow, places_of, sha256, step_paths,
};
pub use packages::Packages;
