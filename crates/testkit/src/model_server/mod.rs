//! A pretended provider: a real HTTP server on this machine that speaks as Anthropic or `OpenAI` do, plays turns, breaks
//! where a test wants it to, and checks every request against the rules of its format.
//!
//! A test that drops a server whose clients broke a rule fails, unless it asked for [`ModelServer::violations`].

mod anthropic;
pub(crate) mod http;
mod openai;
mod truth;
mod turn;

pub use turn::{Fault, Tokens, Turn};

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use http::Incoming;

/// Whose words are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/chat/completions`.
    OpenAi,
    /// Nobody's: bodies are the test's own, and requests are not checked.
    Raw,
}

/// A request, as it came.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

/// Which turn answers a request.
enum Source {
    /// One after the other.
    InOrder(Vec<Turn>),
    /// As many as the model has spoken in the request: clients may be killed and go on.
    ByPlace(Vec<Turn>),
    /// What the test makes up.
    Made(Box<dyn Fn(&ModelRequest) -> Turn + Send + Sync>),
    /// By place, from bytes made beforehand, requests neither parsed nor checked nor kept: for benches.
    Quick(Vec<Vec<u8>>),
}

struct State {
    format: ModelFormat,
    source: Source,
    with_key: AtomicBool,
    came: AtomicUsize,
    connections: AtomicUsize,
    requests: Mutex<Vec<ModelRequest>>,
    violations: Mutex<Vec<String>>,
    arrived: watch::Sender<usize>,
}

/// The server. Its connections end when it is dropped.
pub struct ModelServer {
    url: String,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

impl ModelServer {
    /// The key that clients are to send.
    pub const KEY: &str = "sk-mock-4f1d8a60c2";

    /// Plays these turns, one for each request.
    pub async fn start(format: ModelFormat, turns: Vec<Turn>) -> Self {
        Self::serve(format, Source::InOrder(turns)).await
    }

    /// Plays the turn that the request is at: as many as the model has spoken in it.
    pub async fn stateless(format: ModelFormat, turns: Vec<Turn>) -> Self {
        Self::serve(format, Source::ByPlace(turns)).await
    }

    /// Answers each request as the test says.
    pub async fn answering(
        format: ModelFormat,
        answer: impl Fn(&ModelRequest) -> Turn + Send + Sync + 'static,
    ) -> Self {
        Self::serve(format, Source::Made(Box::new(answer))).await
    }

    /// As [`ModelServer::stateless`], in next to no time: nothing is parsed, checked or kept. The last turn answers what
    /// is past it too.
    pub async fn quick(format: ModelFormat, turns: &[Turn]) -> Self {
        let bodies = turns.iter().enumerate().map(|(place, turn)| {
            let mut turn = turn.clone();
            // Some loops take a call for one that they know by its id.
            for (at, call) in turn.calls.iter_mut().enumerate() {
                call.id.get_or_insert_with(|| format!("call_{place}_{at}"));
            }
            let body = events(format, &turn).concat();
            [http::head("text/event-stream"), http::chunk(body.as_bytes()), http::END.to_vec()].concat()
        });
        Self::serve(format, Source::Quick(bodies.collect())).await
    }

    async fn serve(format: ModelFormat, source: Source) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            format,
            source,
            with_key: AtomicBool::new(true),
            came: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            requests: Mutex::default(),
            violations: Mutex::default(),
            arrived: watch::Sender::new(0),
        });
        let shared = Arc::clone(&state);
        let listening = tokio::spawn(async move {
            // They end with the task that listens.
            let mut clients = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                clients.spawn(client(Arc::clone(&shared), stream));
            }
        });
        Self { url, state, listening }
    }

    /// Where clients go: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From here on, a client that sends a key is wrong.
    pub fn expect_no_key(&self) {
        self.state.with_key.store(false, Ordering::Relaxed);
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many came.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.state.came.load(Ordering::Relaxed)
    }

    /// How many connections were made.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Takes what was wrong with the requests: who asks for it judges it.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.violations.lock().unwrap())
    }

    /// Waits until so many requests have come.
    pub async fn arrived(&self, count: usize) {
        self.state.arrived.subscribe().wait_for(|came| *came >= count).await.unwrap();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.listening.abort();
        if !std::thread::panicking() {
            let violations = self.violations();
            assert!(violations.is_empty(), "requests that a provider would refuse:\n{}", violations.join("\n"));
        }
    }
}

fn events(format: ModelFormat, turn: &Turn) -> Vec<String> {
    match format {
        ModelFormat::Anthropic => anthropic::events(turn),
        ModelFormat::OpenAi | ModelFormat::Raw => openai::events(turn),
    }
}

async fn client(state: Arc<State>, mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut held = Vec::new();
    while let Some(incoming) = http::read(&mut stream, &mut held).await {
        let came = state.came.fetch_add(1, Ordering::Relaxed);
        let goes_on = if let Source::Quick(bodies) = &state.source {
            let spoken = std::str::from_utf8(&incoming.body).unwrap().matches(SPOKEN).count();
            http::write(&mut stream, &bodies[spoken.min(bodies.len() - 1)]).await
        } else {
            let request = state.take(incoming);
            let turn = state.turn(came, &request);
            state.arrived.send_modify(|arrived| *arrived += 1);
            play(&state, &mut stream, &turn).await
        };
        if !goes_on {
            break;
        }
    }
}

/// How a message of the model's begins in the bytes of a request.
const SPOKEN: &str = "\"role\":\"assistant\"";

impl State {
    /// Keeps a request, and what is wrong with it.
    fn take(&self, incoming: Incoming) -> ModelRequest {
        let Incoming { method, path, headers, body } = incoming;
        let mut wrong = Vec::new();
        let parsed = serde_json::from_slice::<Value>(&body);
        if let Err(error) = &parsed {
            wrong.push(format!("its body is not JSON: {error}"));
        }
        let request = ModelRequest { path, headers, body: parsed.unwrap_or_default() };
        if method != "POST" {
            wrong.push(format!("its method is {method}"));
        }
        self.check_key(&request, &mut wrong);
        let (path, findings) = match self.format {
            ModelFormat::Anthropic => ("/v1/messages", anthropic::check(&request.body).0),
            ModelFormat::OpenAi => ("/v1/chat/completions", openai::check(&request.body).0),
            ModelFormat::Raw => (request.path.as_str(), Vec::new()),
        };
        if request.path != path {
            wrong.push(format!("its path is {}", request.path));
        }
        wrong.extend(findings);
        let number = self.requests.lock().unwrap().len() + 1;
        let wrong = wrong.into_iter().map(|what| format!("request {number}: {what}"));
        self.violations.lock().unwrap().extend(wrong);
        self.requests.lock().unwrap().push(request.clone());
        request
    }

    /// The key is where it belongs, and nowhere else.
    fn check_key(&self, request: &ModelRequest, wrong: &mut Vec<String>) {
        let key = ModelServer::KEY;
        let (name, value) = match self.format {
            ModelFormat::Anthropic => ("x-api-key", key.to_owned()),
            ModelFormat::OpenAi => ("authorization", format!("Bearer {key}")),
            ModelFormat::Raw => return,
        };
        let header = request.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
        let expected = self.with_key.load(Ordering::Relaxed).then_some(value.as_str());
        if header != expected {
            wrong.push(format!("its header {name} is {header:?}"));
        }
        let elsewhere = request.headers.iter().filter(|(header, _)| header != name);
        let elsewhere =
            elsewhere.map(|(_, value)| value.as_str()).chain([request.path.as_str()]).any(|text| text.contains(key));
        if elsewhere || request.body.to_string().contains(key) {
            wrong.push("its key is where no key belongs".to_owned());
        }
        let versioned = request.headers.iter().any(|(header, _)| header == "anthropic-version");
        if versioned != (self.format == ModelFormat::Anthropic) {
            wrong.push("its header anthropic-version is missing, or there for another".to_owned());
        }
    }

    fn turn(&self, came: usize, request: &ModelRequest) -> Turn {
        let messages = request.body["messages"].as_array().into_iter().flatten();
        let spoken = messages.filter(|message| message["role"] == "assistant").count();
        let found = match &self.source {
            Source::InOrder(turns) => turns.get(came).cloned(),
            Source::ByPlace(turns) => turns.get(spoken).cloned(),
            Source::Made(answer) => Some(answer(request)),
            Source::Quick(_) => None,
        };
        found.unwrap_or_else(|| {
            self.violations.lock().unwrap().push(format!("request {} is one more than there are turns", came + 1));
            Turn::fault(Fault::Status { code: 400, headers: Vec::new(), body: "no turn is left".to_owned() })
        })
    }
}

/// Says a turn; whether the connection goes on.
async fn play(state: &State, stream: &mut TcpStream, turn: &Turn) -> bool {
    let mut events = events(state.format, turn);
    let after = match &turn.fault {
        None => events.len(),
        Some(Fault::Status { code, headers, body }) => {
            return http::write(stream, &http::whole(*code, headers, "application/json", body)).await;
        }
        Some(Fault::Raw { content_type, body }) => {
            return http::write(stream, &http::whole(200, &[], content_type, body)).await;
        }
        Some(Fault::Silence) => return std::future::pending().await,
        Some(Fault::Flood(bytes)) => {
            flood(state.format, &mut events, *bytes);
            events.len()
        }
        Some(
            Fault::StallAfter(after)
            | Fault::CutAfter(after)
            | Fault::EndAfter(after)
            | Fault::ResetAfter(after)
            | Fault::ErrorAfter(after, ..),
        ) => *after,
    };
    events.truncate(after);
    if let Some(Fault::ErrorAfter(_, kind, message)) = &turn.fault {
        events.push(match state.format {
            ModelFormat::Anthropic => anthropic::error(kind, message),
            ModelFormat::OpenAi | ModelFormat::Raw => openai::error(kind, message),
        });
    }
    if !write_body(stream, turn, &events.concat()).await {
        return false;
    }
    match &turn.fault {
        Some(Fault::StallAfter(_)) => std::future::pending().await,
        Some(Fault::CutAfter(_)) => false,
        Some(Fault::ResetAfter(_)) => {
            stream.set_zero_linger().unwrap();
            false
        }
        _ => http::write(stream, http::END).await,
    }
}

async fn write_body(stream: &mut TcpStream, turn: &Turn, body: &str) -> bool {
    let body = body.as_bytes();
    let pieces = match (turn.shape.torn_at, turn.shape.torn_bytes) {
        (Some(at), _) => vec![&body[..at.min(body.len())], &body[at.min(body.len())..]],
        (None, 0) => vec![body],
        (None, bytes) => body.chunks(bytes).collect(),
    };
    let mut out = http::head("text/event-stream");
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        // A chunk of its own: a client's HTTP hands it over by itself, however TCP joins the bytes.
        out.extend(http::chunk(piece));
    }
    http::write(stream, &out).await
}

/// Says a word again and again, right after the beginning.
fn flood(format: ModelFormat, events: &mut Vec<String>, bytes: usize) {
    let word = "so much ".repeat(512);
    let turn = Turn::text(&word.replace(' ', "_"));
    let said = self::events(format, &turn).into_iter().find(|event| event.contains("so_much")).unwrap();
    let times = bytes / said.len() + 1;
    let place = events.iter().position(|event| event.contains("Hello")).unwrap_or(1);
    events.splice(place..place, std::iter::repeat_n(said, times));
}
