//! Small edits: secrets that go or stay, ways that become the default, and all that is wrong at once.

use serde_json::{Value, json};
use toolhost_builder::Files;

use crate::change::upsert;
use crate::small;
use crate::small_edits::{codes, made_of, step_edits, text, workflow};

const ONE: &str = "ghp_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1";
const TWO: &str = "ghp_b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2";

/// An asset with two secrets and the mark itself, and an agent with one.
fn secret() -> Files {
    let mut files = small::files();
    let content = format!("first: {ONE}\nsecond: {TWO}\n`[redacted]` is a mark.\n");
    files.insert("assets/keys.md".to_owned(), content.into_bytes());
    small::edit(&mut files, "agents.json", |agents| {
        agents["agents"][0]["systemPrompt"] = json!(format!("Call it with {TWO}. Then stop."));
    });
    files
}

fn in_asset(find: &str, replace: &str) -> Result<String, String> {
    let edits = json!({ "textEdits": [{ "find": find, "replace": replace }] });
    let made = made_of(secret(), json!([upsert("asset", json!({ "path": "assets/keys.md" }), edits)]));
    made.map(|made| text(&made.package, "assets/keys.md")).map_err(|found| found[0].code.clone())
}

#[test]
fn one_of_two_secrets_goes_by_its_mark() {
    let rest = "`[redacted]` is a mark.\n";
    let is = |find: &str, replace: &str, expected: &str| {
        assert_eq!(in_asset(find, replace).as_deref(), Ok(expected), "{find}");
    };
    is("second: [redacted]\n", "", &format!("first: {ONE}\n{rest}"));
    is("first: [redacted]", "first: $KEY", &format!("first: $KEY\nsecond: {TWO}\n{rest}"));
    is("[redacted]\nsecond: [redacted]", "none\nsecond: none", &format!("first: none\nsecond: none\n{rest}"));
    // What stays is said by the mark, in its order.
    is("first: [redacted]", "1st: [redacted]!", &format!("1st: {ONE}!\nsecond: {TWO}\n{rest}"));
    is("first: [redacted]\nsecond", "a: [redacted]\nb", &format!("a: {ONE}\nb: {TWO}\n{rest}"));
    // The mark that stands in the text is a word like others.
    is("`[redacted]` is", "`…` is", &format!("first: {ONE}\nsecond: {TWO}\n`…` is a mark.\n"));
    let none = |find: &str, replace: &str, code: &str| {
        assert_eq!(in_asset(find, replace), Err(code.to_owned()), "{find}");
    };
    none(": [redacted]", "", "TEXT_NOT_ONCE");
    none("third: [redacted]", "", "TEXT_NOT_FOUND");
    // A part of the mark is no place, and a part of a secret none either.
    none("cted]\nsecond", "", "TEXT_NOT_FOUND");
    none("cted]\nsecond: [redacted]", "", "TEXT_NOT_FOUND");
    none("first: [redacted]\nsecond: [reda", "", "TEXT_NOT_FOUND");
    none("first: ghp_a1", "", "TEXT_NOT_FOUND");
    // Nothing around a secret that stays makes it visible.
    none("first: [redacted]", "first: x[redacted]", "SECRET_UNCOVERED");
}

#[test]
fn a_secret_of_an_agent_goes_by_its_mark_too() {
    let agent = |find: &str, replace: &str| {
        let edits = json!({ "textEdits": [{ "find": find, "replace": replace }] });
        made_of(secret(), json!([upsert("agent", json!({ "agentId": "ada" }), edits)]))
            .map(|made| made.package.agent("ada").unwrap().value["systemPrompt"].as_str().unwrap().to_owned())
            .map_err(|found| found[0].code.clone())
    };
    assert_eq!(
        agent("with [redacted]. Then", "without a key. Then").as_deref(),
        Ok("Call it without a key. Then stop.")
    );
    assert_eq!(
        agent("it with [redacted].", "them with [redacted].").as_deref(),
        Ok(&*format!("Call them with {TWO}. Then stop."))
    );
}

#[test]
fn the_only_way_before_is_the_default_beside_one_with_a_condition() {
    let by_graph = |edges: Value| made_of(small::files(), json!([workflow(json!({ "edges": edges }))])).unwrap();
    let made = by_graph(json!([{ "from": "work", "to": "end", "conditionText": "there is nothing to choose" }]));
    assert_eq!(codes(&made.package), Vec::<String>::new());
    let says = "workflow:main: the way from `work` to `choose` is the default, as it alone has no condition";
    assert!(made.implied.iter().any(|said| said == says), "{:?}", made.implied);
    let transitions = json!([{ "to": "end", "conditionText": "there is nothing to choose" }]);
    let by_step = made_of(small::files(), json!([step_edits("work", json!({ "transitions": transitions }))])).unwrap();
    assert_eq!(codes(&by_step.package), Vec::<String>::new());
    let says = "step:main/work: its transition to `choose` is the default, as it alone has no condition";
    assert!(by_step.implied.iter().any(|said| said == says), "{:?}", by_step.implied);
    // Without a condition nobody can tell: a node may have been put in between, and the way before left by mistake.
    let unclear = by_graph(json!([{ "from": "work", "to": "end" }]));
    assert_eq!(codes(&unclear.package), ["DEFAULT_EDGE_MISSING"]);
    let said = by_graph(json!([{ "from": "work", "to": "end", "conditionText": "x", "isDefault": true }]));
    assert_eq!(codes(&said.package), Vec::<String>::new());
    assert!(!said.implied.iter().any(|said| said.contains("as it alone")), "{:?}", said.implied);
}

#[test]
fn front_matter_that_is_not_whole_gets_what_its_node_asks_for() {
    let body = "## Goal\n\nSay it.\n\n## Instructions\n\n1. Say it.\n\n## Completion (Document-as-State)\n\nSaid.\n";
    let operations = json!([
        workflow(json!({
            "nodes": [{ "id": "check", "type": "decision" }],
            "edges": [{ "from": "check", "to": "end" }, { "id": "e1", "to": "check" }],
        })),
        step_edits("check", json!({ "step_markdown": format!("---\ntitle: Check\n---\n\n{body}") })),
    ]);
    let made = made_of(small::files(), operations).unwrap();
    let check = text(&made.package, "steps/check.md");
    assert!(
        check.contains("title: Check\n") && check.contains("nodeId: check\n") && check.contains("type: decision\n"),
        "{check}"
    );
    let says = "step:main/check: its front matter lacked `schemaVersion` and `nodeId` and `type`, and gets what its node asks for";
    assert!(made.implied.iter().any(|said| said == says), "{:#?}", made.implied);
    // Of a step that is there, it is an error: it may have lost more than is asked for.
    let lost = json!([step_edits("work", json!({ "step_markdown": format!("---\ntitle: Work\n---\n\n{body}") }))]);
    let made = made_of(small::files(), lost).unwrap();
    assert!(codes(&made.package).contains(&"SCHEMA_REQUIRED".to_owned()), "{:?}", codes(&made.package));
}

#[test]
fn all_that_is_wrong_with_small_edits_is_told_at_once() {
    let operations = json!([
        workflow(json!({
            "deleteEdges": ["e9"],
            "deleteNodes": ["nobody"],
            "edges": [{ "from": "begin", "to": "nowhere" }, { "id": "e8", "label": "x" }],
            "textEdits": [{ "find": "absent", "replace": "x" }, { "find": "missing", "replace": "x" }],
        })),
        step_edits(
            "work",
            json!({
                "deleteTransitions": ["nowhere"],
                "textEdits": [{ "find": "absent", "replace": "x" }, { "find": "same", "replace": "same" }],
            })
        ),
        upsert(
            "agent",
            json!({ "agentId": "ada" }),
            json!({
                "textEdits": [{ "find": "absent", "replace": "x" }, { "find": "missing", "replace": "x" }],
            })
        ),
    ]);
    let found: Vec<(String, String)> = made_of(small::files(), operations)
        .err()
        .unwrap()
        .into_iter()
        .map(|finding| (finding.code, finding.pointer))
        .collect();
    let expected = [
        ("EDGE_NOT_FOUND", 0),
        ("NODE_NOT_FOUND", 0),
        ("NODE_NOT_FOUND", 0),
        ("EDGE_NOT_FOUND", 0),
        ("TEXT_NOT_FOUND", 0),
        ("TEXT_NOT_FOUND", 0),
        ("TRANSITION_NOT_FOUND", 1),
        ("TEXT_NOT_FOUND", 1),
        ("TEXT_UNCHANGED", 1),
        ("TEXT_NOT_FOUND", 2),
        ("TEXT_NOT_FOUND", 2),
    ];
    let expected: Vec<(String, String)> =
        expected.iter().map(|(code, n)| ((*code).to_owned(), format!("operations[{n}]"))).collect();
    assert_eq!(found, expected);
}

#[test]
fn several_secrets_do_not_change_places() {
    let both = "first: [redacted]\nsecond: [redacted]";
    assert_eq!(in_asset(both, "second: [redacted]\nfirst: [redacted]"), Err("SECRETS_UNCLEAR".to_owned()));
    let longer = in_asset(both, "first: [redacted] (old)\n\nsecond: [redacted]").unwrap();
    assert!(longer.starts_with(&format!("first: {ONE} (old)\n\nsecond: {TWO}\n")), "{longer}");
}

#[test]
fn a_passage_that_an_earlier_edit_took_is_told_as_such() {
    let edits =
        json!({ "textEdits": [{ "find": "Say it.", "replace": "Say." }, { "find": "Say it", "replace": "x" }] });
    let found = made_of(small::files(), json!([step_edits("work", edits)])).err().unwrap();
    assert_eq!(found[0].code, "TEXT_CHANGED_BEFORE");
    assert!(found[0].hint.contains("one edit of both"), "{found:?}");
}

#[test]
fn a_transition_that_leads_elsewhere_takes_its_edge_along() {
    let mut files = small::files();
    small::edit(&mut files, "workflow.graph.json", |graph| {
        graph["edges"][3]["conditionExpr"] = json!({ "var": "topic" });
    });
    let ways = "transitions:\n  - to: end\n    label: good\n    isDefault: true\n  - to: work\n    label: again\n";
    small::replace(&mut files, "steps/choose.md", "type: decision\n", &format!("type: decision\n{ways}"));
    let edits = json!({ "textEdits": [{ "find": "- to: work", "replace": "- to: begin" }] });
    let made = made_of(files.clone(), json!([step_edits("choose", edits)])).unwrap();
    let edge = &made.package.workflow("main").unwrap().edges[3].value;
    let expected =
        json!({ "id": "e4", "from": "choose", "to": "begin", "label": "again", "conditionExpr": { "var": "topic" } });
    assert_eq!(*edge, expected);
    let says = "workflow:main: the edge from `choose` to `work` leads to `begin`, as its transition does";
    assert!(made.implied.iter().any(|said| said == says), "{:?}", made.implied);
    // With another condition the rule of the former one does not go along.
    let other = json!({
        "deleteTransitions": ["work"],
        "transitions": [{ "to": "begin", "label": "anew", "conditionText": "all is wrong" }],
    });
    let made = made_of(files, json!([step_edits("choose", other)])).unwrap();
    let edge = &made.package.workflow("main").unwrap().edges[3].value;
    let expected =
        json!({ "id": "e4", "from": "choose", "to": "begin", "label": "anew", "conditionText": "all is wrong" });
    assert_eq!(*edge, expected);
}

#[test]
fn the_text_of_a_step_without_front_matter_leaves_that_as_it_is() {
    let mut files = small::files();
    small::replace(&mut files, "steps/work.md", "inputs: [text]", "inputs: [text] # from the start\nowner: \"Team A\"");
    let before = String::from_utf8(files["steps/work.md"].clone()).unwrap();
    let body = "## Goal\n\nShort.\n\n## Instructions\n\n1. Say it.\n\n## Completion (Document-as-State)\n\nSaid.\n";
    let made = made_of(files, json!([step_edits("work", json!({ "step_markdown": body }))])).unwrap();
    let front = &before[..before.find("\n---\n").unwrap() + 5];
    assert_eq!(text(&made.package, "steps/work.md"), format!("{front}\n{body}"));
    let says = "step:main/work: its text has no front matter, and keeps the one that is there";
    assert_eq!(made.implied, [says]);
}

#[test]
fn the_first_part_of_a_way_that_is_parted_says_when_it_is_taken() {
    let rule = json!({ "==": [{ "var": "result" }, "bad"] });
    let files = || {
        let mut files = small::files();
        small::edit(&mut files, "workflow.graph.json", |graph| {
            graph["edges"][3]["conditionText"] = json!("it is bad");
            graph["edges"][3]["conditionExpr"] = rule.clone();
        });
        files
    };
    let parted = |to: &str, more: Value| {
        let mut first = json!({ "from": "choose", "to": "check" });
        first.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let set = json!([
            workflow(json!({
                "nodes": [{ "id": "check", "agentId": "ada" }],
                "edges": [first, { "from": "check", "to": to }],
                "deleteEdges": [{ "from": "choose", "to": to }],
            })),
            step_edits(
                "check",
                json!({ "step_markdown": "## Goal\n\nA.\n\n## Instructions\n\nB.\n\n## Completion (Document-as-State)\n\nC.\n" })
            ),
        ]);
        let made = made_of(files(), set).unwrap();
        assert_eq!(codes(&made.package), Vec::<String>::new(), "{to} {more}");
        let graph: Value = serde_json::from_str(&text(&made.package, "workflow.graph.json")).unwrap();
        let edges = graph["edges"].as_array().unwrap().clone();
        (edges.into_iter().find(|edge| edge["id"] == "choose--check").unwrap(), made.implied)
    };
    let (edge, implied) = parted("work", json!({}));
    assert_eq!(
        (&edge["label"], &edge["conditionText"], &edge["conditionExpr"]),
        (&json!("again"), &json!("it is bad"), &rule)
    );
    let says = "the edge from `choose` to `check` has `label`, `conditionText`, `conditionExpr` of the edge to `work`, whose place it takes";
    assert!(implied.contains(&format!("workflow:main: {says}")), "{implied:#?}");
    let (edge, _) = parted("end", json!({}));
    assert_eq!((&edge["label"], &edge["isDefault"]), (&json!("good"), &json!(true)));
    // What the set says itself is meant.
    let (edge, _) = parted("work", json!({ "conditionText": "it is worse", "label": "worse" }));
    assert_eq!((&edge["label"], &edge["conditionText"]), (&json!("worse"), &json!("it is worse")));
    assert_eq!(edge.get("conditionExpr"), None);
}

#[test]
fn an_edge_of_a_node_that_goes_is_led_elsewhere_by_its_id() {
    let set = json!([workflow(json!({ "deleteNodes": ["work"], "edges": [{ "id": "e1", "to": "choose" }] }))]);
    let made = made_of(small::files(), set).unwrap();
    let graph: Value = serde_json::from_str(&text(&made.package, "workflow.graph.json")).unwrap();
    let ids: Vec<&Value> = graph["edges"].as_array().unwrap().iter().map(|edge| &edge["id"]).collect();
    assert_eq!(ids, [&json!("e3"), &json!("e1")]);
    let says = "workflow:main: the edge `e1` does not go with `work`: it leads from `begin` to `choose`";
    assert!(made.implied.iter().any(|said| said == says), "{:#?}", made.implied);
    // One that still leads there goes.
    let set = json!([workflow(json!({ "deleteNodes": ["work"], "edges": [{ "id": "e1", "label": "x" }] }))]);
    let found = made_of(small::files(), set).err().unwrap();
    assert!(found[0].hint.contains("say where it leads instead of `work`"), "{found:#?}");
}
