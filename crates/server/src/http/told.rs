//! An event of a project's stream, as a listener reads it: server-sent text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolhost_contract::{Effect, ToolError};
use toolhost_store::{Happened, Position, Row, SessionChange, SessionEvent, StreamEvent};

use super::audit_row::AuditRow;

/// An event, and where the stream stands with it.
pub(crate) struct Told {
    pub(crate) position: Position,
    pub(crate) text: String,
    /// What open pages are told of it: [`ASKS`], [`CALLS`], [`SESSIONS`], or the family of a tool that changes something, such as
    /// `ticket`.
    pub(crate) kinds: Vec<Cow<'static, str>>,
}

/// Something that people are asked was made or answered, or what became of it is known.
pub(crate) const ASKS: &str = "asks";
/// A call has started or ended.
pub(crate) const CALLS: &str = "calls";
/// A session of an agent has another state or a further step.
pub(crate) const SESSIONS: &str = "sessions";

/// What a page hears that shows sessions and what they wait for.
pub(crate) const SESSIONS_AND_ASKS: &str = "sessions asks";

/// Whether a row is about a call that changes nothing.
fn only_reads(row: &Row) -> bool {
    #[derive(Deserialize)]
    struct Body {
        effect: Option<Effect>,
    }
    serde_json::from_str::<Body>(&row.body).is_ok_and(|body| body.effect == Some(Effect::Reads))
}

/// Something that happened to a session.
#[derive(Serialize)]
struct OfSession<'a> {
    /// Which kind of event it is: `session` or `step`.
    event: &'static str,
    #[serde(flatten)]
    told: &'a SessionEvent,
    /// Of a step, the first word of its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
}

/// What an event of the stream looks like.
pub(crate) struct Event;

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_sessions = [
            ("session", generator.subschema_for::<SessionChanged>()),
            ("step", generator.subschema_for::<SessionStepped>()),
        ];
        let kinds: Vec<_> = AuditRow::kinds(generator).into_iter().chain(of_sessions).collect();
        let mapping: Map<String, Value> =
            kinds.iter().filter_map(|(word, kind)| Some(((*word).to_owned(), kind.get("$ref")?.clone()))).collect();
        let kinds: Vec<Schema> = kinds.into_iter().map(|(_, kind)| kind).collect();
        json_schema!({
            "description": "An event of a project's stream: a row of the audit, or what happened to a session. `event` says which kind it is.",
            "oneOf": kinds,
            "discriminator": { "propertyName": "event", "mapping": mapping },
        })
    }
}

/// A session of an agent has another state.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes an event")]
#[schemars(rename_all = "camelCase")]
struct SessionChanged {
    /// Which kind of event it is.
    #[schemars(extend("const" = "session"))]
    event: String,
    /// Milliseconds since 1970.
    at_ms: i64,
    session_id: String,
    state: String,
    /// The stable code of what ended it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// A session of an agent has come a step further. Its content is in the steps of the session.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes an event")]
#[schemars(rename_all = "camelCase")]
struct SessionStepped {
    /// Which kind of event it is.
    #[schemars(extend("const" = "step"))]
    event: String,
    /// Milliseconds since 1970.
    at_ms: i64,
    session_id: String,
    /// Its number in the session.
    seq: i64,
    /// Its name, such as `call_1_0`.
    step: String,
    /// The first word of its name: `open`, `say`, `turn`, `call`, …
    kind: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// How long it took.
    #[schemars(skip_serializing_if = "Option::is_none")]
    ms: Option<f64>,
}

impl Told {
    /// # Errors
    /// If it is no JSON.
    pub(crate) fn of(event: StreamEvent) -> Result<Self, ToolError> {
        let StreamEvent { position, happened } = event;
        let kinds = match &happened {
            Happened::Audit(row) if row.event == "decision" => vec![ASKS.into()],
            // A page that reads by calls would otherwise wake itself.
            Happened::Audit(row) if only_reads(row) => vec![CALLS.into()],
            Happened::Audit(row) => {
                let kind = match row.tool.split('.').next().unwrap_or_default() {
                    // What people do with sessions.
                    "session" => SESSIONS,
                    family => family,
                };
                vec![CALLS.into(), kind.to_owned().into()]
            }
            Happened::Session(_) => vec![SESSIONS.into()],
        };
        let (name, data) = match happened {
            Happened::Audit(row) => (row.event.clone(), serde_json::to_string(&AuditRow::of(row))),
            Happened::Session(told) => {
                let (event, kind) = match &told.what {
                    SessionChange::State { .. } => ("session", None),
                    SessionChange::Step { step, .. } => ("step", Some(step.split('_').next().unwrap_or_default())),
                };
                (event.to_owned(), serde_json::to_string(&OfSession { event, told: &told, kind }))
            }
        };
        let data = data.map_err(ToolError::internal)?;
        let text = format!("id: {}\nevent: {name}\ndata: {data}\n\n", position.number());
        Ok(Self { position, text, kinds })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use super::*;

    /// What pages are told of a row of the audit.
    fn kinds(event: &str, body: &str) -> Vec<String> {
        let row = Row {
            seq: 1,
            at_ms: 0,
            call_id: "call-1".to_owned(),
            event: event.to_owned(),
            tool: "ticket.update".to_owned(),
            body: body.to_owned(),
            prev_hash: String::new(),
            hash: String::new(),
        };
        let event = StreamEvent { position: Position::default(), happened: Happened::Audit(row) };
        Told::of(event).unwrap().kinds.into_iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn a_page_that_reads_by_calls_does_not_wake_itself() {
        assert_eq!(kinds("finished", "{\"effect\":\"reads\"}"), [CALLS]);
        assert_eq!(kinds("finished", "{\"effect\":\"writes\"}"), [CALLS, "ticket"]);
        assert_eq!(kinds("finished", "damaged"), [CALLS, "ticket"]);
        assert_eq!(kinds("decision", "{}"), [ASKS]);
    }
}
