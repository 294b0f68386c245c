//! A client that is told of few tools finds the others and calls them.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::mcp::{all_listed, unfit_for_models};
use crate::room::program;

const CALLERS: [&str; 3] = ["tool_read", "tool_change", "tool_reach"];

async fn open(workspace: &TempWorkspace, era: Era) -> McpProcess {
    McpProcess::open(&program(workspace), &["--profile", "developer", "--tools", "search"], era).await
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_short_for_every_profile_and_fits_every_models_api() {
    let workspace = TempWorkspace::new();
    for profile in ["researcher", "developer", "reviewer", "planner", "all"] {
        let arguments = ["--profile", profile, "--tools", "search"];
        let mut host = McpProcess::open(&program(&workspace), &arguments, Era::Session).await;
        let listed = all_listed(&mut host).await;
        let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        for name in CALLERS.into_iter().chain(["file_read", "tool_search", "approval_wait"]) {
            assert!(names.contains(&name), "{profile}: {names:?}");
        }
        assert_eq!(names.contains(&"file_write"), ["developer", "all"].contains(&profile), "{profile}: {names:?}");
        let mut found = Vec::new();
        for tool in &listed {
            unfit_for_models(&tool["inputSchema"], tool["name"].as_str().unwrap(), &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
        let tokens = json!(listed).to_string().len() / 4;
        assert!(tokens <= 4_000, "{profile}: {tokens} tokens");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_can_be_called() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    for era in [Era::Session, Era::Stateless] {
        let mut host = open(&workspace, era).await;
        let found = host.call("tool_search", json!({ "query": "commit the changes", "limit": 3 })).await;
        assert!(text(&found).contains("git_commit (writes)") && text(&found).contains("\"message\""), "{found}");
        let status = host.call("tool_read", json!({ "name": "git_status", "arguments": {} })).await;
        assert_eq!(
            (&status["isError"], &status["structuredContent"]["meta"]["tool"]),
            (&json!(false), &json!("git.status"))
        );
        let name = format!("{era:?}.txt");
        host.call("file_write", json!({ "path": name, "content": "x" })).await;
        // As a text, as some models write it, and under the canonical name.
        let arguments = json!({ "message": name, "files": [name] }).to_string();
        let committed = host.call("tool_change", json!({ "name": "git.commit", "arguments": arguments })).await;
        assert_eq!(committed["isError"], false, "{committed}");
        assert!(workspace.git(&["log", "--format=%s"]).contains(&name));
        // Who knows a tool needs no caller.
        assert_eq!(host.call("git_log", json!({})).await["isError"], false);
    }
}

/// Many clients take no name with a dot.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_names_other_tools_as_they_are_called() {
    let workspace = TempWorkspace::new();
    let dotted: Vec<String> = toolhost_testkit::every_tool().iter().map(|tool| tool.info().name.to_string()).collect();
    for (more, sign) in [(&[][..], '_'), (&["--dotted-names"], '.')] {
        let arguments = [&["--profile", "all", "--tools", "search"], more].concat();
        let mut host = McpProcess::open(&program(&workspace), &arguments, Era::Session).await;
        let mut named = 0;
        for (tool, arguments) in [
            ("tool.search", json!({ "query": "read write edit a file", "limit": 20 })),
            ("tool.describe", json!({ "name": "file.read" })),
        ] {
            let found = host.call(tool, arguments).await;
            assert_eq!(found["isError"], false, "{found}");
            let said = found.to_string();
            for name in dotted.iter().filter(|name| name.contains('.')) {
                let (called, other) = if sign == '.' {
                    (name.clone(), name.replace('.', "_"))
                } else {
                    (name.replace('.', "_"), name.clone())
                };
                named += said.matches(&format!("`{called}`")).count();
                assert!(!said.contains(&format!("`{other}`")), "{tool}: {other}: {said}");
            }
        }
        assert!(named > 1, "{named}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_calls_only_tools_of_its_own_effects() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    let mut host = open(&workspace, Era::Session).await;
    for (by, tool, arguments) in [
        ("tool_read", "file_write", json!({ "path": "b.txt", "content": "x" })),
        ("tool_read", "bash", json!({ "command": "touch b.txt" })),
        ("tool_change", "git_push", json!({ "remote": "origin" })),
        ("tool_reach", "file_write", json!({ "path": "b.txt", "content": "x" })),
        ("tool_change", "file_read", json!({ "path": "a.txt" })),
    ] {
        let refused = host.call(by, json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(refused["isError"], true, "{by} {tool}: {refused}");
        let said = text(&refused);
        assert!(
            said.contains(&format!("`{by}` calls no such tool"))
                && said.contains("`tool_reach` calls tools that reach"),
            "{said}"
        );
    }
    assert!(!workspace.root().join("b.txt").exists());
    // None of the three tools can call another of them.
    let nested = host.call("tool_read", json!({ "name": "tool_read", "arguments": { "name": "git_status" } })).await;
    assert!(text(&nested).contains("there is no tool `tool_read`"), "{nested}");
    for (arguments, says) in [
        (json!({}), "takes `name`"),
        (json!({ "name": 5, "arguments": {} }), "takes `name`"),
        (json!({ "name": "git_status", "arguments": [] }), "is no object"),
        (json!({ "name": "git_status", "arguments": "[" }), "is no object"),
    ] {
        let answer = host.request("tools/call", json!({ "name": "tool_read", "arguments": arguments })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_about_what_is_called_and_not_about_its_caller() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    let far = workspace.root().join("far.git");
    workspace.git(&["init", "-q", "--bare", far.to_str().unwrap()]);
    workspace.git(&["remote", "add", "origin", far.to_str().unwrap()]);
    let mut host = open(&workspace, Era::Session).await;
    let pending = host.call("tool_reach", json!({ "name": "git_push", "arguments": { "remote": "origin" } })).await;
    assert!(text(&pending).contains("`git_push` waits for a person's approval"), "{pending}");
    let asked = program(&workspace).run(&["--json", "review", "list"]).json();
    assert_eq!(asked[0]["tool"], "git.push", "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_option_there_are_no_callers() {
    let workspace = TempWorkspace::new();
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "developer"], Era::Session).await;
    let listed = json!(all_listed(&mut host).await).to_string();
    assert!(CALLERS.iter().chain(&["tool_search"]).all(|name| !listed.contains(name)), "{listed}");
    let answer = host.call("tool_read", json!({ "name": "git_status", "arguments": {} })).await;
    assert!(text(&answer).contains("there is no tool `tool_read`"), "{answer}");
    let ran = program(&workspace).run(&["mcp", "--profile", "builder", "--tools", "search"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("`tool.search`"), "{ran:?}");
}

/// Claude Code loads tools when a model needs them, and takes hints which.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_loads_tools_itself_is_told_which() {
    let workspace = TempWorkspace::new();
    let info = json!({ "name": "claude-code", "version": "2" });
    let mut host = McpProcess::start(&program(&workspace), &["--profile", "developer"], Era::Session);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    host.request("initialize", hello).await;
    host.notify("notifications/initialized", json!({})).await;
    let listed = all_listed(&mut host).await;
    let meta = |name: &str| listed.iter().find(|tool| tool["name"] == name).unwrap()["_meta"].clone();
    assert_eq!(meta("file_read"), json!({ "anthropic/alwaysLoad": true }));
    assert!(meta("git_log").is_null() || meta("git_log")["anthropic/searchHint"].is_string());
    assert!(listed.iter().any(|tool| tool["_meta"]["anthropic/searchHint"].is_string()));
}
