//! Passages of a text, found and replaced.

use serde_json::Value;
use toolhost_contract::{REDACTED, Redactor};

use super::Made;
use crate::change::set::TextEdit;
use crate::finding::{Finding, quoted};
use crate::refs::Object;

/// How many places of a passage are named.
const PLACES_SHOWN_MAX: usize = 10;

/// The text with each passage replaced, one after the other. A secret that a read does not show is not found by its text
/// either, for who may try may guess it letter by letter; and no edit makes it one that a read would show.
pub(super) fn edited(object: &Object, text: &str, edits: &[TextEdit], secrets: &Redactor) -> Made<String> {
    let before = text;
    let mut text = text.to_owned();
    for (index, edit) in edits.iter().enumerate() {
        changes(object, index, edit)?;
        let edit = &as_in(&text, edit);
        let places = shown_places(&text, &edit.find, secrets);
        let first = *places.first().ok_or_else(|| Box::new(not_there(object, index, edit)))?;
        if places.len() > 1 {
            return Err(Box::new(not_once(object, index, edit, places.len(), &lines_of(&text, &places))));
        }
        text.replace_range(first..first + edit.find.len(), &edit.replace);
    }
    if !secrets.keeps(before, &text) {
        return Err(Box::new(uncovered(object)));
    }
    Ok(text)
}

/// Refuses an edit that replaces a passage by itself: nothing would change, so its author meant another text.
fn changes(object: &Object, index: usize, edit: &TextEdit) -> Made<()> {
    if edit.find != edit.replace {
        return Ok(());
    }
    let message =
        format!("`find` and `replace` are the same for `{object}` (textEdits[{index}]), so nothing would change");
    let finding = Finding::error("TEXT_UNCHANGED", "", "", message).actual(quoted(&edit.replace));
    Err(Box::new(finding.hint("write in `replace` what is to stand there afterwards, or leave the edit out")))
}

/// Where a passage stands, but for what overlaps a secret.
fn shown_places(text: &str, find: &str, secrets: &Redactor) -> Vec<usize> {
    let hidden = secrets.spans(text);
    let is_shown = |at: &usize| !hidden.iter().any(|span| span.start < at + find.len() && *at < span.end);
    text.match_indices(find).map(|(at, _)| at).filter(is_shown).collect()
}

fn uncovered(object: &Object) -> Finding {
    let message = format!(
        "the edits of `{object}` would change a secret that a read shows as `{REDACTED}`, or bring it to light"
    );
    let finding = Finding::error("SECRET_UNCOVERED", "", "", message);
    finding.hint(
        "leave what stands right before and behind `[redacted]` as it is; to take the secret out, give the whole text",
    )
}

/// The lines of these places in a text, up to a limit.
fn lines_of(text: &str, places: &[usize]) -> String {
    let (mut line, mut from) = (1, 0);
    let mut lines: Vec<usize> = Vec::new();
    for at in places {
        line += text[from..*at].matches('\n').count();
        from = *at;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    listed(if lines.len() == 1 { "on line" } else { "on lines" }, &lines)
}

/// The first of several places, and how many more there are.
fn listed<T: ToString>(lead: &str, places: &[T]) -> String {
    let shown: Vec<String> = places.iter().take(PLACES_SHOWN_MAX).map(T::to_string).collect();
    let more = places.len() - shown.len();
    match (shown.split_last(), more) {
        (Some((last, rest)), 0) if !rest.is_empty() => format!("{lead} {} and {last}", rest.join(", ")),
        (_, 0) => format!("{lead} {}", shown.join(", ")),
        (_, more) => format!("{lead} {} and {more} more", shown.join(", ")),
    }
}

/// The same with all texts inside a value: a passage stands in one of them, once.
pub(super) fn edit_values(object: &Object, value: &mut Value, edits: &[TextEdit], secrets: &Redactor) -> Made<()> {
    for (index, edit) in edits.iter().enumerate() {
        changes(object, index, edit)?;
        let mut found = Vec::new();
        let mut open = vec![(String::new(), &*value)];
        while let Some((at, value)) = open.pop() {
            match value {
                Value::String(text) => {
                    found.extend(shown_places(text, &edit.find, secrets).into_iter().map(|place| (at.clone(), place)));
                }
                Value::Array(items) => {
                    open.extend(items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)));
                }
                Value::Object(fields) => {
                    let token = crate::finding::token;
                    open.extend(fields.iter().map(|(name, field)| (format!("{at}/{}", token(name)), field)));
                }
                _ => {}
            }
        }
        match found.as_slice() {
            [] => return Err(Box::new(not_there(object, index, edit))),
            [(at, place)] if at != "/id" => {
                if let Some(Value::String(text)) = value.pointer_mut(at) {
                    let before = text.clone();
                    text.replace_range(*place..*place + edit.find.len(), &edit.replace);
                    if !secrets.keeps(&before, text) {
                        return Err(Box::new(uncovered(object)));
                    }
                }
            }
            [_] => {
                let message = format!("`{object}` keeps its id");
                return Err(Box::new(Finding::error("AGENT_ID_CHANGED", "", "", message)));
            }
            several => {
                let places: Vec<&str> = several.iter().map(|(at, _)| at.as_str()).collect();
                return Err(Box::new(not_once(object, index, edit, places.len(), &listed("at", &places))));
            }
        }
    }
    Ok(())
}

/// The passage with the line ends of the text.
fn as_in(text: &str, edit: &TextEdit) -> TextEdit {
    let is_all = text.matches("\r\n").count() == text.matches('\n').count();
    let is_windows = text.contains("\r\n") && (is_all || !edit.find.contains('\r') && !text.contains(&edit.find));
    if !is_windows {
        return edit.clone();
    }
    let windows = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    TextEdit { find: windows(&edit.find), replace: windows(&edit.replace) }
}

fn not_there(object: &Object, index: usize, edit: &TextEdit) -> Finding {
    let message = format!("`{object}` has no passage `{}` (textEdits[{index}])", quoted(&edit.find));
    let finding = Finding::error("TEXT_NOT_FOUND", "", "", message);
    let finding = finding.expected("a passage that stands in the text, letter by letter").actual(quoted(&edit.find));
    finding.hint(if edit.find.contains(REDACTED) {
        "`[redacted]` stands for a secret that was not shown: choose a passage without it"
    } else {
        "read the object again, and copy the passage as it stands there"
    })
}

fn not_once(object: &Object, index: usize, edit: &TextEdit, count: usize, places: &str) -> Finding {
    let passage = quoted(&edit.find);
    let message = format!("`{passage}` stands {count} times in `{object}`, {places} (textEdits[{index}])");
    let finding = Finding::error("TEXT_NOT_ONCE", "", "", message).expected("once").actual(format!("{count} times"));
    finding.hint("take more of the text around it into `find`")
}
