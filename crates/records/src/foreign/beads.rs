//! beads' JSON Lines, one issue a line: epics become features, everything else tasks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Bundle, text, text_or, texts, time_ms};
use crate::{Draft, Kind, RecordError, Result};

/// Reads `issues.jsonl`.
pub fn beads(lines: &str) -> Result<Bundle> {
    let mut bundle = Bundle::default();
    let mut issues: Vec<Value> = Vec::new();
    for (n, line) in lines.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = format!("line {}", n + 1);
        let issue: Value = serde_json::from_str(line)
            .map_err(|error| RecordError::Field { field: at.clone(), problem: error.to_string() })?;
        if text(&issue, "id").is_empty() || text(&issue, "title").is_empty() {
            let problem = "an issue has an `id` and a `title`".to_owned();
            return Err(RecordError::Field { field: at, problem });
        }
        if text(&issue, "status") == "tombstone" {
            bundle.note(format!("{} was deleted there and is left out", text(&issue, "id")));
            continue;
        }
        issues.push(issue);
    }
    let kinds: BTreeMap<String, Kind> = issues
        .iter()
        .map(|issue| {
            let epic = text(issue, "issue_type") == "epic";
            (text(issue, "id"), if epic { Kind::Feature } else { Kind::Task })
        })
        .collect();
    for issue in &issues {
        let named = Named::of(issue, &kinds, &mut bundle);
        let content = match kinds.get(&text(issue, "id")) {
            Some(Kind::Feature) => feature(issue, named),
            _ => task(issue, named),
        };
        let (key, created_at_ms) = (text(issue, "id"), time_ms(issue, "created_at"));
        let kind = kinds.get(&key).copied().unwrap_or(Kind::Task);
        bundle.drafts.push(Draft { key, kind, iteration: None, content, created_at_ms });
    }
    if bundle.drafts.is_empty() {
        return Err(RecordError::Field { field: "file".to_owned(), problem: "there is no issue in it".to_owned() });
    }
    Ok(bundle)
}

/// What an issue names, sorted by what can be said of it here.
#[derive(Default)]
struct Named {
    dependencies: BTreeSet<String>,
    unknown: BTreeSet<String>,
    feature: Option<String>,
    /// Lines for the description.
    mentioned: Vec<String>,
}

impl Named {
    fn of(issue: &Value, kinds: &BTreeMap<String, Kind>, bundle: &mut Bundle) -> Self {
        let id = text(issue, "id");
        let own = kinds.get(&id);
        let mut named = Self::default();
        for one in issue["dependencies"].as_array().into_iter().flatten() {
            let (other, how) = (text(one, "depends_on_id"), text_or(one, "type", "blocks"));
            match (how.as_str(), kinds.get(&other)) {
                ("blocks", None) if own == Some(&Kind::Task) => {
                    named.unknown.insert(other);
                }
                ("blocks", kind) if kind == own => {
                    named.dependencies.insert(other);
                }
                ("parent-child", Some(Kind::Feature)) if own == Some(&Kind::Task) => named.feature = Some(other),
                (how, there) => {
                    if how == "blocks" || (how == "parent-child" && there.is_some()) {
                        bundle.note(format!("{id}: `{how}` {other} has no place here; it is kept in the description"));
                    }
                    named.mentioned.push(format!("{how}: {other}"));
                }
            }
        }
        named
    }
}

fn status(issue: &Value) -> &'static str {
    match issue["status"].as_str() {
        Some("in_progress" | "hooked") => "in_progress",
        Some("blocked") => "blocked",
        Some("closed") => "completed",
        // open, deferred, pinned
        _ => "pending",
    }
}

/// What is said besides the description, and its heading.
const PROSE: [(&str, &str); 4] =
    [("design", "Design"), ("notes", "Notes"), ("close_reason", "Closed because"), ("external_ref", "Elsewhere")];

/// Everything that is said in prose, under its headings.
fn description(issue: &Value, named: &Named) -> String {
    let mut parts = vec![text(issue, "description")];
    for (field, heading) in PROSE {
        let said = text(issue, field);
        if !said.is_empty() {
            parts.push(format!("## {heading}\n{said}"));
        }
    }
    for comment in issue["comments"].as_array().into_iter().flatten() {
        parts.push(format!("## {} said\n{}", text_or(comment, "author", "somebody"), text(comment, "text")));
    }
    if !named.mentioned.is_empty() {
        parts.push(format!("## See also\n{}", named.mentioned.join("\n")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// The lines of a text, without the marks of a list.
fn lines(text: &str) -> Vec<String> {
    let bare = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*']).trim();
        line.trim_start_matches("[ ]").trim_start_matches("[x]").trim().to_owned()
    };
    text.lines().map(bare).filter(|line| !line.is_empty()).collect()
}

/// Labels, and what has no field of its own here.
fn labels(issue: &Value) -> Vec<String> {
    let mut labels = texts(issue, "labels");
    labels.extend(issue["priority"].as_i64().map(|priority| format!("P{priority}")));
    let kind = issue["issue_type"].as_str().filter(|kind| !matches!(*kind, "task" | "epic"));
    labels.extend(kind.map(str::to_owned));
    for (field, name) in [("assignee", "assignee"), ("owner", "owner"), ("created_by", "created by")] {
        labels.extend(issue[field].as_str().filter(|who| !who.is_empty()).map(|who| format!("{name}: {who}")));
    }
    if !matches!(issue["status"].as_str(), Some("open" | "in_progress" | "blocked" | "closed") | None) {
        labels.push(format!("status: {}", text(issue, "status")));
    }
    labels
}

/// As it is said of tasks and features.
fn effort(issue: &Value, content: &mut Value) {
    if let Some(minutes) = issue["estimated_minutes"].as_i64().filter(|minutes| *minutes > 0) {
        content["estimatedEffort"] = json!(format!("{minutes} min"));
    }
}

fn feature(issue: &Value, named: Named) -> Value {
    let mut content = json!({
        "name": text(issue, "title"),
        "description": description(issue, &named),
        "status": status(issue),
        "requirementIds": [],
        "completionCriteria": lines(&text(issue, "acceptance_criteria")),
        "dependencies": named.dependencies,
        "labels": labels(issue),
        "externalId": text(issue, "id"),
        "completedAtMs": time_ms(issue, "closed_at"),
    });
    effort(issue, &mut content);
    content
}

fn task(issue: &Value, named: Named) -> Value {
    let mut content = json!({
        "title": text(issue, "title"),
        "description": description(issue, &named),
        "status": status(issue),
        "dependencies": named.dependencies,
        "unknownDependencies": named.unknown,
        "filesToCreate": [],
        "acceptanceCriteria": lines(&text(issue, "acceptance_criteria")),
        "labels": labels(issue),
        "externalId": text(issue, "id"),
        "startedAtMs": time_ms(issue, "started_at"),
        "completedAtMs": time_ms(issue, "closed_at"),
    });
    if let Some(feature) = named.feature {
        content["featureId"] = json!(feature);
    }
    effort(issue, &mut content);
    content
}
