//! `file.write`, `file.move`, `file.delete`: what they change, and what they never do.

use serde_json::json;
use toolhost_contract::ErrorKind;

use crate::room::{house, refused};

const SECRET: &str = "API_KEY=abcdefgh12345678\n";

/// Rules: 002.12, 004.18.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_made_with_its_folders_and_replaced_whole() {
    let house = house(&[]).await;
    let made = house.data("file.write", json!({ "path": "a/b/c.txt", "content": "one" })).await;
    let again = house.data("file.write", json!({ "path": "a/b/c.txt", "content": "two" })).await;
    assert_eq!((&made["created"], &again["created"]), (&json!(true), &json!(false)));
    assert_eq!(house.workspace.read("a/b/c.txt"), "two");
    assert_eq!(house.workspace.snapshot().len(), 3, "two folders and a file: nothing is left over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_may_depend_on_what_is_there() {
    let house = house(&[("a.txt", b"one")]).await;
    let content = |extra: serde_json::Value| {
        let mut arguments = json!({ "path": "a.txt", "content": "two" });
        arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        arguments
    };
    refused(&house, "file.write", content(json!({ "createOnly": true })), ErrorKind::Conflict).await;
    refused(&house, "file.write", content(json!({ "expectedSha256": "0".repeat(64) })), ErrorKind::Conflict).await;
    let hash = house.data("file.read", json!({ "path": "a.txt" })).await["sha256"].as_str().unwrap().to_uppercase();
    assert!(house.call("file.write", content(json!({ "expectedSha256": hash }))).await.ok);
    assert_eq!(house.workspace.read("a.txt"), "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_a_secret_is_never_written_over_it() {
    let house = house(&[(".env", SECRET.as_bytes())]).await;
    let shown = house.data("file.read", json!({ "path": ".env" })).await["content"].as_str().unwrap().to_owned();
    assert_eq!(shown, "API_KEY=[redacted]\n");
    let whole = json!({ "path": ".env", "content": format!("{shown}MORE=1\n") });
    let error = refused(&house, "file.write", whole, ErrorKind::Validation).await;
    assert!(error.message.contains("would destroy the secret"), "{error:?}");
    let edit = json!({ "path": ".env", "edits": [{ "search": "API_KEY=", "replace": "API_KEY=[redacted]" }] });
    refused(&house, "file.edit", edit, ErrorKind::Validation).await;
    let beside = json!({ "path": ".env", "edits": [{ "search": "API_KEY", "replace": "MORE=1\nAPI_KEY" }] });
    assert!(house.call("file.edit", beside).await.ok);
    assert_eq!(house.workspace.read(".env"), format!("MORE=1\n{SECRET}"));
}

/// Rules: 002.2, 002.68.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_or_into_git() {
    let house = house(&[("a.txt", b"a"), (".git/config", b"[core]\n")]).await;
    house.workspace.write_beside("secret.txt", "outside");
    house.workspace.link("../secret.txt", "out.txt");
    house.workspace.link("..", "up");
    house.workspace.link(".git", "git");
    for path in
        ["../x", "/var/tmp/x", "out.txt", "up/x", ".git/hooks/pre-commit", "git/hooks/x", ".GIT/config", "a/../.git/x"]
    {
        for (tool, arguments) in [
            ("file.write", json!({ "path": path, "content": "x" })),
            ("file.move", json!({ "from": "a.txt", "to": path })),
        ] {
            // A link may be moved over as little as anything else that is there.
            let kinds = [ErrorKind::Security, ErrorKind::Conflict];
            let before = house.workspace.snapshot();
            let error = house.call(tool, arguments.clone()).await.error;
            assert!(error.as_ref().is_some_and(|e| kinds.contains(&e.kind)), "{tool} {arguments}: {error:?}");
            assert_eq!(house.workspace.snapshot(), before, "{tool} {arguments}");
        }
    }
    for path in [".git/config", ".git", "git/config", "up/secret.txt", "../secret.txt", "."] {
        let error = house.call("file.delete", json!({ "path": path })).await.error;
        assert!(error.is_some(), "{path} was deleted");
    }
    assert_eq!(house.workspace.read("../secret.txt"), "outside");
    assert_eq!(house.workspace.neighbours(), ["secret.txt", "state", "ws"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_replaces_nothing_and_deleting_takes_one_thing() {
    let house = house(&[("a.txt", b"a"), ("b.txt", b"b"), ("full/c.txt", b"c")]).await;
    refused(&house, "file.move", json!({ "from": "a.txt", "to": "b.txt" }), ErrorKind::Conflict).await;
    refused(&house, "file.move", json!({ "from": "none.txt", "to": "c.txt" }), ErrorKind::NotFound).await;
    let error = house.call("file.delete", json!({ "path": "full" })).await.error;
    assert!(error.is_some() && house.workspace.has("full/c.txt"), "{error:?}");
    house.data("file.move", json!({ "from": "full", "to": "moved/here" })).await;
    assert_eq!(house.workspace.read("moved/here/c.txt"), "c");
    house.data("file.delete", json!({ "path": "moved/here/c.txt" })).await;
    house.data("file.delete", json!({ "path": "moved/here" })).await;
    house.workspace.link("a.txt", "link");
    house.data("file.delete", json!({ "path": "link" })).await;
    assert_eq!(house.workspace.read("a.txt"), "a", "a link is removed, not what it leads to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_changes_nothing() {
    let house = house(&[("a.txt", b"a")]).await;
    let before = house.workspace.snapshot();
    for profile in ["researcher", "reviewer"] {
        for (tool, arguments) in [
            ("file.write", json!({ "path": "b.txt", "content": "b" })),
            ("file.edit", json!({ "path": "a.txt", "edits": [{ "search": "a", "replace": "b" }] })),
            ("file.move", json!({ "from": "a.txt", "to": "b.txt" })),
            ("file.delete", json!({ "path": "a.txt" })),
            ("git.commit", json!({ "message": "x" })),
        ] {
            let error = house.call_as(profile, tool, arguments).await.error.unwrap();
            assert_eq!(error.code.as_str(), "AI_TOOL_NOT_ALLOWED", "{profile} {tool}");
        }
    }
    assert_eq!(house.workspace.snapshot(), before);
}
