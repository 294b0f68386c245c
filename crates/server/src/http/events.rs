//! What happens in a project, as it happens: the rows of its audit and the steps of its sessions as server-sent events; or all of the steps
//! of one session.
//!
//! The stream is numbered, durable and one for all processes, so a number is all that a listener has to remember. A listener who has heard
//! all but what has just happened is handed that; whoever is behind reads from the database, so a slow one keeps nothing in memory and
//! misses nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use futures::stream;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::Position;

use super::answers::SessionStep;
use super::auth::Principal;
use super::ends::{Known, PAGE_EVENTS};
use super::envelope::Reply;
use super::routes::{AFTER, Asked, Parameter};
use super::told::Told;

/// How often a listener hears that the connection is there.
pub(crate) const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Steps that are read at once.
const PAGE_STEPS: i64 = 100;
/// How often a session is looked at for new steps.
const STEPS_EVERY: Duration = Duration::from_millis(200);
/// The content type of a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";
/// What no reader takes for an event.
pub(crate) const ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// The header with the number of the last event that was heard.
pub(crate) const LAST_EVENT: Parameter =
    Parameter::number("Last-Event-ID", "The number of the last event that was heard; it counts before `after`");

/// Where the parts of a stream come from.
pub(crate) trait Source: Send + 'static {
    /// The next part; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

struct Listener {
    principal: Arc<Principal>,
    /// Since when it listens.
    since: Instant,
    /// When something was sent last.
    spoken: Instant,
    /// The last event that was sent.
    last: Position,
    known: watch::Receiver<Known>,
}

impl Source for Listener {
    async fn next(&mut self) -> Option<Bytes> {
        let part = self.part().await;
        self.spoken = Instant::now();
        part
    }
}

impl Listener {
    async fn part(&mut self) -> Option<Bytes> {
        loop {
            let known = self.known.borrow_and_update().clone();
            if known.callers.at > self.since && !self.principal.is_among(&known.callers.tokens, &known.callers.members)
            {
                return None;
            }
            if known.end.number() > self.last.number() {
                return self.events(&known).await;
            }
            tokio::select! {
                changed = self.known.changed() => changed.ok()?,
                // A comment, which every reader passes over.
                () = tokio::time::sleep_until(self.spoken + ALIVE_EVERY) => return Some(ALIVE),
            }
        }
    }

    async fn events(&mut self, known: &Known) -> Option<Bytes> {
        if self.last.number() >= known.latest_after.number() {
            return Some(self.tell(&known.latest));
        }
        let project = &self.principal.project;
        let read = project.reader.stream(project.id, self.last, PAGE_EVENTS).await.map_err(ToolError::from);
        match read.and_then(|events| events.into_iter().map(Told::of).collect::<Result<Vec<_>, _>>()) {
            Ok(events) => Some(self.tell(&events)),
            // The listener comes again, and asks for what came after its last.
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends");
                None
            }
        }
    }

    /// The text of what it has not heard.
    fn tell(&mut self, events: &[Told]) -> Bytes {
        let heard = self.last.number();
        let fresh: Vec<&Told> = events.iter().filter(|event| event.position.number() > heard).collect();
        if let Some(last) = fresh.last() {
            self.last = last.position;
        }
        fresh.iter().map(|event| event.text.as_str()).collect::<String>().into()
    }
}

/// An event as it is sent.
fn sent(number: i64, event: &str, data: &impl Serialize) -> Option<String> {
    Some(format!("id: {number}\nevent: {event}\ndata: {}\n\n", serde_json::to_string(data).ok()?))
}

/// Follows a session, whether or not it runs: somebody may go on with it.
struct Follower {
    principal: Arc<Principal>,
    /// When its token was looked at last.
    checked: Instant,
    session: String,
    /// The last step that was sent.
    last: i64,
}

impl Source for Follower {
    async fn next(&mut self) -> Option<Bytes> {
        let quiet = Instant::now();
        loop {
            if self.checked.elapsed() >= ALIVE_EVERY {
                self.checked = Instant::now();
                if !self.principal.is_valid().await {
                    return None;
                }
            }
            let project = &self.principal.project;
            let steps = match project.steps(&self.session, self.last, PAGE_STEPS).await {
                Ok(steps) => steps,
                Err(error) => {
                    tracing::warn!(%error, session = self.session, "a stream of steps ends");
                    return None;
                }
            };
            if let Some(last) = steps.last() {
                self.last = last.seq;
                let all = steps.into_iter().map(|step| sent(step.seq, "step", &SessionStep::from(step)));
                return all.collect::<Option<String>>().map(Bytes::from);
            }
            if quiet.elapsed() >= ALIVE_EVERY {
                return Some(ALIVE);
            }
            tokio::time::sleep(STEPS_EVERY).await;
        }
    }
}

/// After which number a listener goes on.
fn heard(asked: &Asked) -> Result<Option<i64>, ToolError> {
    let Some(last) = asked.headers.get(LAST_EVENT.name) else { return asked.number(AFTER.name) };
    let number = last.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || ToolError::new(ErrorKind::Validation, "`Last-Event-ID` is the number of an event");
    number.map(Some).ok_or_else(wrong)
}

/// The stream of a project.
pub(crate) async fn rows(asked: Asked) -> Result<Reply, ToolError> {
    let project = Arc::clone(&asked.principal.project);
    let heard = heard(&asked)?;
    let (since, known) = (Instant::now(), asked.ends.follow(&project).await?);
    let last = match heard {
        Some(heard) => project.reader.position(project.id, heard).await?,
        None => project.reader.stream_end(project.id).await?,
    };
    Ok(Reply::Raw(streamed(Listener { principal: asked.principal, since, spoken: since, last, known }, asked.life)))
}

/// The steps of a session.
pub(crate) async fn steps(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    let session = project.sessions.get(project.id, asked.part("session")).await?.id;
    let last = heard(&asked)?.unwrap_or(-1);
    let follower = Follower { principal: asked.principal, checked: Instant::now(), session, last };
    Ok(Reply::Raw(streamed(follower, asked.life)))
}

/// The answer that is such a stream, until the server ends.
pub(crate) fn streamed(source: impl Source, life: CancellationToken) -> Response<Body> {
    let parts = stream::unfold((source, life), |(mut source, life)| async move {
        tokio::select! {
            part = source.next() => Some((Ok::<_, std::convert::Infallible>(part?), (source, life))),
            () = life.cancelled() => None,
        }
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A reverse proxy that collects answers would keep events to itself.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
