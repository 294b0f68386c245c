//! Deploys from the command line and by a tool, as far as the audit and the person at the terminal see them.

use serde_json::{Value, json};
use toolhost_testkit::{Program, TempWorkspace};

use crate::room::program;

/// A workspace that is deployed to a folder beside it.
fn deployed(workspace: &TempWorkspace) -> Program {
    let target = workspace.beside("site");
    std::fs::create_dir_all(&target).unwrap();
    workspace.write("index.html", "one\n");
    let program = program(workspace).variable("TOOLHOST_DEPLOY_TO", target);
    let ran = program.run(&["deploy", "run", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    program
}

/// What a host leaves that dies before its deploy has begun to change anything.
fn leave_half(workspace: &TempWorkspace, id: &str) {
    std::fs::create_dir_all(workspace.beside("site/.toolhost/deploys").join(id).join("new")).unwrap();
}

fn recovered(program: &Program) -> Vec<Value> {
    let shown = program.run(&["--json", "audit", "show", "--tool", "deploy.recover"]).stdout;
    shown.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

#[test]
fn a_plan_is_allowed_as_it_is_and_its_lines_are_one_file_each() {
    let workspace = TempWorkspace::new();
    let program = deployed(&workspace);
    workspace.write("a.html\nnew: innocent.html", "x\n");
    workspace.write("b\u{2800}.html\nunchanged: c.html", "x\n");
    workspace.write("d\n+evil.html", "x\n");
    let plan = program.run(&["deploy", "plan"]).stdout;
    assert!(!plan.lines().any(|line| line.starts_with("new: innocent") || line.starts_with('+')), "{plan}");
    let asked = program.run(&["--json", "call", "deploy.copy", "{}"]);
    assert_eq!(asked.json()["data"]["approvalId"], "ask-1", "{asked:?}");
    let shown = program.run(&["review", "show", "ask-1"]).stdout;
    assert!(!shown.lines().any(|line| line.starts_with("new: innocent") || line.starts_with('+')), "{shown}");
    assert!(shown.contains("new: d\\u{a}+evil.html"), "{shown}");
    let edited = program.run(&["review", "decide", "ask-1", "--edit", r#"{"dryRun":true}"#]);
    assert!(edited.code != Some(0) && edited.stderr.contains("it takes allow, deny"), "{edited:?}");
    assert_eq!(program.run(&["review", "decide", "ask-1", "--allow"]).code, Some(0));
}

#[test]
fn what_is_recovered_of_a_deploy_is_recorded_whoever_looked() {
    let workspace = TempWorkspace::new();
    let program = deployed(&workspace);
    program.run(&["member", "add", "vera", "viewer"]);
    leave_half(&workspace, "one");
    let ran = program.run(&["--user", "vera", "deploy", "plan"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("discarded"), "{ran:?}");
    let rows = recovered(&program);
    assert_eq!(rows.len(), 2, "its two rows: {rows:?}");
    let row = rows.iter().find(|row| row["arguments"]["recovered"][0]["id"] == "one").unwrap();
    assert_eq!(row["caller"]["persona"], "vera", "{row}");
    // A dry run by a tool needs nobody, and recovers as well.
    leave_half(&workspace, "two");
    let ran = program.run(&["--json", "call", "deploy.copy", &json!({ "dryRun": true }).to_string()]);
    assert_eq!(ran.json()["ok"], true, "{ran:?}");
    let rows = recovered(&program);
    assert!(rows.iter().any(|row| row["arguments"]["recovered"][0]["id"] == "two"), "{rows:?}");
    // And so does what is only shown to a person.
    leave_half(&workspace, "three");
    program.run(&["--json", "--unattended", "deny", "call", "deploy.copy", "{}"]);
    let rows = recovered(&program);
    assert!(rows.iter().any(|row| row["arguments"]["recovered"][0]["id"] == "three"), "{rows:?}");
    let verified = program.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn files_that_stay_back_are_counted_in_the_last_line_with_an_exit_code_of_their_own() {
    let workspace = TempWorkspace::new();
    let program = deployed(&workspace);
    let site = workspace.beside("site");
    workspace.write(".gitignore", "ignored.html\n");
    workspace.write("ignored.html", "x\n");
    workspace.write("tool.py", "x\n");
    workspace.write("fine.html", "x\n");
    // What rules leave out is no reason for a code.
    let ran = program.run(&["deploy", "run", "--yes"]);
    assert!(ran.code == Some(0) && !ran.stdout.contains("back"), "{ran:?}");
    std::fs::create_dir(site.join("folder.html")).unwrap();
    workspace.write("folder.html", "x\n");
    workspace.write("C:/page.html", "x\n");
    workspace.write("more.html", "x\n");
    let plan = program.run(&["deploy", "plan"]);
    let says = "stays back: folder.html (a folder stands at its place in the target)";
    assert!(plan.code == Some(0) && plan.stdout.contains(says), "{plan:?}");
    let refused = program.run(&["deploy", "run", "--yes", "--strict"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("nothing was deployed: 2 would stay back"),
        "{refused:?}"
    );
    assert!(!site.join("more.html").exists());
    let ran = program.run(&["deploy", "run", "--yes"]);
    assert_eq!((ran.code, ran.stdout.lines().last()), (Some(4), Some("2 stay back")), "{ran:?}");
    assert!(site.join("more.html").is_file());
    // Also where there is nothing else to do, and as JSON.
    let ran = program.run(&["deploy", "run", "--yes"]);
    assert_eq!((ran.code, ran.stdout.lines().last()), (Some(4), Some("2 stay back")), "{ran:?}");
    workspace.write("more.html", "y\n");
    let ran = program.run(&["--json", "deploy", "run", "--yes"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(ran.json()["heldBack"].as_array().unwrap().len(), 2, "{ran:?}");
    // A tool says it, too.
    let told = program.run(&["--json", "call", "deploy.copy", &json!({ "dryRun": true }).to_string()]);
    assert_eq!(told.json()["data"]["heldBack"], 2, "{told:?}");
    let copied = program.run(&["deploy", "run", "--yes", "--strict"]);
    assert_eq!(copied.code, Some(1));
    std::fs::remove_dir(site.join("folder.html")).unwrap();
    std::fs::remove_file(workspace.root().join("C:/page.html")).unwrap();
    assert_eq!(program.run(&["deploy", "run", "--yes", "--strict"]).code, Some(0));
}

#[test]
fn a_target_that_is_no_project_folder_is_refused_by_its_name() {
    let workspace = TempWorkspace::new();
    workspace.write("index.html", "one\n");
    let program = program(&workspace);
    workspace.write_beside("file", "");
    let (missing, file) = (workspace.beside("missing/site"), workspace.beside("file"));
    for target in [missing.to_str().unwrap(), file.to_str().unwrap()] {
        let refused = program.run(&["deploy", "plan", "--deploy-to", target]);
        let expected = format!("error: the deploy target {target} is not a folder, or it does not exist. Create it");
        assert!(refused.code == Some(1) && refused.stderr.starts_with(&expected), "{refused:?}");
        assert!(refused.stderr.contains("`mkdir -p`") && refused.stderr.contains("--deploy-to DIR"), "{refused:?}");
        let call = program.run(&["call", "deploy.copy", r#"{"dryRun":true}"#, "--deploy-to", target]);
        assert!(call.code == Some(1) && call.stderr.contains("a person must create it"), "{call:?}");
        assert!(!call.stderr.contains(target), "a tool's answer names no folder of the machine: {call:?}");
    }
    for (target, why) in
        [("/", "the system"), ("/etc", "the system"), ("/usr/../usr/lib", "the system"), ("~", "your home")]
    {
        let home = workspace.beside("home");
        let target = if target == "~" { home.to_str().unwrap() } else { target };
        let refused = program.run(&["deploy", "plan", "--deploy-to", target]);
        assert!(
            refused.code == Some(1) && refused.stderr.contains(why) && refused.stderr.contains(target),
            "{refused:?}"
        );
    }
    let unset = program.run(&["deploy", "plan"]);
    assert!(unset.code == Some(2) && unset.stderr.contains("no deploy target is set"), "{unset:?}");
}
