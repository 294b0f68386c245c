//! What a prompt is composed of, as the seed freezes it (BAI-2 section 4.1), with the workspace beside it.
//!
//! A session of the builder has a target and an envelope; one of the workspace has neither. The types do not let one
//! have what belongs to the other, and no value of them may apply changes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_builder::domain::DomainProfile;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_contract::Effect;

/// Everything that decides what a prompt says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub enum ComposeInput {
    Builder(BuilderInput),
    Workspace(WorkspaceInput),
}

/// Work on a package.
#[derive(Debug, Clone, PartialEq)]
pub struct BuilderInput {
    /// Where the person began.
    pub entrypoint: TargetType,
    /// What kind of object is worked on.
    pub target_type: TargetType,
    pub mode: Mode,
    pub domain_profile: DomainProfile,
    /// Of [`toolhost_builder::envelope`]: exactly its seven fields.
    pub context_envelope: Value,
    pub write_policy: WritePolicy,
    /// Not told if left out.
    pub reply_limits: Option<ReplyLimits>,
}

/// Work on the files and tickets of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkspaceInput {
    /// Of [`crate::persona::workspace_profile`], or of the project's package.
    pub domain_profile: DomainProfile,
    pub context: Box<WorkspaceContext>,
    pub write_policy: WritePolicy,
    /// Not told if left out.
    pub reply_limits: Option<ReplyLimits>,
}

/// What a session allows its model, as the model is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReplyLimits {
    /// Replies until the final message.
    pub replies: u32,
    /// Replies that a final message gives which is sent back.
    pub per_repair: u32,
    /// Tokens of one reply.
    pub tokens: u32,
}

/// `{allowApply: false, requiresValidation: true}`: there is no other, so there is nothing in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WirePolicy", into = "WirePolicy")]
pub struct WritePolicy;

/// What a model is told of the project it works in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkspaceContext {
    /// The name of the project, from its owner.
    pub project: String,
    /// The profile of tools the session runs under.
    pub profile: String,
    /// The tools of the session.
    pub tools: Vec<ToolFact>,
    /// What a person is asked for, as a line each, such as `git.push`.
    #[serde(default)]
    pub needs_person: Vec<String>,
    /// The branch that is checked out when the session begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The remote that git tools use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// In whose role the model works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<PersonaFact>,
    /// What else is known: conventions, recent decisions.
    #[serde(default)]
    pub facts: Vec<Fact>,
}

/// A persona of the project, as its record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PersonaFact {
    pub name: String,
    /// How it works and speaks.
    pub personality: String,
}

/// A tool, and what running it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolFact {
    /// As the model calls it: `file_read`.
    pub name: String,
    pub effect: Effect,
}

/// What the work is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ticket {
    pub id: String,
    pub title: String,
    pub body: String,
}

/// Something known, and where from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fact {
    /// Where it is from: `memory`, `AGENTS.md`.
    pub source: String,
    pub text: String,
}

impl ComposeInput {
    #[must_use]
    pub fn domain_profile(&self) -> &DomainProfile {
        match self {
            Self::Builder(builder) => &builder.domain_profile,
            Self::Workspace(workspace) => &workspace.domain_profile,
        }
    }
}

/// The JSON of an input: fields of both kinds, of which a kind takes its own.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    entrypoint: WireTarget,
    target_type: WireTarget,
    mode: WireMode,
    domain_profile: DomainProfile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_envelope: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace_context: Option<WorkspaceContext>,
    write_policy: WritePolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply_limits: Option<ReplyLimits>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireTarget {
    Workflow,
    Step,
    Agent,
    Asset,
    Workspace,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WireMode {
    Create,
    Optimize,
    Work,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WirePolicy {
    allow_apply: bool,
    requires_validation: bool,
}

impl TryFrom<WirePolicy> for WritePolicy {
    type Error = &'static str;

    fn try_from(wire: WirePolicy) -> Result<Self, Self::Error> {
        match wire {
            WirePolicy { allow_apply: false, requires_validation: true } => Ok(Self),
            _ => Err("`writePolicy` is `{allowApply: false, requiresValidation: true}` and nothing else"),
        }
    }
}

impl From<WritePolicy> for WirePolicy {
    fn from(_: WritePolicy) -> Self {
        Self { allow_apply: false, requires_validation: true }
    }
}

impl TryFrom<Wire> for ComposeInput {
    type Error = &'static str;

    fn try_from(wire: Wire) -> Result<Self, Self::Error> {
        let Wire { domain_profile, write_policy, reply_limits, .. } = wire;
        let targets = (object(wire.entrypoint), object(wire.target_type), mode(wire.mode));
        match (targets, wire.context_envelope, wire.workspace_context) {
            ((Some(entrypoint), Some(target_type), Some(mode)), Some(context_envelope), None) => {
                Ok(Self::Builder(BuilderInput {
                    entrypoint,
                    target_type,
                    mode,
                    domain_profile,
                    context_envelope,
                    write_policy,
                    reply_limits,
                }))
            }
            ((None, None, None), None, Some(context)) => {
                let context = Box::new(context);
                Ok(Self::Workspace(WorkspaceInput { domain_profile, context, write_policy, reply_limits }))
            }
            _ => Err("`workspace` goes with `targetType: workspace`, `mode: work` and `workspaceContext`, \
                      any other `entrypoint` with a target, `create` or `optimize`, and `contextEnvelope`"),
        }
    }
}

impl From<ComposeInput> for Wire {
    fn from(input: ComposeInput) -> Self {
        match input {
            ComposeInput::Builder(builder) => Self {
                entrypoint: wire_target(builder.entrypoint),
                target_type: wire_target(builder.target_type),
                mode: match builder.mode {
                    Mode::Create => WireMode::Create,
                    Mode::Optimize => WireMode::Optimize,
                },
                domain_profile: builder.domain_profile,
                context_envelope: Some(builder.context_envelope),
                workspace_context: None,
                write_policy: builder.write_policy,
                reply_limits: builder.reply_limits,
            },
            ComposeInput::Workspace(workspace) => Self {
                entrypoint: WireTarget::Workspace,
                target_type: WireTarget::Workspace,
                mode: WireMode::Work,
                domain_profile: workspace.domain_profile,
                context_envelope: None,
                workspace_context: Some(*workspace.context),
                write_policy: workspace.write_policy,
                reply_limits: workspace.reply_limits,
            },
        }
    }
}

/// An object of a package, if it is one.
fn object(target: WireTarget) -> Option<TargetType> {
    match target {
        WireTarget::Workflow => Some(TargetType::Workflow),
        WireTarget::Step => Some(TargetType::Step),
        WireTarget::Agent => Some(TargetType::Agent),
        WireTarget::Asset => Some(TargetType::Asset),
        WireTarget::Workspace => None,
    }
}

fn wire_target(target: TargetType) -> WireTarget {
    match target {
        TargetType::Workflow => WireTarget::Workflow,
        TargetType::Step => WireTarget::Step,
        TargetType::Agent => WireTarget::Agent,
        TargetType::Asset => WireTarget::Asset,
    }
}

fn mode(mode: WireMode) -> Option<Mode> {
    match mode {
        WireMode::Create => Some(Mode::Create),
        WireMode::Optimize => Some(Mode::Optimize),
        WireMode::Work => None,
    }
}
