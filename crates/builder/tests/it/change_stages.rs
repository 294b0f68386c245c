//! The five stages of the validation: their order, and where it ends.

use serde_json::{Value, json};
use toolhost_builder::change::{Report, Stage};
use toolhost_builder::{Files, Package};

use crate::change::{agent, asset, graph, set, step};
use crate::change_validate::{report_on, step_text};
use crate::small;

/// A package with a flaw in its graph, so that a set which writes the graph is told of it again.
fn flawed() -> Files {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |value| value["nodes"][3]["more"] = json!(1));
    files
}

/// A set that gives each stage something to find.
fn bad_in_each_stage() -> Value {
    let mut flawed_graph = small::graph();
    flawed_graph["nodes"][3]["more"] = json!(1);
    let mut value = set(json!([
        // Security comes last, wherever in the set its operation stands.
        asset("assets/run.exe", "MZ"),
        asset("assets/new.md", "a\u{202e}b"),
        step("work", &step_text("work", "step", "agentId: nobody\n")),
        step("end", "---\nschemaVersion: \"1.1\"\nnodeId: end\ntype: end\n---\n## Goal\nStop.\n"),
        graph(flawed_graph),
    ]));
    value["impact"] = json!({ "objects": [], "counts": {}, "riskFlags": [] });
    value
}

fn stages(report: &Report) -> (Vec<Stage>, Vec<Stage>) {
    let of = |found: &[toolhost_builder::change::Found]| {
        let mut stages: Vec<Stage> = found.iter().map(|found| found.stage).collect();
        stages.dedup();
        stages
    };
    (of(&report.errors), of(&report.warnings))
}

#[test]
fn all_five_stages_run_one_after_the_other() {
    let report = report_on(&Package::read(flawed()), &bad_in_each_stage());
    let names: Vec<&str> = report.stages.iter().map(|stage| stage.as_str()).collect();
    assert_eq!(names, ["schema", "bmad", "reference", "impact", "security"]);
    assert!(!report.valid && !report.schema_failed, "{report:#?}");
    // As they were found: nothing sorts them afterwards.
    let (errors, warnings) = stages(&report);
    assert_eq!(errors, [Stage::Bmad, Stage::Reference, Stage::Security], "{:#?}", report.errors);
    assert_eq!(warnings, [Stage::Schema, Stage::Impact, Stage::Security], "{:#?}", report.warnings);
    let codes: Vec<&str> = report.errors.iter().map(|found| found.code.as_str()).collect();
    assert_eq!(codes, ["SECTION_MISSING", "AGENT_NOT_FOUND", "ASSET_EXTENSION"]);
    let warned = |code: &str| report.warnings.iter().any(|found| found.code == code);
    assert!(warned("SCHEMA_UNKNOWN_FIELD") && warned("IMPACT_DIFFERS") && warned("HIDDEN_CHARACTERS"), "{report:#?}");
}

#[test]
fn a_failed_schema_ends_it_before_the_other_four() {
    let mut value = bad_in_each_stage();
    let operations = value["operations"].as_array_mut().unwrap();
    operations.push(agent("ada", json!({ "id": "ada", "more": 1 })));
    let report = report_on(&Package::read(flawed()), &value);
    assert!(report.schema_failed && !report.valid);
    assert_eq!(report.stages, [Stage::Schema]);
    assert_eq!(stages(&report), (vec![Stage::Schema], vec![Stage::Schema]), "{report:#?}");
}
