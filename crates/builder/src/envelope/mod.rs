//! The context envelope: what a model is told when it begins to work on an object.
//!
//! A pure function of what it is given; the same input gives the same bytes. There is this one builder, for the first
//! message of a session and for the tool that reads the context again.

mod blank;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{ErrorCode, ErrorKind, ToolError};

use crate::assets;
use crate::domain::{Damaged, resolve_domain_profile};
use crate::package::{Edge, Node, Package, SECTION_RECOMMENDED, SECTIONS_REQUIRED, Step, Workflow};
use crate::refs::{Index, Kind, Locator, Object, Ref};
use crate::revision;
use crate::schema;

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
    let part = match (request.mode, part(request, index)) {
        (Mode::Create, Err(EnvelopeError::Missing { kind, .. })) if kind == request.target_type.as_str() => {
            blank::part(request)?
        }
        (_, part) => part?,
    };
    let package = request.package;
    let workflow_id = part.workflow.map(|workflow| workflow.id.as_str());
    let workflow_revision = part.workflow.map(|workflow| revision::workflow(package, workflow));
    let (agents, assets) = (revision::agents(package), revision::assets(package));
    // As a change set takes them.
    let mut revisions = json!({ "agentsRevision": &agents, "assetsRevision": &assets });
    if let Some(workflow) = &workflow_revision {
        revisions["workflowRevision"] = json!(workflow);
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
        "normative_baseline": baseline(request.target_type, request.mode),
        "target_snapshot": part.snapshot,
        "dependency_digest": part.digest,
        "tool_capabilities": { "allowed": request.tools, "allow_write": false },
        "revision_info": {
            "workflow": workflow_revision,
            "target": part.revision,
            "agents": agents,
            "assets": assets,
            "revisions": revisions,
        },
    }))
}

/// An object as an envelope shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What `target_snapshot` holds.
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

fn part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    match request.target_type {
        TargetType::Workflow => workflow_part(request),
        TargetType::Step => step_part(request),
        TargetType::Agent => agent_part(request, index),
        TargetType::Asset => asset_part(request, index),
    }
}

/// What depends on the kind of target.
struct Part<'a> {
    workflow: Option<&'a Workflow>,
    snapshot: Value,
    digest: Value,
    /// None of what is not there yet.
    revision: Option<String>,
}

fn workflow_part<'a>(request: &Request<'a>) -> Result<Part<'a>> {
    let (package, id) = (request.package, request.target_id);
    if let Some(other) = request.workflow_id.filter(|other| *other != id) {
        return Err(EnvelopeError::OtherWorkflow { target: id.to_owned(), workflow: other.to_owned() });
    }
    let workflow = workflow_named(package, id)?;
    Ok(Part {
        workflow: Some(workflow),
        snapshot: json!({
            "workflow_md": text(package, "workflow", id, &workflow.path)?,
            "graph_json": graph(package, workflow)?,
            "frontmatter": workflow.document.as_ref().map(|document| document.front()),
            "about": workflow.about,
            "step_index": workflow.nodes.iter().map(summary).collect::<Vec<_>>(),
        }),
        digest: json!({
            "agents": agents(package),
            "assets": asset_paths(package),
            "workflows": package.workflow_ids(),
        }),
        revision: Some(revision::workflow(package, workflow)),
    })
}

fn step_part<'a>(request: &Request<'a>) -> Result<Part<'a>> {
    let package = request.package;
    let (workflow, node, step) = find_step(request)?;
    let adjacent: Vec<&Edge> =
        workflow.edges.iter().filter(|edge| edge.from == node.id || edge.to == node.id).collect();
    let neighbors = workflow.nodes.iter().filter(|other| {
        other.id != node.id && adjacent.iter().any(|edge| edge.from == other.id || edge.to == other.id)
    });
    let agent = node.agent_id.as_deref().and_then(|id| package.agent(id));
    let mentioned = step.document.as_ref().map(|document| {
        let mut paths: Vec<String> = assets::mentions(document.text()).into_iter().map(|m| m.path).collect();
        paths.sort();
        paths.dedup();
        paths
    });
    Ok(Part {
        workflow: Some(workflow),
        snapshot: json!({
            "step_markdown": text(package, "step", &node.id, &step.path)?,
            "step_path": step.path,
            "frontmatter": step.document.as_ref().map(|document| document.front()),
            "node_meta": node.value,
            "adjacent_edges": adjacent.iter().map(|edge| &edge.value).collect::<Vec<_>>(),
        }),
        digest: json!({
            "neighbors": neighbors.map(summary).collect::<Vec<_>>(),
            "agent": agent.map(|agent| &agent.value),
            "agents": agents(package),
            "referenced_asset_paths": mentioned.unwrap_or_default(),
        }),
        revision: Some(revision::step(package, step)),
    })
}

fn agent_part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    let (package, id) = (request.package, request.target_id);
    let workflow = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let agent = package.agent(id).ok_or_else(|| missing("agent", id, "the package"))?;
    let refs = index.find(&Locator::Object(Object::Agent(id.to_owned())));
    let mut steps: Vec<&Object> = refs.inbound.iter().filter(|r| r.kind == Kind::Agent).map(|r| &r.from).collect();
    steps.sort();
    steps.dedup();
    let steps: Vec<Value> = steps.into_iter().filter_map(|object| step_line(package, object)).collect();
    let mut mentioned: Vec<&Object> = refs.outbound.iter().filter(|r| r.kind == Kind::Asset).map(|r| &r.to).collect();
    mentioned.sort();
    mentioned.dedup();
    Ok(Part {
        workflow,
        snapshot: json!({ "agent_definition": agent.value, "referenced_steps": steps }),
        digest: json!({
            "other_agents": agents(package).into_iter().filter(|other| other["id"] != id).collect::<Vec<_>>(),
            "referenced_assets": mentioned,
        }),
        revision: Some(revision::agent(agent)),
    })
}

fn asset_part<'a>(request: &Request<'a>, index: &Index) -> Result<Part<'a>> {
    let (package, path) = (request.package, request.target_id);
    let workflow = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let asset = package.asset(path).ok_or_else(|| missing("asset", path, "the package"))?;
    let content = text(package, "asset", path, path)?;
    let refs = index.find(&Locator::Object(Object::Asset(path.to_owned())));
    let others: Vec<&str> = asset_paths(package).into_iter().filter(|other| *other != path).collect();
    Ok(Part {
        workflow,
        snapshot: json!({
            "path": path,
            "content": content,
            "file_type": file_type(path),
            "referenced_by": refs.inbound,
        }),
        digest: json!({ "other_assets": others, "references": refs.outbound.iter().map(place).collect::<Vec<_>>() }),
        revision: Some(revision::asset(package, &asset)),
    })
}

fn file_type(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn place(reference: &Ref) -> Value {
    json!({ "to": reference.to, "kind": reference.kind, "line": reference.line })
}

fn missing(kind: &'static str, id: &str, within: &str) -> EnvelopeError {
    EnvelopeError::Missing { kind, id: id.to_owned(), within: within.to_owned() }
}

fn workflow_named<'a>(package: &'a Package, id: &str) -> Result<&'a Workflow> {
    package.workflow(id).ok_or_else(|| missing("workflow", id, "the package"))
}

fn find_step<'a>(request: &Request<'a>) -> Result<(&'a Workflow, &'a Node, &'a Step)> {
    let (package, id) = (request.package, request.target_id);
    let within = request.workflow_id.map(|id| workflow_named(package, id)).transpose()?;
    let found: Vec<(&Workflow, &Node)> = package
        .workflows()
        .iter()
        .filter(|workflow| within.is_none_or(|within| within.id == workflow.id))
        .filter_map(|workflow| {
            let is_meant = |node: &&Node| node.id == id || node.path.as_deref() == Some(id);
            Some((workflow, workflow.nodes.iter().find(is_meant)?))
        })
        .collect();
    let place = within.map_or_else(|| "the package".to_owned(), |within| format!("workflow `{}`", within.id));
    let (workflow, node) = match found.as_slice() {
        [] => return Err(missing("step", id, &place)),
        [only] => *only,
        several => {
            let workflows = several.iter().map(|(workflow, _)| workflow.id.clone()).collect();
            return Err(EnvelopeError::Ambiguous { id: id.to_owned(), workflows });
        }
    };
    let step = workflow.step(&node.id).ok_or_else(|| {
        let file = node.path.as_deref().unwrap_or("a step file");
        missing("file", file, &format!("the package, which step `{id}` needs"))
    })?;
    Ok((workflow, node, step))
}

fn text<'a>(package: &'a Package, kind: &'static str, id: &str, path: &str) -> Result<&'a str> {
    let bytes =
        package.files().get(path).ok_or_else(|| missing("file", path, &format!("the package of {kind} `{id}`")))?;
    std::str::from_utf8(bytes).map_err(|_| EnvelopeError::NotText { kind, id: id.to_owned(), path: path.to_owned() })
}

/// The graph as a value; as its text while it is broken, so that a model can fix it.
fn graph(package: &Package, workflow: &Workflow) -> Result<Value> {
    match &workflow.graph {
        Some(graph) => Ok(graph.clone()),
        None => text(package, "workflow", &workflow.id, &workflow.graph_path).map(Value::from),
    }
}

fn summary(node: &Node) -> Value {
    json!({
        "node_id": node.id,
        "type": node.value.get("type"),
        "title": node.value.get("title"),
        "path": node.path,
        "agent_id": node.agent_id,
    })
}

fn step_line(package: &Package, object: &Object) -> Option<Value> {
    let Object::Step { workflow, node } = object else { return None };
    // Of a workflow that is not at hand, only the name is known.
    let known = package.workflow(workflow).and_then(|within| within.node(node));
    let mut line = known.map_or_else(|| json!({ "node_id": node }), summary);
    line["workflow_id"] = json!(workflow);
    Some(line)
}

fn agents(package: &Package) -> Vec<Value> {
    let line = |agent: &crate::package::Agent| json!({ "id": agent.id, "name": agent.value.pointer("/metadata/name"), "title": agent.value.pointer("/metadata/title") });
    package.agents().iter().map(line).collect()
}

fn asset_paths(package: &Package) -> Vec<&str> {
    package.asset_hashes().into_keys().collect()
}

/// The rules that hold for a target: what its schema is called, and what a schema cannot say.
fn baseline(target: TargetType, mode: Mode) -> Value {
    let schemas: &[schema::Published] = match target {
        TargetType::Workflow => &[schema::WORKFLOW_FRONT_MATTER, schema::GRAPH, schema::STEP_FRONT_MATTER],
        TargetType::Step => &[schema::STEP_FRONT_MATTER],
        TargetType::Agent => &[schema::AGENTS],
        TargetType::Asset => &[schema::ASSET],
    };
    let rules: &[&str] = match target {
        TargetType::Workflow => &[
            "each edge leads from a node to a node, and each node is reached from `entryNodeId`",
            "each way comes to a node of the type `end`, and no edge leads on from one",
            "where several edges leave a node, exactly one of them has `isDefault: true`",
            "a loop contains a decision node, and an edge leads out of it",
            "each node has a step file of its own",
            "what a step reads (`inputs`) is in `variables` of workflow.md, or in the `outputs` of a step on each way to it",
            "`conditionExpr`, where there is one, is a rule of JSONLogic over these variables",
        ],
        TargetType::Step => &[
            "`nodeId` and `type` are those of the node in the graph",
            "`transitions` lead where the graph's edges lead, with the same default",
            "`title`, `agentId`, `inputs` and `outputs` are those of the node, where both say them",
            "a step of the type `subworkflow` names the workflow that it starts in `workflowId`",
            "assets are named by their path, and are there",
        ],
        TargetType::Agent => &[
            "`id` does not change: steps refer to it",
            "no fields but those of the schema",
            "a choice of `menu` names a workflow of the package, or in `action` one of its prompts as `#id`",
        ],
        TargetType::Asset => &["a text below `assets/`, with a plain relative path", "who refers to it must not break"],
    };
    let mut said = json!({
        "schema_version": "1.1",
        "schemas": schemas.iter().map(|schema| schema.value()["$id"].clone()).collect::<Vec<_>>(),
        "rules": rules,
        "required_sections": SECTIONS_REQUIRED,
        "recommended_section": SECTION_RECOMMENDED,
        "asset_extensions": assets::EXTENSIONS,
    });
    if mode == Mode::Create {
        blank::baseline(target, schemas, &mut said);
    }
    said
}
