//! The part of the API for sessions of agents: those that run on this server, and what each has come to.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::ToolError;

use super::answers::{SessionStep, told};
use super::api_work::{by, work};
use super::envelope::{Reply, data};
use super::events::{self, LAST_EVENT};
use super::routes::{AFTER, Answer, Asked, Input, LIMIT, Method, NOTHING, Route, Takes, run, schema};
use super::token::Right;
use super::work::{Forked, NewRun, SessionInfo, Stop, Target};

/// The operations of this part.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions",
        name: "listSessions",
        summary: "The sessions of agents, the one last worked in first",
        right: Some(Right::Read),
        takes: Takes { query: &[LIMIT], ..NOTHING },
        answer: Answer::Data(schema!(Vec<SessionInfo>)),
        run: run!(sessions),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions",
        name: "startSession",
        summary: "Starts a session of a model, which runs on this server",
        right: Some(Right::Run),
        takes: Takes { body: Some(Input::Json(schema!(SessionRequest))), ..NOTHING },
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(start),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions/{session}",
        name: "getSession",
        summary: "A session of an agent",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(session),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions/{session}/steps",
        name: "listSteps",
        summary: "What a session has come to, step by step",
        right: Some(Right::Read),
        takes: Takes { query: &[AFTER, LIMIT], ..NOTHING },
        answer: Answer::Data(schema!(Vec<SessionStep>)),
        run: run!(steps),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions/{session}/events",
        name: "sessionEvents",
        summary: "The steps of a session as they are written, as server-sent events. `Last-Event-ID` or `after` go on after a step; without \
                  them, it begins with the first",
        right: Some(Right::Read),
        takes: Takes { query: &[AFTER], headers: &[LAST_EVENT], ..NOTHING },
        answer: Answer::Events(schema!(SessionStep)),
        run: run!(events::steps),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/messages",
        name: "saySession",
        summary: "Says something to a session of the token's user, and goes on with it. One at work hears it before its next turn; where nothing \
                  is said, the session goes on as it was",
        right: Some(Right::Run),
        takes: Takes { body: Some(Input::Json(schema!(MessageRequest))), ..NOTHING },
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(say),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/resume",
        name: "resumeSession",
        summary: "Goes on with a session of the token's user as it was",
        right: Some(Right::Run),
        takes: NOTHING,
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(resume),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/pause",
        name: "pauseSession",
        summary: "Stops a session after the call under way, wherever it runs",
        right: Some(Right::Run),
        takes: NOTHING,
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(pause),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/cancel",
        name: "cancelSession",
        summary: "Ends a session for good, wherever it runs",
        right: Some(Right::Run),
        takes: NOTHING,
        answer: Answer::Data(schema!(SessionInfo)),
        run: run!(cancel),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/sessions/{session}/fork",
        name: "forkSession",
        summary: "Begins another session with all, or the first turns, of what one has come to",
        right: Some(Right::Run),
        takes: Takes { body: Some(Input::Json(schema!(ForkRequest))), ..NOTHING },
        answer: Answer::Data(schema!(Forked)),
        run: run!(fork),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "goal": "Shorten the first step", "target": { "kind": "step", "id": "scope", "workflow": "main" } }))]
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
    /// Files and folders of the workspace that the agent looks at first, as paths from its root.
    #[serde(default)]
    files: Vec<String>,
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

async fn sessions(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&told::<_, SessionInfo>(project.sessions.list(project.id, asked.limit()?).await?))
}

async fn session(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&SessionInfo::from(project.sessions.get(project.id, asked.part("session")).await?))
}

async fn steps(asked: Asked) -> Result<Reply, ToolError> {
    let (project, after) = (&asked.principal.project, asked.number("after")?.unwrap_or(-1));
    // Of a session that is not there, there is no list.
    let session = project.sessions.get(project.id, asked.part("session")).await?;
    data(&told::<_, SessionStep>(project.steps(&session.id, after, asked.limit()?).await?))
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
        files: request.files,
        target,
        origin: asked.origin(),
    };
    data(&work(&asked)?.start(by(&asked), run).await?)
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
    data(&work(&asked)?.go_on(by(&asked), &session, text).await?)
}

async fn resume(asked: Asked) -> Result<Reply, ToolError> {
    let session = own_session(&asked).await?;
    data(&work(&asked)?.go_on(by(&asked), &session, None).await?)
}

async fn pause(asked: Asked) -> Result<Reply, ToolError> {
    let session = own_session(&asked).await?;
    data(&work(&asked)?.stop(by(&asked), &session, Stop::Pause).await?)
}

async fn cancel(asked: Asked) -> Result<Reply, ToolError> {
    let session = own_session(&asked).await?;
    data(&work(&asked)?.stop(by(&asked), &session, Stop::Cancel).await?)
}

async fn fork(mut asked: Asked) -> Result<Reply, ToolError> {
    let ForkRequest { turns } = asked.body()?;
    let session = own_session(&asked).await?;
    data(&work(&asked)?.fork(by(&asked), &session, turns).await?)
}
