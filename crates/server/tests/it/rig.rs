//! A server with projects, in this process.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, Clock, RandomIds, ToolError};
use toolhost_host::{CallObserver, Profile};
use toolhost_server::http::{
    Describe, HttpLimits, Listener, Metrics, OauthConfig, OpenProject, Projects, Secret, Serving, SignIn,
    TrustedProxies, Work, serve, serve_metrics,
};
use toolhost_server::mcp::{Offers, Tidy};
use toolhost_store::{LoginLife, NewToken};
use toolhost_testkit::{FakeClock, House, HouseBuilder, HttpReply, TestSocket, TestStream, USER, http};

/// How long tokens hold, unless a test says otherwise.
pub(crate) const HOUR_MS: i64 = 3_600_000;

pub(crate) struct Rig {
    pub(crate) houses: Vec<House>,
    pub(crate) address: SocketAddr,
    /// Where the metrics are read.
    pub(crate) metrics: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
    /// How often the server has given memory back.
    pub(crate) tidied: Arc<AtomicUsize>,
    clock: Arc<FakeClock>,
    served: Serving,
}

/// Counts how often memory is given back.
struct Tidied(Arc<AtomicUsize>);

impl Tidy for Tidied {
    fn tidy(&self) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Box::pin(async {})
    }
}

struct Tcp(TestSocket);

impl Listener for Tcp {
    type Stream = TestStream;

    async fn accept(&mut self) -> std::io::Result<(TestStream, IpAddr)> {
        let (stream, address) = self.0.accept().await?;
        Ok((stream, address.ip()))
    }
}

/// A project that is there and cannot be opened.
pub(crate) const BROKEN: &str = "broken";

struct Served(Vec<Arc<OpenProject>>);

impl Projects for Served {
    fn keys(&self) -> BoxFuture<'_, Result<Vec<String>, ToolError>> {
        Box::pin(async { Ok(self.0.iter().map(|project| project.key.clone()).collect()) })
    }

    fn opened(&self) -> BoxFuture<'_, Vec<Arc<OpenProject>>> {
        Box::pin(async { self.0.clone() })
    }

    fn open<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<OpenProject>>, ToolError>> {
        Box::pin(async move {
            if key == BROKEN {
                return Err(ToolError::internal("the database is no database"));
            }
            Ok(self.0.iter().find(|project| project.key == key).cloned())
        })
    }
}

struct Says(&'static str);

impl Describe for Says {
    fn instructions<'a>(&'a self, _: &'a Profile, _: &'a str) -> BoxFuture<'a, String> {
        Box::pin(async { self.0.to_owned() })
    }
}

/// A house with every built-in tool, in which nobody answers at once.
pub(crate) fn house() -> HouseBuilder {
    asking_nobody(HouseBuilder::of(toolhost::tools))
}

/// A house in which nobody answers at once.
pub(crate) fn asking_nobody(builder: HouseBuilder) -> HouseBuilder {
    let asking = toolhost_host::Asking { hold: std::time::Duration::ZERO, ..toolhost_host::Asking::default() };
    builder.asking(asking)
}

impl Rig {
    /// A server of the projects `p0`, `p1`, …
    pub(crate) async fn start(builders: Vec<HouseBuilder>, limits: HttpLimits) -> Self {
        Self::start_with(builders, limits, None).await
    }

    /// The same with an authorization server.
    pub(crate) async fn start_with(
        builders: Vec<HouseBuilder>,
        limits: HttpLimits,
        oauth: Option<OauthConfig>,
    ) -> Self {
        Self::start_all(builders, limits, oauth, |_| None).await
    }

    /// The same where projects do more than calls.
    pub(crate) async fn start_working<W: Work + 'static>(
        builders: Vec<HouseBuilder>,
        work: impl Fn(&House) -> Arc<W>,
    ) -> Self {
        Self::start_all(builders, HttpLimits::default(), None, |house| Some(work(house) as Arc<dyn Work>)).await
    }

    /// The same behind proxies that are believed.
    pub(crate) async fn start_behind(builders: Vec<HouseBuilder>, limits: HttpLimits, proxies: TrustedProxies) -> Self {
        Self::start_whole(builders, limits, (None, proxies), |_| None).await
    }

    /// The same with all that most tests choose.
    pub(crate) async fn start_all(
        builders: Vec<HouseBuilder>,
        limits: HttpLimits,
        oauth: Option<OauthConfig>,
        work: impl Fn(&House) -> Option<Arc<dyn Work>>,
    ) -> Self {
        Self::start_whole(builders, limits, (oauth, TrustedProxies::default()), work).await
    }

    async fn start_whole(
        builders: Vec<HouseBuilder>,
        limits: HttpLimits,
        (oauth, proxies): (Option<OauthConfig>, TrustedProxies),
        work: impl Fn(&House) -> Option<Arc<dyn Work>>,
    ) -> Self {
        let metrics = Metrics::new("1.2.3");
        let (mut houses, mut projects) = (Vec::new(), Vec::new());
        for (number, builder) in builders.into_iter().enumerate() {
            let observer: Arc<dyn CallObserver> = Arc::<Metrics>::clone(&metrics);
            let house = builder.observer(observer).build().await;
            projects.push(Arc::new(OpenProject {
                key: format!("p{number}"),
                name: format!("project {number}"),
                id: house.project.id,
                gate: Arc::clone(&house.gate),
                ids: Arc::new(RandomIds),
                people: house.store.people(),
                tokens: house.store.tokens(),
                reader: house.store.reader(),
                sessions: house.store.sessions().clone(),
                keyed_calls: house.store.keyed_calls(),
                work: work(&house),
                describe: Arc::new(Says("What an agent is told.")),
                core: &["file.read"],
                offers: Offers::BUILT_IN,
            }));
            houses.push(house);
        }
        let clock = Arc::clone(&houses[0].clock);
        let shared: Arc<dyn Clock> = Arc::<FakeClock>::clone(&clock);
        let logins = houses[0].store.logins(LoginLife::default());
        let sign_in = Some(SignIn { logins, is_tls: false });
        let tidied = Arc::new(AtomicUsize::new(0));
        let serving = Serving {
            projects: Arc::new(Served(projects)),
            clock: shared,
            hosts: Vec::new(),
            proxies,
            oauth,
            sign_in,
            limits,
            when_idle: Arc::new(Tidied(Arc::clone(&tidied))),
            metrics: Arc::clone(&metrics),
            version: "1.2.3".to_owned(),
        };
        let (listener, scraped) = (TestSocket::bind().await, TestSocket::bind().await);
        let metrics = scraped.address();
        let (address, stop) = (listener.address(), CancellationToken::new());
        let (until, served) = (stop.clone(), serving.clone());
        tokio::spawn(serve_metrics(serving.clone(), Tcp(scraped), stop.clone()));
        let serving = tokio::spawn(async move { serve(serving, Tcp(listener), until).await });
        Self { houses, address, metrics, stop, serving, tidied, clock, served }
    }

    /// The server ends.
    pub(crate) async fn end(&mut self) {
        self.stop.cancel();
        (&mut self.serving).await.unwrap();
    }

    /// Another one begins where it was, with the same projects.
    pub(crate) async fn begin_again(&mut self) {
        self.stop = CancellationToken::new();
        let (listener, until, serving) =
            (TestSocket::bind_at(self.address).await, self.stop.clone(), self.served.clone());
        self.serving = tokio::spawn(async move { serve(serving, Tcp(listener), until).await });
    }

    pub(crate) async fn one() -> Self {
        Self::start(vec![house()], HttpLimits::default()).await
    }

    /// A token for project `p0` with the profile `all`.
    pub(crate) async fn token(&self, rights: &[&str]) -> String {
        self.token_of(0, "agent", &["all"], rights).await
    }

    pub(crate) async fn token_of(&self, project: usize, name: &str, profiles: &[&str], rights: &[&str]) -> String {
        let house = &self.houses[project];
        let secret = Secret::new(&format!("p{project}")).unwrap();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let hash = secret.hash();
        let new = NewToken {
            project_id: house.project.id,
            account_id: USER,
            id: format!("tok-{}", &hash[..8]),
            name: name.to_owned(),
            hash,
            profiles: words(profiles),
            scopes: words(rights),
            expires_at_ms: house.clock.unix_ms() + HOUR_MS,
        };
        house.store.tokens().create(&new).await.unwrap();
        secret.as_str().to_owned()
    }

    /// Time passes for the server, and for the first project.
    pub(crate) fn advance(&self, ms: i64) {
        self.clock.advance(std::time::Duration::from_millis(u64::try_from(ms).unwrap()));
    }

    pub(crate) async fn send(&self, token: &str, asked: (&str, &str), body: &str) -> HttpReply {
        self.send_with(token, asked, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        token: &str,
        asked: (&str, &str),
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpReply {
        let bearer = format!("Bearer {token}");
        let headers: Vec<(&str, &str)> = [("authorization", bearer.as_str())].iter().chain(headers).copied().collect();
        http(self.address, asked, &headers, body).await
    }

    /// A request over MCP by a client of 2026-07-28 that shows forms.
    pub(crate) async fn modern(&self, token: &str, method: &str, params: Value) -> HttpReply {
        self.modern_with(token, serde_json::json!({ "form": {} }), method, params).await
    }

    /// The same by a client that can ask people in these ways.
    pub(crate) async fn modern_with(&self, token: &str, asks: Value, method: &str, mut params: Value) -> HttpReply {
        let meta = serde_json::json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": asks },
            "io.modelcontextprotocol/clientInfo": { "name": "forms", "version": "1" },
        });
        let own = params["_meta"].as_object_mut().map(std::mem::take).unwrap_or_default();
        params["_meta"] = meta.as_object().cloned().into_iter().flatten().chain(own).collect();
        let name = [&params["name"], &params["uri"]].into_iter().find_map(Value::as_str).unwrap_or_default().to_owned();
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", &name),
        ];
        let headers = if name.is_empty() { &headers[..3] } else { &headers };
        let message = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send_with(token, ("POST", "/mcp"), headers, &message.to_string()).await
    }

    pub(crate) async fn call(&self, token: &str, tool: &str, arguments: Value) -> HttpReply {
        let body = serde_json::json!({ "tool": tool, "arguments": arguments }).to_string();
        self.send(token, ("POST", "/api/v1/projects/p0/calls"), &body).await
    }
}
