//! Objects taken out of a package and put into it: nothing else changes by a byte.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_builder::change::{Change, Part, Snapshot, affected, diff, overlay, proposed, render, snapshot, write};
use toolhost_builder::refs::Object;
use toolhost_builder::{Elsewhere, Files, Package, validate};
use toolhost_testkit::packages;

use crate::change::{agent, asset, delete, graph, operation, step, upsert};
use crate::{sample, small};

fn objects(package: &Package) -> Vec<Object> {
    let mut all = Vec::new();
    for workflow in package.workflows() {
        all.push(Object::Workflow(workflow.id.clone()));
        let step = |node: &str| Object::Step { workflow: workflow.id.clone(), node: node.to_owned() };
        all.extend(workflow.nodes.iter().map(|node| step(&node.id)));
    }
    all.extend(package.agents().iter().map(|agent| Object::Agent(agent.id.clone())));
    all.extend(package.assets().map(|asset| Object::Asset(asset.path.to_owned())));
    all
}

fn package() -> Package {
    Package::read(small::files())
}

/// The package after these operations, each on what the former made.
fn after(package: &Package, operations: &[Value]) -> Package {
    let mut package = package.clone();
    for value in operations {
        let operation = operation(value.clone());
        let wanted = proposed(&package, &operation).unwrap();
        let edits = write(&package, &operation.object, wanted.as_ref()).unwrap();
        package = package.edited(&edits);
    }
    package
}

fn text(package: &Package, path: &str) -> String {
    String::from_utf8(package.files()[path].clone()).unwrap()
}

fn refused(value: Value) -> String {
    let operation = operation(value);
    match proposed(&package(), &operation) {
        Ok(wanted) => write(&package(), &operation.object, wanted.as_ref()).unwrap_err().code,
        Err(finding) => finding.code,
    }
}

fn two_agents() -> Files {
    let mut files = sample::files();
    let text = String::from_utf8(files["agents.json"].clone()).unwrap();
    files.insert("agents.json".to_owned(), text.replace("\n", "\r\n").replace("  ", "\t").into_bytes());
    files
}

#[test]
fn an_agent_changes_and_the_others_keep_their_bytes() {
    for files in [sample::files(), two_agents()] {
        let package = Package::read(files);
        let before = text(&package, "agents.json");
        for one in package.agents() {
            let mut definition = one.value.clone();
            definition["metadata"]["title"] = json!("Another title");
            let changed = text(&after(&package, &[agent(&one.id, definition)]), "agents.json");
            let differing: Vec<(&str, &str)> = before.lines().zip(changed.lines()).filter(|(a, b)| a != b).collect();
            assert_eq!((differing.len(), before.lines().count()), (1, changed.lines().count()), "{differing:?}");
            assert!(differing[0].1.contains("Another title"));
            let without = after(&package, &[delete("agent", json!({ "agentId": one.id }))]);
            assert!(without.agent(&one.id).is_none() && without.agents().len() + 1 == package.agents().len());
            let taken = snapshot(&package, &Object::Agent(one.id.clone()));
            let again = without.edited(&write(&without, &Object::Agent(one.id.clone()), taken.as_ref()).unwrap());
            assert_eq!(snapshot(&again, &Object::Agent(one.id.clone())), taken);
            assert_eq!(text(&again, "agents.json").lines().count(), before.lines().count());
        }
        let added = after(&package, &[agent("new", json!({ "metadata": {} }))]);
        let kept = before.trim_end().strip_suffix('}').unwrap().trim_end().strip_suffix(']').unwrap().trim_end();
        assert!(text(&added, "agents.json").starts_with(kept));
        assert_eq!(added.agent("new").unwrap().value, json!({ "id": "new", "metadata": {} }));
    }
}

#[test]
fn a_renamed_agent_stays_where_it_was() {
    let package = Package::read(two_agents());
    let agent_of = |id: &str| Object::Agent(id.to_owned());
    let ids_with = |objects: &[(Object, Option<Snapshot>)]| {
        let (after, findings) = overlay(&package, objects);
        assert_eq!(findings, []);
        after.agents().iter().map(|agent| agent.id.clone()).collect::<Vec<_>>()
    };
    let named = |id: &str, from: &str| {
        let mut definition = package.agent(from).unwrap().value.clone();
        definition["id"] = json!(id);
        (agent_of(id), Some(Snapshot([(Part::Definition, definition.to_string())].into())))
    };
    assert_eq!(ids_with(&[]), ["lead", "scout", "writer", "critic"]);
    assert_eq!(ids_with(&[named("eve", "scout"), (agent_of("scout"), None)]), ["lead", "eve", "writer", "critic"]);
    assert_eq!(ids_with(&[(agent_of("critic"), None), named("zoe", "writer")]), ["lead", "scout", "writer", "zoe"]);
    assert_eq!(
        ids_with(&[named("eve", "scout")]),
        ["lead", "scout", "writer", "critic", "eve"],
        "one that comes alone"
    );
    let both = [named("adam", "writer"), named("eve", "scout"), (agent_of("scout"), None), (agent_of("writer"), None)];
    assert_eq!(ids_with(&both), ["lead", "eve", "adam", "critic"], "each where the one was that says the same");
}

#[test]
fn a_graph_of_the_same_value_keeps_its_bytes_and_a_changed_one_its_rest() {
    let package = Package::read(sample::files());
    let id = package.workflows()[0].id.clone();
    let before = text(&package, "workflow.graph.json");
    let mut value: Value = serde_json::from_str(&before).unwrap();
    let put = |value: &Value| upsert("workflow", json!({ "workflowId": id }), json!({ "graph_json": value }));
    assert_eq!(text(&after(&package, &[put(&value)]), "workflow.graph.json"), before);
    value["nodes"][3]["title"] = json!("Other");
    let changed = text(&after(&package, &[put(&value)]), "workflow.graph.json");
    assert_eq!(before.lines().zip(changed.lines()).filter(|(a, b)| a != b).count(), 1);
}

#[test]
fn a_workflow_comes_and_goes_with_its_entry_and_its_steps() {
    let base = Package::read(sample::files());
    let graph = json!({ "schemaVersion": "1.1", "entryNodeId": "one", "edges": [],
        "nodes": [{ "id": "one", "type": "end", "file": "steps/one.md" }] });
    let target = json!({ "workflowId": "second" });
    let document = small::WORKFLOW.replace("[begin]", "[]").replace("work\n", "one\n").replace("assets/guide.md", "it");
    let step = String::from_utf8(small::step("one", "end", "")).unwrap().replace("assets/guide.md", "it");
    let new = upsert(
        "workflow",
        target.clone(),
        json!({ "workflow_md": document, "graph_json": graph, "displayName": "Second" }),
    );
    let one = upsert("step", json!({ "workflowId": "second", "nodeId": "one" }), json!({ "step_markdown": step }));
    let added = after(&base, &[new, one]);
    let errors: Vec<_> =
        validate(&added).into_iter().filter(|f| f.severity == toolhost_builder::Severity::Error).collect();
    assert_eq!(errors, []);
    assert!(added.workflow("second").unwrap().step("one").is_some());
    let manifest = text(&base, "bmad.json");
    let kept = manifest.split_once("\n  ],").unwrap().0;
    assert!(text(&added, "bmad.json").starts_with(kept), "{}", text(&added, "bmad.json"));
    let gone = operation(delete("workflow", target));
    assert_eq!(affected(&added, &gone).len(), 2);
    let again = added.edited(&write(&added, &gone.object, None).unwrap());
    assert_eq!(again.files(), base.files());
    // A package that lists no workflow begins a list.
    let (wanted, first) = (snapshot(&added, &gone.object), package());
    let first = first.edited(&write(&first, &gone.object, wanted.as_ref()).unwrap());
    assert_eq!(first.workflows().iter().map(|w| w.id.as_str()).collect::<Vec<_>>(), ["main", "second"]);
}

#[test]
fn what_cannot_be_written_is_told_and_nothing_is_written() {
    assert_eq!(refused(delete("workflow", json!({ "workflowId": "main" }))), "ENTRY_WORKFLOW_DELETED");
    assert_eq!(refused(delete("agent", json!({ "agentId": "nobody" }))), "TARGET_NOT_FOUND");
    assert_eq!(refused(step("nowhere", "")), "NODE_NOT_FOUND");
    let elsewhere = json!({ "workflowId": "no", "nodeId": "a" });
    assert_eq!(refused(upsert("step", elsewhere, json!({ "step_markdown": "" }))), "WORKFLOW_NOT_FOUND");
    let begin = json!({ "workflowId": "main", "nodeId": "begin" });
    let payload = json!({ "step_markdown": "", "path": "steps/other.md" });
    assert_eq!(refused(upsert("step", begin, payload)), "STEP_PATH_MISMATCH");
    for (path, code) in
        [("assets/../a.md", "ASSET_PATH"), ("assets/a.sh", "ASSET_EXTENSION"), ("bmad.json", "ASSET_PATH")]
    {
        assert_eq!(refused(asset(path, "")), code);
    }
    let new = |path: &str| {
        let payload = json!({ "workflow_md": "", "graph_json": {}, "path": path });
        refused(upsert("workflow", json!({ "workflowId": "new" }), payload))
    };
    for path in ["bmad.json", "agents.json", "workflow.md", "workflow.graph.json", "assets/a.md"] {
        assert_eq!(new(path), "PATH_TAKEN", "{path}");
    }
    assert_eq!(new("../a.md"), "PATH_UNSAFE");
    assert_eq!(
        refused(upsert("workflow", json!({ "workflowId": "new" }), json!({ "workflow_md": "" }))),
        "WORKFLOW_INCOMPLETE"
    );
    assert_eq!(
        refused(upsert("workflow", json!({ "workflowId": "main" }), json!({ "tags": [] }))),
        "WORKFLOW_NOT_LISTED"
    );
    assert_eq!(
        refused(upsert("workflow", json!({ "workflowId": "main" }), json!({ "path": "a.md" }))),
        "WORKFLOW_PATH_CHANGED"
    );
}

#[test]
fn a_step_never_writes_what_is_not_its_own() {
    for file in ["bmad.json", "agents.json", "workflow.md", "assets/guide.md", "../x.md"] {
        let mut value = small::graph();
        value["nodes"][0]["file"] = json!(file);
        let hostile = after(&package(), &[graph(value)]);
        let object = Object::Step { workflow: "main".to_owned(), node: "begin".to_owned() };
        let wanted = Snapshot([(Part::Document, "mine".to_owned())].into());
        assert!(write(&hostile, &object, Some(&wanted)).is_err(), "{file}");
        assert_eq!(write(&hostile, &object, None).unwrap().len(), 0, "{file}");
    }
}

#[test]
fn a_workflow_that_claims_the_manifest_is_not_written() {
    let mut files = small::files();
    small::edit(&mut files, "bmad.json", |v| {
        v["workflows"] = json!([{ "id": "bad", "workflow": "bmad.json", "graph": "agents.json" }]);
    });
    let base = Package::read(files);
    let bad = operation(upsert("workflow", json!({ "workflowId": "bad" }), json!({ "workflow_md": "mine" })));
    let wanted = proposed(&base, &bad).unwrap();
    assert_eq!(write(&base, &bad.object, wanted.as_ref()).unwrap_err().code, "PATH_TAKEN");
    let left = base.edited(&write(&base, &bad.object, None).unwrap());
    assert!(left.workflow("bad").is_none() && left.agent("ada").is_some() && left.manifest().is_some());
}

#[test]
fn a_new_node_and_its_step_come_in_any_order() {
    let mut value = small::graph();
    value["nodes"].as_array_mut().unwrap().push(json!({ "id": "late", "type": "step", "file": "steps/late.md" }));
    value["edges"].as_array_mut().unwrap().push(json!({ "from": "work", "to": "late", "label": "x" }));
    value["nodes"].as_array_mut().unwrap().remove(0);
    let base = package();
    let late = Object::Step { workflow: "main".to_owned(), node: "late".to_owned() };
    let begin = Object::Step { workflow: "main".to_owned(), node: "begin".to_owned() };
    let workflow = proposed(&base, &operation(graph(value))).unwrap();
    let text = Snapshot([(Part::Document, "text".to_owned())].into());
    let mut wanted = vec![
        (late.clone(), Some(text.clone())),
        (begin.clone(), None),
        (Object::Workflow("main".to_owned()), workflow),
    ];
    for _ in 0..3 {
        wanted.rotate_left(1);
        let (after, findings) = overlay(&base, &wanted);
        assert_eq!(findings, []);
        assert_eq!(snapshot(&after, &late), Some(text.clone()));
        assert!(!after.files().contains_key("steps/begin.md"));
    }
    let (_, findings) = overlay(&base, &wanted[..1].iter().chain(&[(late, Some(text))]).cloned().collect::<Vec<_>>());
    assert!(findings.iter().all(|f| f.code == "NODE_NOT_FOUND"));
}

#[test]
fn a_node_keeps_its_step_when_its_file_gets_another_name() {
    let mut value = small::graph();
    value["nodes"][1]["file"] = json!("steps/other.md");
    let moved = after(&package(), &[graph(value)]);
    assert_eq!(text(&moved, "steps/other.md"), text(&package(), "steps/work.md"));
    assert!(!moved.files().contains_key("steps/work.md"));
}

#[test]
fn a_change_of_only_the_graph_shows() {
    let mut value = small::graph();
    value["edges"][0]["label"] = json!("onward");
    value["nodes"][0].as_object_mut().unwrap().remove("agentId");
    value["nodes"][3]["title"] = json!("End");
    value["edges"].as_array_mut().unwrap().pop();
    let (base, object) = (package(), Object::Workflow("main".to_owned()));
    let changed = after(&base, &[graph(value)]);
    let found = diff(&base, &changed, &[object.clone(), object]);
    assert_eq!((found.len(), found[0].change, found[0].files.len()), (1, Change::Modified, 1));
    assert!(found[0].files[0].added > 0 && found[0].files[0].removed > 0);
    let text = render(&found);
    for line in [
        "modified workflow:main",
        "  node modified begin",
        "    agentId: \"ada\" -> nothing",
        "    title: nothing -> \"End\"",
        "  edge modified begin -> work (go)",
        "    label: \"go\" -> \"onward\"",
        "  edge deleted choose -> work (again)",
        "--- modified workflow.graph.json",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(diff(&base, &base, &objects(&base)), []);
}

#[test]
fn one_line_at_the_top_is_one_line() {
    let mut files = small::files();
    files.insert("assets/empty.md".to_owned(), Vec::new());
    let base = Package::read(files);
    let line = format!("First.\n{}", text(&base, "assets/guide.md"));
    let changed =
        after(&base, &[asset("assets/guide.md", &line), asset("assets/empty.md", "x\n"), asset("assets/new.md", "")]);
    let object = |path: &str| Object::Asset(path.to_owned());
    let found = diff(&base, &changed, &[object("assets/guide.md"), object("assets/empty.md"), object("assets/new.md")]);
    let told: Vec<_> = found.iter().map(|d| (d.change, d.files[0].added, d.files[0].removed)).collect();
    assert_eq!(told, [(Change::Modified, 1, 0), (Change::Modified, 1, 0), (Change::Added, 0, 0)]);
    let back = diff(&changed, &base, &[object("assets/new.md")]);
    assert_eq!(back[0].change, Change::Deleted);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_as_it_is_changes_nothing(files in packages::package()) {
        let package = Package::read(files);
        let taken = |object: Object| (object.clone(), snapshot(&package, &object));
        let all: Vec<_> = objects(&package).into_iter().map(taken).collect();
        for (object, taken) in &all {
            prop_assert!(taken.is_some());
            prop_assert!(write(&package, object, taken.as_ref()).unwrap().is_empty(), "{object}");
        }
        let (after, findings) = overlay(&package, &all);
        prop_assert_eq!(findings, []);
        prop_assert_eq!(after.files(), package.files());
    }

    #[test]
    fn what_is_written_is_what_is_read_and_nothing_else_changes(
        files in packages::package(),
        pick in any::<prop::sample::Index>(),
        text in "\\PC{0,40}",
    ) {
        let package = Package::read(files);
        let all = objects(&package);
        let object = pick.get(&all);
        let mut wanted = snapshot(&package, object).unwrap();
        for part in [Part::Document, Part::Content] {
            if let Some(old) = wanted.0.get_mut(&part) {
                old.push_str(&text);
            }
        }
        if let Some(old) = wanted.0.get_mut(&Part::Definition) {
            let mut value: Value = serde_json::from_str(old).unwrap();
            value["note"] = json!(text);
            *old = value.to_string();
        }
        let after = package.edited(&write(&package, object, Some(&wanted)).unwrap());
        prop_assert_eq!(snapshot(&after, object), Some(wanted));
        for other in all.iter().filter(|other| *other != object) {
            prop_assert_eq!(snapshot(&after, other), snapshot(&package, other), "{}", other);
        }
        let before = snapshot(&package, object);
        let back = after.edited(&write(&after, object, before.as_ref()).unwrap());
        prop_assert_eq!(back.files(), package.files());
    }
}

/// The small package without its manifest, its second file of assets told but not at hand.
fn part() -> Package {
    let whole = package();
    let mut files = small::files();
    files.retain(|path, _| path != "bmad.json" && !path.starts_with("assets/"));
    let elsewhere = Elsewhere {
        workflows: ["main".to_owned(), "other".to_owned()].into(),
        assets: [("assets/guide.md".to_owned(), "0".repeat(64))].into(),
        files: None,
    };
    Package::part(small::manifest(), files, vec![whole.workflows()[0].place()], elsewhere)
}

#[test]
fn a_part_is_written_as_far_as_it_is_at_hand() {
    let part = part();
    let changed = after(&part, &[step("work", "text"), asset("assets/guide.md", "new"), graph(small::graph())]);
    assert_eq!(text(&changed, "steps/work.md"), "text");
    assert!(changed.is_part() && changed.has_workflow("other"));
    assert_eq!(proposed(&part, &operation(delete("asset", json!({ "path": "assets/guide.md" })))), Ok(None));
    let other = |payload: Value| operation(upsert("workflow", json!({ "workflowId": "other" }), payload));
    assert_eq!(proposed(&part, &other(json!({ "workflow_md": "" }))).unwrap_err().code, "NOT_AT_HAND");
    let object = Object::Workflow("other".to_owned());
    assert_eq!(write(&part, &object, None).unwrap_err().code, "NOT_AT_HAND");
    let new =
        operation(upsert("workflow", json!({ "workflowId": "new" }), json!({ "workflow_md": "", "graph_json": {} })));
    let wanted = proposed(&part, &new).unwrap();
    assert_eq!(write(&part, &new.object, wanted.as_ref()).unwrap_err().code, "NOT_AT_HAND");
}

#[test]
fn what_was_deleted_comes_back_with_its_steps() {
    let mut files = small::files();
    let mut manifest = small::manifest();
    manifest["workflows"] = json!([{ "id": "b", "workflow": "b/workflow.md", "graph": "b/graph.json" }]);
    files.insert("bmad.json".to_owned(), format!("{manifest:#}\n").into_bytes());
    files.insert("b/workflow.md".to_owned(), files["workflow.md"].clone());
    files.insert("b/graph.json".to_owned(), files["workflow.graph.json"].clone());
    for node in ["begin", "work", "choose", "end"] {
        files.insert(format!("b/steps/{node}.md"), files[&format!("steps/{node}.md")].clone());
    }
    let base = Package::read(files);
    let gone = affected(&base, &operation(delete("workflow", json!({ "workflowId": "b" }))));
    let before: Vec<_> = gone.iter().map(|object| (object.clone(), snapshot(&base, object))).collect();
    let (without, findings) = overlay(&base, &gone.iter().map(|object| (object.clone(), None)).collect::<Vec<_>>());
    assert_eq!((findings, without.workflows().len()), (vec![], 1));
    assert!(!without.files().keys().any(|path| path.starts_with("b/")));
    let (again, findings) = overlay(&without, &before);
    assert_eq!(findings, []);
    let manifest = |package: &Package| package.manifest().cloned();
    assert_eq!(manifest(&again), manifest(&base));
    for object in &gone {
        assert_eq!(
            diff(&base, &again, std::slice::from_ref(object))
                .iter()
                .filter(|d| d.files.iter().any(|f| f.part != Part::Entry))
                .count(),
            0,
            "{object}"
        );
    }
}
