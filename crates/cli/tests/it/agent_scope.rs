//! What an agent is told of its scope, and what a persona of the project brings along.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, ModelFormat, ModelServer, Program, TempWorkspace, Turn};

use crate::room::program;

/// A repository on the branch `topic` with a granted remote, a ticket, and three personas.
fn scene(model: &str) -> (TempWorkspace, Program) {
    let workspace = TempWorkspace::repository(&[("a.txt", "1\n")]);
    workspace.git(&["switch", "-q", "-c", "topic"]);
    let url = "https://git.example.org/team/a.git";
    workspace.git(&["remote", "add", "upstream", url]);
    let config = format!(
        "model = \"{model}\"\n[models.\"{model}\"]\nkey = \"MOCK_KEY\"\nwindow = 200000\n\
         [[remotes]]\nname = 'upstream'\nurl = '{url}'\n\
         [[remotes]]\nname = 'origin'\nurl = 'https://git.example.org/other.git'\n\
         [[remotes]]\nname = 'origin'\nurl = 'https://git.example.org/b.git'\nworkspace = '/nowhere'\n\
         [profiles.narrow]\nextends = 'researcher'\n"
    );
    workspace.write_beside("operator.toml", &config);
    let program = program(&workspace)
        .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
        .variable("MOCK_KEY", ModelServer::KEY);
    for (tool, arguments) in [
        ("ticket.create", json!({ "title": "Totals are wrong" })),
        ("persona.add", json!({ "name": "Rex", "role": "researcher", "personality": "Barks at \"risks\"." })),
        ("persona.add", json!({ "name": "Dev", "role": "developer" })),
        ("persona.add", json!({ "name": "Lost", "role": "no-such-profile" })),
    ] {
        let made = program.run(&["call", tool, &arguments.to_string()]);
        assert_eq!(made.code, Some(0), "{tool}: {made:?}");
    }
    (workspace, program)
}

/// The instructions and the tools of a session over MCP.
async fn opened(program: &Program, arguments: &[&str]) -> (String, Vec<String>) {
    let mut process = McpProcess::start(program, arguments, Era::Session);
    let answer = process.initialize().await;
    let listed = process.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    (answer["result"]["instructions"].as_str().unwrap().to_owned(), names)
}

/// Rules: 004.13.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_its_ticket_its_branch_and_its_remote() {
    let server = ModelServer::start(
        ModelFormat::Anthropic,
        vec![Turn::text(r#"{"responseType":"chat","assistantSummary":"Nothing to do."}"#), Turn::text("Done.")],
    )
    .await;
    let (_workspace, program) = scene(&format!("anthropic:mock@{}", server.url()));
    let (told, _) = opened(&program, &["--ticket", "TKT-001"]).await;
    for line in ["\nTicket: \"TKT-001\"", "\nBranch, when this session began: \"topic\"", "\nRemote: \"upstream\""] {
        assert!(told.contains(line), "{line} is not in {told}");
    }
    let (told, _) = opened(&program, &["--profile", "planner"]).await;
    assert!(!told.contains("topic") && !told.contains("upstream"), "what no tool of its is for: {told}");
    let target = ["run", "go", "--target", "agent:new", "--mode", "create", "--ticket", "TKT-001"];
    let builder = program.clone();
    let ran = tokio::task::spawn_blocking(move || {
        assert_eq!(builder.run(&["package", "new", "x"]).code, Some(0));
        builder.run(&target)
    });
    let ran = ran.await.unwrap();
    let sent = server.requests()[0].body.to_string();
    assert!(sent.contains("ticket_id") && sent.contains("TKT-001"), "{ran:?}: {sent}");
    for door in [&["mcp", "--ticket", "TKT-404"][..], &["run", "go", "--ticket", "TKT-404"]] {
        let refused = program.run(door);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("--ticket") && refused.stderr.contains("TKT-404"),
            "{refused:?}"
        );
    }
    let run = ["run", "go", "--ticket", "TKT-001"];
    let ran = tokio::task::spawn_blocking(move || program.run(&run)).await.unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sent = server.requests().last().unwrap().body.to_string();
    for line in ["Branch: \\\"topic\\\"", "Remote: \\\"upstream\\\"", "id: TKT-001"] {
        assert!(sent.contains(line), "{line} is not in {sent}");
    }
}

/// Rules: 004.14.
#[tokio::test(flavor = "multi_thread")]
async fn a_persona_s_role_is_its_profile_or_a_narrower_one() {
    let (_workspace, program) = scene("script:none");
    let (told, tools) = opened(&program, &["--persona", "Rex"]).await;
    assert!(told.contains("the profile `researcher`") && told.contains("\"Barks at \\\"risks\\\".\""), "{told}");
    assert!(!tools.contains(&"file_write".to_owned()) && tools.contains(&"file_read".to_owned()), "{tools:?}");
    let (told, tools) = opened(&program, &["--persona", "Dev"]).await;
    assert!(told.contains("the profile `developer`") && tools.contains(&"file_write".to_owned()), "{told}");
    let (told, _) = opened(&program, &["--persona", "Dev", "--profile", "narrow"]).await;
    assert!(told.contains("the profile `narrow`"), "{told}");
    let (told, _) = opened(&program, &["--persona", "Somebody", "--profile", "developer"]).await;
    assert!(told.contains("the profile `developer`") && !told.contains("Somebody"), "{told}");
    let endless = "x".repeat(101);
    for (arguments, says) in [
        (&["--persona", "Rex", "--profile", "developer"][..], "allows more than `researcher`"),
        (&["--persona", "Rex", "--profile", "all"], "allows more than `researcher`"),
        (&["--persona", "rex"], "did you mean `Rex`?"),
        (&["--persona", "Rex ", "--profile", "all"], "did you mean `Rex`?"),
        (&["--persona", "pers-001"], "did you mean `Rex`?"),
        (&["--persona", "Local"], "is a member of this project"),
        (&["--persona", "The Host"], "an agent cannot be called"),
        (&["--persona", "a\u{202e}b"], "all of which can be seen"),
        (&["--persona", endless.as_str()], "at most 100 characters"),
        (&["--persona", "Lost"], "`no-such-profile`, which is not a profile"),
    ] {
        for command in [&["mcp"][..], &["run", "go", "--model", "script:none"]] {
            let refused = program.run(&[command, arguments].concat());
            let known = refused.stderr.contains(says) || refused.stderr.contains("cannot be opened");
            assert!(refused.code != Some(0) && known, "{says}: {refused:?}");
        }
        let refused = program.run(&[&["mcp"][..], arguments].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{says}: {refused:?}");
    }
}

/// Rules: 004.14.
#[tokio::test(flavor = "multi_thread")]
async fn a_persona_s_manner_and_name_are_those_of_its_session() {
    let turns = vec![
        Turn::call("file_write", &json!({ "path": "b.txt", "content": "2\n" })),
        Turn::call("git_commit", &json!({ "message": "b" })),
        Turn::text("Done."),
    ];
    let server = ModelServer::start(ModelFormat::Anthropic, turns).await;
    let (workspace, program) = scene(&format!("anthropic:mock@{}", server.url()));
    let edited = program.run(&["call", "persona.update", r#"{"id":"PERS-002","personality":"Says little."}"#]);
    assert_eq!(edited.code, Some(0), "{edited:?}");
    let refused = {
        let program = program.clone();
        let run = ["run", "go", "--persona", "Rex", "--profile", "developer"];
        tokio::task::spawn_blocking(move || program.run(&run)).await.unwrap()
    };
    assert!(refused.code == Some(2) && refused.stderr.contains("allows more than"), "{refused:?}");
    let other = program.clone();
    let ran = tokio::task::spawn_blocking(move || program.run(&["run", "go", "--persona", "Dev"])).await.unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let body: &Value = &server.requests()[0].body;
    assert!(body.to_string().contains("Says little."), "{body}");
    // A role that is narrower now holds for sessions that were begun under the wider one, too.
    let narrowed = other.run(&["call", "persona.update", r#"{"id":"PERS-002","role":"researcher"}"#]);
    assert_eq!(narrowed.code, Some(0), "{narrowed:?}");
    let sessions = other.run(&["session", "list", "--json"]).json();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    let resumed = tokio::task::spawn_blocking(move || other.run(&["session", "resume", &id, "more"])).await.unwrap();
    assert!(resumed.code == Some(2) && resumed.stderr.contains("allows more than `researcher`"), "{resumed:?}");
    assert_eq!(workspace.git(&["log", "-1", "--format=%an"]), "Dev\n");
}
