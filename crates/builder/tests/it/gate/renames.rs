//! Edits of contract 1.1 that reach further than they say, through the gate: renames, and what a change implies.

use serde_json::{Value, json};
use toolhost_builder::Package;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, STEP, apply, data, files, house_with_sample, in_session, person, refused};

fn small(operations: Value, revisions: &Value) -> Value {
    json!({"validate": true, "changeSet": {
        "schemaVersion": "1.1", "targetType": "workflow", "mode": "optimize",
        "operations": operations, "revisions": revisions,
    }})
}

fn of_step(payload: Value) -> Value {
    json!([{"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": STEP}, "payload": payload}])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_set_implies_is_begun_where_the_session_read() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        let title = json!({"frontMatter": {"title": "Second look"}});
        let staged =
            in_session(&house, "s1", "builder.change.stage", small(of_step(title), &read.data["revisions"])).await;
        assert_eq!(data(&staged)["objects"], json!([format!("workflow:{FLOW}"), format!("step:{FLOW}/{STEP}")]));
        let warned = staged.data["validation"]["warnings"].as_array().unwrap().clone();
        let codes: Vec<&str> = warned.iter().map(|found| found["code"].as_str().unwrap()).collect();
        assert_eq!(codes, ["RISK_CROSS_OBJECT"], "{warned:#?}");
        let applied = apply(&house, "cs-1").await;
        assert_eq!(data(&applied)["merged"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_chosen_takes_what_it_implies_with_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = in_session(&house, "s1", "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        let asset = in_session(&house, "s1", "builder.asset.read", json!({"path": "assets/style-guide.md"})).await;
        let mut revisions = data(&read)["revisions"].clone();
        revisions["assetsRevision"] = data(&asset)["revisions"]["assetsRevision"].clone();
        let title = |node: &str| {
            json!({"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": node},
                "payload": {"frontMatter": {"title": format!("{node} again")}}})
        };
        let note = json!({"op": "upsert", "targetType": "asset", "target": {"path": "assets/note.md"},
            "payload": {"content": "# Note\n"}});
        let passage = json!({"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": "scope"},
            "payload": {"textEdits": [{"find": "## Goal", "replace": "## Goal\n\nFirst of all:"}]}});
        let operations = json!([note, title(STEP), title("plan"), passage]);
        data(&in_session(&house, "s1", "builder.change.stage", small(operations, &revisions)).await);
        let only = |operations: Value| {
            let wish = json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply", "operations": operations});
            person(&house, "builder.change.apply", wish)
        };
        let before = files(&house).await;
        let one = only(json!([1])).await;
        assert_eq!(refused(&one).1, "validation");
        let message = &one.error.as_ref().unwrap().message;
        let expected =
            format!("operations 1 and 2 of cs-1 say one thing in two places, the graph and a step (step:{FLOW}/plan)");
        assert!(message.contains(&expected), "{message}");
        assert_eq!(files(&house).await, before);
        data(&only(json!([3])).await);
        data(&only(json!([1, 2])).await);
        let package = Package::read(files(&house).await);
        let flow = package.workflow(FLOW).unwrap();
        assert!(flow.step("scope").unwrap().document.as_ref().unwrap().body().contains("First of all:"));
        for node in [STEP, "plan"] {
            let said = json!(format!("{node} again"));
            assert_eq!(flow.node(node).unwrap().value["title"], said, "{engine}: what the step says, its node does");
            assert_eq!(flow.step(node).unwrap().document.as_ref().unwrap().front()["title"], said);
        }
        assert!(!package.has_asset("assets/note.md"));
        data(&only(json!([0])).await);
        assert!(Package::read(files(&house).await).has_asset("assets/note.md"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_an_asset_and_an_agent_are_renamed_by_their_names_alone() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let cases = [
            (
                "builder.step.read",
                json!({"workflowId": FLOW, "nodeId": STEP}),
                format!("step:{FLOW}/{STEP}"),
                format!("step:{FLOW}/check-all"),
            ),
            (
                "builder.asset.read",
                json!({"path": "assets/style-guide.md"}),
                "asset:assets/style-guide.md".to_owned(),
                "asset:assets/voice.md".to_owned(),
            ),
            ("builder.agent.read", json!({"agentId": "critic"}), "agent:critic".to_owned(), "agent:checker".to_owned()),
        ];
        for (n, (tool, arguments, from, to)) in cases.iter().enumerate() {
            let session = format!("s{n}");
            let read = in_session(&house, &session, tool, arguments.clone()).await;
            let mut set = small(json!([]), &data(&read)["revisions"]);
            set["changeSet"]["extensions"] = json!({"renames": [{"from": from, "to": to}]});
            let staged = in_session(&house, &session, "builder.change.stage", set.clone()).await;
            assert_eq!(data(&staged)["validation"]["valid"], json!(true), "{staged:?}");
            let warned = staged.data["validation"]["warnings"].to_string();
            assert!(!warned.contains("REVISION"), "{warned}");
            assert!(staged.data["implied"].as_array().unwrap().len() > 2, "{:#}", staged.data["implied"]);
            let id = &staged.data["changeSetId"];
            let part = json!({"changeSetId": id, "confirmSource": "ui_manual_apply", "confirmDeletes": [from], "operations": [0]});
            let refused = person(&house, "builder.change.apply", part).await;
            assert!(refused.error.as_ref().unwrap().message.contains("a rename is made as a whole"), "{refused:?}");
            let again = in_session(&house, &session, "builder.change.stage", set).await;
            assert_eq!(data(&again)["changeSetId"], staged.data["changeSetId"], "the same set is kept once");
            let arguments = json!({
                "changeSetId": staged.data["changeSetId"], "confirmSource": "ui_manual_apply", "confirmDeletes": [from],
            });
            let applied = person(&house, "builder.change.apply", arguments).await;
            assert_eq!(data(&applied)["merged"], json!([]), "{from}");
            let package = Package::read(files(&house).await);
            assert_eq!(toolhost_builder::validate(&package), [], "{from}");
        }
        let now = files(&house).await;
        assert!(
            now.contains_key("assets/voice.md") && now.keys().any(|path| path.ends_with("/check-all.md")),
            "{:?}",
            now.keys()
        );
        let names = ["\"check-claims\"", "assets/style-guide.md", "\"critic\""];
        let left =
            now.iter().filter(|(_, bytes)| names.iter().any(|name| String::from_utf8_lossy(bytes).contains(name)));
        assert_eq!(left.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passage_that_went_with_a_superseded_set_is_told_as_such() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = json!({"workflowId": FLOW, "nodeId": STEP});
        let edit = |find: &str, replace: &str| of_step(json!({"textEdits": [{"find": find, "replace": replace}]}));
        let seen = in_session(&house, "s1", "builder.step.read", read.clone()).await;
        let first = small(edit("Copy each claim", "Write down each claim"), &seen.data["revisions"]);
        data(&in_session(&house, "s1", "builder.change.stage", first).await);
        let seen = in_session(&house, "s1", "builder.step.read", read).await;
        for (find, is_told) in [("Write down each claim", true), ("Nobody wrote this", false)] {
            let mut second = small(edit(find, "Note each claim"), &seen.data["revisions"]);
            second["changeSet"]["extensions"] = json!({"supersedes": "cs-1"});
            let outcome = in_session(&house, "s1", "builder.change.stage", second).await;
            assert_eq!(refused(&outcome).1, "validation");
            let details = format!("{:?}", outcome.error);
            let told = details.contains("this set is made on the package without cs-1, which it supersedes");
            assert_eq!(told, is_told, "{details}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_somebody_else_gave_is_told_of_where_an_own_change_hides_it() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let read = json!({"workflowId": FLOW, "nodeId": STEP});
        let seen = in_session(&house, "s1", "builder.step.read", read.clone()).await;
        let title = json!({"frontMatter": {"title": "Second look"}});
        let staged = small(of_step(title.clone()), &seen.data["revisions"]);
        data(&in_session(&house, "s1", "builder.change.stage", staged).await);
        let theirs = in_session(&house, "s2", "builder.step.read", read).await;
        let mut renamed = small(json!([]), &theirs.data["revisions"]);
        let (from, to) = (format!("step:{FLOW}/{STEP}"), format!("step:{FLOW}/check-all"));
        renamed["changeSet"]["extensions"] = json!({"renames": [{"from": from, "to": to}]});
        data(&in_session(&house, "s2", "builder.change.stage", renamed).await);
        let wish = json!({"changeSetId": "cs-2", "confirmSource": "ui_manual_apply", "confirmDeletes": [from]});
        data(&person(&house, "builder.change.apply", wish).await);
        let on_new = json!([{"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": "check-all"},
            "payload": title}]);
        let mut again = small(on_new, &seen.data["revisions"]);
        let outcome = in_session(&house, "s1", "builder.change.stage", again.clone()).await;
        let error = outcome.error.as_ref().unwrap();
        let told = format!("{error:?}");
        assert!(told.contains("discard the set that changed it, or stage this one in its place"), "{engine}: {told}");
        // What the hint says is what works.
        again["changeSet"]["extensions"] = json!({"supersedes": "cs-1"});
        let fresh =
            in_session(&house, "s3", "builder.step.read", json!({"workflowId": FLOW, "nodeId": "check-all"})).await;
        again["changeSet"]["revisions"] = fresh.data["revisions"].clone();
        let staged = in_session(&house, "s1", "builder.change.stage", again).await;
        assert_eq!(data(&staged)["validation"]["valid"], json!(true), "{staged:?}");
    }
}

/// The revisions and the rest of what the session reads of the workflow now.
async fn revisions(house: &toolhost_testkit::House) -> Value {
    let wish = json!({"targetType": "workflow", "targetId": FLOW, "mode": "optimize"});
    let read = in_session(house, "s1", "builder.context.get", wish).await;
    data(&read)["revision_info"]["revisions"].clone()
}

async fn staged_now(house: &toolhost_testkit::House, operations: Value, extensions: Value) -> Value {
    let mut whole = small(operations, &revisions(house).await);
    whole["changeSet"]["extensions"] = extensions;
    data(&in_session(house, "s1", "builder.change.stage", whole).await).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_reaches_what_an_earlier_set_of_the_session_has_made() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let new = json!([
            {"op": "upsert", "targetType": "asset", "target": {"path": "assets/unused.md"}, "payload": {"content": "x\n"}}
        ]);
        staged_now(&house, new, json!({})).await;
        apply(&house, "cs-1").await;
        let node = json!([
            {"op": "upsert", "targetType": "workflow", "target": {"workflowId": FLOW}, "payload": {
                "nodes": [{"id": "mid", "title": "Mid", "agentId": "writer"}],
                "edges": [{"from": "summary", "to": "mid", "label": "l"}, {"from": "mid", "to": "deliver", "label": "k"}],
                "deleteEdges": [{"from": "summary", "to": "deliver"}],
            }},
            {"op": "upsert", "targetType": "step", "target": {"workflowId": FLOW, "nodeId": "mid"},
                "payload": {"step_markdown": "## Goal\n\nBy assets/unused.md.\n\n## Instructions\n\n1. Do it.\n\n## Completion\n\nIt is done.\n"}},
        ]);
        let staged = staged_now(&house, node, json!({})).await;
        assert_eq!(staged["validation"]["valid"], true, "{staged:#}");
        let rename = json!({"renames": [{"from": "asset:assets/unused.md", "to": "asset:assets/used.md"}]});
        let staged = staged_now(&house, json!([]), rename).await;
        assert_eq!(staged["basedOn"], json!(["cs-2"]), "{staged:#}");
        assert!(staged["objects"].as_array().unwrap().contains(&json!(format!("step:{FLOW}/mid"))), "{staged:#}");
        let wish = json!({"changeSetId": "cs-3", "confirmSource": "ui_manual_apply",
            "confirmDeletes": ["asset:assets/unused.md"]});
        data(&person(&house, "builder.change.apply", wish).await);
        let now = files(&house).await;
        assert!(String::from_utf8_lossy(&now["steps/mid.md"]).contains("By assets/used.md."), "{:?}", now.keys());
        let found = toolhost_builder::validate(&Package::read(now));
        assert!(found.iter().all(|one| one.severity != toolhost_builder::Severity::Error), "{found:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_is_seen_beside_what_the_session_has_deleted_and_what_it_refers_to() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let asset = |path: &str, text: &str| json!({"op": "upsert", "targetType": "asset", "target": {"path": path}, "payload": {"content": text}});
        let delete = json!([{"op": "delete", "targetType": "asset", "target": {"path": "assets/logo.txt"}}]);
        staged_now(&house, json!([asset("assets/logo.txt", "x\n")]), json!({})).await;
        apply(&house, "cs-1").await;
        staged_now(&house, json!([asset("assets/one.md", "See assets/logo.txt.\n")]), json!({})).await;
        let deleted = staged_now(&house, delete.clone(), json!({})).await;
        assert_eq!(
            (&deleted["basedOn"], &deleted["validation"]["valid"]),
            (&json!(["cs-2"]), &json!(false)),
            "{deleted:#}"
        );
        assert!(deleted["validation"].to_string().contains("assets/one.md"), "{deleted:#}");
        // The other way round: what is gone is not there for a later set.
        data(&in_session(&house, "s1", "builder.change.discard", json!({"changeSetId": "cs-2"})).await);
        let refers = staged_now(&house, json!([asset("assets/two.md", "See assets/logo.txt.\n")]), json!({})).await;
        assert_eq!(
            (&refers["basedOn"], &refers["validation"]["valid"]),
            (&json!(["cs-3"]), &json!(false)),
            "{refers:#}"
        );
        let told = refers["validation"].to_string();
        assert!(told.contains("ASSET_NOT_FOUND") && told.contains("assets/logo.txt"), "{refers:#}");
        // What does not meet them is as before.
        let alone = staged_now(&house, json!([asset("assets/three.md", "three\n")]), json!({})).await;
        assert_eq!((&alone["basedOn"], &alone["validation"]["valid"]), (&json!([]), &json!(true)), "{alone:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_edge_loses_and_what_goes_with_a_node_is_said() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let graph = |payload: Value| json!([{"op": "upsert", "targetType": "workflow", "target": {"workflowId": FLOW}, "payload": payload}]);
        let read = in_session(&house, "s1", "builder.workflow.read", json!({"workflowId": FLOW})).await;
        let edges = data(&read)["graph_json"]["edges"].as_array().unwrap().clone();
        let edge = edges.iter().find(|edge| edge["to"] == "deliver").unwrap();
        let (id, label) = (edge["id"].as_str().unwrap(), edge["label"].as_str().unwrap());
        let other = json!({"from": edge["from"], "to": "deliver", "label": "another way"});
        let staged = staged_now(&house, graph(json!({"edges": [other]})), json!({})).await;
        let implied = staged["implied"].to_string();
        assert!(implied.contains(&format!("this changes the edge `{id}`, whose `label` was `{label}`")), "{staged:#}");
        let mut moved = small(
            graph(json!({"edges": [{"id": id, "label": "on"}], "deleteNodes": ["deliver"]})),
            &revisions(&house).await,
        );
        moved["changeSet"]["extensions"] = json!({});
        let told = in_session(&house, "s1", "builder.change.stage", moved).await.text;
        assert!(told.contains(&format!("the edge `{id}` of `workflow:{FLOW}` goes with the node `deliver`")), "{told}");
        for (tool, arguments) in [
            ("builder.refs.find", json!({"locator": {"type": "id", "value": "summry"}})),
            ("builder.context.get", json!({"targetType": "step", "targetId": "summry", "mode": "optimize"})),
        ] {
            let told = in_session(&house, "s1", tool, arguments).await.text;
            assert!(told.contains("did you mean `summary`?"), "{tool}: {told}");
        }
    }
}
