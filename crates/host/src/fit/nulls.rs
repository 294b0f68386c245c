//! Null for an optional argument is as good as leaving it out: many clients send it, and no model's API can be told of it.

use serde_json::Value;

/// The arguments without what is null and may be left out, in objects and lists that the schema describes.
///
/// The walk follows the schema, which is as deep as a type of ours is, and not what was sent.
pub(crate) fn without_nulls(arguments: &mut Value, schema: &Value) {
    match arguments {
        Value::Object(fields) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            let required = |name: &str| {
                let names = schema.get("required").and_then(Value::as_array);
                names.is_some_and(|names| names.iter().any(|required| required == name))
            };
            fields.retain(|name, value| {
                let is_optional = properties.get(name).is_some_and(|property| !takes_null(property)) && !required(name);
                !(value.is_null() && is_optional)
            });
            for (name, value) in fields {
                properties.get(name).into_iter().for_each(|property| without_nulls(value, property));
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| without_nulls(item, schema));
        }
        _ => {}
    }
}

/// Whether null is a value there: where nothing says what kind of value it is, it is.
fn takes_null(schema: &Value) -> bool {
    let shapes = ["anyOf", "oneOf"].into_iter().find_map(|name| schema.get(name)?.as_array());
    match (schema.get("type"), schema.get("enum"), shapes) {
        (Some(Value::Array(several)), _, _) => several.iter().any(|one| one == "null"),
        (Some(one), _, _) => one == "null",
        (None, Some(Value::Array(words)), _) => words.contains(&Value::Null),
        (None, _, Some(shapes)) => shapes.iter().any(takes_null),
        (None, _, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_left_out_where_it_may_be_and_stays_where_it_says_something() {
        let schema = json!({
            "required": ["path"],
            "properties": {
                "path": { "type": "string" },
                "limit": { "type": "integer" },
                "word": { "enum": ["a", "b"] },
                "either": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "maybe": { "type": ["string", "null"] },
                "payload": {},
                "edits": { "type": "array", "items": { "properties": { "all": { "type": "boolean" } } } },
            },
        });
        let mut arguments = json!({
            "path": null, "limit": null, "word": null, "either": null, "maybe": null, "unknown": null,
            "payload": { "field": null }, "edits": [{ "all": null }, { "all": true }],
        });
        without_nulls(&mut arguments, &schema);
        let expected = json!({
            "path": null, "maybe": null, "unknown": null, "payload": { "field": null }, "edits": [{}, { "all": true }],
        });
        assert_eq!(arguments, expected);
    }
}
