//! What the API tells of rows of the store: each type with its schema, and how it is made of a row.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolhost_contract::{Answer, ErrorKind, Outcome, ToolError};
use toolhost_host::{Shown, ask_id};
use toolhost_store::{Ask, AskPage, AskState, AskSummary, Member, StepRow, Token};

/// Some of what people are asked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AskPage")]
pub(crate) struct AskList {
    asks: Vec<AskLine>,
    /// How many follow.
    more: i64,
}

impl From<AskPage> for AskList {
    fn from(page: AskPage) -> Self {
        Self { asks: page.asks.into_iter().map(AskLine::from).collect(), more: page.more }
    }
}

/// An ask in a list.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskLine {
    /// Such as 7 of `ask-7`.
    number: i64,
    #[schemars(extend("enum" = ["approval", "review", "question"]))]
    kind: String,
    #[schemars(extend("enum" = ["open", "answered", "used", "withdrawn", "expired"]))]
    state: String,
    tool: String,
    session_id: Option<String>,
    /// Who asks.
    persona: String,
    /// The beginning of what is asked.
    summary: String,
    /// The one word of the answer.
    said: Option<String>,
    answered_by: Option<String>,
    created_at_ms: i64,
    expires_at_ms: i64,
}

impl From<AskSummary> for AskLine {
    fn from(ask: AskSummary) -> Self {
        Self {
            number: ask.number,
            kind: word(&ask.kind),
            state: word(&ask.state),
            tool: ask.tool,
            session_id: ask.session_id,
            persona: ask.persona,
            summary: ask.summary,
            said: ask.said,
            answered_by: ask.answered_by,
            created_at_ms: ask.created_at_ms,
            expires_at_ms: ask.expires_at_ms,
        }
    }
}

/// What a person is asked.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AskInfo {
    /// `ask-7`
    id: String,
    #[schemars(extend("enum" = ["open", "answered", "used", "withdrawn", "expired"]))]
    state: String,
    #[schemars(extend("enum" = ["approval", "review", "question"]))]
    kind: String,
    tool: String,
    /// All of it as a text in which nothing deceives, in pages.
    pages: Vec<String>,
    /// Of what is shown: a decision names it.
    digest: String,
    /// The words it can be answered with.
    answers: Vec<String>,
    /// A rule that would allow this and its like, by argument.
    rule: Option<BTreeMap<String, String>>,
    #[schemars(with = "Option<Answer>")]
    answer: Option<Value>,
    answered_by: Option<String>,
    /// What became of the call that used the answer: its outcome, with its text.
    #[schemars(with = "Option<AskOutcome>")]
    outcome: Option<Value>,
    session_id: Option<String>,
    created_at_ms: i64,
    expires_at_ms: i64,
}

/// What became of a call, with its text.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what is kept with an ask")]
struct AskOutcome {
    #[schemars(flatten)]
    outcome: Outcome,
    text: String,
}

impl AskInfo {
    /// `shown`: the ask as the caller may see it. `digest`: the hash of the ask without masks.
    pub(crate) fn of(ask: Ask, shown: Shown, digest: String) -> Self {
        Self {
            id: ask_id(ask.number),
            state: word(&ask.state),
            kind: word(&ask.kind),
            tool: ask.tool,
            pages: shown.pages(),
            digest,
            answers: shown.answers().iter().map(|word| (*word).to_owned()).collect(),
            rule: shown.rule,
            answer: ask.answer,
            answered_by: ask.answered_by,
            outcome: ask.outcome.filter(|_| ask.state == AskState::Used),
            session_id: ask.session_id,
            created_at_ms: ask.created_at_ms,
            expires_at_ms: ask.expires_at_ms,
        }
    }
}

/// A step of a session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionStep {
    /// The number of the step in its session, from 0.
    seq: i64,
    /// Such as `turn_0_model`: which step it is, and of which turn.
    step: String,
    at_ms: i64,
    /// What the step has come to.
    body: Value,
}

impl From<StepRow> for SessionStep {
    fn from(StepRow { seq, step, at_ms, body }: StepRow) -> Self {
        Self { seq, step, at_ms, body }
    }
}

/// A user, and what they are in the project.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MemberInfo {
    id: i64,
    name: String,
    #[schemars(extend("enum" = ["owner", "editor", "viewer"]))]
    role: &'static str,
    /// Whether they may answer what people are asked.
    approver: bool,
}

impl From<Member> for MemberInfo {
    fn from(Member { id, name, role, approver }: Member) -> Self {
        Self { id, name, role: role.as_str(), approver }
    }
}

/// A token, without its secret.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenInfo {
    id: String,
    name: String,
    /// The user in whose name its calls are made.
    user: String,
    profiles: Vec<String>,
    /// Its rights.
    scopes: Vec<String>,
    created_at_ms: i64,
    expires_at_ms: i64,
    /// To the minute.
    last_used_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
}

impl From<Token> for TokenInfo {
    fn from(token: Token) -> Self {
        Self {
            id: token.id,
            name: token.name,
            user: token.user,
            profiles: token.profiles,
            scopes: token.scopes,
            created_at_ms: token.created_at_ms,
            expires_at_ms: token.expires_at_ms,
            last_used_at_ms: token.last_used_at_ms,
            revoked_at_ms: token.revoked_at_ms,
        }
    }
}

/// A token that was ended.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenRevoked {
    pub(crate) id: String,
    pub(crate) revoked: bool,
}

/// Rows of the store as the API tells them.
pub(crate) fn told<T, U: From<T>>(rows: Vec<T>) -> Vec<U> {
    rows.into_iter().map(U::from).collect()
}

/// The word that an enum is written as.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// A word that names no ask.
pub(crate) fn no_ask() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "there is no such ask")
}
