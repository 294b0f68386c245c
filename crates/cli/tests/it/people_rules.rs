//! A rule holds however a call says what it means: a name that is left out, another spelling, a folder above, a link.

use serde_json::{Value, json};
use toolhost_testkit::{Program, Ran, TempWorkspace};

use crate::room::program;

fn ruled(workspace: &TempWorkspace, rules: &[(&str, &str, &str)]) -> Program {
    let rule = |(tool, when, decide): &(&str, &str, &str)| {
        format!("[[profiles.all.rules]]\ntool = '{tool}'\nwhen = {{ {when} }}\ndecide = '{decide}'\nwhy = 'test'\n")
    };
    workspace.write_beside("operator.toml", &rules.iter().map(rule).collect::<String>());
    program(workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
}

fn call(program: &Program, tool: &str, arguments: &Value) -> Ran {
    program.run(&["--json", "call", tool, &arguments.to_string(), "--profile", "all"])
}

#[track_caller]
fn refused(program: &Program, tool: &str, arguments: &Value) -> String {
    let ran = call(program, tool, arguments);
    assert_eq!(ran.json()["error"]["kind"], "denied", "{tool} {arguments}: {ran:?}");
    ran.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[track_caller]
fn asked(program: &Program, tool: &str, arguments: &Value) -> String {
    let ran = call(program, tool, arguments);
    assert_eq!(ran.code, Some(3), "{tool} {arguments}: {ran:?}");
    ran.json()["data"]["approvalId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn runs(program: &Program, tool: &str, arguments: &Value) {
    let ran = call(program, tool, arguments);
    assert_eq!(ran.code, Some(0), "{tool} {arguments}: {ran:?}");
}

#[test]
fn a_name_that_is_left_out_may_be_the_one_that_a_rule_names() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("secret/s", "1\n")]);
    let rules = [
        ("git.push", "branch = 'main'", "deny"),
        ("git.commit", "files = 'secret/**'", "deny"),
        ("bash", "stdin = '*x*'", "deny"),
        ("git.diff", "staged = 'true'", "deny"),
    ];
    let program = ruled(&workspace, &rules);
    workspace.write("secret/s", "2\n");
    workspace.write("a.txt", "2\n");
    let why = refused(&program, "git.push", &json!({}));
    assert!(why.contains("`branch` is left out"), "{why}");
    refused(&program, "git.push", &json!({ "branch": "main" }));
    refused(&program, "git.commit", &json!({ "message": "all" }));
    runs(&program, "git.commit", &json!({ "message": "one", "files": ["a.txt"] }));
    // No input is none, and what the schema says of an argument that is left out holds.
    runs(&program, "bash", &json!({ "command": "true" }));
    runs(&program, "git.diff", &json!({}));
    // What is explained is what happens.
    let explained = program.run(&["policy", "explain", "git.push", "{}", "--profile", "all"]).stdout;
    assert!(explained.starts_with("deny: ") && explained.contains("left out"), "{explained}");
}

#[test]
fn what_changes_a_folder_changes_what_is_in_it() {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n"), ("secret/s", "1\n")]);
    let program = ruled(&workspace, &[("git.restore", "paths = 'secret/**'", "deny")]);
    workspace.write("secret/s", "mine\n");
    for paths in [json!(["."]), json!(["secret"]), json!(["a.txt", "./secret/s"])] {
        refused(&program, "git.restore", &json!({ "paths": paths }));
    }
    assert_eq!(workspace.read("secret/s"), "mine\n");
}

#[test]
fn a_record_has_one_id_however_it_is_written() {
    let workspace = TempWorkspace::new();
    let program = ruled(&workspace, &[("ticket.delete", "id = 'TKT-00*'", "ask")]);
    runs(&program, "ticket.create", &json!({ "title": "One" }));
    for id in ["TKT-001", "tkt-1", "Tkt-01", "TKT-1"] {
        asked(&program, "ticket.delete", &json!({ "id": id }));
    }
}

#[test]
fn a_yes_to_a_command_is_for_the_folder_that_its_folder_led_to() {
    let workspace = TempWorkspace::new();
    workspace.write("safe/x", "");
    workspace.write("prod/x", "");
    workspace.link("safe", "cur");
    let program = ruled(&workspace, &[("bash", "command = '*'", "ask")]);
    let arguments = json!({ "command": "rm x", "cwd": "cur" });
    let ask = asked(&program, "bash", &arguments);
    let shown = program.run(&["review", "show", &ask]).stdout;
    assert!(shown.contains("in cur, which leads to safe"), "{shown}");
    assert_eq!(program.run(&["review", "decide", &ask, "--allow"]).code, Some(0));
    workspace.remove("cur");
    workspace.link("prod", "cur");
    asked(&program, "bash", &arguments);
    assert!(workspace.has("prod/x") && workspace.has("safe/x"));
    workspace.remove("cur");
    workspace.link("safe", "cur");
    runs(&program, "bash", &arguments);
    assert!(workspace.has("prod/x") && !workspace.has("safe/x"));
}

#[test]
fn a_rule_that_is_revoked_leaves_no_yes_behind() {
    let workspace = TempWorkspace::new();
    let program = ruled(&workspace, &[("bash", "command = '*'", "ask")]);
    let arguments = json!({ "command": "mkdir made" });
    let ask = asked(&program, "bash", &arguments);
    assert_eq!(program.run(&["review", "decide", &ask, "--allow", "--rule"]).code, Some(0));
    runs(&program, "bash", &arguments);
    let rules = program.run(&["--json", "approvals", "list"]).json();
    let id = format!("rule-{}", rules[0]["number"]);
    assert_eq!(program.run(&["approvals", "revoke", &id]).code, Some(0));
    asked(&program, "bash", &arguments);
}

#[test]
fn no_prefix_is_suggested_after_which_a_program_may_come() {
    let workspace = TempWorkspace::new();
    let program = ruled(&workspace, &[("bash", "command = '*'", "ask")]);
    for command in ["git grep -n hi", "npm exec -- x", "uv run x.py", "cargo +nightly test", "docker run a b"] {
        let ask = asked(&program, "bash", &json!({ "command": command }));
        assert_eq!(program.run(&["review", "decide", &ask, "--allow", "--rule"]).code, Some(0));
    }
    let listed = program.run(&["--json", "approvals", "list"]).stdout;
    assert!(!listed.contains(" *\""), "{listed}");
}

#[test]
fn a_broken_policy_tells_no_value() {
    let workspace = TempWorkspace::new();
    for text in
        ["x = 1\n[keys]\nanthropic = hunter2secret\n", "[keys]\nX = \"hunter2secret\"\n", "model = 5 hunter2secret\n"]
    {
        workspace.write_beside("broken.toml", text);
        let file = workspace.beside("broken.toml");
        let ran = program(&workspace).run(&["policy", "test", file.to_str().unwrap()]);
        assert!(ran.code != Some(0) && !ran.stderr.contains("hunter2"), "{ran:?}");
    }
}

#[test]
fn what_is_explained_follows_links_as_a_call_does() {
    let workspace = TempWorkspace::new();
    workspace.write("secret/x", "1\n");
    workspace.link("secret", "sl");
    let program = ruled(&workspace, &[("file.*", "path = 'secret/**'", "deny")]);
    let arguments = json!({ "path": "sl/x" });
    refused(&program, "file.read", &arguments);
    let explained = program.run(&["policy", "explain", "file.read", &arguments.to_string(), "--profile", "all"]);
    assert!(explained.stdout.starts_with("deny: "), "{explained:?}");
}

/// What a person said of one call is not undone by what they, or somebody else, say of calls like it.
#[test]
fn an_answer_to_a_call_goes_before_a_rule_that_comes_later() {
    let workspace = TempWorkspace::new();
    let program = ruled(&workspace, &[("bash", "command = '*'", "ask")]);
    let bash = |command: &str| asked(&program, "bash", &json!({ "command": command }));
    let decide = |arguments: &[&str]| {
        let ran = program.run(&[&["review", "decide"], arguments].concat());
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    };
    let came = |id: &str| call(&program, "approval.wait", &json!({ "approvalId": id })).json();
    let (denied, again, edited) = (bash("touch a"), bash("touch b"), bash("touch c"));
    decide(&[&denied, "--deny=not this one"]);
    decide(&[&again, "--deny"]);
    decide(&[&edited, "--edit", r#"{"command":"touch instead"}"#]);
    decide(&[&bash("touch d"), "--allow", "--rule", "--when", "command=touch *"]);
    let told = came(&denied).to_string();
    assert!(told.contains("not this one") && !workspace.has("a"), "{told}");
    // The same call made anew finds its answer, too; after that it is a call like others.
    refused(&program, "bash", &json!({ "command": "touch b" }));
    assert!(!workspace.has("b"));
    runs(&program, "bash", &json!({ "command": "touch b" }));
    assert_eq!(came(&edited)["ok"], true);
    assert_eq!((workspace.has("c"), workspace.has("instead")), (false, true));
}
