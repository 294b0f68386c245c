//! The contract of a set, checked: first by the published schema, then by what no schema can say.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolhost_contract::did_you_mean;

use super::refused::{ContractError, Refused, error, refused};
use super::spelled;
use super::{ChangeSet, LEGACY, Op, Operation, Payload, Revision, SCHEMA_UNSUPPORTED, SmallEdits, VIOLATION, legacy};
use crate::finding::{Finding, quoted};
use crate::limits::{CHANGE_SET_BYTES_MAX, DEPTH_MAX, FILE_BYTES_MAX, FINDINGS_MAX};
use crate::refs::Object;
use crate::schema::{AGENTS, CHANGE_SET, Compiled, field_meant};

/// A set that keeps the contract.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The set.
    pub set: ChangeSet,
    /// What is right, but not as it should be.
    pub warnings: Vec<Finding>,
}

/// Takes a set as it was written. Nothing is coerced; the old shape `{steps, assets}` is taken with a warning.
///
/// # Errors
/// All that breaks the contract.
pub fn parse(value: &Value) -> Result<Parsed, Refused> {
    parse_by(&CHANGE_SET.compiled(), value)
}

/// The same with a schema that is compiled already.
///
/// # Errors
/// All that breaks the contract.
pub(crate) fn parse_by(schema: &Compiled, value: &Value) -> Result<Parsed, Refused> {
    if value.get("extensions").is_none() {
        return parse_with(schema, value);
    }
    check_size(value)?;
    let unclear = spelled::unclear(value);
    if unclear.is_empty() {
        let spelled = spelled::spelled_out(value);
        return parse_with(schema, spelled.as_ref().unwrap_or(value));
    }
    // A set that only renames needs no operations, so their absence is not a second mistake.
    let others = parse_with(schema, value).err().map(|refused| refused.errors).unwrap_or_default();
    let others = others.into_iter().filter(|error| error.path != "operations");
    Err(Refused { code: VIOLATION, errors: unclear.into_iter().chain(others).collect() })
}

/// Reads a set that was staged, and so has been checked.
///
/// # Errors
/// It is none of this version: then all that breaks the contract.
pub(crate) fn parse_staged(value: &Value) -> Result<ChangeSet, Refused> {
    let spelled = value.get("extensions").and_then(|_| spelled::spelled_out(value));
    let value = spelled.as_ref().unwrap_or(value);
    let normalised = legacy::is_legacy(value).then(|| legacy::normalised(value));
    read(normalised.as_ref().unwrap_or(value)).or_else(|_| parse(value).map(|parsed| parsed.set))
}

/// The same of a set in which all is spelled out.
pub(crate) fn parse_with(schema: &Compiled, value: &Value) -> Result<Parsed, Refused> {
    check_size(value)?;
    let mut warnings = Vec::new();
    let normalised = legacy::is_legacy(value).then(|| legacy::normalised(value));
    if normalised.is_some() {
        let message = "the set has the old shape `steps` and `assets`, and was taken as a set of version 1.0";
        let finding = Finding::warning(LEGACY, "", "", message).expected("`operations`").actual("`steps`, `assets`");
        warnings.push(finding.hint("write a set of version 1.0"));
    }
    let value = normalised.as_ref().unwrap_or(value);
    check_version(value)?;
    let mut errors: Vec<ContractError> =
        schema.findings("", value).into_iter().map(|f| from_finding(f, value)).collect();
    // What an operation may have depends on what it is: where that is wrong, the rest would follow from it.
    let unclear: Vec<String> = errors.iter().filter_map(|e| e.path.strip_suffix(".op").map(str::to_owned)).collect();
    errors.retain(|error| !unclear.iter().any(|at| error.path == format!("{at}.payload")));
    errors.truncate(FINDINGS_MAX);
    if !errors.is_empty() {
        return Err(Refused { code: VIOLATION, errors });
    }
    let set = read(value).map_err(|error| Refused { code: VIOLATION, errors: vec![*error] })?;
    warnings.extend(unknown_revisions(&set));
    let errors: Vec<_> = check_edits(&set).into_iter().chain(check_operations(&set.operations)).collect();
    if errors.is_empty() { Ok(Parsed { set, warnings }) } else { Err(Refused { code: VIOLATION, errors }) }
}

/// Before anything walks into it: how deep and how large it is.
pub(crate) fn check_size(value: &Value) -> Result<(), Refused> {
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} levels");
            return Err(refused(error("TOO_DEEP", "", expected, "more", "the set nests too deep".to_owned())));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    let bytes = serde_json::to_string(value).map_or(usize::MAX, |text| text.len());
    if bytes > CHANGE_SET_BYTES_MAX {
        let (expected, actual) = (format!("at most {CHANGE_SET_BYTES_MAX} bytes"), format!("{bytes} bytes"));
        let message = format!("the set has {bytes} bytes as JSON; {CHANGE_SET_BYTES_MAX} are the most");
        return Err(refused(error("SET_TOO_LARGE", "", expected, &actual, message)));
    }
    Ok(())
}

/// A version that we do not know says more than whatever else follows from it.
fn check_version(value: &Value) -> Result<(), Refused> {
    let Some(version) = value.get("schemaVersion").and_then(Value::as_str) else { return Ok(()) };
    let major = version.split('.').next().unwrap_or_default();
    let is_number = !major.is_empty() && major.bytes().all(|b| b.is_ascii_digit());
    if !is_number || major == "1" {
        return Ok(());
    }
    let message = format!("version {} of the contract is not supported", quoted(version));
    let errors = vec![error("SCHEMA_VERSION", "schemaVersion", "1.0, or another 1.x", version, message)];
    Err(Refused { code: SCHEMA_UNSUPPORTED, errors })
}

/// `/operations/0/target` as `operations[0].target`.
pub(crate) fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            let dot = if path.is_empty() { "" } else { "." };
            path.push_str(dot);
            path.push_str(&part.replace("~1", "/").replace("~0", "~"));
        }
    }
    path
}

/// What a set says in its `extensions`.
const EXTENSIONS: [&str; 4] = ["baseRevisions", "renames", "rewriteReferences", "supersedes"];

fn from_finding(finding: Finding, value: &Value) -> ContractError {
    let path = path_of(&finding.pointer);
    // The schema can only say that an operation is not what it must not be.
    let is_delete = value.pointer(&finding.pointer).is_some_and(|v| v.get("op") == Some(&Value::from("delete")));
    if is_delete && finding.code == "SCHEMA_VALUE" {
        let message = format!("`{path}` is a delete, and a delete has no payload");
        return error("PAYLOAD_OF_DELETE", format!("{path}.payload"), "no payload", "a payload", message);
    }
    let at = if path.is_empty() { "the set".to_owned() } else { format!("`{}`", quoted(&path)) };
    let message = match finding.code.as_str() {
        "SCHEMA_REQUIRED" => format!("{at} is missing: {}", said_small(&finding.expected)),
        "SCHEMA_UNKNOWN_FIELD" if EXTENSIONS.contains(&path.as_str()) => {
            format!("{at} is no field of the contract: write it in `extensions`")
        }
        "SCHEMA_UNKNOWN_FIELD" => {
            let meant: Vec<&str> = field_meant(&finding).into_iter().collect();
            format!("{at} is no field of the contract{}: {}", did_you_mean(&meant), finding.expected)
        }
        _ => format!("{at}: expected {}, got {}", finding.expected, finding.actual),
    };
    ContractError { code: finding.code, path, expected: finding.expected, actual: finding.actual, message }
}

/// A description as the rest of a sentence.
fn said_small(description: &str) -> String {
    let text = description.trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Numbers, as older sets have them, are the revision of nothing here.
fn unknown_revisions(set: &ChangeSet) -> Vec<Finding> {
    let named = [
        ("workflowRevision", &set.revisions.workflow_revision),
        ("agentsRevision", &set.revisions.agents_revision),
        ("assetsRevision", &set.revisions.assets_revision),
    ];
    let number = |(name, revision): (&str, &Option<Revision>)| match revision {
        Some(Revision::Number(number)) => {
            let message = format!("`{name}` is {number}, and no revision is a number");
            let finding = Finding::warning("REVISION_UNKNOWN", "", format!("revisions.{name}"), message);
            let expected = "a SHA-256, 64 hexadecimal digits";
            Some(finding.expected(expected).actual(number.to_string()).hint("give the revision that was read"))
        }
        _ => None,
    };
    named.into_iter().filter_map(number).collect()
}

type Read<T> = Result<T, Box<ContractError>>;

/// The schema has said yes; what it and the types disagree about is still an error and not a panic.
fn typed<T: serde::de::DeserializeOwned>(value: &Value, path: &str) -> Read<T> {
    T::deserialize(value).map_err(|said| {
        let message = format!("`{path}`: {said}");
        Box::new(error("SCHEMA_VALUE", path, "what the schema says", &value.to_string(), message))
    })
}

fn read(value: &Value) -> Read<ChangeSet> {
    let field = |name: &str| value.get(name).unwrap_or(&Value::Null);
    let operations = field("operations").as_array().into_iter().flatten().enumerate();
    let or_default = |name: &str| value.get(name).cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    Ok(ChangeSet {
        schema_version: typed(field("schemaVersion"), "schemaVersion")?,
        target_type: typed(field("targetType"), "targetType")?,
        mode: typed(field("mode"), "mode")?,
        operations: operations.map(|(index, value)| operation(index, value)).collect::<Read<_>>()?,
        revisions: typed(&or_default("revisions"), "revisions")?,
        extensions: typed(&or_default("extensions"), "extensions")?,
        declared_impact: value.get("impact").cloned(),
    })
}

fn operation(index: usize, value: &Value) -> Read<Operation> {
    let at = format!("operations[{index}]");
    let target = |name: &str| typed::<String>(value.pointer(&format!("/target/{name}")).unwrap_or(&Value::Null), &at);
    let kind = value.get("targetType").and_then(Value::as_str).unwrap_or_default();
    let object = match kind {
        "workflow" => Object::Workflow(target("workflowId")?),
        "step" => Object::Step { workflow: target("workflowId")?, node: target("nodeId")? },
        "agent" => Object::Agent(target("agentId")?),
        _ => Object::Asset(target("path")?),
    };
    let (whole, edits) = parts(value.get("payload"), &at)?;
    let payload = match (whole.as_ref(), kind) {
        (None, _) => None,
        (Some(payload), "workflow") => Some(Payload::Workflow(typed(payload, &at)?)),
        (Some(payload), "step") => Some(Payload::Step(typed(payload, &at)?)),
        (Some(payload), "agent") => Some(Payload::Agent(payload.get("agent_definition").cloned().unwrap_or_default())),
        (Some(payload), _) => Some(Payload::Asset(typed(payload.get("content").unwrap_or(&Value::Null), &at)?)),
    };
    let op = typed(value.get("op").unwrap_or(&Value::Null), &at)?;
    let reason = value.get("reason").and_then(Value::as_str).map(str::to_owned);
    Ok(Operation { op, object, payload, edits, reason })
}

/// What of a payload is a whole, and its small edits.
fn parts(payload: Option<&Value>, at: &str) -> Read<(Option<Value>, SmallEdits)> {
    let Some(Value::Object(fields)) = payload else { return Ok((payload.cloned(), SmallEdits::default())) };
    let is_small = |name: &str| SmallEdits::FIELDS.contains(&name);
    let (small, whole): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
        fields.clone().into_iter().partition(|(name, _)| is_small(name));
    let edits: SmallEdits = typed(&Value::Object(small), at)?;
    // The path of a step says only where it is.
    let is_whole = edits.is_empty() || whole.keys().any(|name| name != "path");
    Ok((is_whole.then_some(Value::Object(whole)), edits))
}

/// What no schema says of small edits: they are contract 1.1, and a text is given as a whole or in passages.
fn check_edits(set: &ChangeSet) -> Vec<ContractError> {
    let mut errors = Vec::new();
    for (index, operation) in set.operations.iter().enumerate().filter(|(_, operation)| !operation.edits.is_empty()) {
        let at = format!("operations[{index}].payload");
        if set.schema_version == "1.0" {
            let message = format!("`{at}` has small edits, which came with version 1.1 of the contract");
            errors.push(error("SCHEMA_VERSION_OLD", "schemaVersion", "1.1", "1.0", message));
        }
        let edits = &operation.edits;
        let is_twice = match &operation.payload {
            Some(Payload::Workflow(workflow)) => {
                (workflow.graph_json.is_some() && edits.has_graph())
                    || (workflow.workflow_md.is_some() && edits.has_document())
            }
            Some(_) => true,
            None => false,
        };
        if is_twice {
            let message = format!("`{at}` gives a text as a whole and edits of it");
            let (expected, actual) = ("the whole text, or edits of what is there", "both");
            errors.push(error("PAYLOAD_MIXED", at, expected, actual, message));
        }
    }
    errors
}

/// A text that no file of a package may hold is refused before it is stored: every later turn would carry it.
fn check_texts(index: usize, operation: &Operation) -> Option<ContractError> {
    let value = operation.to_value();
    let mut open = vec![(format!("operations[{index}].payload"), value.get("payload")?)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::String(text) if text.len() > FILE_BYTES_MAX => {
                let bytes = text.len();
                let (expected, actual) = (format!("at most {FILE_BYTES_MAX} bytes"), format!("{bytes} bytes"));
                let message = format!("the text has {bytes} bytes; {FILE_BYTES_MAX} are the most: split it");
                return Some(error("FILE_TOO_LARGE", path, expected, &actual, message));
            }
            Value::Object(fields) => open.extend(fields.iter().map(|(name, value)| (format!("{path}.{name}"), value))),
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(n, item)| (format!("{path}[{n}]"), item)));
            }
            _ => {}
        }
    }
    None
}

/// What no schema says: no object twice, an agent keeps its id.
fn check_operations(operations: &[Operation]) -> Vec<ContractError> {
    let mut errors = Vec::new();
    let mut seen: HashMap<&Object, Vec<(usize, Op)>> = HashMap::new();
    for (index, operation) in operations.iter().enumerate() {
        let before = seen.entry(&operation.object).or_default();
        let is_replaced = matches!(before.as_slice(), [(_, Op::Delete)]) && operation.op == Op::Upsert;
        if let (Some((first, _)), false) = (before.first(), is_replaced) {
            let message =
                format!("`{}` is already the object of operations[{first}]", quoted(&operation.object.to_string()));
            let expected = "each object once, or a delete before its upsert";
            errors.push(error("OPERATION_DUPLICATE", format!("operations[{index}]"), expected, "twice", message));
        }
        before.push((index, operation.op));
        errors.extend(check_texts(index, operation));
        if let (Object::Agent(id), Some(Payload::Agent(definition))) = (&operation.object, &operation.payload)
            && let Some(other) = definition.get("id").filter(|other| other.as_str() != Some(id))
        {
            let path = format!("operations[{index}].payload.agent_definition.id");
            let message = format!("the agent `{id}` keeps its id");
            errors.push(error("AGENT_ID_CHANGED", path, id.as_str(), &other.to_string(), message));
            errors.extend(check_definition(index, id, definition));
        }
    }
    errors
}

/// What else is wrong with the definition of an agent that has another id: it would be told only after that.
fn check_definition(index: usize, id: &str, definition: &Value) -> impl Iterator<Item = ContractError> {
    let mut named = definition.clone();
    named["id"] = json!(id);
    let agents = json!({ "schemaVersion": "1.1", "agents": [named] });
    let at = format!("/operations/{index}/payload/agent_definition");
    AGENTS.compiled().findings("", &agents).into_iter().map(move |mut finding| {
        finding.pointer = finding.pointer.replacen("/agents/0", &at, 1);
        from_finding(finding, &Value::Null)
    })
}
