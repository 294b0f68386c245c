//! What names and values are compared by.

use serde_json::Value;
use toolhost_contract::{OtherName, ToolInfo};

/// The shape itself, or the one that it refers to.
pub(crate) fn resolved<'s>(shape: &'s Value, schema: &'s Value) -> &'s Value {
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

/// The words that a value may be, where it is one of some.
pub(crate) fn words(shape: &Value) -> Vec<&str> {
    if let Some(options) = shape.get("enum").and_then(Value::as_array) {
        return options.iter().filter_map(Value::as_str).collect();
    }
    let shapes = shape.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Option<Vec<&str>> = shapes.iter().map(|shape| shape.get("const").and_then(Value::as_str)).collect();
    words.unwrap_or_default()
}

/// What a tool declares of a name, in any spelling: `file_path`, `filePath`, `FILE-PATH`.
pub(super) fn other_name(tool: &ToolInfo, name: &str) -> Option<&'static OtherName> {
    let letters = folded(name);
    tool.other_names.iter().flat_map(|names| names.iter()).find(|other| folded(other.name) == letters)
}
