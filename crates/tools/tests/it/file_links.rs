//! A person who allows a change of a file sees where it lands, and it lands there.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolhost_contract::{Answer, ErrorKind};
use toolhost_host::{Presented, Shown};
use toolhost_testkit::{House, HouseBuilder, TempWorkspace, said};

/// Every change of a file is asked about.
const RULES: &str = "[[profiles.all.rules]]\ntool = 'file.*'\ndecide = 'ask'\nwhy = 'test'";

/// A house whose person does `meanwhile` and says yes; and what they were shown last.
async fn asked(workspace: TempWorkspace, meanwhile: impl Fn() + Send + Sync + 'static) -> (House, Arc<Mutex<String>>) {
    let seen = Arc::new(Mutex::new(String::new()));
    let here = Arc::clone(&seen);
    let voice = move |shown: &Shown| -> Presented {
        *here.lock().unwrap() = shown.render();
        meanwhile();
        said(Answer::Allow)
    };
    let house = HouseBuilder::of(toolhost::tools).workspace(workspace).operator(RULES).person(voice);
    (house.build().await, seen)
}

fn linked() -> TempWorkspace {
    let workspace = TempWorkspace::new();
    workspace.write("harmless.txt", "one\n");
    workspace.write("deploy/secrets.txt", "one\n");
    workspace.link("deploy/secrets.txt", "notes.txt");
    workspace.link("deploy", "docs");
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_told_where_a_link_leads() {
    let (house, seen) = asked(linked(), || {}).await;
    let edits = json!([{ "search": "one", "replace": "two" }]);
    for (tool, arguments, told) in [
        (
            "file.write",
            json!({ "path": "notes.txt", "content": "x\n" }),
            "notes.txt, which leads to deploy/secrets.txt",
        ),
        (
            "file.write",
            json!({ "path": "docs/new.txt", "content": "x" }),
            "docs/new.txt, which leads to deploy/new.txt",
        ),
        ("file.write", json!({ "path": "docs/secrets.txt", "content": "one\n" }), "which leads to deploy/secrets.txt"),
        ("file.edit", json!({ "path": "notes.txt", "edits": edits }), "notes.txt, which leads to deploy/secrets.txt"),
        ("file.move", json!({ "from": "docs/new.txt", "to": "docs/a/b" }), "to docs/a/b, which leads to deploy/a/b"),
        ("file.delete", json!({ "path": "docs/a/b" }), "delete docs/a/b, which leads to deploy/a/b"),
        ("file.move", json!({ "from": "docs", "to": "papers" }), "move the link docs to papers"),
    ] {
        house.data(tool, arguments.clone()).await;
        let shown = seen.lock().unwrap().clone();
        assert!(shown.contains(told), "{tool} {arguments}: {shown}");
    }
    house.data("file.delete", json!({ "path": "notes.txt" })).await;
    let shown = seen.lock().unwrap().clone();
    assert!(shown.contains("delete the link notes.txt") && shown.contains("a link to `deploy/secrets.txt`"), "{shown}");
    assert!(!shown.contains("-two"), "what it leads to stays: {shown}");
    assert_eq!(house.workspace.read("deploy/secrets.txt"), "two\n");
    house.data("file.delete", json!({ "path": "deploy/a" })).await;
    assert!(seen.lock().unwrap().contains("delete the folder deploy/a"));
}

/// The name is the same, and mostly the content: only the place is another.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_the_yes_is_not_changed() {
    type Swap = fn(&PathBuf);
    let to_other: Swap = |root| std::fs::write(root.join("harmless.txt"), "another\n").unwrap();
    let (to_link, to_folder): (Swap, Swap) = (
        |root| {
            std::fs::remove_file(root.join("harmless.txt")).unwrap();
            std::os::unix::fs::symlink("deploy/secrets.txt", root.join("harmless.txt")).unwrap();
        },
        |root| {
            std::fs::remove_file(root.join("docs")).unwrap();
            std::fs::create_dir(root.join("docs")).unwrap();
            std::fs::write(root.join("docs/secrets.txt"), "one\n").unwrap();
        },
    );
    let edits = json!([{ "search": "one", "replace": "two" }]);
    let cases: [(&str, Value, Swap); 6] = [
        ("file.move", json!({ "from": "harmless.txt", "to": "b.txt" }), to_other),
        ("file.write", json!({ "path": "harmless.txt", "content": "two\n" }), to_link),
        ("file.edit", json!({ "path": "harmless.txt", "edits": edits }), to_link),
        ("file.delete", json!({ "path": "harmless.txt" }), to_link),
        ("file.delete", json!({ "path": "docs/secrets.txt" }), to_folder),
        ("file.move", json!({ "from": "docs/secrets.txt", "to": "b.txt" }), to_folder),
    ];
    for (tool, arguments, swap) in cases {
        let workspace = linked();
        let root = workspace.root();
        let (house, _) = asked(workspace, move || swap(&root)).await;
        let outcome = house.call(tool, arguments.clone()).await;
        assert_eq!(
            outcome.error.as_ref().map(|e| e.kind),
            Some(ErrorKind::Conflict),
            "{tool} {arguments}: {outcome:?}"
        );
        assert_eq!(house.workspace.read("deploy/secrets.txt"), "one\n", "{tool} {arguments}");
        assert!(house.workspace.has("harmless.txt") && house.workspace.has("docs/secrets.txt"), "{tool} {arguments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewed_text_goes_to_the_file_that_was_seen() {
    let workspace = linked();
    let root = workspace.root();
    let voice = move |_: &Shown| {
        std::fs::remove_file(root.join("notes.txt")).unwrap();
        std::os::unix::fs::symlink("harmless.txt", root.join("notes.txt")).unwrap();
        said(Answer::Edit { text: "mine\n".to_owned() })
    };
    let house = HouseBuilder::of(toolhost::tools).workspace(workspace).person(voice).build().await;
    house.data("review.file", json!({ "path": "notes.txt" })).await;
    assert_eq!(house.workspace.read("harmless.txt"), "one\n");
    assert_eq!(house.workspace.read("deploy/secrets.txt"), "mine\n");
}
