//! The texts of the layers: files to be reviewed, chosen by what the session is.

use toolhost_builder::envelope::{Mode, TargetType};

pub(super) const IDENTITY_BUILDER: &str = include_str!("layers/identity-builder.md");
pub(super) const IDENTITY_WORKSPACE: &str = include_str!("layers/identity-workspace.md");
pub(super) const GUARDRAILS: &str = include_str!("layers/guardrails.md");
pub(super) const GUARDRAILS_BUILDER: &str = include_str!("layers/guardrails-builder.md");
pub(super) const GUARDRAILS_WORKSPACE: &str = include_str!("layers/guardrails-workspace.md");
pub(super) const OUTPUT_BUILDER: &str = include_str!("layers/output-builder.md");
pub(super) const OUTPUT_WORKSPACE: &str = include_str!("layers/output-workspace.md");
pub(super) const ENTRY_WORKSPACE: &str = include_str!("layers/entry-workspace.md");
pub(super) const MODE_WORKSPACE: &str = include_str!("layers/mode-workspace-work.md");
pub(super) const CONTEXT_BUILDER: &str = include_str!("layers/context-builder.md");
pub(super) const CONTEXT_RENEWED: &str = include_str!("layers/context-renewed.md");
pub(super) const CONTEXT_WORKSPACE: &str = include_str!("layers/context-workspace.md");
pub(super) const APPLY_BUILDER: &str = include_str!("layers/apply-builder.md");
pub(super) const APPLY_WORKSPACE: &str = include_str!("layers/apply-workspace.md");

/// How to begin, by where the person began.
pub(super) fn entry(entrypoint: TargetType) -> &'static str {
    match entrypoint {
        TargetType::Workflow => include_str!("layers/entry-workflow.md"),
        TargetType::Step => include_str!("layers/entry-step.md"),
        TargetType::Agent => include_str!("layers/entry-agent.md"),
        TargetType::Asset => include_str!("layers/entry-asset.md"),
    }
}

/// How to work on a kind of object, new or there.
pub(super) fn mode(target: TargetType, mode: Mode) -> &'static str {
    match (target, mode) {
        (TargetType::Workflow, Mode::Create) => include_str!("layers/mode-workflow-create.md"),
        (TargetType::Workflow, Mode::Optimize) => include_str!("layers/mode-workflow-optimize.md"),
        (TargetType::Step, Mode::Create) => include_str!("layers/mode-step-create.md"),
        (TargetType::Step, Mode::Optimize) => include_str!("layers/mode-step-optimize.md"),
        (TargetType::Agent, Mode::Create) => include_str!("layers/mode-agent-create.md"),
        (TargetType::Agent, Mode::Optimize) => include_str!("layers/mode-agent-optimize.md"),
        (TargetType::Asset, Mode::Create) => include_str!("layers/mode-asset-create.md"),
        (TargetType::Asset, Mode::Optimize) => include_str!("layers/mode-asset-optimize.md"),
    }
}
