//! The tools that call other tools, for a client that is told of few. Each calls tools of some effects only, so that what the client
//! asks its user before it uses one of these holds for what is called.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, JsonObject, Tool};
use serde_json::{Value, json};
use toolhost_contract::Effect;
use toolhost_host::{Names, Through};

use super::render;

struct Caller {
    /// As [`Names::Dotted`] spells it.
    name: &'static str,
    title: &'static str,
    effects: &'static [Effect],
    /// What it calls.
    what: &'static str,
}

const CALLERS: [Caller; 3] = [
    Caller { name: "tool.read", title: "Call a tool that reads", effects: &[Effect::Reads], what: "only read" },
    Caller {
        name: "tool.change",
        title: "Call a tool that changes something",
        effects: &[Effect::Writes, Effect::Executes, Effect::Asks],
        what: "write, execute or ask a person",
    },
    Caller {
        name: "tool.reach",
        title: "Call a tool that leaves the machine",
        effects: &[Effect::Reaches],
        what: "reach",
    },
];

impl Caller {
    fn spelled(&self, names: Names) -> String {
        match names {
            Names::Wire => self.name.replace('.', "_"),
            Names::Dotted => self.name.to_owned(),
        }
    }

    /// The effect by which a client is told what to expect of it.
    fn worst(&self) -> Effect {
        self.effects.first().copied().unwrap_or(Effect::Reaches)
    }
}

/// The callers as MCP lists them.
pub(crate) fn all(names: Names, search: &str) -> impl Iterator<Item = Tool> {
    CALLERS.iter().map(move |caller| {
        let what = caller.what;
        let description =
            format!("Calls one of your tools that {what}, also one that is not listed. `{search}` finds them.");
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "The tool's name" },
                "arguments": { "type": "object", "properties": {}, "description": "The tool's arguments" },
            },
            "required": ["name", "arguments"],
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        let mut tool = Tool::new(caller.spelled(names), description, Arc::new(schema));
        tool.title = Some(caller.title.to_owned());
        tool.annotations = Some(render::hints(caller.worst(), false));
        tool
    })
}

/// The call that a request to one of the callers stands for, and what holds for it. Any other request stays as it is.
///
/// # Errors
/// It names no tool.
pub(crate) fn unwrapped(
    mut request: CallToolRequestParams,
    names: Names,
) -> Result<(CallToolRequestParams, Option<Through>), ErrorData> {
    let Some(caller) = CALLERS
        .iter()
        .find(|caller| [Names::Wire, Names::Dotted].iter().any(|names| caller.spelled(*names) == request.name))
    else {
        return Ok((request, None));
    };
    let by = caller.spelled(names);
    let mut given = request.arguments.take().unwrap_or_default();
    let Some(Value::String(name)) = given.remove("name") else {
        return Err(ErrorData::invalid_params(
            format!("`{by}` takes `name`, a tool's name, and `arguments`, an object"),
            None,
        ));
    };
    request.arguments = match given.remove("arguments") {
        None | Some(Value::Null) => None,
        Some(Value::Object(arguments)) => Some(arguments),
        // As some models write it.
        Some(Value::String(text)) => Some(parsed(&text, &by)?),
        Some(_) => return Err(not_an_object(&by)),
    };
    request.name = name.into();
    let lines = CALLERS.iter().map(|caller| format!("`{}` calls tools that {}", caller.spelled(names), caller.what));
    Ok((request, Some(Through { by, effects: caller.effects, hint: lines.collect::<Vec<_>>().join(", ") })))
}

fn parsed(text: &str, by: &str) -> Result<JsonObject, ErrorData> {
    serde_json::from_str(text).map_err(|_| not_an_object(by))
}

fn not_an_object(by: &str) -> ErrorData {
    ErrorData::invalid_params(format!("`arguments` of `{by}` is no object"), None)
}
