//! The context envelope: its seven fields, a snapshot per kind of target, and nothing made up.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_builder::envelope::{
    EnvelopeError, KEYS, Mode, Request, Scope, TargetType, build_initial_context_envelope,
};

use crate::{sample, small};

const TOOLS: [&str; 2] = ["builder.step.read", "builder.refs.find"];

const SCOPE: Scope<'static> = Scope { session_id: Some("as_1"), user_id: Some(1), project_id: Some(2) };

fn build(package: &Package, target_type: TargetType, id: &str, within: Option<&str>) -> Result<Value, EnvelopeError> {
    build_for(Mode::Optimize, package, target_type, id, within)
}

fn build_for(
    mode: Mode,
    package: &Package,
    target_type: TargetType,
    target_id: &str,
    workflow_id: Option<&str>,
) -> Result<Value, EnvelopeError> {
    let request = Request { package, target_type, target_id, mode, workflow_id, tools: &TOOLS, scope: SCOPE };
    build_initial_context_envelope(&request)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Rules: 001.18, 001.19, 001.21, 001.40, 001.51.
#[test]
fn an_envelope_has_exactly_seven_fields_and_the_snapshot_of_its_target() {
    let package = Package::read(sample::files());
    let check = |target_type, id, snapshot: &[&str]| {
        let envelope = build(&package, target_type, id, None).unwrap();
        assert_eq!(keys(&envelope), KEYS.into_iter().collect(), "{id}");
        assert_eq!(keys(&envelope["target_snapshot"]), snapshot.iter().copied().collect(), "{id}");
        assert_eq!(envelope["tool_capabilities"]["allowed"], json!(TOOLS));
        assert_eq!(envelope["domain_profile"]["source"], "workflow_signal");
        let scope = ["session_id", "user_id", "project_id"].map(|name| envelope["session_meta"][name].clone());
        assert_eq!(scope, [json!("as_1"), json!(1), json!(2)]);
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
}

/// Rules: 001.21, 001.51, 001.52.
#[test]
fn what_is_to_be_made_has_an_empty_snapshot_its_neighbours_its_schema_and_rules_for_its_name() {
    let package = Package::read(sample::files());
    let check = |target_type, id: &str, schemas: &[&str]| {
        let made = build_for(Mode::Create, &package, target_type, id, None).unwrap();
        assert_eq!(keys(&made), KEYS.into_iter().collect(), "{id}");
        assert_eq!(made["session_meta"]["mode"], "create");
        assert_eq!(made["session_meta"]["target_id"], id);
        assert_eq!(made["revision_info"]["target"], Value::Null);
        let baseline = &made["normative_baseline"];
        assert!(baseline["naming"].as_str().unwrap().contains("not in use"), "{baseline}");
        let texts = &baseline["schema_texts"];
        assert_eq!(keys(texts), schemas.iter().copied().collect());
        assert!(schemas.iter().all(|name| texts[*name]["properties"].is_object()), "{texts}");
        // The same fields as of one that is there.
        let there = match target_type {
            TargetType::Workflow => "research-report",
            TargetType::Step => "enough",
            TargetType::Agent => "critic",
            TargetType::Asset => "assets/style-guide.md",
        };
        let there = build(&package, target_type, there, None).unwrap();
        assert_eq!(keys(&made["target_snapshot"]), keys(&there["target_snapshot"]), "{id}");
        assert!(keys(&made["dependency_digest"]).is_superset(&keys(&there["dependency_digest"])), "{id}");
        made
    };
    let workflow = check(TargetType::Workflow, "new", &["workflow-front-matter", "graph", "step-front-matter"]);
    assert_eq!(workflow["target_snapshot"]["graph_json"], Value::Null);
    assert_eq!(workflow["dependency_digest"]["workflows"], json!(["research-report"]));
    let step = check(TargetType::Step, "new", &["step-front-matter"]);
    assert_eq!(step["session_meta"]["workflow_id"], "research-report");
    assert_eq!(step["target_snapshot"]["step_path"], "steps/new.md");
    assert_eq!(step["dependency_digest"]["neighbors"].as_array().unwrap().len(), 12);
    let agent = check(TargetType::Agent, "new", &["agents"]);
    assert_eq!(agent["dependency_digest"]["other_agents"].as_array().unwrap().len(), package.agents().len());
    let asset = check(TargetType::Asset, "assets/new.md", &["asset"]);
    assert_eq!(asset["target_snapshot"]["file_type"], "md");
    assert_eq!(asset["dependency_digest"]["other_assets"].as_array().unwrap().len(), package.assets().count());
    // What is there is shown as it is: a session may have staged it before.
    let there = build_for(Mode::Create, &package, TargetType::Agent, "critic", None).unwrap();
    assert_eq!(there["target_snapshot"]["agent_definition"]["id"], "critic");
}

#[test]
fn what_is_to_be_made_has_a_name_that_it_can_have_and_a_place() {
    let package = Package::read(sample::files());
    let refused = |target_type, id: &str, within, expected: &str| {
        let error = build_for(Mode::Create, &package, target_type, id, within).unwrap_err();
        assert!(error.to_string().contains(expected), "{id}: {error}");
    };
    for id in ["", "-x", "a b", "a/b", "ä", &"x".repeat(201)] {
        for target in [TargetType::Workflow, TargetType::Step, TargetType::Agent] {
            refused(target, id, None, "cannot be called");
        }
    }
    for path in ["new.md", "assets/../x.md", "assets/x.exe", "assets/"] {
        refused(TargetType::Asset, path, None, "cannot be called");
    }
    refused(TargetType::Step, "new", Some("other"), "there is no workflow `other`");
    refused(TargetType::Agent, "new", Some("other"), "there is no workflow `other`");
    let mut files = sample::files();
    let mut manifest: Value = serde_json::from_slice(&files["bmad.json"]).unwrap();
    manifest["workflows"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "two", "workflow": "two.md", "graph": "two.json" }));
    files.insert("bmad.json".to_owned(), serde_json::to_vec(&manifest).unwrap());
    let two = Package::read(files);
    let error = build_for(Mode::Create, &two, TargetType::Step, "new", None).unwrap_err();
    assert!(error.to_string().contains("one of: research-report, two"), "{error}");
    assert!(build_for(Mode::Create, &two, TargetType::Step, "new", Some("two")).is_ok());
}

/// Rules: 001.44.
#[test]
fn a_damaged_profile_of_the_entry_is_told_for_every_target() {
    let mut files = sample::files();
    let text = String::from_utf8(files["workflow.md"].clone()).unwrap();
    files.insert("workflow.md".to_owned(), text.replacen("---\n", "---\ndomain_profile: 7\n", 1).into_bytes());
    let package = Package::read(files);
    for (target_type, id) in [
        (TargetType::Workflow, "research-report"),
        (TargetType::Step, "enough"),
        (TargetType::Agent, "critic"),
        (TargetType::Asset, "assets/style-guide.md"),
        (TargetType::Agent, "new"),
    ] {
        let error = build_for(Mode::Create, &package, target_type, id, None).unwrap_err();
        assert!(matches!(error, EnvelopeError::Profile(_)), "{id}: {error}");
        assert_eq!(error.code().as_str(), "AI_DOMAIN_PROFILE_INCOMPLETE");
    }
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
