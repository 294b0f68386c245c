//! `kill -9` of a process that runs a session, anywhere: resumed, it comes to the same end, and no call that changes
//! something runs twice.
//!
//! `TOOLHOST_CRASH_ROUNDS` asks for more rounds, `TOOLHOST_SEED` for others.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_testkit::engines::{Engine, engines};
use toolhost_testkit::{Program, Seed, TempWorkspace};

use crate::room::program;

/// On each engine.
const ROUNDS: usize = 6;
/// Turns of the session that call something.
const STEPS: usize = 20;
/// A kill comes within so many microseconds after the start: some before the first step, some after the last.
const MOMENTS_US: u64 = 400_000;

fn rounds() -> usize {
    std::env::var("TOOLHOST_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// Twenty steps: reads, changes of files and records, commands that count how often they ran.
fn story() -> Value {
    let mut turns: Vec<Value> = (0..STEPS)
        .map(|n| match n % 4 {
            0 => json!({ "calls": [{ "tool": "file_read", "arguments": { "path": "seed.txt" } },
                                   { "tool": "file_list", "arguments": {} }] }),
            1 => json!({ "calls": [
                { "tool": "file_write", "arguments":
                    { "path": format!("out/{n}.txt"), "content": format!("{n}\n"), "createOnly": true } },
                { "tool": "file_edit", "arguments":
                    { "path": "seed.txt", "edits": [{ "search": "seed\n", "replace": format!("{n}\nseed\n") }] } },
                { "tool": "ticket_create", "arguments": { "title": format!("ticket {n}"), "type": "bug" } },
            ] }),
            2 => json!({ "calls": [{ "tool": "bash", "arguments": { "command": format!("echo {n} >> ran.txt") } }] }),
            _ => json!({ "calls": [
                { "tool": "bash", "arguments": { "command": format!("echo {n}a >> ran.txt") } },
                { "tool": "file_read", "arguments": { "path": "seed.txt" } },
                { "tool": "bash", "arguments": { "command": format!("echo {n}b >> ran.txt") } },
            ] }),
        })
        .collect();
    turns.push(json!({ "text": "All twenty are done." }));
    json!({ "turns": turns })
}

struct Scene {
    workspace: TempWorkspace,
    program: Program,
}

impl Scene {
    fn new(engine: &Engine) -> Self {
        let workspace = TempWorkspace::new();
        workspace.write("seed.txt", "seed\n");
        workspace.write_beside("story.json", &story().to_string());
        let program = engine.under(program(&workspace));
        Self { workspace, program }
    }

    fn model(&self) -> String {
        format!("script:{}", self.workspace.beside("story.json").display())
    }

    fn session(&self) -> Option<Value> {
        let listed = self.program.run(&["session", "list", "--json"]);
        let rows: Value = serde_json::from_str(&listed.stdout).unwrap();
        rows.as_array().unwrap().first().cloned()
    }

    /// Runs the command and kills it after a moment; whether it had ended before.
    async fn killed(&self, arguments: &[&str], after_us: u64) -> bool {
        let mut command = tokio::process::Command::from(self.program.command(arguments));
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        let ended = tokio::time::timeout(Duration::from_micros(after_us), child.wait()).await;
        if ended.is_err() {
            child.kill().await.unwrap();
        }
        ended.is_ok()
    }
}

/// How often each command has run.
fn ran(workspace: &TempWorkspace) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    if workspace.has("ran.txt") {
        for line in workspace.read("ran.txt").lines() {
            *counted.entry(line.to_owned()).or_default() += 1;
        }
    }
    counted
}

/// Rules: 001.20.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_session_comes_to_the_same_end_and_runs_nothing_twice() {
    let mut seed = Seed::of_this_run();
    for engine in engines() {
        let story = format!("{engine}, TOOLHOST_SEED={}", seed.value());
        for _ in 0..rounds() {
            came_to_its_end(&Scene::new(&engine), &mut seed, &story).await;
        }
    }
}

async fn came_to_its_end(scene: &Scene, seed: &mut Seed, story: &str) {
    let mut kills = 0;
    let mut done =
        scene.killed(&["run", "count", "--profile", "all", "--model", &scene.model()], seed.below(MOMENTS_US)).await;
    while !done {
        kills += 1;
        let Some(row) = scene.session() else {
            // Killed before it had begun.
            done = scene
                .killed(&["run", "count", "--profile", "all", "--model", &scene.model()], seed.below(MOMENTS_US))
                .await;
            continue;
        };
        if row["state"] == "done" {
            break;
        }
        // Each time it is given longer, so that it ends.
        let moment = seed.below(MOMENTS_US * (1 + kills));
        done = scene.killed(&["session", "resume", row["id"].as_str().unwrap()], moment).await;
    }
    check(scene, story);
}

/// Runs the session, takes as many of its events as are asked for, and kills it. Says how many came, and what it said beside.
fn killed_after(scene: &Scene, events: usize) -> (usize, String) {
    let model = scene.model();
    let mut command = scene.program.command(&["run", "count", "--profile", "all", "--json", "--model", &model]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let came = BufReader::new(child.stdout.take().unwrap()).lines().take(events).map_while(Result::ok).count();
    child.kill().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    (came, said)
}

/// As many of its events as there are rounds, spread evenly; with more rounds than events, each of them.
#[test]
fn a_session_killed_at_each_of_its_events_comes_to_the_same_end() {
    for engine in engines() {
        killed_at_each_event(&engine);
    }
}

fn killed_at_each_event(engine: &Engine) {
    let whole = Scene::new(engine);
    let (events, said) = killed_after(&whole, usize::MAX);
    assert!(events > 4 * STEPS, "a turn is asked, said, called and answered: {events}: {said}");
    check(&whole, "not killed");
    let seed = Seed::of_this_run();
    let stride = (events / rounds()).max(1);
    let first = usize::try_from(seed.value()).unwrap_or_default() % stride;
    for at in (first..events).step_by(stride) {
        let story = format!("{engine}, TOOLHOST_SEED={}, killed after {at} events", seed.value());
        let scene = Scene::new(engine);
        let (came, said) = killed_after(&scene, at);
        assert_eq!(came, at, "{story}: {said}");
        match scene.session() {
            None => assert_eq!(at, 0, "{story}"),
            Some(row) if row["state"] == "done" => check(&scene, &story),
            Some(row) => {
                let resumed = scene.program.run(&["session", "resume", row["id"].as_str().unwrap()]);
                assert_eq!(resumed.code, Some(0), "{story}: {resumed:?}");
                check(&scene, &story);
            }
        }
    }
}

/// The end is the same, and each command ran as often as the journal says.
fn check(scene: &Scene, story: &str) {
    let row = scene.session().unwrap();
    assert_eq!(row["state"], "done", "{story}: {row}");
    assert_eq!(row["tally"]["turns"], STEPS + 1, "{story}");
    let shown = scene.program.run(&["session", "show", row["id"].as_str().unwrap(), "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let steps: BTreeMap<&str, &Value> =
        shown["steps"].as_array().unwrap().iter().map(|row| (row["step"].as_str().unwrap(), &row["body"])).collect();
    let counted = ran(&scene.workspace);
    assert!(counted.values().all(|times| *times == 1), "{story}: {counted:?}");
    for n in 0..STEPS {
        let calls = steps[format!("turn_{n}").as_str()]["reply"]["calls"].as_array().unwrap().len();
        for call in 0..calls {
            let body = steps[format!("call_{n}_{call}").as_str()];
            let content = body["content"].as_str().unwrap();
            let lost = content.contains("It is unknown whether");
            assert!(lost || body["ok"] == true, "{story}: call_{n}_{call}: {body}");
            if lost {
                assert!(n % 4 > 1, "{story}: files and history tell what became of call_{n}_{call}: {body}");
                continue;
            }
            // What the session was told is what happened.
            match (n % 4, call) {
                (1, 0) => assert_eq!(scene.workspace.read(&format!("out/{n}.txt")), format!("{n}\n"), "{story}"),
                (2, _) => assert!(counted.contains_key(&n.to_string()), "{story}: {n}"),
                (3, 0) => assert!(counted.contains_key(&format!("{n}a")), "{story}: {n}a"),
                (3, 2) => assert!(counted.contains_key(&format!("{n}b")), "{story}: {n}b"),
                _ => {}
            }
        }
    }
    // Each change of files and records was made, and made once.
    let seed: String = (1..STEPS).step_by(4).map(|n| format!("{n}\n")).collect();
    assert_eq!(scene.workspace.read("seed.txt"), format!("{seed}seed\n"), "{story}");
    let listed = scene.program.run(&["ticket", "list", "--json"]);
    let tickets: Value = serde_json::from_str(&listed.stdout).unwrap();
    let tickets = tickets["data"]["items"].as_array().unwrap();
    let titles: Vec<&str> = tickets.iter().map(|ticket| ticket["title"].as_str().unwrap()).collect();
    let wanted: Vec<String> = (1..STEPS).step_by(4).map(|n| format!("ticket {n}")).collect();
    assert_eq!(titles, wanted, "{story}");
    let verified = scene.program.run(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{story}: {verified:?}");
}
