//! The command line: exit codes, JSON shapes, and what it refuses to be pointed at.

use serde_json::{Value, json};
use toolhost_testkit::{Program, Ran, TempWorkspace};

use crate::room::{TOOLHOST, program};

fn call(program: &Program, tool: &str, arguments: &str) -> Ran {
    program.run(&["call", tool, arguments])
}

#[test]
fn exit_codes_are_what_the_help_promises() {
    let workspace = TempWorkspace::repository(&[("a.txt", "hello\n")]);
    workspace.git(&["init", "-q", "--bare", "remote.git"]);
    workspace.git(&["remote", "add", "origin", "./remote.git"]);
    let program = program(&workspace);
    let ok = call(&program, "file.read", r#"{"path":"a.txt"}"#);
    assert_eq!((ok.code, ok.stdout.as_str(), ok.stderr.as_str()), (Some(0), "hello\n", ""));
    let failed = call(&program, "file.read", r#"{"path":"none.txt"}"#);
    assert!(failed.code == Some(1) && failed.stdout.is_empty() && failed.stderr.starts_with("error: "), "{failed:?}");
    for usage in
        [&["call"][..], &["no-such-command"], &["mcp", "--no-such-flag"], &["audit"], &["completions", "tcsh5"]]
    {
        let ran = program.run(usage);
        assert!(ran.code == Some(2) && ran.stdout.is_empty() && !ran.stderr.is_empty(), "{usage:?}: {ran:?}");
    }
    let waits = call(&program, "git.push", "{}");
    assert!(waits.code == Some(3) && waits.stdout.contains("waits for a person's approval as ask-1"), "{waits:?}");
    let denied = program.run(&["--unattended", "deny", "call", "git.push", "{\"branch\":\"main\"}"]);
    assert!(denied.code == Some(3) && denied.stderr.contains("nobody is here to give it"), "{denied:?}");
    let absent = program.run(&["call", "file.write", r#"{"path":"x","content":"y"}"#, "--profile", "researcher"]);
    assert_eq!(absent.code, Some(3), "{absent:?}");
    let nobody = program.run(&["call", "file.list", "{}", "--profile", "nobody"]);
    assert!(
        nobody.code == Some(2) && nobody.stderr.contains("there are all, builder, builder-read, developer"),
        "{nobody:?}"
    );
    let wrong = call(&program, "file.read", "[]");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("JSON object"), "{wrong:?}");
    assert!(call(&program, "file.read", "{").stderr.contains("not JSON"));
}

#[test]
fn arguments_may_come_from_standard_input() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let content = "x".repeat(1 << 20);
    let arguments = json!({ "path": "a.txt", "content": content }).to_string();
    let ran = program.run_with_input(&["call", "file.write", "-"], arguments.as_bytes());
    assert_eq!((ran.code, workspace.read("a.txt").len()), (Some(0), 1 << 20), "{}", ran.stderr);
}

#[test]
fn with_json_an_error_is_json_on_standard_error() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    assert_eq!(program.run(&["member", "add", "vera", "viewer"]).code, Some(0));
    for (kind, exit_code, typed, says) in [
        ("usage", 2, &["no-such-command", "--json"][..], "unrecognized subcommand"),
        ("usage", 2, &["--json", "task", "list", "--no-such"], "unexpected argument"),
        ("usage", 2, &["--json", "call", "file.list", "{}", "--profile", "nobody"], "there are all, builder"),
        ("usage", 2, &["--json", "--user", "nobody", "review", "list"], "no user `nobody`"),
        ("failed", 1, &["--config", "none.toml", "--json", "review", "list"], "none.toml"),
        ("failed", 1, &["task", "list", "--config", "none.toml", "--json"], "none.toml"),
        ("denied", 3, &["--json", "--user", "vera", "member", "add", "will", "viewer"], "owner"),
    ] {
        let ran = program.run(typed);
        assert!(ran.code == Some(exit_code) && ran.stdout.is_empty(), "{typed:?}: {ran:?}");
        let told: Value = serde_json::from_str(&ran.stderr).unwrap();
        let error = &told["error"];
        assert_eq!((&told["ok"], &error["kind"], &error["exitCode"]), (&json!(false), &json!(kind), &json!(exit_code)));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(says) && !message.starts_with("error"), "{typed:?}: {message}");
    }
    let help = program.run(&["--json", "review", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("Usage:"), "{help:?}");
}

#[test]
fn colours_and_the_log_are_what_was_typed() {
    let workspace = TempWorkspace::repository(&[("a.txt", "hello\n")]);
    let program = program(&workspace).variable("TOOLHOST_LOG", "error");
    let ran =
        |options: &[&str]| program.run(&[&["call", "file.read", r#"{"path":"none.txt"}"#], options].concat()).stderr;
    assert!(!ran(&[]).contains('\u{1b}') && !ran(&["--color", "never"]).contains('\u{1b}'));
    assert!(ran(&["--color", "always"]).contains('\u{1b}'));
    let of_a_family = program.run(&["task", "list", "--color=always", "--config", "none.toml"]);
    assert!(of_a_family.stderr.contains('\u{1b}'), "{of_a_family:?}");
    assert!(!ran(&[]).contains("INFO"));
    assert!(ran(&["-v"]).contains("INFO") && !ran(&["-v"]).contains("DEBUG"));
}

#[test]
fn a_quiet_command_prints_answers_and_errors_alone() {
    let workspace = TempWorkspace::repository(&[("a.txt", "hello\n")]);
    let program = program(&workspace);
    for typed in [&["review", "list"][..], &["task", "list"], &["undo"], &["session", "list"]] {
        assert_ne!(program.run(typed).stderr, "", "{typed:?}");
        for ran in [program.run(&[&["-q"], typed].concat()), program.run(&[typed, &["--quiet"]].concat())] {
            assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.as_str()), (Some(0), "", ""), "{typed:?}");
        }
    }
    let read = program.run(&["-q", "call", "file.read", r#"{"path":"a.txt"}"#]);
    assert_eq!((read.stdout.as_str(), read.stderr.as_str()), ("hello\n", ""));
    let failed = program.run(&["-q", "call", "file.read", r#"{"path":"none.txt"}"#]);
    assert!(failed.code == Some(1) && failed.stderr.contains("`none.txt`"), "{failed:?}");
    assert_eq!(program.run(&["-q", "-v", "task", "list"]).code, Some(2));
}

#[test]
fn json_is_the_whole_of_standard_output() {
    let workspace = TempWorkspace::repository(&[("a.txt", "hello\n")]);
    let program = program(&workspace);
    let outcome = program.run(&["--json", "call", "file.read", r#"{"path":"a.txt"}"#]).json();
    assert_eq!((&outcome["ok"], &outcome["data"]["content"]), (&json!(true), &json!("hello\n")));
    let failed = program.run(&["call", "file.read", r#"{"path":"none"}"#, "--json"]);
    assert_eq!((failed.code, &failed.json()["error"]["kind"]), (Some(1), &json!("not_found")));
    let tools = program.run(&["--json", "tools"]).json();
    assert_eq!(tools.as_array().unwrap().len(), toolhost_testkit::every_tool().len());
    assert!(tools[0]["inputSchema"].is_object() && tools[0]["wireName"].is_string(), "{tools}");
    let few = program.run(&["--json", "tools", "--profile", "researcher"]).json();
    assert!(few.as_array().unwrap().len() < tools.as_array().unwrap().len());
    let doctor = program.run(&["--json", "doctor"]).json();
    assert!(doctor["fence"].is_object() && doctor["version"].is_string(), "{doctor}");
    let made = program.run(&["--json", "init"]).json();
    assert_eq!((&made["project"], &made["name"]), (&json!(1), &json!("ws")), "{made}");
    let verify = program.run(&["--json", "audit", "verify"]).json();
    assert_eq!((&verify["ok"], &verify["problems"]), (&json!(true), &json!([])), "{verify}");
    let shown = program.run(&["--json", "audit", "show"]).stdout;
    assert!(shown.lines().count() >= 2 && shown.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let explained = program.run(&["--json", "policy", "explain", "git.push"]).json();
    assert_eq!((&explained["verdict"]["decide"], &explained["hasTool"]), (&json!("ask"), &json!(true)), "{explained}");
}

#[test]
fn doctor_says_why_no_cgroup_holds_the_memory_of_commands() {
    let workspace = TempWorkspace::new();
    let named = program(&workspace).argument("--command-cgroup").argument("/var/tmp");
    let memory = named.run(&["--json", "doctor"]).json()["fence"]["memory"].clone();
    assert_eq!(memory["why"], "/var/tmp: it is not a folder of a cgroup2 file system");
    assert_eq!((&memory["cgroup"], memory["limitBytes"].is_u64()), (&Value::Null, true), "{memory}");
    let told = named.run(&["doctor"]).stdout;
    assert!(told.contains("checked several times a second (/var/tmp: ") && told.contains("Delegate=yes"), "{told}");
    workspace.write_beside("config.toml", "[commands]\ncgroup = \"/nowhere\"\n");
    let file = program(&workspace).argument("--config").argument(workspace.beside("config.toml"));
    assert!(file.run(&["doctor"]).stdout.contains("/nowhere: No such file"));
}

#[test]
fn an_export_is_the_chain_as_json_lines() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for n in 0..3 {
        call(&program, "file.write", &json!({ "path": format!("f{n}"), "content": "x" }).to_string());
    }
    let file = workspace.beside("export.jsonl");
    let ran = program.run(&["audit", "export", "--output", &file.display().to_string()]);
    assert!(ran.code == Some(0) && ran.stdout.is_empty() && ran.stderr.contains("6 rows"), "{ran:?}");
    let text = program.run(&["audit", "export"]).stdout;
    assert_eq!(workspace.read("../export.jsonl"), text);
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (end, rows) = rows.split_last().unwrap();
    assert_eq!((rows.len(), &end["line"], &end["rows"]), (6, &json!("end"), &json!(6)));
    for pair in rows.windows(2) {
        assert_eq!(pair[0]["hash"], pair[1]["prevHash"]);
    }
}

#[test]
fn a_policy_file_is_tested_by_its_own_words() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let policy = |expect: &str| {
        format!(
            "[profiles.p]\nextends = 'developer'\n[[profiles.p.rules]]\ntool = 'bash'\nwhen = {{ command = 'curl *' }}\ndecide = 'deny'\n\
             match = ['curl x']\nnot_match = ['ls']\n\
             [[tests]]\nprofile = 'p'\ntool = 'bash'\narguments = {{ command = 'ls && curl x' }}\nexpect = '{expect}'\n\
             [[tests]]\nprofile = 'researcher'\ntool = 'file.write'\nexpect = 'absent'\n"
        )
    };
    let file = workspace.beside("policy.toml").display().to_string();
    workspace.write_beside("policy.toml", &policy("deny"));
    let good = program.run(&["policy", "test", &file]);
    assert!(good.code == Some(0) && good.stdout.contains("0 of 2 tests failed"), "{good:?}");
    workspace.write_beside("policy.toml", &policy("allow"));
    let bad = program.run(&["--json", "policy", "test", &file]);
    assert_eq!((bad.code, &bad.json()["tests"][0]["actual"]), (Some(1), &json!("deny")), "{bad:?}");
    workspace.write_beside("policy.toml", &policy("deny").replace("'curl x']", "'ls']"));
    assert!(program.run(&["policy", "test", &file]).stderr.contains("does not match its own example"));
    assert_eq!(program.run(&["policy", "test", "/nonexistent"]).code, Some(1));
    let rest = "sandbox = 'auto'\nmodel = 'script:x'\n[approvals]\nhold_seconds = 1\n[commands]\nmemory = '1G'\n";
    workspace.write_beside("policy.toml", &format!("{rest}{}", policy("deny")));
    assert_eq!(program.run(&["policy", "test", &file]).code, Some(0), "a whole configuration");
    workspace.write_beside("policy.toml", &format!("sandbux = 'auto'\n{}", policy("deny")));
    let wrong = program.run(&["policy", "test", &file]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("sandbux"), "{wrong:?}");
}

#[test]
fn the_host_s_own_files_are_never_inside_the_workspace() {
    let workspace = TempWorkspace::new();
    let bare = program(&workspace).bare();
    let root = workspace.root().display().to_string();
    workspace.make_folder("inner");
    workspace.link(workspace.path("inner"), "../link");
    for state in
        [workspace.path("state"), workspace.path("inner/state"), workspace.beside("link/state"), workspace.root()]
    {
        let ran = bare.run(&["--root", &root, "--state", &state.display().to_string(), "init"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("inside the workspace"), "{}: {ran:?}", state.display());
    }
    assert!(!workspace.has("state") && !workspace.has("inner/state"));
    let whole = bare.run(&["--root", "/", "init"]);
    assert!(whole.code == Some(1) && whole.stderr.contains("whole file system"), "{whole:?}");
    let home = workspace.beside("home").display().to_string();
    let over = bare.run(&["--root", &home, "init"]);
    assert_eq!(over.code, Some(1), "the state would be in there: {over:?}");
    let missing = bare.run(&["--root", "/nonexistent", "init"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("/nonexistent"), "{missing:?}");
}

#[test]
fn state_lies_in_the_data_folder_unless_said_otherwise() {
    let workspace = TempWorkspace::new();
    let bare = program(&workspace).bare();
    let root = workspace.root().display().to_string();
    let made = bare.run(&["--json", "--root", &root, "init"]).json();
    let state = made["state"].as_str().unwrap();
    let data = workspace.beside("home/.local/share/toolhost/projects/ws-").display().to_string();
    assert!(state.starts_with(&data), "{state}");
    let by_variable = bare.clone().variable("TOOLHOST_ROOT", &root).variable("TOOLHOST_STATE", workspace.beside("v"));
    assert_eq!(by_variable.run(&["--json", "init"]).json()["state"], workspace.beside("v").display().to_string());
    assert!(workspace.snapshot().is_empty(), "nothing is put into the workspace");
}

#[test]
fn colour_is_for_terminals_only() {
    let workspace = TempWorkspace::new();
    for program in [program(&workspace), program(&workspace).variable("NO_COLOR", "1").variable("CLICOLOR_FORCE", "")] {
        for arguments in [&["tools"][..], &["profiles"], &["doctor"], &["call", "no.such", "{}"], &["audit", "show"]] {
            let ran = program.run(arguments);
            assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{arguments:?}: {ran:?}");
        }
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let workspace = TempWorkspace::new();
    let program = Program::new(TOOLHOST, &workspace).bare();
    for (command, title, names) in [
        (&["man"][..], ".TH toolhost 1", "doctor"),
        (&["man", "deploy", "plan"], ".TH toolhost-deploy-plan 1", "deploy"),
        (&["man", "task", "claim"], ".TH toolhost-task-claim 1", "lease"),
    ] {
        let ran = program.run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(title) && ran.stdout.contains(names), "{command:?}: {}", &ran.stdout[..400]);
    }
    let ran = program.run(&["man", "task", "nothing"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("there is no command `toolhost task nothing`"), "{ran:?}");
}

#[test]
fn completions_exist_for_each_shell() {
    let workspace = TempWorkspace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = Program::new(TOOLHOST, &workspace).bare().run(&["completions", shell]);
        assert!(ran.code == Some(0) && ran.stdout.contains("toolhost"), "{shell}: {}", ran.stderr);
    }
}

#[test]
fn every_command_has_help() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare();
    let help = program.run(&["--help"]);
    assert!(
        help.code == Some(0)
            && help
                .stdout
                .contains("Exit codes: 0 ok, 1 the tool or task failed, 2 usage, 3 denied, 4 files stay back.")
    );
    for command in ["init", "demo", "mcp", "call", "tools", "profiles", "policy", "audit", "doctor", "completions"] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command} is not listed");
        let ran = program.run(&[command, "--help"]);
        assert!(ran.code == Some(0) && ran.stdout.contains("Usage: toolhost "), "{command}: {ran:?}");
    }
}

#[test]
fn the_tour_ends_well_and_leaves_nothing_when_asked() {
    let workspace = TempWorkspace::new();
    let folder = workspace.beside("tmp");
    std::fs::create_dir(&folder).unwrap();
    let program = program(&workspace).bare().variable("TMPDIR", &folder);
    let ran = program.run(&["demo", "--remove", "--json"]);
    let told = ran.json();
    assert_eq!((ran.code, &told["ok"], &told["audit"]["problems"]), (Some(0), &json!(true), &json!(0)), "{told}");
    assert!(told["steps"].as_array().unwrap().iter().all(|step| step["asWanted"] == true), "{told}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the tour's folder is still there");
}

#[test]
fn a_reader_that_leaves_ends_the_printing_quietly() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let line = format!("{} --root {} tools --json | head -c 10", TOOLHOST, workspace.root().display());
    let shell = Program::new("/bin/sh", &workspace).bare().run(&["-c", &line]);
    assert!(shell.stderr.is_empty() && shell.stdout.len() == 10, "{shell:?}");
    assert_eq!(program.run(&["tools"]).code, Some(0));
}

#[test]
fn a_state_folder_beside_the_workspace_may_be_named_from_inside_of_it() {
    let workspace = TempWorkspace::repository(&[("a.txt", "hello\n")]);
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (root, state) = (name(&workspace.root()), name(&workspace.state()));
    let run = |state: &str| {
        let program = Program::new(TOOLHOST, &workspace).bare();
        let arguments = ["--root", ".", "--state", state, "call", "file.read", r#"{"path":"a.txt"}"#];
        program.command(&arguments).current_dir(workspace.root()).output().unwrap()
    };
    let ran = run(&format!("../{state}"));
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), &b"hello\n"[..]), "{ran:?}");
    for inside in ["state".to_owned(), format!("../{root}/state"), format!("../{state}/../{root}/x")] {
        let ran = run(&inside);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains("would be inside the workspace"), "{inside}: {said}");
    }
}

/// An editor that checks a file by the schema says what the program says of it.
#[test]
fn the_schema_of_the_configuration_takes_what_the_program_takes() {
    let workspace = TempWorkspace::new();
    let schema = program(&workspace).run(&["schema", "config"]).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let whole = r#"
        sandbox = "landlock"
        toolchains = ["/opt/tools"]
        model = "mock"
        [approvals]
        unattended = "deny"
        expire_seconds = 60
        [commands]
        memory = "8G"
        processes = 100
        [deploy]
        ship_also = [".csv"]
        orphans = "ours"
        [models.mock]
        window = 1000
        price = { input = 1.0, cached_input = 0.1, cache_write = 1.25, output = 5.0 }
        [keys]
        mine = { file = "/home/me/key" }
        [[remotes]]
        name = "origin"
        url = "https://example.org/a.git"
        [profiles.mine]
        extends = "developer"
        limits = { calls_per_session = 10 }
        [[profiles.mine.rules]]
        tool = "bash"
        when = { command = "rm *" }
        decide = "deny"
        match = ["rm -r x"]
    "#;
    for (text, is_right) in [
        (whole, true),
        ("sandbx = \"full\"", false),
        ("sandbox = \"none\"", false),
        ("[commands]\nmemory = 8", false),
        ("[profiles.mine]\ntool = []", false),
        ("[[remotes]]\nname = \"origin\"", false),
    ] {
        let value: serde_json::Value = toml::from_str(text).unwrap();
        assert_eq!(jsonschema::is_valid(&schema, &value), is_right, "the schema, of {text}");
        std::fs::create_dir_all(workspace.state()).unwrap();
        let file = workspace.state().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let ran = program(&workspace).run(&["--config", file.to_str().unwrap(), "tools"]);
        assert_eq!(ran.code == Some(0), is_right, "the program, of {text}: {}", ran.stderr);
    }
}

/// Rules: 004.30.
#[test]
fn a_call_prints_bonsai_s_form_when_asked() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "hello\n");
    let program = program(&workspace);
    let ran = program.run(&["call", "bash", r#"{"command":"cat a.txt; exit 3"}"#, "--format", "tool-result"]).json();
    assert!(ran["output"].as_str().unwrap().contains("hello") && ran.get("error").is_none(), "{ran}");
    assert_eq!(ran["metadata"]["exitCode"], 3);
    let failed = program.run(&["call", "file.read", r#"{"path":"none.txt"}"#, "--format", "tool-result"]);
    let told = failed.json();
    assert_eq!((failed.code, &told["output"], &told["metadata"]["kind"]), (Some(1), &"".into(), &"not_found".into()));
    assert!(told["error"].as_str().unwrap().contains("none.txt"), "{told}");
}
