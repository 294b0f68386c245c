//! The MCP sessions of one token with one profile.
//!
//! rmcp's own sessions belong to whoever knows their number, end after a while even with a call under way, and are as many as a client
//! opens. Here each caller has a keeper of its own, so that another's number is an unknown one; a session ends when nothing is under
//! way in it and nobody listens; and there is a limit for each caller and one for all.
//!
//! The hard problem is memory: what rmcp keeps for a session, mostly queues, takes 90 KiB, and most sessions wait for their next request
//! most of the time. One in which nothing has happened for a while rests: what its client said of itself is kept, and rmcp begins it anew
//! with that when the next request comes. Replies that a client may fetch once more are kept for less time than that.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use super::metrics::Metrics;
use axum::http::HeaderMap;
use futures::Stream;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, SessionManager, SessionState, SessionStore, SessionStoreError,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use toolhost_contract::{BoxFuture, Session as Life};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";

type Inner = <LocalSessionManager as SessionManager>::Transport;

/// The sessions of one caller.
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    most: usize,
    /// A permit for each session of the server.
    of_all: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// A session was refused because there are too many.
    refused: AtomicBool,
    /// Ends with the caller's right to be here.
    life: Life,
    metrics: Arc<Metrics>,
    /// Held while a session is laid to rest, or woken.
    moving: tokio::sync::Mutex<()>,
}

struct Session {
    under_way: Arc<Mutex<HashSet<RequestId>>>,
    /// Streams on which somebody listens.
    listeners: Arc<AtomicUsize>,
    standing: Mutex<Standing>,
    /// What goes on in the background of it, and ends with it.
    life: Life,
    _permit: OwnedSemaphorePermit,
}

/// When a session was used, and whether rmcp has it.
struct Standing {
    used: Instant,
    /// What its client said of itself; `None` until it has begun.
    begun: Option<SessionState>,
    mode: Mode,
    /// Workers of rmcp that end because it rests. Each says then that the session is to be closed, which is not meant.
    ending: usize,
}

/// Whether rmcp has a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Awake,
    /// It has nothing of it.
    Resting,
    /// It begins it anew. Until its client has been introduced again, requests wait.
    Waking,
}

impl Session {
    fn is_idle_since(&self, idle: Duration) -> bool {
        self.has_nothing_to_do() && lock(&self.standing).used.elapsed() >= idle
    }

    fn has_nothing_to_do(&self) -> bool {
        lock(&self.under_way).is_empty() && self.listeners.load(Ordering::Acquire) == 0
    }

    /// Marks the session as resting if nobody has used it for this long. The check and the mark hold one lock: a request either finds the
    /// session resting, or has marked it as used before.
    fn rests_after(&self, idle: Duration) -> bool {
        let mut standing = lock(&self.standing);
        let rests = standing.used.elapsed() >= idle && standing.begun.is_some() && standing.mode == Mode::Awake;
        if !rests || !self.has_nothing_to_do() {
            return false;
        }
        standing.mode = Mode::Resting;
        standing.ending += 1;
        true
    }

    /// Whether it was being woken, and is awake from now on.
    fn wakes(&self) -> bool {
        let mut standing = lock(&self.standing);
        let is = standing.mode == Mode::Waking;
        if is {
            standing.mode = Mode::Awake;
        }
        is
    }

    /// Whether a worker of rmcp has said that the session is closed because it rests.
    fn is_end_of_worker(&self) -> bool {
        let mut standing = lock(&self.standing);
        let is = standing.ending > 0;
        standing.ending = standing.ending.saturating_sub(1);
        is
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("there are too many sessions")]
    TooMany,
    #[error(transparent)]
    Inner(#[from] LocalSessionManagerError),
}

impl Sessions {
    pub(crate) fn new(most: usize, of_all: Arc<Semaphore>, life: Life, metrics: Arc<Metrics>) -> Self {
        let mut inner = LocalSessionManager::default();
        // Ours ends them, which knows what is under way.
        inner.session_config.keep_alive = None;
        let (open, moving) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { inner, most, of_all, open, refused: AtomicBool::new(false), life, metrics, moving }
    }

    /// Whether a session was refused since this was asked last.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.swap(false, Ordering::AcqRel)
    }

    /// Whether the session that a request names is one of these.
    pub(crate) fn has(&self, headers: &HeaderMap) -> bool {
        let named = headers.get(SESSION).and_then(|id| id.to_str().ok());
        named.is_some_and(|id| lock(&self.open).contains_key(&SessionId::from(id.to_owned())))
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Ends the sessions in which nothing has happened for so long, nothing is under way, and nobody listens.
    pub(crate) async fn end_idle(&self, idle: Duration) {
        let ended: Vec<SessionId> = {
            let open = lock(&self.open);
            open.iter().filter(|(_, session)| session.is_idle_since(idle)).map(|(id, _)| id.clone()).collect()
        };
        for id in ended {
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!(%error, "an idle session did not end as it should");
            }
        }
    }

    /// Lets those rest in which nothing has happened for so long, nothing is under way, and nobody listens. Answers whether there was one.
    pub(crate) async fn rest_idle(&self, idle: Duration) -> bool {
        let mut is_one = false;
        let all: Vec<(SessionId, Arc<Session>)> =
            lock(&self.open).iter().map(|(id, session)| (id.clone(), Arc::clone(session))).collect();
        for (id, session) in all {
            let _moving = self.moving.lock().await;
            if !session.rests_after(idle) {
                continue;
            }
            is_one = true;
            self.metrics.session(false, -1);
            self.metrics.session(true, 1);
            if let Err(error) = self.inner.close_session(&id).await {
                tracing::debug!(%error, "an idle session does not rest as it should");
            }
        }
        is_one
    }

    /// Ends all.
    pub(crate) async fn end_all(&self) {
        let all: Vec<SessionId> = lock(&self.open).keys().cloned().collect();
        for id in all {
            let _ = self.close_session(&id).await;
        }
    }

    fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        let session = lock(&self.open).get(id).cloned()?;
        lock(&session.standing).used = Instant::now();
        Some(session)
    }

    fn watched(inner: Inner, session: &Session) -> Watched {
        Watched { inner, under_way: Arc::clone(&session.under_way), life: session.life.clone() }
    }

    fn listened<S>(&self, id: &SessionId, stream: S) -> Listened<S> {
        let session = self.find(id);
        if let Some(session) = &session {
            session.listeners.fetch_add(1, Ordering::AcqRel);
        }
        Listened { stream: Box::pin(stream), session }
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = Watched;

    async fn create_session(&self) -> Result<(SessionId, Watched), SessionError> {
        let permit = Arc::clone(&self.of_all).try_acquire_owned().ok().filter(|_| lock(&self.open).len() < self.most);
        let Some(permit) = permit else {
            self.refused.store(true, Ordering::Release);
            return Err(SessionError::TooMany);
        };
        let (id, transport) = self.inner.create_session().await?;
        let standing = Standing { used: Instant::now(), begun: None, mode: Mode::Awake, ending: 0 };
        let session = Session {
            under_way: Arc::default(),
            listeners: Arc::default(),
            standing: Mutex::new(standing),
            life: Life::new(self.life.child_token()),
            _permit: permit,
        };
        let watched = Self::watched(transport, &session);
        lock(&self.open).insert(id.clone(), Arc::new(session));
        self.metrics.session(false, 1);
        Ok((id, watched))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        let is_awake = self.find(id).is_some_and(|session| lock(&session.standing).mode == Mode::Awake);
        Ok(is_awake && self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        let session = lock(&self.open).get(id).cloned();
        if session.as_ref().is_some_and(|session| session.is_end_of_worker()) {
            return Ok(());
        }
        // Of two that close it at once, one takes it out.
        let removed = lock(&self.open).remove(id);
        let Some(session) = removed else { return Ok(self.inner.close_session(id).await?) };
        session.life.end();
        let mode = lock(&session.standing).mode;
        self.metrics.session(mode != Mode::Awake, -1);
        if mode == Mode::Resting { Ok(()) } else { Ok(self.inner.close_session(id).await?) }
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Watched>, SessionError> {
        let _moving = self.moving.lock().await;
        let Some(session) = self.find(&id) else { return Ok(RestoreOutcome::NotSupported) };
        match self.inner.restore_session(id).await? {
            RestoreOutcome::Restored(transport) => {
                lock(&session.standing).mode = Mode::Waking;
                Ok(RestoreOutcome::Restored(Self::watched(transport, &session)))
            }
            RestoreOutcome::AlreadyPresent => Ok(RestoreOutcome::AlreadyPresent),
            _ => Ok(RestoreOutcome::NotSupported),
        }
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let stream = self.inner.create_stream(id, message).await?;
        Ok(self.listened(id, stream))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        let session = self.find(id);
        // What rmcp says in the client's name when it begins the session anew, last.
        let is_awake = matches!(&message, JsonRpcMessage::Notification(said)
            if matches!(said.notification, ClientNotification::InitializedNotification(_)));
        self.inner.accept_message(id, message).await?;
        let waking = session.filter(|_| is_awake).filter(|session| session.wakes());
        if waking.is_some() {
            self.metrics.session(true, -1);
            self.metrics.session(false, 1);
        }
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let stream = self.inner.create_standalone_stream(id).await?;
        Ok(self.listened(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let stream = self.inner.resume(id, last_event_id).await?;
        Ok(self.listened(id, stream))
    }
}

/// What rmcp keeps of a session to begin it anew.
impl SessionStore for Sessions {
    fn load<'a, 'b, 'c>(&'a self, id: &'b str) -> BoxFuture<'c, Result<Option<SessionState>, SessionStoreError>>
    where
        'a: 'c,
        'b: 'c,
    {
        let session = lock(&self.open).get(id).cloned();
        let begun = session.and_then(|session| {
            let standing = lock(&session.standing);
            standing.begun.clone().filter(|_| standing.mode == Mode::Resting)
        });
        Box::pin(async { Ok(begun) })
    }

    fn store<'a, 'b, 'd, 'c>(
        &'a self,
        id: &'b str,
        state: &'d SessionState,
    ) -> BoxFuture<'c, Result<(), SessionStoreError>>
    where
        'a: 'c,
        'b: 'c,
        'd: 'c,
    {
        if let Some(session) = lock(&self.open).get(id) {
            lock(&session.standing).begun = Some(state.clone());
        }
        Box::pin(async { Ok(()) })
    }

    /// It has gone with the session.
    fn delete<'a, 'b, 'c>(&'a self, _: &'b str) -> BoxFuture<'c, Result<(), SessionStoreError>>
    where
        'a: 'c,
        'b: 'c,
    {
        Box::pin(async { Ok(()) })
    }
}

/// A session's transport that knows which requests are not answered, and tells each of its session.
pub(crate) struct Watched {
    inner: Inner,
    under_way: Arc<Mutex<HashSet<RequestId>>>,
    life: Life,
}

impl Transport<RoleServer> for Watched {
    type Error = <Inner as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let (sending, under_way) = (self.inner.send(item), Arc::clone(&self.under_way));
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                lock(&under_way).remove(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.inner.receive().await?;
        match &mut message {
            JsonRpcMessage::Request(request) => {
                request.request.extensions_mut().insert(self.life.clone());
                lock(&self.under_way).insert(request.id.clone());
            }
            // Its answer is not awaited any more.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    lock(&self.under_way).remove(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// A stream that somebody listens to.
struct Listened<S> {
    stream: Pin<Box<S>>,
    session: Option<Arc<Session>>,
}

impl<S: Stream> Stream for Listened<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl<S> Drop for Listened<S> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.listeners.fetch_sub(1, Ordering::AcqRel);
            lock(&session.standing).used = Instant::now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
