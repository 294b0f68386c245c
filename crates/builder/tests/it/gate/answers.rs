//! What a model is told where a call cannot be done tells it what to do instead.

use serde_json::{Value, json};
use toolhost_contract::{Outcome, OutcomeError};
use toolhost_testkit::engines::engines;

use crate::gate::races::{
    applied, apply, asset, call, delete, import, opened, read, set, stage, staged, two_flows, upsert_step,
};

fn error(outcome: &Outcome) -> &OutcomeError {
    outcome.error.as_ref().unwrap_or_else(|| unreachable!("{outcome:?}"))
}

fn hint(outcome: &Outcome) -> &str {
    error(outcome).hint.as_deref().unwrap_or_default()
}

/// A set of contract 1.1.
fn small(operations: Value, more: Value) -> Value {
    let mut set = json!({"schemaVersion": "1.1", "targetType": "asset", "mode": "optimize", "operations": operations});
    set.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    set
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_tells_both_texts_and_each_way_out_of_it_works() {
    for engine in engines() {
        for is_superseded in [false, true] {
            let house = opened(&engine).await;
            let seen = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
            let edit = |line: &str| asset("assets/a.md", &seen["content"].as_str().unwrap().replace("5\n", line));
            let theirs = staged(&house, "s1", set(&[edit("five\n")], &seen)).await;
            let own = staged(&house, "s2", set(&[edit("FIVE\n")], &seen)).await;
            applied(&house, &theirs, &[]).await;
            let report = call(&house, "s2", "builder.change.validate", json!({"changeSetId": own})).await.data;
            let found = &report["errors"][0];
            let message = found["message"].as_str().unwrap();
            let told = "content, line 5: it was \"5\\n\"; now, by somebody else, \"five\\n\"; in this set \"FIVE\\n\"";
            assert!(message.contains(told), "{found:#}");
            let hint = found["hint"].as_str().unwrap();
            assert!(hint.starts_with("discard cs-2, read asset:assets/a.md again"), "{hint}");
            let last = if is_superseded {
                // With the revision that the hint names, and a small edit of what somebody else wrote.
                let revision = hint.split('"').find(|word| word.len() == 64).unwrap();
                let edit = json!([{
                    "op": "upsert", "targetType": "asset", "target": {"path": "assets/a.md"},
                    "payload": {"textEdits": [{"find": "five", "replace": "five, FIVE"}]},
                }]);
                let more = json!({"revisions": {"assetsRevision": revision}, "extensions": {"supersedes": own}});
                staged(&house, "s2", small(edit, more)).await
            } else {
                let given_up = call(&house, "s2", "builder.change.discard", json!({"changeSetId": own})).await;
                assert!(given_up.ok, "{given_up:?}");
                let now = read(&house, "s2", "asset", json!({"path": "assets/a.md"})).await;
                let merged = now["content"].as_str().unwrap().replace("five\n", "five, FIVE\n");
                staged(&house, "s2", set(&[asset("assets/a.md", &merged)], &now)).await
            };
            let report = call(&house, "s2", "builder.change.validate", json!({"changeSetId": last})).await.data;
            assert_eq!(report["valid"], json!(true), "{report:#}");
            applied(&house, &last, &[]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_answered_with_the_names_that_are() {
    for engine in engines() {
        let house = opened(&engine).await;
        for (tool, arguments, names) in [
            ("builder.workflow.read", json!({"workflowId": "main"}), "`one`, `two`"),
            ("builder.workflow.read", json!({"workflowId": ""}), "`one`, `two`"),
            (
                "builder.context.get",
                json!({"targetType": "workflow", "targetId": "main", "mode": "optimize"}),
                "`one`, `two`",
            ),
            ("builder.step.read", json!({"workflowId": "one", "nodeId": "xyz"}), "`a`"),
            ("builder.agent.read", json!({"agentId": "xyz"}), "`ada`, `bob`"),
            ("builder.asset.read", json!({"path": "assets/xyz.md"}), "`assets/a.md`"),
        ] {
            let outcome = call(&house, "s1", tool, arguments).await;
            let message = &error(&outcome).message;
            assert!(message.contains("; there are: ") && message.contains(names), "{tool}: {message}");
            assert_eq!(hint(&outcome), "send one of the names that there are", "{tool}");
        }
        let outcome = call(&house, "s1", "builder.asset.read", json!({"path": "a.md"})).await;
        assert!(error(&outcome).message.contains("did you mean `assets/a.md`?"), "{outcome:?}");
        // A number that is sent as a text.
        let read = read(&house, "s1", "workflow", json!({"workflowId": "2"})).await;
        assert_eq!(read["step_index"][0]["node_id"], json!("b"));
        let context = json!({"targetType": "step", "targetId": "end", "mode": "optimize"});
        let outcome = call(&house, "s1", "builder.context.get", context).await;
        assert_eq!(hint(&outcome), "send `workflowId`, too, such as \"one\"", "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_told_up_to_a_bound() {
    for engine in engines() {
        let house = opened(&engine).await;
        let mut package = two_flows();
        for n in 0..40 {
            package.insert(format!("assets/n{n:02}.md"), b"x\n".to_vec());
        }
        import(&house, package, true).await;
        let outcome = call(&house, "s1", "builder.asset.read", json!({"path": "assets/xyz.md"})).await;
        let message = &error(&outcome).message;
        assert!(message.ends_with(", and 21 more") && message.matches("assets/n").count() == 19, "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_with_several_mistakes_is_told_all_of_them_at_once() {
    for engine in engines() {
        let house = opened(&engine).await;
        let operations = json!([
            {"op": "upsert", "targetType": "asset", "target": {}, "payload": {"content": "x"}},
            {"op": "remove", "targetType": "asset", "target": {"path": "assets/a.md"}},
            {"op": "upsert", "targetType": "step", "target": {"workflowId": "one"}, "payload": {"step_markdown": "x"}},
        ]);
        let outcome = stage(&house, "s1", small(operations, json!({}))).await;
        let message = &error(&outcome).message;
        for place in ["operations[0].target.path", "operations[1].op", "operations[2].target.nodeId"] {
            assert!(message.contains(&format!("\n- `{place}`")), "{place}: {message}");
        }
        assert!(message.starts_with("the change set is not as its contract says, in "), "{message}");
    }
}

/// The package with an asset that both workflows and an agent mention.
fn shared() -> toolhost_builder::Files {
    let mut package = two_flows();
    for file in ["one/steps/s.md", "two/steps/s.md"] {
        let text = String::from_utf8(package[file].clone()).unwrap();
        package.insert(file.to_owned(), text.replace("Do.", "See assets/a.md.").into_bytes());
    }
    package
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_over_several_workflows_says_which_revisions_it_needs_and_a_read_gives_them() {
    for engine in engines() {
        let house = opened(&engine).await;
        import(&house, shared(), true).await;
        let rename = |more: Value| {
            let operations = json!([delete("asset", json!({"path": "assets/a.md"})), asset("assets/b.md", "1\n")]);
            let mut set = small(operations, more);
            set["extensions"]["rewriteReferences"] = json!(true);
            set["extensions"]["renames"] = json!([{"from": "asset:assets/a.md", "to": "asset:assets/b.md"}]);
            set
        };
        // What only follows from the rename begins from the present state.
        let outcome = stage(&house, "s1", rename(json!({}))).await;
        assert!(error(&outcome).message.contains("revisions.assetsRevision"), "{outcome:?}");
        assert!(!error(&outcome).message.contains("baseRevisions"), "{outcome:?}");
        let edit = |flow: &str, node: &str| {
            let payload = json!({"textEdits": [{"find": "5\n6", "replace": "five\n6"}]});
            json!({"op": "upsert", "targetType": "step", "target": {"workflowId": flow, "nodeId": node}, "payload": payload})
        };
        let edits = json!([edit("one", "a"), edit("two", "b"), asset("assets/a.md", "2\n")]);
        let outcome = stage(&house, "s1", small(edits, json!({}))).await;
        for key in ["revisions.assetsRevision", "baseRevisions[\"workflow:one\"]", "baseRevisions[\"workflow:two\"]"] {
            assert!(error(&outcome).message.contains(key), "{key}: {outcome:?}");
        }
        let seen = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
        let found =
            call(&house, "s1", "builder.refs.find", json!({"locator": {"type": "path", "value": "assets/a.md"}}));
        assert_eq!(found.await.data["baseRevisions"], seen["baseRevisions"]);
        let names: Vec<&String> = seen["baseRevisions"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["workflow:one", "workflow:two"]);
        let mut wrong = seen["baseRevisions"].clone();
        wrong["workflow:two"] = wrong["workflow:one"].clone();
        let of = |base: &Value| json!({"revisions": seen["revisions"], "extensions": {"baseRevisions": base}});
        let outcome = stage(&house, "s1", rename(of(&wrong))).await;
        assert!(hint(&outcome).contains("{\"baseRevisions\": {\"workflow:two\": \"…\"}}"), "{outcome:?}");
        let id = staged(&house, "s1", rename(of(&seen["baseRevisions"]))).await;
        applied(&house, &id, &["asset:assets/a.md"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_read_with_the_revisions_of_the_workflows_it_works_in() {
    for engine in engines() {
        let house = opened(&engine).await;
        let seen = read(&house, "s1", "agent", json!({"agentId": "ada"})).await;
        for flow in ["one", "two"] {
            let whole = read(&house, "s1", "workflow", json!({"workflowId": flow})).await;
            let own = &seen["baseRevisions"][format!("workflow:{flow}")];
            assert_eq!(*own, whole["revisions"]["workflowRevision"]);
        }
        let bob = read(&house, "s1", "agent", json!({"agentId": "bob"})).await;
        assert_eq!(bob.get("baseRevisions"), None, "{bob:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_object_in_parts_is_told_what_it_needs() {
    for engine in engines() {
        let house = opened(&engine).await;
        let operation = json!([{
            "op": "upsert", "targetType": "workflow", "target": {"workflowId": "survey"},
            "payload": {"workflow_md": "# S\n", "nodes": [{"id": "ask"}]},
        }]);
        let outcome = stage(&house, "s1", small(operation, json!({}))).await;
        assert!(error(&outcome).message.contains("there are `one`, `two`"), "{outcome:?}");
        assert!(hint(&outcome).contains("a new workflow is given as a whole: `graph_json`"), "{outcome:?}");
        let outcome = stage(&house, "s1", small(json!([asset("rules.md", "Be kind.\n")]), json!({}))).await;
        assert!(error(&outcome).message.contains("`assets/rules.md`"), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passage_that_is_not_found_is_answered_with_the_one_that_is_like_it() {
    for engine in engines() {
        let house = opened(&engine).await;
        let mut package = two_flows();
        package.insert("assets/a.md".to_owned(), "Say \u{201c}please\u{201d} twice.\n".as_bytes().to_vec());
        import(&house, package, true).await;
        let seen = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
        let operation = json!([{
            "op": "upsert", "targetType": "asset", "target": {"path": "assets/a.md"},
            "payload": {"textEdits": [{"find": "Say \"please\" twice.", "replace": "Ask."}]},
        }]);
        let outcome = stage(&house, "s1", small(operation, json!({"revisions": seen["revisions"]}))).await;
        assert!(error(&outcome).message.contains("line 1 has \"Say \u{201c}please\u{201d} twice.\""), "{outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_delete_is_refused_for_what_is_wrong_before_anybody_confirms_it() {
    for engine in engines() {
        let house = opened(&engine).await;
        import(&house, shared(), true).await;
        let seen = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
        let id = staged(&house, "s1", set(&[delete("asset", json!({"path": "assets/a.md"}))], &seen)).await;
        let refused = apply(&house, &id, &[]).await;
        assert_eq!(error(&refused).code.as_str(), "AI_VALIDATION_FAILED", "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stage_that_validates_says_each_fact_once() {
    for engine in engines() {
        let house = opened(&engine).await;
        let seen = read(&house, "s1", "step", json!({"workflowId": "one", "nodeId": "a"})).await;
        let text = seen["step_markdown"].as_str().unwrap().replace("Do.", "Do it.");
        let set = set(&[upsert_step("one", "a", &text)], &seen);
        let outcome = call(&house, "s1", "builder.change.stage", json!({"changeSet": set, "validate": true})).await;
        let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&outcome.data), ["changeSetId", "status", "objects", "basedOn", "impact", "validation"]);
        assert_eq!(fields(&outcome.data["validation"]), ["valid", "schemaFailed"], "{:#}", outcome.data);
    }
}
