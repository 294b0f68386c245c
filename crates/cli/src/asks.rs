//! Where an ask stands, in words.

use serde_json::Value;
use toolhost_host::ask_id;
use toolhost_store::{Ask, AskEnd, AskSummary};

use crate::print;

/// `ask-7 was answered before by local: allow, 2026-11-21T06:54:33Z; a call has used the answer`. `None` while it is open.
pub(crate) fn ended(ask: &Ask) -> Option<String> {
    let id = ask_id(ask.number);
    let answered = || {
        let by = ask.answered_by.as_deref().unwrap_or("nobody");
        let at = ask.answered_at_ms.map_or(String::new(), |at| format!(", {}", print::local_time(at)));
        format!("{id} was answered before by {}: {}{at}", print::visible_line(by), word(ask))
    };
    match ask.end() {
        AskEnd::Open => None,
        AskEnd::Answered => Some(format!("{}; no call has used the answer yet", answered())),
        AskEnd::Used => Some(format!("{}; a call has used the answer", answered())),
        AskEnd::TakenBack => Some(format!("{}, and the answer was taken back", answered())),
        end @ (AskEnd::Withdrawn | AskEnd::SessionCancelled) => Some(match ask.answer {
            Some(_) => format!("{}; no call has used the answer: {}", answered(), end.why_withdrawn()),
            None => format!("{id} was withdrawn: {}", end.why_withdrawn()),
        }),
        AskEnd::Unused => {
            let at = print::local_time(ask.expires_at_ms);
            Some(format!("{}; the answer expired at {at} before a call used it", answered()))
        }
        AskEnd::Unanswered => {
            Some(format!("{id} expired at {} without an answer", print::local_time(ask.expires_at_ms)))
        }
    }
}

/// `answered: allow, by local`
pub(crate) fn state(ask: &AskSummary) -> String {
    let state = match ask.end() {
        // `expired` alone reads as if nobody had answered.
        AskEnd::Unused => "expired unused".to_owned(),
        _ => serde_json::to_value(ask.state).unwrap_or_default().as_str().unwrap_or_default().to_owned(),
    };
    let said = ask.said.as_deref();
    match ask.answered_by.as_deref() {
        Some(by) => format!("{state}: {}, by {}", spaced(said), print::visible_line(by)),
        None => state,
    }
}

/// The word of the answer.
pub(crate) fn word(ask: &Ask) -> String {
    spaced(said(ask))
}

/// What was decided just now: `ask-7 is allowed`.
pub(crate) fn decided(ask: &Ask) -> String {
    let id = ask_id(ask.number);
    match said(ask) {
        Some("allow") => format!("{id} is allowed"),
        Some("allow_edited") => format!("{id} is allowed with your arguments"),
        Some("deny") => format!("{id} is denied; its agent is told"),
        Some("text") => format!("{id} is answered: {}", print::cell(text_of(ask).unwrap_or_default())),
        word => format!("{id} is answered: {}", spaced(word)),
    }
}

/// What a call came to that a person has allowed; `None` while that is not known.
pub(crate) fn came(ask: &Ask) -> Option<String> {
    let outcome = ask.outcome.as_ref()?;
    if outcome.get("ok")? == true {
        return Some(match outcome.pointer("/data/exitCode").and_then(Value::as_i64) {
            Some(code) if code != 0 => print::paint(print::BAD, format_args!("the command ran and ended with {code}")),
            _ => print::paint(print::GOOD, "the call ran and succeeded"),
        });
    }
    let message = outcome.pointer("/error/message").and_then(Value::as_str).unwrap_or("it says no reason");
    Some(print::paint(print::BAD, format_args!("the call failed: {}", print::visible_line(message))))
}

/// The arguments that a person gave a call instead of its own, as JSON; secrets in them are masked.
pub(crate) fn edited_arguments(ask: &Ask) -> Option<String> {
    let arguments = ask.answer.as_ref()?.get("arguments")?;
    serde_json::to_string_pretty(arguments).ok()
}

/// The answer in words.
fn text_of(ask: &Ask) -> Option<&str> {
    ask.answer.as_ref()?.get("text")?.as_str()
}

fn said(ask: &Ask) -> Option<&str> {
    ask.answer.as_ref().and_then(|answer| answer.get("say")).and_then(Value::as_str)
}

fn spaced(said: Option<&str>) -> String {
    said.unwrap_or("no answer").replace('_', " ")
}
