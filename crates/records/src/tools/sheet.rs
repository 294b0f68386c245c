//! Records as text that is complete on its own: the fields of a value, one a line.

use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that say what a record is stand on its first line.
const HEAD: [&str; 3] = ["id", "title", "name"];

/// A record, or any other value.
pub(crate) fn sheet(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields_text(&fields, ""),
        Ok(value) => short(&value),
        Err(error) => format!("the answer cannot be shown: {error}"),
    }
}

/// Several of them, and where the next page begins.
pub(crate) fn sheets<T: Serialize>(what: &str, items: &[T], next_cursor: Option<&String>) -> String {
    let mut text = listed(what, items);
    if let Some(cursor) = next_cursor {
        text.push_str(&format!("\n\nmore: pass cursor `{cursor}`"));
    }
    text
}

/// Several of them.
pub(crate) fn listed<T: Serialize>(what: &str, items: &[T]) -> String {
    if items.is_empty() {
        return format!("no {what}");
    }
    items.iter().map(sheet).collect::<Vec<_>>().join("\n\n")
}

fn fields_text(fields: &Map<String, Value>, indent: &str) -> String {
    let head: Vec<String> =
        HEAD.iter().filter_map(|name| fields.get(*name)).map(short).filter(|text| !text.is_empty()).collect();
    let mut lines = Vec::new();
    if !head.is_empty() {
        lines.push(format!("{indent}{}", head.join(" ")));
    }
    for (name, value) in fields.iter().filter(|(name, _)| !HEAD.contains(&name.as_str())) {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::Number(ms) if name.ends_with("Ms") => {
                lines.push(format!("{indent}{}: {}", name.trim_end_matches("Ms"), time(ms.as_i64().unwrap_or(0))));
            }
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) if items.iter().any(Value::is_object) => {
                lines.push(format!("{indent}{name}:"));
                for item in items {
                    match item {
                        Value::Object(inner) => lines.push(fields_text(inner, &format!("{indent}  "))),
                        other => lines.push(format!("{indent}  - {}", short(other))),
                    }
                }
            }
            Value::Array(items) if items.iter().all(is_id) => {
                lines.push(format!("{indent}{name}: {}", items.iter().map(short).collect::<Vec<_>>().join(", ")));
            }
            Value::Array(items) => {
                lines.push(format!("{indent}{name}:"));
                lines.extend(items.iter().map(|item| format!("{indent}  - {}", short(item))));
            }
            Value::Object(inner) => {
                lines.push(format!("{indent}{name}:"));
                lines.push(fields_text(inner, &format!("{indent}  ")));
            }
            Value::String(text) if text.contains('\n') => {
                // Indented: nothing in a text can pass for another field, or for another record.
                let text = text.lines().map(|line| format!("{indent}  {line}")).collect::<Vec<_>>();
                lines.push(format!("{indent}{name}:\n{}", text.join("\n")));
            }
            other => lines.push(format!("{indent}{name}: {}", short(other))),
        }
    }
    lines.join("\n")
}

/// Short words, such as ids, share a line.
fn is_id(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.len() <= 12 && !text.contains(' '))
}

/// The end of the year 9999, milliseconds since 1970.
const TIME_MS_MAX: u64 = 253_402_300_799_999;

/// RFC 3339, such as `2026-11-21T06:54:33Z`.
fn time(unix_ms: i64) -> String {
    // The formatter knows four digits of a year.
    let since = std::time::Duration::from_millis(u64::try_from(unix_ms).unwrap_or(0).min(TIME_MS_MAX));
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since).to_string()
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.replace(['\n', '\r'], " "))
}
