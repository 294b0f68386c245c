//! Whether a set may be applied, and references that follow a name.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_builder::change::{
    Check, Report, Stage, diff, merge, overlay, parse, proposed, renames, render, snapshot, validate, wanted,
};
use toolhost_builder::refs::Object;
use toolhost_builder::schema::Schemas;
use toolhost_builder::{Files, Package};
use toolhost_contract::Redactor;

use crate::change::{agent, asset, delete, graph, parsed, set, step};
use crate::large::many_workflows;
use crate::small;

/// The report on a set, written as far as it can be.
pub(crate) fn report_on(base: &Package, value: &Value) -> Report {
    let mut after = base.clone();
    let mut unwritten = Vec::new();
    for operation in parse(value).map(|parsed| parsed.set.operations).unwrap_or_default() {
        match proposed(&after, &operation) {
            Ok(wanted) => {
                let (next, findings) = overlay(&after, &[(operation.object.clone(), wanted)]);
                after = next;
                unwritten.extend(findings);
            }
            Err(finding) => unwritten.push(*finding),
        }
    }
    validate(&Check {
        schemas: &Schemas::compiled(),
        base,
        after: &after,
        set: value,
        unwritten: &unwritten,
        secrets: &Redactor::default(),
    })
}

fn report(operations: Value) -> Report {
    report_on(&Package::read(small::files()), &set(operations))
}

fn errors(report: &Report) -> Vec<(Stage, &str)> {
    report.errors.iter().map(|found| (found.stage, found.code.as_str())).collect()
}

pub(crate) fn step_text(node: &str, kind: &str, more: &str) -> String {
    String::from_utf8(small::step(node, kind, more)).unwrap()
}

#[test]
fn a_set_that_is_right_is_valid() {
    let report = report(json!([step("end", &step_text("end", "end", "title: End\n"))]));
    assert!(report.valid && !report.schema_failed, "{report:#?}");
    assert_eq!((report.warnings, report.impact.objects), (vec![], vec!["step:end".to_owned()]));
}

#[test]
fn a_break_of_the_contract_ends_it() {
    let base = Package::read(small::files());
    let report = report_on(&base, &json!({ "schemaVersion": "2.0" }));
    assert!(report.schema_failed && !report.valid);
    assert_eq!(errors(&report), [(Stage::Schema, "AI_CHANGESET_SCHEMA_UNSUPPORTED")]);
    let report = report_on(&base, &set(json!([{}])));
    assert!(report.schema_failed && report.errors.iter().all(|found| found.code == "AI_CHANGESET_CONTRACT_VIOLATION"));
}

#[test]
fn what_breaks_a_schema_ends_it() {
    let report = report(json!([agent("ada", json!({ "id": "ada", "more": 1 })), asset("assets/a.sh", "\u{202e}")]));
    assert!(report.schema_failed);
    assert!(report.errors.iter().all(|found| found.stage == Stage::Schema && found.file == "agents.json"));
    assert!(report.errors.iter().any(|found| found.path == "/agents/0/more"));
    assert!(self::report(json!([step("end", "no front matter")])).schema_failed);
}

#[test]
fn the_rules_of_a_package_hold_for_what_is_touched() {
    let mut value = small::graph();
    value["edges"][2]["isDefault"] = json!(false);
    let found = report(json!([graph(value)]));
    assert_eq!(errors(&found), [(Stage::Bmad, "DEFAULT_EDGE_MISSING")]);
    let found = report(json!([step("end", "---\nschemaVersion: \"1.1\"\nnodeId: end\ntype: end\n---\n## Goal\n")]));
    assert_eq!(errors(&found), [(Stage::Bmad, "SECTION_MISSING")]);
}

#[test]
fn what_was_wrong_before_is_a_warning() {
    let mut files = small::files();
    small::replace(&mut files, "steps/end.md", "## Goal", "## Gaol");
    small::edit(&mut files, "workflow.graph.json", |v| v["nodes"][3]["more"] = json!(1));
    let base = Package::read(files);
    let found = report_on(&base, &set(json!([step("work", &step_text("work", "step", ""))])));
    assert!(found.valid, "{found:#?}");
    let text = step_text("end", "end", "").replace("## Goal", "## Gaol");
    let found = report_on(&base, &set(json!([step("end", &format!("{text}\nMore.\n"))])));
    assert!(found.valid && found.warnings.iter().any(|w| w.before && w.code == "SECTION_MISSING"), "{found:#?}");
    // The same mistake at another index is still the same.
    let mut value = small::graph();
    value["nodes"][3]["more"] = json!(1);
    value["nodes"].as_array_mut().unwrap().swap(0, 3);
    let found = report_on(&base, &set(json!([graph(value.clone())])));
    assert!(found.valid && found.warnings.iter().any(|w| w.before && w.code == "SCHEMA_UNKNOWN_FIELD"), "{found:#?}");
    value["nodes"][1]["more"] = json!(1);
    assert!(report_on(&base, &set(json!([graph(value)]))).schema_failed);
}

#[test]
fn references_that_break_are_told_where_they_stand() {
    let found = report(json!([delete("asset", json!({ "path": "assets/guide.md" }))]));
    assert!(
        !found.valid
            && found.errors.iter().all(|e| (e.stage, e.code.as_str()) == (Stage::Reference, "REFERENCE_BROKEN"))
    );
    let mut places: Vec<&str> = found.errors.iter().map(|e| e.file.as_str()).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        ["agents.json", "steps/begin.md", "steps/choose.md", "steps/end.md", "steps/work.md", "workflow.md"]
    );
    let found = report(json!([delete("agent", json!({ "agentId": "ada" }))]));
    assert!(found.schema_failed, "the last agent");
    let found = report(json!([delete("step", json!({ "workflowId": "main", "nodeId": "work" }))]));
    assert_eq!(errors(&found), [(Stage::Reference, "FILE_MISSING")]);
    let found = report(json!([step("work", &step_text("work", "step", "agentId: nobody\n"))]));
    assert_eq!(errors(&found), [(Stage::Reference, "AGENT_NOT_FOUND")]);
    let found = report(json!([asset("assets/new.md", "x"), step("nowhere", "x")]));
    assert_eq!(errors(&found), [(Stage::Reference, "NODE_NOT_FOUND")]);
}

/// The place may be told by the rule of the file already, or by a choice of a menu.
#[test]
fn a_reference_that_breaks_is_told_once() {
    let mut files = small::files();
    let moved = |path: &str| format!("other/{path}");
    for path in
        ["workflow.md", "workflow.graph.json", "steps/begin.md", "steps/choose.md", "steps/work.md", "steps/end.md"]
    {
        let bytes = files[path].clone();
        files.insert(moved(path), bytes);
    }
    small::edit(&mut files, "bmad.json", |manifest| {
        manifest["workflows"] = json!([
            { "id": "main", "workflow": "workflow.md", "graph": "workflow.graph.json" },
            { "id": "other", "workflow": "other/workflow.md", "graph": "other/workflow.graph.json" },
        ]);
    });
    small::edit(&mut files, "agents.json", |agents| {
        agents["agents"][0]["menu"] = json!([{ "description": "Go", "workflow": "other" }, { "description": "Look", "workflow": "other/workflow.md" }]);
    });
    let base = Package::read(files);
    let is_error = |found: &toolhost_builder::Finding| found.severity == toolhost_builder::Severity::Error;
    assert_eq!(toolhost_builder::validate(&base).into_iter().filter(is_error).collect::<Vec<_>>(), []);
    let report = report_on(&base, &set(json!([delete("workflow", json!({ "workflowId": "other" }))])));
    let mut places: Vec<_> = report.errors.iter().map(|found| (found.file.as_str(), found.path.as_str())).collect();
    places.sort_unstable();
    assert_eq!(
        places,
        [("agents.json", "/agents/0/menu/0/workflow"), ("agents.json", "/agents/0/menu/1/workflow")],
        "{report:#?}"
    );
}

#[test]
fn an_asset_that_is_no_text_is_told_to_be_one_and_a_broken_line_has_its_column() {
    let mut files = small::files();
    files.insert("assets/logo.png".to_owned(), vec![0x89, b'P', b'N', b'G', 0]);
    files.insert("assets/page.html".to_owned(), b"<p>\n<a href=\"assets/guide.md\">\n".to_vec());
    let base = Package::read(files);
    let found = report_on(&base, &set(json!([delete("asset", json!({ "path": "assets/guide.md" }))])));
    let page = found.warnings.iter().find(|found| found.file == "assets/page.html").unwrap();
    assert_eq!((page.line, page.column), (Some(2), Some(10)), "{page:#?}");
    let mut value = set(json!([{
        "op": "upsert", "targetType": "asset", "target": { "path": "assets/logo.png" },
        "payload": { "textEdits": [{ "find": "PNG", "replace": "GIF" }] },
    }]));
    value["schemaVersion"] = json!("1.1");
    let parsed = toolhost_builder::change::parse(&value).unwrap().set;
    let secrets = toolhost_contract::Redactor::default();
    let mut findings = toolhost_builder::change::complete(&base, &mut parsed.clone(), &secrets).unwrap_err();
    toolhost_builder::change::explain(&base, &parsed, &mut findings, &secrets);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("`assets/logo.png` is no text"), "{findings:#?}");
}

#[test]
fn what_was_not_written_is_not_valid() {
    let base = Package::read(small::files());
    let value = set(json!([asset("assets/new.md", "x"), step("nowhere", "x")]));
    let schemas = Schemas::compiled();
    let report = validate(&Check {
        schemas: &schemas,
        base: &base,
        after: &base,
        set: &value,
        unwritten: &[],
        secrets: &Redactor::default(),
    });
    assert_eq!(errors(&report), [(Stage::Bmad, "TARGET_NOT_WRITTEN"); 2]);
}

#[test]
fn an_impact_is_computed_and_not_believed() {
    let mut value = set(json!([asset("assets/b.md", ""), delete("asset", json!({ "path": "assets/guide.md" }))]));
    value["impact"] =
        json!({ "objects": ["asset:assets/guide.md", "asset:assets/b.md"], "counts": { "asset": 1 }, "riskFlags": [] });
    let found = report_on(&Package::read(small::files()), &value);
    let told: Vec<(&str, &str)> = found
        .warnings
        .iter()
        .filter(|w| w.stage == Stage::Impact)
        .map(|w| (w.code.as_str(), w.path.as_str()))
        .collect();
    assert_eq!(
        told,
        [("IMPACT_DIFFERS", "impact.counts"), ("IMPACT_DIFFERS", "impact.riskFlags"), ("RISK_DELETES", "operations")]
    );
}

#[test]
fn paths_and_hidden_characters_are_looked_at() {
    let found = report(json!([asset("assets/../x.md", "")]));
    assert_eq!(errors(&found), [(Stage::Security, "ASSET_PATH")]);
    let found = report(json!([asset("assets/x.exe", "")]));
    assert_eq!(errors(&found), [(Stage::Security, "ASSET_EXTENSION")]);
    let found = report(json!([asset("assets/x.md", "a\nb\u{202e}c\u{1b}[2J")]));
    assert!(found.valid);
    let told: Vec<_> = found.warnings.iter().map(|w| (w.code.as_str(), w.file.as_str(), w.line, w.column)).collect();
    let at = |column| ("HIDDEN_CHARACTERS", "assets/x.md", Some(2), Some(column));
    assert_eq!(told, [at(2), at(4)]);
    assert!(found.warnings.iter().all(|warning| warning.stage == Stage::Security));
}

#[test]
fn hostile_sets_are_answered() {
    let deep = (0..100).fold(json!(1), |value, _| json!([value]));
    let mut around = small::graph();
    around["edges"] =
        json!([{ "from": "begin", "to": "begin", "label": "x" }, { "from": "work", "to": "begin", "label": "y" }]);
    for operations in [
        json!([agent("ada", json!({ "id": "ada", "systemPrompt": deep }))]),
        json!([graph(json!({ "nodes": [{ "id": "a", "file": "../../x", "type": "step" }] }))]),
        json!([graph(around)]),
        json!([step("begin", "\0\u{feff}---\n\0: \0\n---\n")]),
        json!([step("begin", "---\na: &a [*a]\n---\n")]),
        json!([agent("ada", json!({ "id": "ada", "metadata": { "name": "\0" } }))]),
    ] {
        assert!(!report(operations.clone()).valid, "{operations}");
    }
}

#[test]
fn two_hundred_steps_of_many_workflows_are_valid() {
    for workflows in [4, 40] {
        let base = Package::read(many_workflows(workflows));
        let operations: Vec<Value> = (0..200)
            .map(|n| {
                let node = format!("n{}", n / workflows % 50);
                let kind = if node == "n49" { "end" } else { "step" };
                let mut value = step(&node, &step_text(&node, kind, "title: T\n"));
                value["target"]["workflowId"] = json!(format!("w{}", n % workflows));
                value
            })
            .collect();
        let value = set(json!(operations));
        let set = parse(&value).unwrap().set;
        let wanted: Vec<_> = set.operations.iter().map(|o| (o.object.clone(), proposed(&base, o).unwrap())).collect();
        let (after, findings) = overlay(&base, &wanted);
        assert_eq!(findings, []);
        let schemas = Schemas::compiled();
        let found = validate(&Check {
            schemas: &schemas,
            base: &base,
            after: &after,
            set: &value,
            unwritten: &[],
            secrets: &Redactor::default(),
        });
        assert!(found.valid, "{found:#?}");
    }
}

/// The package after the renames that a set asks for.
fn renamed(files: Files, from: &Object, to: &Object) -> (Package, Vec<String>) {
    let base = Package::read(files);
    let operations = renames(&base, from, to);
    let names = operations.iter().map(|operation| operation.object.to_string()).collect();
    let wanted: Vec<_> = operations.iter().map(|o| (o.object.clone(), proposed(&base, o).unwrap())).collect();
    let (after, findings) = overlay(&base, &wanted);
    assert_eq!(findings, []);
    (after, names)
}

fn text(package: &Package, path: &str) -> String {
    String::from_utf8(package.files()[path].clone()).unwrap()
}

#[test]
fn mentions_of_an_asset_follow_it() {
    let mut files = small::files();
    small::replace(
        &mut files,
        "workflow.md",
        "See assets/guide.md.",
        "assets/guide.md.bak ../assets/guide.md my/assets/guide.md `assets/guide.md`",
    );
    files.insert("assets/b.md".to_owned(), b"assets/guide.md".to_vec());
    let (from, to) = (Object::Asset("assets/guide.md".to_owned()), Object::Asset("assets/new/guide.md".to_owned()));
    let (after, names) = renamed(files, &from, &to);
    assert_eq!(
        names,
        [
            "workflow:main",
            "step:main/begin",
            "step:main/choose",
            "step:main/end",
            "step:main/work",
            "agent:ada",
            "asset:assets/b.md"
        ]
    );
    assert!(
        text(&after, "workflow.md")
            .contains("assets/guide.md.bak ../assets/new/guide.md my/assets/guide.md `assets/new/guide.md`")
    );
    assert_eq!(text(&after, "assets/b.md"), "assets/new/guide.md");
    assert_eq!(after.agent("ada").unwrap().value["systemPrompt"], "Follow assets/new/guide.md.");
}

#[test]
fn the_id_of_an_agent_is_rewritten_and_the_rest_of_the_front_matter_stays() {
    for (before, to, after) in [
        ("agentId:   ada   # who\n", "bob", "agentId:   bob   # who\n"),
        ("agentId: 'ada'\n", "bob", "agentId: 'bob'\n"),
        ("? \"agentId\"\n: \"ada\"\n", "1.5", "? \"agentId\"\n: \"1.5\"\n"),
        ("é: ü # ada\nagentId: ada\n", "true", "é: ü # ada\nagentId: \"true\"\n"),
        ("x: {a: [ada]}\nagentId: ada", "b:", "x: {a: [ada]}\nagentId: \"b:\""),
    ] {
        let mut files = small::files();
        small::replace(&mut files, "steps/begin.md", "agentId: ada\n", &format!("{}\n", before.trim_end_matches('\n')));
        let (changed, names) = renamed(files.clone(), &Object::Agent("ada".to_owned()), &Object::Agent(to.to_owned()));
        assert_eq!(names, ["workflow:main", "step:main/begin"]);
        let expected = String::from_utf8(files["steps/begin.md"].clone())
            .unwrap()
            .replace(before.trim_end_matches('\n'), after.trim_end_matches('\n'));
        assert_eq!(text(&changed, "steps/begin.md"), expected);
        assert_eq!(changed.workflows()[0].nodes[0].agent_id.as_deref(), Some(to));
    }
}

#[test]
fn a_node_is_renamed_wherever_it_is_named() {
    let object = |node: &str| Object::Step { workflow: "main".to_owned(), node: node.to_owned() };
    let (after, names) = renamed(small::files(), &object("work"), &object("labour"));
    assert_eq!(names, ["workflow:main", "step:main/begin"]);
    assert!(text(&after, "workflow.md").contains("currentNodeId: labour\n"));
    assert!(text(&after, "steps/begin.md").contains("  - to: labour\n    label: go\n"));
    let workflow = &after.workflows()[0];
    assert!(workflow.node("work").is_none() && workflow.node("labour").is_some());
    assert!(workflow.edges.iter().all(|edge| edge.from != "work" && edge.to != "work"));
}

#[test]
fn a_set_that_renames_a_step_is_valid_with_the_references_rewritten() {
    let base = Package::read(small::files());
    let mut value = set(json!([
        delete("step", json!({ "workflowId": "main", "nodeId": "work" })),
        step("labour", &step_text("labour", "step", "setsVariables: [result]\n")),
    ]));
    let rename = json!({ "from": "step:main/work", "to": "step:main/labour" });
    value["extensions"] = json!({ "rewriteReferences": true, "renames": [rename.clone()] });
    let asked = parse(&value).unwrap().set;
    let mut twice = asked.clone();
    twice
        .extensions
        .insert("renames".to_owned(), json!([rename, { "from": "step:main/work", "to": "step:main/toil" }]));
    let (found, told) = wanted(&twice);
    assert_eq!((found.len(), told.len()), (1, 1), "{told:#?}");
    assert!(
        told[0].message.contains("renames[1] gives another name to what an earlier one renames"),
        "{}",
        told[0].message
    );
    let (found, findings) = wanted(&asked);
    assert_eq!(findings, []);
    let mut operations = asked.operations.clone();
    operations.extend(found.iter().flat_map(|rename| renames(&base, &rename.from, &rename.to)));
    let mut whole = asked.clone();
    whole.operations = operations;
    let value = whole.to_value();
    let objects: Vec<_> = whole.operations.iter().map(|o| (o.object.clone(), proposed(&base, o).unwrap())).collect();
    let (after, unwritten) = overlay(&base, &objects);
    let schemas = Schemas::compiled();
    let report = validate(&Check {
        schemas: &schemas,
        base: &base,
        after: &after,
        set: &value,
        unwritten: &unwritten,
        secrets: &Redactor::default(),
    });
    assert!(report.valid, "{report:#?}");
}

#[test]
fn a_rename_is_wanted_where_the_set_says_so_and_does_it() {
    let named = json!([{ "from": "asset:assets/a.md", "to": "asset:assets/b.md" }]);
    let mut value = set(json!([delete("asset", json!({ "path": "assets/a.md" })), asset("assets/b.md", "")]));
    let ask = |value: &Value| {
        let (renames, findings) = wanted(&parse(value).unwrap().set);
        (renames.len(), findings.len())
    };
    value["extensions"] = json!({ "renames": named });
    assert_eq!(ask(&value), (0, 0));
    value["extensions"]["rewriteReferences"] = json!(true);
    assert_eq!(ask(&value), (1, 0));
    value["operations"].as_array_mut().unwrap().remove(0);
    assert_eq!(ask(&value), (0, 1));
    value["extensions"]["renames"] = json!([7, { "from": "asset:a" }, { "from": "agent:a", "to": "asset:b" }]);
    assert_eq!(ask(&value), (0, 3));
    assert_eq!(wanted(&parsed(json!([asset("assets/b.md", "")]))).0, []);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_package_is_a_set_is_answered(
        pick in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..6),
        more in "\\PC{0,30}",
    ) {
        let mut files = small::files();
        let path = pick.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
        let content = files.get_mut(&path).unwrap();
        let at = at.index(content.len());
        content.splice(at..(at + 3).min(content.len()), bytes);
        let base = Package::read(files);
        let mut value = set(json!([
            delete("asset", json!({ "path": "assets/guide.md" })),
            asset("assets/b.md", &more),
            agent("ada", json!({ "id": "ada", "note": more })),
            graph(json!({ "nodes": [{ "id": "begin", "file": more }], "edges": more })),
            step("begin", &format!("---\n{more}\n---\n{more}")),
            delete("step", json!({ "workflowId": "main", "nodeId": "work" })),
            delete("workflow", json!({ "workflowId": "second" })),
        ]));
        let rename = json!({ "from": "asset:assets/guide.md", "to": "asset:assets/b.md" });
        value["extensions"] = json!({ "rewriteReferences": true, "renames": [rename, more] });
        let set = parse(&value).unwrap().set;
        let mut operations = set.operations.clone();
        for rename in wanted(&set).0 {
            operations.extend(renames(&base, &rename.from, &rename.to));
        }
        let objects: Vec<_> =
            operations.iter().map(|o| (o.object.clone(), proposed(&base, o).ok().flatten())).collect();
        let (after, unwritten) = overlay(&base, &objects);
        let schemas = Schemas::compiled();
        let secrets = Redactor::default();
        let check = Check { schemas: &schemas, base: &base, after: &after, set: &value, unwritten: &unwritten, secrets: &secrets };
        let report = validate(&check);
        prop_assert_eq!(report.valid, report.errors.is_empty());
        let names: Vec<_> = objects.iter().map(|(object, _)| object.clone()).collect();
        drop(render(&diff(&base, &after, &names)));
        for (object, wanted) in &objects {
            let current = snapshot(&after, object);
            drop(merge(snapshot(&base, object).as_ref(), current.as_ref(), wanted.as_ref()));
        }
    }

    #[test]
    fn any_bytes_are_no_set_or_are_taken(text in "\\PC{0,40}", index in any::<prop::sample::Index>()) {
        let asset = asset(&format!("assets/{text}"), &text);
        let value = set(json!([step("a", &text), agent("a", json!({ "x": text })), asset]));
        let bytes = value.to_string().into_bytes();
        let mut broken = bytes.clone();
        let at = index.index(broken.len());
        broken[at] = broken[at].wrapping_add(1);
        for bytes in [bytes, broken] {
            if let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
                drop(report_on(&Package::read(small::files()), &value));
            }
        }
    }
}
