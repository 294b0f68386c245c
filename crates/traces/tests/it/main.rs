//! What becomes of spans whose collector does not take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolhost_contract::{CallId, Effect};
use toolhost_host::{CallObserver, CallTimes, EndedCall};
use toolhost_testkit::{Answers, CollectorServer, FakeClock, until};
use toolhost_traces::{Told, Traces};

/// Spans that may wait in these tests.
const WAITING_MAX: u64 = 8;

struct Sending {
    traces: Arc<Traces>,
    lost: Arc<AtomicU64>,
}

impl Sending {
    fn to(collector: &CollectorServer) -> Self {
        let url = collector.url();
        let told = Told::by(|name| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(url.clone()),
            "OTEL_BSP_MAX_QUEUE_SIZE" => Some(WAITING_MAX.to_string()),
            _ => None,
        });
        let config = told.config.expect("it is on");
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let on_lost = Box::new(move |count| {
            counted.fetch_add(count, Ordering::Relaxed);
        });
        let traces = Traces::start(config, Arc::new(FakeClock::default()), "0", on_lost).expect("it can be sent to");
        Self { traces, lost }
    }

    /// So many calls end.
    fn calls(&self, count: u64) {
        for _ in 0..count {
            self.traces.ended(&EndedCall {
                id: &CallId::new("call-1"),
                tool: Some("file.read"),
                wire_name: Some("file_read"),
                effect: Some(Effect::Reads),
                origin: None,
                session: None,
                door: "test",
                outcome: "ok",
                denied_by: None,
                is_asked: false,
                answer: None,
                times: CallTimes::default(),
            });
        }
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The task that sends has no turn meanwhile: what is put in then is all that there is.
#[tokio::test(start_paused = true)]
async fn the_queue_is_bounded_and_each_lost_span_is_counted_once() {
    let collector = CollectorServer::start(Answers::Nothing).await;
    let sending = Sending::to(&collector);
    sending.calls(10_000);
    assert_eq!(sending.lost(), 10_000 - WAITING_MAX);
    sending.traces.close().await;
    assert_eq!(sending.lost(), 10_000);
    // Nobody waits for what comes later.
    sending.calls(1);
    assert_eq!(sending.lost(), 10_001);
}

#[tokio::test]
async fn what_waits_at_the_end_is_sent() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let sending = Sending::to(&collector);
    sending.calls(WAITING_MAX);
    sending.traces.close().await;
    assert_eq!((sending.lost(), collector.posted().len()), (0, 1));
}

/// What cannot be taken is not sent again.
#[tokio::test]
async fn a_refused_message_is_lost_and_the_next_one_is_sent() {
    let collector = CollectorServer::start(Answers::First(400)).await;
    let sending = Sending::to(&collector);
    sending.calls(WAITING_MAX);
    until("the message is lost", || sending.lost() >= WAITING_MAX).await;
    sending.calls(1);
    sending.traces.close().await;
    assert_eq!((sending.lost(), collector.posted().len()), (WAITING_MAX, 2));
}
