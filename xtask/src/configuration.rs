//! The page of every key of the configuration, and of every option with the variable that stands for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{commands, shell};

const HEAD: &str = "# Every key, option and variable\n\n\
Written by `cargo xtask gen` from the JSON Schema of `config.toml` (`toolhost schema config`) and from the help of `toolhost`.\n\
Options come before variables, variables before the file.\n";

/// Variables that no option stands for.
const VARIABLES: [(&str, &str); 15] = [
    (
        "`TOOLHOST_LOG`",
        "What is logged on standard error: `error`, `warn` (the default), `info`, `debug`, or a filter by modules.",
    ),
    ("`TOOLHOST_OPENID_SECRET`", "The secret of `toolhost serve` at the identity provider where people sign in."),
    ("`TOOLHOST_LOG_FORMAT`", "`json`: each line of the log is a JSON object, with the call's number in `call`."),
    ("`NO_COLOR`", "No colors, whatever its value is."),
    ("`VISUAL`, `EDITOR`", "The editor in which a person changes arguments and texts."),
    (
        "`XDG_CONFIG_HOME`, `XDG_DATA_HOME`",
        "Where configuration and state are, instead of `~/.config` and `~/.local/share`.",
    ),
    ("`PATH`", "Where commands find programs, without folders that commands do not see."),
    (
        "`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, …",
        "Keys of models, by the name that `toolhost models` shows. One in the environment comes before one that is kept.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT`",
        "The collector that `serve`, `mcp`, `run` and `session resume` send traces to, by OTLP over HTTP: the address for traces, or the \
         one for all signals, to which `/v1/traces` is added. Without either, no traces are made.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_TRACES_HEADERS`, `OTEL_EXPORTER_OTLP_HEADERS`",
        "Headers for the collector, `name=value` with commas between, percent-encoded. They are sent to `https` and to this machine only.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, `OTEL_EXPORTER_OTLP_TIMEOUT`",
        "How long one message to the collector may take, milliseconds (10000).",
    ),
    (
        "`OTEL_TRACES_EXPORTER`, `OTEL_EXPORTER_OTLP_PROTOCOL`, `OTEL_SDK_DISABLED`",
        "`none`, another protocol than `http/protobuf`, and `true` switch traces off.",
    ),
    (
        "`OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`",
        "Which traces are sent: `parentbased_always_on` (the default), `parentbased_always_off`, `parentbased_traceidratio` with a ratio \
         from 0 to 1, or one of them without `parentbased_`, which does not ask the caller.",
    ),
    (
        "`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`",
        "What is said of this process with its traces. Its name is `toolhost` by default.",
    ),
    (
        "`OTEL_BSP_MAX_QUEUE_SIZE`, `OTEL_BSP_MAX_EXPORT_BATCH_SIZE`, `OTEL_BSP_SCHEDULE_DELAY`",
        "Spans that may wait (2048), those of one message (512), and how long the first of a message waits for others, milliseconds (5000).",
    ),
];

/// The page.
pub(crate) fn page(program: &Path) -> Result<String> {
    let schema = shell::stdout_of(Command::new(program).args(["schema", "config"]))?;
    let schema: Value = serde_json::from_str(&schema).context("the schema of the configuration")?;
    let mut page = format!("{HEAD}\n## Keys of config.toml\n\n| key | value | |\n|---|---|---|\n");
    for (key, value, says) in keys(&schema) {
        page.push_str(&format!("| `{key}` | {value} | {says} |\n"));
    }
    page.push_str("\n## Options and their variables\n\n| option | variable | commands |\n|---|---|---|\n");
    for ((option, variable), of) in options(program)? {
        let of = if of.iter().any(String::is_empty) { "all".to_owned() } else { of.join(", ") };
        page.push_str(&format!("| `{option}` | `{variable}` | {of} |\n"));
    }
    page.push_str("\n## Further variables\n\n| variable | |\n|---|---|\n");
    for (variable, says) in VARIABLES {
        page.push_str(&format!("| {variable} | {says} |\n"));
    }
    Ok(page)
}

/// Every key, what its value is, and what it says; in the order of the schema.
fn keys(schema: &Value) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    // Parts that are still to be looked at, the next one last.
    let mut open = vec![(String::new(), schema.clone(), String::new())];
    while let Some((key, part, says)) = open.pop() {
        let part = resolved(schema, &part);
        let says = Some(says).filter(|says| !says.is_empty()).unwrap_or_else(|| text_of(&part));
        let mut below: Vec<(String, Value, String)> = Vec::new();
        let named = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        for (name, value) in part["properties"].as_object().into_iter().flatten() {
            below.push((named(name), value.clone(), text_of(value)));
        }
        let items = resolved(schema, &part["items"]);
        if items["properties"].is_object() {
            below.push((format!("{key}[]"), items, says.clone()));
        }
        let others = resolved(schema, &part["additionalProperties"]);
        if others["properties"].is_object() || others["oneOf"].is_array() {
            below.push((named("NAME"), others, says.clone()));
        }
        if below.is_empty() && !key.is_empty() {
            found.push((key, value_of(schema, &part), says));
        }
        open.extend(below.into_iter().rev());
    }
    found
}

/// A part of the schema, without references and without the `null` that stands for a key that is left out.
fn resolved(schema: &Value, part: &Value) -> Value {
    let mut part = part.clone();
    // A reference leads to a definition, which may be one more alternative; none leads back.
    for _ in 0..8 {
        if let Some(name) = part["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            part = schema["$defs"][name].clone();
        } else if let Some(only) = part["anyOf"].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"))
        {
            part = only.clone();
        } else {
            break;
        }
    }
    part
}

fn text_of(part: &Value) -> String {
    let text = part["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// What a value is, in words.
fn value_of(schema: &Value, part: &Value) -> String {
    let names = |part: &Value| -> Vec<String> {
        let listed = part["enum"].as_array().into_iter().flatten();
        let alone = part["oneOf"].as_array().into_iter().flatten();
        let all = listed.chain(
            alone.flat_map(|one| one.get("const").into_iter().chain(one["enum"].as_array().into_iter().flatten())),
        );
        all.filter_map(Value::as_str).map(|name| format!("`{name}`")).collect()
    };
    let named = names(part);
    if !named.is_empty() {
        return named.join(", ");
    }
    if let Some(ways) = part["oneOf"].as_array() {
        let ways = ways.iter().flat_map(|way| way["properties"].as_object().into_iter().flatten());
        return ways
            .map(|(name, value)| format!("`{{ {name} = {} }}`", value_of(schema, value)))
            .collect::<Vec<_>>()
            .join(" or ");
    }
    let kind = match &part["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("array") => format!("a list: {}", value_of(schema, &resolved(schema, &part["items"]))),
        Some("object") => "a table".to_owned(),
        Some("integer" | "number") => "a number".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("string") => "a text".to_owned(),
        _ => "any value".to_owned(),
    }
}

/// Options that a variable stands for, each with the commands that have it; an empty one is the program itself.
fn options(program: &Path) -> Result<BTreeMap<(String, String), Vec<String>>> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let own = commands::help(program, &[])?;
    let all = commands::all(program)?.into_iter().map(|(command, help)| (command.join(" "), help));
    for (command, help) in std::iter::once((String::new(), own)).chain(all) {
        // A description goes on in further lines, and may break anywhere.
        let mut described: Vec<String> = Vec::new();
        for line in help.lines().map(str::trim) {
            match described.last_mut() {
                Some(last) if !line.starts_with('-') => last.extend([" ", line]),
                _ => described.push(line.to_owned()),
            }
        }
        for line in described {
            let option = line.split("  ").next().unwrap_or_default().to_owned();
            if let Some(variable) = line.split_once("[env: ").and_then(|(_, rest)| rest.split([']', '=']).next()) {
                let commands = found.entry((option, variable.to_owned())).or_default();
                if !commands.iter().any(String::is_empty) {
                    commands.push(command.clone());
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::keys;

    #[test]
    fn each_key_is_told_with_its_value() {
        let schema = json!({
            "properties": {
                "fence": { "anyOf": [{ "$ref": "#/$defs/Fence" }, { "type": "null" }], "description": "The  fence." },
                "models": { "type": "object", "additionalProperties": { "$ref": "#/$defs/Model" } },
                "remotes": { "type": "array", "items": { "$ref": "#/$defs/Model" }, "description": "Remotes." },
                "calls": { "type": ["integer", "null"] },
            },
            "$defs": {
                "Fence": { "enum": ["auto", "off"], "type": "string" },
                "Model": { "type": "object", "properties": { "key": { "type": "string", "description": "a | b" } } },
            },
        });
        let told: Vec<String> = keys(&schema).into_iter().map(|(a, b, c)| format!("{a}: {b}: {c}")).collect();
        let expected = [
            "fence: `auto`, `off`: The fence.",
            "models.NAME.key: a text: a \\| b",
            "remotes[].key: a text: a \\| b",
            "calls: a number: ",
        ];
        let mut sorted = told.clone();
        sorted.sort();
        let mut wanted = expected.map(str::to_owned).to_vec();
        wanted.sort();
        assert_eq!(sorted, wanted);
    }
}
