//! An event of a project's stream, as a listener reads it: server-sent text.

use serde::Serialize;
use toolhost_contract::ToolError;
use toolhost_store::{Happened, Position, SessionChange, SessionEvent, StreamEvent};

use super::audit_row::AuditRow;

/// An event, and where the stream stands with it.
pub(crate) struct Told {
    pub(crate) position: Position,
    pub(crate) text: String,
}

/// A step of a session, with what kind of step it is.
#[derive(Serialize)]
struct Step<'a> {
    #[serde(flatten)]
    event: &'a SessionEvent,
    /// The first word of its name: `open`, `say`, `turn`, `call`, …
    kind: &'a str,
}

impl Told {
    /// # Errors
    /// If it is no JSON.
    pub(crate) fn of(event: StreamEvent) -> Result<Self, ToolError> {
        let StreamEvent { position, happened } = event;
        let (name, data) = match happened {
            Happened::Audit(row) => (row.event.clone(), serde_json::to_string(&AuditRow::of(row))),
            Happened::Session(event) => match &event.what {
                SessionChange::State { .. } => ("session".to_owned(), serde_json::to_string(&event)),
                SessionChange::Step { step, .. } => {
                    let kind = step.split('_').next().unwrap_or_default();
                    ("step".to_owned(), serde_json::to_string(&Step { event: &event, kind }))
                }
            },
        };
        let data = data.map_err(ToolError::internal)?;
        let text = format!("id: {}\nevent: {name}\ndata: {data}\n\n", position.number());
        Ok(Self { position, text })
    }
}
