//! Where an ask stands, in words.

use serde_json::Value;
use toolhost_host::ask_id;
use toolhost_store::{Ask, AskState};

use crate::print;

/// `ask-7 was answered before by local: allow, 2026-11-21T06:54:33Z; a call has used the answer`. `None` while it is open.
pub(crate) fn ended(ask: &Ask) -> Option<String> {
    let id = ask_id(ask.number);
    let answered = || {
        let by = ask.answered_by.as_deref().unwrap_or("nobody");
        let at = ask.answered_at_ms.map_or(String::new(), |at| format!(", {}", print::local_time(at)));
        format!("{id} was answered before by {}: {}{at}", print::visible_line(by), word(ask))
    };
    match ask.state {
        AskState::Open => None,
        AskState::Answered => Some(format!("{}; no call has used the answer yet", answered())),
        AskState::Used => Some(format!("{}; a call has used the answer", answered())),
        AskState::Withdrawn if ask.answer.is_some() => Some(format!("{}, and the answer was taken back", answered())),
        AskState::Withdrawn => Some(format!("{id} was withdrawn: its caller no longer waits for an answer")),
        AskState::Expired => Some(format!("{id} expired at {}", print::local_time(ask.expires_at_ms))),
    }
}

/// `answered: allow, by local`
pub(crate) fn state(state: AskState, said: Option<&str>, by: Option<&str>) -> String {
    let state = serde_json::to_value(state).unwrap_or_default();
    let state = state.as_str().unwrap_or_default().to_owned();
    match by {
        Some(by) => format!("{state}: {}, by {}", spaced(said), print::visible_line(by)),
        None => state,
    }
}

/// The word of the answer.
pub(crate) fn word(ask: &Ask) -> String {
    spaced(said(ask))
}

fn said(ask: &Ask) -> Option<&str> {
    ask.answer.as_ref().and_then(|answer| answer.get("say")).and_then(Value::as_str)
}

fn spaced(said: Option<&str>) -> String {
    said.unwrap_or("no answer").replace('_', " ")
}
