//! The tools that change branches, files and stashes, and `git.show`.

use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, OutcomeError};
use toolhost_testkit::{House, SaysYes, TempWorkspace};

use crate::room::fenced;

async fn repository(files: &[(&str, &str)]) -> House {
    fenced(TempWorkspace::repository(files)).profile("developer").person(SaysYes).build().await
}

async fn error(house: &House, tool: &str, arguments: Value) -> OutcomeError {
    let outcome = house.call(tool, arguments.clone()).await;
    assert!(!outcome.ok, "{tool} {arguments}: {outcome:?}");
    outcome.error.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_made_once_without_hooks_and_used() {
    let house = fenced(TempWorkspace::new()).profile("developer").build().await;
    assert_eq!(house.data("git.init", json!({})).await["branch"], "main");
    assert!(!house.workspace.has(".git/hooks"), "no hooks");
    house.workspace.write("a.txt", "1\n");
    house.data("git.commit", json!({ "message": "first" })).await;
    assert_eq!(house.workspace.git(&["log", "--format=%s"]), "first\n");
    let again = error(&house, "git.init", json!({})).await;
    assert!(again.kind == ErrorKind::Conflict && again.message.contains("already"), "{again:?}");
    for name in ["-x", "a..b", "a b", "@{-1}"] {
        assert_eq!(error(&house, "git.init", json!({ "branch": name })).await.kind, ErrorKind::Validation, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_are_listed_made_and_deleted_when_merged() {
    let house = repository(&[("a.txt", "1\n")]).await;
    let config = house.workspace.read(".git/config");
    house.data("git.branch", json!({ "create": "topic/one", "from": "main" })).await;
    let listed = house.data("git.branch", json!({})).await;
    assert_eq!(listed["branches"][0]["name"], "main");
    assert_eq!(
        (&listed["branches"][0]["current"], &listed["branches"][1]["name"]),
        (&json!(true), &json!("topic/one"))
    );
    house.data("git.branch", json!({ "delete": "topic/one" })).await;
    assert_eq!(house.workspace.git(&["branch", "--format=%(refname:short)"]), "main\n");
    house.workspace.git(&["switch", "-q", "-c", "ahead"]);
    house.workspace.git(&["commit", "-q", "--allow-empty", "-m", "more"]);
    house.workspace.git(&["switch", "-q", "main"]);
    let unmerged = error(&house, "git.branch", json!({ "delete": "ahead" })).await;
    assert!(unmerged.message.contains("not merged"), "{unmerged:?}");
    let current = error(&house, "git.branch", json!({ "delete": "main" })).await;
    assert!(current.message.contains("checked out"), "{current:?}");
    for misleading in ["refs/heads/x", "\u{fc}\u{202e}live"] {
        for (tool, arguments) in [
            ("git.branch", json!({ "create": misleading })),
            ("git.switch", json!({ "branch": misleading, "create": true })),
        ] {
            let refused = error(&house, tool, arguments).await;
            assert!(refused.message.contains("is not the name of a new branch"), "{refused:?}");
            assert!(!refused.message.contains('\u{202e}'), "{refused:?}");
        }
    }
    let nowhere = error(&house, "git.branch", json!({ "create": "x", "from": "nowhere" })).await;
    assert!(nowhere.message.contains("nowhere"), "{nowhere:?}");
    assert_eq!(house.workspace.git(&["rev-parse", "--verify", "ahead"]).len(), 41);
    assert_eq!(house.workspace.read(".git/config"), config);
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_loses_nothing() {
    let house = repository(&[("a.txt", "1\n"), ("b.txt", "1\n"), (".gitignore", "*.log\n")]).await;
    house.workspace.write("b.txt", "not committed\n");
    let made = house.data("git.switch", json!({ "branch": "other", "create": true })).await;
    assert_eq!(made["branch"], "other");
    house.workspace.write("a.txt", "2\n");
    house.workspace.write("new.txt", "theirs\n");
    house.workspace.write("x.log", "theirs\n");
    house.workspace.git(&["add", "-f", "a.txt", "new.txt", "x.log"]);
    house.workspace.git(&["commit", "-q", "-m", "other"]);
    assert_eq!(house.data("git.switch", json!({ "branch": "main" })).await["branch"], "main");
    assert_eq!(house.workspace.read("a.txt"), "1\n");
    assert_eq!(house.workspace.read("b.txt"), "not committed\n", "carried along");
    for (path, mine) in [("a.txt", "mine\n"), ("new.txt", "mine\n"), ("x.log", "mine\n")] {
        house.workspace.write(path, mine);
        let refused = error(&house, "git.switch", json!({ "branch": "other" })).await;
        assert!(refused.kind == ErrorKind::Conflict && refused.message.contains(path), "{refused:?}");
        assert_eq!(house.workspace.read(path), mine);
        assert_eq!(house.workspace.git(&["branch", "--show-current"]), "main\n");
        house.workspace.remove(path);
        house.workspace.git(&["checkout", "-q", "--", "a.txt"]);
    }
    let detached = house.data("git.switch", json!({ "detach": "other" })).await;
    assert_eq!(detached["branch"], Value::Null);
    house.workspace.git(&["commit", "-q", "--allow-empty", "-m", "on no branch"]);
    let lost = error(&house, "git.switch", json!({ "branch": "main" })).await;
    assert!(lost.message.contains("no branch holds"), "{lost:?}");
    house.data("git.switch", json!({ "branch": "kept", "create": true })).await;
    house.data("git.switch", json!({ "branch": "main" })).await;
    for wrong in [json!({ "branch": "other~1" }), json!({ "branch": "nowhere" }), json!({ "branch": "HEAD" })] {
        let refused = error(&house, "git.switch", wrong.clone()).await;
        assert!(refused.message.contains("there is no branch"), "{wrong}: {refused:?}");
    }
    for wrong in [json!({ "branch": "--detach" }), json!({ "detach": "-f" }), json!({ "branch": "x", "from": "main" })]
    {
        assert_eq!(error(&house, "git.switch", wrong.clone()).await.kind, ErrorKind::Validation, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_restored_from_the_index_or_a_commit() {
    let house = repository(&[("a.txt", "1\n"), ("d/b.txt", "1\n"), ("-f", "1\n")]).await;
    house.workspace.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    for path in ["a.txt", "d/b.txt", "-f"] {
        house.workspace.write(path, "2\n");
    }
    house.workspace.git(&["add", "a.txt"]);
    let restored = house.data("git.restore", json!({ "paths": ["d", "-f"] })).await;
    assert_eq!(restored["files"], json!(["-f", "d/b.txt"]));
    assert_eq!((house.workspace.read("a.txt"), house.workspace.read("d/b.txt")), ("2\n".to_owned(), "1\n".to_owned()));
    house.data("git.restore", json!({ "paths": ["a.txt"], "staged": true })).await;
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), " M a.txt\n", "unstaged, and still there");
    house.data("git.restore", json!({ "paths": ["a.txt"], "source": "HEAD~1" })).await;
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), "");
    let missing = error(&house, "git.restore", json!({ "paths": ["none.txt"] })).await;
    assert!(missing.message.contains("none.txt"), "{missing:?}");
    assert_eq!(error(&house, "git.restore", json!({ "paths": ["../x"] })).await.kind, ErrorKind::Security);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stash_takes_changes_out_and_brings_them_back() {
    let house = repository(&[("a.txt", "1\n"), ("b.txt", "1\n")]).await;
    let nothing = error(&house, "git.stash", json!({ "action": "push" })).await;
    assert!(nothing.message.contains("no changes to save"), "{nothing:?}");
    for path in ["a.txt", "b.txt", "new.txt"] {
        house.workspace.write(path, "2\n");
    }
    house.data("git.stash", json!({ "action": "push", "paths": ["b.txt"], "message": "--force" })).await;
    let pushed = house.data("git.stash", json!({ "action": "push", "untracked": true, "message": "all" })).await;
    let names: Vec<_> = pushed["stashes"].as_array().unwrap().iter().map(|s| s["message"].as_str().unwrap()).collect();
    assert_eq!(names, ["On main: all", "On main: --force"]);
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), "");
    let shown = house.data("git.stash", json!({ "action": "show", "index": 0 })).await;
    let diff = shown["diff"].as_str().unwrap();
    assert!(diff.contains("b/a.txt") && diff.contains("b/new.txt") && !diff.contains("b.txt\n"), "{diff}");
    house.data("git.stash", json!({ "action": "pop" })).await;
    let left = house.data("git.stash", json!({ "action": "apply" })).await;
    assert_eq!(left["stashes"].as_array().unwrap().len(), 1);
    assert_eq!(house.workspace.git(&["status", "--porcelain"]), " M a.txt\n M b.txt\n?? new.txt\n");
    house.workspace.git(&["commit", "-q", "-a", "-m", "x"]);
    house.workspace.write("b.txt", "3\n");
    house.workspace.git(&["commit", "-q", "-a", "-m", "y"]);
    let conflict = error(&house, "git.stash", json!({ "action": "pop" })).await;
    assert!(conflict.message.contains("conflicts") || conflict.message.contains("nothing was changed"), "{conflict:?}");
    assert_eq!(house.data("git.stash", json!({ "action": "list" })).await["stashes"].as_array().unwrap().len(), 1);
    assert_eq!(house.data("git.stash", json!({ "action": "drop" })).await["stashes"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_and_a_file_of_it_are_shown() {
    let house = repository(&[("a.txt", "1\n"), ("d/b.txt", "b\n")]).await;
    house.workspace.write("a.txt", "2\n");
    house.workspace.git(&["commit", "-q", "-a", "-m", "second"]);
    let text = async |arguments: Value| house.data("git.show", arguments).await["text"].as_str().unwrap().to_owned();
    let shown = text(json!({})).await;
    assert!(shown.contains("second") && shown.contains("-1\n+2\n"), "{shown}");
    assert_eq!(text(json!({ "revision": "HEAD~1", "path": "a.txt" })).await, "1\n");
    for arguments in [json!({ "revision": "nowhere" }), json!({ "path": "none" }), json!({ "path": "d" })] {
        assert_eq!(error(&house, "git.show", arguments).await.kind, ErrorKind::Conflict);
    }
    assert!(house.call_as("researcher", "git.show", json!({})).await.ok);
    assert!(!house.call_as("researcher", "git.switch", json!({ "branch": "main" })).await.ok);
}
