//! Commands in the background: their output while they run, their end, and whose they are.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, Session};
use toolhost_host::{Hooks, Limits};
use toolhost_testkit::{Era, McpProcess, TempWorkspace, processes_named, until};

use crate::room::{house, program};

async fn open(workspace: &TempWorkspace) -> McpProcess {
    McpProcess::open(&program(workspace), &["--profile", "developer"], Era::Session).await
}

fn marker(workspace: &TempWorkspace) -> String {
    format!("behind-{}", workspace.root().parent().unwrap().file_name().unwrap().to_string_lossy())
}

/// Starts a command in the background; its handle.
async fn begin(host: &mut McpProcess, command: &str) -> String {
    let result = host.call("bash", json!({ "command": command, "background": true })).await;
    let data = &result["structuredContent"]["data"];
    assert_eq!(data["exitCode"], Value::Null, "{result}");
    let handle = data["handle"].as_str().expect("a handle").to_owned();
    assert!(result["content"][0]["text"].as_str().unwrap().contains(&handle), "{result}");
    handle
}

async fn read(host: &mut McpProcess, handle: &str) -> Value {
    let result = host.call("bash_output", json!({ "handle": handle, "waitMs": 60_000 })).await;
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["data"].clone()
}

/// Reads until it has ended; all that it printed, and the last answer.
async fn read_all(host: &mut McpProcess, handle: &str) -> (String, Value) {
    let mut output = String::new();
    loop {
        let data = read(host, handle).await;
        output.push_str(data["output"].as_str().unwrap());
        if data["running"] == false && data["more"] == false {
            return (output, data);
        }
    }
}

fn rows(workspace: &TempWorkspace) -> Vec<Value> {
    let export = program(workspace).run(&["audit", "export"]).stdout;
    export.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_is_read_while_it_runs_and_after_its_end() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    // It goes on when the test says so.
    let handle = begin(&mut host, "echo one; until [ -e go ]; do sleep 0.05; done; echo two >&2; exit 3").await;
    let data = read(&mut host, &handle).await;
    assert_eq!((&data["output"], &data["running"]), (&json!("one\n"), &json!(true)), "{data}");
    // Other calls are answered meanwhile, commands too.
    let result = host.call("bash", json!({ "command": "touch go; echo beside" })).await;
    assert_eq!(result["structuredContent"]["data"]["stdout"], "beside\n", "{result}");
    let (output, data) = read_all(&mut host, &handle).await;
    assert_eq!((output.as_str(), &data["exitCode"]), ("two\n", &json!(3)), "{data}");
    let again = host.call("bash_output", json!({ "handle": handle })).await;
    assert_eq!(again["structuredContent"]["error"]["kind"], "not_found", "{again}");
    assert!(host.close().await.success());
    let ended: Vec<Value> =
        rows(&workspace).into_iter().filter(|row| row["tool"] == "bash" && row["outcome"]["exitCode"] == 3).collect();
    assert_eq!(ended.len(), 1, "the audit has the end: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_is_ended_with_all_it_has_started() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let marker = marker(&workspace);
    let command = format!("(exec -a {marker} sleep 1000) & echo up; touch up.txt; exec -a {marker} sleep 1000");
    let handle = begin(&mut host, &command).await;
    until("both run", || workspace.has("up.txt") && processes_named(&marker) > 1).await;
    let result = host.call("KillShell", json!({ "shell_id": handle })).await;
    let data = &result["structuredContent"]["data"];
    assert_eq!((&data["running"], &data["output"]), (&json!(false), &json!("up\n")), "{result}");
    assert!(data["error"].is_string() && data["exitCode"].is_null(), "{result}");
    assert_eq!(processes_named(&marker), 0);
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_ends_with_its_session() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let marker = marker(&workspace);
    begin(&mut host, &format!("touch up.txt; exec -a {marker} sleep 1000")).await;
    until("it runs", || workspace.has("up.txt") && processes_named(&marker) > 0).await;
    assert!(host.close().await.success());
    assert_eq!(processes_named(&marker), 0);
    let rows = rows(&workspace);
    let of = |event: &str| rows.iter().filter(|row| row["event"] == event && row["tool"] == "bash").count();
    assert_eq!((of("started"), of("finished"), of("unknown")), (1, 1, 0), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_read_is_bounded_and_no_secret_is_shown_in_halves() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let (half, rest) = secret.split_at(20);
    let command = format!(
        "echo up; printf 'is {half}'; touch half; until [ -e go ]; do sleep 0.05; done; echo '{rest}'; until [ -e end ]; do sleep 0.05; done; yes | head -c 3000000"
    );
    let handle = begin(&mut host, &command).await;
    let data = read(&mut host, &handle).await;
    assert_eq!(data["output"], "up\n", "{data}");
    until("half of it is printed", || workspace.has("half")).await;
    let soon = host.call("bash_output", json!({ "handle": handle, "waitMs": 0 })).await;
    assert_eq!(soon["structuredContent"]["data"]["output"], "", "a line that goes on is not shown: {soon}");
    workspace.write("go", "");
    let data = read(&mut host, &handle).await;
    assert_eq!(data["output"], "is [redacted]\n", "{data}");
    workspace.write("end", "");
    let ended = || rows(&workspace).iter().any(|row| row["event"] == "finished" && row["tool"] == "bash");
    until("it has ended", ended).await;
    let (output, mut left_out) = (read(&mut host, &handle).await, 0);
    left_out += output["leftOut"].as_u64().unwrap();
    let first = output["output"].as_str().unwrap().len() as u64;
    assert_eq!(output["more"], true, "an answer has a limit: {first}");
    let (last, _) = read_all(&mut host, &handle).await;
    assert_eq!(first + last.len() as u64 + left_out, 3_000_000);
    // The first line that is kept may be the second half of one.
    assert_eq!(left_out, 3_000_000 - 1024 * 1024 + 2);
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_and_beyond_the_limit_no_command_goes_on() {
    let workspace = TempWorkspace::new();
    let once = program(&workspace).run(&["call", "bash", r#"{"command":"sleep 1000","background":true}"#]);
    assert!(once.code != Some(0) && once.stderr.contains("background"), "{once:?}");
    let mut host = open(&workspace).await;
    for _ in 0..16 {
        begin(&mut host, "sleep 1000").await;
    }
    let result = host.call("bash", json!({ "command": "sleep 1000", "background": true })).await;
    assert_eq!(result["structuredContent"]["error"]["kind"], "limit", "{result}");
    let result = host.call("bash_kill", json!({ "handle": "command-1" })).await;
    assert_eq!(result["isError"], false, "{result}");
    begin(&mut host, "sleep 1000").await;
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_has_to_allow_goes_on_in_the_background_after_their_yes() {
    let workspace = TempWorkspace::new();
    let asking = "[approvals]\nhold_seconds = 0\n[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n";
    workspace.write_beside("operator.toml", asking);
    let program = program(&workspace).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let mut host = McpProcess::open(&program, &["--profile", "developer"], Era::Session).await;
    // Nobody is asked about what would not run then.
    for arguments in [
        json!({ "command": "true", "timeoutMs": 3_600_000 }),
        json!({ "command": "true", "timeoutMs": 172_800_000, "background": true }),
        json!({ "command": "vim notes.txt" }),
    ] {
        let refused = host.call("bash", arguments).await;
        assert_eq!(refused["structuredContent"]["error"]["kind"], "validation", "{refused}");
    }
    let asked = host.call("bash", json!({ "command": "echo up; sleep 1000", "background": true })).await;
    let ask = asked["structuredContent"]["data"]["approvalId"].as_str().expect("an ask").to_owned();
    let shown = program.run(&["review", "show", &ask]).stdout;
    assert!(shown.contains("in the background"), "{shown}");
    assert_eq!(program.run(&["review", "decide", &ask, "--allow"]).code, Some(0));
    let waited = host.call("approval_wait", json!({ "approvalId": ask })).await;
    let handle = waited["structuredContent"]["data"]["outcome"]["data"]["handle"].as_str();
    let handle = handle.expect("it has begun").to_owned();
    assert_eq!(read(&mut host, &handle).await["output"], "up\n");
    assert!(host.close().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_in_the_background_take_no_place_of_other_calls_and_have_a_limit_together() {
    let limits = Limits { concurrent_calls: 1, background_commands_of_all: 2, ..Limits::default() };
    let house = house(TempWorkspace::new()).limits(limits).build().await;
    let hooks = Hooks { session: Some(Session::new(CancellationToken::new())), ..Hooks::default() };
    let begin = async || {
        let call = house.request("bash", json!({ "command": "sleep 1000", "background": true }));
        house.gate.call(call, hooks.clone()).await
    };
    for _ in 0..2 {
        let begun = begin().await;
        assert!(begun.ok && begun.data["handle"].is_string(), "{begun:?}");
        assert_eq!(house.data("bash", json!({ "command": "echo beside" })).await["stdout"], "beside\n");
    }
    let refused = begin().await;
    assert_eq!(refused.error.as_ref().map(|error| error.kind), Some(ErrorKind::Limit), "{refused:?}");
    hooks.session.as_ref().unwrap().end();
    // Both end, and make room.
    let session = Hooks { session: Some(Session::new(CancellationToken::new())), ..Hooks::default() };
    house.gate.settle().await;
    let call = house.request("bash", json!({ "command": "sleep 1000", "background": true }));
    assert!(house.gate.call(call, session.clone()).await.ok);
    session.session.unwrap().end();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_has_no_room_for_is_read_by_its_handle() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let result = host.call("bash", json!({ "command": "seq 30000; echo wrong >&2; exit 4" })).await;
    let data = &result["structuredContent"]["data"];
    assert_eq!((&data["truncated"], &data["exitCode"]), (&json!(true), &json!(4)), "{}", data["stderr"]);
    let handle = data["handle"].as_str().unwrap().to_owned();
    let says = format!("`bash_output` with the handle `{handle}` reads what was left out");
    assert!(data["stderr"].as_str().unwrap().contains(&says), "{}", data["stderr"]);
    let (output, last) = read_all(&mut host, &handle).await;
    assert_eq!((&last["exitCode"], &last["leftOut"]), (&json!(4), &json!(0)));
    let numbers = output.lines().filter(|line| *line != "wrong");
    assert!(numbers.map(str::to_owned).eq((1..=30_000).map(|n| n.to_string())), "all of it, in its order");
    assert!(output.contains("wrong\n"));
    // What was not cut has no handle, and what was read is forgotten.
    let short = host.call("bash", json!({ "command": "echo short" })).await;
    assert_eq!(short["structuredContent"]["data"]["handle"], Value::Null);
    let again = host.call("bash_output", json!({ "handle": handle })).await;
    assert_eq!(again["structuredContent"]["error"]["kind"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_for_output_keep_no_other_call_from_its_answer() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "one\n");
    let mut host = open(&workspace).await;
    let handle = begin(&mut host, "sleep 1000").await;
    let mut waiting = Vec::new();
    for _ in 0..40 {
        waiting.push(host.begin_call("bash_output", json!({ "handle": handle, "waitMs": 60_000 })).await);
    }
    for _ in 0..3 {
        let id = host.begin_call("file_read", json!({ "path": "a.txt" })).await;
        let first = host.next_message().await.unwrap();
        assert_eq!(first["id"], id, "it is answered before those that wait: {first}");
    }
    // The call that ends the command says how it ended, even if a call that waited has said so before.
    let killed = host.begin_call("bash_kill", json!({ "handle": handle })).await;
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < waiting.len() + 1 {
        let answer = host.next_message().await.unwrap();
        answers.insert(answer["id"].as_u64().unwrap(), answer);
    }
    assert_eq!(answers[&killed]["result"]["isError"], false, "{}", answers[&killed]);
    assert!(waiting.iter().all(|id| answers[id]["result"]["isError"] == false));
}

/// In the tier in which a command can write `.git`, only its end puts that back.
#[test]
fn no_command_of_a_session_is_under_way_when_the_program_has_ended() {
    let plants = "git config core.fsmonitor 'touch pwned; false'; for i in $(seq 300); do echo x > .git/hooks/h$i; done
        echo planted; while :; do sleep 1; done";
    let calls = json!([{ "tool": "bash", "arguments": { "command": plants, "background": true } }]);
    let reads = json!([{ "tool": "bash_output", "arguments": { "handle": "command-1", "waitMs": 60_000 } }]);
    let script = json!({ "turns": [{ "calls": calls }, { "calls": reads }, { "text": "done" }] });
    for sandbox in ["landlock", "full"] {
        let workspace = TempWorkspace::repository(&[("a.txt", "one\n")]);
        workspace.write_beside("model.json", &script.to_string());
        let model = format!("script:{}", workspace.beside("model.json").display());
        let config = workspace.read(".git/config");
        let ran = program(&workspace).run(&["run", "x", "--sandbox", sandbox, "--model", &model]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(workspace.read(".git/config"), config, "{sandbox}");
        assert!(!workspace.has(".git/hooks/h300"), "{sandbox}");
        let ended = |row: &&Value| row["event"] == "finished" && row["tool"] == "bash";
        let rows = rows(&workspace);
        let row = rows.iter().find(ended).expect("its end is recorded");
        assert_eq!(row["outcome"]["kind"], "cancelled", "{sandbox}: {row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_shown_where_one_part_of_the_output_ends_and_the_next_begins() {
    let workspace = TempWorkspace::new();
    let mut host = open(&workspace).await;
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    // With a name before it that stands on another line, and in a word that is longer than a part is.
    workspace.write("named.txt", "token:\nmW0QdpaJD6oCzfV1NIuk8Io5yaGKbXJD2aSJd7n2Khd9fsuU\n".repeat(6000));
    workspace.write("long.txt", format!("{{\"id\":1,\"token\":\"{secret}\"}},").repeat(5000));
    for (file, secret) in [("named.txt", "mW0QdpaJD6o"), ("long.txt", "a1B2c3D4e5"), ("long.txt", "N4o5P6q7R8")] {
        let result = host.call("bash", json!({ "command": format!("cat {file}") })).await;
        let handle = result["structuredContent"]["data"]["handle"].as_str().unwrap().to_owned();
        let (output, _) = read_all(&mut host, &handle).await;
        assert!(output.len() > 64 * 1024, "{file}");
        let at = output.find(secret);
        assert!(
            at.is_none(),
            "{file}: {:?} at {at:?} of {}",
            at.map(|at| &output[at.saturating_sub(80)..at + 30]),
            output.len()
        );
    }
}

/// Whoever has as many calls under way as they may can still end one that goes on in the background.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_is_no_call_that_is_under_way() {
    let workspace = TempWorkspace::new();
    let flags = ["--profile", "developer", "--calls-max", "2"];
    let mut host = McpProcess::open(&program(&workspace), &flags, Era::Session).await;
    let handles = [begin(&mut host, "sleep 1000").await, begin(&mut host, "sleep 1000").await];
    begin(&mut host, "sleep 1000").await;
    for handle in handles {
        let killed = host.call("bash_kill", json!({ "handle": handle })).await;
        assert_eq!(killed["isError"], false, "{killed}");
    }
}
