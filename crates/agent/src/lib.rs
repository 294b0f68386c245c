//! An agent of our own: what a model is told, which model it is, and the loop that runs its calls through the gate and
//! survives its process.
//!
//! It refuses to know files, SQL, the terminal and which tools there are. Start with [`Model`].

pub mod budget;
mod host;
pub mod model;
mod observe;
pub mod prompt;
pub mod session;
pub mod start;
mod tools;

pub use host::{Catalog, ToolHost};
pub use model::{Model, ModelError, Reply, Request};
pub use observe::{BegunRun, ObservedModel, ObservedReply, RunObserver, SessionObserver};
pub use tools::SessionTools;

/// The persona of Layer 0B (seed BAI-2.2), and the profile that it is made of.
pub mod persona {
    pub use crate::prompt::persona::{build_domain_persona_layer, profile_values, workspace_profile};
}
