//! The page that Prometheus reads, on a listener of its own: it tells of all projects, and no token does.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, ToolError};

use super::connections::{Listener, answer_connections};
use super::visitors::Visitors;
use super::{Serving, TrustedProxies, envelope};

/// The content type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `GET /metrics` until it is stopped.
pub async fn serve_metrics(serving: Serving, listener: impl Listener, stop: CancellationToken) {
    let limits = serving.limits;
    let visitors = Arc::new(Visitors::new(serving.hosts.clone(), limits.failed_logins));
    let serving = Arc::new(serving);
    let page = move || {
        let serving = Arc::clone(&serving);
        async move { page(&serving).await }
    };
    let router = Router::new()
        .route("/metrics", get(page))
        .fallback(|| async { envelope::problem(&ToolError::new(ErrorKind::NotFound, "only /metrics is here")) })
        .layer(axum::middleware::from_fn(move |request: Request, next: axum::middleware::Next| {
            let visitors = Arc::clone(&visitors);
            async move {
                match visitors.check(request.method(), request.uri(), request.headers()) {
                    Ok(()) => next.run(request).await,
                    Err(error) => envelope::problem(&error),
                }
            }
        }));
    let graceful = answer_connections(&router, listener, (limits, &TrustedProxies::default()), &stop).await;
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("a reader of the metrics is still there at the end of the server");
    }
}

async fn page(serving: &Serving) -> Response<Body> {
    let open = serving.projects.opened().await;
    match serving.metrics.text(&open).await {
        Ok(text) => {
            let mut response = envelope::json_response(StatusCode::OK, text);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
            response
        }
        Err(error) => envelope::problem(&ToolError::internal(error)),
    }
}
