//! A row of the audit as the API tells it, and the kinds of rows: a stream of events has one of them in each event.
//!
//! The body of a row is told as the chain covers it, byte for byte, so that a reader can check its hash. The types of bodies here are
//! only their description.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};

/// A row of the audit.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuditRow {
    seq: i64,
    at_ms: i64,
    call_id: String,
    event: String,
    tool: String,
    body: Value,
    hash: String,
}

impl AuditRow {
    pub(crate) fn of(row: toolhost_store::Row) -> Self {
        let body = serde_json::from_str(&row.body).unwrap_or(Value::Null);
        let toolhost_store::Row { seq, at_ms, call_id, event, tool, hash, .. } = row;
        Self { seq, at_ms, call_id, event, tool, body, hash }
    }

    /// The kinds of rows, by the word in `event`.
    pub(crate) fn kinds(generator: &mut SchemaGenerator) -> [(&'static str, Schema); 4] {
        [
            ("started", generator.subschema_for::<CallStarted>()),
            ("finished", generator.subschema_for::<CallFinished>()),
            ("decision", generator.subschema_for::<PersonDecided>()),
            ("unknown", generator.subschema_for::<CallUnknown>()),
        ]
    }
}

impl JsonSchema for AuditRow {
    fn schema_name() -> Cow<'static, str> {
        "AuditRow".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = Self::kinds(generator);
        let mapping: Map<String, Value> =
            kinds.iter().filter_map(|(word, kind)| Some(((*word).to_owned(), kind.get("$ref")?.clone()))).collect();
        let kinds = kinds.map(|(_, kind)| kind);
        json_schema!({
            "description": "A row of the audit. `event` says which kind it is.",
            "oneOf": kinds,
            "discriminator": { "propertyName": "event", "mapping": mapping },
        })
    }
}

/// The types of rows: the same fields, with a word and a body of their own.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident is $word:literal with $body:ident;)*) => { $(
        $(#[$about])*
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "it describes what an AuditRow looks like")]
        #[schemars(rename_all = "camelCase")]
        struct $kind {
            /// The number of the row in its project. They grow by one.
            seq: i64,
            /// Milliseconds since 1970.
            at_ms: i64,
            call_id: String,
            /// Which kind of row it is.
            #[schemars(extend("const" = $word))]
            event: String,
            /// The canonical name of the tool, or of what a person did without one.
            tool: String,
            /// What happened, as the chain covers it: its canonical JSON (RFC 8785) is what was hashed.
            body: $body,
            /// SHA-256 over the hash of the row before and the body.
            hash: String,
        }
    )* };
}

kinds! {
    /// A call is about to run: what was asked, and why it may.
    CallStarted is "started" with StartedBody;
    /// A call has ended, and this is how. A call without a row before this one tells all of it here.
    CallFinished is "finished" with FinishedBody;
    /// A person has answered what they were asked, or taken something back.
    PersonDecided is "decision" with DecisionBody;
    /// The host ended while the call ran: whether it has happened is not known.
    CallUnknown is "unknown" with FinishedBody;
}

/// What the bodies of all rows have.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct Common {
    seq: i64,
    at_ms: i64,
    event: String,
    call_id: String,
    session_id: Option<String>,
    user_id: i64,
    project_id: i64,
    caller: RowCaller,
    tool: String,
    /// The worst that the call can do.
    #[schemars(extend("enum" = ["reads", "writes", "executes", "reaches", "asks", null]))]
    effect: Option<String>,
    /// Without secrets, and shortened; `digest` covers them whole.
    arguments: Value,
    digest: Option<String>,
    duration_ms: Option<u64>,
    /// The fence that commands get: `full`, `landlock`, `off` or `refused`; empty for what starts none.
    fence: String,
}

/// Who called.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct RowCaller {
    /// Such as `http`, `mcp` or `cli`.
    door: String,
    /// `model` or `person`; not there for what the host finds by itself.
    #[schemars(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    /// The agent's or the person's name.
    #[schemars(skip_serializing_if = "Option::is_none")]
    persona: Option<String>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct StartedBody {
    #[schemars(flatten)]
    common: Common,
    decision: Option<CallDecision>,
    /// Nothing yet.
    outcome: Option<RowOutcome>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct FinishedBody {
    #[schemars(flatten)]
    common: Common,
    /// Null where the row before this one has it.
    decision: Option<CallDecision>,
    outcome: RowOutcome,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct DecisionBody {
    #[schemars(flatten)]
    common: Common,
    decision: RowDecision,
    /// A decision has none.
    outcome: Option<RowOutcome>,
}

/// What policy says of a call, and what a person answered.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
struct CallDecision {
    /// What policy decided, and by which rule.
    policy: Map<String, Value>,
    /// The ask whose answer was used, such as `ask-7`.
    #[schemars(skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    /// Who answered it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The word of the answer.
    #[schemars(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
}

/// What a person said. The further fields are those of the answer.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
struct RowDecision {
    /// Such as `allow`, `deny`, `pass`, `text`; `seen`, `take_back`, `revoke`.
    say: String,
    /// Where it was said, such as `http` or `cli`.
    place: String,
    /// Such as `ask-7`; not there for a rule that was taken back.
    #[schemars(skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    #[schemars(flatten)]
    more: Map<String, Value>,
}

/// How a call ended. There may be further fields.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body")]
#[schemars(rename_all = "camelCase")]
struct RowOutcome {
    ok: bool,
    /// Of a command.
    #[schemars(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    /// The call waits for a person.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pending: Option<bool>,
    /// Of a failure.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// How long it waited for a person or a place.
    #[schemars(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ran_ms: Option<u64>,
    /// It was found out later how the call had ended.
    #[schemars(skip_serializing_if = "Option::is_none")]
    decided: Option<bool>,
    #[schemars(flatten)]
    more: Map<String, Value>,
}
