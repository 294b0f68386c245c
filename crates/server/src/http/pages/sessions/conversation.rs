//! The steps of a session as a conversation: what a person said, what the model said, and what each call came to.
//!
//! Steps are read as JSON and not as the agent's types: a step of another version is shown as far as it is understood.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolhost_contract::{ToolError, visible_json};
use toolhost_host::Registry;
use toolhost_store::StepRow;

use super::asked::{Asked, ask_of, asks_of};
use super::steps::{ask_of_wait, calls_of, kind_of, number, text};
use crate::http::pages::deeds::deed;
use crate::http::pages::split::Split;
use crate::http::pages::text::{Shown, When, count, dollars, duration, encoded, name};
use crate::http::pages::visitor::{Membership, Visitor};

/// Most of a message on the page; the rest is on the page of its step.
const SAID_LINES_MAX: usize = 200;
const SAID_BYTES_MAX: usize = 16 * 1024;
/// The level of the heading that a message stands below.
const SAID_LEVEL: usize = 3;
/// Most of the arguments or the answer of a call.
const CALL_LINES_MAX: usize = 60;
const CALL_BYTES_MAX: usize = 6 * 1024;

/// One thing that was said or done.
pub(super) struct Item {
    /// How it is set: `person`, `agent`, `call` or `note`.
    pub(super) class: &'static str,
    pub(super) step: String,
    /// Its number in the journal.
    pub(super) seq: i64,
    /// Whether the page is about this one.
    pub(super) is_current: bool,
    pub(super) who: String,
    pub(super) when: When,
    /// What it came to, in a sentence.
    pub(super) sentence: String,
    pub(super) is_bad: bool,
    pub(super) text: Shown,
    /// The same side by side, of a diff that is to be shown so.
    pub(super) split: Option<Split>,
    /// What a call was asked with.
    pub(super) asked: Shown,
    /// The ask that a call was held by.
    pub(super) ask: Option<Asked>,
    /// Calls of a turn whose end is not on this page, and the words that stand above them.
    pub(super) calls: Vec<Unended>,
    pub(super) calls_said: &'static str,
    /// Where the audit has the call.
    pub(super) audit: String,
}

/// A call that has not ended, or whose end is on another page.
pub(super) struct Unended {
    /// `Run a command: make test`
    pub(super) told: String,
    id: String,
    pub(super) ask: Option<Asked>,
}

impl Item {
    fn new(visitor: &Visitor<'_>, row: &StepRow, class: &'static str, who: impl Into<String>) -> Self {
        Self {
            class,
            step: row.step.clone(),
            seq: row.seq,
            is_current: false,
            who: who.into(),
            when: When::of(visitor, row.at_ms),
            sentence: String::new(),
            is_bad: false,
            text: Shown::default(),
            split: None,
            asked: Shown::default(),
            ask: None,
            calls: Vec::new(),
            calls_said: "",
            audit: String::new(),
        }
    }
}

impl Item {
    pub(super) fn is_diff(&self) -> bool {
        self.text.lines.iter().any(|line| line.class == "hunk")
    }

    /// Shows its diff side by side, if it has one.
    pub(super) fn split(&mut self) {
        if self.is_diff() {
            self.split = Some(Split::of(self.text.lines.iter().map(|line| &*line.text)));
        }
    }
}

/// Steps in their order, as a conversation.
pub(super) fn items(visitor: &Visitor<'_>, registry: &Registry, rows: &[StepRow]) -> Vec<Item> {
    let turns = || rows.iter().filter(|row| kind_of(&row.step).0 == "turn");
    let asked: BTreeMap<&str, &Value> =
        turns().flat_map(|row| calls_of(&row.body)).map(|(step, _, arguments)| (step, arguments)).collect();
    let ended: BTreeSet<&str> = rows.iter().map(|row| &*row.step).collect();
    rows.iter().filter_map(|row| item((visitor, registry), row, &asked, &ended)).collect()
}

/// A message of a person that the session has not heard yet.
pub(in super::super) struct Unheard {
    pub(in super::super) when: When,
    pub(in super::super) text: Shown,
}

/// What people have said to a session that it has not heard yet, the oldest first.
pub(in super::super) async fn unheard(
    visitor: &Visitor<'_>,
    membership: &Membership,
    session: &str,
) -> Result<Vec<Unheard>, ToolError> {
    let mut messages = membership.project.sessions.unheard(membership.project.id, session).await?;
    for message in &mut messages {
        // As the step is shown that it becomes.
        let mut text = Value::from(std::mem::take(&mut message.text));
        membership.project.gate.redact(&mut text);
        message.text = text.as_str().unwrap_or_default().to_owned();
    }
    let shown = messages.into_iter().map(|message| Unheard {
        when: When::of(visitor, message.at_ms),
        text: Shown::markdown(&message.text, SAID_LEVEL, SAID_LINES_MAX, SAID_BYTES_MAX),
    });
    Ok(shown.collect())
}

/// Says beside each call which ask held it, or which one it waits for, and where the audit has it.
pub(super) async fn tell_asks(membership: &Membership, rows: &[StepRow], items: &mut [Item]) -> Result<(), ToolError> {
    let calls = || rows.iter().filter(|row| kind_of(&row.step).0 == "call");
    let ids: BTreeMap<&str, &str> = calls().map(|row| (&*row.step, text(&row.body, "callId"))).collect();
    let unended = items.iter().flat_map(|item| &item.calls).map(|call| call.id.clone());
    let wanted: Vec<String> = ids.values().map(|id| (*id).to_owned()).chain(unended).collect();
    let asks = asks_of(membership, &wanted).await?;
    let turns = rows.iter().filter(|row| kind_of(&row.step).0 == "turn");
    let waits: BTreeMap<&str, i64> = turns
        .flat_map(|row| calls_of(&row.body))
        .filter_map(|(step, _, given)| Some((step, ask_of_wait(given)?)))
        .collect();
    for item in items {
        if let Some(id) = ids.get(&*item.step) {
            item.audit = membership.path(&format!("audit/calls/{}", encoded(id)));
            item.ask = asks.get(*id).cloned();
        }
        if let (None, Some(number)) = (&item.ask, waits.get(&*item.step)) {
            item.ask = ask_of(membership, *number).await?;
        }
        for call in &mut item.calls {
            call.ask = asks.get(&call.id).cloned();
        }
    }
    Ok(())
}

/// Whether a call was put to people, who had not answered when it ended.
fn waits_now(call: &Value) -> bool {
    call.get("waits").and_then(Value::as_bool) == Some(true)
}

fn item(
    (visitor, registry): (&Visitor<'_>, &Registry),
    row: &StepRow,
    asked: &BTreeMap<&str, &Value>,
    ended: &BTreeSet<&str>,
) -> Option<Item> {
    let (kind, turn) = kind_of(&row.step);
    let said = |text: &str| Shown::markdown(text, SAID_LEVEL, SAID_LINES_MAX, SAID_BYTES_MAX);
    Some(match kind {
        "open" => Item { text: said(text(&row.body, "goal")), ..Item::new(visitor, row, "person", "Goal") },
        "say" => Item { text: said(text(&row.body, "text")), ..Item::new(visitor, row, "person", "Message") },
        "turn" => {
            let reply = text(&row.body["reply"], "text");
            let ids = row.body.get("callIds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let missing = calls_of(&row.body).enumerate().filter(|(_, (step, _, _))| !ended.contains(step));
            let missing = missing.map(|(number, (_, tool, arguments))| Unended {
                told: told_call(registry, tool, arguments),
                id: ids.get(number).and_then(Value::as_str).unwrap_or_default().to_owned(),
                ask: None,
            });
            Item {
                text: said(reply),
                sentence: turn_sentence(&row.body),
                calls: missing.collect(),
                ..Item::new(visitor, row, "agent", format!("Agent, turn {}", u64::from(turn) + 1))
            }
        }
        "call" => {
            let has_failed = row.body.get("exitCode").and_then(Value::as_i64).is_some_and(|code| code != 0);
            let is_bad = has_failed || row.body.get("ok").and_then(Value::as_bool) == Some(false);
            let arguments = asked.get(&*row.step).copied();
            let tool = text(&row.body, "tool");
            let who = told_call(registry, tool, arguments.unwrap_or(&Value::Null));
            let arguments = arguments.map(arguments_text).unwrap_or_default();
            Item {
                sentence: call_sentence(&row.body),
                is_bad,
                text: Shown::of(&answer_text(text(&row.body, "content")), CALL_LINES_MAX, CALL_BYTES_MAX),
                asked: Shown::of(&arguments, CALL_LINES_MAX, CALL_BYTES_MAX),
                ..Item::new(visitor, row, "call", who)
            }
        }
        "end" => Item {
            is_bad: true,
            sentence: super::sentence(text(&row.body, "message")),
            ..Item::new(visitor, row, "note", format!("Stopped: {}", name(text(&row.body, "code"))))
        },
        "check" => {
            let bad = row.body.get("bad")?;
            Item {
                text: Shown::of(text(bad, "findings"), SAID_LINES_MAX, SAID_BYTES_MAX),
                is_bad: true,
                sentence: format!("The answer was sent back: {}", name(text(bad, "code"))),
                ..Item::new(visitor, row, "note", "Check")
            }
        }
        _ => return None,
    })
}

/// A call that has ended, in one line: what it did, and what it came to.
pub(in super::super) fn ended_call(registry: &Registry, call: &Value) -> String {
    format!("{}: {}", told_call(registry, text(call, "tool"), &Value::Null), call_sentence(call))
}

/// What a call does, as the audit says it. `arguments`: as the journal keeps them.
fn told_call(registry: &Registry, tool: &str, arguments: &Value) -> String {
    name(&deed(registry, tool, arguments.get("json").unwrap_or(&Value::Null)))
}

fn turn_sentence(turn: &Value) -> String {
    let usage = &turn["reply"]["usage"];
    let mut parts = vec![duration(number(turn, "ms"))];
    let (sent, came) = (number(usage, "inputTokens"), number(usage, "outputTokens"));
    if sent > 0 || came > 0 {
        parts.push(format!("{} tokens read, {} written", count(sent), count(came)));
    }
    parts.extend(turn.get("cost").and_then(Value::as_f64).map(dollars));
    parts.join(" · ")
}

/// `Done after 1.2 s: edited a.txt`, `Exit code 1 after 30 ms: …`, `Put to a person`.
fn call_sentence(call: &Value) -> String {
    let took = match number(call, "ms") {
        0 => String::new(),
        ms => format!(" after {}", duration(ms)),
    };
    let outcome = match (call.get("ok").and_then(Value::as_bool), text(call, "code")) {
        // What it answered is for the agent; the ask is named beside it.
        (Some(true), _) if waits_now(call) => return "Put to a person".to_owned(),
        (Some(true), _) if is_refused(text(call, "brief")) => "Not allowed".to_owned(),
        (Some(true), _) => match call.get("exitCode").and_then(Value::as_i64) {
            Some(exit_code) if exit_code != 0 => format!("Exit code {exit_code}{took}"),
            _ => format!("Done{took}"),
        },
        (_, "") => format!("Failed{took}"),
        // Most messages end in the kind and the code, for the model.
        (_, _) if is_refused(text(call, "brief")) => "Not allowed".to_owned(),
        (_, code) if text(call, "brief").contains(code) => format!("Failed{took}"),
        (_, code) => format!("Failed{took} ({})", name(code)),
    };
    let brief = text(call, "brief");
    match without_hash(if is_refused(brief) {
        without_brackets(brief)
    } else {
        without_code(brief, text(call, "code"))
    }) {
        brief if brief.is_empty() => outcome,
        brief => format!("{outcome}: {}", name(&brief)),
    }
}

/// Whether a message ends in the kind of what was refused, and a code: also an answer that tells of another call.
fn is_refused(brief: &str) -> bool {
    brief.rsplit_once(" (denied, ").is_some_and(|(_, code)| code.ends_with(')'))
}

fn without_brackets(brief: &str) -> &str {
    brief.rsplit_once(" (").map_or(brief, |(message, _)| message)
}

/// A message without the hash of a file's content, which the model names when it edits the file again.
fn without_hash(brief: &str) -> Cow<'_, str> {
    let Some((before, rest)) = brief.split_once(", sha256 ") else { return Cow::Borrowed(brief) };
    let after = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '…');
    Cow::Owned(format!("{before}{after}"))
}

/// A message without the kind and the code at its end, which mean nothing to people.
fn without_code<'t>(brief: &'t str, code: &str) -> &'t str {
    let Some(message) = brief.strip_suffix(')').and_then(|brief| brief.strip_suffix(code)).filter(|_| !code.is_empty())
    else {
        return brief;
    };
    message.rsplit_once(" (").map_or(brief, |(message, _)| message)
}

/// Arguments as they are shown: a text alone as it is, everything else as JSON.
fn arguments_text(arguments: &Value) -> String {
    // As the journal keeps them: `{"json": …}`, or `{"malformed": "…"}`.
    let inner = arguments.get("json").unwrap_or(arguments);
    if let Some(raw) = arguments.get("malformed").and_then(Value::as_str) {
        return raw.to_owned();
    }
    visible_json(&serde_json::to_string_pretty(inner).unwrap_or_default())
}

/// The answer of a call for people. Of an envelope, the diff where it has one, or its data, or its error.
pub(in super::super) fn answer_text(content: &str) -> String {
    if !content.starts_with("{\"") {
        return content.to_owned();
    }
    let Ok(envelope) = serde_json::from_str::<Value>(content) else { return content.to_owned() };
    if envelope.get("meta").is_none() {
        return content.to_owned();
    }
    if let Some(diff) = envelope.pointer("/data/diff").and_then(Value::as_str) {
        return diff.to_owned();
    }
    if let Some(message) = envelope.pointer("/error/message").and_then(Value::as_str) {
        return message.to_owned();
    }
    visible_json(&serde_json::to_string_pretty(&envelope["data"]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_told_in_a_sentence() {
        let told = |call: Value| call_sentence(&call);
        assert_eq!(told(json!({ "ok": true, "ms": 1200, "brief": "edited a" })), "Done after 1.2 s: edited a");
        let hashed = told(json!({ "ok": true, "ms": 3, "brief": "edited a (2 places, sha256 0a1b2c)" }));
        assert_eq!(hashed, "Done after 3 ms: edited a (2 places)");
        let cut = told(json!({ "ok": true, "ms": 3, "brief": "wrote a (9 bytes, sha256 0a1b2" }));
        assert_eq!(cut, "Done after 3 ms: wrote a (9 bytes");
        assert_eq!(told(json!({ "ok": false, "ms": 3, "code": "DENIED" })), "Failed after 3 ms (DENIED)");
        let denied = json!({ "ok": false, "ms": 3, "code": "DENIED", "brief": "no (DENIED)" });
        assert_eq!(told(denied), "Failed after 3 ms: no");
        let refused = json!({ "ok": false, "ms": 3, "code": "X_1", "brief": "not given: wait (a day) (denied, X_1)" });
        assert_eq!(told(refused), "Not allowed: not given: wait (a day)");
        let other = json!({ "ok": false, "ms": 3, "code": "X_1", "brief": "X_1 came (late)" });
        assert_eq!(told(other), "Failed after 3 ms: X_1 came (late)");
        let told_of = json!({ "ok": true, "ms": 9, "brief": "bash was not given it (denied, X_1)" });
        assert_eq!(told(told_of), "Not allowed: bash was not given it");
        assert_eq!(told(json!({})), "Failed");
        assert_eq!(told(json!({ "ok": true, "ms": 3, "exitCode": 1 })), "Exit code 1 after 3 ms");
        assert_eq!(told(json!({ "ok": true, "ms": 3, "exitCode": 0 })), "Done after 3 ms");
        assert_eq!(told(json!({ "ok": true, "waits": true, "brief": "ask-1" })), "Put to a person");
    }

    #[test]
    fn an_answer_in_an_envelope_is_shown_by_its_diff_its_error_or_its_data() {
        let envelope = |data: Value, error: Value| {
            answer_text(&json!({ "data": data, "error": error, "meta": {}, "ok": true }).to_string())
        };
        assert_eq!(envelope(json!({ "diff": "@@ -1 @@\n-a" }), Value::Null), "@@ -1 @@\n-a");
        assert_eq!(envelope(Value::Null, json!({ "message": "no" })), "no");
        assert_eq!(envelope(json!([1]), Value::Null), "[\n  1\n]");
        for other in ["plain", "{\"a\": 1}", "{\"", "{\"meta\""] {
            assert_eq!(answer_text(other), other);
        }
    }
}
