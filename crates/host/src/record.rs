//! A call's rows in the audit, filled in as it passes the gate.

use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::{Call, CallId, Effect, Outcome, RECOVERY, Redactor, Trace};
use toolhost_store::{AskChange, Entry, Event};

use crate::observe::{CallTimes, PersonAnswer};
use crate::policy::{Decide, Verdict};

/// What is known of a call so far.
pub(crate) struct Record {
    /// The canonical name, once resolved; what was asked for until then.
    pub(crate) tool: String,
    pub(crate) effect: Option<Effect>,
    /// Redacted and shortened.
    pub(crate) arguments: Value,
    /// How the arguments were read, where they were not written as the tool takes them.
    pub(crate) read: Vec<String>,
    /// What a person changed in the arguments before they allowed the call.
    pub(crate) edited: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) decision: Option<Value>,
    /// What the call leaves behind by which its end can be decided.
    pub(crate) trace: Trace,
    /// The "started" row is committed: the tool may have run.
    pub(crate) started: bool,
    /// The ask whose answer this call used.
    pub(crate) answer: Option<i64>,
    /// What that answer was.
    pub(crate) person: Option<PersonAnswer>,
    /// What of policy denied the call.
    pub(crate) denied_by: Option<String>,
    /// A person was asked.
    pub(crate) is_asked: bool,
    /// When the call began.
    pub(crate) began: Duration,
    pub(crate) times: CallTimes,
}

impl Record {
    pub(crate) fn new(call: &Call, redactor: &Redactor) -> Self {
        // A name that no tool has may be anything, and it is shown and kept.
        let mut tool = clip(&call.tool, NAME_BYTES_MAX);
        redactor.redact(&mut tool);
        // PostgreSQL keeps no text with a zero character in it, and a row that cannot be kept is tried for ever.
        Self::of(tool.replace('\0', "\u{fffd}"), None)
    }

    fn of(tool: String, effect: Option<Effect>) -> Self {
        Self {
            tool,
            effect,
            arguments: Value::Null,
            read: Vec::new(),
            edited: None,
            digest: None,
            decision: None,
            trace: Trace::None,
            started: false,
            answer: None,
            person: None,
            denied_by: None,
            is_asked: false,
            began: Duration::ZERO,
            times: CallTimes::default(),
        }
    }

    /// Notes what policy says of the call.
    pub(crate) fn judged(&mut self, verdict: &Verdict) {
        self.decision = Some(json!({ "policy": verdict }));
        if verdict.decide == Decide::Deny {
            self.denied_by = Some(verdict.rule.clone().unwrap_or_else(|| BY_EFFECT.to_owned()));
        }
    }

    /// The call waits from now on: for a person who is asked, or for a place.
    pub(crate) fn begins_to_wait(&mut self, now: Duration, is_asked: bool) -> Duration {
        self.is_asked = is_asked;
        self.times.until_waiting = now.saturating_sub(self.began);
        now
    }

    /// The tool runs from now on.
    pub(crate) fn begins_to_run(&mut self, now: Duration) -> Duration {
        self.times.until_running = now.saturating_sub(self.began);
        now
    }

    pub(crate) fn row(&self, event: Event, call: &Call, fence: &str) -> Entry {
        let caller = &call.caller;
        Entry {
            event,
            call_id: call.id.clone(),
            session_id: call.scope.session_id.clone(),
            user_id: call.scope.user_id,
            project_id: call.scope.project_id,
            caller: json!({
                "door": caller.door, "kind": caller.kind, "profile": caller.profile, "persona": caller.persona,
            }),
            tool: self.tool.clone(),
            effect: self.effect.map(|effect| effect.as_str().to_owned()),
            arguments: Value::Null,
            digest: self.digest.clone(),
            decision: None,
            outcome: None,
            duration_ms: None,
            fence: fence.to_owned(),
            trace: self.trace,
        }
    }

    /// What a call found of a deploy that a crash had interrupted, and has recovered.
    pub(crate) fn recovered(call: &Call, id: CallId, recovered: &[Value]) -> Entry {
        let record = Self::of(RECOVERY.to_owned(), Some(Effect::Writes));
        let mut row = record.row(Event::Finished, call, "");
        row.call_id = id;
        row.arguments = json!({ "foundBy": call.id.as_str(), "recovered": recovered });
        row.outcome = Some(json!({ "ok": true }));
        row
    }

    /// Before the tool runs: what was asked and why it may.
    pub(crate) fn started(&self, call: &Call, fence: &str) -> Entry {
        let mut row = self.row(Event::Started, call, fence);
        row.arguments = self.arguments.clone();
        row.decision.clone_from(&self.decision);
        row
    }

    /// How it ended. A call without a "started" row tells all of it here.
    pub(crate) fn finished(&self, call: &Call, outcome: &Outcome) -> Entry {
        let mut row = self.row(Event::Finished, call, &outcome.meta.fence);
        if !self.started {
            row.arguments = self.arguments.clone();
            row.decision.clone_from(&self.decision);
        }
        row.duration_ms = Some(outcome.meta.duration_ms);
        let mut told = match &outcome.error {
            None => {
                let mut told = json!({ "ok": true, "exitCode": outcome.data.get("exitCode") });
                if is_pending(outcome) {
                    told["pending"] = Value::from(true);
                    told["ask"] = outcome.data.get("approvalId").cloned().unwrap_or_default();
                }
                // A command that moved a branch has done what `git.commit` is recorded for, and what was put back was changed by it, or
                // by a person meanwhile.
                for name in ["refsChanged", "putBack"] {
                    if let Some(changed) = outcome.data.get(name) {
                        told[name] = changed.clone();
                    }
                }
                told
            }
            Some(error) => json!({
                "ok": false, "code": error.code, "kind": error.kind, "message": clip(&error.message, MESSAGE_BYTES_MAX),
            }),
        };
        // Most calls take less, and their rows stay short.
        let CallTimes { waiting, waiting_inside, running, .. } = self.times;
        let times = [("waitedMs", waiting + waiting_inside), ("ranMs", running.saturating_sub(waiting_inside))];
        for (name, took) in times {
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            if took_ms > 0 {
                told[name] = took_ms.into();
            }
        }
        row.outcome = Some(told);
        row
    }
}

/// What denies a call that no rule matches.
const BY_EFFECT: &str = "effect";

/// Whether the answer is that a person has not answered yet.
pub(crate) fn is_pending(outcome: &Outcome) -> bool {
    let status = outcome.data.get("status").and_then(Value::as_str);
    outcome.ok && status.is_some_and(|status| status.starts_with("pending_"))
}

/// What is kept of an outcome for whoever asks again; it is written with the row of the call's end, so that who sees
/// that the call has ended finds what became of it.
pub(crate) fn for_asker(number: i64, outcome: &Outcome) -> Option<AskChange> {
    let mut kept = serde_json::to_value(outcome).ok()?;
    if json_bytes(&kept) > OUTCOME_BYTES_MAX {
        kept = json!({ "ok": outcome.ok, "data": null, "error": outcome.error, "meta": outcome.meta });
    }
    if let Value::Object(fields) = &mut kept {
        fields.insert("text".to_owned(), outcome.text.chars().take(OUTCOME_BYTES_MAX / 4).collect::<String>().into());
    }
    Some(AskChange::Keep { number, outcome: kept })
}

/// Outcomes larger than this, in bytes of JSON, are not kept with their ask; the audit says how they ended.
const OUTCOME_BYTES_MAX: usize = 1 << 20;
/// Largest arguments that the audit keeps as they are, in JSON.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
const NAME_BYTES_MAX: usize = 200;
const MESSAGE_BYTES_MAX: usize = 2000;
/// How far beyond the cut of a long argument a secret is looked for that begins before it.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// Arguments as the audit keeps them: secrets out, long strings cut with their hash beside.
#[must_use]
pub fn keepable(arguments: &Value, redactor: &Redactor, string_bytes_max: usize) -> Value {
    let mut kept = arguments.clone();
    shorten(&mut kept, redactor, string_bytes_max);
    redactor.redact_json(&mut kept);
    // Names and numbers of items have no limit of their own; the row has.
    let text = kept.to_string();
    if text.len() > ARGUMENTS_BYTES_MAX {
        let hash = hex::encode(Sha256::digest(text.as_bytes()));
        return json!({ "bytes": text.len(), "sha256": hash, "head": clip(&text, string_bytes_max) });
    }
    kept
}

fn shorten(value: &mut Value, redactor: &Redactor, bytes_max: usize) {
    match value {
        Value::String(text) if text.len() > bytes_max => {
            let hash = hex::encode(Sha256::digest(text.as_bytes()));
            let length = text.len();
            // Redacted before the cut, which could leave half a secret that is known no more; but not all of 100 MB.
            let mut head = clip(text, bytes_max + SECRET_BYTES_MAX);
            redactor.redact(&mut head);
            let head = clip(&head, bytes_max);
            *text = format!("{head}… ({length} bytes, sha256 {hash})");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, redactor, bytes_max)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, redactor, bytes_max)),
        _ => {}
    }
}

/// The longest prefix of whole characters within `bytes_max`.
pub(crate) fn clip(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

/// Length of a value's JSON.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and neither can a value's JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
