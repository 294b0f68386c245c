//! The part of the API for what people do: packages, changes, members, tokens.
//!
//! What changes a package is a call of its tool through the gate: staging by the token's agent, the rest by its user as a person. What is applied is what was previewed: a
//! preview has a digest, and an apply that names another is refused.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_builder::packages::{ChangeSetLine, Deed, WorkflowLine};
use toolhost_builder::tools::answer_schema;
use toolhost_contract::{CONFIRM_SOURCE, Call, Caller, CallerKind, ErrorKind, Scope, ToolError};
use toolhost_host::Hooks;
use toolhost_store::{QUOTA_MINUTE_MAX, QUOTA_OPEN_MAX, Quota};

use super::answers::TokenRevoked;
use super::by_person::Doer;
use super::envelope::{Reply, data};
use super::routes::{Answer, Asked, DOOR, Input, Method, NOTHING, Parameter, Route, Takes, run, schema};
use super::token::Right;
use super::work::{
    By, ChangePreview, Imported, MemberChanged, NewRole, PackageFindings, Replaces, TokenMade, TokenWish, Work,
};

/// The content type of a package.
pub(crate) const ZIP: &str = "application/zip";

/// How long a token holds where nobody says, and the longest: seconds.
const TOKEN_LIVES: u64 = 90 * 24 * 3600;
const TOKEN_LIVES_MAX: u64 = 3650 * 24 * 3600;

const IF_MATCH: Parameter = Parameter::text("If-Match", "The `ETag` of the package that is replaced, or `*`");
const OPERATIONS: Parameter =
    Parameter::text("operations", "Positions of operations, from 0, separated by commas; all if left out");

/// The operations of this part.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/projects/{project}/package",
        name: "exportPackage",
        summary: "The workflow package as a zip. Its `ETag` is its revision",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Package,
        run: run!(export),
    },
    Route {
        method: Method::Put,
        path: "/projects/{project}/package",
        name: "importPackage",
        summary: "Puts a package in the place of the project's. `If-Match` names the revision that is replaced, or `*` any; without it the \
                  project must have none",
        right: Some(Right::Manage),
        takes: Takes { headers: &[IF_MATCH], body: Some(Input::Zip), ..NOTHING },
        answer: Answer::Data(schema!(Imported)),
        run: run!(import),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/package/validation",
        name: "validatePackage",
        summary: "What is wrong with a package, and where: the files of a zip against their schemas, and whether everything named is there",
        right: Some(Right::Read),
        takes: Takes { body: Some(Input::Zip), ..NOTHING },
        answer: Answer::Data(schema!(PackageFindings)),
        run: run!(validate_package),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/workflows",
        name: "listWorkflows",
        summary: "The workflows of the package",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<WorkflowLine>)),
        run: run!(workflows),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/changes",
        name: "listChanges",
        summary: "The change sets of the package, the newest first",
        right: Some(Right::Read),
        takes: Takes {
            query: &[
                Parameter::text("session", "Only of this session"),
                Parameter::flag("all", "Those that cannot be applied any more, too"),
            ],
            ..NOTHING
        },
        answer: Answer::Data(schema!(Vec<ChangeSetLine>)),
        run: run!(changes),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes",
        name: "stageChange",
        summary: "Stages a change set, as the token's agent with its first profile; sets of one token build on each other, and nobody else sees them until they are applied",
        right: Some(Right::Call),
        takes: Takes { body: Some(Input::Json(schema!(StageRequest))), ..NOTHING },
        answer: Answer::Call(|generator| answer_schema("builder.change.stage", generator)),
        run: run!(stage),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/changes/{change}",
        name: "previewChange",
        summary: "A change set, and what an apply of it, or of some of its operations, would say and change now: text and graph before \
                  and after, clashes, dependencies. Its `digest` is for the apply",
        right: Some(Right::Read),
        takes: Takes { query: &[OPERATIONS], ..NOTHING },
        answer: Answer::Data(schema!(PreviewInfo)),
        run: run!(preview),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes/{change}/validation",
        name: "validateChange",
        summary: "Checks a change set as its apply would",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Call(|generator| answer_schema("builder.change.validate", generator)),
        run: run!(validate_change),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/changes/{change}/application",
        name: "applyChange",
        summary: "Applies exactly what a preview with this digest has shown, for everybody",
        right: Some(Right::Approve),
        takes: Takes { body: Some(Input::Json(schema!(ApplyRequest))), ..NOTHING },
        answer: Answer::Call(|generator| answer_schema("builder.change.apply", generator)),
        run: run!(apply),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/changes/{change}",
        name: "discardChange",
        summary: "Gives a staged change set up",
        right: Some(Right::Approve),
        takes: NOTHING,
        answer: Answer::Call(|generator| answer_schema("builder.change.discard", generator)),
        run: run!(discard),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/history",
        name: "listHistory",
        summary: "What has been applied to the package, the newest first",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<Deed>)),
        run: run!(history),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/history/{moment}/undo",
        name: "undoChange",
        summary: "Takes an applied change back, by its number in the history",
        right: Some(Right::Approve),
        takes: NOTHING,
        answer: Answer::Call(|generator| answer_schema("builder.change.undo", generator)),
        run: run!(undo),
    },
    Route {
        method: Method::Put,
        path: "/projects/{project}/members/{member}",
        name: "setMember",
        summary: "Makes somebody a member, or changes what they are; a new name becomes a user",
        right: Some(Right::Manage),
        takes: Takes { body: Some(Input::Json(schema!(MemberRequest))), ..NOTHING },
        answer: Answer::Data(schema!(MemberChanged)),
        run: run!(set_member),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/members/{member}",
        name: "removeMember",
        summary: "Takes somebody's membership away",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(MemberChanged)),
        run: run!(remove_member),
    },
    Route {
        method: Method::Get,
        path: "/projects/{project}/quota",
        name: "readQuota",
        summary: "How much of the host the calls of the project may have",
        right: Some(Right::Read),
        takes: NOTHING,
        answer: Answer::Data(schema!(QuotaLimits)),
        run: run!(quota),
    },
    Route {
        method: Method::Put,
        path: "/projects/{project}/quota",
        name: "setQuota",
        summary: "Changes how much of the host the calls of the project may have, for owners",
        right: Some(Right::Manage),
        takes: Takes { body: Some(Input::Json(schema!(QuotaRequest))), ..NOTHING },
        answer: Answer::Data(schema!(QuotaLimits)),
        run: run!(set_quota),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/tokens",
        name: "createToken",
        summary: "Makes a token of the project. Its secret is in this answer and nowhere else",
        right: Some(Right::Manage),
        takes: Takes { body: Some(Input::Json(schema!(TokenRequest))), ..NOTHING },
        answer: Answer::Data(schema!(TokenMade)),
        run: run!(create_token),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/tokens/{token}",
        name: "revokeToken",
        summary: "Ends a token for good",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(TokenRevoked)),
        run: run!(revoke_token),
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
    preview: ChangePreview,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemberRequest {
    #[schemars(extend("enum" = ["owner", "editor", "viewer"]))]
    role: String,
    /// Whether they may answer what people are asked. Omit to leave it unchanged; of a new member, owners and editors may.
    #[serde(default)]
    approver: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuotaRequest {
    /// Calls that may begin in a minute, of all servers of the database together; no limit if null or left out.
    #[schemars(range(min = 1, max = QUOTA_MINUTE_MAX))]
    calls_per_minute: Option<u32>,
    /// Calls that a server may have open at once; no limit if null or left out.
    #[schemars(range(min = 1, max = QUOTA_OPEN_MAX))]
    calls_open: Option<u32>,
}

/// A call beyond one of them is refused (429), and told when to try again.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct QuotaLimits {
    /// Calls that may begin in a minute, of all servers of the database together; null if there is no limit.
    calls_per_minute: Option<u32>,
    /// Calls that a server may have open at once; null if there is no limit.
    calls_open: Option<u32>,
}

impl From<Quota> for QuotaLimits {
    fn from(quota: Quota) -> Self {
        Self { calls_per_minute: quota.calls_per_minute(), calls_open: quota.calls_open() }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "name": "ci", "profiles": ["developer"], "rights": ["call", "read"], "seconds": 86_400 }))]
struct TokenRequest {
    /// What it is for: the author of the commits of its agent.
    name: String,
    /// The profiles of its agent; the first is that of a client that names none.
    profiles: Vec<String>,
    /// What it may do.
    #[schemars(with = "Vec<RightWord>")]
    rights: Vec<String>,
    /// The member whose name and role its calls have; the maker if left out.
    #[serde(rename = "for")]
    acts_for: Option<String>,
    /// How long it holds; 90 days if left out.
    #[schemars(range(min = 1, max = TOKEN_LIVES_MAX))]
    seconds: Option<u64>,
}

/// What a token is for.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a word")]
#[schemars(rename = "Right", rename_all = "lowercase")]
enum RightWord {
    /// Calls of the tools of its profiles.
    Call,
    /// Reading the project.
    Read,
    /// Sessions of models, at the operator's cost.
    Run,
    /// Answers to what people are asked, and applying changes: never for an agent.
    Approve,
    /// Members, tokens and the whole package.
    Manage,
}

/// What can be done with the project; a host of calls alone does nothing else.
pub(crate) fn work(asked: &Asked) -> Result<&dyn Work, ToolError> {
    let missing = || ToolError::new(ErrorKind::NotFound, "this server only makes calls");
    asked.principal.project.work.as_deref().ok_or_else(missing)
}

fn user(asked: &Asked) -> &str {
    &asked.principal.grant.user
}

/// The token's user, as one who does something with a project over the API.
pub(crate) fn by(asked: &Asked) -> By<'_> {
    By { user: user(asked), door: DOOR }
}

/// Calls a tool as the token's agent.
async fn by_agent(asked: &Asked, tool: &str, arguments: Value) -> Result<Reply, ToolError> {
    let (grant, project) = (&asked.principal.grant, &asked.principal.project);
    let caller = Caller {
        kind: CallerKind::Model,
        door: DOOR.into(),
        profile: asked.principal.granted_profile(None)?.to_owned(),
        persona: grant.name.clone(),
    };
    let call = Call {
        id: project.ids.call_id(),
        tool: tool.to_owned(),
        arguments,
        scope: Scope {
            user_id: grant.user_id,
            project_id: project.id,
            session_id: Some(asked.principal.session()),
            workflow_id: None,
            ticket_id: None,
        },
        caller,
    };
    let hooks = Hooks { origin: asked.origin(), ..Hooks::default() };
    Ok(Reply::Outcome(Box::new(project.gate.call(call, hooks).await)))
}

/// Calls a tool as the token's user, a person.
pub(crate) async fn by_person(asked: &Asked, tool: &str, arguments: Value) -> Reply {
    let doer = Doer {
        project: &asked.principal.project,
        user_id: asked.principal.grant.user_id,
        user: user(asked),
        door: DOOR,
        origin: asked.origin(),
    };
    Reply::Outcome(Box::new(doer.call(tool, arguments).await))
}

async fn export(asked: Asked) -> Result<Reply, ToolError> {
    let archive = work(&asked)?.export(by(&asked)).await?;
    let mut response = Response::new(Body::from(archive.zip));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ZIP));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
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
    data(&work(&asked)?.import(by(&asked), &asked.bytes, replaces).await?)
}

fn no_tag() -> ToolError {
    ToolError::new(ErrorKind::Validation, "`If-Match` is one revision in double quotes, as `ETag` gave it, or `*`")
}

async fn validate_package(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.findings(&asked.bytes).await?)
}

async fn workflows(asked: Asked) -> Result<Reply, ToolError> {
    masked(&asked, &work(&asked)?.workflows(by(&asked)).await?)
}

/// An answer in which secrets are masked everywhere, also in names and messages.
fn masked(asked: &Asked, told: &impl Serialize) -> Result<Reply, ToolError> {
    let mut told = serde_json::to_value(told).map_err(ToolError::internal)?;
    asked.principal.project.gate.redact(&mut told);
    data(&told)
}

async fn changes(asked: Asked) -> Result<Reply, ToolError> {
    let session = asked.query.get("session").map(String::as_str);
    let open_only = !asked.flag("all")?;
    masked(&asked, &work(&asked)?.changes(by(&asked), session, open_only).await?)
}

async fn stage(mut asked: Asked) -> Result<Reply, ToolError> {
    let StageRequest { change_set } = asked.body()?;
    by_agent(&asked, "builder.change.stage", json!({ "changeSet": change_set })).await
}

/// What is shown of a change set, and its digest.
async fn shown(asked: &Asked, operations: Option<Vec<i64>>) -> Result<PreviewInfo, ToolError> {
    let preview = work(asked)?.preview(by(asked), asked.part("change"), operations).await?;
    Ok(PreviewInfo { digest: preview.digest()?, preview })
}

async fn preview(asked: Asked) -> Result<Reply, ToolError> {
    let wrong = || ToolError::new(ErrorKind::Validation, "`operations` are numbers from 0, separated by commas");
    let parse = |text: &String| text.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<i64>, _>>();
    let operations = asked.query.get("operations").map(parse).transpose().map_err(|_| wrong())?;
    masked(&asked, &shown(&asked, operations).await?)
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
    masked(&asked, &work(&asked)?.history(by(&asked)).await?)
}

async fn undo(asked: Asked) -> Result<Reply, ToolError> {
    let moment: i64 = asked
        .part("moment")
        .parse()
        .map_err(|_| ToolError::new(ErrorKind::NotFound, "there is no such number in the history"))?;
    Ok(by_person(&asked, "builder.change.undo", json!({ "moment": moment })).await)
}

async fn set_member(mut asked: Asked) -> Result<Reply, ToolError> {
    let MemberRequest { role, approver } = asked.body()?;
    let new = NewRole { role: &role, approver };
    data(&work(&asked)?.set_member(by(&asked), asked.part("member"), Some(new)).await?)
}

async fn remove_member(asked: Asked) -> Result<Reply, ToolError> {
    data(&work(&asked)?.set_member(by(&asked), asked.part("member"), None).await?)
}

async fn quota(asked: Asked) -> Result<Reply, ToolError> {
    data(&QuotaLimits::from(work(&asked)?.quota(by(&asked)).await?))
}

async fn set_quota(mut asked: Asked) -> Result<Reply, ToolError> {
    let QuotaRequest { calls_per_minute, calls_open } = asked.body()?;
    let quota = Quota::new(calls_per_minute, calls_open);
    let quota = quota.map_err(|message| ToolError::new(ErrorKind::Validation, message))?;
    work(&asked)?.set_quota(by(&asked), quota).await?;
    data(&QuotaLimits::from(quota))
}

async fn create_token(mut asked: Asked) -> Result<Reply, ToolError> {
    let TokenRequest { name, profiles, rights, acts_for, seconds } = asked.body()?;
    let wrong = |message: String| ToolError::new(ErrorKind::Validation, message);
    let parse = |word: &String| {
        let words: Vec<&str> = Right::ALL.into_iter().map(Right::as_str).collect();
        Right::parse(word).ok_or_else(|| wrong(format!("a right is one of {}", words.join(", "))))
    };
    let rights = rights.iter().map(parse).collect::<Result<Vec<Right>, _>>()?;
    let principal = &asked.principal;
    if let Some(right) = rights.iter().find(|right| !principal.has(**right)) {
        let message = format!(
            "this token does not have the right `{}` itself, so it cannot give it to another token",
            right.as_str()
        );
        return Err(ToolError::new(ErrorKind::Permission, message)
            .hint("an owner makes such a token on the page of the project's access, or at the terminal"));
    }
    // With such a token one person could play two: ask as themselves, and allow the call as somebody else.
    if rights.contains(&Right::Approve) && acts_for.as_deref().is_some_and(|name| name != user(&asked)) {
        let message = "over the API a token with the right `approve` can be made only for your own user";
        return Err(ToolError::new(ErrorKind::Permission, message)
            .hint("an owner makes it on the page of the project's access, or at the terminal"));
    }
    let seconds = seconds.unwrap_or(TOKEN_LIVES);
    if !(1..=TOKEN_LIVES_MAX).contains(&seconds) {
        return Err(wrong(format!("`seconds` goes from 1 to {TOKEN_LIVES_MAX}")));
    }
    let wish = TokenWish { name, profiles, rights, acts_for, lives: Duration::from_secs(seconds) };
    data(&work(&asked)?.make_token(by(&asked), wish).await?)
}

async fn revoke_token(asked: Asked) -> Result<Reply, ToolError> {
    let id = asked.part("token").to_owned();
    let principal = &asked.principal;
    let project = &principal.project;
    match &project.work {
        Some(work) => work.revoke_token(by(&asked), &id).await?,
        // A token can be ended wherever one is taken.
        None => {
            principal.need_owner().await?;
            if !project.tokens.revoke(project.id, &id).await? {
                return Err(ToolError::new(ErrorKind::NotFound, "there is no such token, or it is revoked"));
            }
        }
    }
    data(&TokenRevoked { id, revoked: true })
}
