//! Connections: taking them, and telling each request where it comes from.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
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

/// Answers connections until it is stopped. Those that are open then can be waited for.
pub(crate) async fn answer_connections(
    router: &Router,
    mut listener: impl Listener,
    limits: HttpLimits,
    stop: &CancellationToken,
) -> GracefulShutdown {
    let connections = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    loop {
        let taken = tokio::select! {
            taken = take(&mut listener, &connections) => taken,
            () = stop.cancelled() => return graceful,
        };
        match taken {
            Ok((stream, address, permit)) => {
                serve_connection(stream, address, permit, router.clone(), &graceful, limits);
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
    permit: OwnedSemaphorePermit,
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
        drop(permit);
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
