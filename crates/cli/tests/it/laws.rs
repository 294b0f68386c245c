//! The laws of the tool list.

use std::collections::BTreeSet;

use serde_json::Value;
use toolhost_host::{Registry, wire_name};

/// Longest title or description; some clients cut what is longer.
const TEXT_BYTES_MAX: usize = 1024;

/// Rules: 004.1.
#[test]
fn names_are_unique_and_of_the_right_form() {
    let mut seen = BTreeSet::new();
    for tool in toolhost_tools::all(&toolhost_store::Records::nowhere()) {
        let facts = tool.facts();
        let parts: Vec<&str> = facts.name.split('.').collect();
        assert!(parts.len() <= 3 && (parts.len() >= 2 || facts.name == "bash"), "{}", facts.name);
        for part in parts {
            assert!(part.starts_with(|c: char| c.is_ascii_lowercase()), "{}", facts.name);
            assert!(part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", facts.name);
        }
        let wire = wire_name(&facts.name);
        // What every model API and MCP client takes.
        assert!((1..=64).contains(&wire.len()), "{wire}");
        assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{wire}");
        let aliases = facts.aliases.iter().map(|alias| alias.name.to_owned());
        let names: BTreeSet<String> = [facts.name.to_string(), wire].into_iter().chain(aliases).collect();
        for name in names {
            assert!(seen.insert(name.clone()), "two tools answer to {name}");
        }
    }
    assert!(Registry::new(toolhost_tools::all(&toolhost_store::Records::nowhere())).is_ok());
}

/// Rules: 004.4.
#[test]
fn titles_and_descriptions_say_something_and_fit() {
    for tool in toolhost_tools::all(&toolhost_store::Records::nowhere()) {
        let facts = tool.facts();
        for (what, text) in [("title", &*facts.title), ("description", &*facts.description)] {
            assert!(!text.trim().is_empty(), "{} has no {what}", facts.name);
            assert!(text.len() <= TEXT_BYTES_MAX, "the {what} of {} is {} bytes long", facts.name, text.len());
        }
    }
}

/// Rules: 004.2, 004.4.
#[test]
fn schemas_are_objects_closed_and_described() {
    for tool in toolhost_tools::all(&toolhost_store::Records::nowhere()) {
        let facts = tool.facts();
        assert_eq!(facts.input_schema["type"], "object", "{}", facts.name);
        assert_eq!(facts.output_schema.value()["type"], "object", "{}", facts.name);
        assert!(jsonschema::draft202012::new(&facts.output_schema.value()).is_ok(), "{}", facts.name);
        let mut objects = 0;
        each_object(&facts.input_schema, &mut |object| {
            objects += 1;
            assert_eq!(object.get("additionalProperties"), Some(&Value::Bool(false)), "{}: {object:?}", facts.name);
            for (field, schema) in object["properties"].as_object().into_iter().flatten() {
                let says = schema["description"].as_str().unwrap_or_default();
                assert!(!says.trim().is_empty(), "{}: {field} is not described", facts.name);
            }
        });
        // A tool without arguments has no `properties`, but is closed all the same.
        assert_eq!(facts.input_schema["additionalProperties"], false, "{}", facts.name);
        for word in ["oneOf", "anyOf", "allOf", "not", "enum"] {
            assert!(facts.input_schema.get(word).is_none(), "{}: providers refuse `{word}` there", facts.name);
        }
        assert!(objects > 0 || facts.input_schema.get("properties").is_none(), "{}", facts.name);
        assert!(!facts.input_schema.to_string().contains("$ref"), "{}: the schema must be whole", facts.name);
    }
}

#[test]
fn presets_of_aliases_are_arguments_of_their_tool() {
    for tool in toolhost_tools::all(&toolhost_store::Records::nowhere()) {
        let facts = tool.facts();
        for alias in &facts.aliases {
            for (name, value) in alias.preset.as_object().unwrap() {
                let schema = &facts.input_schema["properties"][name];
                let validator = jsonschema::draft202012::new(schema).unwrap();
                assert!(schema.is_object() && validator.is_valid(value), "{}: {name} = {value}", alias.name);
            }
        }
    }
}

/// Every schema within that has properties.
fn each_object(schema: &Value, seen: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
    match schema {
        Value::Object(object) => {
            if object.get("properties").is_some_and(Value::is_object) && object.get("type").is_some() {
                seen(object);
            }
            object.values().for_each(|inner| each_object(inner, seen));
        }
        Value::Array(items) => items.iter().for_each(|inner| each_object(inner, seen)),
        _ => {}
    }
}
