//! `builder.schema.read`: what it shows a model can be staged as it stands, and its fields are those of the schemas.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolhost_builder::guide::{TOPICS, Topic, guide};
use toolhost_testkit::House;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, apply, data, house_with_sample, in_session};

/// The workflow that the first example makes, and that later ones change.
const MADE: &str = "correct";

/// The revisions that reads give, each by the text that stands for it in an example.
async fn revisions(house: &House, session: &str, is_made: bool) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    for flow in [FLOW].into_iter().chain(is_made.then_some(MADE)) {
        let read = in_session(house, session, "builder.workflow.read", json!({"workflowId": flow})).await;
        let revision = data(&read)["revisions"]["workflowRevision"].as_str().unwrap().to_owned();
        known.insert(format!("<workflowRevision of {flow}>"), revision.clone());
        if flow == FLOW {
            known.insert("<workflowRevision>".to_owned(), revision);
        }
    }
    for (tool, arguments, name) in [
        ("builder.agent.read", json!({"agentId": "lead"}), "agentsRevision"),
        ("builder.asset.read", json!({"path": "assets/style-guide.md"}), "assetsRevision"),
    ] {
        let read = in_session(house, session, tool, arguments).await;
        known.insert(format!("<{name}>"), data(&read)["revisions"][name].as_str().unwrap().to_owned());
    }
    known
}

fn filled(set: &Value, revisions: &BTreeMap<String, String>) -> Value {
    let mut text = set.to_string();
    for (placeholder, revision) in revisions {
        text = text.replace(placeholder, revision);
    }
    assert!(!text.contains("<workflowRevision"), "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_staged_as_it_stands_and_is_valid() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut sets = Vec::new();
        for topic in TOPICS {
            let read = in_session(&house, "reader", "builder.schema.read", json!({"topic": topic.as_str()})).await;
            let shown = data(&read)["examples"].as_array().unwrap().clone();
            assert!(!shown.is_empty(), "{topic:?}");
            sets.extend(shown);
        }
        let makes = |shown: &Value| shown["changeSet"].to_string().contains("\"workflow_md\"");
        let (first, rest): (Vec<Value>, Vec<Value>) = sets.into_iter().partition(makes);
        assert_eq!(first.len(), 1);
        for (n, shown) in first.iter().chain(&rest).enumerate() {
            let session = format!("s{n}");
            let known = revisions(&house, &session, n > 0).await;
            let mut set = filled(&shown["changeSet"], &known);
            if set["extensions"]["supersedes"].is_string() {
                let mut earlier = set.clone();
                earlier.as_object_mut().unwrap().remove("extensions");
                let staged = in_session(&house, &session, "builder.change.stage", json!({"changeSet": earlier})).await;
                set["extensions"]["supersedes"] = data(&staged)["changeSetId"].clone();
            }
            let staged = in_session(&house, &session, "builder.change.stage", json!({"changeSet": set})).await;
            let id = data(&staged)["changeSetId"].as_str().unwrap().to_owned();
            let report = in_session(&house, &session, "builder.change.validate", json!({"changeSetId": id})).await;
            assert_eq!(data(&report)["valid"], json!(true), "{}: {:#}", shown["says"], report.data);
            // That a set touches several kinds of objects is no fault of it.
            let faults = report.data["warnings"].as_array().unwrap().iter().filter(|one| one["stage"] != "impact");
            assert_eq!(faults.collect::<Vec<_>>(), Vec::<&Value>::new(), "{}", shown["says"]);
            if n == 0 {
                data(&apply(&house, &id).await);
            }
        }
    }
}

#[test]
fn the_fields_are_those_of_the_schemas_and_each_way_to_change_is_shown() {
    for topic in TOPICS {
        let guide = guide(topic);
        let lines: Vec<&String> = guide.parts.iter().flat_map(|part| &part.fields).collect();
        assert!(lines.iter().all(|line| line.contains(": ") && !line.contains("any value, required")), "{lines:#?}");
        assert!(lines.len() > 1, "{topic:?}: {lines:#?}");
        let sets = serde_json::to_string(&guide.examples).unwrap();
        let payload = guide.parts.last().unwrap().fields.iter();
        // A field of what an upsert carries that no example shows is one that a model has to guess.
        let top = payload.filter_map(|line| line.split(':').next()).filter(|path| !path.contains(['.', '[']));
        let missing: Vec<&str> = top.filter(|field| !sets.contains(&format!("\"{field}\""))).collect();
        let expected = match topic {
            // The paths of a new workflow and the path that a step's node names are seldom written.
            Topic::Workflow => vec!["path", "graphPath"],
            Topic::Step => vec!["path", "deleteTransitions"],
            Topic::Set => vec!["impact"],
            Topic::Agent | Topic::Asset => vec![],
        };
        assert_eq!(missing, expected, "{topic:?}");
    }
}
