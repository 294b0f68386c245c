//! The small program that is the inside of the fence, and what the host does where it is not there or of another version.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::TOOLHOST;

const FENCE: &str = env!("CARGO_BIN_EXE_toolhost-fence");

/// A copy that can be run at once: had this process written it, a process that another test starts could still hold it open.
#[expect(clippy::disallowed_methods, reason = "a copy of the program, made before there is a host")]
fn copy(to: &std::path::Path) {
    assert!(std::process::Command::new("cp").arg(TOOLHOST).arg(to).status().unwrap().success());
}

/// How many bytes the helper inside the fence has.
async fn helper_bytes(program: &Program) -> u64 {
    let mut host = McpProcess::open(program, &["--profile", "developer"], Era::Session).await;
    let answer = host.call("bash", json!({ "command": "wc -c < /run/toolhost-exec" })).await;
    assert!(host.close().await.success());
    let text = answer["structuredContent"]["data"]["stdout"].as_str().unwrap_or_default().trim().to_owned();
    assert!(!text.is_empty(), "{answer}");
    text.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_start_through_the_small_program_of_the_same_version() {
    let bytes = |path: &str| std::fs::metadata(path).unwrap().len();
    let workspace = TempWorkspace::new();
    let full = |program: Program| program.variable("TOOLHOST_SANDBOX", "full");
    assert_eq!(helper_bytes(&full(Program::new(TOOLHOST, &workspace))).await, bytes(FENCE));
    // Beside a copy of the program there is none, or one that does not answer as this version does.
    let alone = workspace.beside("toolhost");
    copy(&alone);
    assert_eq!(helper_bytes(&full(Program::new(&alone, &workspace))).await, bytes(TOOLHOST));
    let other = workspace.beside("toolhost-fence");
    std::fs::write(&other, "#!/bin/sh\necho 0000000000000000\n").unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(helper_bytes(&full(Program::new(&alone, &workspace))).await, bytes(TOOLHOST));
}

/// Commands could put another program in its place, which the host would run outside the fence.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_inside_the_workspace_is_refused() {
    let workspace = TempWorkspace::new();
    let inside = workspace.path("toolhost");
    copy(&inside);
    for tier in ["auto", "landlock"] {
        let program = Program::new(&inside, &workspace).variable("TOOLHOST_SANDBOX", tier);
        let output = program.command(&["call", "bash", r#"{"command":"true"}"#]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("put another in its place"), "{tier}: {said}");
    }
}

/// Some programs ignore `SIGCHLD`, and whatever they start does so, too: the kernel then forgets how a child has ended.
#[test]
#[expect(clippy::disallowed_methods, reason = "a program that ignores a signal starts the host")]
fn a_host_that_inherits_an_ignored_signal_runs_commands() {
    for tier in ["full", "landlock"] {
        let workspace = TempWorkspace::new();
        let program = Program::new(TOOLHOST, &workspace).variable("TOOLHOST_SANDBOX", tier);
        let host = program.command(&["call", "bash", r#"{"command":"exit 7"}"#]);
        let mut starter = std::process::Command::new("env");
        starter.arg("--ignore-signal=CHLD").arg(host.get_program()).args(host.get_args()).current_dir("/var/tmp");
        starter.env_clear().envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = starter.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("[exit code 7]"), "{tier}: {said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
