//! What a set of changes touches, computed from its operations alone. What a set says of itself is never believed.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Op, Operation, Payload, TargetType, WorkflowPayload};
use crate::package::Package;
use crate::refs::Object;

/// From how many operations on a set is one to look at twice.
const HIGH_CHURN_FROM: usize = 5;

/// What a set of changes touches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Impact {
    /// The objects, each once, in the order of the set: `step:step-01`, `asset:assets/a.md`. Where steps of several workflows
    /// change, a step has the name of its workflow before its own: `step:orders/step-01`.
    pub objects: Vec<String>,
    /// How many of each kind.
    pub counts: Counts,
    /// What to look at twice: `cross-object`, `high-churn`, `deletes`, `graph-change`.
    pub risk_flags: Vec<String>,
    /// Whether a person must agree to the flags.
    pub requires_confirmation: bool,
}

/// How many objects of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Workflows.
    pub workflow: usize,
    /// Steps.
    pub step: usize,
    /// Agents.
    pub agent: usize,
    /// Assets.
    pub asset: usize,
}

/// What these operations touch.
#[must_use]
pub fn impact(operations: &[Operation]) -> Impact {
    let mut found = Impact::default();
    let mut seen = BTreeSet::new();
    let is_step = |operation: &&Operation| matches!(operation.object, Object::Step { .. });
    let workflows: BTreeSet<_> =
        operations.iter().filter(is_step).filter_map(|operation| operation.object.workflow()).collect();
    for operation in operations.iter().filter(|operation| seen.insert(&operation.object)) {
        found.objects.push(name(&operation.object, workflows.len() > 1));
        let count = match operation.target_type() {
            TargetType::Workflow => &mut found.counts.workflow,
            TargetType::Step => &mut found.counts.step,
            TargetType::Agent => &mut found.counts.agent,
            TargetType::Asset => &mut found.counts.asset,
        };
        *count += 1;
    }
    let Counts { workflow, step, agent, asset } = found.counts;
    let kinds = [workflow, step, agent, asset].into_iter().filter(|count| *count > 0).count();
    let changes_graph = |operation: &Operation| {
        let is_workflow = matches!(operation.object, Object::Workflow(_));
        let has_graph =
            matches!(&operation.payload, Some(Payload::Workflow(workflow)) if workflow.graph_json.is_some());
        is_workflow && (has_graph || operation.op == Op::Delete)
    };
    let flags = [
        ("cross-object", kinds > 1),
        ("high-churn", operations.len() >= HIGH_CHURN_FROM),
        ("deletes", operations.iter().any(|operation| operation.op == Op::Delete)),
        ("graph-change", operations.iter().any(changes_graph)),
    ];
    found.risk_flags = flags.into_iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| flag.to_owned()).collect();
    found.requires_confirmation = !found.risk_flags.is_empty();
    found
}

/// What these operations touch, seen on the package that they change: a graph that says other titles, agents or descriptions
/// and the same ways is no `graph-change`.
#[must_use]
pub fn impact_on(package: &Package, operations: &[Operation]) -> Impact {
    let mut found = impact(operations);
    let changes_ways = |operation: &Operation| match (&operation.object, &operation.payload) {
        (Object::Workflow(_), None) => operation.op == Op::Delete,
        (Object::Workflow(id), Some(Payload::Workflow(WorkflowPayload { graph_json: Some(graph), .. }))) => {
            let before = package.workflow(id).and_then(|workflow| workflow.graph.as_ref());
            before.is_none_or(|before| ways(before) != ways(graph))
        }
        _ => false,
    };
    if !operations.iter().any(changes_ways) {
        found.risk_flags.retain(|flag| flag != "graph-change");
        found.requires_confirmation = !found.risk_flags.is_empty();
    }
    found
}

/// What of a graph says how steps follow each other.
fn ways(graph: &Value) -> Value {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let nodes: Vec<Value> = nodes.map(|node| json!([node.get("id"), node.get("type")])).collect();
    json!([graph.get("entryNodeId"), nodes, graph.get("edges")])
}

/// A step goes by its node alone, as the contract has it, unless steps of several workflows change: one id may then be that of
/// several steps.
fn name(object: &Object, is_of_several: bool) -> String {
    match object {
        Object::Step { node, .. } if !is_of_several => format!("step:{node}"),
        other => other.to_string(),
    }
}

/// The fields of a declared impact that are not as computed, with both values. Fields that it leaves out say nothing.
pub(super) fn differences(declared: &Value, computed: &Impact) -> Vec<(String, Value, Value)> {
    let computed = serde_json::to_value(computed).unwrap_or_default();
    let mut found = Vec::new();
    for (name, said) in declared.as_object().into_iter().flatten() {
        let is = computed.get(name).cloned().unwrap_or_default();
        let sorted = |value: &Value| {
            let mut texts: Vec<String> = value.as_array().into_iter().flatten().map(Value::to_string).collect();
            texts.sort_unstable();
            texts
        };
        let is_same = match said {
            // The order of objects and flags means nothing.
            Value::Array(_) => sorted(said) == sorted(&is),
            Value::Object(counts) => counts.iter().all(|(kind, count)| is.get(kind) == Some(count)),
            other => *other == is,
        };
        if !is_same {
            found.push((name.clone(), said.clone(), is));
        }
    }
    found
}
