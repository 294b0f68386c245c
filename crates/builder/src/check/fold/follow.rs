//! What follows from a finding about the same place, or about the same name.

use std::collections::BTreeSet;

use crate::finding::{Finding, token};
use crate::package::{Package, Workflow};

/// A field of a step whose name is written otherwise, and which is missing therefore.
pub(super) fn fold_missed_fields(findings: &mut Vec<Finding>) {
    let is_missed = |finding: &Finding, slip: &Finding| {
        finding.code == "SCHEMA_REQUIRED"
            && finding.file == slip.file
            && finding.pointer == format!("/{}", token(&slip.expected))
    };
    let slips: Vec<Finding> = findings.iter().filter(|finding| finding.code == "FIELD_MISSPELT").cloned().collect();
    for slip in slips {
        let Some(missed) = findings.iter_mut().find(|finding| is_missed(finding, &slip)) else { continue };
        missed.hint = format!("write `{}` in the place of `{}`", slip.expected, slip.actual);
        findings.retain(|finding| {
            !(finding.code == slip.code && finding.file == slip.file && finding.actual == slip.actual)
        });
    }
}

/// A transition that cannot be read says nothing of the default; a type that is none, nothing of which ways meet; an end that is
/// none, nothing of loops.
pub(super) fn fold_unread(workflow: &Workflow, findings: &mut Vec<Finding>) {
    let is_own = |finding: &Finding| {
        finding.file == workflow.graph_path || workflow.steps.iter().any(|step| step.path == finding.file)
    };
    let unread: BTreeSet<String> = findings
        .iter()
        .filter(|finding| finding.code.starts_with("SCHEMA_") && finding.pointer.starts_with("/transitions/"))
        .map(|finding| finding.file.clone())
        .collect();
    let of_graph = |code: &str, name: &str| {
        findings.iter().any(|finding| {
            finding.code == code && finding.file == workflow.graph_path && finding.pointer.ends_with(name)
        })
    };
    let (has_no_type, has_no_end) = (of_graph("SCHEMA_ENUM", "/type"), of_graph("END_WITH_EDGE", "/from"));
    findings.retain(|finding| {
        let follows = match finding.code.as_str() {
            "TRANSITION_DEFAULT_MISMATCH" => unread.contains(&finding.file),
            "VARIABLE_MAYBE_UNSET" => (has_no_type || has_no_end) && is_own(finding),
            "CYCLE_MISSING_DECISION" | "CYCLE_MISSING_EXIT" => has_no_end && is_own(finding),
            _ => false,
        };
        !follows
    });
}

/// A step reads a variable that nothing sets. The graph may have the right name; that the two differ is then no second mistake.
pub(super) fn fold_inputs(findings: &mut Vec<Finding>) {
    let unset: BTreeSet<String> = findings
        .iter()
        .filter(|finding| finding.code == "VARIABLE_NEVER_SET" && finding.pointer.starts_with("/inputs/"))
        .map(|finding| finding.file.clone())
        .collect();
    findings.retain(|finding| !(finding.code == "STEP_INPUTS_MISMATCH" && unset.contains(&finding.file)));
}

/// The variables of a workflow under another name: nothing sets any of them.
pub(super) fn fold_variables(package: &Package, findings: &mut Vec<Finding>) {
    for workflow in package.workflows() {
        let Some(document) = workflow.document.as_ref().filter(|document| document.front().get("variables").is_none())
        else {
            continue;
        };
        let is_unset = |finding: &Finding| {
            finding.code == "VARIABLE_NEVER_SET"
                && (finding.file == workflow.graph_path || workflow.steps.iter().any(|step| step.path == finding.file))
        };
        let unset: BTreeSet<String> =
            findings.iter().filter(|f| is_unset(f)).map(|finding| finding.actual.clone()).collect();
        let fields = document.front().as_object().into_iter().flatten();
        let has_all = |value: &serde_json::Value| unset.iter().all(|name| value.get(name).is_some());
        let Some((name, _)) = fields.filter(|_| !unset.is_empty()).find(|(_, value)| has_all(value)) else { continue };
        findings.retain(|finding| !is_unset(finding));
        let message = format!("nobody reads the field `{name}`, which has the variables that steps read");
        let finding =
            Finding::error("FIELD_MISSPELT", &workflow.path, format!("/{}", token(name)), message).actual(name);
        findings.push(finding.expected("variables").hint("write `variables`"));
    }
}
