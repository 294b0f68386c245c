//! What a person is shown of an ask, and what they can answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::{Answer, Effect, ErrorKind, ToolError, Wanted, visible, visible_line};
use toolhost_store::AskKind;

/// Longest text a person may answer with, bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What a person is shown. Rendered, nothing in it can deceive them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub kind: AskKind,
    pub title: String,
    pub tool: String,
    pub effect: Effect,
    /// Why policy asks; empty for reviews and questions.
    pub why: String,
    pub persona: String,
    pub profile: String,
    /// One line: what happens to what, or what is asked.
    pub summary: String,
    /// The real effect, or the text to look at.
    pub detail: String,
    /// Redacted.
    pub arguments: Value,
    /// What a rule that allows this and its like would say; `None`: only a person may.
    pub rule: Option<BTreeMap<String, String>>,
    /// Whether it may run with other arguments than those: not where what is allowed is more than they say.
    #[serde(default = "yes")]
    pub editable: bool,
    /// Which answers a review or a question can have.
    pub wanted: Option<Wanted>,
    pub round: i64,
}

fn yes() -> bool {
    true
}

impl Shown {
    /// All of it as a text for people, without anything deceptive.
    pub fn render(&self) -> String {
        let persona = visible_line(&self.persona);
        let mut text = match self.kind {
            AskKind::Approval => {
                let summary = visible_line(&self.summary);
                let mut text = format!("{persona} ({}) wants: {summary}", visible_line(&self.profile));
                if !self.why.is_empty() {
                    text.push_str(&format!("\nasked because {}", visible_line(&self.why)));
                }
                text
            }
            AskKind::Review => {
                format!("{persona} asks for a review of {}, round {}", visible_line(&self.title), self.round)
            }
            AskKind::Question => format!("{persona} asks: {}", self.summary),
        };
        if !self.detail.is_empty() {
            text.push_str("\n\n");
            text.push_str(self.detail.trim_end_matches('\n'));
        }
        visible(&text)
    }

    /// A rule as people read it: `bash when command = cargo test *, and no other` argument of a kind that reaches further;
    /// and for whom it would hold.
    pub fn rule_text(&self) -> Option<String> {
        let conditions: Vec<String> = self
            .rule
            .as_ref()?
            .iter()
            .filter(|(_, pattern)| !pattern.is_empty())
            .map(|(name, pattern)| format!("{name} = {pattern}"))
            .collect();
        let when = if conditions.is_empty() { String::new() } else { format!(" when {}", conditions.join(", ")) };
        let others =
            if self.rule.iter().flatten().any(|(_, pattern)| pattern.is_empty()) { ", and no other" } else { "" };
        let whom = format!("for everybody with the profile {}", self.profile);
        Some(visible_line(&format!("{}{when}{others}; {whom}", self.tool)))
    }

    /// The words a person can answer with.
    pub fn answers(&self) -> &'static [&'static str] {
        match (self.kind, self.wanted) {
            (AskKind::Approval, _) if !self.editable => &["allow", "deny"],
            (AskKind::Approval, _) => &["allow", "edit", "deny"],
            (_, Some(Wanted::PassOrEdit)) => &["pass", "edit", "cancel"],
            (_, Some(Wanted::PassEditOrFeedback)) => &["pass", "edit", "feedback", "cancel"],
            (_, Some(Wanted::YesOrNo)) => &["yes", "no", "cancel"],
            (_, Some(Wanted::Text) | None) => &["answer", "cancel"],
        }
    }

    /// The answer that a word stands for, with what was written beside it. For an edit of a call's arguments the text is
    /// their JSON. An unknown word is no answer.
    pub fn answer(&self, word: &str, text: Option<String>) -> Result<Answer, ToolError> {
        let invalid = |message: String| ToolError::new(ErrorKind::Validation, message);
        let needed = |text: Option<String>| text.ok_or_else(|| invalid(format!("`{word}` needs a text")));
        let answer = match word {
            "allow" => Answer::Allow,
            "edit" if self.kind == AskKind::Approval => {
                let arguments: Value = serde_json::from_str(&needed(text)?)
                    .map_err(|error| invalid(format!("the edited arguments are not JSON: {error}")))?;
                Answer::AllowEdited { arguments }
            }
            "edit" => Answer::Edit { text: needed(text)? },
            "deny" => Answer::Deny { comment: text.filter(|comment| !comment.trim().is_empty()) },
            "pass" => Answer::Pass,
            "feedback" => Answer::Feedback { text: needed(text)? },
            "cancel" => Answer::Cancel,
            "yes" => Answer::Yes,
            "no" => Answer::No,
            "answer" => Answer::Text { text: needed(text)? },
            _ => return Err(invalid(format!("`{}` is no answer", visible(word)))),
        };
        self.check(&answer)?;
        Ok(answer)
    }

    /// Whether what was asked can be answered so.
    pub(crate) fn check(&self, answer: &Answer) -> Result<(), ToolError> {
        let word = match answer {
            Answer::Allow => "allow",
            Answer::AllowEdited { .. } | Answer::Edit { .. } => "edit",
            Answer::Deny { .. } => "deny",
            Answer::Pass => "pass",
            Answer::Feedback { .. } => "feedback",
            Answer::Cancel => "cancel",
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Text { .. } => "answer",
        };
        let of_approvals = matches!(answer, Answer::Allow | Answer::AllowEdited { .. } | Answer::Deny { .. });
        let allowed = self.answers();
        if !allowed.contains(&word) || of_approvals != (self.kind == AskKind::Approval) {
            let message = format!("`{word}` is no answer to this: it takes {}", allowed.join(", "));
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
        if let Answer::Feedback { text } | Answer::Text { text } = answer
            && text.trim().is_empty()
        {
            return Err(ToolError::new(ErrorKind::Validation, format!("`{word}` needs a text, and this one is empty")));
        }
        let text = match answer {
            Answer::Edit { text } | Answer::Feedback { text } | Answer::Text { text } => text.len(),
            Answer::Deny { comment: Some(comment) } => comment.len(),
            Answer::AllowEdited { arguments } => arguments.to_string().len(),
            _ => 0,
        };
        if text > ANSWER_BYTES_MAX {
            let message = format!("the answer is {text} bytes long; {ANSWER_BYTES_MAX} is the most");
            return Err(ToolError::new(ErrorKind::Limit, message));
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_can_deceive() {
        let trick = "ls\u{202e}gpj.exe\u{1b}[2K\u{200b}\r$ rm";
        let shown = Shown {
            kind: AskKind::Approval,
            title: "Run".to_owned(),
            tool: "bash".to_owned(),
            effect: Effect::Executes,
            why: trick.to_owned(),
            persona: trick.to_owned(),
            profile: "all".to_owned(),
            summary: trick.to_owned(),
            detail: format!("+{trick}\n second line"),
            arguments: Value::Null,
            rule: Some([("command".to_owned(), trick.to_owned())].into()),
            editable: true,
            wanted: None,
            round: 1,
        };
        for text in [shown.render(), shown.rule_text().unwrap()] {
            assert!(text.contains("\\u{202e}gpj.exe\\u{1b}[2K\\u{200b}\\u{d}$ rm"), "{text}");
            assert!(!text.chars().any(|c| toolhost_contract::is_deceptive(c) && c != '\n'), "{text:?}");
        }
    }

    #[test]
    fn a_word_is_an_answer_only_where_it_was_asked_for() {
        let mut shown: Shown = serde_json::from_value(serde_json::json!({
            "kind": "review", "title": "PRD", "tool": "review.content", "effect": "asks", "why": "", "persona": "p",
            "profile": "all", "summary": "PRD", "detail": "x", "arguments": null, "rule": null,
            "wanted": "pass_or_edit", "round": 1,
        }))
        .unwrap();
        for (word, text, fits) in [
            ("pass", None, true),
            ("edit", Some("y"), true),
            ("edit", None, false),
            ("cancel", None, true),
            ("feedback", Some("more"), false),
            ("allow", None, false),
            ("yes", None, false),
            ("", None, false),
            ("PASS", None, false),
        ] {
            assert_eq!(shown.answer(word, text.map(str::to_owned)).is_ok(), fits, "{word} {text:?}");
        }
        shown.wanted = Some(Wanted::PassEditOrFeedback);
        assert!(shown.answer("feedback", Some("more".to_owned())).is_ok());
        for empty in ["", " \n\t"] {
            assert_eq!(shown.answer("feedback", Some(empty.to_owned())).unwrap_err().kind, ErrorKind::Validation);
        }
        let long = "x".repeat(ANSWER_BYTES_MAX + 1);
        assert_eq!(shown.answer("feedback", Some(long)).unwrap_err().kind, ErrorKind::Limit);
    }
}
