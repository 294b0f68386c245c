//! What a finding says is to be done: in files for who keeps files, in operations for who writes change sets.

use serde_json::{Value, json};
use toolhost_builder::change::{Found, Report, explain, impact, parse};
use toolhost_builder::{Files, Finding, Package, validate};
use toolhost_contract::Redactor;

use crate::change::{asset, delete, graph, set, step};
use crate::change_validate::{report_on, step_text};
use crate::small;

fn of<'a>(report: &'a Report, code: &str) -> &'a Found {
    let found = report.errors.iter().find(|found| found.code == code);
    found.unwrap_or_else(|| unreachable!("no {code}: {:#?}", report.errors))
}

fn report(operations: Value) -> Report {
    report_on(&Package::read(small::files()), &set(operations))
}

#[test]
fn a_node_without_its_step_is_told_as_an_operation_that_is_missing() {
    let mut value = small::graph();
    value["nodes"].as_array_mut().unwrap().push(json!({"id": "extra", "type": "step", "file": "steps/wark.md"}));
    value["edges"].as_array_mut().unwrap().push(json!({"id": "e5", "from": "extra", "to": "end", "label": "on"}));
    let hint = of(&report(json!([graph(value)])), "FILE_MISSING").hint.clone();
    assert!(hint.starts_with("upsert the step in the same set") && hint.contains("\"nodeId\": \"extra\""), "{hint}");
    assert!(!hint.contains("steps/work.md"), "{hint}");
}

#[test]
fn a_delete_of_a_step_alone_is_told_of_delete_nodes() {
    let found = report(json!([delete("step", json!({"workflowId": "main", "nodeId": "work"}))]));
    let hint = &of(&found, "FILE_MISSING").hint;
    assert!(hint.contains("upsert `workflow:main` with `deleteNodes: [\"work\"]`"), "{hint}");
}

#[test]
fn an_edge_that_an_insert_forgot_to_delete_is_named() {
    let mut value = small::graph();
    value["nodes"].as_array_mut().unwrap().push(json!({"id": "extra", "type": "step", "file": "steps/extra.md"}));
    let edges = value["edges"].as_array_mut().unwrap();
    edges.push(json!({"id": "e5", "from": "begin", "to": "extra", "label": "go"}));
    edges.push(json!({"id": "e6", "from": "extra", "to": "work", "label": "go"}));
    let found = report(json!([graph(value), step("extra", &step_text("extra", "step", ""))]));
    let hint = &of(&found, "DEFAULT_EDGE_MISSING").hint;
    assert!(hint.starts_with("if `e1` (`begin` to `work`) was to go, name it in `deleteEdges`"), "{hint}");
}

#[test]
fn what_a_set_refers_to_and_does_not_make_is_told_as_an_upsert() {
    let found = report(json!([step("work", &step_text("work", "step", "").replace("guide.md", "gide.md"))]));
    let hint = &of(&found, "ASSET_NOT_FOUND").hint;
    assert_eq!(
        hint,
        "write `assets/guide.md` if that is meant; else upsert the asset in the same set, or fix the path"
    );
    let found = report(json!([asset("rules.md", "Be kind.\n")]));
    let told = found.errors.iter().find(|found| found.code == "ASSET_PATH").map(|found| found.hint.as_str());
    assert_eq!(told.map(|hint| hint.contains("another path")), Some(true), "{found:#?}");
}

#[test]
fn a_reference_that_breaks_is_told_with_the_text_of_its_line() {
    let found = report(json!([delete("asset", json!({"path": "assets/guide.md"}))]));
    let told = found.errors.iter().find(|found| found.file == "steps/work.md").unwrap();
    assert!(told.message.ends_with("; the line is `1. See assets/guide.md.`"), "{told:#?}");
}

/// Two workflows, each in a folder of its own.
fn two_workflows() -> toolhost_builder::Files {
    let mut files = small::files();
    for folder in ["orders", "returns"] {
        let graph = json!({
            "schemaVersion": "1.1", "entryNodeId": "intake",
            "nodes": [
                {"id": "intake", "type": "step", "file": "steps/intake.md"},
                {"id": "check", "type": "end", "file": "steps/check.md"},
            ],
            "edges": [{"id": "e1", "from": "intake", "to": "check", "label": "on"}],
        });
        let document = small::WORKFLOW.replace("[begin]", "[]").replace("currentNodeId: work", "currentNodeId: intake");
        files.insert(format!("{folder}/graph.json"), serde_json::to_vec_pretty(&graph).unwrap());
        files.insert(format!("{folder}/workflow.md"), document.into_bytes());
        files.insert(format!("{folder}/steps/intake.md"), small::step("intake", "step", ""));
        files.insert(format!("{folder}/steps/check.md"), small::step("check", "end", ""));
    }
    small::edit(&mut files, "bmad.json", |value| {
        value["workflows"] = json!(["orders", "returns"].map(|folder| json!({
            "id": folder, "displayName": folder,
            "workflow": format!("{folder}/workflow.md"), "graph": format!("{folder}/graph.json"),
        })));
    });
    files
}

fn missing(file: &str, written: &str, take_out: Option<&str>) -> Finding {
    let mut files = two_workflows();
    small::edit(&mut files, "orders/graph.json", |value| value["nodes"][1]["file"] = json!(written));
    take_out.map(|path| files.remove(path));
    let found = validate(&Package::read(files));
    let is_meant = |one: &&Finding| one.code == "FILE_MISSING" && one.file == file;
    found.iter().find(is_meant).unwrap_or_else(|| unreachable!("{found:#?}")).clone()
}

#[test]
fn a_file_is_named_as_its_graph_writes_it_and_none_of_another_workflow() {
    for (written, take_out, meant) in [
        ("orders/steps/check.md", None, Some("`steps/check.md`")),
        ("steps/chek.md", None, Some("`steps/check.md`")),
        ("steps/check.md", Some("orders/steps/check.md"), None),
    ] {
        let found = missing("orders/graph.json", written, take_out);
        let offered = found.hint.split('`').nth(1).map(|name| format!("`{name}`"));
        assert_eq!(offered.as_deref(), meant, "{written}: {found:#?}");
    }
}

#[test]
fn the_impact_names_the_workflows_where_steps_of_several_change() {
    let of = |workflow: &str| {
        json!({
            "op": "upsert", "targetType": "step", "target": {"workflowId": workflow, "nodeId": "intake"},
            "payload": {"step_markdown": step_text("intake", "step", "")},
        })
    };
    let objects = |operations: Value| impact(&parse(&set(operations)).unwrap().set.operations).objects;
    assert_eq!(objects(json!([of("orders"), of("returns")])), ["step:orders/intake", "step:returns/intake"]);
    assert_eq!(objects(json!([of("orders")])), ["step:intake"]);
}

#[test]
fn what_a_set_finds_is_marked_only_where_it_was_so_before() {
    let found = report(json!([step("work", &step_text("work", "step", "agentId: nobody\n"))]));
    assert!(
        found.errors.iter().all(|found| serde_json::to_value(found).unwrap().get("before").is_none()),
        "{found:#?}"
    );
    let kept: Report = serde_json::from_value(serde_json::to_value(&found).unwrap()).unwrap();
    assert_eq!(kept, found);
}

#[test]
fn edits_in_parts_of_what_is_not_there_say_what_a_new_object_needs() {
    let package = Package::read(small::files());
    for (kind, target, payload, needs) in [
        (
            "workflow",
            json!({"workflowId": "survey"}),
            json!({"workflow_md": "# S", "nodes": [{"id": "a"}]}),
            "`graph_json`",
        ),
        (
            "agent",
            json!({"agentId": "bob"}),
            json!({"agent_fields": {"metadata": {"name": "Bob"}}}),
            "`agent_definition`",
        ),
        ("asset", json!({"path": "assets/x.md"}), json!({"textEdits": [{"find": "a", "replace": "b"}]}), "`content`"),
    ] {
        let mut value = set(json!([{"op": "upsert", "targetType": kind, "target": target, "payload": payload}]));
        value["schemaVersion"] = json!("1.1");
        let parsed = parse(&value).unwrap().set;
        let mut findings =
            toolhost_builder::change::complete(&package, &mut parsed.clone(), &Redactor::default()).unwrap_err();
        explain(&package, &parsed, &mut findings, &Redactor::default());
        assert!(findings[0].hint.contains(needs) && findings[0].hint.contains("as a whole"), "{findings:#?}");
    }
}

fn small_set(operations: &Value, extensions: &Value) -> Value {
    let mut value = set(operations.clone());
    value["schemaVersion"] = json!("1.1");
    value["extensions"] = extensions.clone();
    value
}

#[test]
fn what_is_not_there_is_told_with_the_names_that_are() {
    let mut files = small::files();
    files.insert("assets/other.md".to_owned(), b"# Other\n".to_vec());
    files.insert("assets/guid.png".to_owned(), b"\x89PNG".to_vec());
    let package = Package::read(files);
    let target = json!({"workflowId": "main", "nodeId": "wrk"});
    let step = json!([{"op": "upsert", "targetType": "step", "target": target, "payload": {"frontMatter": {"a": 1}}}]);
    let rename = |from: &str, to: &str| json!({"renames": [{"from": from, "to": to}]});
    let of = |workflow: &str, node: &str| json!({"op": "upsert", "targetType": "step", "target": {"workflowId": workflow, "nodeId": node}, "payload": {"frontMatter": {"a": 1}}});
    let takes_out = json!({"op": "upsert", "targetType": "workflow", "target": {"workflowId": "main"}, "payload": {"deleteNodes": ["work"]}});
    for (operations, extensions, told) in [
        (step, json!({}), "; did you mean `work`?"),
        (json!([of("mian", "work")]), json!({}), "there is no workflow `mian`; did you mean `main`?"),
        (json!([takes_out, of("main", "work")]), json!({}), "the set takes the node `work` out (`deleteNodes`)"),
        (json!([]), rename("step:main/wrk", "step:main/do"), "; did you mean `work`?"),
        (json!([]), rename("step:main/qqqqqq", "step:main/do"), "; there are `begin`, `work`, "),
        (json!([]), rename("agent:adda", "agent:bob"), "; did you mean `ada`?"),
        // Neither what goes with the same set nor what no set can change.
        (
            json!([{"op": "delete", "targetType": "asset", "target": {"path": "assets/guide.md"}}]),
            rename("asset:assets/guid.md", "asset:assets/rules.md"),
            "there is no `asset:assets/guid.md`; there are `assets/other.md`",
        ),
    ] {
        let parsed = parse(&small_set(&operations, &extensions)).unwrap().set;
        let mut findings =
            toolhost_builder::change::complete(&package, &mut parsed.clone(), &Redactor::default()).unwrap_err();
        explain(&package, &parsed, &mut findings, &Redactor::default());
        assert!(findings[0].message.contains(told), "{told}: {findings:#?}");
    }
}

#[test]
fn all_that_is_wrong_with_a_new_agent_is_told_at_once() {
    let definition = json!({ "id": "chief", "model": "x", "metadata": { "name": "Chief" } });
    let mut value = set(json!([{
        "op": "upsert", "targetType": "agent", "target": { "agentId": "boss" }, "payload": { "agent_definition": definition },
    }]));
    value["targetType"] = json!("agent");
    let errors = parse(&value).unwrap_err().errors;
    let mut found: Vec<(&str, &str)> = errors.iter().map(|error| (error.code.as_str(), error.path.as_str())).collect();
    found.sort_unstable();
    let at = "operations[0].payload.agent_definition";
    let expected = [
        ("AGENT_ID_CHANGED", format!("{at}.id")),
        ("SCHEMA_REQUIRED", format!("{at}.metadata.icon")),
        ("SCHEMA_REQUIRED", format!("{at}.metadata.title")),
        ("SCHEMA_REQUIRED", format!("{at}.persona")),
        ("SCHEMA_UNKNOWN_FIELD", format!("{at}.model")),
    ];
    assert_eq!(found, expected.each_ref().map(|(code, path)| (*code, path.as_str())), "{errors:#?}");
}

#[test]
fn extensions_that_would_silently_do_nothing_are_refused_and_others_are_kept() {
    let refused = |extensions: Value| {
        let errors = parse(&small_set(&json!([]), &extensions)).unwrap_err().errors;
        errors.into_iter().map(|error| (error.code, error.message)).collect::<Vec<_>>()
    };
    let pair = json!({"from": "agent:a", "to": "agent:b"});
    for (extensions, code, told) in [
        (json!({"rename": [pair]}), "EXTENSION_UNKNOWN", "did you mean `renames`?"),
        (json!({"renames": [pair], "rewriteReferences": false}), "RENAME_UNCLEAR", "so nothing would be renamed"),
        (json!({"rewriteReferences": true}), "RENAME_UNCLEAR", "nothing is said to be renamed"),
        (json!({"rewriteReferences": true, "renames": []}), "RENAME_UNCLEAR", "nothing is said to be renamed"),
        (json!({"supersede": "cs-1"}), "EXTENSION_UNKNOWN", "did you mean `supersedes`?"),
        (json!({"renames": pair}), "RENAME_UNCLEAR", "`extensions.renames` is no list"),
        (json!({"renames": [{"from": "a", "to": "b"}]}), "RENAME_UNCLEAR", "two assets, agents or steps"),
        (json!({"renames": [{"from": "agent:a", "to": "asset:assets/b.md"}]}), "RENAME_UNCLEAR", "of two kinds"),
        (json!({"renames": [{"from": "agent:a", "to": "agent:a"}]}), "RENAME_UNCLEAR", "one object twice"),
    ] {
        let errors = refused(extensions);
        assert_eq!(errors.len(), 1, "the cause, and nothing that follows from it: {errors:#?}");
        assert!(errors[0].0 == code && errors[0].1.contains(told), "{errors:#?}");
    }
    let others = small_set(&json!([asset("assets/new.md", "new\n")]), &json!({"ticket": 7, "x-team": "blue"}));
    assert_eq!(parse(&others).unwrap().set.extensions["ticket"], 7);
    // Contract 1.0 is as it was.
    let mut first = small_set(&json!([asset("assets/new.md", "new\n")]), &json!({"rename": []}));
    first["schemaVersion"] = json!("1.0");
    assert!(parse(&first).is_ok());
}

#[test]
fn a_sentence_that_still_speaks_of_a_renamed_node_is_told_with_its_line() {
    let mut files = small::files();
    small::replace(
        &mut files,
        "steps/begin.md",
        "## Goal",
        "Then go to `work` (steps/work.md), and work on.\n\n## Goal",
    );
    let package = Package::read(files);
    let value = small_set(&json!([]), &json!({"renames": [{"from": "step:main/work", "to": "step:main/toil"}]}));
    let mut whole = parse(&value).unwrap().set;
    toolhost_builder::change::complete(&package, &mut whole, &Redactor::default()).unwrap();
    let report = report_on(&package, &whole.to_value());
    let kept: Vec<_> = report.warnings.iter().filter(|found| found.code == "FORMER_NAME_KEPT").collect();
    assert_eq!(kept.len(), 1, "{:#?}", report.warnings);
    assert!(kept[0].file == "steps/begin.md" && kept[0].line.is_some() && kept[0].column == Some(12), "{kept:#?}");
    assert!(kept[0].message.contains("Then go to `work` (steps/work.md)"), "{kept:#?}");
}

/// The warnings about a former name, after a rename in these files.
fn kept_after(files: Files, rename: &Value) -> Vec<(String, Option<usize>, String)> {
    let package = Package::read(files);
    let mut whole = parse(&small_set(&json!([]), &json!({ "renames": [rename] }))).unwrap().set;
    toolhost_builder::change::complete(&package, &mut whole, &Redactor::default()).unwrap();
    let report = report_on(&package, &whole.to_value());
    assert_eq!(report.errors, []);
    let is_kept = |found: &Found| ["FORMER_NAME_KEPT", "REFERENCE_BROKEN"].contains(&found.code.as_str());
    let kept = report.warnings.into_iter().filter(is_kept);
    kept.map(|found| (found.file, found.line, found.hint)).collect()
}

#[test]
fn a_node_of_another_workflow_with_the_same_name_is_not_the_renamed_one() {
    let mut files = small::files();
    for name in ["workflow.md", "workflow.graph.json", "steps/begin.md", "steps/work.md"] {
        let copy = files[name].clone();
        files.insert(format!("second/{name}"), copy);
    }
    for name in files.keys().filter(|name| name.starts_with("steps/")).cloned().collect::<Vec<_>>() {
        let copy = files[&name].clone();
        files.entry(format!("second/{name}")).or_insert(copy);
    }
    small::edit(&mut files, "bmad.json", |manifest| {
        let one = json!({"id": "second", "displayName": "S", "workflow": "second/workflow.md", "graph": "second/workflow.graph.json"});
        let main = json!({"id": "main", "displayName": "M", "workflow": "workflow.md", "graph": "workflow.graph.json"});
        manifest["workflows"] = json!([main, one]);
    });
    let package = Package::read(files);
    let mut value = small_set(
        &json!([{
            "op": "upsert", "targetType": "workflow", "target": {"workflowId": "second"}, "payload": {"displayName": "T"}
        }]),
        &json!({"renames": [{"from": "step:main/work", "to": "step:main/toil"}]}),
    );
    value["extensions"]["baseRevisions"] = json!({});
    let mut whole = parse(&value).unwrap().set;
    toolhost_builder::change::complete(&package, &mut whole, &Redactor::default()).unwrap();
    let report = report_on(&package, &whole.to_value());
    let kept: Vec<_> = report.warnings.iter().filter(|found| found.code == "FORMER_NAME_KEPT").collect();
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn what_still_speaks_of_a_renamed_agent_or_asset_is_told() {
    let mut files = small::files();
    small::replace(&mut files, "steps/begin.md", "## Goal", "Let `ada` begin, and Ada end.\n\n## Goal");
    files.insert("assets/team.md".to_owned(), b"# Team\n\n\"ada\" writes.\n".to_vec());
    let found = kept_after(files, &json!({ "from": "agent:ada", "to": "agent:eve" }));
    let places: Vec<(&str, bool)> = found.iter().map(|(file, line, _)| (file.as_str(), line.is_some())).collect();
    assert_eq!(places, [("steps/begin.md", true), ("assets/team.md", true)], "{found:?}");
    assert!(found[0].2.contains("if it means the agent"), "{found:?}");

    let mut files = small::files();
    files.insert("assets/page.html".to_owned(), b"<p>\n<a href=\"assets/guide.md\">\n".to_vec());
    let found = kept_after(files, &json!({ "from": "asset:assets/guide.md", "to": "asset:assets/voice.md" }));
    assert_eq!(found.len(), 1, "{found:?}");
    let (file, line, hint) = &found[0];
    assert_eq!((file.as_str(), *line), ("assets/page.html", Some(2)));
    assert!(hint.contains("tell the person"), "{hint}");
}

#[test]
fn what_still_speaks_of_a_former_name_in_data_is_told() {
    let sentence = "Ask `ada` first, then `work`, as assets/guide.md says.";
    let mut files = small::files();
    small::edit(&mut files, "agents.json", |agents| agents["agents"][0]["systemPrompt"] = json!(sentence));
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][0]["description"] = json!(sentence));
    small::edit(&mut files, "bmad.json", |manifest| manifest["description"] = json!(sentence));
    files.insert("assets/team.md".to_owned(), sentence.as_bytes().to_vec());
    files.insert("assets/log.yaml".to_owned(), b"step: steps/work.md\nwho: \"ada\" # `ada`\n".to_vec());
    let told = |from: &str, to: &str| {
        let found = kept_after(files.clone(), &json!({ "from": from, "to": to }));
        found.into_iter().map(|(file, _, hint)| (file, hint)).collect::<Vec<_>>()
    };
    let files_of = |told: &[(String, String)]| told.iter().map(|(file, _)| file.clone()).collect::<Vec<_>>();
    let node = told("step:main/work", "step:main/toil");
    let data = ["agents.json", "workflow.graph.json", "bmad.json", "assets/log.yaml"];
    assert_eq!(files_of(&node), [&["assets/team.md"][..], &data].concat());
    assert!(node[2].1.contains("with `nodes` or `edges`"), "{node:?}");
    let agent = told("agent:ada", "agent:eve");
    assert_eq!(files_of(&agent), [&["assets/team.md"][..], &data].concat());
    // What a set writes has followed.
    assert_eq!(files_of(&told("asset:assets/guide.md", "asset:assets/voice.md")), ["bmad.json"]);
}

#[test]
fn a_former_name_that_is_a_variables_too_is_told_where_the_state_is_meant() {
    let mut files = small::files();
    small::replace(&mut files, "steps/work.md", "setsVariables: [result]", "setsVariables: [work]");
    small::replace(&mut files, "steps/work.md", "It is said.", "Put it into `work`.\nAdd `work` to `stepsCompleted`.");
    let told = kept_after(files, &json!({ "from": "step:main/work", "to": "step:main/toil" }));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].0 == "steps/toil.md" && told[0].1 == Some(20), "{told:?}");
}

#[test]
fn a_passage_that_is_not_there_letter_by_letter_is_told_as_it_stands() {
    let mut files = small::files();
    small::replace(&mut files, "assets/guide.md", "# Guide", "# Guide\n\nSay \u{201c}hello\u{201d} first.");
    let package = Package::read(files);
    let mut value = set(json!([{
        "op": "upsert", "targetType": "asset", "target": {"path": "assets/guide.md"},
        "payload": {"textEdits": [{"find": "say \"hello\" first.", "replace": "Say it."}]},
    }]));
    value["schemaVersion"] = json!("1.1");
    let parsed = parse(&value).unwrap().set;
    let mut findings =
        toolhost_builder::change::complete(&package, &mut parsed.clone(), &Redactor::default()).unwrap_err();
    explain(&package, &parsed, &mut findings, &Redactor::default());
    assert!(findings[0].message.ends_with("; line 3 has \"Say \u{201c}hello\u{201d} first.\""), "{findings:#?}");
}

#[test]
fn a_folder_in_the_place_of_a_file_is_told_as_one() {
    let mut files = small::files();
    small::edit(&mut files, "bmad.json", |manifest| manifest["entry"]["workflow"] = json!("steps"));
    let found = validate(&Package::read(files));
    let told: Vec<(&str, &str)> = found.iter().map(|one| (one.message.as_str(), one.hint.as_str())).collect();
    let hint = "write `workflow.md`, which nothing else names, if that is meant; else add the file";
    assert_eq!(told, [("`steps` is a folder", hint)]);
}

#[test]
fn what_belongs_elsewhere_is_told_with_its_place() {
    for name in ["renames", "baseRevisions", "supersedes", "rewriteReferences"] {
        let mut value = small_set(&json!([]), &json!({}));
        value[name] = json!([]);
        let refused = format!("{:?}", parse(&value).unwrap_err());
        assert!(
            refused.contains(&format!("`{name}` is no field of the contract: write it in `extensions`")),
            "{refused}"
        );
    }
    let mut files = small::files();
    small::replace(&mut files, "steps/begin.md", "    label: go\n", "    label: go\n    conditionExpr: {}\n");
    let found = small::findings(files);
    let told: Vec<&str> = found.iter().map(|one| one.hint.as_str()).collect();
    assert_eq!(told, ["a condition belongs to the edge: write it with `edges` of the workflow"], "{found:#?}");
}

#[test]
fn a_node_that_names_a_deleted_agent_in_graph_and_step_is_told_once() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][0]["agentId"] = json!("ada"));
    small::edit(&mut files, "agents.json", |agents| {
        let mut eve = agents["agents"][0].clone();
        eve["id"] = json!("eve");
        agents["agents"].as_array_mut().unwrap().push(eve);
    });
    let package = Package::read(files);
    let delete = json!([{"op": "delete", "targetType": "agent", "target": {"agentId": "ada"}}]);
    let report = report_on(&package, &small_set(&delete, &json!({})));
    let told: Vec<(&str, &str)> =
        report.errors.iter().map(|found| (found.code.as_str(), found.file.as_str())).collect();
    assert_eq!(told.len(), 1, "{told:?}: {:#?}", report.errors);
}
