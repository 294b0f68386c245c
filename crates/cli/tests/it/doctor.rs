//! `toolhost doctor` always answers, and says what to do about what is not well.

use serde_json::Value;
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

fn doctor(program: &Program) -> (Option<i32>, Value) {
    let ran = program.run(&["--json", "doctor"]);
    (ran.code, ran.json())
}

/// What it says of something: `(good | note | bad, what it says)`.
#[track_caller]
fn finding<'a>(told: &'a Value, about: &str) -> (&'a str, &'a str) {
    let findings = told["checks"].as_array().unwrap();
    let found = findings.iter().find(|found| found["about"] == about);
    let found = found.unwrap_or_else(|| unreachable!("{about}: {told}"));
    let standing = found["standing"].as_str().unwrap();
    assert_eq!(found["fix"].is_string(), standing != "good", "{found}");
    (standing, found["says"].as_str().unwrap())
}

#[test]
fn a_machine_where_all_is_well_is_ready() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let (code, told) = doctor(&program);
    assert_eq!((code, &told["ok"]), (Some(0), &Value::Bool(true)), "{told}");
    assert_eq!(finding(&told, "database").0, "good");
    assert!(finding(&told, "database").1.contains("not made yet"), "{told}");
    assert_eq!(finding(&told, "client").0, "note");
    assert_eq!(program.run(&["init"]).code, Some(0));
    let text = program.run(&["doctor"]).stdout;
    assert!(text.contains("rows in the audit") && text.contains("Toolhost is ready, 1 note to look at"), "{text}");
}

#[test]
fn what_is_broken_is_named_and_the_rest_is_looked_at_all_the_same() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("config.toml"));
    assert_eq!(program.run(&["init"]).code, Some(1), "there is no such file");
    workspace.write_beside("config.toml", "[profiles.all]\nmodle = 1\n");
    let (code, told) = doctor(&program);
    assert_eq!((code, &told["ok"]), (Some(1), &Value::Bool(false)), "{told}");
    let (standing, says) = finding(&told, "configuration");
    assert!(standing == "bad" && says.contains("modle"), "{told}");
    assert_eq!((finding(&told, "fence").0, finding(&told, "database").0), ("good", "good"), "{told}");
    assert!(program.run(&["doctor"]).stdout.contains("one thing does not work"));
    assert_eq!(
        program.run(&["doctor", "--accept-git"]).code,
        Some(1),
        "nothing is accepted by settings that do not hold"
    );

    workspace.write_beside("config.toml", "model = 'anthropic:claude-sonnet-4-5'\n");
    let (code, told) = doctor(&program);
    assert!(code == Some(1) && finding(&told, "model").1.contains("ANTHROPIC_API_KEY"), "{told}");
    workspace.write_beside("config.toml", "");
    assert_eq!(program.run(&["init"]).code, Some(0));
    let database = workspace.state().join("toolhost.db");
    std::fs::write(&database, "this is no database, and was one before").unwrap();
    let (code, told) = doctor(&program);
    assert!(code == Some(1) && finding(&told, "database").0 == "bad", "{told}");
    std::fs::remove_file(&database).unwrap();
}

#[test]
fn a_workspace_that_cannot_be_one_is_named_and_the_fence_is_tried_all_the_same() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare().variable("TOOLHOST_ROOT", "/");
    let (code, told) = doctor(&program);
    assert_eq!((code, finding(&told, "workspace").0, finding(&told, "fence").0), (Some(1), "bad", "good"), "{told}");
}

#[test]
fn a_client_is_found_by_its_settings_and_so_is_one_that_starts_nothing() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let settings = |command: &str| {
        serde_json::json!({ "mcpServers": { "tools": { "command": command, "args": ["mcp"] } } }).to_string()
    };
    workspace.write(".mcp.json", settings(env!("CARGO_BIN_EXE_toolhost")));
    let (code, told) = doctor(&program);
    assert_eq!((code, finding(&told, "client").0), (Some(0), "good"), "{told}");
    for (wrong, named) in [
        (&["mcp", "--profil", "developer"][..], "--profil"),
        (&["mcp", "--profile", "develper"], "develper"),
        (&["mcp", "--root=/nowhere"], "/nowhere"),
        (&[], "no command"),
        (&["mcp", "--sandbox", "off"], "no fence"),
    ] {
        let told =
            serde_json::json!({ "mcpServers": { "t": { "command": env!("CARGO_BIN_EXE_toolhost"), "args": wrong } } });
        workspace.write(".mcp.json", told.to_string());
        let (code, told) = doctor(&program);
        let (standing, says) = finding(&told, "client");
        assert!(code == Some(1) && standing == "bad" && says.contains(named), "{wrong:?}: {says}");
    }
    // An agent may have written that file: its program is none to trust, and what it writes may be a secret.
    workspace.write_script("toolhost", "#!/bin/sh\n");
    let own = workspace.path("toolhost");
    let hostile = serde_json::json!({ "a": { "command": own, "args": ["mcp", "sk-abcdefghijklmnop1234"] } });
    workspace.write("opencode.json", hostile.to_string());
    let (_, told) = doctor(&program);
    assert!(told.to_string().contains("lies in the workspace") && !told.to_string().contains("sk-abcdef"), "{told}");
    workspace.remove("opencode.json");
    workspace.write(".mcp.json", settings("/nowhere/toolhost"));
    let (code, told) = doctor(&program);
    assert_eq!((code, finding(&told, "client").0), (Some(1), "bad"), "{told}");
    workspace.write(".mcp.json", "{\"mcpServers\": {\"t\": \"a-secret-value\"");
    let (code, told) = doctor(&program);
    assert_eq!((code, finding(&told, "client").0), (Some(0), "note"), "{told}");
    assert!(!told.to_string().contains("a-secret-value"), "{told}");
}
