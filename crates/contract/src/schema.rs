//! The JSON Schemas of tools, made of their types.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The JSON Schema (2020-12) of a type, whole in itself.
pub fn schema_of<T: JsonSchema>() -> Value {
    // Only this line is compiled for each type.
    as_published(generator().into_root_schema_for::<T>())
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
        // `uint64` and its like are no formats of JSON Schema.
        s.transforms.push(Box::new(RestrictFormats::default()));
    });
    settings.into_generator()
}

fn as_published(schema: Schema) -> Value {
    let mut schema = schema.to_value();
    unwrap_lines(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("title");
    }
    schema
}

/// The description at the top of a schema.
pub fn description_of(schema: &Value) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Doc comments are broken into lines for who reads the source; who reads the schema gets whole paragraphs.
fn unwrap_lines(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                let paragraphs: Vec<String> =
                    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
                *text = paragraphs.join("\n\n");
            }
            fields.values_mut().for_each(unwrap_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(unwrap_lines),
        _ => {}
    }
}

pub(crate) fn without_description(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    schema
}

/// The schema of arguments, in the part of JSON Schema that each model's API takes: an object has `properties` and an array `items`,
/// a value has one type, and words are an `enum`. OpenAI refuses a whole request with one tool that has it otherwise; Gemini
/// knows neither lists of types nor `const`.
///
/// An optional argument is one that may be left out. The gate takes null for that, too.
pub(crate) fn input_schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    for_models(&mut schema);
    schema
}

/// Recurses over a schema of ours, which is as deep as a type is.
fn for_models(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Some(fields) = schema.as_object_mut() else { return };
    without_null(fields);
    as_enum(fields);
    match fields.get("type").and_then(Value::as_str) {
        Some("object") => {
            fields.entry("properties").or_insert_with(|| json!({}));
        }
        Some("array") => {
            fields.entry("items").or_insert_with(|| json!({}));
        }
        _ => {}
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(for_models);
    }
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).into_iter().for_each(for_models);
    }
    for name in ["anyOf", "oneOf"] {
        let shapes = fields.get_mut(name).and_then(Value::as_array_mut);
        shapes.into_iter().flatten().for_each(for_models);
    }
}

/// What may be null may as well be left out, which is said by `required`.
fn without_null(fields: &mut Map<String, Value>) {
    let is_null = |one: &Value| one.is_null() || *one == "null" || one.get("type") == Some(&json!("null"));
    for name in ["type", "enum", "anyOf", "oneOf"] {
        let Some(Value::Array(several)) = fields.get_mut(name) else { continue };
        several.retain(|one| !is_null(one));
        if several.len() != 1 || name == "enum" {
            continue;
        }
        match several.remove(0) {
            // One shape is left: its fields move up, and a field that is there already wins.
            Value::Object(shape) => {
                fields.remove(name);
                for (key, value) in shape {
                    fields.entry(key).or_insert(value);
                }
            }
            one => {
                fields.insert(name.to_owned(), one);
            }
        }
    }
    if fields.get("default") == Some(&Value::Null) {
        fields.remove("default");
    }
}

/// Words of which each has a description become a list, and their descriptions the end of the text beside it.
fn as_enum(fields: &mut Map<String, Value>) {
    let Some(shapes) = fields.get("oneOf").and_then(Value::as_array) else { return };
    let words: Vec<Value> = shapes.iter().filter_map(|shape| shape.get("const").cloned()).collect();
    if words.len() != shapes.len() || !words.iter().all(Value::is_string) {
        return;
    }
    let mut text = description_of(&Value::Object(fields.clone()));
    for shape in shapes {
        let (word, says) = (shape["const"].as_str().unwrap_or_default(), description_of(shape));
        if !says.is_empty() {
            let _ = write!(text, "{}`{word}`: {says}", if text.is_empty() { "" } else { " " });
        }
    }
    fields.remove("oneOf");
    fields.insert("type".to_owned(), json!("string"));
    fields.insert("enum".to_owned(), Value::Array(words));
    if !text.is_empty() {
        fields.insert("description".to_owned(), Value::String(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How something is made.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "its schema is looked at")]
    enum Mode {
        /// From nothing.
        Create,
        /// From an existing one.
        Change,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "its schema is looked at")]
    struct Inner {
        side: Option<Mode>,
        names: Option<Vec<String>>,
    }

    /// Does something.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "its schema is looked at")]
    struct Input {
        /// How many.
        #[schemars(range(min = 1))]
        count: Option<i64>,
        /// How.
        mode: Mode,
        inner: Option<Inner>,
        many: Vec<Inner>,
        anything: Option<Value>,
    }

    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    #[test]
    fn arguments_are_in_the_part_of_json_schema_that_every_api_takes() {
        let words = "`create`: From nothing. `change`: From an existing one.";
        let mode = |text: &str| json!({ "type": "string", "enum": ["create", "change"], "description": text });
        let inner = json!({
            "type": "object",
            "properties": {
                "side": mode(&format!("How something is made. {words}")),
                "names": { "type": "array", "items": { "type": "string" } },
            },
        });
        assert_eq!(
            input_schema_of::<Input>(),
            json!({
                "type": "object",
                "description": "Does something.",
                "additionalProperties": false,
                "properties": {
                    "count": { "type": "integer", "minimum": 1, "description": "How many." },
                    "mode": mode(&format!("How. {words}")),
                    "inner": inner,
                    "many": { "type": "array", "items": inner },
                    "anything": {},
                },
                "required": ["mode", "many"],
            })
        );
    }

    #[test]
    fn a_tool_without_arguments_says_so() {
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": {} });
        assert_eq!(input_schema_of::<Nothing>(), schema);
    }
}
