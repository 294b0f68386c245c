//! What happens, as it happens: the rows of a project's audit, or the steps of a session, as server-sent events.
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
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::Filter;

use super::answers::SessionStep;
use super::audit_row::AuditRow;
use super::auth::Principal;
use super::envelope::Reply;
use super::routes::{AFTER, Asked, Parameter};

/// How often a listener hears that the connection is there, and its token is looked at again.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Rows that are read at once.
const PAGE_ROWS: i64 = 100;
/// The content type of a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";
/// How often a session is looked at for new steps.
const STEPS_EVERY: Duration = Duration::from_millis(200);

/// The header with the number of the last event that was heard.
pub(crate) const LAST_EVENT: Parameter =
    Parameter::number("Last-Event-ID", "The number of the last event that was heard; it counts before `after`");

/// Where the parts of a stream come from.
trait Source: Send + 'static {
    /// The next part; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;
}

/// What no reader takes for an event.
const ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Looks now and then whether a token still holds.
struct Checked {
    principal: Arc<Principal>,
    /// When it was looked at last.
    at: Instant,
}

impl Checked {
    fn new(principal: Arc<Principal>) -> Self {
        Self { principal, at: Instant::now() }
    }

    async fn holds(&mut self) -> bool {
        if self.at.elapsed() < ALIVE_EVERY {
            return true;
        }
        self.at = Instant::now();
        self.principal.is_valid().await
    }
}

/// Listens to the audit.
struct Listener {
    token: Checked,
    /// The last row that was sent.
    last: i64,
    /// Keeps the task that looks.
    _looks: Arc<watch::Sender<i64>>,
    end: watch::Receiver<i64>,
}

impl Source for Listener {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.token.holds().await {
                return None;
            }
            if *self.end.borrow_and_update() > self.last {
                return self.rows().await;
            }
            tokio::select! {
                changed = self.end.changed() => changed.ok()?,
                () = tokio::time::sleep(ALIVE_EVERY) => return Some(ALIVE),
            }
        }
    }
}

impl Listener {
    async fn rows(&mut self) -> Option<Bytes> {
        let filter = Filter { after_seq: self.last, limit: PAGE_ROWS, ..Filter::default() };
        let project = &self.token.principal.project;
        let rows = match project.reader.audit(project.id, &filter).await {
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
            text.push_str(&sent(seq, &event, &AuditRow::of(row))?);
        }
        Some(Bytes::from(text))
    }
}

/// An event as it is sent.
fn sent(number: i64, event: &str, data: &impl Serialize) -> Option<String> {
    Some(format!("id: {number}\nevent: {event}\ndata: {}\n\n", serde_json::to_string(data).ok()?))
}

/// Follows a session, whether or not it runs: somebody may go on with it.
struct Follower {
    token: Checked,
    session: String,
    /// The last step that was sent.
    last: i64,
}

impl Source for Follower {
    async fn next(&mut self) -> Option<Bytes> {
        let quiet = Instant::now();
        loop {
            if !self.token.holds().await {
                return None;
            }
            let project = &self.token.principal.project;
            let steps = match project.sessions.steps(project.id, &self.session, self.last, PAGE_ROWS).await {
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

/// The rows of the audit.
pub(crate) async fn rows(asked: Asked) -> Result<Reply, ToolError> {
    let project = Arc::clone(&asked.principal.project);
    let heard = heard(&asked)?;
    let (looks, end) = asked.ends.follow(&project).await?;
    let last = match heard {
        Some(heard) => heard,
        None => project.reader.audit_end(project.id).await?,
    };
    let listener = Listener { token: Checked::new(asked.principal), last, _looks: looks, end };
    Ok(streamed(listener, asked.life))
}

/// The steps of a session.
pub(crate) async fn steps(asked: Asked) -> Result<Reply, ToolError> {
    let project = &asked.principal.project;
    let session = project.sessions.get(project.id, asked.part("session")).await?.id;
    let last = heard(&asked)?.unwrap_or(-1);
    Ok(streamed(Follower { token: Checked::new(asked.principal), session, last }, asked.life))
}

fn streamed(source: impl Source, life: CancellationToken) -> Reply {
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
    Reply::Raw(response)
}
