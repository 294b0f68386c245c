//! What a person's git obeys stays as it is, whatever branch, stash or commit the tools bring; and no program of an agent's
//! runs where `.git` can be written.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_contract::{ErrorKind, OutcomeError};
use toolhost_testkit::{House, Program, SaysYes, TempWorkspace, until};

use crate::room::{house, program};

async fn open(workspace: TempWorkspace) -> House {
    house(workspace).profile("developer").person(SaysYes).build().await
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
    let house = house(workspace).person(SaysYes).build().await;
    let pushed = house.data("git.push", json!({})).await;
    assert!(house.workspace.has("ran"), "the trap itself is broken: {pushed}");
    assert!(!house.workspace.has(".git/evil") && !house.workspace.has(".git/refs/heads/evil"));
    let head = house.workspace.git(&["rev-parse", "main"]);
    assert_eq!(house.workspace.git(&["rev-parse", "origin/main"]), head, "the push is noted");
    assert!(!pushed["summary"].as_str().unwrap().contains("Read-only"), "{pushed}");
}

#[test]
fn a_person_accepts_what_could_not_be_put_back() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    let program = program(&workspace);
    let run = || program.run(&["--json", "call", "bash", "{\"command\":\"true\"}"]).json();
    assert_eq!(run()["ok"], true);
    let folder = workspace.beside("home/.local/share/toolhost/guard");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // All workspaces of a user share one lock besides.
    let turn = names.filter(|name| name.ends_with(".turn") && name != "all.turn").last().unwrap();
    let kept = folder.join("kept").join(turn.strip_suffix(".turn").unwrap());
    std::fs::write(&kept, "not what a host writes").unwrap();
    let refused = run();
    assert_eq!(refused["ok"], false, "{refused}");
    let doctor = program.run(&["doctor", "--accept-git"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(doctor.stdout.contains("forgets") && doctor.stdout.contains("git: repositories in the workspace"));
    assert_eq!(run()["ok"], true, "{doctor:?}");
}

#[test]
fn in_the_landlock_tier_a_commit_by_a_command_names_the_tool_or_is_reported() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    let program = program(&workspace).variable("TOOLHOST_SANDBOX", "landlock");
    let bash = |command: &str| {
        let told = program.run(&["--json", "call", "bash", &json!({ "command": command }).to_string()]).json();
        assert_eq!(told["data"]["fence"], "landlock", "{told}");
        told["data"].clone()
    };
    for command in [
        "git commit --allow-empty -m x",
        "git commit --allow-empty -m x || true",
        "git commit -m 'nothing to commit' 2>/dev/null",
        "echo \"$(git commit --allow-empty -m x 2>&1)\"",
    ] {
        let told = bash(command);
        let stderr = told["stderr"].as_str().unwrap();
        assert!(stderr.contains("[toolhost: ") && stderr.contains("git.commit"), "{command}: {told}");
        assert_eq!(told["refsChanged"], Value::Null, "{command}: {told}");
    }
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let told = bash("git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x");
    let now = workspace.git(&["rev-parse", "HEAD"]);
    let change = json!([{ "name": "refs/heads/main", "from": before.trim(), "to": now.trim() }]);
    assert_eq!((&told["exitCode"], &told["refsChanged"]), (&json!(0), &change), "{told}");
    let note =
        format!("[toolhost: git references changed while this command ran: refs/heads/main from {}", before.trim());
    assert!(told["stderr"].as_str().unwrap().contains(&note), "{told}");
    let planted = bash("printf evil > .git/hooks/pre-commit");
    assert_eq!(planted["putBack"], json!([".git/hooks/pre-commit"]), "{planted}");
    let export = workspace.beside("audit.jsonl");
    assert_eq!(program.run(&["audit", "export", "-o", export.to_str().unwrap()]).code, Some(0));
    let rows = std::fs::read_to_string(export).unwrap();
    assert!(rows.contains(r#""putBack":[".git/hooks/pre-commit"]"#), "{rows}");
    let finished: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let told = finished.iter().filter(|row| row.to_string().contains("refsChanged")).collect::<Vec<_>>();
    assert!(told.len() == 1 && told[0].to_string().contains(now.trim()), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_landlock_tier_whatever_ends_the_host_git_s_files_are_put_back() {
    for door in ["call", "mcp", "run"] {
        for signal in ["-HUP", "-QUIT", "-TERM"] {
            let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
            let config = workspace.read(".git/config");
            let arm = "printf '[alias]\\n\\tst = !evil\\n' >> .git/config; printf evil > .git/hooks/pre-commit; \
                       touch begun; sleep 600";
            let arguments = json!({ "command": arm });
            let story = json!({ "turns": [{ "calls": [{ "tool": "bash", "arguments": arguments }] }] });
            workspace.write_beside("story.json", &story.to_string());
            let model = format!("script:{}", workspace.beside("story.json").display());
            let program = program(&workspace).variable("TOOLHOST_SANDBOX", "landlock");
            let text = arguments.to_string();
            let mut command = match door {
                "call" => program.command(&["call", "bash", &text]),
                "run" => program.command(&["run", "arm", "--model", &model]),
                _ => program.command(&["mcp"]),
            };
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            if door == "mcp" {
                let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
                let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                    "params": { "name": "bash", "arguments": arguments } });
                stdin.write_all(format!("{open}\n{call}\n").as_bytes()).unwrap();
            }
            until("the command runs", || workspace.has("begun")).await;
            let pid = child.id().to_string();
            let kill = |signal| Program::new("/bin/kill", &workspace).bare().run(&[signal, &pid]).code;
            assert_eq!(kill(signal), Some(0));
            assert!(child.wait().unwrap().code().is_some(), "{door} {signal}: it ends by itself");
            let armed = workspace.read(".git/config") != config || workspace.has(".git/hooks/pre-commit");
            assert!(!armed, "{door} {signal}");
        }
    }
}
