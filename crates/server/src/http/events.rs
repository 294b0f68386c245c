//! What happens in a project, as it happens: the rows of its audit and the steps of its sessions as server-sent events.
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
use tokio::sync::watch;
use tokio::time::Instant;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::Position;

use super::auth::Principal;
use super::ends::{Known, PAGE_EVENTS};
use super::envelope::Reply;
use super::routes::Asked;
use super::told::Told;

/// How often a listener hears that the connection is there.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// The header with the number of the last event that was heard.
const LAST: &str = "last-event-id";

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

impl Listener {
    /// The next part of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let part = self.part().await;
        self.spoken = Instant::now();
        part
    }

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
                () = tokio::time::sleep_until(self.spoken + ALIVE_EVERY) => return Some(Bytes::from_static(b":\n\n")),
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

pub(crate) async fn stream(asked: Asked) -> Result<Reply, ToolError> {
    let project = Arc::clone(&asked.principal.project);
    let heard =
        match asked.headers.get(LAST) {
            Some(last) => {
                let number = last.to_str().ok().and_then(|text| text.parse().ok());
                Some(number.ok_or_else(|| {
                    ToolError::new(ErrorKind::Validation, "`Last-Event-ID` is the number of an event")
                })?)
            }
            None => asked.number("after")?,
        };
    let (since, known) = (Instant::now(), asked.ends.follow(&project).await?);
    let last = match heard {
        Some(heard) => project.reader.position(project.id, heard).await?,
        None => project.reader.stream_end(project.id).await?,
    };
    let listener = Listener { principal: asked.principal, since, spoken: since, last, known };
    let stopped = asked.life.clone();
    let parts = stream::unfold((listener, stopped), |(mut listener, stopped)| async move {
        tokio::select! {
            part = listener.next() => Some((Ok::<_, std::convert::Infallible>(part?), (listener, stopped))),
            () = stopped.cancelled() => None,
        }
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A reverse proxy that collects answers would keep events to itself.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(Reply::Raw(response))
}
