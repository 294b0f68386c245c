//! A small edit keeps the lines that it does not change, byte for byte, and findings name the line of what it wrote.

use serde_json::{Value, json};
use toolhost_builder::change::{Check, Report, impact_on, parse, validate};
use toolhost_builder::schema::Schemas;
use toolhost_builder::{Files, Package};
use toolhost_contract::Redactor;

use crate::small;
use crate::small_edits::{made_of, set, step_edits, text, workflow};

const WAYS: &str = "transitions:\n  # the usual way\n  - to: \"end\"   # out\n    label: 'good'\n    isDefault: true\n\n  # and back\n  - label: again\n    to: work\n  # no more\n";

fn with_ways() -> Files {
    let mut files = small::files();
    small::replace(
        &mut files,
        "steps/choose.md",
        "type: decision\n",
        &format!("type: decision\n{WAYS}# the end\ntitle: \"Choose\" # short\n"),
    );
    files
}

fn ways_after(edits: Value) -> String {
    let made = made_of(with_ways(), json!([step_edits("choose", edits)])).unwrap();
    let text = text(&made.package, "steps/choose.md");
    let (_, rest) = text.split_once("type: decision\n").unwrap();
    rest.split_once("---\n").unwrap().0.to_owned()
}

#[test]
fn transitions_that_stay_keep_their_bytes() {
    let rest = "# the end\ntitle: \"Choose\" # short\n";
    let added = ways_after(json!({ "transitions": [{ "to": "begin", "label": "anew" }] }));
    let expected = WAYS.replace("    to: work\n", "    to: work\n  - to: begin\n    label: anew\n");
    assert_eq!(added, format!("{expected}{rest}"));
    let changed =
        ways_after(json!({ "transitions": [{ "to": "end", "label": "fine", "conditionText": "it is: good" }] }));
    let expected = WAYS
        .replace("label: 'good'", "label: fine")
        .replace("    isDefault: true\n", "    isDefault: true\n    conditionText: \"it is: good\"\n");
    assert_eq!(changed, format!("{expected}{rest}"));
    let gone = ways_after(json!({ "deleteTransitions": ["work"] }));
    assert_eq!(gone, format!("{}{rest}", WAYS.replace("  - label: again\n    to: work\n", "")));
    let titled = ways_after(json!({ "frontMatter": { "title": "Decide" } }));
    assert_eq!(titled, format!("{WAYS}# the end\ntitle: Decide # short\n"));
}

#[test]
fn a_variable_is_added_and_the_others_stay() {
    let mut files = small::files();
    let given = "variables:\n  topic: tea\n";
    let many = "variables:\n  # what it is about\n  topic: 'tea'  # or coffee\n  rounds: 2\n\n  list: [a, b]\n";
    small::replace(&mut files, "workflow.md", given, many);
    let of = |files: Files, variables: Value| {
        let made = made_of(files, json!([workflow(json!({ "frontMatter": { "variables": variables } }))])).unwrap();
        text(&made.package, "workflow.md")
    };
    let before = text(&Package::read(files.clone()), "workflow.md");
    assert_eq!(
        of(files.clone(), json!({ "language": "en" })),
        before.replace("  list: [a, b]\n", "  list: [a, b]\n  language: en\n")
    );
    assert_eq!(
        of(files.clone(), json!({ "rounds": 3, "topic": null })),
        before.replace("  topic: 'tea'  # or coffee\n", "").replace("rounds: 2", "rounds: 3")
    );
    // Also where they stand on one line.
    small::replace(&mut files, "workflow.md", many, "variables: {topic: tea}\n");
    let made = of(files.clone(), json!({ "language": "en" }));
    assert!(made.contains("variables: {\"topic\":\"tea\",\"language\":\"en\"}\n"), "{made}");
    small::replace(&mut files, "workflow.md", "variables: {topic: tea}\n", "");
    assert!(of(files, json!({ "language": "en", "topic": null })).contains("variables: {\"language\":\"en\"}\n"));
}

#[test]
fn an_edge_or_a_transition_without_a_label_has_the_title_of_its_target() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["nodes"][3]["title"] = json!("The end"));
    let edges = json!({ "edges": [{ "from": "begin", "to": "end" }, { "from": "end", "to": "work" }] });
    let made = made_of(files.clone(), json!([workflow(edges)])).unwrap();
    let label = |from: &str, to: &str| {
        let main = made.package.workflow("main").unwrap();
        main.edges.iter().find(|edge| edge.from == from && edge.to == to).unwrap().value["label"].clone()
    };
    assert_eq!((label("begin", "end"), label("end", "work")), (json!("The end"), json!("work")));
    let said = "workflow:main: the edge from `begin` to `end` has the label `The end`, as none is given";
    assert!(made.implied.iter().any(|implied| implied == said), "{:?}", made.implied);
    let made = made_of(files, json!([step_edits("begin", json!({ "transitions": [{ "to": "end" }] }))])).unwrap();
    assert!(text(&made.package, "steps/begin.md").contains("  - to: end\n    label: The end\n"));
    let said = "step:main/begin: its transition to `end` has the label `The end`, as none is given";
    assert!(made.implied.iter().any(|implied| implied == said), "{:?}", made.implied);
}

#[test]
fn one_edge_goes_and_several_go() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| graph["edges"].as_array_mut().unwrap().truncate(3));
    let made = made_of(files, json!([workflow(json!({ "deleteNodes": ["end"] }))])).unwrap();
    assert_eq!(made.implied[0], "workflow:main: the edge at `end` goes with it");
}

#[test]
fn a_passage_that_is_not_alone_is_told_with_all_its_lines() {
    let refused = |count: usize| {
        let mut files = small::files();
        files.insert("assets/guide.md".to_owned(), "tea\n\n".repeat(count).into_bytes());
        let edit = json!({ "textEdits": [{ "find": "tea", "replace": "x" }] });
        let asset =
            json!({ "op": "upsert", "targetType": "asset", "target": { "path": "assets/guide.md" }, "payload": edit });
        made_of(files, json!([asset])).err().unwrap()[0].message.clone()
    };
    assert!(
        refused(4).contains("stands 4 times in `asset:assets/guide.md`, on lines 1, 3, 5 and 7 ("),
        "{}",
        refused(4)
    );
    assert!(refused(12).contains("on lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 2 more ("), "{}", refused(12));
}

/// The report on a set that only changes the workflow.
fn report(files: Files, edits: Value) -> Report {
    let base = Package::read(files.clone());
    let value = set(json!([workflow(edits)]));
    let after = made_of(files, value["operations"].clone()).unwrap().package;
    let mut whole = parse(&value).unwrap().set;
    toolhost_builder::change::complete(&base, &mut whole, &Redactor::default()).unwrap();
    assert_eq!(impact_on(&base, &whole.operations).objects.first().map(String::as_str), Some("workflow:main"));
    let check = Check {
        schemas: &Schemas::compiled(),
        base: &base,
        after: &after,
        set: &whole.to_value(),
        unwritten: &[],
        secrets: &Redactor::default(),
    };
    validate(&check)
}

#[test]
fn a_condition_changed_in_words_alone_and_a_field_that_is_none_are_doubted() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        graph["edges"][3]["conditionText"] = json!("there is tea");
        graph["edges"][3]["conditionExpr"] = json!({ "var": "topic" });
    });
    let codes = |edits: Value| -> Vec<String> {
        let report = report(files.clone(), edits);
        assert!(report.valid, "{report:#?}");
        report.warnings.into_iter().map(|found| found.code).filter(|code| !code.starts_with("RISK_")).collect()
    };
    assert_eq!(codes(json!({ "edges": [{ "id": "e4", "conditionText": "there is none" }] })), ["CONDITION_TEXT_ALONE"]);
    let both = json!({ "id": "e4", "conditionText": "none", "conditionExpr": { "!": [{ "var": "topic" }] } });
    assert_eq!(codes(json!({ "edges": [both] })), Vec::<String>::new());
    assert_eq!(
        codes(json!({ "edges": [{ "id": "e4", "conditionText": "none", "conditionExpr": null }] })),
        Vec::<String>::new()
    );
    assert_eq!(codes(json!({ "frontMatter": { "projectname": "Tea" } })), ["FRONT_MATTER_FIELD_UNKNOWN"]);
    let profile = json!({
        "industry_domain": "Tea", "target_users": ["a"], "core_pain_points": ["b"], "expected_outcomes": ["c"], "quality_style": ["d"],
    });
    assert_eq!(codes(json!({ "frontMatter": { "domain_profile": profile } })), Vec::<String>::new());
    assert_eq!(codes(json!({ "frontMatter": { "extra": "was there", "project_name": "Tea" } })), Vec::<String>::new());
}

#[test]
fn only_a_change_of_the_ways_is_a_change_of_the_graph() {
    let flags = |edits: Value| report(small::files(), edits).impact.risk_flags;
    let is_change = |edits: Value| flags(edits).contains(&"graph-change".to_owned());
    assert!(!is_change(
        json!({ "nodes": [{ "id": "work", "title": "Work", "description": "Works.", "agentId": "ada" }] })
    ));
    assert!(is_change(json!({ "nodes": [{ "id": "work", "type": "decision" }] })));
    assert!(is_change(json!({ "edges": [{ "id": "e4", "conditionText": "never" }] })));
    assert!(is_change(json!({ "entryNodeId": "work" })));
}

#[test]
fn what_a_deleted_node_leaves_behind_is_told_without_a_number_that_nobody_wrote() {
    let report = report(small::files(), json!({ "deleteNodes": ["begin"] }));
    let said: Vec<(&str, &str)> =
        report.errors.iter().map(|found| (found.message.as_str(), found.hint.as_str())).collect();
    let entry = "the set deletes it: name the node that comes first now as `entryNodeId` in the same set";
    assert!(said.contains(&("there is no node `begin`", entry)), "{said:#?}");
    assert!(said.iter().all(|(message, _)| !message.contains("operations[")), "{said:#?}");
    assert_eq!(said.iter().filter(|(message, _)| message.contains("`begin`")).count(), 1, "{said:#?}");
}
