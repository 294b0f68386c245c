//! Arguments by the names that other hosts have for them.

use serde_json::{Map, Value, json};
use toolhost_contract::{Meaning, ToolInfo};

use super::shape::{folded, other_name, resolved, truth};

/// What models send beside the arguments to say why they call; no tool that has none of these names needs it.
const SAY_WHY: [&str; 9] = [
    "description",
    "explanation",
    "intent",
    "justification",
    "reason",
    "reasoning",
    "thought",
    "toolAction",
    "toolSummary",
];
/// From here on a time without a unit is one of milliseconds.
const MILLISECONDS_FROM: f64 = 1000.0;

/// Gives the arguments themselves the names that the schema has.
pub(super) fn fit(arguments: &mut Value, tool: &ToolInfo, notes: &mut Vec<String>) {
    let Some(fields) = arguments.as_object_mut() else { return };
    let Some(known) = tool.input_schema.get("properties").and_then(Value::as_object) else { return };
    let strangers: Vec<String> = fields.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
    let meant = |name: &str| other_name(tool, name).map(|other| other.means);
    for name in &strangers {
        if let (None, Some(argument)) = (meant(name), spelled(name, known)) {
            rename(fields, name, argument, notes);
        }
    }
    // What only renames comes first: a last line counts from the first one.
    let (plain, others): (Vec<_>, Vec<_>) = strangers
        .iter()
        .map(|name| (name.as_str(), meant(name)))
        .partition(|(_, means)| matches!(means, Some(Meaning::Argument(_))));
    let mut entry = Map::new();
    let mut entry_of = None;
    for (name, means) in plain.into_iter().chain(others) {
        match means {
            Some(Meaning::Argument(argument)) => rename(fields, name, argument, notes),
            // Beside a list that has entries it could be of any of them.
            Some(Meaning::Field { list, field })
                if !fields.contains_key(list) && !entry.contains_key(field) && entry_of.is_none_or(|of| of == list) =>
            {
                entry.extend(fields.remove(name).map(|value| (field.to_owned(), value)));
                entry_of = Some(list);
                notes.push(format!("`{name}` as `{field}` in `{list}`"));
            }
            Some(Meaning::Field { .. }) => {}
            Some(Meaning::LastLine { first, count }) => {
                let from = fields.get(first).and_then(whole).unwrap_or(1);
                if let Some(last) = fields.get(name).and_then(whole)
                    && take_lines(fields, (first, from), (count, last))
                {
                    fields.remove(name);
                    notes.push(format!("`{name}` as the last line"));
                }
            }
            Some(Meaning::Lines { first, count }) => {
                let ends =
                    fields.get(name).and_then(Value::as_array).map(|ends| ends.iter().filter_map(whole).collect());
                let ends: Vec<i64> = ends.unwrap_or_default();
                if let [from, last] = ends[..]
                    && !fields.contains_key(first)
                    && take_lines(fields, (first, from), (count, last))
                {
                    fields.remove(name);
                    notes.push(format!("`{name}` as first and last line"));
                }
            }
            Some(Meaning::Seconds(argument)) => take_time(fields, name, argument, |time| time * 1000.0, notes),
            Some(Meaning::Time(argument)) => {
                let milliseconds = |time| if time >= MILLISECONDS_FROM { time } else { time * 1000.0 };
                take_time(fields, name, argument, milliseconds, notes);
            }
            Some(Meaning::Not(argument)) => {
                if let Some(is) = fields.get(name).and_then(truth).filter(|_| !fields.contains_key(argument)) {
                    fields.remove(name);
                    fields.insert(argument.to_owned(), Value::Bool(!is));
                    notes.push(format!("`{name}` as the opposite of `{argument}`"));
                }
            }
            Some(Meaning::Anyway(value)) => {
                let given =
                    fields.get(name).map(|given| given.as_str().map_or_else(|| given.to_string(), str::to_owned));
                if given.as_deref() == Some(value) {
                    leave_out(fields, name, notes);
                }
            }
            None if SAY_WHY.contains(&name) && fields.get(name).is_some_and(Value::is_string) => {
                leave_out(fields, name, notes);
            }
            None => {}
        }
    }
    if let Some(list) = entry_of {
        fields.insert(list.to_owned(), json!([entry]));
    }
}

/// Gives the fields of entries of lists the names that the schema has.
pub(super) fn fit_fields(arguments: &mut Value, tool: &ToolInfo, notes: &mut Vec<String>) {
    let lists = tool.other_names.iter().flat_map(|names| names.iter()).filter_map(|other| match other.means {
        Meaning::Field { list, .. } => Some(list),
        _ => None,
    });
    let mut lists: Vec<&str> = lists.collect();
    lists.dedup();
    for list in lists {
        let Some(entries) = arguments.get_mut(list).and_then(Value::as_array_mut) else { continue };
        let shape = tool.input_schema.pointer(&format!("/properties/{list}/items"));
        let known = shape.and_then(|shape| resolved(shape, &tool.input_schema).get("properties"));
        let Some(known) = known.and_then(Value::as_object) else { continue };
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            let strangers: Vec<String> = entry.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
            for name in strangers {
                let field = match other_name(tool, &name).map(|other| other.means) {
                    Some(Meaning::Field { list: of, field }) if of == list => Some(field),
                    _ => spelled(&name, known),
                };
                if let Some(field) = field {
                    rename(entry, &name, field, notes);
                }
            }
        }
    }
}

fn leave_out(fields: &mut Map<String, Value>, name: &str, notes: &mut Vec<String>) {
    fields.remove(name);
    notes.push(format!("nothing in `{name}`"));
}

/// Two values for one argument stay both, and are refused.
fn rename(fields: &mut Map<String, Value>, name: &str, argument: &str, notes: &mut Vec<String>) {
    if fields.get(argument).is_some_and(|given| fields.get(name) != Some(given)) {
        return;
    }
    if let Some(value) = fields.remove(name) {
        fields.insert(argument.to_owned(), value);
        let note = format!("`{name}` as `{argument}`");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// The argument of the same letters: `max_bytes` is `maxBytes`.
fn spelled<'k>(name: &str, known: &'k Map<String, Value>) -> Option<&'k str> {
    let letters = folded(name);
    let mut same = known.keys().filter(|known| folded(known) == letters);
    same.next().filter(|_| same.next().is_none()).map(String::as_str)
}

fn take_time(
    fields: &mut Map<String, Value>,
    name: &str,
    argument: &str,
    to_milliseconds: impl Fn(f64) -> f64,
    notes: &mut Vec<String>,
) {
    let Some(time) = fields.get(name).and_then(number).filter(|_| !fields.contains_key(argument)) else { return };
    #[expect(clippy::cast_possible_truncation, reason = "a time has no fraction of a millisecond")]
    let milliseconds = to_milliseconds(time) as i64;
    fields.remove(name);
    fields.insert(argument.to_owned(), json!(milliseconds));
    notes.push(format!("`{name}` as {milliseconds} ms"));
}

/// From the first line up to the last one; -1 is the end.
fn take_lines(fields: &mut Map<String, Value>, (first, from): (&str, i64), (count, last): (&str, i64)) -> bool {
    let lines = match last {
        -1 => None,
        last if last >= from && from > 0 => Some(last - from + 1),
        _ => return false,
    };
    if fields.contains_key(count) {
        return false;
    }
    fields.insert(first.to_owned(), from.into());
    fields.extend(lines.map(|lines| (count.to_owned(), lines.into())));
    true
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite() && *number > 0.0)
}
