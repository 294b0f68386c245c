//! Connections: taking them, and telling each request where it comes from.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::HttpLimits;
use super::proxies::{TrustedProxies, counted_by};

/// How long a failure to take a connection is waited out: there are too many open files, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The least that the HTTP library takes for the head of a request, bytes: with less it panics.
const HEAD_BYTES_MIN: usize = 8 * 1024;

/// Where connections come from: a socket, with TLS or without. Whoever implements it sets `TCP_NODELAY`: without it an answer that is
/// written in two parts waits 40 ms for the client to acknowledge the first.
pub trait Listener: Send {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection, and where it comes from.
    fn accept(&mut self) -> impl Future<Output = std::io::Result<(Self::Stream, IpAddr)>> + Send;
}

/// Open connections, by where they come from.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is counted until it is dropped.
struct Counted {
    counts: Counts,
    address: IpAddr,
}

impl Counts {
    /// `None` where the address has that many open.
    fn count(&self, address: IpAddr, most: usize) -> Option<Counted> {
        let address = counted_by(address.to_canonical());
        let mut counts = self.lock();
        let count = counts.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Counted { counts: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        match counts.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.address)),
        }
    }
}

/// Answers connections until it is stopped. Those that are open then can be waited for. One that is too much for its address is closed
/// without an answer; behind a trusted proxy are many.
pub(crate) async fn answer_connections(
    router: &Router,
    mut listener: impl Listener,
    (limits, proxies): (HttpLimits, &TrustedProxies),
    stop: &CancellationToken,
) -> GracefulShutdown {
    let connections = Arc::new(Semaphore::new(limits.connections));
    let counts = Counts::default();
    let graceful = GracefulShutdown::new();
    loop {
        let taken = tokio::select! {
            taken = take(&mut listener, &connections) => taken,
            () = stop.cancelled() => return graceful,
        };
        match taken {
            Ok((stream, address, permit)) => {
                let most =
                    if proxies.trusts(address.to_canonical()) { usize::MAX } else { limits.connections_of_address };
                match counts.count(address, most) {
                    Some(counted) => {
                        serve_connection(stream, address, (permit, counted), router.clone(), &graceful, limits);
                    }
                    None => tracing::debug!(%address, "a connection too much of one address is closed"),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn take<L: Listener>(
    listener: &mut L,
    connections: &Arc<Semaphore>,
) -> std::io::Result<(L::Stream, IpAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    Ok((stream, address, permit))
}

fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: IpAddr,
    held: (OwnedSemaphorePermit, Counted),
    router: Router,
    graceful: &GracefulShutdown,
    limits: HttpLimits,
) {
    let service = tower_service(router, address);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes.max(HEAD_BYTES_MIN));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        // A client that goes away in the middle has done nothing that anybody has to know.
        if let Err(error) = watched.await {
            tracing::debug!(%error, "a connection ended");
        }
        drop(held);
    });
}

/// The router, for the connections of one address.
fn tower_service(
    router: Router,
    address: IpAddr,
) -> TowerToHyperService<
    impl tower_service::Service<
        hyper::Request<hyper::body::Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future = impl Send,
    > + Clone,
> {
    TowerToHyperService::new(WithAddress { router, address })
}

/// Tells each request where it comes from.
#[derive(Clone)]
struct WithAddress {
    router: Router,
    address: IpAddr,
}

impl tower_service::Service<hyper::Request<hyper::body::Incoming>> for WithAddress {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = axum::routing::future::RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: hyper::Request<hyper::body::Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Address(self.address));
        tower_service::Service::call(&mut self.router, request)
    }
}

/// Where a request comes from: who has connected, or the client of a trusted proxy that has.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) IpAddr);
