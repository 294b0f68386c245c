//! What the validation of a set says.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Impact, Refused};
use crate::finding::{Finding, place};
use crate::limits::FINDINGS_MAX;

/// What there is to say about a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether it may be applied: there are no errors.
    pub valid: bool,
    /// Whether it ended with the first stage.
    pub schema_failed: bool,
    /// The stages that ran, in their order: all five, or the first alone if that failed.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// What must be fixed first, in the order of the stages.
    pub errors: Vec<Found>,
    /// What is probably not as meant, in the order of the stages.
    pub warnings: Vec<Found>,
    /// What the set touches, computed.
    pub impact: Impact,
}

/// A stage of the validation, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ValidationStage")]
pub enum Stage {
    /// The contract of the set, and the schemas of what it writes.
    Schema,
    /// The rules of a package.
    Bmad,
    /// What refers to what.
    Reference,
    /// What the set says it touches, and what it does.
    Impact,
    /// Paths, sizes, and what a person would not see.
    Security,
}

/// One thing that a stage found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The stage.
    pub stage: Stage,
    /// Which rule. Stable.
    pub code: String,
    /// Where: in the set, such as `operations[0].target.path`, or a JSON pointer into the file.
    pub path: String,
    /// The file of the package; empty where the set itself is meant.
    pub file: String,
    /// The line in the file, or in the text of the set, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<usize>,
    /// The character in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<usize>,
    /// What would be right.
    pub expected: String,
    /// What stands there.
    pub actual: String,
    /// Both in a sentence.
    pub message: String,
    /// What to try.
    pub hint: String,
    /// `true`: it was so before the set, and is a warning. Left out where the set makes it so.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub before: bool,
    /// The set that brings it, if that is one on which this set is based, such as `cs-1`. Left out where this set does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change_set_id: Option<String>,
}

/// Codes of findings that are about references, whatever rule found them.
const REFERENCE_CODES: [&str; 11] = [
    "PROMPT_NOT_FOUND",
    "SUBWORKFLOW_UNNAMED",
    "VARIABLE_NEVER_SET",
    "AGENT_NOT_FOUND",
    "WORKFLOW_NOT_FOUND",
    "NODE_NOT_FOUND",
    "ASSET_NOT_FOUND",
    "EDGE_NODE_MISSING",
    "ENTRY_NODE_MISSING",
    "FILE_MISSING",
    "STATE_NODE_MISSING",
];
/// Codes of findings that are about paths and sizes.
const SECURITY_CODES: [&str; 10] = [
    "HIDDEN_CHARACTERS",
    "NUL_CHARACTER",
    "PATH_UNSAFE",
    "PATH_TAKEN",
    "ASSET_PATH",
    "ASSET_EXTENSION",
    "FILE_TOO_LARGE",
    "PATH_CASE_DUPLICATE",
    "TOO_MANY_FILES",
    "PACKAGE_TOO_LARGE",
];
/// Beginnings of the codes of findings that are about the form of one file.
const SCHEMA_CODES: [&str; 7] =
    ["SCHEMA", "JSON_", "YAML_", "FRONT_MATTER", "TOO_DEEP", "NOT_UTF8", "VERSION_NOT_SEMVER"];

impl Stage {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Schema, Self::Bmad, Self::Reference, Self::Impact, Self::Security];

    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Bmad => "bmad",
            Self::Reference => "reference",
            Self::Impact => "impact",
            Self::Security => "security",
        }
    }

    /// The stage that a rule of packages belongs to.
    pub(super) fn of(code: &str) -> Self {
        if SCHEMA_CODES.iter().any(|begin| code.starts_with(begin)) {
            Self::Schema
        } else if REFERENCE_CODES.contains(&code) {
            Self::Reference
        } else if SECURITY_CODES.contains(&code) {
            Self::Security
        } else {
            Self::Bmad
        }
    }
}

impl Report {
    pub(super) fn refuse(&mut self, refused: Refused) {
        for error in refused.errors {
            self.errors.push(Found {
                stage: Stage::Schema,
                // What kind of error it is stands in the message; the contract knows two codes.
                code: refused.code.to_owned(),
                path: error.path,
                file: String::new(),
                line: None,
                column: None,
                expected: error.expected,
                actual: error.actual,
                message: error.message,
                hint: "write the set as its schema says".to_owned(),
                before: false,
                change_set_id: None,
            });
        }
    }

    pub(super) fn extend(&mut self, found: Vec<(Finding, bool)>, stage: Stage) {
        for (finding, before) in found {
            self.add(stage, finding, before);
        }
    }

    /// What was so before the set is a warning, whatever it is.
    pub(super) fn add(&mut self, stage: Stage, finding: Finding, before: bool) {
        let is_error = finding.is_error() && !before;
        let found = Found::of(stage, finding, before);
        if is_error { self.errors.push(found) } else { self.warnings.push(found) }
    }

    pub(super) fn finished(mut self) -> Self {
        self.errors.truncate(FINDINGS_MAX);
        self.warnings.truncate(FINDINGS_MAX);
        self.valid = self.errors.is_empty();
        self
    }
}

impl Found {
    fn of(stage: Stage, finding: Finding, before: bool) -> Self {
        let Finding { file, pointer, line, column, code, expected, actual, message, hint, .. } = finding;
        Self {
            stage,
            code,
            path: pointer,
            file,
            line,
            column,
            expected,
            actual,
            message,
            hint,
            before,
            change_set_id: None,
        }
    }

    /// Whether both say the same thing. The line, the column and the number of the operation may differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.code == other.code
            && self.file == other.file
            && self.actual == other.actual
            && unnumbered(&self.message) == unnumbered(&other.message)
    }
}

/// A message without the numbers of operations.
fn unnumbered(message: &str) -> String {
    let mut parts = message.split("operations[");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("operations[");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// The stage, the place and the message.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.stage.as_str())?;
        match self.file.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", place(&self.file, &self.path, self.line, self.column), self.message),
        }?;
        match &self.change_set_id {
            Some(set) => write!(f, " ({set} brings it)"),
            None => Ok(()),
        }
    }
}
