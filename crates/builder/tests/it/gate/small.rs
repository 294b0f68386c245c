//! Contract 1.1 through the gate: small edits are staged, merged, shown and applied as whole objects are, and cost little.

use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package, validate};
use toolhost_contract::Outcome;
use toolhost_testkit::House;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{
    FLOW, STEP, apply, data, files, house_with_sample, in_session, person, sample, shelf_of,
};

/// What a model would have to write: one token is about four characters.
const CHARS_PER_TOKEN: usize = 4;

fn small(operations: Value, revisions: &Value) -> Value {
    json!({"changeSet": {
        "schemaVersion": "1.1", "targetType": "workflow", "mode": "optimize",
        "operations": operations, "revisions": revisions,
    }})
}

fn of_flow(payload: Value) -> Value {
    json!({"op": "upsert", "targetType": "workflow", "target": {"workflowId": FLOW}, "payload": payload})
}

fn of_step(node: &str, payload: Value) -> Value {
    json!({"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": node}, "payload": payload})
}

async fn read(house: &House, session: &str) -> Value {
    data(&in_session(house, session, "builder.workflow.read", json!({"workflowId": FLOW})).await).clone()
}

async fn stage(house: &House, session: &str, operations: Value, revisions: &Value) -> Outcome {
    in_session(house, session, "builder.change.stage", small(operations, revisions)).await
}

/// A node put between two others that an edge joins, with its step.
fn insert(node: &str, (edge, from, to): (&str, &str, &str)) -> Value {
    let body = format!(
        "## Goal\n\nDo {node}.\n\n## Instructions\n\n1. Do it.\n\n## Completion (Document-as-State)\n\nDone.\n"
    );
    json!([
        of_flow(json!({
            "nodes": [{"id": node}],
            "edges": [{"from": from, "to": node, "label": "on"}, {"from": node, "to": to, "label": "on"}],
            "deleteEdges": [edge],
        })),
        of_step(node, json!({"step_markdown": body})),
    ])
}

/// An edge of the sample: its id and its ends.
fn edges(read: &Value) -> Vec<(String, String, String)> {
    let text = |edge: &Value, name: &str| edge[name].as_str().unwrap().to_owned();
    let all = read["graph_json"]["edges"].as_array().unwrap();
    all.iter().map(|edge| (text(edge, "id"), text(edge, "from"), text(edge, "to"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_risk_of_the_set_below_is_told_as_that() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let seen = read(&house, "s1").await;
        let (edge, from, to) = edges(&seen).remove(0);
        data(&stage(&house, "s1", insert("one-more", (&edge, &from, &to)), &seen["revisions"]).await);
        let seen = read(&house, "s1").await;
        let passage = json!({"textEdits": [{"find": "Do one-more.", "replace": "Do it well."}]});
        data(&stage(&house, "s1", json!([of_step("one-more", passage)]), &seen["revisions"]).await);
        for (set, says) in [
            ("cs-1", "the set changes how steps follow"),
            ("cs-2", "together with cs-1, on which it is based, the set"),
        ] {
            let told = in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": set})).await;
            let warnings = data(&told)["warnings"].as_array().unwrap();
            let risk = warnings.iter().find(|warning| warning["code"] == "RISK_GRAPH_CHANGE").unwrap();
            assert!(risk["message"].as_str().unwrap().starts_with(says), "{engine}, {set}: {risk}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_that_put_in_different_nodes_both_have_theirs() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let seen = read(&house, "s1").await;
        let ways = edges(&seen);
        let [first, .., last] = ways.as_slice() else { unreachable!() };
        let of = |(edge, from, to): &(String, String, String)| (edge.clone(), from.clone(), to.clone());
        for (session, node, way) in [("s1", "one-more", of(first)), ("s2", "another", of(last))] {
            let operations = insert(node, (&way.0, &way.1, &way.2));
            data(&stage(&house, session, operations, &seen["revisions"]).await);
        }
        data(&apply(&house, "cs-1").await);
        let applied = apply(&house, "cs-2").await;
        assert_eq!(data(&applied)["changeSetId"], json!("cs-2"));
        let package = Package::read(files(&house).await);
        let errors: Vec<_> =
            validate(&package).into_iter().filter(|f| f.severity == toolhost_builder::Severity::Error).collect();
        assert_eq!(errors, []);
        let flow = package.workflow(FLOW).unwrap();
        assert!(flow.node("one-more").is_some() && flow.node("another").is_some());
        assert_eq!(flow.edges.len(), ways.len() + 2);
        // The first one goes from below the second, which stays.
        data(&person(&house, "builder.change.undo", json!({"moment": 2})).await);
        let package = Package::read(files(&house).await);
        let flow = package.workflow(FLOW).unwrap();
        assert!(flow.node("one-more").is_none() && flow.node("another").is_some());
        assert_eq!(flow.edges.len(), ways.len() + 1);
        data(&person(&house, "builder.change.undo", json!({"moment": 3})).await);
        assert_eq!(files(&house).await, sample());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_an_edit_is_staged_told_shown_and_applied_with_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let seen = read(&house, "s1").await;
        let operations = json!([of_flow(json!({"nodes": [{"id": STEP, "agentId": "writer"}]}))]);
        let staged = data(&stage(&house, "s1", operations.clone(), &seen["revisions"]).await).clone();
        let step = format!("step:{FLOW}/{STEP}");
        assert_eq!(staged["objects"], json!([format!("workflow:{FLOW}"), step]), "{staged}");
        assert_eq!(staged["implied"], json!([{"object": step, "says": "`agentId` is `writer`, as its node says"}]));
        // An answer that was lost is asked for again.
        let again = data(&stage(&house, "s1", operations, &seen["revisions"]).await).clone();
        assert_eq!((&again["changeSetId"], &again["objects"]), (&staged["changeSetId"], &staged["objects"]));
        let report = in_session(&house, "s1", "builder.change.validate", json!({"changeSetId": "cs-1"})).await;
        assert_eq!(data(&report)["valid"], json!(true), "{report:?}");
        assert!(!report.data["warnings"].to_string().contains("STEP_AGENT_MISMATCH"), "{report:?}");
        let preview = shelf_of(&house, house.project.id).preview(1).await.unwrap();
        assert_eq!(preview.diff.len(), 2);
        data(&apply(&house, "cs-1").await);
        let package = Package::read(files(&house).await);
        let document = package.workflow(FLOW).unwrap().step(STEP).unwrap().document.clone().unwrap();
        assert_eq!(document.field("agentId"), Some("writer"));
    }
}

const TOKEN: &str = "ghp_0123456789abcdef0123456789abcdef0123";

#[tokio::test(flavor = "multi_thread")]
async fn a_passage_beside_a_secret_is_changed_and_the_secret_stays() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut all = files(&house).await;
        all.insert(
            "assets/api.md".to_owned(),
            format!("Call it with Bearer {TOKEN} (fake).\nBe short.\n").into_bytes(),
        );
        shelf_of(&house, house.project.id).import(&Package::read(all), true, Size::default()).await.unwrap();
        let shown = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        assert!(data(&shown)["content"].as_str().unwrap().contains("[redacted]"));
        let edit = |find: &str, replace: &str| {
            json!([{
                "op": "upsert", "targetType": "asset", "target": {"path": "assets/api.md"},
                "payload": {"textEdits": [{"find": find, "replace": replace}]},
            }])
        };
        let masked =
            stage(&house, "s1", edit("Bearer [redacted]", "Bearer x[redacted]"), &shown.data["revisions"]).await;
        let details = masked.error.as_ref().unwrap().details.as_ref().unwrap();
        assert_eq!(details["findings"][0]["code"], "SECRET_UNCOVERED", "{details}");
        let (find, replace) =
            ("it with Bearer [redacted] (fake).\nBe short.", "it with Bearer [redacted] (fake).\nBe brief.");
        data(&stage(&house, "s1", edit(find, replace), &shown.data["revisions"]).await);
        data(&apply(&house, "cs-1").await);
        let expected = format!("Call it with Bearer {TOKEN} (fake).\nBe brief.\n");
        assert_eq!(files(&house).await["assets/api.md"], expected.as_bytes());
        let shown = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        data(&stage(&house, "s1", edit(" with Bearer [redacted]", ""), &shown.data["revisions"]).await);
        let report = in_session(&house, "s1", "builder.change.validate", json!({})).await;
        assert!(data(&report)["warnings"].to_string().contains("loses"), "that it goes is told: {report:?}");
        data(&apply(&house, "cs-2").await);
        assert_eq!(files(&house).await["assets/api.md"], b"Call it (fake).\nBe brief.\n");
    }
}

/// What a session wrote itself, and a person applied, is nobody else's change, whatever revision the session names.
#[tokio::test(flavor = "multi_thread")]
async fn a_passage_of_ones_own_is_changed_again_after_it_was_applied() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut all = files(&house).await;
        all.insert("assets/api.md".to_owned(), b"Be short.\n".to_vec());
        shelf_of(&house, house.project.id).import(&Package::read(all), true, Size::default()).await.unwrap();
        let shown = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        for (n, (find, replace)) in [("short", "brief"), ("brief", "terse")].into_iter().enumerate() {
            let operations = json!([{
                "op": "upsert", "targetType": "asset", "target": {"path": "assets/api.md"},
                "payload": {"textEdits": [{"find": find, "replace": replace}]},
            }]);
            data(&stage(&house, "s1", operations, &shown.data["revisions"]).await);
            data(&apply(&house, &format!("cs-{}", n + 1)).await);
        }
        assert_eq!(files(&house).await["assets/api.md"], b"Be terse.\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_not_found_by_guessing_and_no_edit_brings_it_to_light() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut all = files(&house).await;
        let text = format!("Call it with {TOKEN} (fake).\nDB_PASSWORD=correcthorse\n");
        all.insert("assets/api.md".to_owned(), text.into_bytes());
        shelf_of(&house, house.project.id).import(&Package::read(all), true, Size::default()).await.unwrap();
        let shown = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        let revisions = data(&shown)["revisions"].clone();
        let edit = |find: &str, replace: &str| {
            json!([{
                "op": "upsert", "targetType": "asset", "target": {"path": "assets/api.md"},
                "payload": {"textEdits": [{"find": find, "replace": replace}]},
            }])
        };
        // What the answer says of a guess is the same for a right one and a wrong one.
        let mut said = Vec::new();
        for guess in ["with ghp_0", "with ghp_1", "GHP_0123456789abcdef", "=correct", "=wronged", "orse\n"] {
            let refused = stage(&house, "s1", edit(guess, "x"), &revisions).await;
            let details = refused.error.as_ref().unwrap().details.as_ref().unwrap().to_string();
            assert!(!details.contains("line 1 has \\\"ghp") && !details.contains("correcthorse"), "{details}");
            said.push(details.replace(&guess.replace('\n', "\\n"), "GUESS"));
        }
        assert_eq!((&said[0], &said[3]), (&said[1], &said[4]));
        // What made it a secret to the eye of a read stays beside it.
        for (find, replace) in [
            ("Call it with ", "Call it with x"),
            ("DB_PASSWORD", "DB_NAME"),
            ("DB_PASSWORD=", "DB_PASSWORD=x"),
            (" (fake)", "x (fake)"),
        ] {
            let refused = stage(&house, "s1", edit(find, replace), &revisions).await;
            let details = refused.error.as_ref().unwrap().details.as_ref().unwrap();
            assert_eq!(details["findings"][0]["code"], "SECRET_UNCOVERED", "{details}");
        }
        data(&stage(&house, "s1", edit("Call it with ", "Never call it with "), &revisions).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_set_adds_is_told_and_one_that_it_moves_is_not() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut all = files(&house).await;
        all.insert("assets/api.md".to_owned(), format!("Call it with {TOKEN} (fake).\n").into_bytes());
        shelf_of(&house, house.project.id).import(&Package::read(all), true, Size::default()).await.unwrap();
        let codes = async |session: &str, operations: Value, more: Value| {
            let revisions = in_session(&house, session, "builder.asset.read", json!({"path": "assets/api.md"})).await;
            let mut set = small(operations, &revisions.data["revisions"]);
            set["changeSet"]["extensions"] = more;
            data(&in_session(&house, session, "builder.change.stage", set).await);
            let validated = in_session(&house, session, "builder.change.validate", json!({})).await;
            let warnings = data(&validated)["warnings"].as_array().unwrap().clone();
            let added = warnings.iter().filter(|warning| warning["code"] == "SECRET_ADDED");
            let place =
                |added: &Value| format!("{}:{}:{}", added["file"].as_str().unwrap(), added["line"], added["column"]);
            added.map(place).collect::<Vec<_>>()
        };
        let new = |content: &str| {
            let target = json!({"path": "assets/new.md"});
            json!([{"op": "upsert", "targetType": "asset", "target": target, "payload": {"content": content}}])
        };
        let two = "# Access\n\npassword: hunter22hunter\n\ntoken: hunter23hunter24\n";
        let mut added = codes("s1", new(two), json!({})).await;
        added.sort();
        assert_eq!(added, ["assets/new.md:3:11", "assets/new.md:5:8"]);
        assert_eq!(codes("s2", new("The password is in the vault.\n"), json!({})).await, Vec::<String>::new());
        let renames = json!({"renames": [{"from": "asset:assets/api.md", "to": "asset:assets/moved.md"}]});
        let renamed = json!([
            {"op": "upsert", "targetType": "asset", "target": {"path": "assets/moved.md"}, "payload": {}}]);
        assert_eq!(codes("s3", renamed, renames).await, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_looks_like_a_mask_is_not_written_over_a_secret_and_one_that_goes_is_told() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let mut all = files(&house).await;
        all.insert("assets/api.md".to_owned(), format!("Call it with {TOKEN} (fake).\nBe short.\n").into_bytes());
        shelf_of(&house, house.project.id).import(&Package::read(all), true, Size::default()).await.unwrap();
        let whole = |content: String| {
            let target = json!({"path": "assets/api.md"});
            json!([{"op": "upsert", "targetType": "asset", "target": target, "payload": {"content": content}}])
        };
        let shown = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/api.md"})).await;
        let revisions = data(&shown)["revisions"].clone();
        for mask in ["[redacted]", "***", "<REDACTED>", "ghp_..."] {
            let refused =
                stage(&house, "s1", whole(format!("Call it with {mask} (fake).\nBe brief.\n")), &revisions).await;
            let details = refused.error.as_ref().unwrap().details.as_ref().unwrap();
            assert_eq!(details["findings"][0]["code"], "REDACTED_WRITTEN_BACK", "{mask}: {details}");
        }
        data(&stage(&house, "s1", whole("Call it with $TOKEN.\n".to_owned()), &revisions).await);
        let report = in_session(&house, "s1", "builder.change.validate", json!({})).await;
        let warnings = data(&report)["warnings"].as_array().unwrap();
        let removed = warnings.iter().find(|warning| warning["code"] == "SECRET_REMOVED");
        assert_eq!(removed.unwrap()["file"], "assets/api.md", "{report:?}");
    }
}

/// A package of many steps, one after the other.
fn long(steps: usize) -> Files {
    let name = |n: usize| format!("step-{n:03}");
    let kind = |n: usize| if n + 1 == steps { "end" } else { "step" };
    let nodes: Vec<Value> =
        (0..steps).map(|n| json!({"id": name(n), "type": kind(n), "file": format!("steps/{}.md", name(n))})).collect();
    let edges: Vec<Value> = (1..steps)
        .map(|n| json!({"id": format!("e{n}"), "from": name(n - 1), "to": name(n), "label": "next"}))
        .collect();
    let graph = json!({"schemaVersion": "1.1", "entryNodeId": name(0), "nodes": nodes, "edges": edges});
    let mut files = Files::new();
    let mut put = |path: &str, text: String| drop(files.insert(path.to_owned(), text.into_bytes()));
    put("workflow.graph.json", format!("{graph:#}\n"));
    let manifest = json!({
        "schemaVersion": "1.1", "name": FLOW, "version": "1.0.0",
        "entry": {"workflow": "workflow.md", "graph": "workflow.graph.json", "agents": "agents.json"},
        "workflows": [{"id": FLOW, "workflow": "workflow.md", "graph": "workflow.graph.json"}],
    });
    put("bmad.json", format!("{manifest:#}\n"));
    let agent = json!({
        "id": "ada",
        "metadata": {"name": "Ada", "title": "Writer", "icon": "A"},
        "persona": {"role": "writes", "identity": "a writer", "communication_style": "short", "principles": "true"},
    });
    put("agents.json", json!({"schemaVersion": "1.1", "agents": [agent]}).to_string());
    let state = format!("schemaVersion: \"1.1\"\nworkflowType: long\nstepsCompleted: []\ncurrentNodeId: {}\n", name(0));
    put("workflow.md", format!("---\n{state}---\n\n# Long\n"));
    for n in 0..steps {
        let front = format!("schemaVersion: \"1.1\"\nnodeId: {}\ntype: {}\n", name(n), kind(n));
        let body = "## Goal\n\nSay it.\n\n## Instructions\n\n1. Say.\n\n## Completion (Document-as-State)\n\nSaid.\n";
        put(&format!("steps/{}.md", name(n)), format!("---\n{front}---\n\n{body}"));
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_more_among_three_hundred_costs_five_hundred_tokens_at_most() {
    for engine in engines() {
        let house = engine.house().await;
        let shelf = shelf_of(&house, house.project.id);
        shelf.import(&Package::read(long(300)), false, Size::default()).await.unwrap();
        let seen = read(&house, "s1").await;
        let operations = insert("check", ("e150", "step-149", "step-150"));
        let arguments = small(operations, &json!({"workflowRevision": seen["revisions"]["workflowRevision"]}));
        let tokens = arguments.to_string().len() / CHARS_PER_TOKEN;
        let whole = seen["graph_json"].to_string().len() / CHARS_PER_TOKEN;
        assert!(tokens <= 500 && whole > 9_000, "{tokens} tokens, and {whole} of the graph as a whole");
        data(&in_session(&house, "s1", "builder.change.stage", arguments).await);
        data(&apply(&house, "cs-1").await);
        let package = Package::read(files(&house).await);
        assert_eq!(package.workflow(FLOW).unwrap().nodes.len(), 301);
        assert!(validate(&package).iter().all(|finding| finding.severity != toolhost_builder::Severity::Error));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_can_be_validated_as_it_is_staged() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let seen = read(&house, "s1").await;
        let put = |agent: &str| json!([of_flow(json!({"nodes": [{"id": STEP, "agentId": agent}]}))]);
        for (agent, is_valid) in [("writer", true), ("nobody", false)] {
            let mut arguments = small(put(agent), &seen["revisions"]);
            arguments["validate"] = json!(true);
            arguments["changeSet"]["extensions"] = json!({"supersedes": "cs-1"});
            if is_valid {
                arguments["changeSet"].as_object_mut().unwrap().remove("extensions");
            }
            let staged = in_session(&house, "s1", "builder.change.stage", arguments).await;
            let report = &data(&staged)["validation"];
            assert_eq!(report["valid"], json!(is_valid), "{staged:?}");
            assert_eq!(staged.data["status"], if is_valid { "validated" } else { "staged" });
            let id = json!({ "changeSetId": staged.data["changeSetId"] });
            let again = in_session(&house, "s1", "builder.change.validate", id).await;
            // The same report, without what the answer says of the set already and without empty lists.
            for field in ["valid", "schemaFailed", "errors", "warnings"] {
                let told = report.get(field).cloned().unwrap_or_else(|| json!([]));
                assert_eq!(data(&again)[field], told, "{field}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_answered_with_the_names_that_are() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        for (tool, arguments, meant) in [
            ("builder.workflow.read", json!({"workflowId": "research-reports"}), FLOW),
            ("builder.step.read", json!({"workflowId": FLOW, "nodeId": "check-claim"}), STEP),
            ("builder.step.read", json!({"workflowId": "reserch-report", "nodeId": STEP}), FLOW),
            ("builder.agent.read", json!({"agentId": "critik"}), "critic"),
            ("builder.asset.read", json!({"path": "assets/style_guide.md"}), "assets/style-guide.md"),
            (
                "builder.context.get",
                json!({"targetType": "step", "targetId": "drafts", "mode": "optimize", "workflowId": FLOW}),
                "draft",
            ),
        ] {
            let outcome = in_session(&house, "s1", tool, arguments).await;
            let error = outcome.error.as_ref().unwrap();
            assert_eq!(error.kind.as_str(), "not_found", "{outcome:?}");
            assert!(error.message.contains(&format!("did you mean `{meant}`")), "{outcome:?}");
        }
        // What the session has staged is there for it.
        let made = json!([{
            "op": "upsert", "targetType": "asset", "target": {"path": "assets/glossary.md"}, "payload": {"content": "G\n"},
        }]);
        data(&stage(&house, "s1", made, &json!({})).await);
        let near = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/glosary.md"})).await;
        assert!(near.error.unwrap().message.contains("assets/glossary.md"));
        let other = in_session(&house, "s2", "builder.asset.read", json!({"path": "assets/glosary.md"})).await;
        assert!(!other.error.unwrap().message.contains("assets/glossary.md"), "nobody else sees it");
    }
}
