//! Workflows that start each other: nothing ends them.

use std::collections::HashMap;

use super::shape::NAMED_MAX;
use crate::finding::{Finding, Findings};
use crate::graph::Links;
use crate::package::{NodeKind, Package, Workflow};

/// Each ring of workflows that start each other has one finding, at the first step of it. A workflow that starts itself has a
/// finding of its own.
pub(super) fn check(package: &Package, findings: &mut Findings) {
    let workflows = package.workflows();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (number, workflow) in workflows.iter().enumerate() {
        numbers.entry(&workflow.id).or_insert(number);
    }
    let mut links = Vec::new();
    for (from, workflow) in workflows.iter().enumerate() {
        let to = started(workflow).filter_map(|(id, _)| numbers.get(id));
        links.extend(to.filter(|to| **to != from).map(|to| (from, *to)));
    }
    for members in Links::new(workflows.len(), links).cycles() {
        let first = &workflows[members[0]];
        let is_member = |id: &str| numbers.get(id).is_some_and(|number| members.contains(number));
        let Some((_, file)) = started(first).find(|(id, _)| *id != first.id && is_member(id)) else { continue };
        let named: Vec<String> = members.iter().take(NAMED_MAX).map(|at| format!("`{}`", workflows[*at].id)).collect();
        let more = if members.len() > NAMED_MAX { " and others" } else { "" };
        let message = format!("the workflows {}{more} start each other, again and again", named.join(", "));
        let finding = Finding::warning("SUBWORKFLOW_CYCLE", file, "/workflowId", message);
        let finding = finding.expected("workflows that do not lead back to this one").actual(named.join(", "));
        findings.add(finding.hint("let one of them end, or lead back with an edge"));
    }
}

/// The workflows that the steps of one start, each with the file that says so.
fn started(workflow: &Workflow) -> impl Iterator<Item = (&str, &str)> {
    let starts = |node: &str| workflow.node(node).is_some_and(|node| node.kind == Some(NodeKind::Subworkflow));
    workflow.steps.iter().filter(move |step| starts(&step.node_id)).filter_map(|step| {
        let id = step.document.as_ref()?.field("workflowId")?;
        Some((id, step.path.as_str()))
    })
}
