//! What a door offers besides tools. The door has it handed in, so that a program with tools of its own offers those.

use super::prompts::{self, PromptTemplate};
use super::resources::{self, ResourceKind};

/// Resources and prompts. Each is what a tool answers; a profile without that tool is not offered it.
pub struct Offers {
    pub resources: &'static [ResourceKind],
    pub prompts: &'static [PromptTemplate],
}

impl Offers {
    /// Those of the built-in tools.
    pub const BUILT_IN: &'static Self = &Self { resources: &resources::KINDS, prompts: &prompts::PROMPTS };
}
