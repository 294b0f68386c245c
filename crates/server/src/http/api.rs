//! What the API does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{
    Call, CallId, Caller, CallerKind, ErrorKind, Outcome, Scope, ToolError, ToolSummary, canonical_json,
};
use toolhost_host::{Decision, Hooks, PERMIT_LIVES_MS_DEFAULT, Person, Standing, ask_id, ask_number};
use toolhost_store::{Claim, Filter, KeyedCall};

use super::audit_row::AuditRow;
use super::auth::Principal;
use super::envelope::{Reply, data, told};
use super::events;
use super::projects::OpenProject;
use super::routes::{Asked, DOOR, Input, Method, QueryName, Route, run};
use super::token::Right;

/// The header with the number that a caller chooses for a call.
const KEY: &str = "idempotency-key";
/// How often it is looked for the answer of a call that is waited for.
const KEYED_PAUSE: Duration = Duration::from_millis(100);
/// How long it is tried to store the answer of such a call.
const KEYED_STORE_MAX: Duration = Duration::from_secs(10);
/// Rows of a page where nobody says how many.
const PAGE_DEFAULT: i64 = 50;
/// Most rows of a page.
const PAGE_MAX: i64 = 500;

const LIMIT: QueryName = QueryName { name: "limit", description: "Most rows of the page, 1 to 500", is_number: true };
const AFTER: QueryName =
    QueryName { name: "after", description: "The number of the last row of the page before", is_number: true };

/// Every operation.
pub(crate) fn routes() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(super::api_work::ROUTES)
}

/// The operations of this part.
const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/openapi.json",
        name: "openapi",
        summary: "This API as an OpenAPI 3.1 document",
        right: None,
        query: &[],
        body: None,
        answer: None,
        run: run!(document),
    },
    Route {
        method: Method::Get,
        path: "/projects",
        name: "listProjects",
        summary: "The projects that the token opens",
        right: None,
        query: &[],
        body: None,
        answer: Some(|| schema_for!(Vec<ProjectInfo>).into()),
        run: run!(projects),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}",
        name: "getProject",
        summary: "A project, and what the token may do in it",
        right: None,
        query: &[],
        body: None,
        answer: Some(|| schema_for!(ProjectInfo).into()),
        run: run!(project),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/tools",
        name: "listTools",
        summary: "The tools of a profile, with their schemas",
        right: Some(Right::Call),
        query: &[QueryName {
            name: "profile",
            description: "One of the token's profiles; its first if left out",
            is_number: false,
        }],
        body: None,
        answer: Some(|| schema_for!(Vec<ToolEntry>).into()),
        run: run!(tools),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/calls",
        name: "makeCall",
        summary: "Calls a tool. With an `Idempotency-Key`, a UUID, which becomes the call's number, asking again makes no second call and gets the same answer",
        right: Some(Right::Call),
        query: &[],
        body: Some(Input::Json(|| schema_for!(CallRequest).into())),
        answer: Some(|| json!({ "description": "What the tool's output schema says" })),
        run: run!(make_call),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/asks",
        name: "listAsks",
        summary: "What people are asked and have not answered, the oldest first",
        right: Some(Right::Read),
        query: &[AFTER, LIMIT],
        body: None,
        answer: Some(
            || json!({ "type": "object", "properties": { "asks": { "type": "array" }, "more": { "type": "integer" } } }),
        ),
        run: run!(asks),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/asks/{ask}",
        name: "getAsk",
        summary: "What a person is asked, whole: who, why, the effect, which answers there are, and what became of it",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| schema_for!(AskInfo).into()),
        run: run!(ask),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/asks/{ask}/decision",
        name: "decide",
        summary: "Answers an ask in the name of the token's user, for exactly what its digest says was shown",
        right: Some(Right::Approve),
        query: &[],
        body: Some(Input::Json(|| schema_for!(DecisionRequest).into())),
        answer: Some(|| schema_for!(AskInfo).into()),
        run: run!(decide),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/audit",
        name: "listAudit",
        summary: "The rows of the audit, the first first",
        right: Some(Right::Read),
        query: &[
            AFTER,
            LIMIT,
            QueryName { name: "tool", description: "Only of this tool", is_number: false },
            QueryName { name: "call", description: "Only of this call", is_number: false },
            QueryName { name: "session", description: "Only of this session", is_number: false },
        ],
        body: None,
        answer: Some(|| schema_for!(Vec<AuditRow>).into()),
        run: run!(audit),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/audit/verification",
        name: "verifyAudit",
        summary: "Whether each row of the audit is as it was written, and none is missing",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| schema_for!(Verification).into()),
        run: run!(verify),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/events",
        name: "events",
        summary: "The rows of the audit and the states and steps of sessions as they are written, as server-sent events. `Last-Event-ID` or \
                  `after` go on after an event; without them, it begins with what comes next",
        right: Some(Right::Read),
        query: &[AFTER],
        body: None,
        answer: None,
        run: run!(events::stream),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions",
        name: "listSessions",
        summary: "The sessions of agents, the one last worked in first",
        right: Some(Right::Read),
        query: &[LIMIT],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(sessions),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions/{session}",
        name: "getSession",
        summary: "A session of an agent",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(session),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/sessions/{session}/steps",
        name: "listSteps",
        summary: "What a session has come to, step by step",
        right: Some(Right::Read),
        query: &[AFTER, LIMIT],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(steps),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/members",
        name: "listMembers",
        summary: "Who belongs to the project, and as what",
        right: Some(Right::Read),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(members),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/tokens",
        name: "listTokens",
        summary: "The tokens of the project, without their secrets",
        right: Some(Right::Manage),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "array", "items": { "type": "object" } })),
        run: run!(tokens),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/tokens/{token}",
        name: "revokeToken",
        summary: "Ends a token for good",
        right: Some(Right::Manage),
        query: &[],
        body: None,
        answer: Some(|| json!({ "type": "object" })),
        run: run!(revoke),
    },
];

/// A project, as a token sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProjectInfo {
    /// Names it in addresses.
    key: String,
    name: String,
    /// What the token's user is there: `owner`, `editor` or `viewer`.
    role: Option<String>,
    /// The token's profiles.
    profiles: Vec<String>,
    /// What the token is for: `call`, `read`, `approve`, `manage`.
    rights: Vec<String>,
    /// The fence around commands there: `full`, `landlock`, `off` or `refused`.
    fence: String,
}

/// A tool.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolEntry {
    name: String,
    /// The same without dots.
    wire_name: String,
    title: String,
    description: String,
    /// The worst that a call can do: `reads`, `writes`, `executes`, `reaches` or `asks`.
    effect: Value,
    input_schema: Value,
    /// Of `data` in the answer to a call.
    output_schema: Value,
}

impl ToolEntry {
    fn of(tool: ToolSummary) -> Self {
        let ToolSummary { name, wire_name, title, description, effect, input_schema, output_schema, .. } = tool;
        let effect = serde_json::to_value(effect).unwrap_or_default();
        Self { name, wire_name, title, description, effect, input_schema, output_schema }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CallRequest {
    /// The tool's name: `file.read` or `file_read`.
    tool: String,
    /// Its arguments.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    arguments: Value,
    /// One of the token's profiles; its first if left out.
    profile: Option<String>,
    /// The ticket that the work is about.
    ticket: Option<String>,
}

/// What a person is asked.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AskInfo {
    /// `ask-7`
    id: String,
    /// `open`, `answered`, `used`, `withdrawn` or `expired`.
    state: Value,
    /// `approval`, `review` or `question`.
    kind: Value,
    tool: String,
    /// All of it as a text in which nothing deceives, in pages.
    pages: Vec<String>,
    /// Of what is shown: a decision names it.
    digest: String,
    /// The words it can be answered with.
    answers: Vec<String>,
    /// A rule that would allow this and its like, by argument.
    rule: Option<BTreeMap<String, String>>,
    answer: Option<Value>,
    answered_by: Option<String>,
    /// What became of the call that used the answer.
    outcome: Option<Value>,
    session_id: Option<String>,
    created_at_ms: i64,
    expires_at_ms: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DecisionRequest {
    /// One of the `answers` of the ask.
    decision: String,
    /// What goes with it: the reason of a no, the text of an edit, or an edited call's arguments as JSON.
    text: Option<String>,
    /// The `digest` of the ask that was shown.
    digest: String,
    /// Allows calls like this one for a while, too.
    rule: Option<RuleRequest>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RuleRequest {
    /// Argument to glob: the `rule` of the ask, or a stricter one.
    conditions: BTreeMap<String, String>,
    /// How long it holds; eight hours if left out.
    seconds: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Verification {
    rows: u64,
    /// The last row, and its hash.
    seq: i64,
    hash: String,
    /// What is wrong; empty if the chain holds.
    problems: Vec<String>,
}

fn person(principal: &Principal) -> Person {
    let (project_id, grant) = (principal.project.id, &principal.grant);
    Person { user_id: grant.user_id, project_id, name: grant.user.clone() }
}

async fn document(asked: Asked) -> Result<Reply, ToolError> {
    Ok(Reply::Kept(StatusCode::OK, asked.document.to_string()))
}

async fn about(principal: &Principal) -> Result<ProjectInfo, ToolError> {
    let (project, grant) = (&principal.project, &principal.grant);
    let role = project.people.role(project.id, grant.user_id).await?;
    Ok(ProjectInfo {
        key: project.key.clone(),
        name: project.name.clone(),
        role: role.map(|role| role.as_str().to_owned()),
        profiles: grant.profiles.clone(),
        rights: grant.rights.clone(),
        fence: project.gate.fence().await.to_owned(),
    })
}

async fn projects(asked: Asked) -> Result<Reply, ToolError> {
    data(&[about(&asked.principal).await?])
}

async fn project(asked: Asked) -> Result<Reply, ToolError> {
    data(&about(&asked.principal).await?)
}

async fn tools(asked: Asked) -> Result<Reply, ToolError> {
    let gate = &asked.principal.project.gate;
    let name = asked.principal.granted_profile(asked.query.get("profile").map(String::as_str))?;
    let profile = gate.profile(name).map_err(ToolError::internal)?;
    let tools: Vec<_> = gate.tools_for_models(profile).map(|tool| ToolEntry::of(tool.summary())).collect();
    data(&tools)
}

async fn make_call(mut asked: Asked) -> Result<Reply, ToolError> {
    let request: CallRequest = asked.body()?;
    let (project, principal) = (&asked.principal.project, &asked.principal);
    let profile = principal.granted_profile(request.profile.as_deref())?.to_owned();
    let key = asked.headers.get(KEY).map(|key| key.to_str().ok().and_then(call_id));
    let key = match key {
        Some(None) => {
            let message = "the Idempotency-Key is the number of the call: a UUID in lower case";
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
        key => key.flatten(),
    };
    let call = Call {
        id: key.clone().unwrap_or_else(|| project.ids.call_id()),
        tool: request.tool,
        arguments: request.arguments,
        scope: Scope {
            user_id: principal.grant.user_id,
            project_id: project.id,
            session_id: Some(principal.session()),
            workflow_id: None,
            ticket_id: request.ticket,
        },
        caller: Caller { kind: CallerKind::Model, door: DOOR.into(), profile, persona: principal.grant.name.clone() },
    };
    match key {
        // Whoever goes away wants it no more.
        None => {
            let cancel = CancellationToken::new();
            let _gone = cancel.clone().drop_guard();
            let outcome = project.gate.call(call, Hooks { cancel, ..Hooks::default() }).await;
            Ok(Reply::Outcome(Box::new(outcome)))
        }
        // Its caller may come back for the answer: it goes on without them.
        Some(_) => {
            let (principal, wait) = (Arc::clone(principal), asked.limits.keyed_wait);
            tokio::spawn(async move { make_keyed(&principal, call, wait).await }).await.map_err(ToolError::internal)?
        }
    }
}

/// The number of a call that its caller has chosen: a UUID as RFC 9562 writes it, so that no two callers choose the same.
fn call_id(text: &str) -> Option<CallId> {
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    (lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| is_hex(part))).then(|| CallId::new(text))
}

async fn make_keyed(principal: &Principal, call: Call, wait: Duration) -> Result<Reply, ToolError> {
    let project = &principal.project;
    let asked_for = json!({
        "token": principal.grant.id, "tool": call.tool, "arguments": call.arguments, "profile": call.caller.profile,
        "ticket": call.scope.ticket_id,
    });
    let digest = hex::encode(Sha256::digest(canonical_json(&asked_for).map_err(ToolError::internal)?));
    let keyed = KeyedCall { project_id: project.id, call_id: call.id.to_string(), digest };
    match settled(project, &keyed, wait).await? {
        Claim::First => {
            let outcome = project.gate.call(call, Hooks::default()).await;
            store_answer(project, &keyed, &outcome).await;
            Ok(Reply::Outcome(Box::new(outcome)))
        }
        Claim::Answered { status, answer } => {
            Ok(Reply::Kept(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), answer))
        }
        Claim::Begun => Err(not_kept(principal, &keyed.call_id).await?),
        Claim::OfAnother => {
            Err(ToolError::new(ErrorKind::Conflict, "this Idempotency-Key is the number of another call")
                .hint("choose a new UUID for each call"))
        }
    }
}

/// Stores an answer before it is given, so that it is given again to whoever asks again. A database that is restarted is waited for.
async fn store_answer(project: &OpenProject, keyed: &KeyedCall, outcome: &Outcome) {
    let (status, text) = told(outcome);
    let until = Instant::now() + KEYED_STORE_MAX;
    while let Err(error) = project.keyed_calls.answered(keyed, status.as_u16(), &text).await {
        if Instant::now() >= until {
            tracing::error!(%error, call = %keyed.call_id, "the answer of a call with an Idempotency-Key could not be stored");
            return;
        }
        tokio::time::sleep(KEYED_PAUSE).await;
    }
}

/// Whether a call with a key may be made, or what it came to. One that is under way is waited for.
async fn settled(project: &OpenProject, keyed: &KeyedCall, wait: Duration) -> Result<Claim, ToolError> {
    let mut claim = project.keyed_calls.claim(keyed).await?;
    let until = Instant::now() + wait;
    while claim == Claim::Begun && Instant::now() < until {
        if let Some("unknown" | "finished") = last_event(project, &keyed.call_id).await?.as_deref() {
            // Its answer may be written a moment after its row.
            tokio::time::sleep(KEYED_PAUSE).await;
            return Ok(project.keyed_calls.look(keyed).await?);
        }
        tokio::time::sleep(KEYED_PAUSE).await;
        claim = project.keyed_calls.look(keyed).await?;
    }
    Ok(claim)
}

/// The event of a call's last row in the audit.
async fn last_event(project: &OpenProject, call: &str) -> Result<Option<String>, ToolError> {
    let filter = Filter { call: Some(call.to_owned()), limit: 1, last: true, ..Filter::default() };
    let rows = project.reader.audit(project.id, &filter).await?;
    Ok(rows.into_iter().next().map(|row| row.event))
}

/// What is known of a call that was begun and whose answer is not kept.
async fn not_kept(principal: &Principal, call: &str) -> Result<ToolError, ToolError> {
    Ok(match last_event(&principal.project, call).await?.as_deref() {
        Some("unknown") => ToolError::new(
            ErrorKind::Unknown,
            "the host ended during this call, and whether it has happened is not known",
        )
        .hint("look before it is made again, with another key"),
        Some("finished") => {
            ToolError::new(ErrorKind::Conflict, "this call has ended, and its answer was lost with its host")
                .hint("the audit has its row")
        }
        _ => ToolError::new(ErrorKind::Conflict, "this call is under way").hint("ask again in a moment"),
    })
}

fn limit(asked: &Asked) -> Result<i64, ToolError> {
    let limit = asked.number("limit")?.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(ToolError::new(ErrorKind::Validation, format!("`limit` goes from 1 to {PAGE_MAX}")))
}

async fn asks(asked: Asked) -> Result<Reply, ToolError> {
    let (project, after) = (&asked.principal.project, asked.number("after")?.unwrap_or(0));
    data(&project.gate.queue().asks().open_after(project.id, after, limit(&asked)?).await?)
}

async fn ask_info(principal: &Principal, id: &str) -> Result<AskInfo, ToolError> {
    let unknown = || ToolError::new(ErrorKind::NotFound, "there is no such ask");
    let number = ask_number(id).ok_or_else(unknown)?;
    let (ask, shown) = principal.project.gate.queue().get(principal.project.id, number).await?;
    let json = |value: Result<Value, serde_json::Error>| value.map_err(ToolError::internal);
    Ok(AskInfo {
        id: ask_id(ask.number),
        state: json(serde_json::to_value(ask.state))?,
        kind: json(serde_json::to_value(ask.kind))?,
        tool: ask.tool,
        pages: shown.pages(),
        digest: shown.digest(),
        answers: shown.answers().iter().map(|word| (*word).to_owned()).collect(),
        rule: shown.rule,
        answer: ask.answer,
        answered_by: ask.answered_by,
        outcome: ask.outcome,
        session_id: ask.session_id,
        created_at_ms: ask.created_at_ms,
        expires_at_ms: ask.expires_at_ms,
    })
}

async fn ask(asked: Asked) -> Result<Reply, ToolError> {
    data(&ask_info(&asked.principal, asked.part("ask")).await?)
}

async fn decide(mut asked: Asked) -> Result<Reply, ToolError> {
    let request: DecisionRequest = asked.body()?;
    let principal = &asked.principal;
    let (queue, person) = (principal.project.gate.queue(), person(principal));
    let id = asked.part("ask");
    let number = ask_number(id).ok_or_else(|| ToolError::new(ErrorKind::NotFound, "there is no such ask"))?;
    let (ask, shown) = queue.get(person.project_id, number).await?;
    if shown.digest() != request.digest {
        return Err(ToolError::new(ErrorKind::Conflict, "the digest is not that of what this ask shows now")
            .hint("read the ask again and look at it"));
    }
    let answer = shown.answer(&request.decision, request.text)?;
    let rule = request.rule.map(|rule| Standing {
        conditions: rule.conditions,
        lives_ms: rule.seconds.map_or(PERMIT_LIVES_MS_DEFAULT, |seconds| {
            u64::try_from(Duration::from_secs(seconds).as_millis()).unwrap_or(u64::MAX)
        }),
    });
    // The digest stands for all pages.
    queue.saw(&person, &ask, &shown, DOOR).await?;
    queue.decide(&person, number, Decision { answer, rule }, DOOR).await?;
    data(&ask_info(principal, id).await?)
}

async fn audit(asked: Asked) -> Result<Reply, ToolError> {
    let text = |name: &str| asked.query.get(name).cloned();
    let filter = Filter {
        after_seq: asked.number("after")?.unwrap_or(0),
        tool: text("tool"),
        session: text("session"),
        call: text("call"),
        limit: limit(&asked)?,
        ..Filter::default()
    };
    let project = &asked.principal.project;
    let rows: Vec<_> = project.reader.audit(project.id, &filter).await?.into_iter().map(AuditRow::of).collect();
    data(&rows)
}

async fn verify(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    let verdict = project.reader.verify_audit(project.id).await?;
    let problems = verdict.problems.iter().map(|problem| format!("row {}: {}", problem.seq, problem.what)).collect();
    data(&Verification { rows: verdict.rows, seq: verdict.seq, hash: verdict.hash, problems })
}

async fn sessions(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&project.sessions.list(project.id, limit(&asked)?).await?)
}

async fn session(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&project.sessions.get(project.id, asked.part("session")).await?)
}

async fn steps(asked: Asked) -> Result<Reply, ToolError> {
    let (project, after) = (&asked.principal.project, asked.number("after")?.unwrap_or(0));
    data(&project.sessions.steps(project.id, asked.part("session"), after, limit(&asked)?).await?)
}

async fn members(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&project.people.members(project.id).await?)
}

async fn need_owner(principal: &Principal) -> Result<(), ToolError> {
    let project = &principal.project;
    match project.people.role(project.id, principal.grant.user_id).await? {
        Some(toolhost_store::Role::Owner) => Ok(()),
        _ => Err(ToolError::new(ErrorKind::Permission, "only an owner of this project may do that")),
    }
}

async fn tokens(asked: Asked) -> Result<Reply, ToolError> {
    need_owner(&asked.principal).await?;
    let project = &asked.principal.project;
    data(&project.tokens.list(project.id).await?)
}

async fn revoke(asked: Asked) -> Result<Reply, ToolError> {
    need_owner(&asked.principal).await?;
    let (project, id) = (&asked.principal.project, asked.part("token"));
    if project.tokens.revoke(project.id, id).await? {
        return data(&json!({ "id": id, "revoked": true }));
    }
    Err(ToolError::new(ErrorKind::NotFound, "there is no such token, or it is revoked"))
}
