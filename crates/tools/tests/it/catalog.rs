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
    let there = toolhost_testkit::every_tool();
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
    let spelled = |schema: &serde_json::Value| -> serde_json::Value {
        // A caller who is told canonical names reads them in the text of a schema, too.
        let text = schema.to_string().replace("`bash_output`", "`bash.output`").replace("`bash_kill`", "`bash.kill`");
        serde_json::from_str(&text).unwrap()
    };
    for tool in toolhost_testkit::every_tool() {
        let info = tool.info();
        if info.facts.is_for_people() {
            refused(&house, "tool.describe", json!({ "name": info.name }), ErrorKind::NotFound).await;
            continue;
        }
        let aliases: Vec<&str> = info.aliases.iter().map(|alias| alias.name).collect();
        let wire = info.name.replace('.', "_");
        for name in [&*info.name, &wire].into_iter().chain(aliases) {
            let data = house.data("tool.describe", json!({ "name": name })).await;
            assert_eq!(
                (&data["name"], &data["inputSchema"]),
                (&json!(info.name), &spelled(&info.input_schema)),
                "{name}"
            );
        }
    }
    let error = refused(&house, "tool.describe", json!({ "name": "fil.read" }), ErrorKind::NotFound).await;
    assert!(error.hint.unwrap().contains("`file.read`"));
}

/// What somebody asks for who does not know the names, and the tool that does it.
const ASKED: &[(&str, &str)] = &[
    ("grep", "file.search"),
    ("look for a text in all files", "file.search"),
    ("rename a file", "file.move"),
    ("replace a line in a file", "file.edit"),
    ("create a new file", "file.write"),
    ("run a shell command", "bash"),
    ("stop a command that runs in the background", "bash.kill"),
    ("what changed since the last commit", "git.diff"),
    ("commit my changes", "git.commit"),
    ("push to the remote", "git.push"),
    ("history of commits", "git.log"),
    ("checkout", "git.switch"),
    ("undo changes of a file", "git.restore"),
    ("todo list", "task.list"),
    ("switch branches", "git.switch"),
    ("put uncommitted changes away and take them back later", "git.stash"),
    ("which tasks are ready", "task.ready"),
    ("add a task", "task.create"),
    ("comment on a ticket", "comment.post"),
    ("remember something for later", "memory.save_learning"),
    ("deploy the workspace", "deploy.copy"),
    ("ask the person a question", "human.ask"),
    ("stage a change of the workflow package", "builder.change.stage"),
];

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_found_by_what_they_do() {
    let house = house(&[]).await;
    let mut missed = Vec::new();
    for (query, wanted) in ASKED {
        let found = house.data("tool.search", json!({ "query": query, "limit": 3 })).await;
        let names: Vec<&str> =
            found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        if !names.contains(wanted) {
            missed.push(format!("{query}: {wanted} is not among {names:?}"));
        }
    }
    assert_eq!(missed, Vec::<String>::new());
    let one = house.data("tool.search", json!({ "query": "git", "limit": 1 })).await;
    assert_eq!(one["tools"].as_array().unwrap().len(), 1);
    assert!(one["more"].as_i64().unwrap() > 5, "{one}");
    let none = house.call("tool.search", json!({ "query": "xylophone" })).await;
    assert_eq!(none.data["tools"], json!([]));
    assert!(none.text.contains("try others"), "{}", none.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_finds_tools_that_they_do_not_have() {
    let house = house(&[]).await;
    let found = house.call_as("researcher", "tool.search", json!({ "query": "write a file", "limit": 20 })).await;
    assert!(found.ok && !found.text.contains("file_write"), "{}", found.text);
}
