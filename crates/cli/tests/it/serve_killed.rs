//! Two servers of one database, one of which is killed under load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolhost_testkit::{HttpReply, Postgres, TempWorkspace, try_http};

use crate::room::program;
use crate::served::Served;

const CLIENTS: usize = 50;
const CALLS_OF_EACH: usize = 4;
/// After so many answers one server is killed.
const KILLED_AFTER: usize = 60;

/// A client: it makes each call with a number of its own, and asks again with it, of the other server, until it is told.
struct Client {
    servers: [SocketAddr; 2],
    token: String,
    answered: Arc<AtomicUsize>,
    is_time: Arc<Notify>,
}

impl Client {
    async fn create(&self, first: usize, number: &str, title: &str) -> HttpReply {
        let body = json!({ "tool": "ticket.create", "arguments": { "title": title } }).to_string();
        let bearer = format!("Bearer {}", self.token);
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", number)];
        for turn in first.. {
            let server = self.servers[turn % 2];
            let Some(reply) = try_http(server, ("POST", "/api/v1/projects/shop/calls"), &headers, &body).await else {
                continue;
            };
            // What the other one does is waited for; too many at once are told to come again.
            if reply.status != 429 {
                if self.answered.fetch_add(1, Ordering::SeqCst) + 1 == KILLED_AFTER {
                    self.is_time.notify_one();
                }
                return reply;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        unreachable!("it asks for ever")
    }
}

/// A UUID for each call.
fn number_of(client: usize, call: usize) -> String {
    format!("7fdab023-1123-49c5-b4a5-{client:06x}{call:06x}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_made_twice_and_no_acknowledged_one_is_lost_when_a_server_is_killed() {
    // A machine without a server says so elsewhere.
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.fresh_database();
    let workspace = TempWorkspace::new();
    let program = program(&workspace).bare().argument("--database").argument(&url);
    let named = program.clone().argument("--project").argument("shop");
    let root = workspace.root();
    let made = named.run(&["--root", root.to_str().unwrap(), "--json", "token", "create", "a", "--profile", "all"]);
    let token = made.json()["token"].as_str().unwrap().to_owned();
    let (mut doomed, other) = (Served::start(&program, &[]), Served::start(&program, &[]));
    let servers = [doomed.address("address"), other.address("address")];
    let (answered, is_time) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let clients = (0..CLIENTS).map(|client| {
        let of =
            Client { servers, token: token.clone(), answered: Arc::clone(&answered), is_time: Arc::clone(&is_time) };
        tokio::spawn(async move {
            let mut told = Vec::new();
            for call in 0..CALLS_OF_EACH {
                let (number, title) = (number_of(client, call), format!("t-{client}-{call}"));
                let reply = of.create(client + call, &number, &title).await;
                told.push((number, title, reply));
            }
            told
        })
    });
    let clients: Vec<_> = clients.collect();
    is_time.notified().await;
    doomed.kill();
    let mut told = Vec::new();
    for client in clients {
        told.extend(client.await.unwrap());
    }
    let mut titles: BTreeMap<String, usize> = BTreeMap::new();
    let listed = named.run(&["--root", root.to_str().unwrap(), "--json", "export"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for line in listed.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let is_record = line["line"] == "record";
        if let Some(title) = line["content"]["title"].as_str().filter(|title| is_record && title.starts_with("t-")) {
            *titles.entry(title.to_owned()).or_default() += 1;
        }
    }
    let again = Client { servers: [servers[1]; 2], token, answered, is_time };
    let mut made = 0;
    // Side by side: for a call whose server died, the other one waits a while until it says so.
    let asking = told.iter().map(|(number, title, _)| again.create(0, number, title));
    let all_repeated = futures::future::join_all(asking).await;
    for ((_, title, reply), repeated) in told.iter().zip(&all_repeated) {
        let found = titles.get(title).copied().unwrap_or(0);
        assert!(found <= 1, "{title} was made {found} times");
        match reply.status {
            200 => assert_eq!(found, 1, "{title} was acknowledged: {reply:?}"),
            // Its server died under it: what became of it is known or told to be unknown, and it is not made again.
            409 => {}
            _ => assert_eq!(reply.status, 200, "{title}: {reply:?}"),
        }
        made += found;
        assert_eq!(repeated.status, reply.status, "{title}: {repeated:?}");
        // What is known of a call whose server died may be more by now.
        assert!(reply.status == 409 || repeated.body == reply.body, "{title}: {repeated:?}");
    }
    assert!(made > told.len() / 2, "{made} of {}", told.len());
    let verified = named.run(&["--root", root.to_str().unwrap(), "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}
