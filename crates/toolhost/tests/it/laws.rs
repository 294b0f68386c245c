//! The laws of the tool list.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use toolhost_contract::{AnyTool, Effect};
use toolhost_host::{Registry, wire_name};

/// Longest title or description; some clients cut what is longer.
const TEXT_BYTES_MAX: usize = 1024;

/// Rules: 004.1.
#[test]
fn names_are_unique_and_of_the_right_form() {
    let mut seen = BTreeSet::new();
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        let parts: Vec<&str> = info.name.split('.').collect();
        assert!(parts.len() <= 3 && (parts.len() >= 2 || info.name == "bash"), "{}", info.name);
        for part in parts {
            assert!(part.starts_with(|c: char| c.is_ascii_lowercase()), "{}", info.name);
            assert!(part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", info.name);
        }
        let wire = wire_name(&info.name);
        // What every model API and MCP client takes.
        assert!((1..=64).contains(&wire.len()), "{wire}");
        assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{wire}");
        let aliases = info.aliases.iter().map(|alias| alias.name.to_owned());
        let names: BTreeSet<String> = [info.name.to_string(), wire].into_iter().chain(aliases).collect();
        for name in names {
            assert!(seen.insert(name.clone()), "two tools answer to {name}");
        }
    }
    assert!(Registry::new(toolhost_testkit::every_tool()).is_ok());
}

/// Rules: 004.4.
#[test]
fn titles_and_descriptions_say_something_and_fit() {
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for (what, text) in [("title", &*info.title), ("description", &*info.description)] {
            assert!(!text.trim().is_empty(), "{} has no {what}", info.name);
            assert!(text.len() <= TEXT_BYTES_MAX, "the {what} of {} is {} bytes long", info.name, text.len());
        }
    }
}

/// Rules: 004.2, 004.4.
#[test]
fn schemas_are_objects_closed_and_described() {
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        assert_eq!(info.input_schema["type"], "object", "{}", info.name);
        assert_eq!(info.output_schema.value()["type"], "object", "{}", info.name);
        assert!(jsonschema::draft202012::new(&info.output_schema.value()).is_ok(), "{}", info.name);
        let mut objects = 0;
        each_object(&info.input_schema, &mut |object| {
            objects += 1;
            // A change set has a schema of its own, and is taken as it is.
            if object["properties"].as_object().is_some_and(serde_json::Map::is_empty) {
                return;
            }
            assert_eq!(object.get("additionalProperties"), Some(&Value::Bool(false)), "{}: {object:?}", info.name);
            for (field, schema) in object["properties"].as_object().into_iter().flatten() {
                let says = schema["description"].as_str().unwrap_or_default();
                assert!(!says.trim().is_empty(), "{}: {field} is not described", info.name);
            }
        });
        // So is a tool without arguments.
        assert_eq!(info.input_schema["additionalProperties"], false, "{}", info.name);
        for word in ["oneOf", "anyOf", "allOf", "not", "enum"] {
            assert!(info.input_schema.get(word).is_none(), "{}: providers refuse `{word}` there", info.name);
        }
        assert!(objects > 0, "{}", info.name);
        assert!(!info.input_schema.to_string().contains("$ref"), "{}: the schema must be whole", info.name);
    }
}

#[test]
fn presets_of_aliases_are_arguments_of_their_tool() {
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        for alias in &info.aliases {
            for (name, value) in alias.preset.as_object().unwrap() {
                let schema = &info.input_schema["properties"][name];
                let validator = jsonschema::draft202012::new(schema).unwrap();
                assert!(schema.is_object() && validator.is_valid(value), "{}: {name} = {value}", alias.name);
            }
        }
    }
}

/// A rule about paths or commands looks at the arguments that the facts name, and at no others.
#[test]
fn facts_name_the_arguments_that_are_paths_commands_and_dry_runs() {
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        let arguments = info.input_schema["properties"].as_object().cloned().unwrap_or_default();
        let is_of = |name: &str, kinds: &[&str]| {
            let kind = &arguments.get(name).expect("the facts name an argument")["type"];
            let found = kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]);
            found.iter().all(|kind| kind == "null" || kinds.iter().any(|one| kind == one))
        };
        for name in info.facts.paths {
            assert!(is_of(name, &["string", "array"]), "{}: {name} is no path", info.name);
        }
        for (name, schema) in &arguments {
            let says = schema["description"].as_str().unwrap_or_default();
            let is_path = says.contains("relative to the workspace root");
            assert!(
                !is_path || info.facts.paths.contains(&name.as_str()),
                "{}: the facts do not name the path {name}",
                info.name
            );
        }
        if let Some(command) = info.facts.command {
            assert!(is_of(command.name, &["string"]) && is_of(command.input, &["string"]), "{}", info.name);
        }
        let executes = info.facts.effect == Effect::Executes;
        assert_eq!(info.facts.command.is_some(), executes, "{}: what it runs", info.name);
        assert_eq!(info.facts.dry_run.is_some(), arguments.contains_key("dryRun"), "{}: dryRun", info.name);
        assert!(info.facts.dry_run.is_none_or(|name| is_of(name, &["boolean"])), "{}", info.name);
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

/// What is special about a tool is a fact of that tool. The texts of the prompt's layers are no code: they tell a model which tools
/// of packages to call.
#[test]
fn the_host_and_the_loop_of_sessions_name_no_tool() {
    let spellings = |tool: Box<dyn AnyTool>| {
        let info = tool.info();
        let aliases = info.aliases.iter().map(|alias| alias.name.to_owned());
        let names = aliases.chain([info.name.to_string(), wire_name(&info.name)]);
        // A program has the same name as the tool for commands.
        names.filter(|name| name.contains(['.', '_'])).collect::<Vec<String>>()
    };
    let names: Vec<String> = toolhost_testkit::every_tool().into_iter().flat_map(spellings).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut open = vec![crates.join("host/src"), crates.join("agent/src")];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let is_code = path.extension().is_some_and(|ending| ending == "rs" || ending == "toml");
            if !is_code || path.ends_with("tests.rs") {
                continue;
            }
            seen += 1;
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            let code = shipped.lines().map(|line| line.split("//").next().unwrap_or_default());
            for (number, line) in code.enumerate() {
                for name in names.iter().filter(|name| line.contains(&**name)) {
                    let is_named = [format!("\"{name}\""), format!("`{name}`")].iter().any(|text| line.contains(text));
                    assert!(!is_named, "{}:{}: names `{name}`", path.display(), number + 1);
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} files were looked at");
}
