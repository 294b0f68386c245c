//! How long what a program names may be.

/// Longest name of a project.
pub const PROJECT_CHARS_MAX: usize = 200;
/// Characters of the name that an agent works under.
pub(crate) const PERSONA_CHARS_MAX: usize = 100;
/// Longest policy file of a project, bytes.
pub(crate) const POLICY_BYTES_MAX: u64 = 256 * 1024;

/// The user of a host that names none.
pub(crate) const USER_DEFAULT: &str = "local";
