//! `normative_baseline`: the rules that the validator checks for a kind of target and that its schema cannot say.

use serde_json::{Value, json};

use super::{Mode, TargetType, blank};
use crate::assets;
use crate::package::{SECTION_RECOMMENDED, SECTIONS_REQUIRED};
use crate::schema::{AGENTS, ASSET, GRAPH, Published, STEP_FRONT_MATTER, WORKFLOW_FRONT_MATTER};

/// What a target has to keep. The fields of its payload are those of the guide ([`crate::guide`]), and not repeated here.
pub(super) fn baseline(target: TargetType, mode: Mode) -> Value {
    let schemas: Vec<Value> = schemas(target).iter().map(|schema| schema.value()["$id"].clone()).collect();
    let mut baseline = json!({ "schema_version": "1.1", "schemas": schemas, "rules": rules(target) });
    if matches!(target, TargetType::Workflow | TargetType::Step) {
        baseline["required_sections"] = json!(SECTIONS_REQUIRED);
        baseline["recommended_section"] = json!(SECTION_RECOMMENDED);
    }
    if target != TargetType::Agent {
        baseline["asset_extensions"] = json!(assets::EXTENSIONS);
    }
    if mode == Mode::Create {
        baseline["naming"] = json!(blank::naming(target));
    }
    baseline
}

fn schemas(target: TargetType) -> &'static [Published] {
    match target {
        TargetType::Workflow => &[WORKFLOW_FRONT_MATTER, GRAPH, STEP_FRONT_MATTER],
        TargetType::Step => &[STEP_FRONT_MATTER],
        TargetType::Agent => &[AGENTS],
        TargetType::Asset => &[ASSET],
    }
}

fn rules(target: TargetType) -> &'static [&'static str] {
    match target {
        TargetType::Workflow => &[
            "each edge connects two nodes of the graph, and each node can be reached from `entryNodeId`",
            "each path ends at a node of type `end`, and no edge leaves such a node",
            "where several edges leave a node, exactly one of them has `isDefault: true`",
            "a loop contains a decision node, and an edge leads out of the loop",
            "each node has its own step file",
            "each entry of a step's `inputs` is in `variables` of workflow.md, or in the `outputs` of a step on each path to it",
            "`conditionExpr`, if present, is a JSONLogic rule over these variables",
        ],
        TargetType::Step => &[
            "`nodeId` and `type` are the same as in the graph's node",
            "`transitions` lead to the same nodes as the graph's edges, with the same default",
            "`title`, `agentId`, `inputs` and `outputs`, where both have them, are the same as in the graph's node",
            "a step of type `subworkflow` names in `workflowId` the workflow that it starts",
            "assets are named by their path, and exist",
        ],
        TargetType::Agent => &[
            "`id` does not change, because steps refer to it",
            "a `menu` item names a workflow of the package, or in `action` one of the agent's prompts as `#id`",
        ],
        TargetType::Asset => &[
            "the path is relative and below `assets/`",
            "the content parses as what the extension says",
            "references to the asset still resolve after the change",
        ],
    }
}
