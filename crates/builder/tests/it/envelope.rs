//! The context envelope: its seven fields, a snapshot per kind of target, and nothing made up.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_builder::envelope::{EnvelopeError, KEYS, Mode, Request, TargetType, build_initial_context_envelope};

use crate::{sample, small};

const TOOLS: [&str; 2] = ["builder.step.read", "builder.refs.find"];

fn build(package: &Package, target_type: TargetType, id: &str, within: Option<&str>) -> Result<Value, EnvelopeError> {
    build_initial_context_envelope(&Request {
        package,
        target_type,
        target_id: id,
        mode: Mode::Optimize,
        workflow_id: within,
        tools: &TOOLS,
        domain_profile: &json!({ "industry_domain": "research" }),
    })
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn an_envelope_has_exactly_seven_fields_and_the_snapshot_of_its_target() {
    let package = Package::read(sample::files());
    let check = |target_type, id, snapshot: &[&str]| {
        let envelope = build(&package, target_type, id, None).unwrap();
        assert_eq!(keys(&envelope), KEYS.into_iter().collect(), "{id}");
        assert_eq!(keys(&envelope["target_snapshot"]), snapshot.iter().copied().collect(), "{id}");
        assert_eq!(envelope["tool_capabilities"]["allowed"], json!(TOOLS));
        assert_eq!(envelope["domain_profile"]["industry_domain"], "research");
        assert_eq!(envelope["revision_info"]["target"].as_str().unwrap().len(), 64);
        let again = build(&Package::read(sample::files()), target_type, id, None).unwrap();
        assert_eq!(serde_json::to_vec(&envelope).unwrap(), serde_json::to_vec(&again).unwrap());
        envelope
    };
    let workflow = check(
        TargetType::Workflow,
        "research-report",
        &["about", "frontmatter", "graph_json", "step_index", "workflow_md"],
    );
    assert_eq!(workflow["target_snapshot"]["step_index"].as_array().unwrap().len(), 12);
    assert_eq!(workflow["revision_info"]["workflow"], workflow["revision_info"]["target"]);
    let fields = ["adjacent_edges", "frontmatter", "node_meta", "step_markdown", "step_path"];
    let step = check(TargetType::Step, "enough", &fields);
    assert_eq!(step["target_snapshot"]["adjacent_edges"].as_array().unwrap().len(), 3);
    assert_eq!(step["session_meta"]["workflow_id"], "research-report");
    let by_path = check(TargetType::Step, "steps/enough.md", &fields);
    assert_eq!(by_path["target_snapshot"], step["target_snapshot"]);
    let agent = check(TargetType::Agent, "critic", &["agent_definition", "referenced_steps"]);
    assert_eq!(agent["target_snapshot"]["referenced_steps"].as_array().unwrap().len(), 2);
    let asset = check(TargetType::Asset, "assets/style-guide.md", &["content", "file_type", "path", "referenced_by"]);
    assert_eq!(asset["target_snapshot"]["file_type"], "md");
    assert_eq!(asset["target_snapshot"]["referenced_by"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_missing_is_named() {
    let package = Package::read(sample::files());
    let check = |target_type, id: &str, within, expected: &str| {
        let error = build(&package, target_type, id, within).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(TargetType::Workflow, "other", None, "there is no workflow `other` in the package");
    check(TargetType::Step, "lost", None, "there is no step `lost` in the package");
    check(TargetType::Step, "lost", Some("research-report"), "there is no step `lost` in workflow `research-report`");
    check(TargetType::Step, "draft", Some("other"), "there is no workflow `other` in the package");
    check(TargetType::Agent, "nobody", None, "there is no agent `nobody` in the package");
    check(TargetType::Asset, "assets/none.md", None, "there is no asset `assets/none.md` in the package");
    check(TargetType::Asset, "bmad.json", None, "there is no asset `bmad.json` in the package");
    let other = "the target is the workflow `research-report`, but `workflowId` is `x`";
    check(TargetType::Workflow, "research-report", Some("x"), other);
    assert_eq!(EnvelopeError::CODE, "AI_CONTEXT_BUILD_ERROR");
}

#[test]
fn a_step_of_two_workflows_asks_for_the_workflow() {
    let mut files = small::files();
    let two: Vec<(String, Vec<u8>)> = files
        .iter()
        .filter(|(path, _)| path.starts_with("steps/") || path.starts_with("workflow."))
        .map(|(path, bytes)| (format!("workflows/two/{path}"), bytes.clone()))
        .collect();
    files.extend(two);
    small::edit(&mut files, "bmad.json", |v| {
        v["workflows"] = json!([
            { "id": "two", "workflow": "workflows/two/workflow.md", "graph": "workflows/two/workflow.graph.json" },
        ]);
    });
    let package = Package::read(files);
    assert_eq!(toolhost_builder::validate(&package), []);
    let error = build(&package, TargetType::Step, "work", None).unwrap_err();
    assert_eq!(error.to_string(), "there is a step `work` in several workflows: main, two");
    let found = build(&package, TargetType::Step, "work", Some("two")).unwrap();
    assert_eq!(found["target_snapshot"]["step_path"], "workflows/two/steps/work.md");
}

#[test]
fn a_broken_object_can_still_be_looked_at() {
    let mut files = small::files();
    files.insert("workflow.graph.json".to_owned(), b"{".to_vec());
    let package = Package::read(files);
    let envelope = build(&package, TargetType::Workflow, "main", None).unwrap();
    assert_eq!(envelope["target_snapshot"]["graph_json"], "{");
}
