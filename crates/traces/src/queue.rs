//! Spans on their way to the collector: a bounded queue, and one task that sends what is in it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanData;
use prost::Message;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_outbound::{Collector, CollectorError};

use crate::OnLost;
use crate::config::Batches;

/// How long what still waits at the end may take: whoever started the process may kill it a few seconds after it was told to end.
const CLOSE_MAX: Duration = Duration::from_secs(3);
/// How often a message is sent at most, the first time included.
const ATTEMPTS_MAX: u32 = 4;
/// The first wait between attempts; each further one is twice as long.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// Longest wait that a collector may ask for.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often it is said that spans are lost.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Characters of what a collector says.
const SAID_CHARS_MAX: usize = 200;

/// Where spans wait.
pub(crate) struct Queue {
    waiting: mpsc::Sender<SpanData>,
    counts: Arc<Counts>,
    ending: CancellationToken,
    sending: Mutex<Option<JoinHandle<()>>>,
}

/// What became of spans.
struct Counts {
    /// Put in and neither sent nor lost yet.
    open: AtomicU64,
    lost: AtomicU64,
    on_lost: OnLost,
}

impl Counts {
    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        (self.on_lost)(count);
    }

    /// These are neither waiting nor on their way any more.
    fn done(&self, count: u64) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl Queue {
    pub(crate) fn start(collector: Collector, resource: Resource, batches: Batches, on_lost: OnLost) -> Arc<Self> {
        let (waiting, taken) = mpsc::channel(batches.waiting_max);
        let counts = Arc::new(Counts { open: AtomicU64::new(0), lost: AtomicU64::new(0), on_lost });
        let ending = CancellationToken::new();
        let sender = Sender {
            collector,
            resource: ResourceAttributesWithSchema::from(&resource),
            batches,
            taken,
            counts: Arc::clone(&counts),
            ending: ending.clone(),
            told: None,
            told_lost: 0,
        };
        let sending = Mutex::new(Some(tokio::spawn(sender.run())));
        Arc::new(Self { waiting, counts, ending, sending })
    }

    /// Never waits: a span that finds no room is lost.
    pub(crate) fn put(&self, span: SpanData) {
        self.counts.open.fetch_add(1, Ordering::Relaxed);
        if self.waiting.try_send(span).is_err() {
            self.counts.done(1);
            self.counts.lose(1);
        }
    }

    /// Sends what waits, and says what was lost. What takes too long is lost, too.
    pub(crate) async fn close(&self) {
        self.ending.cancel();
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut sending) = sending else { return };
        if tokio::time::timeout(CLOSE_MAX, &mut sending).await.is_err() {
            sending.abort();
            // Until the task is gone, spans find room in its queue that nobody will send or count.
            let _ = sending.await;
        }
        let left = self.counts.open.swap(0, Ordering::Relaxed);
        if left > 0 {
            self.counts.lose(left);
        }
        let lost = self.counts.lost.load(Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "spans were lost: the collector of traces did not take them");
        }
    }
}

/// The task that sends.
struct Sender {
    collector: Collector,
    resource: ResourceAttributesWithSchema,
    batches: Batches,
    taken: mpsc::Receiver<SpanData>,
    counts: Arc<Counts>,
    ending: CancellationToken,
    /// When it was last said that spans are lost, and how many were by then.
    told: Option<Instant>,
    told_lost: u64,
}

impl Sender {
    async fn run(mut self) {
        while let Some(batch) = self.next().await {
            let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
            let failed = self.send(batch).await.err();
            self.counts.done(count);
            if failed.is_some() {
                self.counts.lose(count);
            }
            self.tell(failed);
        }
    }

    /// The spans of one message; none after the end.
    async fn next(&mut self) -> Option<Vec<SpanData>> {
        let most = self.batches.batch_max;
        let mut batch = Vec::new();
        tokio::select! {
            () = self.ending.cancelled() => self.taken.close(),
            _ = self.taken.recv_many(&mut batch, most) => {}
        }
        let gathered = tokio::time::sleep(self.batches.delay);
        tokio::pin!(gathered);
        while batch.len() < most {
            let room = most - batch.len();
            tokio::select! {
                biased;
                count = self.taken.recv_many(&mut batch, room) => if count == 0 { break },
                // Closed, so that what comes next is the last.
                () = self.ending.cancelled(), if !self.taken.is_closed() => self.taken.close(),
                () = &mut gathered, if !self.taken.is_closed() => break,
            }
        }
        Some(batch).filter(|batch| !batch.is_empty())
    }

    async fn send(&self, batch: Vec<SpanData>) -> Result<(), CollectorError> {
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let message = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let mut attempt = 1;
        loop {
            let error = match self.collector.send(message.clone()).await {
                Ok(answer) => {
                    self.hear(&answer);
                    return Ok(());
                }
                Err(error) => error,
            };
            let Some(asked) = error.may_pass().filter(|_| attempt < ATTEMPTS_MAX && !self.ending.is_cancelled()) else {
                return Err(error);
            };
            tracing::debug!(attempt, %error, "spans are sent again");
            tokio::select! {
                () = tokio::time::sleep(asked.map_or_else(|| wait(attempt), |asked| asked.min(WAIT_MAX))) => {}
                // One more attempt is made at the end.
                () = self.ending.cancelled() => {}
            }
            attempt += 1;
        }
    }

    /// A collector may take a message and leave out some of its spans.
    fn hear(&self, answer: &[u8]) {
        let refused = ExportTraceServiceResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
        let Some(refused) = refused.filter(|refused| refused.rejected_spans > 0) else { return };
        let why: String = refused.error_message.chars().take(SAID_CHARS_MAX).collect();
        tracing::warn!(count = refused.rejected_spans, why, "the collector of traces has refused spans");
        self.counts.lose(u64::try_from(refused.rejected_spans).unwrap_or(0));
    }

    /// Says that spans are lost: at once, and then once a minute.
    fn tell(&mut self, failed: Option<CollectorError>) {
        let lost = self.counts.lost.load(Ordering::Relaxed);
        let is_new = lost > self.told_lost;
        if !is_new || self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return;
        }
        let why = failed.map_or_else(|| "they came faster than they were sent".to_owned(), |error| error.to_string());
        tracing::warn!(lost, collector = self.collector.origin(), why, "spans were lost");
        (self.told, self.told_lost) = (Some(Instant::now()), lost);
    }
}

/// The wait after an attempt, counted from 1. Half of it is by chance: those who were turned away together shall not come back
/// together.
fn wait(attempt: u32) -> Duration {
    let full = WAIT_FIRST.saturating_mul(1 << (attempt - 1).min(8));
    full / 2 + (full / 2).mul_f64(fastrand::f64())
}
