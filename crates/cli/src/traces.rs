//! Traces, where the standard variables of OpenTelemetry ask for them.

use std::sync::Arc;

use toolhost_agent::SessionObserver;
use toolhost_contract::SystemClock;
use toolhost_host::CallObserver;
use toolhost_traces::{OnLost, Told, Traces};

use crate::wire::Observers;

/// What sends the traces of this process, if the environment names a collector. What it says wrong is a warning: telemetry must not keep a
/// tool from working.
pub(crate) struct Tracing(Option<Arc<Traces>>);

impl Tracing {
    pub(crate) fn start() -> Self {
        Self::counting(Box::new(|_| {}))
    }

    /// The same for somebody who counts the spans that are lost.
    pub(crate) fn counting(on_lost: OnLost) -> Self {
        let told = Told::by(|name| std::env::var(name).ok());
        for unusable in told.unusable {
            tracing::warn!(
                variable = unusable.variable,
                "a variable of OpenTelemetry cannot be used: {}",
                unusable.why
            );
        }
        let Some(config) = told.config else { return Self(None) };
        match Traces::start(config, Arc::new(SystemClock::default()), env!("CARGO_PKG_VERSION"), on_lost) {
            Ok(traces) => Self(Some(traces)),
            Err(error) => {
                tracing::warn!(%error, "no traces are sent");
                Self(None)
            }
        }
    }

    /// The observers of calls and sessions: the traces, and another observer of calls beside them.
    pub(crate) fn observers(&self, besides: Option<Arc<dyn CallObserver>>) -> Observers {
        let traces = self.0.as_ref();
        let calls = traces.map(|traces| Arc::<Traces>::clone(traces) as Arc<dyn CallObserver>);
        let sessions = traces.map(|traces| Arc::<Traces>::clone(traces) as Arc<dyn SessionObserver>);
        Observers { calls: besides.into_iter().chain(calls).collect(), sessions }
    }

    /// Sends what still waits, for a bounded time.
    pub(crate) async fn close(&self) {
        if let Some(traces) = &self.0 {
            traces.close().await;
        }
    }
}
