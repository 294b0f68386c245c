//! What holds of every request, whatever its format: the wire's truth, which providers check with a 400.

use std::collections::BTreeSet;

use serde_json::Value;

/// Gathers what is wrong with one request.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<String>);

impl Findings {
    pub(super) fn when(&mut self, wrong: bool, what: impl Into<String>) {
        if wrong {
            self.0.push(what.into());
        }
    }

    /// A name or an id: `^[a-zA-Z0-9_-]{1,64}$`.
    pub(super) fn name(&mut self, what: &str, name: &Value) {
        let text = name.as_str().unwrap_or_default();
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        self.when(!(1..=64).contains(&text.len()) || !plain, format!("{what} {name} is none"));
    }

    /// The schema of a tool's arguments, in the form that all providers take.
    pub(super) fn schema(&mut self, tool: &Value, schema: &Value) {
        self.when(schema["type"] != "object", format!("the schema of {tool} is not that of an object"));
        for word in ["oneOf", "anyOf", "allOf"] {
            self.when(schema.get(word).is_some(), format!("the schema of {tool} has `{word}` at its top"));
        }
        let properties = schema.get("properties").map(Value::as_object);
        self.when(properties == Some(None), format!("the properties of {tool} are none"));
        for required in schema["required"].as_array().into_iter().flatten() {
            let known = required.as_str().is_some_and(|name| schema["properties"].get(name).is_some());
            self.when(!known, format!("{tool} requires {required}, which it does not have"));
        }
    }

    pub(super) fn unique<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a Value>) {
        let mut seen = BTreeSet::new();
        for name in names {
            self.when(!seen.insert(name.to_string()), format!("{what} {name} is there twice"));
        }
    }

    /// Each call answered exactly once.
    pub(super) fn answered(&mut self, place: usize, calls: &[Value], answers: &[Value]) {
        let sorted = |ids: &[Value]| {
            let mut ids = ids.iter().map(Value::to_string).collect::<Vec<_>>();
            ids.sort();
            ids
        };
        let (asked, got) = (sorted(calls), sorted(answers));
        self.when(
            asked != got,
            format!("message {place} asks for {asked:?}, and {got:?} are answered right behind it"),
        );
    }
}

pub(super) fn is_blank(value: &Value) -> bool {
    value.as_str().is_none_or(|text| text.trim().is_empty())
}
