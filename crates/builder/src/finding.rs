//! What is wrong, where, and what to do about it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{FINDINGS_MAX, QUOTE_CHARS_MAX};

/// Whether a package with this finding can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works, but probably not as meant.
    Warning,
    /// It must be fixed first.
    Error,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Whether the package can be used all the same.
    pub severity: Severity,
    /// The file of the package; empty for the package as a whole.
    pub file: String,
    /// A JSON pointer into the JSON, or into the front matter; empty for the whole file or its body.
    pub pointer: String,
    /// The line in the file, from 1; none where the file is no text, or is not there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<usize>,
    /// The character in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<usize>,
    /// Which rule is broken. Stable.
    pub code: String,
    /// What would be right.
    pub expected: String,
    /// What stands there.
    pub actual: String,
    /// Both in a sentence.
    pub message: String,
    /// What to try.
    pub hint: String,
}

/// The file, the place in it and the message.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", place(&self.file, &self.pointer, self.line, self.column), self.message),
        }
    }
}

impl Finding {
    pub(crate) fn error(code: &str, file: &str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: file.to_owned(),
            pointer: pointer.into(),
            line: None,
            column: None,
            code: code.to_owned(),
            expected: String::new(),
            actual: String::new(),
            message: message.into(),
            hint: String::new(),
        }
    }

    pub(crate) fn warning(code: &str, file: &str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, file, pointer, message) }
    }

    pub(crate) fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: expected.into(), ..self }
    }

    pub(crate) fn actual(self, actual: impl AsRef<str>) -> Self {
        Self { actual: quoted(actual.as_ref()), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    pub(crate) fn line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// A line and a character in it, both from 1.
    pub(crate) fn at(self, line: usize, column: usize) -> Self {
        Self { line: Some(line), column: Some(column.max(1)), ..self }
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Findings up to the limit, and how many were left out.
#[derive(Default)]
pub(crate) struct Findings {
    listed: Vec<Finding>,
    left_out: usize,
    left_out_errors: usize,
}

impl Findings {
    pub(crate) fn add(&mut self, finding: Finding) {
        if self.listed.len() < FINDINGS_MAX {
            self.listed.push(finding);
            return;
        }
        self.left_out += 1;
        self.left_out_errors += usize::from(finding.is_error());
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            self.add(finding);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// What is listed so far.
    pub(crate) fn listed(&mut self) -> &mut Vec<Finding> {
        &mut self.listed
    }

    pub(crate) fn finish(mut self) -> Vec<Finding> {
        if self.left_out > 0 {
            let message = format!("{} more findings, {} of them errors", self.left_out, self.left_out_errors);
            let severity = if self.left_out_errors > 0 { Severity::Error } else { Severity::Warning };
            let last = Finding { severity, ..Finding::error("MORE_FINDINGS", "", "", message) };
            self.listed.push(last.hint("fix those listed first, then validate again"));
        }
        self.listed
    }
}

/// A place as editors and compilers write it, `file:line:column`; without a line, the file and the pointer into it.
pub(crate) fn place(file: &str, pointer: &str, line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        // A text that is not a JSON pointer names a place in a change set, not in the file.
        _ if pointer.starts_with('/') => format!("{file}{pointer}"),
        _ => file.to_owned(),
    }
}

/// A value as a message may carry it: short, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = chars.by_ref().take(QUOTE_CHARS_MAX).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// A part of a JSON pointer.
pub(crate) fn token(name: &str) -> String {
    quoted(name).replace('~', "~0").replace('/', "~1")
}
