//! What became of what people were asked, in words.

use serde_json::Value;
use toolhost_contract::{visible_json, visible_line};
use toolhost_store::{Ask, AskEnd, AskKind, AskState, AskSummary};

use super::marks::without_marks;
use super::text::When;

/// What became of an ask.
pub(super) struct Ended {
    pub(super) said: String,
    /// Whether the call was made that was asked about.
    pub(super) is_made: bool,
    /// Whether it came to what was asked for.
    pub(super) is_good: bool,
    /// What was written with the answer: a reason, a text, or other arguments.
    pub(super) text: String,
    /// Whether other arguments were allowed than what was asked for.
    pub(super) is_edited: bool,
    /// When it was answered; `None` where nobody answered.
    pub(super) when: Option<When>,
}

impl Ended {
    /// `None` while it is open.
    pub(super) fn of(ask: &Ask) -> Option<Self> {
        let part = |name: &str| ask.answer.as_ref().and_then(|answer| answer.get(name));
        let did = did_words(part("say").and_then(Value::as_str).unwrap_or_default());
        let by = visible_line(ask.answered_by.as_deref().unwrap_or("nobody"));
        let outcome = |name: &str| ask.outcome.as_ref().and_then(|outcome| outcome.get(name)).and_then(Value::as_bool);
        let is_held_call = ask.kind == AskKind::Approval;
        let is_denied =
            is_held_call && !part("say").and_then(Value::as_str).is_some_and(|say| say.starts_with("allow"));
        let said = match (ask.end(), outcome("ok")) {
            (AskEnd::Open, _) => return None,
            (AskEnd::Answered, _) if part("say").is_some_and(|say| say == "edit") && !is_held_call => {
                format!("{by} {did}. It takes the place of the agent's when the agent goes on and hears it.")
            }
            (AskEnd::Answered, _) if !is_held_call => format!("{by} {did}. The agent has not heard it yet."),
            (AskEnd::Answered, _) if is_denied => format!("{by} {did}. The agent has not heard it yet."),
            (AskEnd::Answered, _) => format!("{by} {did}. The call has not used this answer yet."),
            (AskEnd::Used, _) if !is_held_call => format!("{by} {did}. The agent has heard it."),
            (AskEnd::Used, _) if is_denied => format!("{by} {did}. The call was not made."),
            (AskEnd::Used, Some(true)) => format!("{by} {did}. The call has succeeded."),
            (AskEnd::Used, Some(false)) => format!("{by} {did}. The call did not succeed."),
            (AskEnd::Used, None) => format!("{by} {did}."),
            (AskEnd::TakenBack, _) => format!("{by} {did}. The answer was taken back before a call used it."),
            (end @ (AskEnd::Withdrawn | AskEnd::SessionCancelled), _) if ask.answered_by.is_none() => {
                format!("Withdrawn: {}.", end.why_withdrawn())
            }
            (end @ (AskEnd::Withdrawn | AskEnd::SessionCancelled), _) => {
                format!("{by} {did}. No call used this answer: {}.", end.why_withdrawn())
            }
            (AskEnd::Unused, _) => format!("{by} {did}. The answer expired before a call used it."),
            (AskEnd::Unanswered, _) => "Expired: nobody answered in time.".to_owned(),
        };
        let written = ["comment", "text"].into_iter().find_map(|name| part(name).and_then(Value::as_str));
        let text = match part("arguments") {
            Some(arguments) => visible_json(&serde_json::to_string_pretty(arguments).unwrap_or_default()),
            None => without_marks(written.unwrap_or_default()),
        };
        let is_made = ask.state == AskState::Used && is_held_call && !is_denied;
        let is_good = ask.state == AskState::Used && outcome("ok") != Some(false);
        let when = ask.answered_at_ms.filter(|_| ask.answered_by.is_some()).map(When::on);
        Some(Self { said, is_made, is_good, text, is_edited: part("arguments").is_some(), when })
    }
}

/// What a person did who said this word, as the audit and the answers have it.
pub(super) fn did_words(word: &str) -> String {
    let did = match word {
        "allow" => "allowed it",
        "allow_edited" => "allowed it with other arguments",
        "cancel" => "gave no answer",
        "deny" => "denied it",
        "edit" => "sent another text",
        "feedback" => "gave feedback",
        "no" => "said no",
        "pass" => "passed it",
        "revoke" => "ended the rule",
        "seen" => "looked at it",
        "take_back" => "took the answer back",
        "text" => "answered",
        "yes" => "said yes",
        other => return format!("said: {}", visible_line(&other.replace('_', " "))),
    };
    did.to_owned()
}

/// In a list: `ann allowed it; not used yet`. Empty while it is open.
pub(super) fn in_words(ask: &AskSummary) -> String {
    let did = did_words(ask.said.as_deref().unwrap_or_default());
    let by = visible_line(ask.answered_by.as_deref().unwrap_or("nobody"));
    match ask.end() {
        AskEnd::Open => String::new(),
        AskEnd::Answered if ask.said.as_deref().is_some_and(|said| said.starts_with("allow")) => {
            format!("{by} {did}; not used yet")
        }
        AskEnd::Answered => format!("{by} {did}; not heard yet"),
        AskEnd::Used => format!("{by} {did}"),
        AskEnd::Unused => format!("{by} {did}; expired before it was used"),
        AskEnd::TakenBack => format!("{by} {did}; taken back"),
        AskEnd::Unanswered => "nobody answered in time".to_owned(),
        AskEnd::Withdrawn | AskEnd::SessionCancelled => "withdrawn".to_owned(),
    }
}
