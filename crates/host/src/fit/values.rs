//! Values of the kind that the schema asks for: numbers, truth values and lists that came as texts, one entry for a list, words in
//! another case.

use serde_json::{Number, Value};
use toolhost_contract::ToolInfo;

use super::json_in;
use super::shape::{folded, other_name, resolved, truth, words};

/// How deep arguments are looked into. Schemas may refer to themselves, and what was sent may be as deep as a message.
const DEPTH_MAX: usize = 8;

pub(super) fn fit(arguments: &mut Value, tool: &ToolInfo, notes: &mut Vec<String>) {
    let facts = &tool.facts;
    let command = facts.command.iter().flat_map(|command| [command.name, command.input]);
    // A guess at one of these would be a guess at what the call may do.
    let kept: Vec<&str> = command.chain(facts.dry_run).collect();
    let Some(fields) = arguments.as_object_mut() else { return };
    for (name, value) in fields.iter_mut().filter(|(name, _)| !kept.contains(&name.as_str())) {
        let shape = tool.input_schema.get("properties").and_then(|properties| properties.get(name));
        if let Some(shape) = shape {
            fit_value(value, shape, tool, (name, 1), notes);
        }
    }
}

fn fit_value(value: &mut Value, shape: &Value, tool: &ToolInfo, (at, depth): (&str, usize), notes: &mut Vec<String>) {
    let shape = resolved(shape, &tool.input_schema);
    let kind = shape.get("type").and_then(Value::as_str).unwrap_or_default();
    if let Some((better, note)) = better(value, kind, shape, tool) {
        *value = better;
        notes.push(format!("`{at}` as {note}"));
    }
    if depth >= DEPTH_MAX {
        return;
    }
    match value {
        Value::Array(entries) => {
            let Some(inner) = shape.get("items") else { return };
            for (n, entry) in entries.iter_mut().enumerate() {
                fit_value(entry, inner, tool, (&format!("{at}/{n}"), depth + 1), notes);
            }
        }
        Value::Object(fields) => {
            let Some(known) = shape.get("properties") else { return };
            for (name, field) in fields {
                if let Some(inner) = known.get(name) {
                    fit_value(field, inner, tool, (&format!("{at}/{name}"), depth + 1), notes);
                }
            }
        }
        _ => {}
    }
}

/// The value of the kind that was asked for, and what it is, where there is just one.
fn better(value: &Value, kind: &str, shape: &Value, tool: &ToolInfo) -> Option<(Value, String)> {
    let text = value.as_str();
    match kind {
        "integer" => {
            let number: i64 = text?.trim().parse().ok()?;
            Some((number.into(), number.to_string()))
        }
        "number" => {
            let number = Number::from_f64(text?.trim().parse().ok()?)?;
            Some((Value::Number(number.clone()), number.to_string()))
        }
        "boolean" => text.and_then(|_| truth(value)).map(|is| (Value::Bool(is), is.to_string())),
        "array" => {
            if let Some(list @ Value::Array(_)) = text.and_then(json_in) {
                return Some((list, "the list in it".to_owned()));
            }
            let inner = resolved(shape.get("items")?, &tool.input_schema);
            let is_entry = match (inner.get("type")?.as_str()?, value) {
                ("string", Value::String(_)) => true,
                // One that has nothing of an entry is none.
                ("object", Value::Object(fields)) => fields.keys().any(|name| {
                    let is_known = inner.get("properties").is_some_and(|known| known.get(name).is_some());
                    is_known || other_name(tool, name).is_some()
                }),
                _ => false,
            };
            // A list of its own in one text could be meant in more than one way.
            let is_one = text.is_none_or(|text| !text.contains([',', '\n', '[']));
            (is_entry && is_one).then(|| (Value::Array(vec![value.clone()]), "a list of one".to_owned()))
        }
        "object" => match json_in(text?) {
            Some(object @ Value::Object(_)) => Some((object, "the object in it".to_owned())),
            _ => None,
        },
        _ => {
            let words = words(shape);
            let text = text.filter(|text| !words.contains(text))?;
            let mut same = words.iter().filter(|word| folded(word) == folded(text));
            let word = same.next().filter(|_| same.next().is_none())?;
            Some(((*word).into(), format!("`{word}`")))
        }
    }
}
