//! The context envelope: what a model is told when it begins to work on an object.
//!
//! A pure function of what it is given; the same input gives the same bytes. There is this one builder, for the first
//! message of a session and for the tool that reads the context again.

mod baseline;
mod blank;
mod once;
mod targets;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{ErrorCode, ErrorKind, ToolError};

use self::targets::part;
use crate::domain::{Damaged, resolve_domain_profile};
use crate::package::Package;
use crate::refs::Index;
use crate::revision;

/// The fields of an envelope: these, and no others.
pub const KEYS: [&str; 7] = [
    "session_meta",
    "domain_profile",
    "normative_baseline",
    "target_snapshot",
    "dependency_digest",
    "tool_capabilities",
    "revision_info",
];

/// What a session works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetType {
    /// A workflow as a whole.
    Workflow,
    /// One step of it.
    Step,
    /// An agent.
    Agent,
    /// An asset.
    Asset,
}

impl TargetType {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Step => "step",
            Self::Agent => "agent",
            Self::Asset => "asset",
        }
    }
}

/// Whether the target is made or made better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is being made.
    Create,
    /// It is there, and is to become better.
    Optimize,
}

impl Mode {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Optimize => "optimize",
        }
    }
}

/// What an envelope is made of.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The package as the session sees it.
    pub package: &'a Package,
    /// What kind of object.
    pub target_type: TargetType,
    /// Which: an id, or the path of an asset. For a step, the id of its node or the path of its file.
    pub target_id: &'a str,
    /// What for.
    pub mode: Mode,
    /// The workflow; may be left out where the target tells it.
    pub workflow_id: Option<&'a str>,
    /// The tools that the model may use, and no others.
    pub tools: &'a [&'a str],
    /// Whose envelope it is.
    pub scope: Scope<'a>,
}

/// Whose envelope it is, as `session_meta` tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scope<'a> {
    /// The session, where there is one.
    pub session_id: Option<&'a str>,
    /// The user in whose name it works.
    pub user_id: Option<i64>,
    /// The project of the package.
    pub project_id: Option<i64>,
}

/// Why there is no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// What the locator names is not there.
    #[error("there is no {kind} `{id}` in {within}")]
    Missing {
        /// What kind of object.
        kind: &'static str,
        /// Its id or path.
        id: String,
        /// Where it was looked for.
        within: String,
    },
    /// A node of this id is in several workflows.
    #[error("there is a step `{id}` in several workflows: {}", .workflows.join(", "))]
    Ambiguous {
        /// The id of the node.
        id: String,
        /// The workflows.
        workflows: Vec<String>,
    },
    /// A new step may be for any of several workflows.
    #[error("which workflow is the new step `{id}` for? `workflowId` is one of: {}", .workflows.join(", "))]
    WhichWorkflow {
        /// The id of the node.
        id: String,
        /// The workflows.
        workflows: Vec<String>,
    },
    /// What is to be made cannot have this name.
    #[error("the new {kind} cannot be called `{}`: expected {expected}", .id.escape_debug())]
    Name {
        /// What kind of object.
        kind: &'static str,
        /// Its id or path.
        id: String,
        /// What it may be called.
        expected: &'static str,
    },
    /// Whom the package is for cannot be understood.
    #[error(transparent)]
    Profile(#[from] Damaged),
    /// The workflow named twice is not one workflow.
    #[error("the target is the workflow `{target}`, but `workflowId` is `{workflow}`")]
    OtherWorkflow {
        /// The target.
        target: String,
        /// The workflow named beside it.
        workflow: String,
    },
    /// The file of the object cannot be understood.
    #[error("the file `{path}` of {kind} `{id}` is not text")]
    NotText {
        /// What kind of object.
        kind: &'static str,
        /// Its id or path.
        id: String,
        /// The file.
        path: String,
    },
}

impl EnvelopeError {
    /// The stable code where it kept a context from being built.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Profile(_) => ErrorCode::DomainProfile,
            _ => ErrorCode::ContextBuild,
        }
    }
}

impl From<EnvelopeError> for ToolError {
    fn from(error: EnvelopeError) -> Self {
        let kind = match error {
            EnvelopeError::Missing { .. } => ErrorKind::NotFound,
            _ => ErrorKind::Validation,
        };
        Self::new(kind, error.to_string()).code(error.code())
    }
}

type Result<T> = std::result::Result<T, EnvelopeError>;

/// The envelope, with exactly the fields of [`KEYS`].
///
/// # Errors
/// If the target, or the workflow it belongs to, is not there.
pub fn build_initial_context_envelope(request: &Request<'_>) -> Result<Value> {
    // Only these two ask who refers to them.
    let asks = matches!(request.target_type, TargetType::Agent | TargetType::Asset);
    let index = if asks { Index::of(request.package) } else { Index::default() };
    build_with(request, &index)
}

/// The same, for who keeps an index of the package.
///
/// # Errors
/// If the target, or the workflow it belongs to, is not there.
pub fn build_with(request: &Request<'_>, index: &Index) -> Result<Value> {
    let mut part = match (request.mode, part(request, index)) {
        (Mode::Create, Err(EnvelopeError::Missing { kind, .. })) if kind == request.target_type.as_str() => {
            blank::part(request)?
        }
        (_, part) => part?,
    };
    once::told(request.target_type, &mut part.snapshot);
    let package = request.package;
    let workflow_id = part.workflow.map(|workflow| workflow.id.as_str());
    // As a change set takes them.
    let mut revisions =
        json!({ "agentsRevision": revision::agents(package), "assetsRevision": revision::assets(package) });
    if let Some(workflow) = part.workflow {
        revisions["workflowRevision"] = json!(revision::workflow(package, workflow));
    }
    Ok(json!({
        "session_meta": {
            "session_id": request.scope.session_id,
            "user_id": request.scope.user_id,
            "project_id": request.scope.project_id,
            "target_type": request.target_type,
            "target_id": request.target_id,
            "mode": request.mode,
            "workflow_id": workflow_id,
            "package_name": package.name(),
        },
        "domain_profile": resolve_domain_profile(package, workflow_id)?,
        "normative_baseline": baseline::baseline(request.target_type, request.mode),
        "target_snapshot": part.snapshot,
        "dependency_digest": part.digest,
        "tool_capabilities": { "allowed": request.tools, "allow_write": false },
        "revision_info": { "target": part.revision, "revisions": revisions },
    }))
}

/// An object as a read shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// All fields of the object. `target_snapshot` has the same but for those that another field of the envelope repeats.
    pub snapshot: Value,
    /// The id of the workflow that it is, is in, or that was named.
    pub workflow: Option<String>,
    /// Its revision.
    pub revision: String,
}

/// The object alone: what a read of it answers.
///
/// # Errors
/// As for an envelope.
pub fn snapshot(request: &Request<'_>, index: &Index) -> Result<Snapshot> {
    let part = part(request, index)?;
    let workflow = part.workflow.map(|workflow| workflow.id.clone());
    // What is not there has no revision, and no snapshot either.
    Ok(Snapshot { snapshot: part.snapshot, workflow, revision: part.revision.unwrap_or_default() })
}
