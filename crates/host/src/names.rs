//! The names of tools in what a caller is told: of tools that it has, as its door spells them.

use serde_json::Value;
use toolhost_contract::{CallerKind, ErrorCode, ErrorKind, Success, ToolError, or_list};

use crate::profile::Profile;
use crate::registry::{Registered, Registry, nearest_tools};

/// How a door spells the names of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// `file_read`: what every client and model API takes.
    Wire,
    /// `file.read`: canonical, for people and for clients that take dots.
    #[default]
    Dotted,
}

impl Names {
    pub fn of(self, tool: &Registered) -> &str {
        match self {
            Self::Wire => &tool.wire_name,
            Self::Dotted => &tool.info.name,
        }
    }

    /// What a door tells of a tool, its description and the schema of its arguments: other tools that they name are spelled as
    /// the door lists them.
    #[must_use]
    pub fn described(self, registry: &Registry, tool: &Registered) -> (String, Value) {
        (self.spelled(registry, &tool.info.description), self.in_schema(registry, tool.info.input_schema.clone()))
    }

    /// A schema in which tools are spelled so.
    pub(crate) fn in_schema(self, registry: &Registry, mut schema: Value) -> Value {
        let mut open = vec![&mut schema];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    for (name, field) in fields {
                        match field {
                            Value::String(text) if name == "description" => *text = self.spelled(registry, text),
                            other => open.push(other),
                        }
                    }
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        schema
    }

    fn spelled(self, registry: &Registry, text: &str) -> String {
        let parts = text.split('`').enumerate();
        let parts = parts.map(|(n, part)| match tool_named(registry, part) {
            Some(tool) if n % 2 == 1 => self.of(tool),
            _ => part,
        });
        parts.collect::<Vec<_>>().join("`")
    }
}

/// The tool of this canonical or wire name.
fn tool_named<'r>(registry: &'r Registry, name: &str) -> Option<&'r Registered> {
    registry.get(name).filter(|tool| *tool.info.name == *name || tool.wire_name == name)
}

/// Who is told something.
pub(crate) struct Told<'a> {
    pub(crate) registry: &'a Registry,
    /// `None`: the caller names a profile that does not exist, and has no tools.
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) kind: CallerKind,
    pub(crate) names: Names,
}

impl Told<'_> {
    /// There is no such tool; the hint names those of the caller's that are most like it.
    pub(crate) fn unknown(&self, name: &str) -> ToolError {
        let shown: String = name.chars().take(80).collect();
        let error =
            ToolError::new(ErrorKind::NotFound, format!("there is no tool `{shown}`")).code(ErrorCode::ToolNotAllowed);
        let near = nearest_tools(name, self.registry.tools().iter().filter(|tool| self.has(tool)));
        if near.is_empty() {
            return self.registry.with_list(error);
        }
        let near: Vec<&str> = near.into_iter().map(|tool| self.names.of(tool)).collect();
        error.hint(format!("did you mean {}?", or_list(&near)))
    }

    /// A hint without the parts that name a tool which the caller does not have.
    pub(crate) fn error(&self, mut error: ToolError) -> ToolError {
        let usable = |part: &&str| self.named(part).all(|tool| self.has(tool));
        let hint = error.hint.take().unwrap_or_default();
        let parts: Vec<&str> = hint.split("; ").filter(usable).filter(|part| !part.is_empty()).collect();
        error.hint = (!parts.is_empty()).then(|| self.spelled(&parts.join("; ")));
        error
    }

    /// What waits for a person says with which tool to wait. Other texts may hold what is not the host's to change.
    pub(crate) fn success(&self, mut success: Success) -> Success {
        let is = |field: &str, start: &str| success.data[field].as_str().is_some_and(|text| text.starts_with(start));
        if is("status", "pending_") && is("approvalId", "ask-") {
            success.text = self.spelled(&success.text);
        }
        success
    }

    fn has(&self, tool: &Registered) -> bool {
        let forbidden = tool.info.facts.is_for_people() && self.kind == CallerKind::Model;
        !forbidden && self.profile.is_some_and(|profile| profile.has(&tool.info.name))
    }

    /// The tools that a text names between backticks, by their canonical names or as a door spells them.
    fn named<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'t Registered> {
        text.split('`').skip(1).step_by(2).filter_map(|word| self.tool(word))
    }

    fn spelled(&self, text: &str) -> String {
        self.names.spelled(self.registry, text)
    }

    fn tool(&self, name: &str) -> Option<&Registered> {
        tool_named(self.registry, name)
    }
}
