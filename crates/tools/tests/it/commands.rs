//! `bash`: ordinary commands work, nobody waits for a person, and a reader's commands change nothing.

use serde_json::{Value, json};
use toolhost_contract::ErrorKind;
use toolhost_testkit::{House, TempWorkspace};

use crate::room::fenced;

async fn run(house: &House, command: &str) -> Value {
    house.data("bash", json!({ "command": command })).await
}

/// Rules: 004.12.
#[tokio::test(flavor = "multi_thread")]
async fn pipes_redirections_and_here_documents_work() {
    let house = fenced(TempWorkspace::new()).build().await;
    let data =
        run(&house, "printf 'b\\na\\nb\\n' | sort -u > out.txt && cat <<E >> out.txt\nc\nE\nwc -l < out.txt").await;
    assert_eq!((&data["exitCode"], data["stdout"].as_str().unwrap().trim()), (&json!(0), "3"), "{data}");
    assert_eq!(house.workspace.read("out.txt"), "a\nb\nc\n");
    let data = house.data("bash", json!({ "command": "tr a-z A-Z", "stdin": "abc" })).await;
    assert_eq!(data["stdout"], "ABC");
    house.workspace.make_folder("deep/er");
    let data = house.data("bash", json!({ "command": "pwd", "cwd": "deep/er" })).await;
    assert!(data["stdout"].as_str().unwrap().trim_end().ends_with("/deep/er"), "{data}");
}

/// Rules: 004.32.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_command_is_an_answer() {
    let house = fenced(TempWorkspace::new()).build().await;
    for (command, code) in [("false", 1), ("exit 42", 42), ("no-such-program", 127), ("kill -KILL $$", 137)] {
        let outcome = house.call("bash", json!({ "command": command })).await;
        assert!(outcome.ok && outcome.error.is_none(), "{command}: {outcome:?}");
        assert_eq!(outcome.data["exitCode"], code, "{command}: {outcome:?}");
        assert!(outcome.text.contains(&format!("{code}")) || outcome.text.contains("SIGKILL"), "{}", outcome.text);
    }
    let row = house.rows().await.into_iter().rfind(|row| row["event"] == "finished").unwrap();
    assert_eq!(row["outcome"], json!({ "ok": true, "exitCode": 137 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_person_is_refused_with_another_way() {
    let house = fenced(TempWorkspace::new()).build().await;
    for (command, way) in [
        ("vim notes.txt", "file.edit"),
        ("git log | less", "file.read"),
        ("cd . && top", "ps aux"),
        ("ssh somewhere", "command to run"),
        ("python3", "-c"),
    ] {
        let error = house.call("bash", json!({ "command": command })).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Validation, "{command}");
        assert!(error.hint.as_ref().unwrap().contains(way), "{command}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_only_look_like_it_are_not_refused() {
    let workspace = TempWorkspace::new();
    workspace.write_script("npx", "#!/bin/sh\necho ran $*\n");
    let house = fenced(workspace).build().await;
    for command in ["./npx vitest run", "echo vim less top", "./npx nano-server", "grep -c vim npx || true"] {
        assert_eq!(run(&house, command).await["exitCode"], 0, "{command}");
    }
}

/// Rules: 002.78.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_beyond_the_grant_is_refused_and_within_it_ends_the_command() {
    let house = fenced(TempWorkspace::new()).build().await;
    let beyond = json!({ "command": "touch x", "timeoutMs": 120_001 });
    let error = house.call_as("researcher", "bash", beyond.clone()).await.error.unwrap();
    assert!(error.kind == ErrorKind::Validation && error.message.contains("grants 120000"), "{error:?}");
    assert!(house.call_as("developer", "bash", beyond).await.ok);
    let data = house.data("bash", json!({ "command": "echo before; sleep 1000; echo after", "timeoutMs": 300 })).await;
    assert_eq!((&data["timedOut"], &data["stdout"]), (&json!(true), &json!("before\n")), "{data}");
}

/// Rules: 002.83.
#[tokio::test(flavor = "multi_thread")]
async fn long_output_keeps_both_ends() {
    let house = fenced(TempWorkspace::new()).build().await;
    let data = run(&house, "echo first; yes | head -c 3000000; echo last").await;
    let stdout = data["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("first\n") && stdout.ends_with("last\n") && stdout.len() < 100_000, "{}", stdout.len());
    assert!(data["truncated"] == true && stdout.contains("bytes left out"), "{}", &stdout[..100]);
}

/// Rules: 004.17.
#[tokio::test(flavor = "multi_thread")]
async fn a_researcher_cannot_change_the_workspace() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
    workspace.write("b.txt", "not committed\n");
    workspace.write(
        "change.c",
        r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <sys/stat.h>
        #include <unistd.h>
        int main(void) {
            int done = 0;
            if (open("a.txt", O_WRONLY | O_TRUNC) >= 0) done |= 1;
            if (open("new.txt", O_WRONLY | O_CREAT, 0666) >= 0) done |= 2;
            if (rename("a.txt", "c.txt") == 0) done |= 4;
            if (unlink("a.txt") == 0) done |= 8;
            if (mkdir("d", 0777) == 0) done |= 16;
            if (symlink("a.txt", "l") == 0) done |= 32;
            if (link("a.txt", "h") == 0) done |= 64;
            if (truncate("a.txt", 0) == 0) done |= 128;
            if (chmod("a.txt", 0777) == 0) done |= 256;
            if (utimensat(AT_FDCWD, "a.txt", 0, 0) == 0) done |= 512;
            if (mkfifo("p", 0666) == 0) done |= 1024;
            printf("%d\n", done);
            return 0;
        }
        "#,
    );
    let house = fenced(workspace).build().await;
    let before = house.workspace.snapshot();
    for profile in ["researcher", "reviewer"] {
        for command in [
            "touch x",
            "git commit -am x",
            "git add b.txt",
            "git checkout -b y",
            "echo x >> a.txt",
            "rm -rf a.txt",
            "sed -i s/one/two/ a.txt",
            "python3 -c 'open(\"a.txt\",\"w\")'",
            "bash -c 'cp a.txt c.txt'",
            "git config user.name x",
        ] {
            let outcome = house.call_as(profile, "bash", json!({ "command": command })).await;
            assert!(outcome.ok, "{profile}: {command}: {outcome:?}");
            assert_ne!(outcome.data["exitCode"], 0, "{profile}: {command}: {}", outcome.data);
        }
        let build = "gcc -o /tmp/change change.c && /tmp/change";
        let outcome = house.call_as(profile, "bash", json!({ "command": build })).await;
        assert_eq!((&outcome.data["exitCode"], &outcome.data["stdout"]), (&json!(0), &json!("0\n")), "{outcome:?}");
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_developers_commands_cannot_arm_git_or_change_the_project_s_policy() {
    let workspace = TempWorkspace::repository(&[("a.txt", "one\n"), ("toolhost.toml", "")]);
    let house = fenced(workspace).profile("developer").build().await;
    let armed = |house: &House| -> Vec<(String, Vec<u8>)> {
        let watched =
            |path: &str| path.starts_with(".git/hooks") || path.starts_with(".git/info") || path == ".git/config";
        house.workspace.snapshot().into_iter().filter(|(path, _)| watched(path) && !path.ends_with('/')).collect()
    };
    let before = armed(&house);
    for command in [
        "echo '#!/bin/sh' > .git/hooks/pre-commit",
        "git config core.fsmonitor /bin/false",
        "echo '* filter=x' >> .git/info/attributes",
        "mv .git .git2",
        "rm -rf .git/hooks && mkdir .git/hooks && touch .git/hooks/pre-push",
    ] {
        let data = run(&house, command).await;
        assert_ne!(data["exitCode"], 0, "{command}: {data}");
    }
    assert_eq!(armed(&house), before);
    let data = run(&house, "git add -A && git commit -q --allow-empty -m ok").await;
    assert_ne!(data["exitCode"], 0, "{data}");
    let said = data["stderr"].as_str().unwrap();
    assert!(said.contains("[toolhost: .git is read-only for commands: `git add` is git.commit"), "{said}");
    for command in ["git commit -m x || true", "git add . 2>&1 | tail -1"] {
        let said = run(&house, command).await;
        assert!(said["stderr"].as_str().unwrap().contains("[toolhost: "), "{command}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_deploys_into_a_workspace_keep_there_is_not_the_agent_s() {
    let workspace = TempWorkspace::new();
    workspace.write(".toolhost/deploys/x/former/0", "as it was\n");
    workspace.link(".toolhost", "state");
    let house = fenced(workspace).profile("developer").build().await;
    let before = house.workspace.snapshot();
    for (tool, arguments) in [
        ("file.write", json!({ "path": ".toolhost/deploys/x/former/0", "content": "evil" })),
        ("file.write", json!({ "path": "state/deploys/x/former/0", "content": "evil" })),
        ("file.write", json!({ "path": "state/new/y", "content": "evil" })),
        ("file.delete", json!({ "path": ".toolhost/deploys/x/former/0" })),
        ("file.move", json!({ "from": ".toolhost", "to": "mine" })),
    ] {
        let error = house.call_as("all", tool, arguments.clone()).await.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Security, "{tool} {arguments}: {error:?}");
    }
    for command in ["echo evil > .toolhost/deploys/x/former/0", "mv .toolhost mine", "touch .toolhost/new"] {
        assert_ne!(run(&house, command).await["exitCode"], 0, "{command}");
    }
    assert_eq!(house.workspace.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cwd_that_is_none_is_told() {
    let house = fenced(TempWorkspace::new()).build().await;
    house.workspace.write("file.txt", "");
    for (cwd, kind) in
        [("nowhere", ErrorKind::NotFound), ("file.txt", ErrorKind::Validation), ("..", ErrorKind::Security)]
    {
        let error = house.call("bash", json!({ "command": "true", "cwd": cwd })).await.error.unwrap();
        assert_eq!(error.kind, kind, "{cwd}: {error:?}");
    }
}
