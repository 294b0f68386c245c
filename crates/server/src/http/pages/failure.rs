//! What went wrong, as people read it.

use toolhost_contract::ToolError;

use super::marks::without_marks;

/// A failure in a sentence, with what a person does about it.
pub(super) fn sentence(error: &ToolError) -> String {
    let step = next_step(error).map(|step| format!(" {}.", step.trim_end_matches('.'))).unwrap_or_default();
    let message = format!("{}.{step}", error.message.trim_end_matches('.'));
    without_marks(&message)
}

/// The next step after a failure. One that names a tool or an argument is said to agents; a command of `toolhost` is one for people, too.
pub(super) fn next_step(error: &ToolError) -> Option<&str> {
    let is_for_agents = |hint: &&str| hint.split('`').skip(1).step_by(2).any(|name| !name.starts_with("toolhost "));
    error.hint.as_deref().filter(|hint| !is_for_agents(hint))
}
