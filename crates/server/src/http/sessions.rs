//! The MCP sessions of one token with one profile.
//!
//! rmcp's own sessions belong to whoever knows their number, end after a while even with a call under way, and are as many as a client
//! opens. Here each caller has a keeper of its own, so that another's number is an unknown one; a session ends when nothing is under
//! way in it and nobody listens; and there is a limit for each caller and one for all.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::HeaderMap;
use futures::Stream;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

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
}

struct Session {
    under_way: Arc<Mutex<HashSet<RequestId>>>,
    /// Streams on which somebody listens.
    listeners: Arc<AtomicUsize>,
    used: Mutex<Instant>,
    _permit: OwnedSemaphorePermit,
}

impl Session {
    fn is_idle_since(&self, idle: Duration) -> bool {
        lock(&self.under_way).is_empty()
            && self.listeners.load(Ordering::Acquire) == 0
            && lock(&self.used).elapsed() >= idle
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
    pub(crate) fn new(most: usize, of_all: Arc<Semaphore>) -> Self {
        let mut inner = LocalSessionManager::default();
        // Ours ends them, which knows what is under way.
        inner.session_config.keep_alive = None;
        Self { inner, most, of_all, open: Mutex::default(), refused: AtomicBool::new(false) }
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

    /// Ends all.
    pub(crate) async fn end_all(&self) {
        let all: Vec<SessionId> = lock(&self.open).keys().cloned().collect();
        for id in all {
            let _ = self.close_session(&id).await;
        }
    }

    fn find(&self, id: &SessionId) -> Option<Arc<Session>> {
        let session = lock(&self.open).get(id).cloned()?;
        *lock(&session.used) = Instant::now();
        Some(session)
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
        let session = Session {
            under_way: Arc::default(),
            listeners: Arc::default(),
            used: Mutex::new(Instant::now()),
            _permit: permit,
        };
        let watched = Watched { inner: transport, under_way: Arc::clone(&session.under_way) };
        lock(&self.open).insert(id.clone(), Arc::new(session));
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
        Ok(self.find(id).is_some() && self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        lock(&self.open).remove(id);
        Ok(self.inner.close_session(id).await?)
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
        self.find(id);
        Ok(self.inner.accept_message(id, message).await?)
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

/// A session's transport that knows which requests are not answered.
pub(crate) struct Watched {
    inner: Inner,
    under_way: Arc<Mutex<HashSet<RequestId>>>,
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
        let message = self.inner.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => {
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
            *lock(&session.used) = Instant::now();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
