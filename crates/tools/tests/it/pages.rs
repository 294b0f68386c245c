//! `file.list` and `file.search`: what they see, and pages that cover all of it once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolhost_contract::ErrorKind;
use toolhost_testkit::House;

use crate::room::{house, refused};

/// All pages of a call, the items of each joined.
async fn all_pages(house: &House, tool: &str, mut arguments: Value, items: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let data = house.data(tool, arguments.clone()).await;
        let page = data[items].as_array().unwrap();
        assert!(page.len() <= usize::try_from(arguments["limit"].as_u64().unwrap()).unwrap(), "{data}");
        seen.extend(page.iter().cloned());
        if data["nextCursor"].is_null() {
            return seen;
        }
        assert!(!page.is_empty(), "a page with nothing but a cursor: {data}");
        arguments["cursor"] = data["nextCursor"].clone();
    }
}

async fn forest() -> House {
    let house = house(&[]).await;
    for n in 0..60 {
        house.workspace.write(&format!("d{}/f{n}.txt", n % 7), format!("needle {n}\nhay\nneedle again\n"));
    }
    for name in ["a b.txt", "ü.txt", "z:1.txt", "d1.txt", "d1-x/y.txt", "new\nline.txt"] {
        house.workspace.write(name, "needle\n");
    }
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_listing_cover_all_without_repeats() {
    let house = forest().await;
    let whole = house.data("file.list", json!({ "recursive": true, "limit": 1000 })).await;
    let expected: Vec<Value> = whole["entries"].as_array().unwrap().clone();
    assert_eq!((expected.len(), &whole["total"]), (66 + 8, &json!(74)), "{whole}");
    for limit in [1, 7, 73, 74] {
        let seen = all_pages(&house, "file.list", json!({ "recursive": true, "limit": limit }), "entries").await;
        assert_eq!(seen, expected, "pages of {limit}");
    }
    let distinct: BTreeSet<String> = expected.iter().map(|entry| entry["path"].to_string()).collect();
    assert_eq!(distinct.len(), expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_search_cover_all_without_repeats() {
    let house = forest().await;
    let whole = house.data("file.search", json!({ "pattern": "needle", "limit": 1000 })).await;
    let expected: Vec<Value> = whole["matches"].as_array().unwrap().clone();
    assert_eq!(
        (expected.len(), &whole["total"], &whole["filesWithMatches"]),
        (126, &json!(126), &json!(66)),
        "{whole}"
    );
    for limit in [1, 5, 125] {
        let seen = all_pages(&house, "file.search", json!({ "pattern": "needle", "limit": limit }), "matches").await;
        assert_eq!(seen, expected, "pages of {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_is_none_is_refused() {
    let house = forest().await;
    for tool in ["file.list", "file.search"] {
        for cursor in ["x", "zz", "", "2f", "ffff"] {
            let mut arguments = json!({ "cursor": cursor });
            if tool == "file.search" {
                arguments["pattern"] = json!("needle");
            }
            let outcome = house.call(tool, arguments).await;
            // Some texts are cursors by accident; then the page is one of this listing all the same.
            if let Some(error) = outcome.error {
                assert_eq!(error.kind, ErrorKind::Validation, "{tool} {cursor}: {error:?}");
                assert!(error.hint.unwrap().contains("nextCursor"));
            }
        }
        let arguments = json!({ "cursor": "no hex", "pattern": "x" });
        refused(&house, tool, arguments, ErrorKind::Validation).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_git_ignores_and_what_is_hidden_is_left_out_unless_asked_for() {
    let house = house(&[
        (".gitignore", b"target/\n*.log\n"),
        ("target/x.txt", b"needle"),
        ("a.log", b"needle"),
        (".hidden/x.txt", b"needle"),
        ("seen.txt", b"needle"),
        (".git/config", b"needle"),
    ])
    .await;
    let paths = async |arguments: Value| -> Vec<String> {
        let data = house.data("file.list", arguments).await;
        data["entries"].as_array().unwrap().iter().map(|e| e["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(json!({ "recursive": true })).await, ["seen.txt"]);
    let ignored = paths(json!({ "recursive": true, "includeIgnored": true })).await;
    assert_eq!(ignored, ["a.log", "seen.txt", "target", "target/x.txt"]);
    let hidden = paths(json!({ "recursive": true, "includeHidden": true })).await;
    assert!(hidden.contains(&".gitignore".to_owned()) && hidden.contains(&".hidden/x.txt".to_owned()), "{hidden:?}");
    let found = house.data("file.search", json!({ "pattern": "needle" })).await;
    assert_eq!((&found["total"], &found["matches"][0]["path"]), (&json!(1), &json!("seen.txt")));
}

/// Rules: 002.8.
#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_matches_names_or_paths() {
    let house = house(&[("a.rs", b""), ("src/b.rs", b""), ("src/deep/c.rs", b""), ("src/c.txt", b"")]).await;
    let total = async |arguments: Value| house.data("file.list", arguments).await["total"].clone();
    assert_eq!(total(json!({ "pattern": "*.rs" })).await, 3);
    assert_eq!(total(json!({ "pattern": "src/**/*.rs" })).await, 2);
    assert_eq!(total(json!({ "pattern": "*.rs", "path": "src" })).await, 2);
    assert_eq!(total(json!({ "pattern": "*.rs", "recursive": false })).await, 1);
    assert_eq!(total(json!({ "maxDepth": 2 })).await, 5, "a.rs, src, and what is right in it");
    refused(&house, "file.list", json!({ "pattern": "a[" }), ErrorKind::Validation).await;
    let as_text = house.data("file.search", json!({ "pattern": "main(" })).await;
    assert!(as_text["note"].as_str().unwrap().contains("plain text"), "{as_text}");
    refused(&house, "file.search", json!({ "pattern": "a", "glob": "a[" }), ErrorKind::Validation).await;
    refused(&house, "file.list", json!({ "path": "nowhere" }), ErrorKind::NotFound).await;
    refused(&house, "file.search", json!({ "path": "nowhere", "pattern": "a" }), ErrorKind::NotFound).await;
    refused(&house, "file.list", json!({ "path": ".." }), ErrorKind::Security).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_out_of_the_workspace_are_not_followed() {
    let house = house(&[("a.txt", b"needle\n")]).await;
    house.workspace.write_beside("secret.txt", "needle outside\n");
    house.workspace.link(house.workspace.beside(""), "out");
    house.workspace.link("../secret.txt", "secret");
    let found = house.data("file.search", json!({ "pattern": "needle" })).await;
    assert_eq!(found["total"], 1, "{found}");
    let listed = house.data("file.list", json!({ "recursive": true })).await;
    let kinds: Vec<(&str, &str)> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["path"].as_str().unwrap(), e["type"].as_str().unwrap()))
        .collect();
    assert_eq!(kinds, [("a.txt", "file"), ("out", "link"), ("secret", "link")]);
    refused(&house, "file.list", json!({ "path": "out" }), ErrorKind::Security).await;
    refused(&house, "file.search", json!({ "path": "out", "pattern": "needle" }), ErrorKind::Security).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_is_shown_with_its_neighbours() {
    let house = house(&[("a.txt", b"one\ntwo\nTHREE\nfour\nfive\n")]).await;
    let data = house.data("file.search", json!({ "pattern": "three", "ignoreCase": true, "context": 1 })).await;
    let expected = json!([{ "path": "a.txt", "line": 3, "text": "THREE", "before": ["two"], "after": ["four"] }]);
    assert_eq!(data["matches"], expected);
    assert_eq!(house.data("file.search", json!({ "pattern": "three" })).await["total"], 0);
    let outcome = house.call("file.search", json!({ "pattern": "three", "ignoreCase": true, "context": 1 })).await;
    assert_eq!(outcome.text, "a.txt-2-two\na.txt:3:THREE\na.txt-4-four");
}
