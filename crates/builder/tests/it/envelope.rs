//! The context envelope: its seven fields, a snapshot per kind of target, and nothing made up.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_builder::envelope::{
    EnvelopeError, KEYS, Mode, Request, Scope, TargetType, build_initial_context_envelope, snapshot as snapshot_of,
};
use toolhost_builder::refs::Index;

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
    let workflow =
        check(TargetType::Workflow, "research-report", &["about", "graph_json", "step_index", "workflow_md"]);
    assert_eq!(workflow["revision_info"]["revisions"]["workflowRevision"], workflow["revision_info"]["target"]);
    let fields = ["adjacent_edges", "node_meta", "step_markdown", "step_path"];
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

/// Rules: 001.21.
#[test]
fn an_envelope_has_each_fact_once_and_reads_have_all_fields() {
    let package = Package::read(sample::files());
    let told = |target_type, id| build(&package, target_type, id, None).unwrap();
    let step = told(TargetType::Step, "enough");
    let snapshot = &step["target_snapshot"];
    // The front matter of the step says type, title, agent, inputs and outputs, and its transitions say labels.
    assert_eq!(keys(&snapshot["node_meta"]), ["description", "id"].into(), "{snapshot}");
    let edges = snapshot["adjacent_edges"].as_array().unwrap();
    for edge in edges {
        let leaves = edge["from"] == "enough";
        assert_eq!(edge.get("label").is_none(), leaves, "{edge}");
    }
    let workflow = told(TargetType::Workflow, "research-report");
    let listed = |workflow: &Value| -> Vec<Value> {
        let nodes = workflow["target_snapshot"]["graph_json"]["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["id"].clone()).collect()
    };
    let ids = listed(&workflow);
    let index = workflow["target_snapshot"]["step_index"].as_array().unwrap();
    assert!(*index != ids && (index.is_empty() || index.len() == ids.len()), "{index:?}");
    // A graph that lists its nodes otherwise than a run passes them has an index.
    let mut files = sample::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"].as_array_mut().unwrap().reverse());
    let turned = Package::read(files);
    let turned = build(&turned, TargetType::Workflow, "research-report", None).unwrap();
    let index = turned["target_snapshot"]["step_index"].as_array().unwrap();
    assert_eq!((index.len(), &index[0]), (ids.len(), &json!("scope")));
    // A read of the same objects has all fields.
    let read = |target_type, target_id| {
        let mode = Mode::Optimize;
        let request =
            Request { package: &package, target_type, target_id, mode, workflow_id: None, tools: &[], scope: SCOPE };
        snapshot_of(&request, &Index::default()).unwrap().snapshot
    };
    let all = read(TargetType::Step, "enough");
    assert!(all["frontmatter"].is_object() && all["node_meta"]["title"].is_string(), "{all}");
    assert!(all["adjacent_edges"].as_array().unwrap().iter().all(|edge| edge["label"].is_string()));
    assert_eq!(read(TargetType::Workflow, "research-report")["step_index"][0]["node_id"], "scope");
}

#[test]
fn a_field_that_the_graph_and_the_step_say_differently_is_told_of_both() {
    let mut files = sample::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        let nodes = graph["nodes"].as_array_mut().unwrap();
        nodes.iter_mut().find(|node| node["id"] == "enough").unwrap()["title"] = json!("Another title");
    });
    let package = Package::read(files);
    let step = build(&package, TargetType::Step, "enough", None).unwrap();
    assert_eq!(step["target_snapshot"]["node_meta"]["title"], "Another title");
}

#[test]
fn a_step_is_told_what_stands_before_and_after_it_its_variables_and_all_assets() {
    let package = Package::read(sample::files());
    let digest = build(&package, TargetType::Step, "enough", None).unwrap()["dependency_digest"].clone();
    let neighbors = digest["neighbors"].as_array().unwrap();
    let of = |direction: &str| -> Vec<&str> {
        let those = neighbors.iter().filter(|neighbor| neighbor["direction"] == direction);
        those.map(|neighbor| neighbor["node_id"].as_str().unwrap()).collect()
    };
    assert!(!of("before").is_empty() && !of("after").is_empty(), "{digest}");
    assert!(neighbors.iter().any(|neighbor| neighbor["outputs"].is_array()), "{digest}");
    assert!(!digest["variables"].as_object().unwrap().is_empty());
    let listed = |name: &str| digest[name].as_array().unwrap().len();
    assert_eq!(listed("referenced_asset_paths") + listed("other_assets"), package.assets().count());
    assert_eq!(listed("other_agents") + 1, package.agents().len());
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
fn what_is_to_be_made_has_an_empty_snapshot_its_neighbours_and_rules_for_its_name() {
    let package = Package::read(sample::files());
    let check = |target_type, id: &str| {
        let made = build_for(Mode::Create, &package, target_type, id, None).unwrap();
        assert_eq!(keys(&made), KEYS.into_iter().collect(), "{id}");
        assert_eq!(made["session_meta"]["mode"], "create");
        assert_eq!(made["session_meta"]["target_id"], id);
        assert_eq!(made["revision_info"]["target"], Value::Null);
        let baseline = &made["normative_baseline"];
        assert!(baseline["naming"].as_str().unwrap().contains("not in use"), "{baseline}");
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
    let workflow = check(TargetType::Workflow, "new");
    assert_eq!(workflow["target_snapshot"]["graph_json"], Value::Null);
    assert_eq!(workflow["dependency_digest"]["workflows"], json!(["research-report"]));
    let step = check(TargetType::Step, "new");
    assert_eq!(step["session_meta"]["workflow_id"], "research-report");
    assert_eq!(step["target_snapshot"]["step_path"], "steps/new.md");
    assert_eq!(step["dependency_digest"]["neighbors"].as_array().unwrap().len(), 12);
    let agent = check(TargetType::Agent, "new");
    assert_eq!(agent["dependency_digest"]["other_agents"].as_array().unwrap().len(), package.agents().len());
    let asset = check(TargetType::Asset, "assets/new.md");
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
