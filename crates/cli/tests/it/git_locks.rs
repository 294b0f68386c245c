//! A git of the host's that is ended leaves no lock file behind: not for the next call, and not for the person's own git.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, TempWorkspace, until};

use crate::room::program;

/// Bytes that git takes a long time to read, and that take no room.
const LARGE: u64 = 8 << 30;
const TIERS: [&str; 2] = ["full", "landlock"];

/// How a call is ended while git is at work.
#[derive(Debug, Clone, Copy)]
enum Ended {
    /// `kill -9` of the host.
    Killed,
    /// The host is asked to end.
    Asked,
    Cancelled,
}

/// A repository in which git is busy with one file for long.
fn busy() -> TempWorkspace {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("large.bin", "1\n")]);
    let large = std::fs::File::options().write(true).open(workspace.path("large.bin")).unwrap();
    large.set_len(LARGE).unwrap();
    workspace
}

/// The lock files of the repository.
fn locks(workspace: &TempWorkspace) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![workspace.path(".git")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if name.ends_with(".lock") {
                found.push(name);
            }
        }
    }
    found
}

/// The processes that work in the workspace, and their names.
fn at_work(workspace: &TempWorkspace) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_here = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == workspace.root());
        if let Ok(name) = std::fs::read_to_string(entry.path().join("comm")).map(|name| name.trim_end().to_owned())
            && is_here
        {
            found.push((entry.file_name().to_string_lossy().into_owned(), name));
        }
    }
    found
}

/// Sends a signal to each git at work in the workspace.
fn stop(workspace: &TempWorkspace, signal: &str) {
    for (process, _) in at_work(workspace).iter().filter(|(_, name)| name == "git") {
        let _ = workspace.shell(&format!("kill -{signal} {process}"));
    }
}

async fn end_while_git_is_at_work(tier: &str, tool: &str, arguments: Value, lock: &str, ended: Ended) {
    let workspace = busy();
    let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
    let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    let id = host.begin_call(tool, arguments).await;
    let has_lock = || locks(&workspace).iter().any(|name| name.starts_with(lock));
    until(&format!("{tool} in {tier} has a lock"), has_lock).await;
    match ended {
        Ended::Killed => host.kill().await,
        Ended::Asked => host.close_stdin(),
        Ended::Cancelled => host.notify("notifications/cancelled", json!({ "requestId": id })).await,
    }
    until(&format!("{tool} in {tier}, {ended:?}: no lock is left"), || locks(&workspace).is_empty()).await;
    workspace.write("a.txt", "2\n");
    let mine = ["-c", "user.name=p", "-c", "user.email=p@example.org", "commit", "-q", "-m", "mine", "a.txt"];
    assert!(workspace.git_succeeds(&mine), "the person's git works");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_ended_leaves_no_lock() {
    for tier in TIERS {
        for ended in [Ended::Killed, Ended::Asked, Ended::Cancelled] {
            end_while_git_is_at_work(tier, "git_commit", json!({ "message": "c" }), "index.lock", ended).await;
        }
    }
}

/// Where the branch moved and the index did not, the next commit would take back what this one has made.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_killed_moves_the_branch_and_the_index_together() {
    for tier in TIERS {
        let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
        let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
        let branch = workspace.path(".git").join("refs/heads/main");
        for round in 0..8 {
            let name = format!("{round}.txt");
            workspace.write(&name, "new\n");
            let before = std::fs::read(&branch).unwrap();
            let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
            let _ = host.begin_call("git_commit", json!({ "message": name, "files": [name] })).await;
            // At once: what follows takes the script a millisecond or two.
            while std::fs::read(&branch).is_ok_and(|now| now == before) {
                tokio::task::yield_now().await;
            }
            host.kill().await;
            until("no lock is left", || locks(&workspace).is_empty()).await;
            assert_eq!(workspace.git(&["diff", "--cached", "--name-status"]), "", "{tier}, round {round}");
        }
    }
}

/// Whoever asks git to end between making a lock and noting that it is its own leaves it behind. So what a dead host has
/// begun comes to its end.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_has_begun_is_finished() {
    let files: Vec<(String, String)> = (0..400).map(|n| (format!("{n}.txt"), "1\n".to_owned())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for tier in TIERS {
        let workspace = TempWorkspace::repository(&files);
        let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
        for round in 0..4 {
            for (name, _) in &files {
                workspace.write(name, format!("{round}, changed\n"));
            }
            let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
            let _ = host.begin_call("git_stash", json!({ "action": "push", "message": "m" })).await;
            while locks(&workspace).is_empty() {
                tokio::task::yield_now().await;
            }
            host.kill().await;
            until("the stash is whole", || workspace.git(&["--no-optional-locks", "status", "--porcelain"]).is_empty())
                .await;
            until("no lock is left", || locks(&workspace).is_empty()).await;
            assert_eq!(workspace.git(&["stash", "list"]).lines().count(), round + 1, "{tier}");
        }
    }
}

/// Nobody writes into it: git would wait until its time is up, and others for git.
#[tokio::test(flavor = "multi_thread")]
async fn git_that_waits_for_a_fifo_is_ended_and_says_so() {
    for tier in TIERS {
        for (name, tool, arguments) in
            [(".gitignore", "git_status", json!({})), (".gitattributes", "git_restore", json!({ "paths": ["a.txt"] }))]
        {
            let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
            workspace.write("a.txt", "2\n");
            assert!(workspace.shell(&format!("mkfifo -m 666 {name}")));
            let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
            let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
            let told = host.call(tool, arguments.clone()).await;
            let text = told["content"][0]["text"].as_str().unwrap();
            assert!(
                text.contains("git waited for a FIFO") && text.contains("find . -type p"),
                "{tier}, {name}: {text}"
            );
            assert_eq!(locks(&workspace), Vec::<String>::new(), "{tier}, {name}: it leaves no lock");
            host.call("bash", json!({ "command": format!("rm {name}") })).await;
            let told = host.call(tool, arguments).await;
            assert_eq!(told["isError"], false, "{tier}, {name}: {told}");
            host.kill().await;
        }
    }
}

/// Until then a command of the next host could lead its writes elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_s_git_still_changes_no_command_runs_beside() {
    for tier in TIERS {
        let workspace = busy();
        workspace.write("sub/a.txt", "1\n");
        let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
        let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
        let _ = host.begin_call("git_stash", json!({ "action": "push", "message": "m" })).await;
        // At once: some locks are held for a moment only.
        while locks(&workspace).is_empty() {
            tokio::task::yield_now().await;
        }
        stop(&workspace, "STOP");
        host.kill().await;
        for home in ["same", "another"] {
            let mut program = crate::room::program(&workspace).variable("TOOLHOST_SANDBOX", tier);
            if home == "another" {
                std::fs::create_dir_all(workspace.beside(home)).unwrap();
                program =
                    program.variable("HOME", workspace.beside(home)).variable("XDG_STATE_HOME", workspace.beside(home));
            }
            let mut next = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
            let refused = next.call("bash", json!({ "command": "mv sub aside; ln -s .git sub" })).await;
            assert_eq!(refused["isError"], true, "{tier}, {home}: {refused}");
            assert!(refused["content"][0]["text"].as_str().unwrap().contains("under way"), "{tier}, {home}: {refused}");
            assert!(!workspace.path("sub").is_symlink(), "{tier}, {home}");
            next.kill().await;
        }
        // Git ends by itself: a signal between making a lock and noting that it is its own would leave the lock behind.
        std::fs::File::options().write(true).open(workspace.path("large.bin")).unwrap().set_len(0).unwrap();
        until("git has ended", || {
            stop(&workspace, "CONT");
            at_work(&workspace).is_empty()
        })
        .await;
        assert_eq!(locks(&workspace), Vec::<String>::new(), "{tier}");
        let mut next = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
        let ran = next.call("bash", json!({ "command": "cat sub/a.txt" })).await;
        assert_eq!(ran["isError"], false, "{tier}: {ran}");
        assert!(next.close().await.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lock_of_a_person_s_git_stays() {
    for tier in TIERS {
        let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
        let program = program(&workspace).variable("TOOLHOST_SANDBOX", tier);
        let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
        workspace.write("a.txt", "2\n");
        workspace.write(".git/index.lock", "a person's");
        let refused = host.call("git_commit", json!({ "message": "c" })).await;
        assert_eq!(refused["isError"], true, "{refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("index.lock exists") && text.contains("or was killed"), "{text}");
        assert!(host.close().await.success());
        assert_eq!(workspace.read(".git/index.lock"), "a person's");
    }
}
