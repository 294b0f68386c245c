//! What a call comes to becomes its outcome: without the host's secrets, within the limit, and with the cause of a failure for the operator alone.

use std::time::Duration;

use serde_json::Value;
use toolhost_contract::{
    Attachment, AttachmentContent, Call, Effect, ErrorKind, Meta, Outcome, OutcomeError, Revision, Success, ToolError,
    json_bytes_at_most,
};

use crate::fit::note;
use crate::gate::Gate;
use crate::record::{Record, json_bytes};
use crate::registry::Registered;

impl Gate {
    pub(crate) fn within_limit(&self, tool: &Registered, success: Success) -> Result<Success, ToolError> {
        let limit = self.state.config.limits.answer_bytes;
        let attached: usize = success.attachments.iter().map(Attachment::size).sum();
        if success.text.len().max(json_bytes_at_most(&success.data)) + attached <= limit {
            return Ok(success);
        }
        let size = success.text.len().max(json_bytes(&success.data)) + attached;
        if size <= limit {
            return Ok(success);
        }
        let done = if tool.info.facts.effect.may_change() { "it ran, but its" } else { "the" };
        let message = format!("{done} answer is {size} bytes long; {limit} is the most");
        Err(ToolError::new(ErrorKind::Limit, message)
            .hint("ask for less: a smaller `limit`, a narrower path or pattern"))
    }

    pub(crate) fn outcome(
        &self,
        call: &Call,
        record: &Record,
        result: Result<Success, ToolError>,
        took: Duration,
        fence: &str,
    ) -> Outcome {
        let meta = Meta {
            tool: record.tool.clone(),
            call_id: call.id.clone(),
            session_id: call.scope.session_id.clone(),
            user_id: call.scope.user_id,
            project_id: call.scope.project_id,
            workflow_id: call.scope.workflow_id,
            revision: None,
            allow_write: record.effect.is_some_and(Effect::may_change),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            fence: fence.to_owned(),
            read: record.read.iter().map(|note| self.without_secrets(note)).collect(),
            edited: record.edited.as_deref().map(|edited| self.without_secrets(edited)),
        };
        let mut outcome = match result {
            Ok(Success { mut data, mut text, mut attachments, revision, workflow }) => {
                self.state.config.redactor.redact(&mut text);
                for attachment in &mut attachments {
                    if let AttachmentContent::Text(text) = &mut attachment.content {
                        self.state.config.redactor.redact(text);
                    }
                }
                self.state.config.redactor.redact_json_beside(&mut data, &text);
                let of_workflow = workflow.as_ref().and_then(|workflow| workflow.revision.clone());
                let revision = (revision.is_some() || of_workflow.is_some())
                    .then_some(Revision { workflow: of_workflow, target: revision });
                let workflow_id = workflow.map_or(meta.workflow_id, |workflow| workflow.number);
                let meta = Meta { revision, workflow_id, ..meta };
                Outcome { ok: true, data, error: None, meta, attachments, text }
            }
            Err(error) => self.failure(call, meta, error),
        };
        let edited =
            outcome.meta.edited.as_ref().map(|edited| {
                format!("[a person changed the arguments of this call before they allowed it: {edited}]")
            });
        let read = (!outcome.meta.read.is_empty()).then(|| note(&outcome.meta.read));
        for note in edited.into_iter().chain(read) {
            let text = &mut outcome.text;
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(gap);
            text.push_str(&note);
        }
        outcome
    }

    fn without_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.state.config.redactor.redact(&mut text);
        text
    }

    fn failure(&self, call: &Call, meta: Meta, error: ToolError) -> Outcome {
        if error.kind == ErrorKind::Internal {
            let cause = error.source.as_ref().map_or_else(|| error.message.clone(), |source| describe(&**source));
            tracing::error!(call = %call.id, tool = %meta.tool, cause, "a call failed inside the host");
        } else if let Some(cause) = error.source.as_deref().and_then(database_cause) {
            // The caller is told what kind of failure it is; the folder and the server are the operator's.
            tracing::error!(call = %call.id, tool = %meta.tool, "the database could not be used: {cause}");
        }
        let message = match error.kind {
            // The cause is the operator's; the caller gets a number to ask about.
            ErrorKind::Internal => format!("internal error; the operator finds it under call {}", call.id),
            _ => error.message,
        };
        let mut said =
            OutcomeError { code: error.code, kind: error.kind, message, hint: error.hint, details: error.details };
        self.state.config.redactor.redact(&mut said.message);
        if let Some(hint) = &mut said.hint {
            self.state.config.redactor.redact(hint);
        }
        if let Some(details) = &mut said.details {
            self.state.config.redactor.redact_json(details);
        }
        let mut text = format!("{} ({}, {})", said.message, said.kind.as_str(), said.code.as_str());
        if let Some(hint) = &said.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        Outcome { ok: false, data: Value::Null, error: Some(said), meta, attachments: Vec::new(), text }
    }
}

/// What the store says where it is the database that failed.
fn database_cause(source: &(dyn std::error::Error + Send + Sync + 'static)) -> Option<String> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source);
    while let Some(error) = cause {
        if error.is::<toolhost_store::Error>() {
            return Some(in_words(error));
        }
        cause = error.source();
    }
    None
}

/// An error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// For an operator who reads the log: the error's own sentence, and its causes where the sentence leaves them out.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
