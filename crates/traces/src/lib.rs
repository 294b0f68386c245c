//! Traces for OpenTelemetry: a span for each call of the gate, and for each run of a session with the replies of its model, sent to the
//! operator's collector by OTLP over HTTP.
//!
//! No span holds an argument, a result, a text of a person or of a model, or the name of a file: what is told are names of the host's own
//! tables, ids, times and counts. It refuses to delay what it tells of: spans wait in a bounded queue, and what finds no room is counted
//! and lost. Start with [`Traces`].

mod calls;
mod config;
mod queue;
mod sessions;
mod spans;
mod time;

pub use config::{Config, Told, Unusable};

use std::sync::Arc;

use toolhost_contract::Clock;
use toolhost_outbound::{Collector, CollectorError};

use crate::queue::Queue;
use crate::spans::Spans;

/// Who is told how many spans were lost.
pub type OnLost = Box<dyn Fn(u64) + Send + Sync>;

/// Makes spans and sends them, until it is closed.
pub struct Traces {
    spans: Arc<Spans>,
}

impl Traces {
    /// Begins to send, on the runtime that this is called on. Nothing is opened before the first span.
    ///
    /// # Errors
    /// If the configuration names no collector that spans could be sent to.
    pub fn start(
        config: Config,
        clock: Arc<dyn Clock>,
        version: &'static str,
        on_lost: OnLost,
    ) -> Result<Arc<Self>, CollectorError> {
        let collector = Collector::new(&config.endpoint, &config.headers, config.timeout)?;
        let resource = config.resource(version);
        let queue = Queue::start(collector, resource, config.batches, on_lost);
        let spans = Arc::new(Spans::new(config.sampler, clock, version, queue));
        Ok(Arc::new(Self { spans }))
    }

    /// Sends what still waits, for a bounded time.
    pub async fn close(&self) {
        self.spans.queue.close().await;
    }
}
