//! `kill -9` of the host while it runs what a person has allowed: it ran once or not at all, and the audit says which.
//! And people who answer at the same time.
//!
//! `TOOLHOST_CRASH_ROUNDS` asks for more rounds, `TOOLHOST_SEED` for others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::{Era, McpProcess, Program, Ran, Seed, TempWorkspace, until};

/// How often the host is killed on this machine's own engine.
const ROUNDS: usize = 40;
/// Calls of one round.
const CALLS: usize = 3;
/// A kill comes within so many microseconds after the calls were allowed to run: some before they begin, some after.
const MOMENTS_US: u64 = 60_000;
const RACES: usize = 20;
const ASKING: &str = "[approvals]\nhold_seconds = 0\n[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n";

fn rounds() -> usize {
    std::env::var("TOOLHOST_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// A workspace whose commands need a person.
fn asking(engine: &Engine, workspace: &TempWorkspace) -> Program {
    workspace.write_beside("operator.toml", ASKING);
    engine.under(crate::room::program(workspace)).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
}

fn mark(round: usize, call: usize) -> Value {
    json!({ "command": format!("echo {round}.{call} >> ran.txt") })
}

/// How often each call has run.
fn ran(workspace: &TempWorkspace) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    if workspace.has("ran.txt") {
        for line in workspace.read("ran.txt").lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
    }
    counted
}

async fn ask(host: &mut McpProcess, arguments: Value) -> String {
    let outcome = host.call("bash", arguments).await["structuredContent"].clone();
    assert_eq!(outcome["data"]["status"], "pending_approval", "{outcome}");
    outcome["data"]["approvalId"].as_str().unwrap().to_owned()
}

/// How the approved call ended, as whoever waits for it is told.
async fn ended(host: &mut McpProcess, id: &str) -> Value {
    loop {
        let arguments = json!({ "approvalId": id, "timeoutMs": 1000 });
        let outcome = host.call("approval_wait", arguments).await["structuredContent"].clone();
        assert_eq!(outcome["ok"], true, "{outcome}");
        let data = outcome["data"].clone();
        if !matches!(data["status"].as_str().unwrap(), "pending" | "running") {
            return data;
        }
    }
}

/// The asks for which some call has started, by the audit.
fn started(program: &Program) -> Vec<String> {
    let export = program.run(&["audit", "export"]).stdout;
    let rows = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_asks = rows.filter(|row| row["event"] == "started");
    of_asks.map(|row| row["decision"]["ask"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_has_run_what_was_allowed_once_or_not_at_all_and_the_audit_says_which() {
    let mut seed = Seed::of_this_run();
    let story = format!("TOOLHOST_SEED={}", seed.value());
    let workspace = TempWorkspace::new();
    let program = asking(&Engine { url: None }, &workspace);
    let (mut asks, mut told) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    for round in 0..rounds() {
        let mut host = McpProcess::open(&program, &[], Era::Session).await;
        let mut ids = Vec::new();
        for call in 0..CALLS {
            ids.push(ask(&mut host, mark(round, call)).await);
        }
        let all = ids.iter().map(String::as_str);
        let decided = program.run(&["review", "decide", "--allow"].into_iter().chain(all).collect::<Vec<&str>>());
        assert_eq!(decided.code, Some(0), "{story}: {decided:?}");
        for (call, id) in ids.iter().enumerate() {
            // Who waits for it and who repeats it race for the one answer.
            host.begin_call("approval_wait", json!({ "approvalId": id })).await;
            if seed.below(2) == 0 {
                host.begin_call("bash", mark(round, call)).await;
            }
        }
        tokio::time::sleep(Duration::from_micros(seed.below(MOMENTS_US))).await;
        host.kill().await;
        let mut next = McpProcess::open(&program, &[], Era::Session).await;
        for (call, id) in ids.into_iter().enumerate() {
            let data = ended(&mut next, &id).await;
            let count = ran(&workspace).get(&format!("{round}.{call}")).copied().unwrap_or(0);
            match data["status"].as_str().unwrap() {
                // It ended before the kill, or runs now that somebody waits again.
                "finished" => {
                    let exit = &data["outcome"]["data"]["exitCode"];
                    assert_eq!((exit, count), (&json!(0), 1), "{story}: round {round}, {id}: {data}");
                }
                "unknown" => assert!(count <= 1, "{story}: round {round}: {id} ran {count} times"),
                other => unreachable!("{story}: round {round}: {id} is {other}: {data}"),
            }
            *told.entry(data["status"].as_str().unwrap().to_owned()).or_default() += 1;
            assert_eq!(ended(&mut next, &id).await, data, "{story}: {id}: whoever waits again is told the same");
            asks.insert(id, format!("{round}.{call}"));
        }
        assert!(next.close().await.success());
    }
    check(&workspace, &program, &asks, &story);
    assert!(told.contains_key("finished") && told.contains_key("unknown"), "{story}: the kills missed: {told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lives_on_says_that_another_one_has_died() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = asking(&engine, &workspace);
        let mut dies = McpProcess::open(&program, &[], Era::Session).await;
        let mut lives = McpProcess::open(&program, &[], Era::Session).await;
        let id = ask(&mut dies, json!({ "command": "echo up > up.txt; sleep 1000", "timeoutMs": 600_000 })).await;
        assert_eq!(program.run(&["review", "decide", &id, "--allow"]).code, Some(0));
        dies.begin_call("approval_wait", json!({ "approvalId": id })).await;
        until("the command runs", || workspace.has("up.txt")).await;
        let arguments = json!({ "approvalId": id, "timeoutMs": 0 });
        let data = lives.call("approval_wait", arguments).await["structuredContent"]["data"].clone();
        assert_eq!(data["status"], "running", "{engine}: {data}");
        dies.kill().await;
        assert_eq!(ended(&mut lives, &id).await["status"], "unknown", "{engine}");
        assert_eq!(started(&program), [id], "{engine}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_session_was_allowed_another_runs_only_when_that_one_has_died() {
    for engine in engines() {
        let workspace = TempWorkspace::new();
        let program = asking(&engine, &workspace);
        let mut asks = McpProcess::open(&program, &[], Era::Session).await;
        let mut other = McpProcess::open(&program, &[], Era::Session).await;
        let (first, second) = (ask(&mut asks, mark(0, 0)).await, ask(&mut asks, mark(0, 1)).await);
        assert_eq!(program.run(&["review", "decide", &first, &second, "--allow"]).code, Some(0));
        let wait = json!({ "approvalId": first, "timeoutMs": 0 });
        let refused = other.call("approval_wait", wait).await["structuredContent"].clone();
        assert_eq!(refused["error"]["kind"], "conflict", "{engine}: {refused}");
        assert!(!workspace.has("ran.txt"), "{engine}");
        assert_eq!(ended(&mut asks, &first).await["status"], "finished", "{engine}");
        // How it ended anybody of the same profile may know.
        assert_eq!(ended(&mut other, &first).await["status"], "finished", "{engine}");
        asks.kill().await;
        let wait = json!({ "approvalId": second, "timeoutMs": 0 });
        let mut outcome = Value::Null;
        // A server lets go of a dead host's lock when it reads the end of its connection.
        tokio::time::timeout(Duration::from_secs(60), async {
            while outcome["ok"] != true {
                outcome = other.call("approval_wait", wait.clone()).await["structuredContent"].clone();
                assert!(outcome["ok"] == true || outcome["error"]["kind"] == "conflict", "{engine}: {outcome}");
            }
        })
        .await
        .unwrap();
        assert_eq!(ended(&mut other, &second).await["status"], "finished", "{engine}");
        assert_eq!(ran(&workspace).values().copied().collect::<Vec<_>>(), [1, 1], "{engine}");
    }
}

/// No line without a row, no ask with two.
fn check(workspace: &TempWorkspace, program: &Program, asks: &BTreeMap<String, String>, story: &str) {
    let verify = program.run(&["--json", "audit", "verify"]);
    assert_eq!((verify.code, &verify.json()["ok"]), (Some(0), &json!(true)), "{story}: {verify:?}");
    let started = started(program);
    let once: BTreeSet<&String> = started.iter().collect();
    assert_eq!(started.len(), once.len(), "{story}: an answer was used twice: {started:?}");
    let of_lines: BTreeMap<&String, &String> = asks.iter().map(|(id, line)| (line, id)).collect();
    for (line, count) in ran(workspace) {
        assert_eq!(count, 1, "{story}: {line} ran {count} times");
        assert!(once.contains(of_lines[&line]), "{story}: {line} ran, but no row says so");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_people_who_answer_at_once_one_is_heard_and_the_other_is_told() {
    let workspace = TempWorkspace::new();
    let program = asking(&Engine { url: None }, &workspace);
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    let mut expected = BTreeMap::new();
    for round in 0..RACES {
        let id = ask(&mut host, mark(round, 0)).await;
        let answers = ["--allow", "--deny"];
        let said: Vec<Ran> = std::thread::scope(|scope| {
            let racers = answers.map(|answer| {
                let (program, id) = (&program, &id);
                scope.spawn(move || program.run(&["review", "decide", id, answer]))
            });
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let won: Vec<usize> = (0..2).filter(|n| said[*n].code == Some(0)).collect();
        assert_eq!(won.len(), 1, "round {round}: {said:?}");
        let loser = &said[1 - won[0]];
        assert!(loser.code == Some(1) && loser.stderr.contains("was answered before by local"), "{round}: {loser:?}");
        let data = ended(&mut host, &id).await;
        let allowed = answers[won[0]] == "--allow";
        assert_eq!(data["outcome"]["ok"], allowed, "round {round}: {data}");
        if allowed {
            expected.insert(format!("{round}.0"), 1);
        }
    }
    assert_eq!(ran(&workspace), expected);
}
