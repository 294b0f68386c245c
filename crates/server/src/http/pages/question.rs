//! What a person is asked, as the head of a page says it.

use toolhost_contract::{ToolError, visible_line};
use toolhost_host::Shown;
use toolhost_store::AskKind;

/// Longest heading of a question, characters; all of it stands below.
const HEADING_CHARS_MAX: usize = 200;

/// What is asked, in a line. Of a question with several lines it is the first.
pub(super) fn heading(shown: &Shown) -> String {
    let text = if shown.kind == AskKind::Review { &shown.title } else { &shown.summary };
    if shown.kind != AskKind::Question {
        return visible_line(&text.replace('\n', " "));
    }
    let line = text.trim().lines().next().unwrap_or_default();
    let cut = line.char_indices().nth(HEADING_CHARS_MAX).map_or(line.len(), |(at, _)| at);
    let more = if cut < line.len() { "…" } else { "" };
    format!("{}{more}", visible_line(&line[..cut]))
}

/// The lines of a question that its heading does not hold whole.
pub(super) fn question_lines(shown: &Shown) -> Vec<String> {
    let text = shown.summary.trim();
    let is_whole = shown.kind != AskKind::Question || (!text.contains('\n') && heading(shown) == visible_line(text));
    if is_whole { Vec::new() } else { text.lines().map(visible_line).collect() }
}

/// The text of an answer: of a button, which is an answer by itself, or as it was typed.
///
/// # Errors
/// If the question has no such choice.
pub(super) fn answer_text(shown: &Shown, choice: &str, typed: &str) -> Result<String, ToolError> {
    match choice {
        // Browsers send each line's end as two characters.
        "" => Ok(typed.replace("\r\n", "\n")),
        choice => shown.chosen(choice.to_owned()),
    }
}

/// The answers that can be chosen.
pub(super) fn choices(shown: &Shown) -> Vec<String> {
    shown.choices.iter().map(|choice| visible_line(choice)).collect()
}

pub(super) fn kind_word(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Approval => "Approval",
        AskKind::Review => "Review",
        AskKind::Question => "Question",
    }
}
