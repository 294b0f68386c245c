//! A change set as people look at it: what it changes, the findings of its validation, and the diff.

use serde_json::{Value, json};
use toolhost_builder::change::{self, Found, ObjectDiff, Report};
use toolhost_builder::packages::Preview;

use crate::print::{self, BAD, BOLD, DIM, GOOD, WARN, paint, visible, visible_line};

/// How much of the diff is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it: a person is about to accept or refuse it.
    Whole,
    /// The first lines of each object, under the agent's own summary.
    Beginnings,
}

/// Lines of the diff of one object, and of all of them, where only beginnings are shown.
const OBJECT_LINES_MAX: usize = 12;
const LINES_MAX: usize = 120;
/// Characters of one line there.
const LINE_CHARS_MAX: usize = 160;
/// Findings that are shown.
const FINDINGS_MAX: usize = 20;

/// All of it, for programs.
pub(crate) fn as_json(preview: &Preview) -> Value {
    let Preview { line, body, report, conflicts, diff } = preview;
    json!({ "changeSet": line, "body": body, "report": report, "conflicts": conflicts, "diff": diff })
}

/// Prints the list of changes, then what was found, then the diff.
pub(crate) fn show(preview: &Preview, extent: Extent) {
    let line = &preview.line;
    let by = visible_line(&line.by);
    print::line(format_args!(
        "{} {} by {by}, {}",
        line.change_set_id,
        line.status,
        print::local_time(line.created_at_ms)
    ));
    if !line.based_on.is_empty() {
        print::line(format_args!("  based on {}: applied with it, and shown with it", line.based_on.join(", ")));
    }
    let operations = change::parse(&preview.body).map(|parsed| parsed.set.operations).unwrap_or_default();
    for diff in &preview.diff {
        let (added, removed) = counts(diff);
        // As `change apply --only` takes it; what only goes along, or is another set's, has none.
        let place = operations.iter().rposition(|operation| operation.object == diff.object);
        let place = place.map_or_else(|| " ".to_owned(), |place| place.to_string());
        let why = reason(&preview.body, &diff.object.to_string());
        let why = why.map(|why| paint(DIM, format!("  {}", print::cell(&why)))).unwrap_or_default();
        let object = visible_line(&diff.object.to_string());
        let counts = format!("({} {})", paint(GOOD, format!("+{added}")), paint(BAD, format!("-{removed}")));
        print::line(format_args!("  {place} {} {} {counts}{why}", diff.change.as_str(), paint(BOLD, object)));
    }
    if preview.diff.is_empty() {
        print::line("  nothing becomes different");
    }
    if let Some(report) = preview.report.as_ref().filter(|_| line.status != "applied") {
        found(report);
    }
    let mut room = if extent == Extent::Whole { usize::MAX } else { LINES_MAX };
    for diff in &preview.diff {
        room = room.saturating_sub(lines_of(diff, extent, room, &line.change_set_id));
    }
}

/// The lines of one object's diff; how many were shown.
fn lines_of(diff: &ObjectDiff, extent: Extent, room: usize, id: &str) -> usize {
    let text = visible(&change::render(std::slice::from_ref(diff)));
    let most = if extent == Extent::Whole { usize::MAX } else { OBJECT_LINES_MAX.min(room) };
    // The first line names the object, and the list has done so.
    let all = text.lines().count().saturating_sub(1);
    for line in text.lines().skip(1).take(most) {
        let line = if extent == Extent::Whole { line.to_owned() } else { shortened(line) };
        print::line(print::diff_line(&line));
    }
    if all > most {
        let (left, object) = (print::count(all - most, "more line"), visible_line(&diff.object.to_string()));
        let more = format!("… {left} of {object}: toolhost change show {id}");
        print::line(paint(DIM, more));
    }
    all.min(most)
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

fn counts(diff: &ObjectDiff) -> (usize, usize) {
    diff.files.iter().fold((0, 0), |(added, removed), file| (added + file.added, removed + file.removed))
}

/// Why a set says that it changes an object.
fn reason(body: &Value, object: &str) -> Option<String> {
    let operations = change::parse(body).ok()?.set.operations;
    let of = operations.into_iter().rev().find(|operation| operation.object.to_string() == object)?;
    of.reason.filter(|reason| !reason.trim().is_empty())
}

/// What a validation said.
fn found(report: &Report) {
    let word = if report.valid { paint(GOOD, "valid") } else { paint(BAD, "not valid") };
    let (errors, warnings) =
        (print::count(report.errors.len(), "error"), print::count(report.warnings.len(), "warning"));
    print::line(format_args!("{word}, {errors}, {warnings}"));
    findings(&report.errors, BAD);
    findings(&report.warnings, WARN);
}

fn findings(all: &[Found], style: anstyle::Style) {
    for found in all.iter().take(FINDINGS_MAX) {
        print::line(format_args!("  {} {}", paint(style, &found.code), visible_line(&found.to_string())));
    }
    if all.len() > FINDINGS_MAX {
        print::line(format_args!("  and {} more", all.len() - FINDINGS_MAX));
    }
}

/// What an apply was refused with.
pub(crate) fn refused(details: &Value) {
    let list = details.get("findings").and_then(Value::as_array).into_iter().flatten();
    for found in list.filter_map(|found| serde_json::from_value::<Found>(found.clone()).ok()).take(FINDINGS_MAX) {
        print::note(format_args!("  {} {}", paint(BAD, &found.code), visible_line(&found.to_string())));
        if !found.hint.is_empty() {
            print::note(paint(DIM, format_args!("    {}", visible_line(&found.hint))));
        }
    }
}
