//! The part of the API for what people do: packages, changes, sessions, members.
//!
//! What changes a package is a call of its tool through the gate: staging by the token's agent, the rest by its user as a person. What is applied is what was previewed: a
//! preview has a digest, and an apply that names another is refused.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::{CONFIRM_SOURCE, Call, Caller, CallerKind, ErrorKind, Scope, ToolError, canonical_json};
use toolhost_host::Hooks;

use super::envelope::{Reply, data};
use super::routes::{Asked, DOOR, Input, Method, QueryName, Route, run};
use super::token::Right;
use super::work::{NewRun, Replaces, Stop, Target, Work};

/// The profile of what people do, as at a terminal: their role is what limits them.
const PROFILE_OF_PEOPLE: &str = "all";
/// The content type of a package.
pub(crate) const ZIP: &str = "application/zip";

const OPERATIONS: QueryName = QueryName {
    name: "operations",
    description: "Positions of operations, from 0, separated by commas; all if left out",
    is_number: false,
};

/// The operations of this part.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/projects/{project}/package",
        name: "exportPackage",
        summary: "The workflow package as a zip. Its `ETag` is its revision",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: None,
        run: run!(export),
    },
    Route {
        method: Method::Put,
        path: "/projects/{project}/package",
        name: "importPackage",
        summary: "Puts a package in the place of the project's. `If-Match` names the revision that is replaced, or `*` any; without it the \
                  project must have none",
        right: Some(Right::Manage),
        query: &[],
        body: Some(Input::Zip),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(import),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/package/validation",
        name: "validatePackage",
        summary: "What is wrong with a package, and where: the files of a zip against their schemas, and whether everything named is there",
        right: Some(Right::Read),
        query: &[],
        body: Some(Input::Zip),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(validate_package),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/workflows",
        name: "listWorkflows",
        summary: "The workflows of the package",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(workflows),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/changes",
        name: "listChanges",
        summary: "The change sets of the package, the newest first",
        right: Some(Right::Read),
        query: &[
            QueryName { name: "session", description: "Only of this session", is_number: false },
            QueryName {
                name: "all",
                description: "`true`: those that cannot be applied any more, too",
                is_number: false,
            },
        ],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(changes),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes",
        name: "stageChange",
        summary: "Stages a change set, as the token's agent with its first profile; sets of one token build on each other, and nobody else sees them until they are applied",
        right: Some(Right::Call),
        query: &[],
        body: Some(Input::Json(|| schema_for!(StageRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(stage),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/changes/{change}",
        name: "previewChange",
        summary: "A change set, and what an apply of it, or of some of its operations, would say and change now: text and graph before \
                  and after, clashes, dependencies. Its `digest` is for the apply",
        right: Some(Right::Read),
        query: &[OPERATIONS],
        body: None,
        answer: Some(|| schema_for!(PreviewInfo).into()),
        run: run!(preview),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes/{change}/validation",
        name: "validateChange",
        summary: "Checks a change set as its apply would",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(validate_change),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes/{change}/application",
        name: "applyChange",
        summary: "Applies exactly what a preview with this digest has shown, for everybody",
        right: Some(Right::Approve),
        query: &[],
        body: Some(Input::Json(|| schema_for!(ApplyRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(apply),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/changes/{change}",
        name: "discardChange",
        summary: "Gives a staged change set up",
        right: Some(Right::Approve),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(discard),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/history",
        name: "listHistory",
        summary: "What has been applied to the package, the newest first",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(history),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/history/{moment}/undo",
        name: "undoChange",
        summary: "Takes an applied change back, by its number in the history",
        right: Some(Right::Approve),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(undo),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions",
        name: "startSession",
        summary: "Starts a session of a model, which runs on this server",
        right: Some(Right::Run),
        query: &[],
        body: Some(Input::Json(|| schema_for!(SessionRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(start),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/messages",
        name: "saySession",
        summary: "Goes on with a session of the token's user: with what is said, or as it was where nothing is",
        right: Some(Right::Run),
        query: &[],
        body: Some(Input::Json(|| schema_for!(MessageRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(say),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/pause",
        name: "pauseSession",
        summary: "Stops a session after the call under way, wherever it runs",
        right: Some(Right::Run),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(pause),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/cancel",
        name: "cancelSession",
        summary: "Ends a session for good, wherever it runs",
        right: Some(Right::Run),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(cancel),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/fork",
        name: "forkSession",
        summary: "Begins another session with all, or the first turns, of what one has come to",
        right: Some(Right::Run),
        query: &[],
        body: Some(Input::Json(|| schema_for!(ForkRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(fork),
    },
    Route {
        method: Method::Put,
        path: "/projects/{project}/members/{member}",
        name: "setMember",
        summary: "Makes somebody a member, or changes what they are; a new name becomes a user",
        right: Some(Right::Manage),
        query: &[],
        body: Some(Input::Json(|| schema_for!(MemberRequest).into())),
        answer: Some(|| json!({ "type": "object" })),
        run: run!(set_member),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/members/{member}",
        name: "removeMember",
        summary: "Takes somebody's membership away",
        right: Some(Right::Manage),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(remove_member),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StageRequest {
    /// As `builder_change_stage` takes it.
    change_set: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ApplyRequest {
    /// The `digest` of the preview that was shown.
    digest: String,
    /// The positions that were previewed; all if left out.
    operations: Option<Vec<i64>>,
    /// Each object that the set deletes, such as `step:main/step-03`.
    #[serde(default)]
    confirm_deletes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct PreviewInfo {
    /// Changes with anything that is shown.
    digest: String,
    /// `changeSet`, `body`, `report` and `diff`.
    preview: Value,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionRequest {
    /// What to do, in words.
    goal: String,
    /// One of the token's; its first if left out.
    profile: Option<String>,
    /// Who works, as commits and comments name them; a persona of the project.
    persona: Option<String>,
    /// A model that the operator has configured.
    model: Option<String>,
    /// The ticket that the work is about.
    ticket: Option<String>,
    /// An object of the workflow package to work on.
    target: Option<TargetRequest>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TargetRequest {
    /// `workflow`, `step`, `agent` or `asset`.
    kind: String,
    id: String,
    /// The workflow it is in, where that does not follow from `id`.
    workflow: Option<String>,
    /// It is to be made; otherwise it is there, and to be made better.
    #[serde(default)]
    create: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MessageRequest {
    text: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkRequest {
    /// How many turns are taken along; all if left out.
    turns: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemberRequest {
    /// `owner`, `editor` or `viewer`.
    role: String,
}

/// What can be done with the project; a host of calls alone does nothing else.
fn work(asked: &Asked) -> Result<&dyn Work, ToolError> {
    let missing = || ToolError::new(ErrorKind::NotFound, "this server only makes calls");
    asked.principal.project.work.as_deref().ok_or_else(missing)
}

fn user(asked: &Asked) -> &str {
    &asked.principal.grant.user
}

/// Calls a tool as the token's agent.
async fn by_agent(asked: &Asked, tool: &str, arguments: Value) -> Result<Reply, ToolError> {
    let grant = &asked.principal.grant;
    let caller = Caller {
        kind: CallerKind::Model,
        door: DOOR.into(),
        profile: asked.principal.granted_profile(None)?.to_owned(),
        persona: grant.name.clone(),
    };
    Ok(called(asked, tool, arguments, Some(asked.principal.session()), caller).await)
}

/// Calls a tool as the token's user, a person.
async fn by_person(asked: &Asked, tool: &str, arguments: Value) -> Reply {
    let caller = Caller {
        kind: CallerKind::Person,
        door: DOOR.into(),
        profile: PROFILE_OF_PEOPLE.to_owned(),
        persona: asked.principal.grant.user.clone(),
    };
    called(asked, tool, arguments, None, caller).await
}

async fn called(asked: &Asked, tool: &str, arguments: Value, session_id: Option<String>, caller: Caller) -> Reply {
    let project = &asked.principal.project;
    let call = Call {
        id: project.ids.call_id(),
        tool: tool.to_owned(),
        arguments,
        scope: Scope {
            user_id: asked.principal.grant.user_id,
            project_id: project.id,
            session_id,
            workflow_id: None,
            ticket_id: None,
        },
        caller,
    };
    let hooks = Hooks { origin: asked.origin(), ..Hooks::default() };
    Reply::Outcome(Box::new(project.gate.call(call, hooks).await))
}

async fn export(asked: Asked) -> Result<Reply, ToolError> {
    let archive = work(&asked)?.export(user(&asked)).await?;
    let mut response = Response::new(Body::from(archive.zip));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ZIP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"package.zip\""));
    headers.insert(
        header::ETAG,
        HeaderValue::from_str(&format!("\"{}\"", archive.revision)).map_err(ToolError::internal)?,
    );
    Ok(Reply::Raw(response))
}

async fn import(asked: Asked) -> Result<Reply, ToolError> {
    let replaces = match asked.headers.get(header::IF_MATCH).map(HeaderValue::to_str) {
        None => Replaces::Nothing,
        Some(Ok("*")) => Replaces::Any,
        Some(Ok(tag)) => match tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) {
            Some(revision) => Replaces::Revision(revision.to_owned()),
            None => return Err(no_tag()),
        },
        Some(Err(_)) => return Err(no_tag()),
    };
    data(&work(&asked)?.import(user(&asked), &asked.bytes, replaces).await?)
}

fn no_tag() -> ToolError {
    ToolError::new(ErrorKind::Validation, "`If-Match` is one revision in double quotes, as `ETag` gave it, or `*`")
}

async fn validate_package(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.findings(&asked.bytes).await?)
}

async fn workflows(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.workflows(user(&asked)).await?)
}

async fn changes(asked: Asked) -> Result<Reply, ToolError> {
    let session = asked.query.get("session").map(String::as_str);
    let open_only = asked.query.get("all").is_none_or(|all| all != "true");
    data(&work(&asked)?.changes(user(&asked), session, open_only).await?)
}

async fn stage(mut asked: Asked) -> Result<Reply, ToolError> {
    let StageRequest { change_set } = asked.body()?;
    by_agent(&asked, "builder.change.stage", json!({ "changeSet": change_set })).await
}

/// What is shown of a change set, and its digest.
async fn shown(asked: &Asked, operations: Option<Vec<i64>>) -> Result<PreviewInfo, ToolError> {
    let preview = work(asked)?.preview(user(asked), asked.part("change"), operations).await?;
    let text = canonical_json(&preview).map_err(ToolError::internal)?;
    Ok(PreviewInfo { digest: hex::encode(Sha256::digest(text.as_bytes())), preview })
}

async fn preview(asked: Asked) -> Result<Reply, ToolError> {
    let wrong = || ToolError::new(ErrorKind::Validation, "`operations` are numbers from 0, separated by commas");
    let parse = |text: &String| text.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<i64>, _>>();
    let operations = asked.query.get("operations").map(parse).transpose().map_err(|_| wrong())?;
    data(&shown(&asked, operations).await?)
}

async fn validate_change(asked: Asked) -> Result<Reply, ToolError> {
    let arguments = json!({ "changeSetId": asked.part("change") });
    Ok(by_person(&asked, "builder.change.validate", arguments).await)
}

async fn apply(mut asked: Asked) -> Result<Reply, ToolError> {
    let ApplyRequest { digest, operations, confirm_deletes } = asked.body()?;
    if shown(&asked, operations.clone()).await?.digest != digest {
        let message = "what an apply would do is not what was shown under this digest";
        return Err(ToolError::new(ErrorKind::Conflict, message).hint("look at its preview again"));
    }
    let mut arguments = json!({
        "changeSetId": asked.part("change"), "confirmSource": CONFIRM_SOURCE, "confirmDeletes": confirm_deletes,
    });
    if let Some(operations) = operations {
        arguments["operations"] = json!(operations);
    }
    Ok(by_person(&asked, "builder.change.apply", arguments).await)
}

async fn discard(asked: Asked) -> Result<Reply, ToolError> {
    let arguments = json!({ "changeSetId": asked.part("change") });
    Ok(by_person(&asked, "builder.change.discard", arguments).await)
}

async fn history(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.history(user(&asked)).await?)
}

async fn undo(asked: Asked) -> Result<Reply, ToolError> {
    let moment: i64 = asked
        .part("moment")
        .parse()
        .map_err(|_| ToolError::new(ErrorKind::NotFound, "there is no such number in the history"))?;
    Ok(by_person(&asked, "builder.change.undo", json!({ "moment": moment })).await)
}

async fn start(mut asked: Asked) -> Result<Reply, ToolError> {
    let request: SessionRequest = asked.body()?;
    let profile = asked.principal.granted_profile(request.profile.as_deref())?.to_owned();
    let target = request.target.map(|target| Target {
        kind: target.kind,
        id: target.id,
        workflow: target.workflow,
        is_new: target.create,
    });
    let run = NewRun {
        goal: request.goal,
        profile,
        persona: request.persona,
        model: request.model,
        ticket: request.ticket,
        target,
        origin: asked.origin(),
    };
    data(&work(&asked)?.start(user(&asked), run).await?)
}

/// A session whose profile the token has: with another it would do what its token may not.
async fn own_session(asked: &Asked) -> Result<String, ToolError> {
    let (project, id) = (&asked.principal.project, asked.part("session"));
    let found = project.sessions.get(project.id, id).await?;
    asked.principal.granted_profile(Some(&found.profile))?;
    Ok(found.id)
}

async fn say(mut asked: Asked) -> Result<Reply, ToolError> {
    let MessageRequest { text } = asked.body()?;
    let session = own_session(&asked).await?;
    data(&work(&asked)?.go_on(user(&asked), &session, text).await?)
}

async fn pause(asked: Asked) -> Result<Reply, ToolError> {
    let session = own_session(&asked).await?;
    data(&work(&asked)?.stop(user(&asked), &session, Stop::Pause).await?)
}

async fn cancel(asked: Asked) -> Result<Reply, ToolError> {
    let session = own_session(&asked).await?;
    data(&work(&asked)?.stop(user(&asked), &session, Stop::Cancel).await?)
}

async fn fork(mut asked: Asked) -> Result<Reply, ToolError> {
    let ForkRequest { turns } = asked.body()?;
    let session = own_session(&asked).await?;
    data(&work(&asked)?.fork(user(&asked), &session, turns).await?)
}

async fn set_member(mut asked: Asked) -> Result<Reply, ToolError> {
    let MemberRequest { role } = asked.body()?;
    data(&work(&asked)?.set_member(user(&asked), asked.part("member"), Some(&role)).await?)
}

async fn remove_member(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.set_member(user(&asked), asked.part("member"), None).await?)
}
