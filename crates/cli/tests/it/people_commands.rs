//! Records at the keyboard: the families of tools as commands, members and their rights, and what never shows.

use serde_json::{Value, json};
use toolhost_testkit::engines::engines;
use toolhost_testkit::{Program, Ran, TempWorkspace};

use crate::room::program;

/// The families that are commands.
const FAMILIES: [&str; 15] = [
    "ticket",
    "comment",
    "requirement",
    "feature",
    "component",
    "design",
    "milestone",
    "task",
    "plan",
    "artifact",
    "memory",
    "check",
    "iteration",
    "persona",
    "record",
];
const PASSWORD: &str = "hunter2";

#[track_caller]
fn check(program: &Program, arguments: &[&str], code: i32) -> Ran {
    let ran = program.run(arguments);
    assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
    if code != 0 {
        assert!(ran.stdout.is_empty(), "what failed has no answer: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    }
    ran
}

/// The rows of `audit show --json`.
fn rows(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// The verbs of a family, as its help lists them.
fn verbs(program: &Program, family: &str) -> Vec<String> {
    let help = check(program, &[family, "--help"], 0).stdout;
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    let verb = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).map(verb).collect()
}

#[test]
fn every_family_and_every_verb_has_help() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let tools = toolhost_testkit::every_tool();
    let whole = check(&program, &["--help"], 0).stdout;
    let mut checked = 0;
    for family in FAMILIES {
        assert!(whole.contains(&format!("\n  {family} ")), "{family} is not listed in {whole}");
        let mut listed = verbs(&program, family);
        // `show` is a tool for records of every family.
        listed.retain(|verb| !["help", "show"].contains(&verb.as_str()));
        let of_family =
            tools.iter().map(|tool| tool.info()).filter(|info| info.name.starts_with(&format!("{family}.")));
        let mut expected: Vec<(String, String)> = Vec::new();
        for info in of_family {
            let verb = info.name.split_once('.').unwrap().1.replace('_', "-");
            expected.push((verb, info.description.split(['.', '\n']).next().unwrap().chars().take(30).collect()));
        }
        assert_eq!(listed, expected.iter().map(|(verb, _)| verb.clone()).collect::<Vec<_>>(), "{family}");
        for (verb, description) in expected {
            let help = check(&program, &[family, &verb, "--help"], 0).stdout;
            assert!(help.contains("Usage: toolhost ") && help.contains(&description), "{family} {verb}: {help}");
            checked += 1;
        }
    }
    assert!(checked > 55, "{checked}");
}

#[test]
fn the_commands_do_what_the_tools_do() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let ok = |arguments: &[&str]| check(&program, arguments, 0);
        ok(&[
            "ticket",
            "create",
            "Dark mode",
            "--description",
            "for the night",
            "--acceptance-criteria",
            "pages are dark",
            "--acceptance-criteria",
            "it is remembered",
            "--priority",
            "high",
            "--type",
            "bug",
        ]);
        ok(&[
            "ticket",
            "update-state",
            "TKT-001",
            "research",
            "--expected-state",
            "backlog",
            "--why",
            "somebody asked",
        ]);
        ok(&["ticket", "check-criterion", "TKT-001", "2"]);
        ok(&["ticket", "check-criterion", "TKT-001", "2", "--done=false"]);
        ok(&["comment", "post", "TKT-001", "-- is it dark yet?"]);
        let file = workspace.beside("research.md");
        std::fs::write(&file, "# What others do\n\nThey invert.").unwrap();
        ok(&["ticket", "save-document", "TKT-001", "research", "--file", &file.display().to_string()]);
        let read = ok(&["ticket", "read", "TKT-001"]).stdout;
        for part in ["TKT-001 Dark mode", "state: research", "-- is it dark yet?", "type: bug", "DOC-001"] {
            assert!(read.contains(part), "{part} is not in {read}");
        }
        assert!(ok(&["ticket", "read-document", "TKT-001", "research"]).stdout.contains("They invert."));
        let table = ok(&["ticket", "list", "--status", "research"]).stdout;
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["id", "state", "type", "priority", "version", "title"]);
        assert_eq!(lines[1][..4], ["TKT-001", "research", "bug", "high"]);
        assert!(ok(&["ticket", "list", "--status", "done"]).stderr.contains("no records"));
        let whole = ok(&["--json", "ticket", "list"]).json();
        assert_eq!((&whole["ok"], &whole["data"]["items"][0]["title"]), (&json!(true), &json!("Dark mode")), "{whole}");

        ok(&["memory", "save-insight", "the database is slow", "--importance", "critical"]);
        ok(&["memory", "save-issue", "the build is red"]);
        let found = ok(&["memory", "query", "databse", "--category", "insights"]).stdout;
        assert!(found.contains("INS-001") && !found.contains("ISS-001"), "{found}");
        ok(&["memory", "resolve-issue", "ISS-001", "--resolution", "made green"]);
        let content = program.run_with_input(&["artifact", "save", "prd", "--file", "-"], "# Todo List\n".as_bytes());
        assert_eq!(content.code, Some(0), "{content:?}");
        assert!(ok(&["artifact", "load", "prd"]).stdout.contains("# Todo List"));
        assert!(ok(&["task", "claim"]).stdout.contains("no task is ready"));
        ok(&["design", "update", "--technology-stack", r#"{"backend":"Rust"}"#]);
        assert!(
            ok(&["design", "get"]).stdout.contains("Rust") || ok(&["--json", "design", "get"]).stdout.contains("Rust")
        );
        let history = ok(&["record", "history", "TKT-001"]).stdout;
        assert!(history.contains("somebody asked") || history.contains("state"), "{history}");
        assert!(ok(&["ticket", "update", "TKT-001", "--assignee", "Ada"]).stdout.contains("assignee: Ada"));
        check(&program, &["ticket", "delete", "TKT-001"], 1);
        ok(&["ticket", "delete", "TKT-001", "--cascade"]);
        check(&program, &["ticket", "read", "TKT-001"], 1);
        assert!(ok(&["record", "restore", "TKT-001", "1"]).stdout.contains("Dark mode"));
    }
}

#[test]
fn the_exit_code_tells_what_kind_of_failure_it_was() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        check(&program, &["ticket", "create", "x"], 0);
        for failed in [
            &["ticket", "read", "TKT-099"][..],
            &["ticket", "update-state", "TKT-001", "done"],
            &["ticket", "read", "REQ-001"],
            &["ticket", "list", "--limit", "0"],
            &["ticket", "list", "--cursor", "zz"],
            &["record", "restore", "TKT-001", "7"],
            &["artifact", "save", "prd", "--file", "/nonexistent"],
        ] {
            check(&program, failed, 1);
        }
        for usage in [
            &["ticket", "create"][..],
            &["ticket", "update-state", "TKT-001", "nowhere"],
            &["ticket", "list", "--limit", "many"],
            &["ticket", "list", "--no-such"],
            &["ticket", "read", "TKT-001", "x"],
            &["artifact", "save", "prd"],
            &["artifact", "save", "prd", "--content", "x", "--file", "y"],
            &["design", "update", "--technology-stack", "{"],
            &["member", "add", "eve", "captain"],
            &["import", "yaml", "x"],
            &["import"],
        ] {
            check(&program, usage, 2);
        }
        let used_by = |name: &str| engine.used_by(&program, name, &workspace.beside("home"));
        check(&used_by("nobody"), &["ticket", "list"], 2);
        // Who asks for nothing is shown what there is.
        let bare = program.run(&["ticket"]);
        assert!(bare.code == Some(2) && bare.stderr.contains("check-criterion"), "{bare:?}");
        check(&program, &["member", "add", "vera", "viewer"], 0);
        for denied in [
            &["ticket", "create", "x"][..],
            &["task", "claim"],
            &["memory", "save-learning", "x"],
            &["member", "add", "x"],
            &["member", "remove", "local"],
            &["import", "beads", "/nonexistent"],
        ] {
            let ran = check(&used_by("vera"), denied, 3);
            assert!(ran.stderr.contains("viewer") || ran.stderr.contains("vera may not"), "{ran:?}");
        }
        check(&used_by("vera"), &["ticket", "list"], 0);
        let json = used_by("vera").run(&["--json", "ticket", "create", "x"]);
        assert_eq!((json.code, &json.json()["error"]["kind"]), (Some(3), &json!("permission")));
    }
}

#[test]
fn a_misspelt_command_is_told_its_nearest_name() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for (typed, meant) in [
        (&["tiket"][..], "'ticket'"),
        (&["memry", "query"], "'memory'"),
        (&["ticket", "crate"], "'create'"),
        (&["task", "claims"], "'claim'"),
        (&["ticket", "list", "--stat", "done"], "'--stat"),
        (&["ticket", "update-state", "TKT-001", "researh"], "'research'"),
        (&["itteration", "list"], "'iteration'"),
    ] {
        let ran = check(&program, typed, 2);
        assert!(ran.stderr.contains("similar") && ran.stderr.contains(meant), "{typed:?}: {}", ran.stderr);
    }
}

#[test]
fn colour_is_where_it_is_asked_for_and_not_where_no_color_is() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).variable("CLICOLOR_FORCE", "1");
    check(&program, &["ticket", "create", "x"], 0);
    let plain = program.clone().variable("NO_COLOR", "1");
    for arguments in [
        &["ticket", "list"][..],
        &["ticket", "list", "--status", "done"],
        &["ticket", "read", "TKT-009"],
        &["record", "history", "TKT-001"],
        &["member", "list"],
        &["requirement", "list"],
        &["import", "yaml", "x"],
    ] {
        let (painted, bare) = (program.run(arguments), plain.run(arguments));
        assert!(!format!("{}{}", bare.stdout, bare.stderr).contains('\u{1b}'), "{arguments:?}: {bare:?}");
        // Nothing was said in color where nothing is highlighted; a table and an error are.
        if !painted.stdout.is_empty() || painted.code != Some(0) {
            assert!(format!("{}{}", painted.stdout, painted.stderr).contains('\u{1b}'), "{arguments:?}: {painted:?}");
        }
    }
}

#[test]
fn completions_know_the_families() {
    let workspace = TempWorkspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = check(&program(&workspace).bare(), &["completions", shell], 0).stdout;
        for word in FAMILIES.iter().chain(&["update-state", "promote-to-decision", "plan_approval"]) {
            // Elvish and PowerShell complete commands and options, not values.
            if *word != "plan_approval" || ["bash", "zsh", "fish"].contains(&shell) {
                assert!(script.contains(word), "{shell} does not know {word}");
            }
        }
    }
}

#[test]
fn owners_say_who_belongs_to_the_project() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        let as_user = |name: &str, arguments: &[&str], code: i32| {
            check(&engine.used_by(&program, name, &workspace.beside("home")), arguments, code)
        };
        check(&program, &["member", "add", "eve"], 0);
        as_user("eve", &["ticket", "create", "by eve"], 0);
        as_user("eve", &["member", "add", "mallory", "owner"], 3);
        as_user("eve", &["member", "remove", "local"], 3);
        as_user("eve", &["member", "add", "eve", "owner"], 3);
        let last = check(&program, &["member", "remove", "local"], 1);
        assert!(last.stderr.contains("keeps at least one owner"), "{last:?}");
        check(&program, &["member", "add", "local", "editor"], 1);
        check(&program, &["member", "add", "eve", "owner"], 0);
        as_user("eve", &["member", "add", "local", "viewer"], 0);
        check(&program, &["ticket", "create", "by local"], 3);
        check(&program, &["member", "add", "mallory"], 3);
        let told = as_user("eve", &["--json", "member", "add", "kim"], 0).json();
        assert_eq!((&told["name"], &told["role"]), (&json!("kim"), &json!("editor")), "{told}");
        let members = as_user("kim", &["--json", "member", "list"], 0).json();
        let listed: Vec<(&str, &str)> = members
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["name"].as_str().unwrap(), one["role"].as_str().unwrap()))
            .collect();
        assert_eq!(listed, [("eve", "owner"), ("kim", "editor"), ("local", "viewer")]);
        assert!(as_user("eve", &["member", "list"], 0).stdout.contains("kim    editor  yes"));
        let told = as_user("eve", &["--json", "member", "add", "kim", "--approver", "no"], 0).json();
        assert_eq!((&told["role"], &told["approver"]), (&json!("editor"), &json!(false)), "{told}");
        let gone = as_user("eve", &["--json", "member", "remove", "kim"], 0).json();
        assert_eq!((&gone["name"], &gone["role"]), (&json!("kim"), &Value::Null), "{gone}");
        // A stranger now, though a user: nothing is told and nothing is done.
        for denied in [
            &["ticket", "list"][..],
            &["ticket", "create", "x"],
            &["export"],
            &["member", "list"],
            &["import", "beads", "/nonexistent"],
        ] {
            as_user("kim", denied, 3);
        }
        as_user("eve", &["member", "remove", "kim"], 2);
        as_user("eve", &["member", "add", "a\u{1b}[2Jb"], 1);
        as_user("eve", &["member", "add", ""], 1);
        let rows = rows(&as_user("eve", &["--json", "audit", "show", "--tool", "member.add"], 0));
        let done = rows.iter().filter(|row| row["event"] == "finished" && row["outcome"]["ok"] == true);
        let names: Vec<&Value> = done.map(|row| &row["arguments"]["name"]).collect();
        assert_eq!(names, ["eve", "eve", "local", "kim", "kim"], "each change of members is in the audit");
        check(&program, &["audit", "verify"], 0);
    }
}

#[test]
fn what_is_read_in_is_in_the_audit() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = engine.under(program(&workspace));
        workspace.write_beside("issues.jsonl", r#"{"id":"bd-1","title":"One","status":"open","issue_type":"task"}"#);
        let file = workspace.beside("issues.jsonl").display().to_string();
        check(&program, &["import", "beads", &file], 0);
        let missing = check(&program, &["import", "beads", "/nonexistent"], 1);
        let rows = rows(&check(&program, &["--json", "audit", "show", "--tool", "import"], 0));
        let told: Vec<(&Value, &Value)> = rows.iter().map(|row| (&row["event"], &row["outcome"]["ok"])).collect();
        let (started, finished) = (json!("started"), json!("finished"));
        let expected =
            [(&started, &Value::Null), (&finished, &json!(true)), (&started, &Value::Null), (&finished, &json!(false))];
        assert_eq!(told, expected, "{missing:?}");
        let row = &rows[1];
        assert_eq!(row["arguments"], json!({ "format": "beads", "from": "issues.jsonl" }));
        assert_eq!(row["caller"]["persona"], "local");
        check(&program, &["audit", "verify"], 0);
    }
}

#[test]
fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let workspace = TempWorkspace::new();
    let plain = program(&workspace);
    // Nothing listens on port 1.
    let url = format!("postgres://joe:{PASSWORD}@127.0.0.1:1/db");
    let variable = plain.clone().variable("TOOLHOST_DATABASE", &url);
    let flag = plain.clone().argument("--database").argument(&url);
    workspace.write_beside("config.toml", format!("database = \"{url}\"\n").as_str());
    let file = plain.clone().argument("--config").argument(workspace.beside("config.toml"));
    for program in [variable, flag, file] {
        for arguments in [
            &["ticket", "list"][..],
            &["call", "file.list", "{}"],
            &["member", "list"],
            &["export"],
            &["init"],
            &["audit", "verify"],
            &["--json", "task", "ready"],
            &["import", "beads", "/nonexistent"],
        ] {
            let ran = program.run(arguments);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}: {ran:?}");
            assert!(ran.stderr.contains("postgres://joe@127.0.0.1:1/db cannot be reached"), "{ran:?}");
            assert!(!ran.stderr.contains(PASSWORD) && ran.stderr.matches("refused").count() == 1, "{ran:?}");
        }
        for arguments in
            [&["--help"][..], &["ticket", "list", "--help"], &["doctor"], &["--json", "doctor"], &["tools"]]
        {
            let ran = program.run(arguments);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(PASSWORD), "{arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn a_password_does_not_show_in_what_is_wrong_with_the_address_or_its_file() {
    let workspace = TempWorkspace::new();
    let plain = program(&workspace);
    for url in [
        "postgres://joe:hunter2@127.0.0.1:1x/db",
        "postgres://joe:hunter2@127.0.0.1:1/db?sslmode=bad",
        "postgres://joe:hunter2@[::1/db",
        "joe:hunter2@127.0.0.1/db",
        "postgres//joe:hunter2@127.0.0.1/db",
    ] {
        let ran = plain.run(&["--database", url, "ticket", "list"]);
        assert!(ran.code == Some(1) && !ran.stderr.contains(PASSWORD), "{url}: {ran:?}");
    }
    for text in [
        "database = \"postgres://joe:hunter2@127.0.0.1:1/db\nuser = \"x\"",
        "database = [\"postgres://joe:hunter2@h/db\"]",
        "database = \"postgres://joe:hunter2@h/db\" user = 1",
        "databse = \"postgres://joe:hunter2@h/db\"",
        "keys = { anthropic = \"hunter2\" }",
        "models = { x = { key = { hunter2 = \"sk-ant-api03-hunter2hunter2\" } } }",
        "models = { x = { key = { \"sk-ant-api03-hunter2hunter2hunter2\" = \"x\" } } }",
        "models = { x = { headers = [\"hunter2\"] } }",
        "models = { x = { headers = \"hunter2, expected hunter2\" } }",
        "commands = \"hunter2\"",
    ] {
        workspace.write_beside("config.toml", text);
        let config = workspace.beside("config.toml").display().to_string();
        let ran = plain.run(&["--config", &config, "ticket", "list"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("line 1"), "{text}: {ran:?}");
        assert!(!ran.stderr.contains(PASSWORD), "{text}: {ran:?}");
    }
}

#[test]
fn a_password_that_works_does_not_show_either() {
    for engine in engines() {
        let Some(url) = &engine.url else { continue };
        let workspace = TempWorkspace::new();
        // The server trusts everybody, whatever the password.
        let secret = url.replace("toolhost@", &format!("toolhost:{PASSWORD}@"));
        let program = program(&workspace).variable("TOOLHOST_DATABASE", &secret);
        let outputs = [
            &["init"][..],
            &["ticket", "create", "x"],
            &["--json", "ticket", "list"],
            &["doctor"],
            &["export"],
            &["audit", "show"],
            &["--json", "audit", "show"],
            &["--user", "nobody", "ticket", "list"],
            &["--json", "init"],
            &["member", "add", "eve"],
            &["call", "bash", r#"{"command":"env; cat /proc/*/environ | tr '\\0' '\\n'"}"#],
        ]
        .map(|arguments| program.run(arguments));
        assert!(outputs[0].code == Some(0) && outputs[10].code == Some(0), "{outputs:?}");
        for ran in outputs {
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains(PASSWORD), "{ran:?}");
        }
    }
}
