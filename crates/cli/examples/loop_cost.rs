//! What a step of the agent's loop costs, for `cargo xtask bench`. Prints one JSON object.
//!
//! ```text
//! loop_cost serve                    a model server that answers in next to no time; prints its address
//! loop_cost steps URL COUNT          milliseconds a step of a session against it
//! loop_cost own COUNT                microseconds of the host's own part, in the first and in the last fifty steps
//! loop_cost crowd URL SESSIONS COUNT peak memory of so many sessions at once, and the slowest beside the median
//! ```

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolhost_agent::model::{Follow, ModelFacts, Provider, ProviderConfig, ProviderKind, Reply, Retry, Script, Secret};
use toolhost_agent::session::{
    Control, Event, LoopLimits, SessionState, Status, Unwatched, Watch, run_tool_loop, step,
};
use toolhost_agent::start::{self, About, Task};
use toolhost_agent::{Catalog, Model, ModelError, Request, ToolHost};
use toolhost_contract::{BoxFuture, RandomIds, Scope, SystemClock};
use toolhost_store::{NewSession, SessionState as Standing};
use toolhost_testkit::{House, HouseBuilder, ModelFormat, ModelServer, TempWorkspace, Turn, USER};

const FILE: &str = "a.txt";
const PROFILE: &str = "researcher";
/// Tokens, as the models of today have.
const WINDOW: u32 = 200_000;
/// Steps at either end whose cost is compared.
const END: usize = 50;
/// Turns that the server knows; the last one is an answer.
const TURNS_MAX: usize = 2_000;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", count] => serve(count.parse().unwrap()).await,
        ["steps", url, count] => {
            let house = house().await;
            let model = provider(url);
            let turns = count.parse().unwrap();
            // On a worker, as the program runs what was typed.
            let took = tokio::spawn(async move { sitting(&house, &model, turns).await }).await.unwrap();
            let ms = took.as_secs_f64() * 1000.0;
            println!("{}", json!({ "msPerStep": ms / count.parse::<f64>().unwrap() }));
        }
        ["own", count] => println!("{}", own(count.parse().unwrap()).await),
        ["crowd", url, sessions, count] => {
            println!("{}", crowd(url, sessions.parse().unwrap(), count.parse().unwrap()).await);
        }
        _ => std::process::exit(2),
    }
}

/// As many reads as are asked for, then an answer; ends with its standard input.
async fn serve(count: usize) {
    let mut turns: Vec<Turn> =
        (0..count.min(TURNS_MAX)).map(|_| Turn::call("file_read", &json!({ "path": FILE }))).collect();
    turns.push(Turn::text("Read."));
    let server = ModelServer::quick(ModelFormat::OpenAi, &turns).await;
    println!("{}", server.url());
    let waiting = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let _ = waiting.await;
}

async fn house() -> House {
    let workspace = TempWorkspace::new();
    workspace.write(FILE, "a short file\n");
    HouseBuilder::of(toolhost::tools).workspace(workspace).build().await
}

fn provider(url: &str) -> Provider {
    let mut config = ProviderConfig::new(ProviderKind::OpenAi, "mock");
    config.base_url = Some(url.to_owned());
    config.key = Secret::new(ModelServer::KEY);
    config.window = WINDOW;
    config.retry = Retry { attempts: 1, ..Retry::default() };
    Provider::new(config, Arc::new(SystemClock::default())).unwrap()
}

/// One session to its end.
async fn sitting(house: &House, model: &dyn Model, count: usize) -> Duration {
    let catalog = Catalog::new(&house.gate, PROFILE).unwrap();
    run(house, &catalog, model, count, &(Arc::new(Unwatched) as Arc<dyn Watch>)).await
}

async fn run(
    house: &House,
    catalog: &Arc<Catalog>,
    model: &dyn Model,
    count: usize,
    watch: &Arc<dyn Watch>,
) -> Duration {
    let id = start::session_id();
    let scope = Scope {
        user_id: USER,
        project_id: house.project.id,
        session_id: Some(id.clone()),
        workflow_id: None,
        ticket_id: None,
    };
    let tools = ToolHost::new(
        Arc::clone(&house.gate),
        (Arc::clone(catalog), toolhost::SESSION_TOOLS),
        scope,
        "Ada".to_owned(),
        Arc::new(RandomIds),
    );
    let about =
        About { project: "p".to_owned(), profile: PROFILE.to_owned(), persona: "Ada".to_owned(), ..About::default() };
    let task = Task::Workspace { goal: "read".to_owned(), schema: None };
    let opening = start::opening(&tools, model, &task, &about).await.unwrap();
    let sessions = house.store.sessions();
    let new = NewSession {
        project_id: house.project.id,
        user_id: USER,
        id: id.clone(),
        profile: PROFILE.to_owned(),
        model: "mock".to_owned(),
        title: "read".to_owned(),
        steps: vec![(step::OPEN.to_owned(), serde_json::to_value(&opening).unwrap())],
    };
    sessions.create(&new).await.unwrap();
    let held = sessions.hold(house.project.id, &id).await.unwrap();
    let clock = SystemClock::default();
    let limits = LoopLimits { max_iterations: u32::MAX, ..LoopLimits::default() };
    let began = Instant::now();
    let result = {
        let state = SessionState::open(&held, &clock).unwrap();
        run_tool_loop(&state, model, &tools, &limits, &Control::default(), watch).await.unwrap()
    };
    let took = began.elapsed();
    assert_eq!((result.status, result.calls.len()), (Status::Completed, count), "{:?}", result.error);
    held.release(Standing::Done, None).await.unwrap();
    took
}

/// When each turn was said.
#[derive(Default)]
struct Moments(Mutex<Vec<Instant>>);

impl Watch for Moments {
    fn event(&self, event: &Event) {
        if matches!(event, Event::Said { .. }) {
            self.0.lock().unwrap().push(Instant::now());
        }
    }
}

/// A model that takes its time, as all do, and says how long: what is left of a step is ours.
struct Paced {
    script: Script,
    inside: Mutex<Vec<Duration>>,
}

/// Long enough for the disk to keep up with the journal, as it does with any real model.
const PACE: Duration = Duration::from_millis(2);

impl Model for Paced {
    fn facts(&self) -> &ModelFacts {
        self.script.facts()
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let began = Instant::now();
            tokio::time::sleep(PACE).await;
            let reply = self.script.reply(request, follow, cancel).await;
            self.inside.lock().unwrap().push(began.elapsed());
            reply
        })
    }
}

async fn own(count: usize) -> Value {
    let house = house().await;
    let read = json!({ "calls": [{ "tool": "file_read", "arguments": { "path": FILE } }] });
    let mut turns: Vec<Value> = (0..count).map(|_| read.clone()).collect();
    turns.push(json!({ "text": "Read." }));
    let script = json!({ "turns": turns, "window": WINDOW }).to_string();
    let model = Paced { script: Script::parse("script", &script).unwrap(), inside: Mutex::default() };
    let catalog = Catalog::new(&house.gate, PROFILE).unwrap();
    let moments = Arc::new(Moments::default());
    let watch: Arc<dyn Watch> = Arc::<Moments>::clone(&moments);
    run(&house, &catalog, &model, count, &watch).await;
    let moments = moments.0.lock().unwrap();
    let inside = model.inside.lock().unwrap();
    let gaps = moments.windows(2).zip(&inside[1..]).map(|(pair, inside)| (pair[1] - pair[0]).saturating_sub(*inside));
    let mut gaps: Vec<f64> = gaps.map(|gap| gap.as_secs_f64() * 1e6).collect();
    let median = |gaps: &mut [f64]| {
        gaps.sort_by(f64::total_cmp);
        gaps[gaps.len() / 2]
    };
    let end = gaps.len() - END;
    json!({ "firstUs": median(&mut gaps[..END].to_vec()), "lastUs": median(&mut gaps[end..]) })
}

async fn crowd(url: &str, sessions: usize, count: usize) -> Value {
    let house = Arc::new(house().await);
    let catalog = Catalog::new(&house.gate, PROFILE).unwrap();
    let model = Arc::new(provider(url));
    let began = Instant::now();
    let running = (0..sessions).map(|_| {
        let (house, catalog, model) = (Arc::clone(&house), Arc::clone(&catalog), Arc::clone(&model));
        tokio::spawn(async move {
            run(&house, &catalog, &*model, count, &(Arc::new(Unwatched) as Arc<dyn Watch>)).await;
            began.elapsed()
        })
    });
    let mut ended = Vec::new();
    for session in running.collect::<Vec<_>>() {
        ended.push(session.await.unwrap().as_secs_f64());
    }
    ended.sort_by(f64::total_cmp);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    json!({
        "peakMiB": peak / 1024.0, "firstS": ended[0], "medianS": ended[sessions / 2], "lastS": ended[sessions - 1],
    })
}
