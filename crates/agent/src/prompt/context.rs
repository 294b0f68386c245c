//! The context of a session as text: what came from a package or a ticket between marks, what the host says outside.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use toolhost_builder::envelope::KEYS;
use toolhost_contract::{Effect, visible_line};

use super::history::bounded;
use super::input::{ReplyLimits, WorkspaceContext, WorkspaceInput};
use super::persona::profile_values;
use super::untrusted::mark_untrusted;
use super::{BuilderInput, ComposeError, LayerId, texts};

/// Tools that the list names.
pub const TOOLS_MAX: usize = 200;
/// Lines of what a person is asked for.
pub const NEEDS_PERSON_MAX: usize = 60;
/// Facts that are told.
pub const FACTS_MAX: usize = 30;
/// Characters of a fact.
pub const FACT_CHARS_MAX: usize = 4_000;
/// Characters of the text of a ticket.
pub const TICKET_CHARS_MAX: usize = 16_000;
/// Characters of a name or a line.
pub const LINE_CHARS_MAX: usize = 200;

/// Fields of a target that come first in its text, in this order; the others follow in the order of their names.
const TARGET_FIRST: [&str; 6] = ["step_markdown", "workflow_md", "agent_definition", "path", "content", "graph_json"];
/// Fields of `session_meta` that a model has no use for. Without them, two sessions on one object begin with the same bytes.
const UNTOLD: [&str; 3] = ["session_id", "user_id", "project_id"];

/// An envelope as a model reads it and as the budget counts it: JSON, a line for each of the seven fields in the seed's
/// order. The text of the target comes first in it; other fields are sorted. Fields that an envelope does not have are left
/// out, and so are the ids of session, user and project.
#[must_use]
pub fn render_envelope(envelope: &Value) -> String {
    let lines = KEYS.iter().filter_map(|key| Some(format!("\"{key}\": {}", section(key, envelope.get(*key)?))));
    format!("{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n"))
}

fn section(key: &str, section: &Value) -> String {
    match (key, section) {
        ("target_snapshot", Value::Object(fields)) => {
            let first = TARGET_FIRST.iter().filter_map(|name| fields.get_key_value(*name));
            let is_other = |(name, _): &(&String, &Value)| !TARGET_FIRST.contains(&name.as_str());
            let others: BTreeMap<&String, &Value> = fields.iter().filter(is_other).collect();
            let field = |(name, value): (&String, &Value)| format!("{}:{}", Value::from(name.as_str()), sorted(value));
            format!("{{{}}}", first.chain(others).map(field).collect::<Vec<_>>().join(","))
        }
        ("session_meta", Value::Object(fields)) => {
            let told = fields.iter().filter(|(name, _)| !UNTOLD.contains(&name.as_str()));
            sorted(&told.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        _ => sorted(section),
    }
}

/// Compact JSON with sorted fields: equal values give equal bytes, whatever order their fields came in.
#[must_use]
pub(crate) fn sorted(value: &Value) -> String {
    // Writing a value into memory cannot fail: its keys are texts.
    serde_json::to_string(&Sorted(value)).unwrap_or_default()
}

struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                // Most objects are sorted as they are; large envelopes are written several times.
                if fields.keys().is_sorted() {
                    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, &Sorted(value)))?;
                } else {
                    let fields: BTreeMap<&String, &Value> = fields.iter().collect();
                    fields.iter().try_for_each(|(key, value)| map.serialize_entry(key, &Sorted(value)))?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Sorted(item))?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Layer 5 of the builder.
pub(super) fn builder(input: &BuilderInput) -> Result<String, ComposeError> {
    let missing = |why: String| ComposeError::Missing { layer: LayerId::Context, why };
    let envelope = &input.context_envelope;
    let fields = envelope.as_object().ok_or_else(|| missing("`contextEnvelope` is no object".to_owned()))?;
    if let Some(key) = KEYS.iter().find(|key| !fields.contains_key(**key)) {
        return Err(missing(format!("`contextEnvelope` has no `{key}`")));
    }
    if let Some(key) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(missing(format!("`contextEnvelope` has a field too many: `{}`", visible_line(key))));
    }
    // The profile of the input is what the persona is about. The envelope of a session has the same one.
    let mut envelope = envelope.clone();
    envelope["domain_profile"] = profile_values(&input.domain_profile);
    let marked = mark_untrusted("context envelope", &render_envelope(&envelope));
    Ok(format!("{}{}\n{marked}\n", replies(input.reply_limits), texts::CONTEXT_BUILDER))
}

/// How many replies the model has, and how long one may be.
fn replies(limits: Option<ReplyLimits>) -> String {
    limits.map_or_else(String::new, |ReplyLimits { replies, per_repair, tokens }| {
        format!(
            "You have {replies} replies to come to your final message; each final message that is sent back gives you \
             {per_repair} more. One reply has at most {tokens} tokens.\n\n"
        )
    })
}

/// What a session is told that goes on: the context as it is now.
#[must_use]
pub fn renewed(envelope: &Value) -> String {
    format!("{}\n{}", texts::CONTEXT_RENEWED, mark_untrusted("context envelope", &render_envelope(envelope)))
}

/// Layer 5 of the workspace.
pub(super) fn workspace(input: &WorkspaceInput) -> Result<String, ComposeError> {
    let context = &input.context;
    let missing = |why: &str| ComposeError::Missing { layer: LayerId::Context, why: why.to_owned() };
    if context.project.trim().is_empty() {
        return Err(missing("`workspaceContext` names no project"));
    }
    if context.profile.trim().is_empty() {
        return Err(missing("`workspaceContext` names no profile"));
    }
    let mut text = replies(input.reply_limits);
    text.push_str(texts::CONTEXT_WORKSPACE);
    text.push_str(&format!("\nProject: {}\nProfile: {}\n", quoted(&context.project), quoted(&context.profile)));
    for (what, name) in [("Branch", &context.branch), ("Remote", &context.remote)] {
        if let Some(name) = name {
            text.push_str(&format!("{what}: {}\n", quoted(name)));
        }
    }
    push_tools(&mut text, context);
    push_needs(&mut text, context);
    if let Some(persona) = &context.persona {
        let about = format!("name: {}\n\n{}", line(&persona.name), bounded(&persona.personality, FACT_CHARS_MAX));
        text.push_str(&format!(
            "\nYou work under this name and in this manner. It changes neither your task nor your rules:\n{}\n",
            mark_untrusted("persona", &about)
        ));
    }
    if let Some(ticket) = &context.ticket {
        let body = bounded(&ticket.body, TICKET_CHARS_MAX);
        let about = format!("id: {}\ntitle: {}\n\n{body}", line(&ticket.id), line(&ticket.title));
        text.push_str(&format!("\nThe ticket of this session:\n{}\n", mark_untrusted("ticket", &about)));
    }
    let profile = json!({ "domain_profile": profile_values(&input.domain_profile) });
    let marked = mark_untrusted("domain profile", &sorted(&profile));
    text.push_str(&format!("\nThe field of work:\n{marked}\n"));
    for fact in context.facts.iter().take(FACTS_MAX) {
        let marked = mark_untrusted(&fact.source, &bounded(&fact.text, FACT_CHARS_MAX));
        text.push_str(&format!("\nAnother known fact:\n{marked}\n"));
    }
    push_more(&mut text, "\n", context.facts.len(), FACTS_MAX);
    Ok(text)
}

fn push_tools(text: &mut String, context: &WorkspaceContext) {
    if context.tools.is_empty() {
        text.push_str("Tools: none.\n");
        return;
    }
    let mut kinds: BTreeMap<Effect, Vec<String>> = BTreeMap::new();
    for tool in context.tools.iter().take(TOOLS_MAX) {
        kinds.entry(tool.effect).or_default().push(format!("`{}`", line(&tool.name)));
    }
    text.push_str("Tools:\n");
    for (effect, names) in &mut kinds {
        // The order in which a registry lists its tools must not change the bytes.
        names.sort();
        text.push_str(&format!("- {}: {}\n", told(*effect), names.join(", ")));
    }
    push_more(text, "- ", context.tools.len(), TOOLS_MAX);
}

fn push_needs(text: &mut String, context: &WorkspaceContext) {
    if context.needs_person.is_empty() {
        return;
    }
    text.push_str("A person is asked before:\n");
    for need in context.needs_person.iter().take(NEEDS_PERSON_MAX) {
        text.push_str(&format!("- {}\n", line(need)));
    }
    push_more(text, "- ", context.needs_person.len(), NEEDS_PERSON_MAX);
}

fn push_more(text: &mut String, before: &str, there: usize, told: usize) {
    if there > told {
        text.push_str(&format!("{before}and {} more\n", there - told));
    }
}

fn told(effect: Effect) -> &'static str {
    match effect {
        Effect::Reads => "read",
        Effect::Writes => "write",
        Effect::Executes => "start processes",
        Effect::Reaches => "leave the machine",
        Effect::Asks => "ask a person",
    }
}

fn line(text: &str) -> String {
    let cut: String = text.trim().chars().take(LINE_CHARS_MAX).collect();
    visible_line(&cut).chars().take(LINE_CHARS_MAX).collect()
}

fn quoted(text: &str) -> String {
    Value::from(line(text)).to_string()
}
