//! `kill -9` at any moment: no torn file, no file without a row, and the next start tells what is not known.
//!
//! `TOOLHOST_CRASH_ROUNDS` asks for more rounds, `TOOLHOST_SEED` for others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, Seed, TempWorkspace, processes_named, until};

use crate::room::program;

const ROUNDS: usize = 60;
/// Calls of one round, and files they are spread over.
const CALLS: u64 = 60;
const FILES: u64 = 12;

fn rounds() -> usize {
    std::env::var("TOOLHOST_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// What a call writes: its number is in each line, so that a mixture shows.
fn content(round: usize, call: u64) -> String {
    let line = format!("round {round} call {call}\n");
    line.repeat(1 + usize::try_from(call % 5).unwrap() * 400)
}

/// Rules: 002.12.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_leaves_whole_files_with_rows_and_says_what_it_does_not_know() {
    let mut seed = Seed::of_this_run();
    let story = format!("TOOLHOST_SEED={}", seed.value());
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mut sent: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut answered = 0;
    for round in 0..rounds() {
        let mut host = McpProcess::open(&program, &[], Era::Session).await;
        let mut ids = Vec::new();
        for call in 0..CALLS {
            let path = format!("f{}.txt", seed.below(FILES));
            let content = content(round, call);
            sent.entry(path.clone()).or_default().insert(content.clone());
            let (id, message) = host.message(
                "tools/call",
                json!({ "name": "file_write", "arguments": { "path": path, "content": content } }),
            );
            host.send(&message).await;
            ids.push((id, path));
        }
        // Some answers are read, and then a moment passes: it is the seed that says how many and how long.
        for _ in 0..seed.below(CALLS) {
            let message = host.next_message().await.unwrap();
            assert_eq!(message["result"]["isError"], false, "{story}: {message}");
            answered += 1;
        }
        tokio::time::sleep(Duration::from_micros(seed.below(3000))).await;
        host.kill().await;
        check_files(&workspace, &sent, &story);
    }
    assert!(answered > 0);
    check_audit(&workspace, &program, &story);
}

/// Each file is exactly one of the contents ever sent for it.
fn check_files(workspace: &TempWorkspace, sent: &BTreeMap<String, BTreeSet<String>>, story: &str) {
    for (path, bytes) in workspace.snapshot() {
        let text = String::from_utf8(bytes).unwrap();
        if path.starts_with(".toolhost-") {
            // A finished file that was killed just before it took the place of the former one. It is whole, and stays.
            assert!(sent.values().any(|contents| contents.contains(&text)), "{story}: {path} is torn");
            continue;
        }
        let known = sent.get(&path);
        assert!(known.is_some(), "{story}: {path} was left behind");
        assert!(known.unwrap().contains(&text), "{story}: {path} is torn: {} bytes", text.len());
    }
}

fn check_audit(workspace: &TempWorkspace, program: &Program, story: &str) {
    // The next start closes what is open.
    let verify = program.run(&["--json", "audit", "verify"]);
    assert_eq!((verify.code, &verify.json()["ok"]), (Some(0), &json!(true)), "{story}: {verify:?}");
    let export = program.run(&["audit", "export"]).stdout;
    let rows = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let rows: Vec<Value> = rows.filter(|row| row["line"].is_null()).collect();
    let mut ends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut started_paths = BTreeSet::new();
    for row in &rows {
        ends.entry(row["callId"].as_str().unwrap()).or_default().push(row["event"].as_str().unwrap());
        if row["event"] == "started" {
            started_paths.insert(row["arguments"]["path"].as_str().unwrap().to_owned());
        }
    }
    let mut unknown = 0;
    for (call, events) in &ends {
        assert!(
            matches!(events.as_slice(), ["started", "finished" | "unknown"] | ["started", "unknown", "finished"]),
            "{story}: the rows of {call} are {events:?}"
        );
        unknown += usize::from(events[1] == "unknown");
    }
    assert!(unknown > 0, "{story}: in so many rounds, some call must have been under way");
    for path in workspace.snapshot().keys().filter(|path| !path.starts_with(".toolhost-")) {
        assert!(started_paths.contains(path), "{story}: {path} is there, but no row says so");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_host_leaves_no_process() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let marker = format!("crash-{}", workspace.root().parent().unwrap().file_name().unwrap().to_string_lossy());
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    let script =
        format!("(setsid bash -c 'exec -a {marker} sleep 1000' &) ; echo up > up.txt; exec -a {marker} sleep 1000");
    host.begin_call("bash", json!({ "command": script, "timeoutMs": 600_000 })).await;
    until("both processes run", || processes_named(&marker) >= 2 && workspace.has("up.txt")).await;
    host.kill().await;
    until("no process is left", || processes_named(&marker) == 0).await;
    let export = program.run(&["audit", "export"]).stdout;
    let events: Vec<Value> = export
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["line"].is_null())
        .map(|row| row["event"].clone())
        .collect();
    assert_eq!(events, ["started", "unknown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_killed_call_for_records_the_next_start_says_what_became_of_it() {
    let mut seed = Seed::of_this_run();
    let story = format!("TOOLHOST_SEED={}", seed.value());
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mut sent = 0;
    for _ in 0..rounds().min(30) {
        let mut host = McpProcess::open(&program, &["--profile", "all"], Era::Session).await;
        for _ in 0..20 {
            sent += 1;
            let arguments = json!({
                "title": format!("try {sent}."), "description": "d", "priority": "high", "acceptanceCriteria": ["a"],
                "category": "functional",
            });
            let call = json!({ "name": "requirement_create", "arguments": arguments });
            let (_, message) = host.message("tools/call", call);
            host.send(&message).await;
        }
        for _ in 0..seed.below(20) {
            let message = host.next_message().await.unwrap();
            assert_eq!(message["result"]["isError"], false, "{story}: {message}");
        }
        host.kill().await;
    }
    let export = program.run(&["audit", "export"]).stdout;
    let there = program.run(&["export"]).stdout;
    let rows: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut decided = 0;
    for started in rows.iter().filter(|row| row["event"] == "started") {
        let ended = rows.iter().find(|row| row["callId"] == started["callId"] && row["event"] != "started").unwrap();
        let title = started["arguments"]["title"].as_str().unwrap();
        assert_eq!(ended["event"], "finished", "{story}: {title}: {ended}");
        assert_eq!(ended["outcome"]["ok"], there.contains(title), "{story}: {title}: {ended}");
        decided += usize::from(ended["outcome"]["decided"] == true);
    }
    assert!(decided > 0, "{story}: in so many rounds, some call must have been under way");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_killed_call_for_files_the_next_host_says_what_became_of_it() {
    let mut seed = Seed::of_this_run();
    let story = format!("TOOLHOST_SEED={}", seed.value());
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    for round in 0..rounds().min(30) {
        let mut host = McpProcess::open(&program, &[], Era::Session).await;
        for n in 0..20 {
            let arguments = json!({ "path": format!("{round}-{n}.txt"), "content": format!("{round} {n}") });
            let (_, message) = host.message("tools/call", json!({ "name": "file_write", "arguments": arguments }));
            host.send(&message).await;
        }
        for _ in 0..seed.below(20) {
            let message = host.next_message().await.unwrap();
            assert_eq!(message["result"]["isError"], false, "{story}: {message}");
        }
        host.kill().await;
    }
    // Whoever only reads finds them open, and the next host decides them, once.
    program.run(&["audit", "verify"]);
    for _ in 0..2 {
        McpProcess::open(&program, &[], Era::Session).await.close().await;
    }
    let export = program.run(&["audit", "export"]).stdout;
    let rows: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut decided = 0;
    for started in rows.iter().filter(|row| row["event"] == "started") {
        let path = started["arguments"]["path"].as_str().unwrap();
        let of_call: Vec<&Value> = rows.iter().filter(|row| row["callId"] == started["callId"]).collect();
        let ends: Vec<&&Value> = of_call.iter().filter(|row| row["event"] == "finished").collect();
        assert_eq!(ends.len(), 1, "{story}: {path}: {of_call:?}");
        assert_eq!(ends[0]["outcome"]["ok"], workspace.has(path), "{story}: {path}: {of_call:?}");
        decided += usize::from(of_call.iter().any(|row| row["event"] == "unknown"));
    }
    assert!(decided > 0, "{story}: in so many rounds, some call must have been under way");
}
