//! What names and values are compared by.

use serde_json::Value;

/// The shape itself, or the one that it refers to.
pub(super) fn resolved<'s>(shape: &'s Value, schema: &'s Value) -> &'s Value {
    let place = shape.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| schema.pointer(place)).unwrap_or(shape)
}

/// Without case and without what stands between words.
pub(super) fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// True or false, also as a text.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is) => Some(*is),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
