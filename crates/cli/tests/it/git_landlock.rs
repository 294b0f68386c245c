//! The program and git in the landlock tier, where the files of a repository are put back after a command; and what a person
//! accepts.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace, until};

use crate::room::program;

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
    let doctor = program.run(&["doctor", "--accept-git", "--fence"]);
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
