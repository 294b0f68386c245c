//! What a check found: where, and what is wrong there. Shown the same way by every check.

use std::fmt;
use std::process::ExitCode;

/// One broken rule, in one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// A path, or the name of a crate.
    place: String,
    line: Option<usize>,
    what: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), line: None, what: what.into() }
    }

    /// A finding in a line of a file, counted from 1.
    pub(crate) fn in_line(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::new(path, what) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `path:line` is what terminals turn into a link.
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{}{line}: {}", self.place, self.what)
    }
}

/// Prints the findings of one check, then remarks that fail nothing.
pub(crate) fn show(check: &str, findings: &[Finding], notes: &[String]) -> ExitCode {
    for note in notes {
        println!("note: {note}");
    }
    for finding in findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("{check}: nothing found");
        return ExitCode::SUCCESS;
    }
    println!("{check}: {} found", findings.len());
    ExitCode::FAILURE
}

/// All findings as one text, for the message of a failed test.
#[cfg(test)]
pub(crate) fn listed(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n  {finding}")).collect()
}
