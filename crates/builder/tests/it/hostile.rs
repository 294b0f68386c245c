//! Whatever the bytes are: findings, never a crash or a blow-up.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolhost_builder::envelope::{Mode, Request, Scope, TargetType, build_initial_context_envelope};
use toolhost_builder::refs::Index;
use toolhost_builder::{Files, Finding, Package, revision, validate};

use crate::small::{edit, files, findings};

/// Everything that can be done with a package.
fn all(files: Files) -> Vec<Finding> {
    let package = Package::read(files.clone());
    let found = validate(&package);
    drop(Index::of(&package));
    for (target_type, target_id) in [
        (TargetType::Workflow, "main"),
        (TargetType::Step, "work"),
        (TargetType::Agent, "ada"),
        (TargetType::Asset, "assets/guide.md"),
        (TargetType::Workflow, "new"),
        (TargetType::Step, "new"),
        (TargetType::Agent, "new"),
        (TargetType::Asset, "assets/new.md"),
    ] {
        let request = Request {
            package: &package,
            target_type,
            target_id,
            mode: Mode::Create,
            workflow_id: None,
            tools: &[],
            scope: Scope::default(),
        };
        drop(build_initial_context_envelope(&request));
    }
    package.workflows().iter().for_each(|workflow| drop(revision::workflow(&package, workflow)));
    assert_eq!(package.into_files(), files);
    found
}

fn with(path: &str, bytes: impl Into<Vec<u8>>) -> Vec<String> {
    let mut files = files();
    files.insert(path.to_owned(), bytes.into());
    all(files).into_iter().map(|finding| finding.code).collect()
}

fn front(yaml: &str) -> Vec<String> {
    with("workflow.md", format!("---\n{yaml}\n---\n"))
}

#[test]
fn deep_nesting_is_a_finding() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    assert_eq!(front(&format!("a: {}", deep("[", "]"))), ["TOO_DEEP"]);
    assert_eq!(front(&format!("a: {}", deep("{a: ", "}"))), ["TOO_DEEP"]);
    assert_eq!(front(&format!("a:\n  {}x", "- ".repeat(10_000))), ["TOO_DEEP"]);
    assert_eq!(front(&(0..1_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>())[0], "TOO_DEEP");
    for path in ["bmad.json", "workflow.graph.json", "agents.json"] {
        assert_eq!(with(path, deep("[", "]"))[0], "TOO_DEEP", "{path}");
        assert_eq!(with(path, deep("{\"a\":", "}"))[0], "TOO_DEEP", "{path}");
    }
}

#[test]
fn an_alias_bomb_is_a_finding() {
    let mut bomb = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..30 {
        let last = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [last.as_str(); 9].join(", ")));
    }
    assert_eq!(front(&bomb), ["YAML_ALIAS_BOMB"]);
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1_000_000), ["*a"; 1000].join(", "));
    assert_eq!(front(&long), ["YAML_ALIAS_BOMB"]);
    let nested: String = (0..100).map(|level| format!("&n{level} [")).collect();
    assert_eq!(front(&format!("a: {nested}{}{}", "x".repeat(3_000_000), "]".repeat(100))), ["YAML_ALIAS_BOMB"]);
    let own = front("a: &a [*a]");
    assert!(["YAML_ALIAS", "YAML_SYNTAX"].contains(&own[0].as_str()), "{own:?}");
    // An alias that is no bomb is read.
    assert!(
        front("schemaVersion: &v '1.1'\nworkflowType: w\nstepsCompleted: []\ncurrentNodeId: ''\ntopic: *v").is_empty()
    );
}

#[test]
fn a_file_that_is_too_large_is_kept_and_not_parsed() {
    let mut large = files();
    large.insert("workflow.md".to_owned(), vec![b'['; 4 * 1024 * 1024 + 1]);
    let found = all(large);
    assert_eq!(found.iter().map(|f| f.code.as_str()).collect::<Vec<_>>(), ["FILE_TOO_LARGE"]);
}

#[test]
fn values_of_any_kind_in_any_field_are_findings() {
    let odd = [Value::Null, json!(true), json!(-1.5), json!("x/../y"), json!([[]]), json!({ "id": {} })];
    for path in ["bmad.json", "workflow.graph.json", "agents.json"] {
        let original: Value = serde_json::from_slice(&files()[path]).unwrap();
        for pointer in pointers(&original) {
            for value in &odd {
                let mut broken = files();
                edit(&mut broken, path, |v| *v.pointer_mut(&pointer).unwrap() = value.clone());
                all(broken);
            }
        }
    }
}

fn pointers(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let inside: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), field)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in inside {
        all.extend(pointers(value).into_iter().map(|rest| format!("/{name}{rest}")));
    }
    all
}

#[test]
fn findings_are_capped_and_the_rest_are_counted() {
    let mut many = files();
    for number in 0..1500 {
        many.insert(format!("steps/lost{number}.md"), Vec::new());
    }
    let found = findings(many);
    assert_eq!(found.len(), 1001);
    assert_eq!(found[1000].code, "MORE_FINDINGS");
    assert!(found[1000].message.starts_with("500 more findings, 0 of them errors"), "{:?}", found[1000]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_file_are_findings(bytes in prop::collection::vec(any::<u8>(), 0..300), which in any::<prop::sample::Index>()) {
        let mut files = files();
        let path = files.keys().nth(which.index(files.len())).unwrap().clone();
        files.insert(path, bytes);
        all(files);
    }

    #[test]
    fn any_front_matter_is_findings(yaml in "[-\\[\\]{}:,&*#!|>'\"%@`?~ \n\ta-c0-9.<]{0,120}") {
        let mut files = files();
        files.insert("steps/work.md".to_owned(), format!("---\n{yaml}\n---\n").into_bytes());
        all(files);
    }

    #[test]
    fn any_text_as_front_matter_is_findings(yaml in "\\PC{0,200}") {
        let mut files = files();
        files.insert("workflow.md".to_owned(), format!("---\n{yaml}\n---\n").into_bytes());
        all(files);
    }

    #[test]
    fn a_package_with_changed_bytes_is_findings(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut files = files();
        let paths: Vec<String> = files.keys().cloned().collect();
        for (which, at, byte) in changes {
            let content = files.get_mut(which.get(&paths)).unwrap();
            let at = at.index(content.len());
            content[at] = byte;
        }
        all(files);
    }
}
