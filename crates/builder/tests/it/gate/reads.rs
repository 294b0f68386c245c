//! The six reads of a workflow package: each acceptance criterion, decision and rule of the CrewAgent seed BAI-2.4, on both
//! engines.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use serde_json::{Map, Value, json};
use toolhost::{SEMANTIC_READ_TOOLS, execute_semantic_read_tool};
use toolhost_builder::envelope::{Mode, Request, Scope, build_initial_context_envelope};
use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package};
use toolhost_contract::CallerKind;
use toolhost_store::Role;
use toolhost_testkit::engines::{engines, next_door};
use toolhost_testkit::sample::{FLOW, STEP, call, house_with_sample, sample, shelf_of};

/// Made-up packages on SQLite; a tenth of them on PostgreSQL. `PROPTEST_CASES` asks for more.
const PACKAGES: u32 = 200;
const STEP_PATH: &str = "steps/check-claims.md";
const AGENT: &str = "critic";
const ASSET: &str = "assets/review-checklist.md";

fn each_read() -> Vec<(&'static str, Value)> {
    vec![
        (
            "builder.context.get",
            json!({"targetType": "step", "targetId": STEP, "mode": "optimize", "workflowId": FLOW}),
        ),
        ("builder.workflow.read", json!({"workflowId": FLOW})),
        ("builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})),
        ("builder.agent.read", json!({"agentId": AGENT})),
        ("builder.asset.read", json!({"path": ASSET})),
        ("builder.refs.find", json!({"locator": {"type": "id", "value": AGENT}})),
    ]
}

/// The same with each argument that names an object naming one that is not there.
fn each_missing() -> Vec<(&'static str, Value)> {
    vec![
        (
            "builder.context.get",
            json!({"targetType": "step", "targetId": "no-1", "mode": "optimize", "workflowId": FLOW}),
        ),
        (
            "builder.context.get",
            json!({"targetType": "step", "targetId": STEP, "mode": "optimize", "workflowId": "no-1"}),
        ),
        ("builder.context.get", json!({"targetType": "workflow", "targetId": "no-1", "mode": "optimize"})),
        ("builder.context.get", json!({"targetType": "agent", "targetId": "no-1", "mode": "optimize"})),
        ("builder.context.get", json!({"targetType": "asset", "targetId": "assets/no-1.md", "mode": "optimize"})),
        ("builder.workflow.read", json!({"workflowId": "no-1"})),
        ("builder.workflow.read", json!({"workflowId": 987})),
        ("builder.step.read", json!({"workflowId": FLOW, "nodeId": "no-1"})),
        ("builder.step.read", json!({"workflowId": FLOW, "stepPath": "steps/no-1.md"})),
        ("builder.step.read", json!({"workflowId": "no-1", "nodeId": STEP})),
        ("builder.agent.read", json!({"agentId": "no-1"})),
        ("builder.agent.read", json!({"agentId": AGENT, "workflowId": "no-1"})),
        ("builder.asset.read", json!({"path": "assets/no-1.md"})),
        ("builder.refs.find", json!({"locator": {"type": "id", "value": "no-1"}})),
        ("builder.refs.find", json!({"locator": {"type": "path", "value": "assets/no-1.md"}})),
    ]
}

fn is_sha256(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Rules: 000.1, 000.7, 000.27, 001.23.
#[tokio::test(flavor = "multi_thread")]
async fn ac_1_a_step_is_read_with_its_metadata_and_its_revision() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let by_node = call(&house, "builder.step.read", json!({"workflowId": FLOW, "nodeId": STEP})).await;
        assert!(by_node.ok, "{by_node:?}");
        let text = String::from_utf8(sample()[STEP_PATH].clone()).unwrap();
        assert_eq!(by_node.data["step_markdown"], text);
        assert_eq!(by_node.data["node_meta"]["agentId"], AGENT);
        assert_eq!(by_node.data["frontmatter"]["nodeId"], STEP);
        assert!(!by_node.data["adjacent_edges"].as_array().unwrap().is_empty());
        let revision = by_node.meta.revision.clone().unwrap();
        assert!(is_sha256(&json!(revision.target)) && is_sha256(&json!(revision.workflow)));
        assert_ne!(revision.target, revision.workflow);
        assert_eq!(by_node.meta.workflow_id, Some(1));
        // The number that the answer tells names the workflow as well, and a path the step.
        let by_path = call(&house, "builder.step.read", json!({"workflowId": 1, "stepPath": STEP_PATH})).await;
        assert_eq!((&by_path.data, &by_path.meta.revision), (&by_node.data, &by_node.meta.revision));
        assert!(by_node.text.contains("Copy each claim with its row number"));
    }
}

/// Rules: 000.2, 000.32.
#[tokio::test(flavor = "multi_thread")]
async fn ac_2_who_has_no_access_gets_a_permission_error_and_no_data() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let theirs = next_door(&house, "olga").await;
        let stranger = house.store.people().add_user("stranger").await.unwrap();
        let neighbour = house.store.people().add_user("olga").await.unwrap();
        for (tool, arguments) in each_read().into_iter().chain(each_missing()) {
            for user in [stranger, neighbour] {
                let mut request = house.request(tool, arguments.clone());
                "builder".clone_into(&mut request.caller.profile);
                request.scope.user_id = user;
                let outcome = house.run(request.clone()).await;
                let error = outcome.error.clone().unwrap();
                assert_eq!((error.code.as_str(), error.kind.as_str()), ("AI_TOOL_FORBIDDEN", "permission"), "{tool}");
                assert_eq!((&outcome.data, &outcome.meta.revision), (&Value::Null, &None));
                // Word for word the same as of a project that does not exist.
                request.scope.project_id = 999_999;
                let nowhere = house.run(request).await.error.unwrap();
                assert_eq!(
                    error.message.replace(&house.project.id.to_string(), "N"),
                    nowhere.message.replace("999999", "N")
                );
            }
            // Our user in a project that has no package, and is not theirs.
            let mut request = house.request(tool, arguments);
            "builder".clone_into(&mut request.caller.profile);
            request.scope.project_id = theirs;
            let outcome = house.run(request).await;
            assert_eq!(outcome.error.unwrap().kind.as_str(), "permission", "{tool}");
        }
    }
}

/// Rules: 000.3, 000.16, 001.23.
#[tokio::test(flavor = "multi_thread")]
async fn ac_3_every_answer_is_ok_data_error_meta() {
    let expected: BTreeSet<&str> = ["ok", "data", "error", "meta"].into();
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        for (tool, arguments) in each_read().into_iter().chain(each_missing()) {
            let outcome = serde_json::to_value(call(&house, tool, arguments).await).unwrap();
            let keys: BTreeSet<&str> = outcome.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, expected);
            let meta = &outcome["meta"];
            assert_eq!((&meta["tool"], &meta["allowWrite"]), (&json!(tool), &json!(false)));
            assert_eq!((&meta["sessionId"], &meta["userId"]), (&json!("s1"), &json!(1)));
            assert_eq!(meta["projectId"], house.project.id);
            assert_ne!(outcome["ok"], outcome["error"].is_object());
        }
    }
}

/// Rules: 000.6, 000.8, 000.9, 000.31, 000.33.
#[tokio::test(flavor = "multi_thread")]
async fn the_test_plan_every_tool_answers_valid_input_and_names_what_is_not_there() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        for (tool, arguments) in each_read() {
            let outcome = call(&house, tool, arguments).await;
            assert!(outcome.ok, "{tool}: {outcome:?}");
        }
        for (tool, arguments) in each_missing() {
            let error = call(&house, tool, arguments.clone()).await.error.unwrap();
            assert_eq!(error.kind.as_str(), "not_found", "{tool} {arguments}: {error:?}");
            assert!(error.message.contains("no-1") || error.message.contains("987"), "{}", error.message);
        }
    }
}

/// Rules: 000.4, 000.11, 000.12, 000.13, 000.18, 000.19.
#[tokio::test(flavor = "multi_thread")]
async fn decision_1_all_reads_pass_one_dispatcher_and_are_recorded() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let names: BTreeSet<&str> = each_read().iter().map(|(tool, _)| *tool).collect();
        assert_eq!(names, BTreeSet::from(SEMANTIC_READ_TOOLS));
        for (tool, arguments) in each_read() {
            let arguments = arguments.as_object().unwrap().clone();
            let (gate, project) = (&house.gate, house.project.id);
            let outcome = execute_semantic_read_tool(gate, 1, project, Some(1), Some("as_1"), tool, arguments).await;
            assert_eq!((&outcome["ok"], &outcome["meta"]["sessionId"]), (&json!(true), &json!("as_1")), "{outcome:#}");
            let rows = house.rows().await;
            let row = rows.iter().rev().find(|row| row["callId"] == outcome["meta"]["callId"]).unwrap();
            assert_eq!((&row["sessionId"], &row["userId"], &row["tool"]), (&json!("as_1"), &json!(1), &json!(tool)));
        }
    }
}

/// Rules: 000.16, 000.28, 001.46.
#[tokio::test(flavor = "multi_thread")]
async fn decision_4_the_dispatcher_runs_no_tool_that_writes() {
    let engine = engines().next().unwrap();
    let house = house_with_sample(&engine).await;
    let run = async |tool: &str| {
        let outcome = execute_semantic_read_tool(&house.gate, 1, house.project.id, None, None, tool, Map::new()).await;
        assert_eq!(outcome["ok"], false);
        outcome["error"]["code"].as_str().unwrap().to_owned()
    };
    for tool in
        ["builder.change.stage", "builder.change.validate", "builder.change.discard", "file.write", "bash", "no.tool"]
    {
        assert_eq!(run(tool).await, "AI_TOOL_NOT_ALLOWED", "{tool}");
    }
    assert_eq!(run("builder.change.apply").await, "AI_TOOL_FORBIDDEN");
}

/// Rules: 000.5, 000.14, 001.57.
#[tokio::test(flavor = "multi_thread")]
async fn decision_2_the_context_is_the_one_envelope() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let package = Package::read(sample());
        let there =
            [("workflow", FLOW), ("step", STEP), ("agent", AGENT), ("asset", ASSET)].map(|t| (t, Mode::Optimize));
        let new = [("workflow", "new"), ("step", "new"), ("agent", "new"), ("asset", "assets/new.md")];
        for ((kind, id), mode) in there.into_iter().chain(new.map(|target| (target, Mode::Create))) {
            let arguments = json!({"targetType": kind, "targetId": id, "mode": mode});
            let outcome = call(&house, "builder.context.get", arguments).await;
            assert!(outcome.ok, "{kind}: {outcome:?}");
            let tools = outcome.data["tool_capabilities"]["allowed"].clone();
            let tools: Vec<&str> = tools.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            assert!(!tools.contains(&"builder.change.apply"), "only what may be used is told");
            let request = Request {
                package: &package,
                target_type: serde_json::from_value(json!(kind)).unwrap(),
                target_id: id,
                mode,
                workflow_id: None,
                tools: &tools,
                scope: Scope { session_id: Some("s1"), user_id: Some(1), project_id: Some(house.project.id) },
            };
            assert_eq!(outcome.data, build_initial_context_envelope(&request).unwrap(), "{kind}");
            assert_eq!(outcome.data.as_object().unwrap().len(), 7);
        }
    }
}

/// Rules: 000.15, 001.22.
#[tokio::test(flavor = "multi_thread")]
async fn decision_3_authorisation_comes_before_any_look_at_the_package() {
    let engine = engines().next().unwrap();
    // These tools have no database at all: whoever reaches the package gets an internal error.
    let nowhere = toolhost_testkit::every_tool();
    let house = toolhost_testkit::HouseBuilder::new(nowhere).database(engine.url.clone()).build().await;
    let stranger = house.store.people().add_user("stranger").await.unwrap();
    for (tool, arguments) in each_read() {
        let mut request = house.request(tool, arguments);
        "builder".clone_into(&mut request.caller.profile);
        assert_eq!(house.run(request.clone()).await.error.unwrap().kind.as_str(), "internal");
        request.scope.user_id = stranger;
        assert_eq!(house.run(request).await.error.unwrap().kind.as_str(), "permission");
    }
}

/// Rules: 000.17, 000.28, 000.29, 000.30, 001.45, 001.48.
#[tokio::test(flavor = "multi_thread")]
async fn decision_5_codes_are_the_frozen_ones() {
    let engine = engines().next().unwrap();
    let house = house_with_sample(&engine).await;
    let code = async |tool: &str, arguments: Value| {
        let error = call(&house, tool, arguments).await.error.unwrap();
        (error.code.as_str(), error.kind.as_str())
    };
    for (kind, id) in [("workflow", "none"), ("step", "none"), ("agent", "nobody"), ("asset", "assets/none.md")] {
        let context = json!({"targetType": kind, "targetId": id, "mode": "optimize"});
        assert_eq!(code("builder.context.get", context).await, ("AI_CONTEXT_BUILD_ERROR", "not_found"), "{kind}");
        let within = json!({"targetType": kind, "targetId": id, "mode": "create", "workflowId": "none"});
        assert_eq!(code("builder.context.get", within).await.0, "AI_CONTEXT_BUILD_ERROR", "{kind}");
    }
    let named = json!({"targetType": "agent", "targetId": "a b", "mode": "create"});
    assert_eq!(code("builder.context.get", named).await, ("AI_CONTEXT_BUILD_ERROR", "validation"));
    // Reads of what is not there are no contexts.
    for (tool, arguments) in [
        ("builder.workflow.read", json!({"workflowId": "none"})),
        ("builder.step.read", json!({"workflowId": FLOW, "nodeId": "none"})),
        ("builder.agent.read", json!({"agentId": "nobody"})),
        ("builder.asset.read", json!({"path": "assets/none.md"})),
    ] {
        assert_eq!(code(tool, arguments).await, ("AI_TOOL_EXECUTION_ERROR", "not_found"), "{tool}");
    }
    assert_eq!(code("file.write", json!({"path": "a", "content": ""})).await.0, "AI_TOOL_NOT_ALLOWED");
    assert_eq!(code("builder.asset.read", json!({})).await, ("AI_TOOL_EXECUTION_ERROR", "validation"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_without_a_package_says_so() {
    for engine in engines() {
        let house = engine.house().await;
        for (tool, arguments) in each_read() {
            let error = call(&house, tool, arguments).await.error.unwrap();
            assert_eq!(error.kind.as_str(), "not_found", "{tool}: {error:?}");
            assert!(error.message.contains("no workflow package"), "{tool}: {}", error.message);
        }
    }
}

/// Rules: 000.10.
#[tokio::test(flavor = "multi_thread")]
async fn references_are_found_in_both_directions_as_in_the_whole_package() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let index = toolhost_builder::refs::Index::of(&Package::read(sample()));
        let ids = [FLOW, STEP, AGENT, "lead", "brief", "question", "research-report/scope"];
        let paths = [ASSET, STEP_PATH, "workflow.md", "bmad.json", "agents.json"];
        let asked = ids.iter().map(|id| ("id", *id)).chain(paths.iter().map(|path| ("path", *path)));
        for (kind, value) in asked {
            let locator = match kind {
                "id" => toolhost_builder::refs::Locator::Id(value.to_owned()),
                _ => toolhost_builder::refs::Locator::Path(value.to_owned()),
            };
            let expected = index.find(&locator);
            let found = call(&house, "builder.refs.find", json!({"locator": {"type": kind, "value": value}})).await;
            assert!(found.ok, "{value}: {found:?}");
            let sorted = |list: &Value| {
                let mut texts: Vec<String> = list.as_array().unwrap().iter().map(Value::to_string).collect();
                texts.sort();
                texts
            };
            for (direction, refs) in [("inbound", &expected.inbound), ("outbound", &expected.outbound)] {
                let refs = serde_json::to_value(refs).unwrap();
                assert_eq!(sorted(&found.data[direction]), sorted(&refs), "{direction} of {value}");
            }
            assert_eq!(found.data["truncated"], false);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_reads_an_editor_stages_and_applies_an_owner_imports() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let people = house.store.people();
        let (viewer, editor) = (people.add_user("vera").await.unwrap(), people.add_user("edda").await.unwrap());
        people.set_role(house.project.id, viewer, Role::Viewer).await.unwrap();
        people.set_role(house.project.id, editor, Role::Editor).await.unwrap();
        let stage = json!({"changeSet": {
            "schemaVersion": "1.0", "targetType": "asset", "mode": "create",
            "operations": [{ "op": "upsert", "targetType": "asset", "target": { "path": "assets/a.md" }, "payload": { "content": "a" } }],
        }});
        let apply = json!({"changeSetId": "cs-1", "confirmSource": "ui_manual_apply"});
        let may = async |user: i64, kind: CallerKind, tool: &str, arguments: &Value| {
            let mut request = house.request(tool, arguments.clone());
            "all".clone_into(&mut request.caller.profile);
            (request.scope.user_id, request.caller.kind) = (user, kind);
            let outcome = house.run(request).await;
            outcome.error.is_none_or(|error| error.kind.as_str() != "permission")
        };
        let read = json!({"agentId": AGENT});
        assert!(may(viewer, CallerKind::Model, "builder.agent.read", &read).await);
        assert!(!may(viewer, CallerKind::Model, "builder.change.stage", &stage).await);
        assert!(!may(viewer, CallerKind::Person, "builder.change.apply", &apply).await);
        assert!(may(editor, CallerKind::Model, "builder.change.stage", &stage).await);
        assert!(may(editor, CallerKind::Person, "builder.change.apply", &apply).await);
        assert!(!may(editor, CallerKind::Person, "builder.package.import", &json!({"path": "pkg"})).await);
        assert!(may(1, CallerKind::Person, "builder.package.import", &json!({"path": "pkg"})).await);
        assert!(!may(1, CallerKind::Model, "builder.package.import", &json!({"path": "pkg"})).await);
    }
}

/// The sample under other names: nothing in it is called as anything in ours.
fn their_sample() -> Files {
    let mut files = Files::new();
    for (path, bytes) in sample() {
        let text = String::from_utf8(bytes).unwrap();
        let names = [(FLOW, "zebra-flow"), (STEP, "zebra-step"), (ASSET, "assets/zebra.md")];
        let agent = [("\"critic\"", "\"zebra-agent\""), (": critic\n", ": zebra-agent\n")];
        let text = names.iter().chain(&agent).fold(text, |text, (ours, theirs)| text.replace(ours, theirs));
        let path = path.replace(STEP, "zebra-step").replace(ASSET, "assets/zebra.md");
        files.insert(path, text.into_bytes());
    }
    files
}

/// Rules: 000.32.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_other_project_answers_as_what_is_nowhere() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let theirs = next_door(&house, "olga").await;
        shelf_of(&house, theirs).import(&Package::read(their_sample()), false, Size::default()).await.unwrap();
        // Who is in both projects works in one at a time, too.
        let both = house.store.people().add_user("both").await.unwrap();
        for project in [house.project.id, theirs] {
            house.store.people().set_role(project, both, Role::Editor).await.unwrap();
        }
        let set = |target: Value| {
            json!({"changeSet": {
                "schemaVersion": "1.0", "targetType": "step", "mode": "optimize",
                "operations": [{ "op": "delete", "targetType": target["kind"], "target": target["target"] }],
                "revisions": { "workflowRevision": "0".repeat(64), "agentsRevision": "0".repeat(64), "assetsRevision": "0".repeat(64) },
            }})
        };
        let names = [
            ("zebra-flow", "nowhere-flow"),
            ("zebra-step", "nowhere-step"),
            ("zebra-agent", "nowhere-agent"),
            ("assets/zebra.md", "assets/nowhere.md"),
        ];
        let mut tried = 0;
        let mut calls = vec![
            ("builder.change.validate", json!({"changeSetId": "cs-1"})),
            ("builder.change.discard", json!({"changeSetId": "cs-1"})),
        ];
        calls.extend(each_missing().into_iter().map(|(tool, arguments)| {
            let text = arguments
                .to_string()
                .replace("assets/no-1.md", "assets/zebra.md")
                .replace("steps/no-1.md", "steps/zebra-step.md");
            let text = match arguments.to_string() {
                whole if whole.contains("agent") => text.replace("no-1", "zebra-agent"),
                whole if whole.contains("\"workflowId\":\"no-1\"") || whole.contains("workflow\"") => {
                    text.replace("no-1", "zebra-flow")
                }
                _ => text.replace("no-1", "zebra-step"),
            };
            (tool, serde_json::from_str(&text).unwrap())
        }));
        for (kind, target) in [
            ("workflow", json!({"workflowId": "zebra-flow"})),
            ("step", json!({"workflowId": "zebra-flow", "nodeId": "zebra-step"})),
            ("agent", json!({"agentId": "zebra-agent"})),
            ("asset", json!({"path": "assets/zebra.md"})),
        ] {
            calls.push(("builder.change.stage", set(json!({"kind": kind, "target": target}))));
        }
        // Theirs, in their project, by whoever is there.
        let mut staging = house.request("builder.change.stage", json!({"changeSet": {
            "schemaVersion": "1.0", "targetType": "asset", "mode": "create", "operations": [{
                "op": "upsert", "targetType": "asset", "target": {"path": "assets/new.md"}, "payload": {"content": "zebra"},
            }],
        }}));
        (staging.scope.user_id, staging.scope.project_id) = (both, theirs);
        assert!(house.run(staging).await.ok);
        for (tool, arguments) in calls {
            let nowhere = names.iter().fold(arguments.to_string(), |text, (theirs, none)| text.replace(theirs, none));
            let mut told = Vec::new();
            for arguments in [arguments.clone(), serde_json::from_str(&nowhere).unwrap()] {
                let mut request = house.request(tool, arguments);
                request.scope.user_id = both;
                let outcome = house.run(request).await;
                assert!(!outcome.ok, "{tool}: {outcome:?}");
                let said = json!({"data": outcome.data, "error": outcome.error, "text": outcome.text}).to_string();
                told.push(names.iter().fold(said, |text, (theirs, none)| text.replace(theirs, none)));
            }
            assert_eq!(told[0], told[1], "{tool} {arguments}");
            tried += 1;
        }
        assert!(tried >= 20, "{tried}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_two_users_that_are_called_the_same_do_not_meet() {
    for engine in engines() {
        let house = house_with_sample(&engine).await;
        let other = house.store.people().add_user("edda").await.unwrap();
        house.store.people().set_role(house.project.id, other, Role::Editor).await.unwrap();
        let as_user = async |user: i64, tool: &str, arguments: Value| {
            let mut request = house.request(tool, arguments);
            request.scope.user_id = user;
            house.run(request).await
        };
        let new = json!({"changeSet": {
            "schemaVersion": "1.0", "targetType": "asset", "mode": "create", "operations": [{
                "op": "upsert", "targetType": "asset", "target": {"path": "assets/new.md"}, "payload": {"content": "x"},
            }],
        }});
        assert!(as_user(1, "builder.change.stage", new).await.ok);
        let read = json!({"path": "assets/new.md"});
        assert!(as_user(1, "builder.asset.read", read.clone()).await.ok);
        assert!(!as_user(other, "builder.asset.read", read).await.ok);
        for tool in ["builder.change.discard", "builder.change.validate"] {
            let named = as_user(other, tool, json!({"changeSetId": "cs-1"})).await;
            assert_eq!(named.error.unwrap().kind.as_str(), "not_found", "{tool}");
            assert_eq!(as_user(other, tool, json!({})).await.error.unwrap().code.as_str(), "AI_NO_STAGED_CHANGES");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_packages_come_out_as_they_went_in() {
    #[expect(clippy::disallowed_methods, reason = "as proptest reads it")]
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(PACKAGES);
    for engine in engines() {
        let house = engine.house().await;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        // Each over the one before: files come, go and change.
        let rounds = if engine.url.is_some() { cases / 10 } else { cases };
        let shelf = shelf_of(&house, house.project.id);
        for round in 0..rounds {
            let files = toolhost_testkit::packages::package().new_tree(&mut runner).unwrap().current();
            shelf.import(&Package::read(files.clone()), true, Size::default()).await.unwrap();
            let out = shelf.export().await.unwrap();
            assert_eq!(out, files, "round {round}");
            let zip = toolhost_builder::to_zip(&out);
            assert_eq!(toolhost_builder::from_zip(&zip).unwrap(), files);
            let again = shelf.import(&Package::read(out), true, Size::default()).await.unwrap();
            assert_eq!(again.moment, None, "nothing is different");
        }
    }
}

/// Rules: 000.20, 000.21, 000.22, 000.23, 000.24, 000.25, 001.41.
#[test]
fn the_arguments_are_the_frozen_ones() {
    let tools = toolhost_testkit::every_tool();
    let info = |name: &str| tools.iter().map(|tool| tool.info()).find(|info| info.name == name).unwrap();
    for (tool, required, optional) in [
        ("builder.context.get", &["mode", "targetId", "targetType"][..], &["workflowId"][..]),
        ("builder.workflow.read", &["workflowId"], &[]),
        ("builder.step.read", &["workflowId"], &["nodeId", "stepPath"]),
        ("builder.agent.read", &["agentId"], &["workflowId"]),
        ("builder.asset.read", &["path"], &["workflowId"]),
        ("builder.refs.find", &["locator"], &[]),
    ] {
        let schema = info(tool).input_schema;
        let names = |value: &Value| -> BTreeSet<String> {
            value.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let told: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names(&schema["required"]), required.iter().map(|name| (*name).to_owned()).collect(), "{tool}");
        assert_eq!(told, required.iter().chain(optional).map(|name| (*name).to_owned()).collect(), "{tool}");
    }
    let locator = &info("builder.refs.find").input_schema["properties"]["locator"];
    assert_eq!(locator["properties"]["type"]["enum"], json!(["id", "path"]));
    assert_eq!(locator["required"], json!(["type", "value"]));
}

/// Rules: 000.7, 000.22.
#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_named_by_its_node_or_by_its_path_and_not_by_both() {
    let engine = engines().next().unwrap();
    let house = house_with_sample(&engine).await;
    for arguments in [json!({"workflowId": FLOW}), json!({"workflowId": FLOW, "nodeId": STEP, "stepPath": STEP_PATH})] {
        let error = call(&house, "builder.step.read", arguments).await.error.unwrap();
        assert_eq!(error.kind.as_str(), "validation");
    }
}

/// Rules: 001.30, 001.31.
#[tokio::test(flavor = "multi_thread")]
async fn the_profile_has_the_reads_and_the_three_writes_that_the_loop_may_use() {
    let engine = engines().next().unwrap();
    let house = house_with_sample(&engine).await;
    let profile = house.gate.profile("builder").unwrap();
    let has: BTreeSet<&str> =
        profile.tools.iter().map(String::as_str).filter(|name| name.starts_with("builder.")).collect();
    let loop_may = ["builder.change.stage", "builder.change.validate", "builder.change.discard", "builder.schema.read"];
    assert_eq!(has, SEMANTIC_READ_TOOLS.into_iter().chain(loop_may).collect());
}
