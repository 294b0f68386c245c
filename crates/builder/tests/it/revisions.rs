//! Revisions change with what they are of, and with nothing else.

use serde_json::json;
use toolhost_builder::{Files, Package, revision};

use crate::small::{edit, files, replace};

/// Rules: 000.27, 001.42.
#[test]
fn a_revision_is_of_the_canonical_form() {
    let a = serde_json::from_str(r#"{"b":1,"a":[1.0,"é"]}"#).unwrap();
    let b = serde_json::from_str("{ \"a\": [1, \"\\u00e9\"], \"b\": 1 }").unwrap();
    assert_eq!(revision::of(&a), revision::of(&b));
    // echo -n '{}' | sha256sum
    assert_eq!(revision::of(&json!({})), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
}

fn all(files: &Files) -> Vec<String> {
    let package = Package::read(files.clone());
    let workflow = &package.workflows()[0];
    vec![
        revision::workflow(&package, workflow),
        revision::step(&package, workflow.step("work").unwrap()),
        revision::agent(&package.agents()[0]),
        revision::asset(&package, &package.asset("assets/guide.md").unwrap()),
    ]
}

#[test]
fn an_edit_changes_the_revision_of_what_was_edited() {
    let check = |change: &dyn Fn(&mut Files), expected: [bool; 4]| {
        let (before, mut after) = (files(), files());
        change(&mut after);
        let changed: Vec<bool> = all(&before).iter().zip(all(&after)).map(|(a, b)| *a != b).collect();
        assert_eq!(changed, expected);
    };
    check(&|f| replace(f, "workflow.md", "# Small", "# Smaller"), [true, false, false, false]);
    check(&|f| replace(f, "steps/work.md", "Say it.", "Sing it."), [true, true, false, false]);
    check(&|f| edit(f, "workflow.graph.json", |v| v["edges"][0]["label"] = json!("x")), [true, false, false, false]);
    check(&|f| edit(f, "workflow.graph.json", |_| {}), [false; 4]);
    check(&|f| edit(f, "agents.json", |v| v["agents"][0]["webskip"] = json!(true)), [false, false, true, false]);
    check(&|f| replace(f, "assets/guide.md", "Guide", "Guides"), [false, false, false, true]);
}
