//! The form of a change set and the fields of its payload, for the target of a session: constant text for each kind of
//! target, so that a model need not ask for it and a provider can keep it.

use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::guide::{self, Topic};

/// The object of a session and the fields of its payload: the beginning of Layer 4, the same in both modes.
pub(super) fn fields(target: TargetType) -> String {
    let topic = match target {
        TargetType::Workflow => Topic::Workflow,
        TargetType::Step => Topic::Step,
        TargetType::Agent => Topic::Agent,
        TargetType::Asset => Topic::Asset,
    };
    format!(
        "The object of this session is one {}. Its fields (`*`: required; without a kind: text; `…`: further fields):\n{}",
        target.as_str(),
        guide::compact(topic)
    )
}

/// The form of a change set: the end of Layer 4.
pub(super) fn change_set(target: TargetType, mode: Mode) -> String {
    let named = match target {
        TargetType::Workflow => r#"{"workflowId": "…"}"#,
        TargetType::Step => r#"{"workflowId": "…", "nodeId": "…"}"#,
        TargetType::Agent => r#"{"agentId": "…"}"#,
        TargetType::Asset => r#"{"path": "assets/…"}"#,
    };
    let revisions = match mode {
        Mode::Create => "",
        Mode::Optimize => r#", "revisions": {…}"#,
    };
    let (kind, mode) = (target.as_str(), mode.as_str());
    format!(
        "A change set of this session has this form. `op` is `upsert` or `delete`, and an operation may be about another kind \
         of object:\n\n\
         {{\"schemaVersion\": \"1.1\", \"targetType\": \"{kind}\", \"mode\": \"{mode}\"{revisions}, \"operations\": \
         [{{\"op\": \"upsert\", \"targetType\": \"{kind}\", \"target\": {named}, \"payload\": {{…}}, \
         \"reason\": \"…\"}}]}}"
    )
}
