//! What a person is shown of an ask, and what they can answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolhost_contract::{
    Answer, Effect, ErrorKind, QUOTE_CONTINUED, QUOTE_MARK, Redactor, ToolError, Wanted, quoted, visible, visible_line,
};
use toolhost_store::AskKind;

use crate::kinds::ArgumentKinds;
use crate::policy::is_one_text;

/// Longest text a person may answer with, bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Longest page, bytes: what a person can be expected to look at in one go, and what the form of a client can hold.
pub const PAGE_BYTES_MAX: usize = 8000;
/// The same in lines: empty ones, too, push what stands before them out of sight.
pub const PAGE_LINES_MAX: usize = 200;

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
    /// Bytes of the effect that `detail` does not hold: then nobody can be shown all of it, and it can only be denied.
    #[serde(default)]
    pub left_out: u64,
    /// How many parts of the effect look like secrets. In `summary` and `detail` they are masked.
    #[serde(default)]
    pub masked: usize,
    /// The effect with those parts, for the person who decides: a command or a line of a script could be made to look like a
    /// secret. Empty where nothing is masked.
    #[serde(default)]
    pub unmasked: String,
    /// Redacted.
    pub arguments: Value,
    /// What a rule that allows this and its like would say; `None`: only a person may.
    pub rule: Option<BTreeMap<String, String>>,
    /// Whether it may run with other arguments than those: not where what is allowed is more than they say.
    #[serde(default = "yes")]
    pub editable: bool,
    /// How rules look at the arguments.
    #[serde(default)]
    pub kinds: ArgumentKinds,
    /// Which answers a review or a question can have.
    pub wanted: Option<Wanted>,
    /// Answers in words that the person can choose from; they may give another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    pub round: i64,
    /// Whether only somebody else than the user who asks may allow it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_person: bool,
}

/// Longest pattern of an argument that is repeated in a rule, characters.
const PATTERN_SHOWN_CHARS: usize = 60;

/// The argument whose text goes into a file.
const CONTENT: &str = "content";

/// `bash when command = cargo test *, and no other argument`. Paths and commands are named whole. A text that goes into a
/// file or is long was shown with the call: it is not repeated.
///
/// `kinds`: those of the tool's arguments. Where they are not at hand, each text of one line is named.
pub fn rule_words(tool: &str, conditions: &BTreeMap<String, String>, kinds: Option<&ArgumentKinds>) -> String {
    let (named, absent): (Vec<_>, Vec<_>) = conditions.iter().partition(|(_, pattern)| !pattern.is_empty());
    let is_short = |name: &str, pattern: &str| {
        let is_line = !pattern.contains('\n');
        match kinds {
            Some(kinds) if kinds.is_path(name) || kinds.is_command(name) => true,
            Some(_) => name != CONTENT && is_line && pattern.chars().count() <= PATTERN_SHOWN_CHARS,
            None => is_line,
        }
    };
    // "is the same" is true only of a pattern that matches one text. Every other pattern is shown in full.
    let is_said = |name: &str, pattern: &str| is_short(name, pattern) || !is_one_text(pattern);
    let (short, long): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, pattern)| is_said(name, pattern));
    let mut words: Vec<String> =
        short.iter().map(|(name, pattern)| format!("{name} = {}", visible_line(pattern))).collect();
    words.extend(long.iter().map(|(name, _)| format!("{name} is the same")));
    let when = if words.is_empty() { String::new() } else { format!(" when {}", words.join(", ")) };
    let others = if absent.is_empty() { "" } else { ", and no other argument" };
    format!("{tool}{when}{others}")
}

fn yes() -> bool {
    true
}

impl Shown {
    /// All of it as a text for people, without anything deceptive: each line that is not the host's own has a mark.
    pub fn render(&self) -> String {
        let persona = visible_line(&self.persona);
        let mut text = match self.kind {
            AskKind::Approval => format!("{persona} ({}) wants:\n", visible_line(&self.profile)),
            AskKind::Review => format!("{persona} asks for a review, round {}:\n", self.round),
            AskKind::Question => format!("{persona} asks:\n"),
        };
        text.push_str(&quoted(if self.kind == AskKind::Review { &self.title } else { &self.summary }));
        if !self.choices.is_empty() {
            // No line of the agent's begins so: its question cannot carry a list that looks like this one.
            text.push_str("\nanswers to choose from, by their numbers:");
            for (number, choice) in (1..).zip(&self.choices) {
                text.push_str(&format!("\n{number} {QUOTE_MARK}{}", visible_line(choice)));
            }
        }
        if self.kind == AskKind::Approval && !self.why.is_empty() {
            text.push_str(&format!("\nasked because {}", visible_line(&self.why)));
        }
        if self.masked > 0 {
            text.push_str(&format!(
                "\nMASKED: {} that looks like a secret; what stands there is shown at the end",
                if self.masked == 1 { "one part".to_owned() } else { format!("{} parts", self.masked) }
            ));
        }
        // First and last: no page in between hides it.
        let cut = (self.left_out > 0).then(|| {
            format!(
                "\nNOT ALL OF IT: {} more bytes of what it would do are too many to keep, so it can only be denied",
                self.left_out
            )
        });
        text.extend(cut.clone());
        if !self.detail.is_empty() {
            text.push_str("\n\n");
            text.push_str(&quoted(&self.detail));
            text.extend(cut);
        }
        text
    }

    /// What is rendered, and what is masked in it.
    pub fn whole(&self) -> String {
        [self.render()].into_iter().chain(self.without_masks()).collect::<Vec<_>>().join("\n\n")
    }

    fn without_masks(&self) -> Option<String> {
        let text = || format!("all of it, without masks:\n{}", quoted(&self.unmasked));
        (!self.unmasked.is_empty()).then(text)
    }

    /// The same in pages of at most [`PAGE_BYTES_MAX`] and [`PAGE_LINES_MAX`]; there is always one, and what is masked is on none
    /// of the first.
    pub fn pages(&self) -> Vec<String> {
        let mut pages = in_pages(&self.render());
        pages.extend(self.without_masks().iter().flat_map(|text| in_pages(text)));
        pages
    }

    /// The ask for a person who may not answer: secrets are masked in all of its texts. A person who answers a review sees its text
    /// unmasked, because that text is what they agree to.
    #[must_use]
    pub fn for_lookers(&self, secrets: &Redactor) -> Self {
        let mut shown = Self { unmasked: String::new(), ..self.clone() };
        for text in [&mut shown.title, &mut shown.why, &mut shown.persona, &mut shown.summary, &mut shown.detail] {
            secrets.redact(text);
        }
        shown.choices.iter_mut().for_each(|choice| secrets.redact(choice));
        shown.rule.iter_mut().flat_map(BTreeMap::values_mut).for_each(|pattern| secrets.redact(pattern));
        secrets.redact_json(&mut shown.arguments);
        shown
    }

    /// Whether it is more than one page: then who agrees to it must have been shown all of them.
    pub fn is_long(&self) -> bool {
        self.pages().len() > 1
    }

    /// Of what is rendered, SHA-256 in hex.
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.whole()))
    }

    /// A rule as people read it, and for whom it would hold.
    pub fn rule_text(&self) -> Option<String> {
        let rule = rule_words(&self.tool, self.rule.as_ref()?, Some(&self.kinds));
        Some(visible_line(&format!("{rule}; for everybody with the profile {}", self.profile)))
    }

    /// Whether the word agrees to what is shown.
    pub fn agrees(&self, word: &str) -> bool {
        matches!((self.kind, word), (AskKind::Approval, "edit") | (_, "allow" | "pass" | "yes"))
    }

    /// The words a person can answer with.
    pub fn answers(&self) -> &'static [&'static str] {
        match (self.kind, self.wanted) {
            (AskKind::Approval, _) if self.left_out > 0 => &["deny"],
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
                let arguments: Value = serde_json::from_str(&needed(text)?).map_err(|error| {
                    let example = r#"{"path": "a.txt", "content": "Hello"}"#;
                    invalid(format!(
                        "an edit has all arguments of the call as a JSON object, such as {example}: {error}"
                    ))
                })?;
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

    /// The choice that a number stands for, where a person has been shown the numbers and typed one of them. What is no
    /// number stands for itself.
    ///
    /// # Errors
    /// If the question offers answers, and none has this number: it is more likely a slip than an answer.
    pub fn chosen(&self, typed: String) -> Result<String, ToolError> {
        let number = typed.trim();
        if self.choices.is_empty() || number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
            return Ok(typed);
        }
        let place = number.parse::<usize>().ok().filter(|_| !number.starts_with('0'));
        let choice = place.and_then(|place| self.choices.get(place - 1)).cloned();
        choice.ok_or_else(|| {
            let message = format!("no answer has the number {number}: they are 1 to {}", self.choices.len());
            ToolError::new(ErrorKind::Validation, message)
                .hint("to answer with a number of your own, write it with a word, such as \"7 days\"")
        })
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
        if self.left_out > 0 && answer.agrees() {
            let message = format!(
                "{} bytes of what it would do are too many to keep, so nobody has seen all of it: it can only be denied",
                self.left_out
            );
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
        let allowed = self.answers();
        if !allowed.contains(&word) || of_approvals != (self.kind == AskKind::Approval) {
            let message = format!("`{word}` is no answer to this: it takes {}", allowed.join(", "));
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
        if let Answer::Feedback { text } | Answer::Text { text } = answer
            && text.trim().is_empty()
        {
            return Err(ToolError::new(
                ErrorKind::Validation,
                format!("{} needs a text, and this one is empty", if word == "answer" { "an answer" } else { word }),
            ));
        }
        let text = match answer {
            Answer::Edit { text } | Answer::Feedback { text } | Answer::Text { text } => text.len(),
            Answer::Deny { comment: Some(comment) } => comment.len(),
            Answer::AllowEdited { arguments } => arguments.to_string().len(),
            _ => 0,
        };
        if text > ANSWER_BYTES_MAX {
            let message = format!("the answer is {text} bytes long; {ANSWER_BYTES_MAX} is the most");
            return Err(ToolError::too_large(message, ANSWER_BYTES_MAX));
        }
        Ok(())
    }
}

fn in_pages(text: &str) -> Vec<String> {
    let mut pages = vec![String::new()];
    let mut lines = 0;
    let mut put = |line: &str| {
        let page = pages.last().map_or(0, String::len);
        if page > 0 && (page + 1 + line.len() > PAGE_BYTES_MAX || lines == PAGE_LINES_MAX) {
            pages.push(String::new());
            lines = 0;
        }
        if let Some(page) = pages.last_mut() {
            page.push_str(if lines == 0 { "" } else { "\n" });
            page.push_str(line);
            lines += 1;
        }
    };
    for line in text.split('\n') {
        let mark = if line.starts_with(QUOTE_MARK) { QUOTE_CONTINUED } else { "" };
        let (mut rest, mut before) = (line, "");
        while before.len() + rest.len() > PAGE_BYTES_MAX {
            let cut = rest.floor_char_boundary(PAGE_BYTES_MAX - before.len());
            put(&[before, &rest[..cut]].concat());
            (rest, before) = (&rest[cut..], mark);
        }
        put(&[before, rest].concat());
    }
    pages
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
            left_out: 0,
            masked: 0,
            unmasked: String::new(),
            arguments: Value::Null,
            rule: Some([("command".to_owned(), trick.to_owned())].into()),
            kinds: ArgumentKinds::default(),
            editable: true,
            wanted: None,
            choices: Vec::new(),
            round: 1,
            second_person: false,
        };
        for text in [shown.render(), shown.rule_text().unwrap()] {
            assert!(text.contains("\\u{202e}gpj.exe\\u{1b}[2K\\u{200b}\\u{d}$ rm"), "{text}");
            assert!(!text.chars().any(|c| toolhost_contract::is_deceptive(c) && c != '\n'), "{text:?}");
        }
    }

    #[test]
    fn pages_hold_all_that_is_rendered_and_no_more_than_a_page_each() {
        let long_line = "ä".repeat(3 * PAGE_BYTES_MAX);
        let many_lines = "\n".repeat(5 * PAGE_LINES_MAX) + "end";
        for detail in [String::new(), "short".to_owned(), long_line, many_lines, "a line\n".repeat(9_999)] {
            let is_short = detail.len() < 100;
            let shown: Shown = serde_json::from_value(serde_json::json!({
                "kind": "approval", "title": "t", "tool": "bash", "effect": "executes", "why": "w", "persona": "p",
                "profile": "all", "summary": "s", "detail": detail, "arguments": null, "rule": null, "wanted": null,
                "round": 1,
            }))
            .unwrap();
            let pages = shown.pages();
            assert_eq!((pages.len() == 1, shown.is_long()), (is_short, !is_short));
            for page in &pages {
                assert!(page.len() <= PAGE_BYTES_MAX && page.lines().count() <= PAGE_LINES_MAX, "{}", page.len());
            }
            let joined = pages.join("\n").replace(&format!("\n{QUOTE_CONTINUED}"), "");
            assert_eq!(joined, shown.render());
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
