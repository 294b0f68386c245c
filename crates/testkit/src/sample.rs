//! The package that is published with the program, in a house; and calls about it, as models and people make them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::packages::ProjectPackage;
use toolhost_builder::{Files, Package};
use toolhost_contract::{CallerKind, Outcome};
use toolhost_store::Who;

use crate::House;
use crate::engines::Engine;

/// The workflow of the sample, and one of its steps.
pub const FLOW: &str = "research-report";
pub const STEP: &str = "check-claims";

/// Where the sample is.
pub fn sample_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report")
}

/// The sample that is published with the program.
pub fn sample() -> Files {
    let root = sample_folder();
    let mut files = Files::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

pub fn shelf_of(house: &House, project: i64) -> ProjectPackage {
    let who = Who { project_id: project, user_id: 1, name: "local".to_owned(), call_id: "test".to_owned() };
    toolhost_builder::Packages::new(house.store.database()).shelf(who).unwrap()
}

/// A house whose project has the sample.
pub async fn house_with_sample(engine: &Engine) -> House {
    let house = engine.house().await;
    shelf_of(&house, house.project.id).import(&Package::read(sample()), false, Size::default()).await.unwrap();
    house
}

/// A call of a model with the profile `builder`.
pub async fn call(house: &House, tool: &str, arguments: Value) -> Outcome {
    house.call_as("builder", tool, arguments).await
}

/// A model's call in a session of its own.
pub async fn in_session(house: &House, session: &str, tool: &str, arguments: Value) -> Outcome {
    let mut request = house.request(tool, arguments);
    "builder".clone_into(&mut request.caller.profile);
    request.scope.session_id = Some(session.to_owned());
    house.run(request).await
}

/// A person's call, as the command line makes it.
pub async fn person(house: &House, tool: &str, arguments: Value) -> Outcome {
    let mut request = house.request(tool, arguments);
    "all".clone_into(&mut request.caller.profile);
    request.caller.kind = CallerKind::Person;
    request.scope.session_id = None;
    house.run(request).await
}

pub async fn apply(house: &House, id: &str) -> Outcome {
    person(house, "builder.change.apply", json!({"changeSetId": id, "confirmSource": "ui_manual_apply"})).await
}

pub async fn files(house: &House) -> Files {
    shelf_of(house, house.project.id).export().await.unwrap()
}

/// A change set as `builder.change.stage` takes it.
pub fn set(operations: Value, revisions: Value) -> Value {
    json!({"changeSet": {
        "schemaVersion": "1.0", "targetType": "step", "mode": "optimize",
        "operations": operations, "revisions": revisions,
    }})
}

pub fn step_operation(node: &str, markdown: &str) -> Value {
    json!({
        "op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": node},
        "payload": {"step_markdown": markdown},
    })
}

#[track_caller]
pub fn data(outcome: &Outcome) -> &Value {
    assert!(outcome.ok, "{outcome:?}");
    &outcome.data
}

#[track_caller]
pub fn refused(outcome: &Outcome) -> (&'static str, &'static str) {
    let error = outcome.error.as_ref().unwrap();
    (error.code.as_str(), error.kind.as_str())
}
