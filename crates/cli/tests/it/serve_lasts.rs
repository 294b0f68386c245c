//! A server that lasts: over many calls its memory stays as it is, and a PostgreSQL that is restarted under it takes nothing.
//!
//! `TOOLHOST_HTTP_CALLS` asks for more calls, `TOOLHOST_RESTARTS` for more restarts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolhost_testkit::{HttpConnection, HttpReply, Postgres, TempWorkspace, rounds, try_http, until};

use crate::room::program;
use crate::served::{Served, token};

/// Calls where nothing else is said.
const CALLS: u64 = 2_000;
/// From so many on, the second quarter of them begins with everything warm.
const CALLS_COMPARED_MIN: u64 = 20_000;
const CONNECTIONS: u64 = 4;
/// Samples of the memory.
const SAMPLES: u64 = 200;
/// How much of what it was in the second quarter the memory is in the last one.
const GROWTH_PERCENT_MAX: u64 = 110;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what a soak shows")]
async fn the_memory_of_a_server_stays_as_it_is_over_many_calls() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "alpha\n".repeat(100));
    let program = program(&workspace);
    // One for each connection: each may make so many calls a minute.
    let tokens: Vec<_> = (0..CONNECTIONS).map(|_| token(&program, &["--profile", "all"])).collect();
    let server = Served::start(&program, &[]);
    let calls = rounds("TOOLHOST_HTTP_CALLS", CALLS);
    let (address, at) = (server.address("address"), format!("/api/v1/projects/{}/calls", tokens[0].1));
    let mut samples = Vec::new();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(HttpConnection::open(address).await.unwrap());
    }
    let of_sample = (calls / SAMPLES / CONNECTIONS).max(1);
    for sample in 0..SAMPLES {
        let asking = connections.into_iter().zip(&tokens).map(|(mut connection, (token, _))| {
            let (bearer, at) = (format!("Bearer {token}"), at.clone());
            tokio::spawn(async move {
                for n in 0..of_sample {
                    let body = call(sample * of_sample + n).to_string();
                    let mut asked = connection.ask(("POST", &at), &[("authorization", &bearer)], &body).await.unwrap();
                    while asked.status == 429 {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        asked = connection.ask(("POST", &at), &[("authorization", &bearer)], &body).await.unwrap();
                    }
                    assert_eq!(asked.status, 200, "{asked:?}");
                }
                connection
            })
        });
        let asked: Vec<_> = asking.collect();
        connections = Vec::new();
        for asked in asked {
            connections.push(asked.await.unwrap());
        }
        samples.push(server.memory_kib());
    }
    let median = |quarter: usize| {
        let length = samples.len() / 4;
        let mut quarter = samples[quarter * length..(quarter + 1) * length].to_vec();
        quarter.sort_unstable();
        quarter[length / 2]
    };
    let (second, last) = (median(1), median(3));
    println!("{} calls: {second} KiB in the second quarter, {last} KiB in the last", of_sample * SAMPLES * CONNECTIONS);
    if calls >= CALLS_COMPARED_MIN {
        assert!(last * 100 <= second * GROWTH_PERCENT_MAX, "{second} KiB, then {last} KiB: {samples:?}");
    }
    assert_eq!(server.end(), Some(0));
}

/// Most calls read; some write files and records.
fn call(number: u64) -> Value {
    match number % 50 {
        0 => json!({ "tool": "file.write", "arguments": { "path": format!("f{}.txt", number % 8), "content": "x" } }),
        1 => json!({ "tool": "ticket.create", "arguments": { "title": format!("t{number}") } }),
        2 => json!({ "tool": "ticket.list", "arguments": { "limit": 5 } }),
        3 => json!({ "tool": "file.list", "arguments": { "path": "." } }),
        _ => json!({ "tool": "file.read", "arguments": { "path": "a.txt" } }),
    }
}

const CLIENTS: usize = 8;
/// Restarts where nothing else is said.
const RESTARTS: u64 = 2;
/// Calls that are done between two restarts.
const CALLS_OF_RESTART: usize = 60;

/// Makes calls, each with a number of its own, until it is told to stop, and asks again until it is told what each came to.
struct Client {
    address: SocketAddr,
    token: String,
    number: usize,
    answered: Arc<AtomicUsize>,
    /// What calls were told that came to nothing.
    failed: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Client {
    async fn ask(&self, key: &str, title: &str) -> Option<HttpReply> {
        let body = json!({ "tool": "ticket.create", "arguments": { "title": title } }).to_string();
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", key)];
        try_http(self.address, ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await
    }

    /// The key, the title and the last answer of each call.
    async fn run(self) -> Vec<(String, String, HttpReply)> {
        let mut told = Vec::new();
        while !self.stop.load(Ordering::SeqCst) {
            let key = format!("7fdab023-1123-49c5-b4a5-{:06x}{:06x}", self.number, told.len());
            let title = format!("t-{}-{}", self.number, told.len());
            let reply = loop {
                let Some(reply) = self.ask(&key, &title).await else {
                    unreachable!("the server does not answer: {title}");
                };
                // Nothing was begun, or nobody can be asked: come again.
                if ![429, 500, 503].contains(&reply.status) {
                    break reply;
                }
                assert!(reply.json()["error"]["message"].is_string(), "{reply:?}");
                self.failed.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            if reply.status == 200 {
                self.answered.fetch_add(1, Ordering::SeqCst);
            } else {
                // A person would not ask at once, either.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            told.push((key, title, reply));
        }
        told
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stdout, reason = "what a soak shows")]
async fn a_server_whose_database_is_restarted_goes_on_and_makes_no_call_twice() {
    // A machine without a server says so elsewhere.
    let Ok(postgres) = Postgres::start() else { return };
    let url = postgres.fresh_database();
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare().argument("--database").argument(&url);
    let named = program.clone().argument("--project").argument("shop");
    let root = workspace.root();
    let made = named.run(&["--root", root.to_str().unwrap(), "--json", "token", "create", "a", "--profile", "all"]);
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let mut server = Served::start(&program, &[]);
    let address = server.address("address");
    let (answered, failed, stop) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let client = |number| Client {
        address,
        token: token.clone(),
        number,
        answered: Arc::clone(&answered),
        failed: Arc::clone(&failed),
        stop: Arc::clone(&stop),
    };
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(client(number).run())).collect();
    let restarts = rounds("TOOLHOST_RESTARTS", RESTARTS);
    for _ in 0..restarts {
        let enough = answered.load(Ordering::SeqCst) + CALLS_OF_RESTART;
        until("calls are answered", || answered.load(Ordering::SeqCst) >= enough).await;
        postgres.stop_hard();
        postgres.start_again();
    }
    let enough = answered.load(Ordering::SeqCst) + CALLS_OF_RESTART;
    until("calls are answered again", || answered.load(Ordering::SeqCst) >= enough).await;
    stop.store(true, Ordering::SeqCst);
    let mut told = Vec::new();
    for client in clients {
        told.extend(client.await.unwrap());
    }
    assert!(server.is_running());
    let again = client(CLIENTS);
    let mut repeated = Vec::new();
    for (key, title, _) in &told {
        repeated.push(again.ask(key, title).await.unwrap());
    }
    let titles = titles(&named, &root);
    let (mut done, mut refused, mut unknown) = (0, 0, 0);
    for ((_, title, reply), repeated) in told.iter().zip(&repeated) {
        let found = titles.get(title).copied().unwrap_or(0);
        assert!(found <= 1, "{title} was made {found} times");
        match reply.status {
            200 => {
                assert_eq!(found, 1, "{title} was acknowledged: {reply:?}");
                assert_eq!((repeated.status, &repeated.body), (200, &reply.body), "{title}");
                done += 1;
            }
            // It failed, and the answer says so. Asked again, it says the same, or is made now if it was never begun.
            422 => {
                assert!(reply.body.contains("nothing was changed"), "{title}: {reply:?}");
                assert_eq!(found, usize::from(repeated.status == 200), "{title}: {reply:?}, then {repeated:?}");
                refused += 1;
            }
            // What became of it is not known, and it is not made again.
            409 => {
                assert_eq!(repeated.status, 409, "{title}: {repeated:?}");
                unknown += 1;
            }
            _ => assert_eq!(reply.status, 200, "{title}: {reply:?}"),
        }
    }
    println!(
        "{restarts} restarts, {} calls: {done} done, {refused} failed, {unknown} unknown; {} answers said to come again",
        told.len(),
        failed.load(Ordering::SeqCst)
    );
    assert!(done >= CALLS_OF_RESTART, "{done} of {}", told.len());
    let verified = named.run(&["--root", root.to_str().unwrap(), "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

/// How often there is a ticket of each title.
fn titles(named: &toolhost_testkit::Program, root: &std::path::Path) -> BTreeMap<String, usize> {
    let listed = named.run(&["--root", root.to_str().unwrap(), "--json", "export"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let mut titles = BTreeMap::new();
    for line in listed.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if let Some(title) = line["content"]["title"].as_str().filter(|_| line["line"] == "record") {
            *titles.entry(title.to_owned()).or_default() += 1;
        }
    }
    titles
}
