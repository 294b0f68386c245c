//! The server that the conformance suite of MCP is run against by `cargo xtask mcp-conformance`: the real gate, the real HTTP door and
//! the real MCP service, with tools that answer what the suite expects in place of the built-in ones.
//!
//! Prints its address and a token as JSON, and serves until its standard input ends.

#![expect(clippy::unwrap_used, reason = "a test double that fails ends its test")]

mod tools;

use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, Clock, RandomIds, ToolError};
use toolhost_host::{Asking, Profile};
use toolhost_server::http::{
    Describe, HttpLimits, Listener, Metrics, OpenProject, Projects, Secret, Serving, TrustedProxies, serve,
};
use toolhost_store::NewToken;
use toolhost_testkit::{FakeClock, House, HouseBuilder, TestSocket, TestStream, USER};

const PROJECT: &str = "conformance";
const HOUR_MS: i64 = 3_600_000;

struct Tcp(TestSocket);

impl Listener for Tcp {
    type Stream = TestStream;

    async fn accept(&mut self) -> std::io::Result<(TestStream, IpAddr)> {
        let (stream, address) = self.0.accept().await?;
        Ok((stream, address.ip()))
    }
}

struct OneProject(Arc<OpenProject>);

impl Projects for OneProject {
    fn keys(&self) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        Box::pin(async { Ok(vec![PROJECT.to_owned()]) })
    }

    fn opened(&self) -> BoxFuture<'_, Vec<Arc<OpenProject>>> {
        Box::pin(async { vec![Arc::clone(&self.0)] })
    }

    fn open<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<OpenProject>>, ToolError>> {
        Box::pin(async move { Ok((key == PROJECT).then(|| Arc::clone(&self.0))) })
    }
}

struct Says;

impl Describe for Says {
    fn instructions<'a>(&'a self, _: &'a Profile, _: &'a str) -> BoxFuture<'a, String> {
        Box::pin(async { "A server for the conformance suite of MCP.".to_owned() })
    }
}

/// A token that may call tools and answer forms: the suite plays the client and the person at it.
async fn token(house: &House) -> String {
    let secret = Secret::new(PROJECT).unwrap();
    let new = NewToken {
        project_id: house.project.id,
        account_id: USER,
        id: "tok-suite".to_owned(),
        name: "suite".to_owned(),
        hash: secret.hash(),
        profiles: vec!["all".to_owned()],
        scopes: vec!["call".to_owned(), "approve".to_owned()],
        expires_at_ms: house.clock.unix_ms() + HOUR_MS,
    };
    house.store.tokens().create(&new).await.unwrap();
    secret.as_str().to_owned()
}

#[tokio::main]
async fn main() {
    let asking = Asking { hold: Duration::ZERO, ..Asking::default() };
    let house = HouseBuilder::new(tools::all()).asking(asking).build().await;
    let project = OpenProject {
        key: PROJECT.to_owned(),
        name: PROJECT.to_owned(),
        id: house.project.id,
        gate: Arc::clone(&house.gate),
        ids: Arc::new(RandomIds),
        people: house.store.people(),
        tokens: house.store.tokens(),
        reader: house.store.reader(),
        sessions: house.store.sessions().clone(),
        keyed_calls: house.store.keyed_calls(),
        describe: Arc::new(Says),
        work: None,
        core: &[],
        offers: &tools::OFFERS,
    };
    let clock: Arc<dyn Clock> = Arc::<FakeClock>::clone(&house.clock);
    let serving = Serving {
        projects: Arc::new(OneProject(Arc::new(project))),
        clock,
        hosts: Vec::new(),
        oauth: None,
        sign_in: None,
        proxies: TrustedProxies::default(),
        limits: HttpLimits::default(),
        when_idle: Arc::new(toolhost_server::mcp::NotTidied),
        metrics: Metrics::new(env!("CARGO_PKG_VERSION")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let socket = TestSocket::bind().await;
    let told = json!({ "address": socket.address().to_string(), "token": token(&house).await });
    let stop = CancellationToken::new();
    let until = stop.clone();
    let serving = tokio::spawn(async move { serve(serving, Tcp(socket), until).await });
    std::io::stdout().write_all(format!("{told}\n").as_bytes()).unwrap();
    // An input that breaks has ended, too.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await;
    stop.cancel();
    serving.abort();
}
