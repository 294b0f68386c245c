//! What a person's git obeys stays as it is, whatever branch, stash or commit the tools bring; and no program of an agent's
//! runs where `.git` can be written.

use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, OutcomeError};
use toolhost_testkit::{House, SaysYes, TempWorkspace};

use crate::room::fenced;

async fn open(workspace: TempWorkspace) -> House {
    fenced(workspace).profile("developer").person(SaysYes).build().await
}

async fn error(house: &House, tool: &str, arguments: Value) -> OutcomeError {
    let outcome = house.call(tool, arguments.clone()).await;
    assert!(!outcome.ok, "{tool} {arguments}: {outcome:?}");
    outcome.error.unwrap()
}

/// `main` and `evil`, on which `change` was done.
fn two_branches(files: &[(&str, &str)], change: impl Fn(&TempWorkspace)) -> TempWorkspace {
    let workspace = TempWorkspace::repository(files);
    workspace.git(&["switch", "-q", "-c", "evil"]);
    workspace.write("other.txt", "also\n");
    change(&workspace);
    workspace.git(&["add", "--all"]);
    workspace.git(&["commit", "-q", "-m", "evil"]);
    workspace.git(&["switch", "-q", "main"]);
    workspace
}

#[tokio::test(flavor = "multi_thread")]
async fn no_branch_stash_or_commit_changes_what_a_person_s_git_obeys() {
    type Change = fn(&TempWorkspace);
    let arms: [(&str, Change, Change); 4] = [
        (
            "a folder of hooks",
            |ws| _ = ws.git(&["config", "core.hooksPath", "scripts"]),
            |ws| ws.write("scripts/hook", "evil\n"),
        ),
        (
            "a linked hook",
            |ws| ws.link("../../scripts/hook", ".git/hooks/pre-commit"),
            |ws| ws.write("scripts/hook", "evil\n"),
        ),
        (
            "an included configuration",
            |ws| _ = ws.git(&["config", "include.path", "../scripts/hook"]),
            |ws| ws.write("scripts/hook", "[alias]\n\tst = !evil\n"),
        ),
        (
            "what it is in",
            |ws| _ = ws.git(&["config", "core.hooksPath", "scripts"]),
            |ws| {
                ws.remove("scripts/hook");
                std::fs::remove_dir(ws.path("scripts")).unwrap();
                ws.write("scripts", "no folder\n");
            },
        ),
    ];
    for (what, arm, change) in arms {
        let workspace = two_branches(&[("a.txt", "1\n"), ("scripts/hook", "[x]\n")], change);
        arm(&workspace);
        // A stash of the same change, made by a person.
        change(&workspace);
        workspace.git(&["add", "--all"]);
        workspace.git(&["stash", "-q"]);
        let house = open(workspace).await;
        let before = house.workspace.snapshot();
        for (tool, arguments) in [
            ("git.switch", json!({ "branch": "evil" })),
            ("git.switch", json!({ "detach": "evil" })),
            ("git.switch", json!({ "branch": "x", "create": true, "from": "evil" })),
            ("git.restore", json!({ "paths": ["."], "source": "evil" })),
            ("git.restore", json!({ "paths": ["scripts"], "source": "evil", "staged": true })),
            ("git.stash", json!({ "action": "apply" })),
            ("git.stash", json!({ "action": "pop" })),
        ] {
            let refused = error(&house, tool, arguments.clone()).await;
            assert_eq!(refused.kind, ErrorKind::Security, "{what}: {tool} {arguments}: {refused:?}");
            assert!(refused.message.contains("scripts"), "{what}: {tool} {arguments}: {refused:?}");
        }
        assert_eq!(house.workspace.snapshot(), before, "{what}");
        house.data("git.restore", json!({ "paths": ["other.txt"], "source": "evil" })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stash_does_not_take_a_hook_away() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["config", "core.hooksPath", ".githooks"]);
    workspace.write(".githooks/pre-commit", "#!/bin/sh\n");
    let house = open(workspace).await;
    let refused = error(&house, "git.stash", json!({ "action": "push", "untracked": true })).await;
    assert_eq!(refused.kind, ErrorKind::Security, "{refused:?}");
    assert!(house.workspace.has(".githooks/pre-commit"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_s_policy_stays_whatever_branch_comes() {
    let workspace = two_branches(&[("a.txt", "1\n")], |ws| ws.write("toolhost.toml", ""));
    let house = open(workspace).await;
    let refused = error(&house, "git.switch", json!({ "branch": "evil" })).await;
    assert!(refused.kind == ErrorKind::Security && refused.message.contains("toolhost.toml"), "{refused:?}");
    assert!(!house.workspace.has("other.txt"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_command_made_becomes_no_submodule() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    let house = open(workspace).await;
    let make = "git init -q lib && cd lib && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x";
    let made = house.data("bash", json!({ "command": make })).await;
    assert_eq!(made["exitCode"], 0, "{made}");
    house.workspace.write("a.txt", "2\n");
    for arguments in [json!({ "message": "x" }), json!({ "message": "x", "files": ["a.txt", "lib"] })] {
        let refused = error(&house, "git.commit", arguments.clone()).await;
        assert!(refused.message.contains("lib"), "{arguments}: {refused:?}");
    }
    assert!(house.call("git.stash", json!({ "action": "push", "untracked": true })).await.error.is_some());
    house.data("git.commit", json!({ "message": "x", "files": ["a.txt"] })).await;
    assert_eq!(house.workspace.git(&["ls-tree", "-r", "--name-only", "HEAD"]), "a.txt\n");
    assert_eq!(house.workspace.git(&["ls-files"]), "a.txt\n", "nor is it staged");
    // A branch that has it as a submodule, made elsewhere.
    let commit = house.workspace.git(&["-C", "lib", "rev-parse", "HEAD"]);
    house.workspace.git(&["switch", "-q", "-c", "with-lib"]);
    house.workspace.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},lib", commit.trim())]);
    house.workspace.git(&["commit", "-q", "-m", "lib"]);
    house.workspace.git(&["switch", "-q", "main"]);
    for (tool, arguments) in [
        ("git.switch", json!({ "branch": "with-lib" })),
        ("git.restore", json!({ "paths": ["lib"], "source": "with-lib", "staged": true })),
    ] {
        let refused = error(&house, tool, arguments).await;
        assert!(refused.kind == ErrorKind::Security && refused.message.contains("lib"), "{refused:?}");
    }
    assert_eq!(house.workspace.git(&["ls-files"]), "a.txt\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_remote_in_the_workspace_runs_cannot_write_the_repository() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["init", "-q", "--bare", "-b", "main", "remote.git"]);
    workspace.git(&["remote", "add", "origin", "./remote.git"]);
    workspace.write_script(
        "remote.git/hooks/pre-receive",
        "#!/bin/sh\ncd ..\ntouch ran\n(echo x >.git/refs/heads/evil) 2>/dev/null\n(echo x >.git/evil) 2>/dev/null\nexit 0\n",
    );
    let house = fenced(workspace).person(SaysYes).build().await;
    let pushed = house.data("git.push", json!({})).await;
    assert!(house.workspace.has("ran"), "the trap itself is broken: {pushed}");
    assert!(!house.workspace.has(".git/evil") && !house.workspace.has(".git/refs/heads/evil"));
    let head = house.workspace.git(&["rev-parse", "main"]);
    assert_eq!(house.workspace.git(&["rev-parse", "origin/main"]), head, "the push is noted");
    assert!(!pushed["summary"].as_str().unwrap().contains("Read-only"), "{pushed}");
}
