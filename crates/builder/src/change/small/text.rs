//! Passages of a text, found and replaced.

use std::ops::Range;

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
pub(super) fn edited(
    object: &Object,
    text: &str,
    edits: &[TextEdit],
    secrets: &Redactor,
) -> Result<String, Vec<Finding>> {
    let before = text;
    let mut text = text.to_owned();
    let mut findings = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let edit = &as_in(&text, edit);
        let done = changes(object, index, edit).and_then(|()| {
            let passages = passages(&text, &edit.find, secrets);
            match passages.as_slice() {
                [] if !self::passages(before, &edit.find, secrets).is_empty() => {
                    Err(Box::new(changed_before(object, index, edit)))
                }
                [] => Err(Box::new(not_there(object, index, edit))),
                [passage] => replaced(object, &text, passage, edit, secrets),
                several => {
                    let places: Vec<usize> = several.iter().map(|passage| passage.at.start).collect();
                    Err(Box::new(not_once(object, index, edit, places.len(), &lines_of(&text, &places))))
                }
            }
        });
        match done {
            Ok(changed) => text = changed,
            Err(finding) => findings.push(*finding),
        }
    }
    if findings.is_empty() { Ok(text) } else { Err(findings) }
}

/// Where a passage stands in a text as a read shows it, and the secrets inside.
struct Passage {
    at: Range<usize>,
    secrets: Vec<Range<usize>>,
}

/// The places of a passage, none of which cuts a secret in two. `[redacted]` in the passage stands for a whole one.
fn passages(text: &str, find: &str, secrets: &Redactor) -> Vec<Passage> {
    let hidden = secrets.spans(text);
    let overlapping = |at: &Range<usize>| -> Vec<Range<usize>> {
        hidden.iter().filter(|span| span.start < at.end && at.start < span.end).cloned().collect()
    };
    let mut found: Vec<Passage> = text
        .match_indices(find)
        .map(|(at, _)| at..at + find.len())
        .filter(|at| overlapping(at).is_empty())
        .map(|at| Passage { at, secrets: Vec::new() })
        .collect();
    if !find.contains(REDACTED) || hidden.is_empty() {
        return found;
    }
    // The text as it is shown, with the place in the text of each of its parts.
    let (mut shown, mut parts, mut from) = (String::new(), Vec::new(), 0);
    for span in &hidden {
        shown.push_str(&text[from..span.start]);
        parts.push((shown.len(), span.clone()));
        shown.push_str(REDACTED);
        from = span.end;
    }
    shown.push_str(&text[from..]);
    let place = |at: usize| {
        let part = parts.iter().rev().find(|(mark, _)| *mark < at)?;
        // Inside the mark there is no place.
        let behind = part.0 + REDACTED.len();
        (at >= behind).then(|| part.1.end + (at - behind))
    };
    let place = |at: usize| if parts.first().is_some_and(|(mark, _)| at <= *mark) { Some(at) } else { place(at) };
    for (at, _) in shown.match_indices(find) {
        let ends = place(at).zip(place(at + find.len()));
        let inside = ends.map(|(start, end)| (start..end, overlapping(&(start..end))));
        found.extend(inside.filter(|(_, inside)| !inside.is_empty()).map(|(at, secrets)| Passage { at, secrets }));
    }
    found
}

/// The text with one passage replaced. Secrets inside it go, or stay where the new text has `[redacted]` for each of them.
fn replaced(object: &Object, text: &str, passage: &Passage, edit: &TextEdit, secrets: &Redactor) -> Made<String> {
    let hidden: Vec<&str> = passage.secrets.iter().map(|span| &text[span.clone()]).collect();
    let mut replace = edit.replace.clone();
    let stay = !hidden.is_empty() && edit.replace.matches(REDACTED).count() == hidden.len();
    if stay {
        let parts: Vec<&str> = edit.replace.split(REDACTED).collect();
        // Of several marks nobody can tell which is which but by what stands before each.
        if hidden.len() > 1 && before_marks(&edit.find) != before_marks(&edit.replace) {
            return Err(Box::new(unclear_marks(object)));
        }
        replace = parts[0].to_owned();
        for (secret, part) in hidden.iter().zip(&parts[1..]) {
            replace.push_str(secret);
            replace.push_str(part);
        }
    }
    let mut changed = text.to_owned();
    changed.replace_range(passage.at.clone(), &replace);
    let gone: &[&str] = if stay { &[] } else { &hidden };
    if secrets.keeps_but(text, &changed, gone) { Ok(changed) } else { Err(Box::new(uncovered(object))) }
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

/// What stands before each mark in its line.
fn before_marks(text: &str) -> Vec<&str> {
    let lines = text.match_indices(REDACTED).map(|(at, _)| text[..at].rsplit('\n').next().unwrap_or_default());
    lines.map(str::trim).collect()
}

fn unclear_marks(object: &Object) -> Finding {
    let message =
        format!("an edit of `{object}` has several secrets, and changes what stands before them in their lines");
    let finding = Finding::error("SECRETS_UNCLEAR", "", "", message);
    finding
        .expected("one `[redacted]` in an edit, or the same text before each")
        .hint("make an edit of its own for each of them")
}

fn uncovered(object: &Object) -> Finding {
    let message = format!(
        "the edits of `{object}` would change a secret that a read shows as `{REDACTED}`, or bring it to light"
    );
    let finding = Finding::error("SECRET_UNCOVERED", "", "", message);
    finding.hint(
        "leave what stands right before and behind `[redacted]` as it is; to take the secret out, take `[redacted]` into `find` \
         and leave it out of `replace`",
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
pub(super) fn edit_values(
    object: &Object,
    value: &mut Value,
    edits: &[TextEdit],
    secrets: &Redactor,
) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        if let Err(finding) =
            changes(object, index, edit).and_then(|()| edit_value(object, value, (index, edit), secrets))
        {
            findings.push(*finding);
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

fn edit_value(object: &Object, value: &mut Value, (index, edit): (usize, &TextEdit), secrets: &Redactor) -> Made<()> {
    let mut found: Vec<(String, Passage)> = Vec::new();
    let mut open = vec![(String::new(), &*value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::String(text) => {
                found.extend(passages(text, &edit.find, secrets).into_iter().map(|passage| (at.clone(), passage)));
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
        [] => Err(Box::new(not_there(object, index, edit))),
        [(at, passage)] if at != "/id" => {
            if let Some(Value::String(text)) = value.pointer_mut(at) {
                *text = replaced(object, text, passage, edit, secrets)?;
            }
            Ok(())
        }
        [_] => {
            let message = format!("`{object}` keeps its id");
            Err(Box::new(Finding::error("AGENT_ID_CHANGED", "", "", message)))
        }
        several => {
            let places: Vec<&str> = several.iter().map(|(at, _)| at.as_str()).collect();
            Err(Box::new(not_once(object, index, edit, places.len(), &listed("at", &places))))
        }
    }
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
        "`[redacted]` stands for a whole secret that was not shown: copy the passage as the read shows it"
    } else {
        "read the object again, and copy the passage as it stands there"
    })
}

/// An edit before this one has changed the passage.
fn changed_before(object: &Object, index: usize, edit: &TextEdit) -> Finding {
    let passage = quoted(&edit.find);
    let message = format!("`{passage}` stands in `{object}`, but an edit before textEdits[{index}] has changed it");
    let finding = Finding::error("TEXT_CHANGED_BEFORE", "", "", message).actual(passage);
    finding.hint("make one edit of both, or find the passage as the earlier edit leaves it")
}

fn not_once(object: &Object, index: usize, edit: &TextEdit, count: usize, places: &str) -> Finding {
    let passage = quoted(&edit.find);
    let message = format!("`{passage}` stands {count} times in `{object}`, {places} (textEdits[{index}])");
    let finding = Finding::error("TEXT_NOT_ONCE", "", "", message).expected("once").actual(format!("{count} times"));
    finding.hint("take more of the text around it into `find`")
}
