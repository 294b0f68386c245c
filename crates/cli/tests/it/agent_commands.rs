//! `toolhost run` and `toolhost session`, as a person types them, against servers that check every request.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use toolhost_testkit::{ModelFormat, ModelServer, Program, TempWorkspace, Turn, until};

use crate::room::program;

fn workspace() -> TempWorkspace {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "alpha\n");
    workspace
}

fn turns() -> Vec<Turn> {
    vec![
        Turn::text("I look.").and_call("file_read", &json!({ "path": "a.txt" })).and_call("file_list", &json!({})),
        Turn::call("file_write", &json!({ "path": "b.txt", "content": "beta ä€🦀\n" })).arguments_by(1),
        Turn::text("Wrote `b.txt`. 完成。").torn_by(1),
    ]
}

/// The program with a key for the server, as an operator would give it.
fn with_key(workspace: &TempWorkspace, spec: &str) -> Program {
    let config = format!("model = \"{spec}\"\n[models.\"{spec}\"]\nkey = \"MOCK_KEY\"\nwindow = 200000\n");
    workspace.write_beside("operator.toml", &config);
    program(workspace)
        .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
        .variable("MOCK_KEY", ModelServer::KEY)
}

fn events(stdout: &str) -> Vec<Value> {
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn last_session(program: &Program) -> Value {
    let listed: Value = serde_json::from_str(&program.run(&["session", "list", "--json"]).stdout).unwrap();
    listed[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_done_with_anthropic_and_with_a_local_server_alike() {
    for (format, provider) in [(ModelFormat::Anthropic, "anthropic"), (ModelFormat::OpenAi, "openai")] {
        let server = ModelServer::start(format, turns()).await;
        let workspace = workspace();
        let spec = format!("{provider}:mock@{}", server.url());
        let program = with_key(&workspace, &spec);
        let ran = tokio::task::spawn_blocking(move || program.run(&["run", "write b", "--json"])).await.unwrap();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let events = events(&ran.stdout);
        let ended = events.last().unwrap();
        assert_eq!((&ended["event"], &ended["result"]["status"]), (&json!("ended"), &json!("completed")), "{ran:?}");
        assert_eq!(ended["result"]["answer"]["assistantSummary"], "Wrote `b.txt`. 完成。");
        assert_eq!(workspace.read("b.txt"), "beta ä€🦀\n");
        let texts: String =
            events.iter().filter(|e| e["event"] == "text").map(|e| e["text"].as_str().unwrap()).collect();
        assert_eq!(texts, "I look.Wrote `b.txt`. 完成。", "it streams");
        assert_eq!(server.asked(), 3);
        let sent = server.requests()[1].body["messages"].to_string();
        let marks = ["file.read", "file.list"].map(|tool| format!("<untrusted source=\\\"{tool}\\\" id=\\\""));
        assert!(marks.iter().all(|mark| sent.contains(mark)), "results are data: {sent}");
        assert!(!format!("{ran:?}").contains(ModelServer::KEY), "the key is shown nowhere");
        // Dropping the server fails the test if any request was not as its format has it.
    }
}

/// A person may say something while calls of a turn have yet to run: their steps come after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_whole_turns_whatever_was_said_between_their_calls() {
    let workspace = workspace();
    let wait = "echo a >> log.txt; echo on > began.txt; while [ ! -e go.txt ]; do sleep 0.02; done";
    let story = json!({ "turns": [
        { "calls": [{ "tool": "bash", "arguments": { "command": wait } },
                    { "tool": "bash", "arguments": { "command": "echo b >> log.txt" } }] },
        { "text": "Done." },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let model = format!("script:{}", workspace.beside("story.json").display());
    let program = program(&workspace);
    let mut command = program.command(&["run", "count", "--model", &model]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the first call runs", || workspace.has("began.txt")).await;
    let kill = Program::new("/bin/kill", &workspace).bare().run(&["-TERM", &child.id().to_string()]);
    assert_eq!(kill.code, Some(0), "{kill:?}");
    workspace.write("go.txt", "");
    child.wait().unwrap();
    let id = last_session(&program)["id"].as_str().unwrap().to_owned();
    assert_eq!(program.run(&["session", "resume", &id, "hello"]).code, Some(0));
    assert_eq!(workspace.read("log.txt"), "a\nb\n");
    for at in ["0", "1"] {
        let fork = program.run(&["session", "fork", &id, "--at", at]).stdout.trim().to_owned();
        let steps = program.run(&["session", "show", &fork, "--json"]).json()["steps"].clone();
        let names: Vec<&str> = steps.as_array().unwrap().iter().map(|row| row["step"].as_str().unwrap()).collect();
        match at {
            "0" => assert_eq!(names, ["open"]),
            _ => assert_eq!(names, ["open", "turn_0", "call_0_0", "call_0_1"]),
        }
        if at == "1" {
            assert_eq!(program.run(&["session", "resume", &fork]).code, Some(0));
            assert_eq!(workspace.read("log.txt"), "a\nb\n", "nothing of the parent's runs again");
        }
    }
    let before = last_session(&program);
    let silent = program.run(&["session", "resume", &id, " "]);
    assert!(silent.code == Some(2) && silent.stderr.contains("says nothing"), "{silent:?}");
    assert_eq!(last_session(&program), before, "it stands where it stood");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_killed_goes_on_with_the_same_server() {
    let server = ModelServer::stateless(
        ModelFormat::Anthropic,
        vec![
            Turn::call("bash", &json!({ "command": "echo once >> ran.txt" })),
            Turn::call("bash", &json!({ "command": "echo on > began.txt; sleep 300" })),
            Turn::text("Done."),
        ],
    )
    .await;
    let workspace = workspace();
    let program = with_key(&workspace, &format!("anthropic:mock@{}", server.url()));
    let mut command = tokio::process::Command::from(program.command(&["run", "work"]));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the second command runs", || workspace.has("began.txt")).await;
    child.kill().await.unwrap();
    let row = last_session(&program);
    assert_eq!((&row["state"], &row["running"]), (&json!("active"), &json!(false)), "{row}");
    let id = row["id"].as_str().unwrap().to_owned();
    let resumed = id.clone();
    let program = tokio::task::spawn_blocking(move || {
        let ran = program.run(&["session", "resume", &resumed]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        program
    });
    let program = program.await.unwrap();
    assert_eq!(workspace.read("ran.txt"), "once\n");
    let shown = program.run(&["session", "show", &id, "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let step = shown["steps"].as_array().unwrap().iter().find(|row| row["step"] == "call_1_0").unwrap();
    assert!(step["body"]["content"].as_str().unwrap().starts_with("It is unknown whether this call ran"), "{step}");
    let told = server.requests().last().unwrap().body.to_string();
    assert!(told.contains("It is unknown whether this call ran"), "the model is told so");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_pauses_and_the_session_goes_on_later() {
    let workspace = workspace();
    let story = json!({ "turns": [
        { "calls": [{ "tool": "bash", "arguments": { "command": "echo on > began.txt; sleep 600; echo one >> ran.txt" } }] },
        { "calls": [{ "tool": "bash", "arguments": { "command": "echo two >> ran.txt" } }] },
        { "text": "Done." },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let program = program(&workspace);
    let model = format!("script:{}", workspace.beside("story.json").display());
    let mut command = tokio::process::Command::from(program.command(&["run", "count", "--model", &model]));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("the command runs", || workspace.has("began.txt")).await;
    let pid = child.id().unwrap().to_string();
    let kill = Program::new("/bin/kill", &workspace).bare().run(&["-INT", &pid]);
    assert_eq!(kill.code, Some(0), "{kill:?}");
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = String::new();
    while let Some(line) = said.next_line().await.unwrap() {
        lines.push_str(&line);
        lines.push('\n');
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(1), "{lines}");
    assert!(lines.contains("paused") && lines.contains("toolhost session resume as_"), "{lines}");
    assert!(!workspace.has("ran.txt"), "the call under way was ended, and no other began");
    let row = last_session(&program);
    assert_eq!(row["state"], "paused");
    let ran = program.run(&["session", "resume", row["id"].as_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(workspace.read("ran.txt"), "two\n");
}

#[test]
fn sessions_are_listed_forked_replayed_and_answered() {
    let workspace = workspace();
    let read = json!({ "tool": "file_read", "arguments": { "path": "a.txt" } });
    let story = json!({ "turns": [
        { "calls": [read] }, { "text": "It says alpha." }, { "expect": { "user": "more?" }, "text": "No more." },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let program = program(&workspace);
    let model = format!("script:{}", workspace.beside("story.json").display());
    let ran = program.run(&["run", "read a", "--model", &model]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("It says alpha."), "{ran:?}");
    let id = last_session(&program)["id"].as_str().unwrap().to_owned();
    let again = program.run(&["session", "resume", &id]);
    assert!(again.code == Some(2) && again.stderr.contains("say what comes next"), "{again:?}");
    let more = program.run(&["session", "resume", &id, "more?"]);
    assert!(more.code == Some(0) && more.stdout.contains("No more."), "{more:?}");
    let replayed = program.run(&["session", "replay", &id]);
    assert!(replayed.stdout.contains("It says alpha.") && replayed.stderr.contains("file.read"), "{replayed:?}");
    let forked = program.run(&["session", "fork", &id, "--at", "1"]);
    let fork = forked.stdout.trim().to_owned();
    let resumed = program.run(&["session", "resume", &fork]);
    assert!(resumed.code == Some(0) && resumed.stdout.contains("It says alpha."), "{resumed:?}");
    let cancelled = program.run(&["session", "cancel", &fork]);
    assert!(cancelled.code == Some(1) && cancelled.stderr.contains("has ended"), "{cancelled:?}");
    let wrong = program.run(&["session", "show", "as_none"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("as_none"), "{wrong:?}");
}

#[test]
fn what_is_typed_wrong_is_said_with_the_next_step() {
    let workspace = workspace();
    let program = program(&workspace);
    let cases: [(&[&str], &str); 6] = [
        (&["run", "x"], "no model is chosen"),
        (&["run", "x", "--model", "claude-sonnet"], "anthropic:"),
        (&["run", "x", "--model", "anthropic:claude-sonnet-4-5"], "ANTHROPIC_API_KEY"),
        (&["run", "x", "--model", "script:/no/such.json"], "/no/such.json"),
        (&["run", " ", "--model", "script:/no/such.json"], "say what to do"),
        (&["run", "x", "--target", "thing:y", "--model", "script:/no/such.json"], "is not a target"),
    ];
    for (arguments, said) in cases {
        let ran = program.run(arguments);
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_on_a_cassette_plays_again_without_a_server() {
    let server = ModelServer::start(ModelFormat::OpenAi, turns()).await;
    let workspace = workspace();
    let program = with_key(&workspace, &format!("openai:mock@{}", server.url()));
    let tape = workspace.beside("tape.jsonl").display().to_string();
    let (recording, playing) = (format!("record:{tape}:openai:mock@{}", server.url()), format!("replay:{tape}"));
    let ran = tokio::task::spawn_blocking(move || {
        let recorded = program.run(&["run", "write b", "--model", &recording]);
        assert_eq!(recorded.code, Some(0), "{recorded:?}");
        program
    });
    let program = ran.await.unwrap();
    drop(server);
    assert!(!std::fs::read_to_string(&tape).unwrap().contains(ModelServer::KEY));
    workspace.remove("b.txt");
    let played = program.run(&["run", "write b", "--model", &playing]);
    assert_eq!(played.code, Some(0), "{played:?}");
    assert_eq!(workspace.read("b.txt"), "beta ä€🦀\n");
    let other = program.run(&["run", "write c", "--model", &playing]);
    assert!(other.code == Some(1) && !workspace.has("c.txt"), "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_a_turn_that_is_under_way_does_not_run_its_calls() {
    let workspace = workspace();
    let story = json!({ "turns": [
        { "calls": [{ "tool": "bash", "arguments": { "command": "echo on > began.txt; while [ ! -e go.txt ]; do sleep 0.02; done" } },
                    { "tool": "bash", "arguments": { "command": "echo ran >> ran.txt" } }] },
        { "text": "Done." },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let program = program(&workspace);
    let model = format!("script:{}", workspace.beside("story.json").display());
    let mut command = tokio::process::Command::from(program.command(&["run", "count", "--model", &model]));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the command runs", || workspace.has("began.txt")).await;
    let id = last_session(&program)["id"].as_str().unwrap().to_owned();
    let fork = program.run(&["session", "fork", &id]).stdout.trim().to_owned();
    workspace.write("go.txt", "");
    assert!(child.wait().await.unwrap().success());
    let shown: Value = serde_json::from_str(&program.run(&["session", "show", &fork, "--json"]).stdout).unwrap();
    let steps: Vec<&str> = shown["steps"].as_array().unwrap().iter().map(|row| row["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["open"], "the turn was not whole");
    assert_eq!(workspace.read("ran.txt"), "ran\n");
}

#[test]
fn a_session_is_its_user_s_and_a_viewer_asks_no_model() {
    let workspace = workspace();
    workspace.write_beside("story.json", &json!({ "turns": [{ "text": "Hello." }] }).to_string());
    let program = program(&workspace);
    let model = format!("script:{}", workspace.beside("story.json").display());
    for (name, role) in [("vera", "viewer"), ("ed", "editor")] {
        assert_eq!(program.run(&["member", "add", name, role]).code, Some(0));
    }
    let viewer = program.run(&["run", "x", "--model", &model, "--user", "vera"]);
    assert_eq!(viewer.code, Some(3), "{viewer:?}");
    let limited = program.run(&["run", "x", "--model", &model, "--max-iterations", "0"]);
    assert_eq!(limited.code, Some(1), "{limited:?}");
    let id = last_session(&program)["id"].as_str().unwrap().to_owned();
    for command in ["pause", "cancel", "resume"] {
        let other = program.run(&["session", command, &id, "--user", "ed"]);
        assert_eq!(other.code, Some(3), "{command}: {other:?}");
    }
    // What has stopped cannot be paused, and why it stopped is still known afterwards.
    workspace.write_beside("empty.json", &json!({ "turns": [] }).to_string());
    let failing = format!("script:{}", workspace.beside("empty.json").display());
    assert_eq!(program.run(&["run", "y", "--model", &failing]).code, Some(1));
    let failed = last_session(&program)["id"].as_str().unwrap().to_owned();
    for (id, state, said) in [(&id, "limited", "was stopped by a limit"), (&failed, "failed", "has failed")] {
        let paused = program.run(&["session", "pause", id]);
        assert!(paused.code == Some(1) && paused.stderr.contains(said), "{paused:?}");
        assert!(paused.stderr.contains(&format!("`toolhost session resume {id}`")), "{paused:?}");
        assert_eq!(program.run(&["--json", "session", "show", id]).json()["session"]["state"], state);
        let steps = program.run(&["--json", "session", "show", id]).json()["steps"].clone();
        let end = steps.as_array().unwrap().last().unwrap().clone();
        let why = end["body"]["message"].as_str().unwrap();
        let shown = program.run(&["session", "show", id]);
        assert!(end["step"].as_str().unwrap().starts_with("end_") && shown.stdout.contains(why), "{shown:?}: {end}");
        let replayed = program.run(&["session", "replay", id]);
        assert!(format!("{replayed:?}").contains(why), "{replayed:?}");
    }
    // Two messages before a turn that never came.
    for message in ["one", "two"] {
        let ran = program.run(&["session", "resume", &id, message, "--max-iterations", "0"]);
        assert!(ran.stderr.contains("AI_TOOL_LOOP_LIMIT_EXCEEDED"), "{ran:?}");
    }
    let done = program.run(&["session", "resume", &id]);
    assert!(done.code == Some(0) && done.stdout.contains("Hello."), "{done:?}");
}

#[test]
fn a_session_that_goes_on_shows_all_that_was_said_before() {
    let workspace = workspace();
    let story = json!({ "turns": [
        { "text": "First I look.", "calls": [{ "tool": "file_read", "arguments": { "path": "a.txt" } }] },
        { "text": "It has one line." },
    ] });
    workspace.write_beside("story.json", &story.to_string());
    let program = program(&workspace);
    let model = format!("script:{}", workspace.beside("story.json").display());
    assert_eq!(program.run(&["run", "look", "--model", &model]).code, Some(0));
    let id = last_session(&program)["id"].as_str().unwrap().to_owned();
    let fork = program.run(&["session", "fork", &id]).stdout.trim().to_owned();
    let ran = program.run(&["session", "resume", &fork]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "First I look.\nIt has one line.\n"), "{ran:?}");
    assert!(ran.stderr.contains("-> Read a file: a.txt\n"), "a call is told with what it did: {}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_says_of_a_model_is_in_its_requests() {
    let server = ModelServer::start(ModelFormat::OpenAi, vec![Turn::text("Fine.")]).await;
    let workspace = workspace();
    let spec = format!("openai:mock@{}", server.url());
    let table =
        "key = \"MOCK_KEY\"\noutput_tokens = 1234\nheaders = { x-gate = \"GATE_KEY\" }\nextra = { temperature = 0.5 }";
    workspace.write_beside("operator.toml", &format!("model = \"{spec}\"\n[models.\"{spec}\"]\n{table}\n"));
    let program = program(&workspace)
        .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
        .variable("MOCK_KEY", ModelServer::KEY);
    let without = program.run(&["run", "say"]);
    assert!(without.code == Some(1) && without.stderr.contains("x-gate needs GATE_KEY"), "{without:?}");
    let program = program.variable("GATE_KEY", "gate-value-1");
    let ran = tokio::task::spawn_blocking(move || program.run(&["run", "say"])).await.unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = &server.requests()[0];
    assert_eq!((&asked.body["max_tokens"], &asked.body["temperature"]), (&json!(1234), &json!(0.5)));
    assert!(asked.headers.contains(&("x-gate".to_owned(), "gate-value-1".to_owned())));
    assert!(!format!("{ran:?}").contains("gate-value-1"), "it is a key as any other");
    let wrong = [
        ("price = { input = nan, cached_input = 0, cache_write = 0, output = 0 }", "a price is"),
        ("price = { input = -1.0, cached_input = 0, cache_write = 0, output = 0 }", "a price is"),
        ("output_tokens = 0", "a reply of 0 tokens"),
        ("output_tokens = 500000", "leaves nothing"),
        ("headers = { Host = \"MOCK_KEY\" }", "belongs to the connection"),
    ];
    for (line, said) in wrong {
        workspace.write_beside(
            "operator.toml",
            &format!("model = \"{spec}\"\n[models.\"{spec}\"]\nkey = \"MOCK_KEY\"\n{line}\n"),
        );
        let program = Program::new(crate::room::TOOLHOST, &workspace)
            .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
            .variable("MOCK_KEY", ModelServer::KEY);
        let ran = program.run(&["run", "say"]);
        assert!(ran.code != Some(0) && ran.stderr.contains(said), "{line}: {ran:?}");
    }
}
