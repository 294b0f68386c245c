//! What sessions do to each other, and to files that are another's: nothing is ever lost without a word.

use serde_json::{Value, json};
use toolhost_builder::limits::Size;
use toolhost_builder::{Files, Package};
use toolhost_contract::{CallerKind, Outcome};
use toolhost_testkit::House;
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::sample::shelf_of;

/// Two workflows side by side, each with two steps, and two agents.
pub(crate) fn two_flows() -> Files {
    let mut files = Files::new();
    let mut add = |path: String, text: String| drop(files.insert(path, text.into_bytes()));
    let mut listed = Vec::new();
    for (flow, other) in [("one", "a"), ("two", "b")] {
        let at = |file: &str| format!("{flow}/{file}");
        listed.push(json!({"id": flow, "workflow": at("workflow.md"), "graph": at("graph.json"), "displayName": flow}));
        add(
            at("workflow.md"),
            front("workflowType: w\nstepsCompleted: []\ncurrentNodeId: \"\"\n", "\n# Flow\n\nText.\n"),
        );
        add(at("graph.json"), format!("{:#}", graph(&[(other, "steps/s.md"), ("end", "steps/end.md")])));
        add(at("steps/s.md"), step(other, "step", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
        add(at("steps/end.md"), step("end", "end", "over\n"));
    }
    let agent = |id: &str| {
        json!({
            "id": id, "metadata": {"name": id, "title": "T", "icon": "I"},
            "persona": {"role": "r", "identity": "i", "communication_style": "c", "principles": ["p"]},
        })
    };
    add(
        "agents.json".to_owned(),
        format!("{:#}", json!({"schemaVersion": "1.1", "agents": [agent("ada"), agent("bob")]})),
    );
    add("assets/a.md".to_owned(), "1\n2\n3\n4\n5\n6\n7\n8\n9\n".to_owned());
    let entry = json!({"workflow": "one/workflow.md", "graph": "one/graph.json", "agents": "agents.json"});
    let manifest =
        json!({"schemaVersion": "1.1", "name": "two", "version": "1.0.0", "entry": entry, "workflows": listed});
    add("bmad.json".to_owned(), format!("{manifest:#}"));
    files
}

fn front(fields: &str, body: &str) -> String {
    format!("---\nschemaVersion: \"1.1\"\n{fields}---\n{body}")
}

fn step(node: &str, kind: &str, text: &str) -> String {
    let body = format!("\n## Goal\n\n{text}\n## Instructions\n\nDo.\n\n## Completion (Document-as-State)\n\nDone.\n");
    front(&format!("nodeId: {node}\ntype: {kind}\n"), &body)
}

/// A chain.
fn graph(nodes: &[(&str, &str)]) -> Value {
    let last = nodes.len() - 1;
    let list: Vec<Value> = nodes
        .iter()
        .enumerate()
        .map(|(n, (id, file))| {
            let kind = if n == last { "end" } else { "step" };
            json!({"id": id, "type": kind, "file": file, "agentId": "ada"})
        })
        .collect();
    let edges: Vec<Value> =
        nodes.windows(2).map(|two| json!({"from": two[0].0, "to": two[1].0, "label": "on"})).collect();
    json!({"schemaVersion": "1.1", "entryNodeId": nodes[0].0, "nodes": list, "edges": edges})
}

pub(crate) async fn opened(engine: &Engine) -> House {
    let house = engine.house().await;
    import(&house, two_flows(), false).await;
    house
}

pub(crate) async fn import(house: &House, files: Files, replace: bool) {
    shelf_of(house, house.project.id).import(&Package::read(files), replace, Size::default()).await.unwrap();
}

pub(crate) async fn call(house: &House, session: &str, tool: &str, arguments: Value) -> Outcome {
    let mut request = house.request(tool, arguments);
    "builder".clone_into(&mut request.caller.profile);
    request.scope.session_id = Some(session.to_owned());
    house.run(request).await
}

pub(crate) async fn read(house: &House, session: &str, kind: &str, arguments: Value) -> Value {
    let outcome = call(house, session, &format!("builder.{kind}.read"), arguments).await;
    assert!(outcome.ok, "{outcome:?}");
    outcome.data
}

pub(crate) fn set(operations: &[Value], read: &Value) -> Value {
    json!({
        "schemaVersion": "1.0", "targetType": "step", "mode": "optimize", "operations": operations,
        "revisions": read["revisions"],
    })
}

pub(crate) async fn stage(house: &House, session: &str, set: Value) -> Outcome {
    call(house, session, "builder.change.stage", json!({"changeSet": set})).await
}

pub(crate) async fn staged(house: &House, session: &str, set: Value) -> String {
    let outcome = stage(house, session, set).await;
    assert!(outcome.ok, "{outcome:?}");
    outcome.data["changeSetId"].as_str().unwrap().to_owned()
}

pub(crate) fn asset(path: &str, content: &str) -> Value {
    json!({"op": "upsert", "targetType": "asset", "target": {"path": path}, "payload": {"content": content}})
}

pub(crate) fn upsert_step(flow: &str, node: &str, text: &str) -> Value {
    let target = json!({"workflowId": flow, "nodeId": node});
    json!({"op": "upsert", "targetType": "step", "target": target, "payload": {"step_markdown": text}})
}

pub(crate) fn workflow(flow: &str, payload: Value) -> Value {
    json!({"op": "upsert", "targetType": "workflow", "target": {"workflowId": flow}, "payload": payload})
}

pub(crate) fn delete(kind: &str, target: Value) -> Value {
    json!({"op": "delete", "targetType": kind, "target": target})
}

async fn person(house: &House, tool: &str, arguments: Value) -> Outcome {
    let mut request = house.request(tool, arguments);
    "all".clone_into(&mut request.caller.profile);
    request.caller.kind = CallerKind::Person;
    request.scope.session_id = None;
    house.run(request).await
}

pub(crate) async fn apply(house: &House, id: &str, deletes: &[&str]) -> Outcome {
    let arguments = json!({"changeSetId": id, "confirmSource": "ui_manual_apply", "confirmDeletes": deletes});
    person(house, "builder.change.apply", arguments).await
}

pub(crate) async fn applied(house: &House, id: &str, deletes: &[&str]) -> Value {
    let outcome = apply(house, id, deletes).await;
    assert!(outcome.ok, "{outcome:?}");
    // Whatever was applied is a package that can be brought in again.
    let files = files(house).await;
    let errors: Vec<_> = toolhost_builder::validate(&Package::read(files))
        .into_iter()
        .filter(|finding| finding.severity == toolhost_builder::Severity::Error)
        .collect();
    assert_eq!(errors, []);
    outcome.data
}

#[track_caller]
fn code(outcome: &Outcome) -> &'static str {
    outcome.error.as_ref().unwrap().code.as_str()
}

async fn files(house: &House) -> Files {
    shelf_of(house, house.project.id).export().await.unwrap()
}

async fn text(house: &House, path: &str) -> String {
    String::from_utf8(files(house).await[path].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_sees_its_own_staged_workflow_and_builds_on_it() {
    for engine in engines() {
        let house = opened(&engine).await;
        for title in ["first", "second"] {
            let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
            let mut graph = flow["graph_json"].clone();
            let node = if title == "first" { 0 } else { 1 };
            graph["nodes"][node]["title"] = json!(title);
            staged(&house, "s1", set(&[workflow("two", json!({"graph_json": graph}))], &flow)).await;
        }
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        assert_eq!(flow["graph_json"]["nodes"][0]["title"], "first", "{flow:#}");
        applied(&house, "cs-2", &[]).await;
        let graph = text(&house, "two/graph.json").await;
        assert!(graph.contains("first") && graph.contains("second"), "{graph}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_session_applied_between_two_sets_of_one_session_stays() {
    for engine in engines() {
        let house = opened(&engine).await;
        for (session, from, to) in [("s1", "1\n", "one\n"), ("s1", "5\n", "five\n"), ("s2", "9\n", "nine\n")] {
            let read = read(&house, session, "asset", json!({"path": "assets/a.md"})).await;
            let content = read["content"].as_str().unwrap().replace(from, to);
            staged(&house, session, set(&[asset("assets/a.md", &content)], &read)).await;
        }
        for id in ["cs-3", "cs-1", "cs-2"] {
            applied(&house, id, &[]).await;
        }
        assert_eq!(text(&house, "assets/a.md").await, "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_set_for_the_same_object_never_takes_the_first_one_back() {
    for engine in engines() {
        let house = opened(&engine).await;
        let old = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
        let change = |from: &str, to: &str| {
            let content = old["content"].as_str().unwrap().replace(from, to);
            set(&[asset("assets/a.md", &content)], &old)
        };
        staged(&house, "s1", change("1\n", "one\n")).await;
        // From the same read as before, where it would take the first one back.
        assert_eq!(code(&stage(&house, "s1", change("1\n", "eins\n")).await), "AI_REVISION_BASE_MISMATCH");
        staged(&house, "s1", change("9\n", "nine\n")).await;
        let now = read(&house, "s1", "asset", json!({"path": "assets/a.md"})).await;
        let content = now["content"].as_str().unwrap().replace("5\n", "five\n");
        staged(&house, "s1", set(&[asset("assets/a.md", &content)], &now)).await;
        applied(&house, "cs-3", &[]).await;
        assert_eq!(text(&house, "assets/a.md").await, "one\n2\n3\n4\nfive\n6\n7\n8\nnine\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_does_not_go_with_a_step_that_was_changed_since() {
    for engine in engines() {
        let house = opened(&engine).await;
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        staged(&house, "s1", set(&[delete("workflow", json!({"workflowId": "two"}))], &flow)).await;
        let old = read(&house, "s2", "step", json!({"workflowId": "two", "nodeId": "b"})).await;
        let changed = old["step_markdown"].as_str().unwrap().replace("5\n", "five\n");
        staged(&house, "s2", set(&[upsert_step("two", "b", &changed)], &old)).await;
        applied(&house, "cs-2", &[]).await;
        assert_eq!(code(&apply(&house, "cs-1", &["workflow:two"]).await), "AI_REVISION_BASE_MISMATCH");
        assert!(text(&house, "two/steps/s.md").await.contains("five"));
        // Decided anew, it goes, with all its files.
        assert!(call(&house, "s1", "builder.change.discard", json!({})).await.ok);
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        staged(&house, "s1", set(&[delete("workflow", json!({"workflowId": "two"}))], &flow)).await;
        applied(&house, "cs-3", &["workflow:two"]).await;
        assert!(!files(&house).await.keys().any(|path| path.starts_with("two/")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_over_a_file_that_is_another_s() {
    for engine in engines() {
        let house = opened(&engine).await;
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "one"})).await;
        let theirs = "../two/steps/s.md";
        let taken = |nodes: &[(&str, &str)]| workflow("one", json!({"graph_json": graph(nodes)}));
        let new_step = upsert_step("one", "new", &step("new", "step", "mine\n"));
        for operations in [
            vec![taken(&[("a", "steps/s.md"), ("new", theirs), ("end", "steps/end.md")]), new_step],
            vec![taken(&[("a", theirs), ("end", "steps/end.md")])],
        ] {
            let outcome = stage(&house, "s1", set(&operations, &flow)).await;
            if outcome.ok {
                let id = outcome.data["changeSetId"].as_str().unwrap();
                assert_eq!(code(&apply(&house, id, &[]).await), "AI_VALIDATION_FAILED");
                assert!(call(&house, "s1", "builder.change.discard", json!({})).await.ok);
            }
        }
        let mut new = graph(&[("x", "x.md"), ("end", "e.md")]);
        new["nodes"][0]["file"] = json!("x.md");
        let document = front("workflowType: w\nstepsCompleted: []\ncurrentNodeId: \"\"\n", "\n# W\n");
        let payload = json!({"workflow_md": document, "graph_json": new, "path": "two/steps/s.md", "graphPath": "three/graph.json"});
        let id = staged(&house, "s1", set(&[workflow("three", payload)], &flow)).await;
        assert_eq!(code(&apply(&house, &id, &[]).await), "AI_VALIDATION_FAILED");
        assert_eq!(files(&house).await, two_flows());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_do_not_make_one_file_for_two_steps() {
    for engine in engines() {
        let mut package = two_flows();
        // Both graphs stand in one folder, so that their steps may meet.
        for (flow, other) in [("one", "a"), ("two", "b")] {
            let nodes = [(other, format!("{flow}/steps/s.md")), ("end", format!("{flow}/steps/end.md"))];
            let nodes: Vec<(&str, &str)> = nodes.iter().map(|(id, file)| (*id, file.as_str())).collect();
            package.remove(&format!("{flow}/graph.json"));
            package.insert(format!("{flow}.json"), format!("{:#}", graph(&nodes)).into_bytes());
        }
        let manifest = String::from_utf8(package["bmad.json"].clone()).unwrap();
        let manifest = manifest.replace("one/graph.json", "one.json").replace("two/graph.json", "two.json");
        package.insert("bmad.json".to_owned(), manifest.into_bytes());
        let house = engine.house().await;
        import(&house, package, false).await;
        for (session, flow, node) in [("s1", "one", "a"), ("s2", "two", "b")] {
            let read = read(&house, session, "workflow", json!({"workflowId": flow})).await;
            let nodes = [
                (node, format!("{flow}/steps/s.md")),
                ("z", "z.md".to_owned()),
                ("end", format!("{flow}/steps/end.md")),
            ];
            let nodes: Vec<(&str, &str)> = nodes.iter().map(|(id, file)| (*id, file.as_str())).collect();
            let new = upsert_step(flow, "z", &step("z", "step", flow));
            staged(&house, session, set(&[workflow(flow, json!({"graph_json": graph(&nodes)})), new], &read)).await;
        }
        applied(&house, "cs-1", &[]).await;
        assert!(!apply(&house, "cs-2", &[]).await.ok);
        assert!(text(&house, "z.md").await.contains("one"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_a_set_does_not_name_stays_as_it_is_now() {
    for engine in engines() {
        let house = opened(&engine).await;
        let old = read(&house, "s2", "workflow", json!({"workflowId": "two"})).await;
        let mut graph = old["graph_json"].clone();
        graph["nodes"][0]["title"] = json!("undone later");
        staged(&house, "s1", set(&[workflow("two", json!({"graph_json": graph}))], &old)).await;
        applied(&house, "cs-1", &[]).await;
        let document = old["workflow_md"].as_str().unwrap().replace("Text.", "More text.");
        staged(&house, "s2", set(&[workflow("two", json!({"workflow_md": document}))], &old)).await;
        assert!(person(&house, "builder.change.undo", json!({"moment": 2})).await.ok);
        applied(&house, "cs-2", &[]).await;
        assert!(text(&house, "two/workflow.md").await.contains("More text."));
        assert!(!text(&house, "two/graph.json").await.contains("undone later"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_keeps_what_its_set_changes_besides() {
    for engine in engines() {
        let house = opened(&engine).await;
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        let agent = read(&house, "s1", "agent", json!({"agentId": "ada"})).await;
        let mut definition = agent["agent_definition"].clone();
        definition["id"] = json!("eve");
        let document = flow["workflow_md"].as_str().unwrap().replace("Text.", "More text.");
        let mut set = set(
            &[
                delete("agent", json!({"agentId": "ada"})),
                json!({"op": "upsert", "targetType": "agent", "target": {"agentId": "eve"}, "payload": {"agent_definition": definition}}),
                workflow("two", json!({"workflow_md": document, "displayName": "Second"})),
            ],
            &flow,
        );
        let one = read(&house, "s1", "workflow", json!({"workflowId": "one"})).await;
        set["extensions"] = json!({
            "rewriteReferences": true, "renames": [{"from": "agent:ada", "to": "agent:eve"}],
            "baseRevisions": {"workflow:one": one["revisions"]["workflowRevision"]},
        });
        staged(&house, "s1", set).await;
        applied(&house, "cs-1", &["agent:ada"]).await;
        let all = files(&house).await;
        let has = |path: &str, word: &str| String::from_utf8_lossy(&all[path]).contains(word);
        assert!(has("two/workflow.md", "More text.") && has("bmad.json", "Second") && has("two/graph.json", "eve"));
        let naming: Vec<&String> =
            all.keys().filter(|path| has(path, "\"id\": \"ada\"") || has(path, "\"agentId\": \"ada\"")).collect();
        assert_eq!(naming, Vec::<&String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_puts_back_every_file_and_every_byte() {
    for engine in engines() {
        let house = opened(&engine).await;
        let mut first = two_flows();
        first.insert("logo.png".to_owned(), vec![0x89, b'P', b'N', b'G', 0xff, 0xfe, 0]);
        import(&house, first.clone(), true).await;
        let mut second = first.clone();
        second.insert("logo.png".to_owned(), vec![0x89, b'P', b'N', b'G', 0xfd, 0xfc, 1]);
        for n in 0..1500 {
            second.insert(format!("assets/more/{n}.md"), b"x".to_vec());
        }
        import(&house, second, true).await;
        let undone = person(&house, "builder.change.undo", json!({"moment": 3})).await;
        assert!(undone.ok, "{undone:?}");
        assert!(files(&house).await == first);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_goes_with_its_node_in_one_set() {
    for engine in engines() {
        let house = opened(&engine).await;
        let flow = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        let fewer = workflow("two", json!({"graph_json": graph(&[("end", "steps/end.md")])}));
        let gone = delete("step", json!({"workflowId": "two", "nodeId": "b"}));
        staged(&house, "s1", set(&[fewer, gone], &flow)).await;
        applied(&house, "cs-1", &["step:two/b"]).await;
        assert!(!files(&house).await.contains_key("two/steps/s.md"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_meanwhile_is_not_taken_back() {
    for engine in engines() {
        let house = opened(&engine).await;
        let agent = read(&house, "s1", "agent", json!({"agentId": "bob"})).await;
        let mut definition = agent["agent_definition"].clone();
        definition["id"] = json!("eve");
        let eve = json!({"op": "upsert", "targetType": "agent", "target": {"agentId": "eve"}, "payload": {"agent_definition": definition}});
        staged(&house, "s1", set(&[eve], &agent)).await;
        applied(&house, "cs-1", &[]).await;
        let flow = read(&house, "s2", "workflow", json!({"workflowId": "two"})).await;
        let mut graph = flow["graph_json"].clone();
        graph["nodes"][0]["agentId"] = json!("eve");
        staged(&house, "s2", set(&[workflow("two", json!({"graph_json": graph}))], &flow)).await;
        applied(&house, "cs-2", &[]).await;
        assert_eq!(code(&person(&house, "builder.change.undo", json!({"moment": 2})).await), "AI_VALIDATION_FAILED");
        assert!(person(&house, "builder.change.undo", json!({"moment": 3})).await.ok);
        assert!(person(&house, "builder.change.undo", json!({"moment": 2})).await.ok);
        assert_eq!(files(&house).await, two_flows());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_manifest_says_of_a_workflow_is_part_of_its_revision() {
    for engine in engines() {
        let house = opened(&engine).await;
        let old = read(&house, "s2", "workflow", json!({"workflowId": "two"})).await;
        assert_eq!(old["about"]["displayName"], "two");
        staged(&house, "s1", set(&[workflow("two", json!({"displayName": "Deux"}))], &old)).await;
        applied(&house, "cs-1", &[]).await;
        let now = read(&house, "s1", "workflow", json!({"workflowId": "two"})).await;
        assert_eq!(now["about"]["displayName"], "Deux");
        assert_ne!(now["revisions"], old["revisions"]);
        staged(&house, "s2", set(&[workflow("two", json!({"displayName": "Zwei"}))], &old)).await;
        assert_eq!(code(&apply(&house, "cs-2", &[]).await), "AI_REVISION_BASE_MISMATCH");
        // The name of one workflow is nothing to the other.
        let one = read(&house, "s3", "workflow", json!({"workflowId": "one"})).await;
        assert_eq!(one["about"]["displayName"], "one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_a_number_and_a_text_is_an_id() {
    for engine in engines() {
        let mut package = two_flows();
        let manifest = String::from_utf8(package["bmad.json"].clone()).unwrap();
        // The second workflow is called as the first one's number is.
        package.insert("bmad.json".to_owned(), manifest.replace("\"id\": \"two\"", "\"id\": \"1\"").into_bytes());
        let house = engine.house().await;
        import(&house, package, false).await;
        let nodes = async |workflow: Value| {
            read(&house, "s1", "workflow", json!({"workflowId": workflow})).await["step_index"][0]["node_id"].clone()
        };
        assert_eq!((nodes(json!(1)).await, nodes(json!("1")).await), (json!("a"), json!("b")));
        let step = read(&house, "s1", "step", json!({"workflowId": 1, "nodeId": "a"})).await;
        assert_eq!(step["step_path"], "one/steps/s.md");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zero_character_is_refused_wherever_it_stands() {
    for engine in engines() {
        let house = opened(&engine).await;
        let target = json!({"op": "delete", "targetType": "asset", "target": {"path": "assets/\0.md"}});
        for (tool, arguments) in [
            ("builder.workflow.read", json!({"workflowId": "\0"})),
            ("builder.step.read", json!({"workflowId": "two", "nodeId": "a\0"})),
            ("builder.asset.read", json!({"path": "assets/\0.md"})),
            ("builder.refs.find", json!({"locator": {"type": "id", "value": "\0"}})),
            ("builder.change.stage", json!({"changeSet": set(&[target], &json!({}))})),
        ] {
            let error = call(&house, "s1", tool, arguments).await.error.unwrap();
            assert_eq!(error.kind.as_str(), "validation", "{tool}: {error:?}");
        }
    }
}
