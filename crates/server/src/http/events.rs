//! What happens in a project, as it happens: the rows of its audit as server-sent events.
//!
//! The audit is numbered, durable and one for all processes, so a number is all that a listener has to remember. One task for each project
//! looks for new rows while anybody listens; the listeners read them from the database, so a slow one keeps nothing in memory and
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
use toolhost_store::Filter;

use super::audit_row::AuditRow;
use super::auth::Principal;
use super::envelope::Reply;
use super::routes::Asked;

/// How often a listener hears that the connection is there, and its token is looked at again.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Rows that are read at once.
const PAGE_ROWS: i64 = 100;
/// The header with the number of the last event that was heard.
const LAST: &str = "last-event-id";

struct Listener {
    principal: Arc<Principal>,
    /// When its token was looked at last.
    checked: Instant,
    /// The last row that was sent.
    last: i64,
    /// Keeps the task that looks.
    _looks: Arc<watch::Sender<i64>>,
    end: watch::Receiver<i64>,
}

impl Listener {
    /// The next part of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.checked.elapsed() >= ALIVE_EVERY {
                self.checked = Instant::now();
                if !self.principal.is_valid().await {
                    return None;
                }
            }
            if *self.end.borrow_and_update() > self.last {
                return self.rows().await;
            }
            tokio::select! {
                changed = self.end.changed() => changed.ok()?,
                // A comment, which every reader passes over.
                () = tokio::time::sleep(ALIVE_EVERY) => return Some(Bytes::from_static(b":\n\n")),
            }
        }
    }

    async fn rows(&mut self) -> Option<Bytes> {
        let filter = Filter { after_seq: self.last, limit: PAGE_ROWS, ..Filter::default() };
        let rows = match self.principal.project.reader.audit(self.principal.project.id, &filter).await {
            Ok(rows) => rows,
            // The listener comes again, and asks for what came after its last.
            Err(error) => {
                tracing::warn!(%error, "a stream of events ends");
                return None;
            }
        };
        let mut text = String::new();
        for row in rows {
            self.last = row.seq;
            let (seq, event) = (row.seq, row.event.clone());
            let row = serde_json::to_string(&AuditRow::of(row)).ok()?;
            text.push_str(&format!("id: {seq}\nevent: {event}\ndata: {row}\n\n"));
        }
        Some(Bytes::from(text))
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
    let (looks, end) = asked.ends.follow(&project).await?;
    let last = match heard {
        Some(heard) => heard,
        None => project.reader.audit_end(project.id).await?,
    };
    let listener = Listener { principal: asked.principal, checked: Instant::now(), last, _looks: looks, end };
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
