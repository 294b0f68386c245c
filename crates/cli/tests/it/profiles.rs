//! The built-in profiles, and who decides what they are.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace};

use crate::room::program;

fn profile(program: &Program, name: &str) -> Value {
    let ran = program.run(&["--json", "profiles", name]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()[0].clone()
}

fn tools(profile: &Value) -> Vec<String> {
    let mut names: Vec<String> =
        profile["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Rules: 004.3, 004.16, 004.18, 004.19, 004.20, 004.21, 004.23.
#[test]
fn the_built_in_profiles_are_bonsai_s_with_the_stated_tools() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let reading = [
        "approval.wait",
        "bash",
        "bash.kill",
        "bash.output",
        "comment.post",
        "file.list",
        "file.read",
        "file.search",
        "git.diff",
        "git.log",
        "git.show",
        "git.status",
        "memory.query",
        "session.result",
        "ticket.read",
        "tool.describe",
        "tool.list",
        "tool.search",
    ];
    let asking = ["review.content", "review.file", "human.ask"];
    let mut reviewing = [&reading[..], &asking, &["ticket.update_state"]].concat();
    reviewing.sort_unstable();
    for (name, expected) in [("researcher", reading.to_vec()), ("reviewer", reviewing)] {
        let profile = profile(&program, name);
        assert_eq!(tools(&profile), expected, "{name}");
        assert_eq!(profile["fence"], json!({ "workspace": "read", "network": [] }), "{name}");
    }
    let developer = profile(&program, "developer");
    let changing = [
        "file.write",
        "file.edit",
        "git.commit",
        "git.push",
        "git.fetch",
        "git.pull",
        "git.init",
        "git.branch",
        "git.switch",
        "git.restore",
        "git.stash",
        "ticket.update_state",
    ];
    let mut expected = [&reading[..], &asking, &changing].concat();
    expected.sort_unstable();
    assert_eq!(tools(&developer), expected);
    assert_eq!(developer["fence"], json!({ "workspace": "write", "network": [] }));
    for name in ["developer", "all"] {
        let push = program.run(&["--json", "policy", "explain", "git.push", "--profile", name]).json();
        assert_eq!((&push["hasTool"], &push["verdict"]["decide"]), (&json!(true), &json!("ask")), "{name}: {push}");
    }
    let planner = profile(&program, "planner");
    let has = |tool: &str| tools(&planner).iter().any(|name| name == tool);
    for tool in [
        "requirement.create",
        "feature.add",
        "task.create",
        "artifact.save",
        "check.feature_coverage",
        "memory.query",
        "review.file",
        "review.content",
        "human.ask",
        "approval.wait",
    ] {
        assert!(has(tool), "{tool}");
    }
    assert!(!has("bash") && !has("file.write") && !has("git.commit"), "{planner}");
    let all = tools(&profile(&program, "all"));
    assert_eq!(all.len(), toolhost_testkit::every_tool().len());
}

#[test]
fn an_operator_s_profile_is_read_from_the_configuration_only() {
    let workspace = TempWorkspace::new();
    let table = "[profiles.mine]\nextends = 'researcher'\ntools = ['file.write']\nfence = { workspace = 'write' }\n";
    workspace.write("config.toml", table);
    workspace.write(".config/toolhost/config.toml", table);
    let plain = program(&workspace);
    let said = plain.run(&["profiles", "mine"]);
    assert!(said.code == Some(2) && said.stderr.contains("there is no profile `mine`"), "{said:?}");
    workspace.write_beside("operator.toml", table);
    let configured = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    assert!(tools(&profile(&configured, "mine")).contains(&"file.write".to_owned()));
    let inside = program(&workspace).variable("TOOLHOST_CONFIG", workspace.path("config.toml")).run(&["profiles"]);
    assert!(inside.code == Some(1) && inside.stderr.contains("inside the workspace"), "{inside:?}");
}

#[test]
fn a_mistake_in_the_configuration_is_told_and_stops_the_host() {
    let workspace = TempWorkspace::new();
    for (text, why) in [
        ("[profiles.x]\ntools = ['file.raed']", "did you mean `file.read`"),
        ("[profiles.x]\nextends = 'y'\n[profiles.y]\nextends = 'x'", "leads in a circle"),
        (
            "[[profiles.x.rules]]\ntool = 'bash'\nwhen = { command = 'cargo *' }\ndecide = 'allow'\nmatch = ['ls']",
            "its own example",
        ),
        ("[[profiles.developer.rules]]\ntool = 'fiel_*'\ndecide = 'deny'", "there is no tool `fiel_*`"),
        (
            "[[profiles.developer.rules]]\ntool = 'file_*'\nwhen = { pth = 'x' }\ndecide = 'deny'",
            "`file_*` has no argument `pth`",
        ),
        ("profile = 1", "profile"),
        ("sandbox = 'none'", "sandbox"),
    ] {
        workspace.write_beside("operator.toml", text);
        let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
        let ran = program.run(&["call", "file.list"]);
        assert!(ran.code == Some(1) && ran.stderr.contains(why), "{text}: {ran:?}");
    }
}

#[test]
fn a_rule_names_its_tools_by_any_of_their_names_and_by_globs_over_them() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let write = ["call", "write_file", r#"{"path":"a.txt","content":"x"}"#, "--profile", "developer"];
    for name in
        ["file.write", "file_write", "write_file", "file.*", "file_*", "file_writ?", "write_*", "*", "{x,file_w*}"]
    {
        workspace.write_beside(
            "operator.toml",
            &format!("[[profiles.developer.rules]]\ntool = '{name}'\ndecide = 'deny'\n"),
        );
        let ran = program.run(&write);
        assert!(ran.code == Some(3) && !workspace.has("a.txt"), "{name}: {ran:?}");
    }
    workspace.write_beside("operator.toml", "");
    for taken in ["rules = [{ tool = 'file_*', decide = 'deny' }]", "without_tools = ['file_*']"] {
        workspace.write("toolhost.toml", taken);
        let ran = program.run(&write);
        assert!(ran.code == Some(3) && !workspace.has("a.txt"), "{taken}: {ran:?}");
    }
    workspace.write("toolhost.toml", "without_tools = ['fiel_*']");
    let ran = program.run(&write);
    assert!(ran.code == Some(1) && ran.stderr.contains("fiel_*"), "{ran:?}");
    workspace.remove("toolhost.toml");
    assert_eq!(program.run(&write).code, Some(0));
}

#[test]
fn a_project_can_take_away_and_never_give() {
    let workspace = TempWorkspace::new();
    workspace.write("toolhost.toml", "without_tools = ['bash']\n[fence]\nworkspace = 'read'\n");
    let program = program(&workspace);
    let developer = profile(&program, "developer");
    assert!(!tools(&developer).contains(&"bash".to_owned()));
    assert_eq!(developer["fence"]["workspace"], "read");
    let write = program.run(&["call", "file.write", r#"{"path":"a.txt","content":"x"}"#, "--profile", "developer"]);
    assert!(write.code == Some(1) && !workspace.has("a.txt"), "{write:?}");
    for loosening in
        ["[fence]\nworkspace = 'write'", "[[rules]]\ntool = 'git.push'\ndecide = 'allow'", "[profiles.developer]\n"]
    {
        workspace.write("toolhost.toml", loosening);
        let ran = program.run(&["call", "file.list"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("toolhost.toml"), "{loosening}: {ran:?}");
    }
    // A link out of the workspace is no policy, and is not passed over either.
    workspace.remove("toolhost.toml");
    workspace.write_beside("elsewhere.toml", "");
    workspace.link("../elsewhere.toml", "toolhost.toml");
    assert_eq!(program.run(&["call", "file.list"]).code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_writes_into_the_project_s_policy_changes_nothing_while_it_runs() {
    let workspace = TempWorkspace::new();
    workspace.write(
        "toolhost.toml",
        "without_tools = ['git.push']\n[[rules]]\ntool = 'file.write'\nwhen = { path = 'locked*' }\ndecide = 'deny'\n",
    );
    let mut host = McpProcess::open(&program(&workspace), &["--profile", "developer"], Era::Session).await;
    let locked = json!({ "path": "locked.txt", "content": "x" });
    assert_eq!(host.call("file_write", locked.clone()).await["structuredContent"]["error"]["kind"], "denied");
    // Whether or not it may: the answer of this host stays what it was.
    host.call("file_write", json!({ "path": "toolhost.toml", "content": "" })).await;
    host.call("bash", json!({ "command": "rm -f toolhost.toml; : > toolhost.toml" })).await;
    assert_eq!(host.call("file_write", locked).await["structuredContent"]["error"]["kind"], "denied");
    assert!(!workspace.has("locked.txt"));
}

/// A question with answers to choose from.
fn choices(question: &str) -> Value {
    json!({ "question": question, "choices": ["PostgreSQL", "SQLite"] })
}

/// Rules: 002.29.
#[tokio::test(flavor = "multi_thread")]
async fn every_agent_at_work_can_ask_a_person_and_is_told_the_answer() {
    for profile in ["developer", "reviewer", "builder", "planner"] {
        let workspace = TempWorkspace::new();
        workspace.write("plan.md", "# Plan\n");
        workspace.write_beside("operator.toml", "[approvals]\nhold_seconds = 0\n");
        let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
        let mut host = McpProcess::open(&program, &["--profile", profile], Era::Session).await;
        for (tool, arguments, answer, field, told) in [
            ("human_ask", json!({ "question": "Which port?" }), "--answer=8080", "answer", "8080"),
            // A number stands for a choice, and other words for themselves.
            ("human_ask", choices("Which?"), "--answer=2", "answer", "SQLite"),
            ("human_ask", choices("And if not?"), "--answer=Neither", "answer", "Neither"),
            ("human_ask", choices("Or a third?"), "--answer=3 of them", "answer", "3 of them"),
            ("review_file", json!({ "path": "plan.md" }), "--edit=# My plan", "content", "# My plan"),
            ("review_content", json!({ "title": "x", "content": "y" }), "--pass", "status", "pass"),
        ] {
            let asked = host.call(tool, arguments).await["structuredContent"].clone();
            let id = asked["data"]["approvalId"].as_str().map(str::to_owned).unwrap_or_default();
            assert!(id.starts_with("ask-"), "{profile} {tool}: {asked}");
            if asked["data"]["status"] == "pending_answer" && tool == "human_ask" && told != "8080" {
                let shown = program.run(&["review", "show", &id]).stdout;
                let list = "\nanswers to choose from, by their numbers:\n1 | PostgreSQL\n2 | SQLite\n";
                assert!(shown.contains(list), "{shown}");
                for slip in ["--answer=3", "--answer=0", "--answer=02"] {
                    let slipped = program.run(&["review", "decide", &id, slip]);
                    assert!(slipped.code == Some(1) && slipped.stderr.contains("they are 1 to 2"), "{slipped:?}");
                }
            }
            let ran = program.run(&["review", "decide", &id, answer]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(tool != "human_ask" || ran.stdout.contains(&format!("{id} is answered: {told}\n")), "{ran:?}");
            let waited = host.call("approval_wait", json!({ "approvalId": id, "timeoutMs": 50 })).await;
            let outcome = &waited["structuredContent"]["data"]["outcome"];
            assert_eq!(outcome["data"][field], told, "{profile} {tool}: {waited}");
        }
        // Who may not write is handed the person's text, and who may finds it saved.
        let saved = if profile == "developer" { "# My plan" } else { "# Plan\n" };
        assert_eq!(workspace.read("plan.md"), saved, "{profile}");
    }
}
