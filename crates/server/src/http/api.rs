//! What the API does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{
    Call, CallId, Caller, CallerKind, Effect, ErrorKind, Outcome, Scope, ToolError, ToolSummary, canonical_json,
};
use toolhost_host::{Decision, Hooks, PERMIT_LIVES_MS_DEFAULT, Person, Standing, ask_number};
use toolhost_store::{AskKind, Claim, Filter, KeyedCall};

use super::answers::{AskInfo, AskList, MemberInfo, TokenInfo, no_ask, told};
use super::audit_row::AuditRow;
use super::auth::Principal;
use super::envelope::{Reply, data, told as told_outcome};
use super::events::{self, LAST_EVENT};
use super::projects::OpenProject;
use super::routes::{
    AFTER, Answer, Asked, DOOR, Input, Kind, LIMIT, Method, NOTHING, Parameter, Route, Takes, run, schema,
};
use super::token::Right;
use super::told::Event;

/// The header with the number that a caller chooses for a call.
const KEY: &str = "idempotency-key";
/// How often it is looked for the answer of a call that is waited for.
const KEYED_PAUSE: Duration = Duration::from_millis(100);
/// No user has this number.
const NOBODY: i64 = -1;
const ASK_KINDS: &[&str] = &["approval", "review", "question"];
const ASK_KIND: Parameter =
    Parameter { name: "kind", description: "Only of this kind", kind: Kind::Words(ASK_KINDS), default: None };
const ALL_ASKS: Parameter = Parameter::flag("all", "What has ended, too, the newest first; `after` does not count");
const IDEMPOTENCY_KEY: Parameter = Parameter {
    name: "Idempotency-Key",
    description: "The number of the call: asking again with it makes no second one",
    kind: Kind::Uuid,
    default: None,
};
/// How long it is tried to store the answer of such a call.
const KEYED_STORE_MAX: Duration = Duration::from_secs(10);

/// Every operation.
pub(crate) fn routes() -> impl Iterator<Item = &'static Route> {
    [
        ROUTES,
        super::api_work::ROUTES,
        super::api_webhooks::ROUTES,
        super::api_sessions::ROUTES,
        super::api_reads::ROUTES,
    ]
    .into_iter()
    .flatten()
}

/// The operations of this part.
const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/openapi.json",
        name: "openapi",
        summary: "This API as an OpenAPI 3.1 document",
        right: None,
        takes: NOTHING,
        answer: Answer::Document,
        run: run!(document),
    },
    Route {
        method: Method::Get,
        path: "/projects",
        name: "listProjects",
        summary: "The projects that the token opens",
        right: None,
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<ProjectInfo>)),
        run: run!(projects),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}",
        name: "getProject",
        summary: "A project, and what the token may do in it",
        right: None,
        takes: NOTHING,
        answer: Answer::Data(schema!(ProjectInfo)),
        run: run!(project),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/tools",
        name: "listTools",
        summary: "The tools of a profile, with their schemas",
        right: Some(Right::Call),
        takes: Takes {
            query: &[Parameter::text("profile", "One of the token's profiles; its first if left out")],
            ..NOTHING
        },
        answer: Answer::Data(schema!(Vec<ToolEntry>)),
        run: run!(tools),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/calls",
        name: "makeCall",
        summary: "Calls a tool. With an `Idempotency-Key`, a UUID, which becomes the call's number, asking again makes no second call and gets the same answer",
        right: Some(Right::Call),
        takes: Takes { headers: &[IDEMPOTENCY_KEY], body: Some(Input::Json(schema!(CallRequest))), ..NOTHING },
        answer: Answer::Call(schema!(Value)),
        run: run!(make_call),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/asks",
        name: "listAsks",
        summary: "What people are asked and have not answered, the oldest first: approvals, reviews and questions",
        right: Some(Right::Read),
        takes: Takes { query: &[AFTER, LIMIT, ASK_KIND, ALL_ASKS], ..NOTHING },
        answer: Answer::Data(schema!(AskList)),
        run: run!(asks),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/asks/{ask}",
        name: "getAsk",
        summary: "What a person is asked, whole: who, why, the effect, which answers there are, and what became of it",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(AskInfo)),
        run: run!(ask),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/asks/{ask}/decision",
        name: "decide",
        summary: "Answers an ask in the name of the token's user, for exactly what its digest says was shown",
        right: Some(Right::Approve),
        takes: Takes { body: Some(Input::Json(schema!(DecisionRequest))), ..NOTHING },
        answer: Answer::Data(schema!(AskInfo)),
        run: run!(decide),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/audit",
        name: "listAudit",
        summary: "The rows of the audit, the first first",
        right: Some(Right::Read),
        takes: Takes {
            query: &[
                AFTER,
                LIMIT,
                Parameter::text("tool", "Only of this tool"),
                Parameter::text("call", "Only of this call"),
                Parameter::text("session", "Only of this session"),
                Parameter::text("by", "Only what this user, or an agent in their name, has done"),
                Parameter::flag("failed", "Only calls that failed"),
                Parameter::flag("changes", "Only calls that may have changed something, and decisions"),
                Parameter::number("since", "Only what was written since this time, milliseconds since 1970"),
            ],
            ..NOTHING
        },
        answer: Answer::Data(schema!(Vec<AuditRow>)),
        run: run!(audit),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/audit/verification",
        name: "verifyAudit",
        summary: "Whether each row of the audit is as it was written, and none is missing",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(Verification)),
        run: run!(verify),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/events",
        name: "events",
        summary: "The rows of the audit and the states and steps of sessions as they are written, as server-sent events. `Last-Event-ID` or \
                  `after` go on after an event; without them, it begins with what comes next",
        right: Some(Right::Read),
        takes: Takes { query: &[AFTER], headers: &[LAST_EVENT], ..NOTHING },
        answer: Answer::Events(schema!(Event)),
        run: run!(events::rows),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/members",
        name: "listMembers",
        summary: "Who belongs to the project, and as what",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<MemberInfo>)),
        run: run!(members),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/tokens",
        name: "listTokens",
        summary: "The tokens of the project, without their secrets",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<TokenInfo>)),
        run: run!(tokens),
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
    /// The worst that a call can do.
    effect: Effect,
    input_schema: Value,
    /// Of `data` in the answer to a call.
    output_schema: Value,
}

impl ToolEntry {
    fn of(tool: ToolSummary) -> Self {
        let ToolSummary { name, wire_name, title, description, effect, input_schema, output_schema, .. } = tool;
        Self { name, wire_name, title, description, effect, input_schema, output_schema }
    }
}

fn no_arguments() -> Value {
    json!({})
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "tool": "file.read", "arguments": { "path": "README.md" } }))]
struct CallRequest {
    /// The tool's name: `file.read` or `file_read`.
    tool: String,
    /// Its arguments.
    #[serde(default = "no_arguments")]
    #[schemars(with = "Map<String, Value>")]
    arguments: Value,
    /// One of the token's profiles; its first if left out.
    profile: Option<String>,
    /// The ticket that the work is about.
    ticket: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "decision": "deny", "text": "not on a Friday", "digest": "9f2c…" }))]
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
    /// Argument to glob: the `rule` of the ask, or a stricter one. It has each argument that the `rule` of the ask has.
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
    let hooks = Hooks { origin: asked.origin(), ..Hooks::default() };
    match key {
        // Whoever goes away wants it no more.
        None => {
            let cancel = CancellationToken::new();
            let _gone = cancel.clone().drop_guard();
            let outcome = project.gate.call(call, Hooks { cancel, ..hooks }).await;
            Ok(Reply::Outcome(Box::new(outcome)))
        }
        // Its caller may come back for the answer: it goes on without them.
        Some(_) => {
            let (principal, wait) = (Arc::clone(principal), asked.limits.keyed_wait);
            tokio::spawn(async move { make_keyed(&principal, call, hooks, wait).await })
                .await
                .map_err(ToolError::internal)?
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

async fn make_keyed(principal: &Principal, call: Call, hooks: Hooks, wait: Duration) -> Result<Reply, ToolError> {
    let project = &principal.project;
    let asked_for = json!({
        "token": principal.grant.id, "tool": call.tool, "arguments": call.arguments, "profile": call.caller.profile,
        "ticket": call.scope.ticket_id,
    });
    let digest = hex::encode(Sha256::digest(canonical_json(&asked_for).map_err(ToolError::internal)?));
    let keyed = KeyedCall { project_id: project.id, call_id: call.id.to_string(), digest };
    match settled(project, &keyed, wait).await? {
        Claim::First => {
            let outcome = project.gate.call(call, hooks).await;
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
    let (status, text) = told_outcome(outcome);
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

fn ask_kind(word: &str) -> Result<AskKind, ToolError> {
    let wrong = |_| ToolError::new(ErrorKind::Validation, format!("a kind of asks is one of {}", ASK_KINDS.join(", ")));
    serde_json::from_value(word.into()).map_err(wrong)
}

async fn asks(asked: Asked) -> Result<Reply, ToolError> {
    let (project, after, limit) = (&asked.principal.project, asked.number("after")?.unwrap_or(0), asked.limit()?);
    let kind = asked.query.get(ASK_KIND.name).map(|kind| ask_kind(kind)).transpose()?;
    let asks = project.gate.queue().asks();
    let page = match asked.flag("all")? {
        true => asks.newest_of(project.id, kind, limit).await?,
        false => asks.open_of(project.id, kind, after, limit).await?,
    };
    data(&AskList::from(page))
}

async fn ask_info(principal: &Principal, id: &str) -> Result<AskInfo, ToolError> {
    let number = ask_number(id).ok_or_else(no_ask)?;
    let (ask, shown) = principal.project.gate.queue().get(principal.project.id, number).await?;
    // Who decides nothing needs no secret: neither a token without the right nor a user who may not answer.
    let queue = principal.project.gate.queue();
    let may_answer = principal.has(Right::Approve) && queue.is_approver(&person(principal)).await?;
    let digest = shown.digest();
    if may_answer {
        return Ok(AskInfo::of(ask, shown, digest));
    }
    let (mut ask, gate) = (ask, &principal.project.gate);
    [&mut ask.answer, &mut ask.outcome].into_iter().flatten().for_each(|said| gate.redact(said));
    Ok(AskInfo::of(ask, gate.for_lookers(&shown), digest))
}

async fn ask(asked: Asked) -> Result<Reply, ToolError> {
    data(&ask_info(&asked.principal, asked.part("ask")).await?)
}

async fn decide(mut asked: Asked) -> Result<Reply, ToolError> {
    let request: DecisionRequest = asked.body()?;
    let principal = &asked.principal;
    let (queue, person) = (principal.project.gate.queue(), person(principal));
    let id = asked.part("ask");
    let number = ask_number(id).ok_or_else(no_ask)?;
    let (ask, shown) = queue.get(person.project_id, number).await?;
    if shown.digest() != request.digest {
        return Err(ToolError::new(ErrorKind::Conflict, "the digest is not that of what this ask shows now")
            .hint("read the ask again and look at it"));
    }
    let answer = shown.answer(&request.decision, request.text)?;
    principal.project.gate.edit_rules().check(&shown, &answer).await?;
    if let (Some(rule), Some(own)) = (&request.rule, &shown.rule)
        && let Some(missing) = own.keys().find(|name| !rule.conditions.contains_key(*name))
    {
        let message = format!("the rule says nothing of `{missing}`, so it would allow any");
        return Err(ToolError::new(ErrorKind::Validation, message).hint("begin with the `rule` of the ask"));
    }
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
    let people = &asked.principal.project.people;
    let user = match asked.query.get("by") {
        // Nobody learns of users that are not of the project: they have done nothing here.
        Some(name) => Some(people.user(name).await?.unwrap_or(NOBODY)),
        None => None,
    };
    let filter = Filter {
        after_seq: asked.number("after")?.unwrap_or(0),
        tool: text("tool"),
        session: text("session"),
        call: text("call"),
        user,
        failed_only: asked.flag("failed")?,
        changes_only: asked.flag("changes")?,
        since_ms: asked.number("since")?,
        limit: asked.limit()?,
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

async fn members(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    data(&told::<_, MemberInfo>(project.people.members(project.id).await?))
}

async fn tokens(asked: Asked) -> Result<Reply, ToolError> {
    asked.principal.need_owner().await?;
    let project = &asked.principal.project;
    data(&told::<_, TokenInfo>(project.tokens.list(project.id).await?))
}
