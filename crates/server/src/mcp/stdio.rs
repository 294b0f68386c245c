//! MCP over standard input and output.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::QuitReason;
use tokio_util::sync::CancellationToken;
use toolhost_contract::Session;

use super::door::Door;
use super::lines::Lines;
use super::service::McpService;
use super::slots::Slots;

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error(transparent)]
    Profile(#[from] toolhost_host::Error),
    #[error("the client did not open a session: {0}")]
    Handshake(String),
    #[error("the connection failed: {0}")]
    Connection(String),
}

/// Serves one client until it closes its side. Calls under way are then cancelled, and end with their rows written.
///
/// `stop` ends it from this side, as a signal does.
pub async fn serve_stdio(door: Door, stop: CancellationToken) -> Result<(), StdioError> {
    let (slots, when_idle) = (Slots::new(door.calls_max), Arc::clone(&door.when_idle));
    let (closing, gate) = (CancellationToken::new(), Arc::clone(&door.gate));
    let service = McpService::new(Arc::new(door), Arc::default(), Session::new(closing.clone()))?;
    let (reader, writer) = rmcp::transport::stdio_pipes();
    let lines = Lines::new(reader, writer, slots.clone(), closing.clone());
    let opened = tokio::select! {
        opened = service.serve(lines) => opened,
        // A client that has not opened a session has no call under way.
        () = stop.cancelled() => return Ok(()),
    };
    let running = match opened {
        Ok(running) => running,
        // A client that connects and leaves has done nothing wrong.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(error.to_string())),
    };
    let tidying = tokio::spawn(slots.when_idle(when_idle));
    let hang_up = running.cancellation_token();
    let waiting = running.waiting();
    tokio::pin!(waiting);
    let end = tokio::select! {
        end = &mut waiting => end,
        () = stop.cancelled() => {
            closing.cancel();
            hang_up.cancel();
            waiting.await
        }
    };
    tidying.abort();
    closing.cancel();
    // What takes longer the audit closes as unknown at the next start.
    gate.close().await;
    match end {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        Ok(other) => Err(StdioError::Connection(format!("{other:?}"))),
        Err(error) => Err(StdioError::Connection(error.to_string())),
    }
}
