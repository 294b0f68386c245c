//! How a session begins: a task becomes the first step of a journal.
//!
//! What the model is told of the project or the package is read through the gate, in the session's name: it is told
//! nothing that it might not read itself.

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_builder::domain::DomainProfile;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::refs::Object;
use toolhost_contract::{ErrorCode, IdSource, Outcome, RandomIds, SESSION_MARK};

use crate::budget::{Budget, BudgetError, Counter, TrimReport, trim_context_with_budget};
use crate::host::{Ends, ToolHost, is_held};
use crate::model::{Message, Model};
use crate::prompt::persona::workspace_profile;
use crate::prompt::{
    BuilderInput, ComposeError, ComposeInput, Fact, PersonaFact, ReplyLimits, Ticket, ToolFact, WorkspaceContext,
    WorkspaceInput, WritePolicy, compose_messages, renewed,
};
use crate::session::{AnswerForm, Entry, Opening, REPAIR_REPLIES, ResultForm};

/// Files in which a project says how it wants to be worked on; the first that is there is told.
const CONVENTIONS: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Bytes of a session's id.
const ID_BYTES: usize = 8;

/// What a session is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Work on the files and tickets of a project.
    Workspace {
        goal: String,
        /// What its answer has to pass; none: a summary in words.
        schema: Option<Value>,
    },
    /// Work on one object of the workflow package.
    Builder(BuilderTarget),
}

/// An object of the package, and what is to be done with it.
#[derive(Debug, Clone, PartialEq)]
pub struct BuilderTarget {
    pub goal: String,
    pub target_type: TargetType,
    /// An id, or the path of an asset.
    pub target_id: String,
    pub mode: Mode,
    /// May be left out where the target tells it.
    pub workflow_id: Option<String>,
    /// Tokens of the context; a share of the model's window if left out.
    pub context_budget: Option<u64>,
    /// Tokens of the model's window that the context leaves for the reply; a share of it if left out.
    pub reserve_for_response: Option<u64>,
    /// All tools of the profile, and not only those for packages.
    pub all_tools: bool,
}

/// Whose session it is, as its prompt and its commits tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The project's name.
    pub project: String,
    /// The profile whose tools it has.
    pub profile: String,
    pub persona: String,
    /// How the persona works and speaks, if the project has a record of it.
    pub personality: Option<String>,
    pub ticket: Option<String>,
    /// The branch that is checked out; told to a profile that has `git.status`.
    pub branch: Option<String>,
    /// The remote that the operator grants; told to a profile that has a tool for it.
    pub remote: Option<String>,
    /// Replies that the model has; not told if left out.
    pub replies: Option<u32>,
}

/// Why a session does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Compose(#[from] ComposeError),
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A read that the beginning needs was refused or failed.
    #[error("{message}")]
    Read { code: ErrorCode, message: String },
    #[error("the schema of the answer is not one: {0}")]
    Schema(String),
    #[error("the domain profile of the package cannot be read: {0}")]
    Profile(String),
}

impl StartError {
    /// The stable code of the seeds.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Compose(error) => error.code(),
            Self::Budget(error) => error.code(),
            Self::Read { code, .. } => *code,
            Self::Schema(_) => ErrorCode::PromptCompose,
            Self::Profile(_) => ErrorCode::DomainProfile,
        }
    }
}

/// An id for a new session: `as_` and 16 hexadecimal digits (CrewAgent's shape).
#[must_use]
pub fn session_id() -> String {
    let id = RandomIds.call_id();
    format!("{SESSION_MARK}{}", hex::encode(&Sha256::digest(id.as_str())[..ID_BYTES]))
}

/// The first step of a session.
///
/// # Errors
/// If the target is not there, does not fit into the model's window, or the prompt has a layer missing.
pub async fn opening(tools: &ToolHost, model: &dyn Model, task: &Task, about: &About) -> Result<Opening, StartError> {
    let mut entry = None;
    let (input, answer, results, goal, trim) = match task {
        Task::Workspace { goal, schema } => {
            if let Some(error) = schema.as_ref().and_then(|schema| jsonschema::draft202012::new(schema).err()) {
                return Err(StartError::Schema(error.to_string()));
            }
            let mut input = workspace(tools, about).await?;
            input.reply_limits = reply_limits(model, about);
            let input = ComposeInput::Workspace(input);
            let answer = match schema {
                Some(schema) => AnswerForm::Json { schema: schema.clone() },
                None => AnswerForm::Text,
            };
            (input, answer, ResultForm::Text, goal, None)
        }
        Task::Builder(target) => {
            let bounded;
            let tools = match target.all_tools {
                true => tools,
                false => {
                    bounded = tools.on_package();
                    &bounded
                }
            };
            let (mut input, trim) = builder(tools, model, target).await?;
            input.reply_limits = reply_limits(model, about);
            if let Some(ticket) = &about.ticket {
                input.context_envelope["session_meta"]["ticket_id"] = Value::from(ticket.as_str());
            }
            entry = Some(entry_of(target, &input.context_envelope));
            (ComposeInput::Builder(input), AnswerForm::Change, ResultForm::Envelope, &target.goal, Some(trim))
        }
    };
    let mut composed = compose_messages(&input, goal, &[])?;
    if let (AnswerForm::Json { schema }, Some(Message::User { content })) = (&answer, composed.messages.last_mut()) {
        content.push_str("\n\nYour final message is one JSON value and nothing else. It passes this schema:\n");
        content.push_str(&schema.to_string());
    }
    Ok(Opening {
        goal: goal.clone(),
        system: composed.system,
        messages: composed.messages,
        answer,
        entry,
        signature: composed.signature,
        results,
        all_tools: matches!(task, Task::Builder(target) if target.all_tools),
        persona: about.persona.clone(),
        ticket: about.ticket.clone(),
        trim,
    })
}

async fn workspace(tools: &ToolHost, about: &About) -> Result<WorkspaceInput, StartError> {
    let catalog = tools.catalog();
    let facts = catalog.specs().iter().map(|tool| (tool.name.clone(), tools.effect(&tool.name)));
    let told: Vec<ToolFact> = facts.map(|(name, effect)| ToolFact { name, effect }).collect();
    let ticket = match &about.ticket {
        Some(id) => Some(ticket(tools, id).await?),
        None => None,
    };
    let mut facts = Vec::new();
    for file in CONVENTIONS {
        if let Some(text) = conventions(tools, file).await {
            facts.push(Fact { source: file.to_owned(), text });
            break;
        }
    }
    let persona = about.personality.as_ref().filter(|personality| !personality.trim().is_empty());
    let persona = persona.map(|text| PersonaFact { name: about.persona.clone(), personality: text.clone() });
    let reaches = tools.own().remotes.iter().any(|tool| tools.has(tool));
    let context = WorkspaceContext {
        project: about.project.clone(),
        profile: about.profile.clone(),
        tools: told,
        needs_person: catalog.asked_for().to_vec(),
        branch: about.branch.clone().filter(|_| tools.has(tools.own().repository)),
        remote: about.remote.clone().filter(|_| reaches),
        ticket,
        persona,
        facts,
    };
    Ok(WorkspaceInput {
        domain_profile: workspace_profile(&about.project, None),
        context: Box::new(context),
        write_policy: WritePolicy,
        reply_limits: None,
    })
}

fn reply_limits(model: &dyn Model, about: &About) -> Option<ReplyLimits> {
    let limits = |replies| ReplyLimits { replies, per_repair: REPAIR_REPLIES, tokens: model.facts().output_tokens };
    about.replies.map(limits)
}

/// What a session's beginning needs to read. A call that waits for a person has read nothing.
async fn read(tools: &ToolHost, tool: &str, arguments: Value) -> Result<Outcome, StartError> {
    let outcome = tools.call(tools.new_id(), tool, arguments, &Ends::default(), None).await;
    if let Some(error) = outcome.error {
        let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        return Err(StartError::Read { code: error.code, message: format!("{}{hint}", error.message) });
    }
    if is_held(&outcome) {
        return Err(StartError::Read { code: ErrorCode::ToolForbidden, message: outcome.text });
    }
    Ok(outcome)
}

async fn ticket(tools: &ToolHost, id: &str) -> Result<Ticket, StartError> {
    let outcome = read(tools, tools.own().read_ticket, serde_json::json!({ "ticketId": id })).await?;
    let title = outcome.data.get("title").and_then(Value::as_str).unwrap_or(id).to_owned();
    Ok(Ticket { id: id.to_owned(), title, body: outcome.text })
}

/// What a file of conventions says; none where it is not there or cannot be read, or the profile reads no files.
async fn conventions(tools: &ToolHost, path: &str) -> Option<String> {
    let own = tools.own();
    if !tools.has(own.list_files) || !tools.has(own.read_file) {
        return None;
    }
    // Asking for a list first leaves no failed call in the audit of every session.
    let listed = read(tools, own.list_files, serde_json::json!({ "pattern": path, "recursive": false })).await.ok()?;
    let entries = listed.data.get("entries").and_then(Value::as_array);
    if !entries.is_some_and(|entries| entries.iter().any(|entry| entry.get("type") == Some(&Value::from("file")))) {
        return None;
    }
    match read(tools, own.read_file, serde_json::json!({ "path": path })).await {
        Ok(outcome) => Some(outcome.text),
        Err(error) => {
            // Help, and no reason not to work.
            tracing::warn!(path, %error, "the conventions of the project cannot be read");
            None
        }
    }
}

async fn builder(
    tools: &ToolHost,
    model: &dyn Model,
    target: &BuilderTarget,
) -> Result<(BuilderInput, TrimReport), StartError> {
    let arguments = serde_json::json!({
        "targetType": target.target_type, "targetId": target.target_id, "mode": target.mode,
        "workflowId": target.workflow_id,
    });
    let arguments = without_nulls(arguments);
    let outcome = read(tools, tools.own().read_context, arguments).await?;
    // What is not there has no revision.
    let is_there = outcome.data.pointer("/revision_info/target").is_some_and(|revision| !revision.is_null());
    if target.mode == Mode::Create && is_there {
        let (kind, id) = (target.target_type.as_str(), &target.target_id);
        let message =
            format!("the {kind} `{id}` is there already: use the mode `optimize`, or name one that is not there");
        return Err(StartError::Read { code: ErrorCode::ContextBuild, message });
    }
    let counter = Counter::for_model(&model.facts().name);
    let budget = Budget::resolve(target.context_budget, target.reserve_for_response, model.facts().window);
    let trimmed = trim_context_with_budget(&outcome.data, &counter, budget)?;
    let profile = trimmed.envelope.get("domain_profile").cloned().unwrap_or_default();
    let domain_profile: DomainProfile =
        serde_json::from_value(profile).map_err(|error| StartError::Profile(error.to_string()))?;
    let input = BuilderInput {
        entrypoint: target.target_type,
        target_type: target.target_type,
        mode: target.mode,
        domain_profile,
        context_envelope: trimmed.envelope,
        write_policy: WritePolicy,
        reply_limits: None,
    };
    Ok((input, trimmed.report))
}

/// What a session on a package is told when it goes on with another request: the context as it is now, and what has become
/// of what it staged. None where the package is as it was and nothing is staged, or the target cannot be read any more.
pub async fn since(tools: &ToolHost, model: &dyn Model, opening: &Opening) -> Option<String> {
    let entry = opening.entry.as_ref()?;
    let (id, workflow) = match entry.target.as_ref()? {
        Object::Workflow(id) | Object::Agent(id) | Object::Asset(id) => (id, None),
        Object::Step { workflow, node } => (node, Some(workflow)),
        Object::Package | Object::Variable { .. } => return None,
    };
    let arguments = without_nulls(serde_json::json!({
        "targetType": entry.target_type, "targetId": id, "mode": entry.mode, "workflowId": workflow,
    }));
    let bounded = if opening.all_tools { None } else { Some(tools.on_package()) };
    let envelope = read(bounded.as_ref().unwrap_or(tools), tools.own().read_context, arguments).await.ok()?.data;
    let has_staged = envelope.pointer("/session_meta/change_sets").is_some();
    let revisions = envelope.pointer("/revision_info/revisions").and_then(Value::as_object);
    let was_told = |revision: &str| opening.system.iter().any(|block| block.text.contains(revision));
    if !has_staged && revisions.is_some_and(|all| all.values().filter_map(Value::as_str).all(was_told)) {
        return None;
    }
    let counter = Counter::for_model(&model.facts().name);
    let budget = Budget::resolve(None, None, model.facts().window);
    Some(renewed(&trim_context_with_budget(&envelope, &counter, budget).ok()?.envelope))
}

/// What a session is for. The envelope knows the workflow, also where nobody named it.
fn entry_of(target: &BuilderTarget, envelope: &Value) -> Entry {
    let workflow = envelope.pointer("/session_meta/workflow_id").and_then(Value::as_str);
    let id = target.target_id.clone();
    let object = match target.target_type {
        TargetType::Workflow => Some(Object::Workflow(id)),
        TargetType::Agent => Some(Object::Agent(id)),
        TargetType::Asset => Some(Object::Asset(id)),
        TargetType::Step => workflow.map(|workflow| Object::Step { workflow: workflow.to_owned(), node: id }),
    };
    Entry { target_type: target.target_type, mode: target.mode, target: object }
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
