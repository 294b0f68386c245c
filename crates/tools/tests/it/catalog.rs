//! `tool.list` and `tool.describe`: a caller is told of its own tools and of no others.

use serde_json::json;
use toolhost_contract::ErrorKind;

use crate::room::{house, refused};

/// Rules: 004.3, 004.10.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_sees_its_own_tools_only() {
    let house = house(&[]).await;
    let all = house.data("tool.list", json!({})).await;
    let narrow = house.call_as("researcher", "list_my_tools", json!({})).await.data;
    let names = |data: &serde_json::Value| -> Vec<String> {
        data["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    };
    // The list for a model leaves out the tools that only people may use.
    let there = crate::room::every_tool();
    assert_eq!(names(&all).len(), there.iter().filter(|tool| !tool.info().facts.is_for_people()).count());
    assert!(names(&narrow).contains(&"bash".to_owned()) && !names(&narrow).contains(&"file.write".to_owned()));
    for tool in narrow["tools"].as_array().unwrap() {
        assert!(tool["summary"].as_str().is_some_and(|s| !s.is_empty()), "{tool}");
    }
    let described = house.call_as("researcher", "tool.describe", json!({ "name": "file.write" })).await;
    assert_eq!(described.error.unwrap().kind, ErrorKind::NotFound);
    assert_eq!(names(&house.data("tool.list", json!({ "family": "file" })).await).len(), 7);
    assert!(house.call("tool.list", json!({ "family": "nothing" })).await.text.contains("no tools of that family"));
}

/// Rules: 004.10.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_is_described_by_each_of_its_names() {
    let house = house(&[]).await;
    for tool in crate::room::every_tool() {
        let info = tool.info();
        if info.facts.is_for_people() {
            refused(&house, "tool.describe", json!({ "name": info.name }), ErrorKind::NotFound).await;
            continue;
        }
        let aliases: Vec<&str> = info.aliases.iter().map(|alias| alias.name).collect();
        let wire = info.name.replace('.', "_");
        for name in [&*info.name, &wire].into_iter().chain(aliases) {
            let data = house.data("tool.describe", json!({ "name": name })).await;
            assert_eq!((&data["name"], &data["inputSchema"]), (&json!(info.name), &info.input_schema), "{name}");
        }
    }
    let error = refused(&house, "tool.describe", json!({ "name": "fil.read" }), ErrorKind::NotFound).await;
    assert!(error.hint.unwrap().contains("`file.read`"));
}
