//! The published JSON Schemas, and what they say about a value.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};
use toolhost_contract::nearest;

use crate::finding::{Finding, quoted, token};
use crate::limits::FINDINGS_MAX;

/// A published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its name, as in its file's.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// `bmad.json`
pub const PACKAGE: Published = Published { name: "package", text: include_str!("../schemas/package.schema.json") };
/// The front matter of `workflow.md`.
pub const WORKFLOW_FRONT_MATTER: Published =
    Published { name: "workflow-front-matter", text: include_str!("../schemas/workflow-front-matter.schema.json") };
/// `workflow.graph.json`
pub const GRAPH: Published = Published { name: "graph", text: include_str!("../schemas/graph.schema.json") };
/// The front matter of a step file.
pub const STEP_FRONT_MATTER: Published =
    Published { name: "step-front-matter", text: include_str!("../schemas/step-front-matter.schema.json") };
/// `agents.json`
pub const AGENTS: Published = Published { name: "agents", text: include_str!("../schemas/agents.schema.json") };
/// An asset as a path and its content.
pub const ASSET: Published = Published { name: "asset", text: include_str!("../schemas/asset.schema.json") };
/// A set of changes.
pub const CHANGE_SET: Published =
    Published { name: "change-set", text: include_str!("../schemas/change-set.schema.json") };

/// All of them.
pub const ALL: [Published; 7] = [PACKAGE, WORKFLOW_FRONT_MATTER, GRAPH, STEP_FRONT_MATTER, AGENTS, ASSET, CHANGE_SET];

impl Published {
    /// The schema as a value.
    #[must_use]
    pub fn value(self) -> Value {
        serde_json::from_str(self.text).expect("a test parses each published schema")
    }

    /// The schema, ready to check many values.
    #[must_use]
    pub fn compiled(self) -> Compiled {
        let schema = self.value();
        let validator = jsonschema::draft202012::new(&schema).expect("a test compiles each published schema");
        Compiled { schema, validator }
    }
}

/// A schema that can check values.
pub struct Compiled {
    schema: Value,
    validator: Validator,
}

impl Compiled {
    /// All that is wrong with a value that stands in this file.
    #[must_use]
    pub fn findings(&self, file: &str, value: &Value) -> Vec<Finding> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for error in self.validator.iter_errors(value) {
            self.explain(file, &error, &mut findings);
            if findings.len() > FINDINGS_MAX {
                break;
            }
        }
        without_missed(findings)
    }

    fn explain(&self, file: &str, error: &ValidationError<'_>, into: &mut Vec<Finding>) {
        let at = error.instance_path().to_string();
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                let known = self.known(error);
                let there = error.instance();
                let free: Vec<&str> =
                    known.iter().map(String::as_str).filter(|name| there.get(name).is_none()).collect();
                into.extend(unexpected.iter().map(|name| {
                    let meant = meant_by(name, &free);
                    unknown_field(file, &at, name, &known, meant)
                }));
            }
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                let message = format!("`{name}` is missing in {}", place(file, &at));
                let missing = Finding::error("SCHEMA_REQUIRED", file, format!("{at}/{}", token(name)), message);
                let what = self.describe(error, name);
                into.push(missing.expected(what).actual("nothing").hint(format!("add `{name}`")));
            }
            Kind::Not { schema } if schema["required"].is_array() => {
                let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                into.extend(names.map(|name| excluded_field(file, &at, name)));
            }
            Kind::AnyOf { .. } => into.push(self.none_of(file, &at, error)),
            kind => into.push(wrong_value(file, &at, kind, error)),
        }
    }

    /// A value that is none of several things: each is said in words, or is a field of which one must be there.
    fn none_of(&self, file: &str, at: &str, error: &ValidationError<'_>) -> Finding {
        let branches = self.schema.pointer(error.schema_path().as_str()).and_then(Value::as_array);
        let branches: Vec<&Value> = branches.into_iter().flatten().collect();
        let fields: Option<Vec<&str>> = branches.iter().map(|branch| branch["required"][0].as_str()).collect();
        let is_object = error.instance().is_object();
        if let (Some(fields), true) = (fields.filter(|fields| !fields.is_empty()), is_object) {
            let all: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            let (first, expected) = (fields[0], all.join(" or "));
            let message = format!("{expected} is missing in {}", place(file, at));
            let missing = Finding::error("SCHEMA_REQUIRED", file, format!("{at}/{}", token(first)), message);
            return missing.expected(expected).actual("nothing").hint(format!("add {}", all[0]));
        }
        let expected: Vec<String> = branches.iter().map(|branch| in_words(branch)).collect();
        let (expected, actual) = (expected.join(" or "), error.instance().to_string());
        let message = format!("{}: expected {expected}, got {}", place(file, at), quoted(&actual));
        Finding::error("SCHEMA_VALUE", file, at, message).expected(expected).actual(actual).hint("change the value")
    }

    /// The names of the fields that the object of this error may have.
    fn known(&self, error: &ValidationError<'_>) -> Vec<String> {
        let fields = self.parent(error).and_then(|parent| parent.get("properties")).and_then(Value::as_object);
        fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    }

    fn describe(&self, error: &ValidationError<'_>, name: &str) -> String {
        let field = self.parent(error).and_then(|parent| parent.get("properties")?.get(name)?.get("description"));
        let says = field.and_then(Value::as_str).unwrap_or("a value").split(". ").next().unwrap_or_default();
        // In the middle of a sentence.
        let mut chars = says.trim_end_matches('.').chars();
        chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
    }

    /// The part of the schema that holds the broken word.
    fn parent(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let path = error.schema_path().to_string();
        self.schema.pointer(path.rsplit_once('/')?.0)
    }
}

/// All schemas that packages and sets of changes are checked with, compiled. Compiling takes longer than most checks, so
/// that who checks often keeps one.
pub struct Schemas {
    pub(crate) package: Compiled,
    pub(crate) workflow_front_matter: Compiled,
    pub(crate) graph: Compiled,
    pub(crate) step_front_matter: Compiled,
    pub(crate) agents: Compiled,
    pub(crate) change_set: Compiled,
    time: Validator,
}

impl Schemas {
    /// Compiles them.
    #[must_use]
    pub fn compiled() -> Self {
        Self {
            package: PACKAGE.compiled(),
            workflow_front_matter: WORKFLOW_FRONT_MATTER.compiled(),
            graph: GRAPH.compiled(),
            step_front_matter: STEP_FRONT_MATTER.compiled(),
            agents: AGENTS.compiled(),
            change_set: CHANGE_SET.compiled(),
            time: jsonschema::draft202012::options()
                .should_validate_formats(true)
                .build(&json!({ "anyOf": [{ "format": "date-time" }, { "format": "date" }] }))
                .expect("a test compiles the schemas"),
        }
    }

    /// Whether a text is a time or a day of RFC 3339.
    pub(crate) fn is_time(&self, text: &str) -> bool {
        self.time.is_valid(&json!(text))
    }
}

/// What is missing is not told where it is there under a name that is almost the same.
fn without_missed(mut findings: Vec<Finding>) -> Vec<Finding> {
    let above = |finding: &Finding| finding.pointer.rsplit_once('/').map(|(above, _)| above.to_owned());
    let slips: Vec<(Option<String>, String)> =
        findings.iter().filter_map(|finding| Some((above(finding), format!("`{}`", field_meant(finding)?)))).collect();
    findings.retain(|finding| {
        let name = format!("`{}`", finding.pointer.rsplit('/').next().unwrap_or_default());
        // Of several fields of which one must be there, the expectation names all.
        let is_said = |meant: &String| *meant == name || finding.expected.contains(meant.as_str());
        let is_slip = slips.iter().any(|(of, meant)| *of == above(finding) && is_said(meant));
        !(finding.code == "SCHEMA_REQUIRED" && is_slip)
    });
    findings
}

/// The field that was probably meant by one that nobody reads.
pub(crate) fn field_meant(finding: &Finding) -> Option<&str> {
    let said = finding.hint.strip_prefix(WRITE).filter(|_| finding.code == "SCHEMA_UNKNOWN_FIELD")?;
    said.split('`').nth(1)
}

/// What other tools for workflows say, and what packages say for it.
const OTHER_WORDS: [(&str, &str); 12] = [
    ("source", "from"),
    ("src", "from"),
    ("target", "to"),
    ("destination", "to"),
    ("name", "title"),
    ("path", "file"),
    ("join", "merge"),
    ("condition", "decision"),
    ("choice", "decision"),
    ("task", "step"),
    ("finish", "end"),
    ("workflow", "subworkflow"),
];

/// The name of the list that the author probably meant when they wrote `said`, which is not in it.
fn meant_by<'a>(said: &str, names: &[&'a str]) -> Option<&'a str> {
    let word = OTHER_WORDS.iter().find(|(other, _)| *other == said.to_lowercase()).map(|(_, word)| *word);
    let same = names.iter().copied().find(|name| Some(*name) == word);
    same.or_else(|| nearest(said, names.iter().copied()).into_iter().next())
}

/// Which of the values that a field may have was probably meant.
fn value_meant(kind: &Kind, said: &Value) -> Option<String> {
    let (Kind::Enum { options }, Some(said)) = (kind, said.as_str()) else { return None };
    let options: Vec<&str> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    meant_by(said, &options).map(str::to_owned)
}

/// How the advice begins where a name was probably meant.
const WRITE: &str = "write ";

fn unknown_field(file: &str, at: &str, name: &str, known: &[String], meant: Option<&str>) -> Finding {
    let message = format!("{} has a field `{}` that nobody reads", place(file, at), quoted(name));
    let is_condition = at.contains("/transitions/") && name.starts_with("condition");
    let hint = match meant {
        _ if is_condition => "a condition belongs to the edge: write it with `edges` of the workflow".to_owned(),
        Some(meant) => format!("{WRITE}`{meant}` if that is meant; else take it out"),
        None => "take it out, or fix its name".to_owned(),
    };
    Finding::error("SCHEMA_UNKNOWN_FIELD", file, format!("{at}/{}", token(name)), message)
        .expected(if known.is_empty() { "no fields".to_owned() } else { format!("only {}", known.join(", ")) })
        .actual(name)
        .hint(hint)
}

fn excluded_field(file: &str, at: &str, name: &str) -> Finding {
    let message = format!("{} has a field `{}` that does not belong there", place(file, at), quoted(name));
    Finding::error("SCHEMA_FIELD_EXCLUDED", file, format!("{at}/{}", token(name)), message)
        .expected(format!("no `{name}`"))
        .actual(name)
        .hint("take it out")
}

/// The ids of agents, nodes, edges and workflows.
const ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]*$";
/// What that is, for people.
pub(crate) const ID_IN_WORDS: &str = "letters and digits of ASCII, `.`, `_`, `:` and `-`, a letter or a digit first";

/// Whether a text is one.
pub(crate) fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._:-".contains(c))
}

/// A valid id that resembles this name, for a hint.
fn id_like(name: &str) -> Option<String> {
    let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
    let parts: Vec<&str> = name.split(|c| !is_id(c)).filter(|part| !part.is_empty()).collect();
    let id = parts.join("-").trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    (!id.is_empty()).then_some(id)
}

fn wrong_value(file: &str, at: &str, kind: &Kind, error: &ValidationError<'_>) -> Finding {
    let (code, expected) = match kind {
        Kind::Type { kind } => ("SCHEMA_TYPE", types(kind)),
        Kind::Enum { options } => ("SCHEMA_ENUM", format!("one of {options}")),
        Kind::Pattern { pattern } if at.ends_with("/schemaVersion") => {
            // A package and a set of changes have versions of their own.
            let known = if pattern.starts_with("^1\\.1") { "1.1 or 1.1.x" } else { "1.0, or another 1.x" };
            ("SCHEMA_VERSION", known.to_owned())
        }
        Kind::Pattern { .. } if at == "/version" => ("VERSION_NOT_SEMVER", "a version such as 1.0.0".to_owned()),
        Kind::Pattern { pattern } if pattern == ID_PATTERN => ("SCHEMA_PATTERN", format!("an id: {ID_IN_WORDS}")),
        Kind::Pattern { pattern } => ("SCHEMA_PATTERN", format!("a text that matches {pattern}")),
        Kind::MinItems { limit } => ("SCHEMA_MIN_ITEMS", format!("a list of at least {limit}")),
        Kind::MaxItems { limit } => ("SCHEMA_MAX_ITEMS", format!("a list of at most {limit}")),
        Kind::MinProperties { limit } => ("SCHEMA_MIN_FIELDS", format!("at least {limit} field")),
        Kind::MinLength { limit } => ("SCHEMA_MIN_LENGTH", format!("a text of at least {limit} characters")),
        _ => ("SCHEMA_VALUE", error.to_string()),
    };
    let actual = error.instance().to_string();
    let message = format!("{}: expected {expected}, got {}", place(file, at), quoted(&actual));
    let is_bare = code == "SCHEMA_TYPE"
        && expected == "string"
        && !matches!(error.instance().as_ref(), Value::Object(_) | Value::Array(_) | Value::Null);
    let is_id = matches!(kind, Kind::Pattern { pattern } if pattern == ID_PATTERN);
    let like = error.instance().as_str().and_then(id_like).filter(|_| is_id);
    let hint = match like {
        Some(id) => format!("write `{}`, also where it is named", quoted(&id)),
        None if is_bare => format!("put it in quotes: \"{}\"", quoted(&actual)),
        None => match value_meant(kind, error.instance()) {
            Some(meant) => format!("{WRITE}`{meant}` if that is meant"),
            None => "change the value".to_owned(),
        },
    };
    Finding::error(code, file, at, message).expected(expected).actual(actual).hint(hint)
}

/// What a small schema asks for.
fn in_words(schema: &Value) -> String {
    match (schema["type"].as_str(), schema["pattern"].as_str()) {
        (Some("string"), Some("^[0-9a-f]{64}$")) => "a revision as a read gave it (64 hexadecimal digits)".to_owned(),
        (Some("string"), _) => "a text".to_owned(),
        (Some("object"), _) => match schema["required"].as_array() {
            Some(fields) => {
                let names: Vec<String> = fields.iter().filter_map(|f| Some(format!("`{}`", f.as_str()?))).collect();
                format!("an object with {}", names.join(", "))
            }
            None => "an object".to_owned(),
        },
        (Some("array"), _) => "a list".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        _ => "a value".to_owned(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or "),
    }
}

fn place(file: &str, at: &str) -> String {
    let at = quoted(at);
    if at.is_empty() { format!("`{file}`") } else { format!("`{file}` at `{at}`") }
}
