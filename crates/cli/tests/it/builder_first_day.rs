//! A workflow package on the first day: imported at the keyboard, read and changed by an agent over MCP, looked at, applied
//! and taken back at the keyboard.

use std::path::Path;

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, sample};
use toolhost_testkit::{Era, McpProcess, Program, Ran, TempWorkspace};

use crate::room::program;

#[track_caller]
fn run(program: &Program, arguments: &[&str]) -> Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran
}

async fn call(agent: &mut McpProcess, tool: &str, arguments: Value) -> Value {
    let result = agent.call(tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    result["structuredContent"]["data"].clone()
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_read_staged_shown_applied_and_taken_back() {
    for engine in engines() {
        for era in [Era::Session, Era::Stateless] {
            let workspace = TempWorkspace::new();
            let program = engine.under(program(&workspace));
            if era == Era::Stateless && engine.url.is_some() {
                continue;
            }
            run(&program, &["init"]);
            let imported = run(&program, &["package", "import", &example()]);
            assert!(imported.stdout.contains("22 files: 1 workflow, 4 agents, 6 assets"), "{imported:?}");
            assert_eq!(program.run(&["package", "import", &example()]).code, Some(1), "not over one that is there");
            assert!(run(&program, &["package", "list"]).stdout.contains(FLOW));

            let mut agent = McpProcess::open(&program, &["--profile", "builder", "--session", "docs"], era).await;
            let listed = agent.request("tools/list", json!({})).await;
            let names: Vec<&str> =
                listed["result"]["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
            assert!(names.contains(&"builder_step_read") && !names.contains(&"builder_change_apply"), "{names:?}");
            let step = json!({"workflowId": FLOW, "nodeId": "draft"});
            let read = call(&mut agent, "builder_step_read", step.clone()).await;
            let text = read["step_markdown"].as_str().unwrap().replace("## Goal\n", "## Goal\n\nBe brief.\n");
            let change = json!({"changeSet": {
                "schemaVersion": "1.0", "targetType": "step", "mode": "optimize",
                "operations": [{
                    "op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": "draft"},
                    "payload": {"step_markdown": text}, "reason": "shorter drafts",
                }],
                "revisions": read["revisions"],
            }});
            let staged = call(&mut agent, "builder_change_stage", change).await;
            assert_eq!(staged["changeSetId"], "cs-1");
            let valid = call(&mut agent, "builder_change_validate", json!({})).await;
            assert_eq!(valid["valid"], true, "{valid:#}");
            let refused = agent.call("builder_change_apply", json!({"changeSetId": "cs-1"})).await;
            assert!(refused.to_string().contains("AI_TOOL_FORBIDDEN"), "{refused}");
            agent.close().await;

            // The session is gone on with by its name.
            let mut agent = McpProcess::open(&program, &["--profile", "builder", "--session", "docs"], era).await;
            let again = call(&mut agent, "builder_step_read", step).await;
            assert!(again["step_markdown"].as_str().unwrap().contains("Be brief."));
            agent.close().await;

            let list = run(&program, &["change", "list"]);
            assert!(list.stdout.contains("cs-1") && list.stdout.contains("validated"), "{list:?}");
            let shown = run(&program, &["change", "show", "cs-1"]);
            assert!(shown.stdout.contains("+Be brief."), "{shown:?}");
            let unasked = program.run(&["change", "apply", "cs-1"]);
            assert!(unasked.code != Some(0) && unasked.stderr.contains("--yes"), "{unasked:?}");
            run(&program, &["change", "apply", "cs-1", "--yes"]);
            let out = workspace.state().with_file_name("out");
            run(&program, &["package", "export", out.to_str().unwrap()]);
            assert!(std::fs::read_to_string(out.join("steps/draft.md")).unwrap().contains("Be brief."));
            let history = run(&program, &["change", "history"]);
            assert!(history.stdout.contains("steps/draft.md"), "{history:?}");
            run(&program, &["change", "undo", "--yes"]);
            let zip = workspace.state().with_file_name("out.zip");
            run(&program, &["package", "export", zip.to_str().unwrap()]);
            let back = toolhost_builder::from_zip(&std::fs::read(&zip).unwrap()).unwrap();
            assert_eq!(back, sample());
            assert_eq!(run(&program, &["audit", "verify"]).code, Some(0));
        }
    }
}

#[test]
fn an_agent_of_ours_works_on_an_asset_and_goes_on_in_another_process() {
    let path = "assets/review-checklist.md";
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        run(&program, &["init"]);
        run(&program, &["package", "import", &example()]);
        let asset = json!({ "path": path }).to_string();
        let read = run(&program, &["call", "builder.asset.read", &asset, "--json"]).json();
        let set = json!({
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize",
            "operations": [{
                "op": "upsert", "targetType": "asset", "target": { "path": path }, "payload": { "content": "Be brief.\n" },
            }],
            "revisions": read["data"]["revisions"],
        });
        let answer =
            json!({ "responseType": "change", "assistantSummary": "The checklist is short.", "changeSet": set });
        let call = |tool: &str, arguments: Value| json!({ "calls": [{ "tool": tool, "arguments": arguments }] });
        let turns = [
            call("builder_asset_read", json!({ "path": path })),
            call("builder_change_stage", json!({ "changeSet": set })),
            call("builder_change_validate", json!({})),
            json!({ "text": answer.to_string() }),
        ];
        workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
        let model = format!("script:{}", workspace.beside("story.json").display());
        let target = format!("asset:{path}");
        let begun = ["run", "make it short", "--target", &target, "--model", &model, "--max-iterations", "2"];
        let limited = program.run(&begun);
        assert!(limited.code == Some(1) && limited.stderr.contains("AI_TOOL_LOOP_LIMIT_EXCEEDED"), "{limited:?}");
        let id = run(&program, &["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        let resumed = run(&program, &["session", "resume", &id]);
        let said = format!("{}{}", resumed.stdout, resumed.stderr);
        assert!(said.contains("toolhost change apply cs-1") && said.contains("The checklist is short."), "{resumed:?}");
        run(&program, &["change", "apply", "cs-1", "--yes"]);
        let read = run(&program, &["call", "builder.asset.read", &asset, "--json"]).json();
        assert!(read["data"].to_string().contains("Be brief."), "{read}");
        let small = program.run(&["run", "again", "--target", &target, "--model", &model, "--context-budget", "10"]);
        assert!(small.code == Some(1) && small.stderr.contains("AI_CONTEXT_BUDGET_EXCEEDED"), "{small:?}");
    }
}

/// What the person and others did since is in the next request, with the context as it is now.
#[test]
fn a_session_that_goes_on_is_told_what_became_of_its_sets() {
    let path = "assets/review-checklist.md";
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        run(&program, &["init"]);
        run(&program, &["package", "import", &example()]);
        let call = |tool: &str, arguments: Value| json!({ "calls": [{ "tool": tool, "arguments": arguments }] });
        let set = |find: &str, replace: &str| {
            json!({ "changeSet": {
                "schemaVersion": "1.1", "targetType": "asset", "mode": "optimize", "revisions": "{{last.data.revisions}}",
                "operations": [{
                    "op": "upsert", "targetType": "asset", "target": { "path": path },
                    "payload": { "textEdits": [{ "find": find, "replace": replace }] },
                }],
            } })
        };
        let changed = |id: &str| {
            let answer =
                json!({ "responseType": "change", "assistantSummary": "Done.", "changeSet": { "changeSetId": id } });
            json!({ "text": answer.to_string() })
        };
        let mut told = call("builder_asset_read", json!({ "path": path }));
        told["expect"] = json!({ "user": [
            "\"changeSetId\":\"cs-1\"", "\"status\":\"applied\"", "changes_since", "A guide by hand.", "and once more",
        ] });
        let turns = [
            call("builder_asset_read", json!({ "path": path })),
            call("builder_change_stage", set("# Review checklist", "# The checklist")),
            call("builder_change_validate", json!({})),
            changed("cs-1"),
            told,
            call("builder_change_stage", set("# The checklist", "# The list")),
            changed("cs-3"),
        ];
        workspace.write_beside("story.json", &json!({ "turns": turns }).to_string());
        let model = format!("script:{}", workspace.beside("story.json").display());
        run(&program, &["run", "another title", "--target", &format!("asset:{path}"), "--model", &model]);
        run(&program, &["change", "apply", "cs-1", "--yes"]);
        // Somebody else adds to the same asset, and applies it.
        let read =
            run(&program, &["call", "builder.asset.read", &json!({ "path": path }).to_string(), "--json"]).json();
        let text = format!("{}\nA guide by hand.\n", read["data"]["content"].as_str().unwrap());
        let by_hand = json!({ "sessionId": "mine", "changeSet": {
            "schemaVersion": "1.0", "targetType": "asset", "mode": "optimize", "revisions": read["data"]["revisions"],
            "operations": [{
                "op": "upsert", "targetType": "asset", "target": { "path": path }, "payload": { "content": text },
            }],
        } });
        run(&program, &["call", "builder.change.stage", &by_hand.to_string()]);
        run(&program, &["change", "apply", "cs-2", "--yes"]);
        let id = run(&program, &["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        run(&program, &["session", "resume", &id, "and once more"]);
        run(&program, &["change", "apply", "cs-3", "--yes"]);
        let read =
            run(&program, &["call", "builder.asset.read", &json!({ "path": path }).to_string(), "--json"]).json();
        let now = read["data"]["content"].as_str().unwrap();
        assert!(now.starts_with("# The list") && now.ends_with("A guide by hand.\n"), "{now}");
    }
}
