//! `[server]` of the configuration: what a server takes, as the operator says it.

use toolhost_testkit::{Program, TempWorkspace, http};

use crate::room::program;
use crate::served::{Served, token};

/// The program with this configuration.
fn configured(workspace: &TempWorkspace, toml: &str) -> Program {
    workspace.write_beside("config.toml", toml);
    program(workspace).argument("--config").argument(workspace.beside("config.toml"))
}

#[tokio::test]
async fn limits_of_the_configuration_hold() {
    let workspace = TempWorkspace::new();
    let program = configured(&workspace, "[server.limits]\nbody = \"2K\"\nhead = \"8K\"\nfailed_logins = 2\n");
    let (secret, key) = token(&program, &[]);
    let server = Served::start(&program, &[]);
    let calls = format!("/api/v1/projects/{key}/calls");
    let long = server.send(&secret, ("POST", &calls), &"x".repeat(3000)).await;
    assert_eq!(long.status, 413, "{long:?}");
    let wide = [("x-wide", &*"x".repeat(10_000))];
    let headed = server.send_with(&secret, ("GET", "/api/v1/projects"), &wide, "").await;
    assert_eq!(headed.status, 431, "{headed:?}");
    let unknown = [("authorization", "Bearer thp_00000000_0")];
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(http(server.address("address"), ("GET", "/api/v1/projects"), &unknown, "").await.status);
    }
    assert_eq!(answers, [401, 401, 429]);
}

#[test]
fn a_server_whose_limits_are_wrong_does_not_start_and_names_the_line() {
    let workspace = TempWorkspace::new();
    let program = configured(&workspace, "[server.limits]\nsessions = 10\nbody_seconds = 0\n");
    let refused = program.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    for said in ["config.toml is not valid: line 3", "`body_seconds`", "it goes from 1 to 3600"] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
}
