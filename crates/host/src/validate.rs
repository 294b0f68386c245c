//! Arguments against the published schema: every violation, with its place, what was expected, and the nearest valid
//! name or value.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, ToolError, ToolInfo, nearest, or_list};

use crate::fit::{resolved, words};

/// Most violations listed; the rest are counted.
const VIOLATIONS_MAX: usize = 20;
/// What is expected at the name of an argument that a tool does not have.
const NO_SUCH: &str = "no such argument";
/// Longest value quoted back.
const QUOTE_CHARS_MAX: usize = 60;

struct Violation {
    /// JSON pointer into the arguments; empty for the arguments themselves.
    path: String,
    expected: String,
    actual: String,
    nearest: Option<String>,
}

/// Step 4 of the gate.
pub(crate) fn validate(validator: &Validator, tool: &ToolInfo, arguments: &Value) -> Result<(), ToolError> {
    if validator.is_valid(arguments) {
        return Ok(());
    }
    let mut violations = Vec::new();
    if takes_nothing(&tool.input_schema) {
        // The validator does not name what is too much where nothing may be given.
        let names = arguments.as_object().into_iter().flat_map(|fields| fields.keys());
        violations.extend(names.take(VIOLATIONS_MAX + 1).map(|name| no_such(format!("/{}", clip(name)), None)));
    }
    for error in validator.iter_errors(arguments).filter(|error| !matches!(error.kind(), Kind::FalseSchema)) {
        explain(&error, tool, &mut violations);
        if violations.len() > VIOLATIONS_MAX {
            break;
        }
    }
    Err(report(tool, &violations))
}

fn report(tool: &ToolInfo, violations: &[Violation]) -> ToolError {
    let lines: Vec<String> = violations
        .iter()
        .take(VIOLATIONS_MAX)
        .map(|v| {
            let place = if v.path.is_empty() { "arguments".to_owned() } else { format!("`{}`", v.path) };
            let near = v.nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            match v.expected.as_str() {
                NO_SUCH => format!("{place}: there is {NO_SUCH}{near}"),
                expected => format!("{place}: expected {expected}, got {}{near}", v.actual),
            }
        })
        .collect();
    let more = if violations.len() > VIOLATIONS_MAX { "\n… and more" } else { "" };
    let message = format!("the arguments of `{}` do not fit its schema:\n{}{more}", tool.name, lines.join("\n"));
    let details: Vec<Value> = violations
        .iter()
        .take(VIOLATIONS_MAX)
        .map(|v| json!({ "path": v.path, "expected": v.expected, "actual": v.actual, "nearest": v.nearest }))
        .collect();
    let names = tool.input_schema.get("properties").and_then(Value::as_object);
    let takes: Vec<&str> = names.into_iter().flat_map(|names| names.keys().map(String::as_str)).collect();
    ToolError::new(ErrorKind::Validation, message)
        .hint(format!(
            "`{}` takes: {}; nothing was changed",
            tool.name,
            if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") }
        ))
        .details(json!({ "violations": details }))
}

fn explain(error: &ValidationError<'_>, tool: &ToolInfo, into: &mut Vec<Violation>) {
    let path = error.instance_path().to_string();
    let mut add = |path: String, expected: String, actual: String, nearest: Option<String>| {
        into.push(Violation { path, expected, actual, nearest });
    };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let known = properties_at(&tool.input_schema, error.schema_path().as_str());
            for name in unexpected {
                let near = nearest(name, known.iter().map(String::as_str));
                let near = (!near.is_empty()).then(|| or_list(&near));
                into.push(no_such(format!("{path}/{}", clip(name)), near));
            }
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let what = describe_property(&tool.input_schema, error.schema_path().as_str(), name);
            add(format!("{path}/{name}"), what, "nothing (it is required)".to_owned(), None);
        }
        Kind::Enum { options } => {
            let valid: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            into.push(none_of(path, &valid, error.instance()));
        }
        // Words that have a description each.
        Kind::OneOfNotValid { context } if constants(context).is_some() => {
            into.push(none_of(path, &constants(context).unwrap_or_default(), error.instance()));
        }
        // An optional argument is "this or null"; what is wrong with "this" is what helps.
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match context.first() {
            Some(first) if !first.is_empty() => first.iter().for_each(|inner| explain_inner(inner, &path, tool, into)),
            _ => add(path, "one of several shapes".to_owned(), quote(error.instance()), None),
        },
        _ => add(path, expectation(error), quote(error.instance()), None),
    }
}

/// The words, where each of the shapes is one.
fn constants<'a>(shapes: &'a [Vec<ValidationError<'_>>]) -> Option<Vec<&'a str>> {
    let word = |shape: &'a Vec<ValidationError<'_>>| match shape.as_slice() {
        [only] => match only.kind() {
            Kind::Constant { expected_value } => expected_value.as_str(),
            _ => None,
        },
        _ => None,
    };
    shapes.iter().map(word).collect()
}

fn none_of(path: String, valid: &[&str], found: &Value) -> Violation {
    let near = found.as_str().map(|value| nearest(value, valid.iter().copied())).unwrap_or_default();
    let nearest = (!near.is_empty()).then(|| or_list(&near));
    Violation { path, expected: format!("one of {}", valid.join(", ")), actual: quote(found), nearest }
}

fn explain_inner(error: &ValidationError<'_>, outer: &str, tool: &ToolInfo, into: &mut Vec<Violation>) {
    let before = into.len();
    explain(error, tool, into);
    for violation in &mut into[before..] {
        if !violation.path.starts_with(outer) {
            violation.path = format!("{outer}{}", violation.path);
        }
    }
}

fn expectation(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => match kind {
            jsonschema::error::TypeKind::Single(one) => format!("a value of type {one}"),
            jsonschema::error::TypeKind::Multiple(several) => {
                let names: Vec<String> = several.iter().map(|t| t.to_string()).filter(|t| t != "null").collect();
                format!("a value of type {}", names.join(" or "))
            }
        },
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::Pattern { pattern } => format!("text that matches {pattern}"),
        other => format!("what the schema's `{}` says", other.keyword()),
    }
}

fn no_such(path: String, nearest: Option<String>) -> Violation {
    Violation { path, expected: NO_SUCH.to_owned(), actual: "one".to_owned(), nearest }
}

fn takes_nothing(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}

/// Names of the properties of the object whose `additionalProperties` was violated.
fn properties_at(schema: &Value, schema_path: &str) -> Vec<String> {
    let object = schema_path.strip_suffix("/additionalProperties").unwrap_or_default();
    let properties = schema.pointer(object).and_then(|s| s.get("properties")).and_then(Value::as_object);
    properties.into_iter().flat_map(|p| p.keys().cloned()).collect()
}

/// What a property that is missing would have to be.
fn describe_property(schema: &Value, required: &str, name: &str) -> String {
    let object = required.strip_suffix("/required").unwrap_or_default();
    // Where the way there leads through a reference, the pointer finds nothing, and less is said.
    let property = schema.pointer(&format!("{object}/properties/{name}")).map(|property| resolved(property, schema));
    let Some(property) = property else { return "a value".to_owned() };
    let words = words(property);
    if !words.is_empty() {
        return format!("one of {}", words.join(", "));
    }
    let kind = property.get("type").map(|kind| match kind {
        Value::String(one) => one.clone(),
        several => several.to_string(),
    });
    let says = property.get("description").and_then(Value::as_str).and_then(|d| d.lines().next());
    match (kind, says) {
        (Some(kind), Some(says)) => format!("a value of type {kind} ({})", says.trim_end_matches('.')),
        (Some(kind), None) => format!("a value of type {kind}"),
        _ => "a value".to_owned(),
    }
}

fn quote(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", clip(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
        other => other.to_string(),
    }
}

/// The beginning of a text that a caller has sent, in whole words: half of a secret is not seen to be one when the message is redacted.
fn clip(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(QUOTE_CHARS_MAX) else { return text.to_owned() };
    match text[..end].rfind(char::is_whitespace) {
        Some(word) => format!("{}…", &text[..word]),
        None => format!("… of {} characters", text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_back_ends_with_a_whole_word() {
        let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
        for padding in 0..=QUOTE_CHARS_MAX {
            let told = clip(&format!("{} {secret} {}", "q".repeat(padding), "z".repeat(100)));
            assert!(told.contains(secret) || !told.contains("ghp_"), "{padding}: {told}");
        }
        assert_eq!(clip(&"x".repeat(61)), "… of 61 characters");
        assert_eq!(clip("short"), "short");
    }

    /// A caller that has left out a word is told which there are, in whichever way the schema lists them.
    #[test]
    fn a_missing_word_is_told_with_the_words_there_are() {
        let schema = json!({
            "$defs": { "Mode": { "oneOf": [{ "const": "create" }, { "const": "optimize", "description": "…" }] } },
            "properties": {
                "mode": { "$ref": "#/$defs/Mode" },
                "kind": { "enum": ["agent", "step"] },
                "count": { "type": "integer", "description": "How many.\nAt most ten." },
                "inner": { "items": { "properties": { "side": { "enum": ["left", "right"] } }, "required": ["side"] } },
            },
        });
        let expected = |name: &str| describe_property(&schema, "/required", name);
        assert_eq!(expected("mode"), "one of create, optimize");
        assert_eq!(expected("kind"), "one of agent, step");
        assert_eq!(expected("count"), "a value of type integer (How many)");
        assert_eq!(expected("nobody"), "a value");
        assert_eq!(describe_property(&schema, "/properties/inner/items/required", "side"), "one of left, right");
    }
}
