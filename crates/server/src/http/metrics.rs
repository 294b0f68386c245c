//! What is counted of a server, in the OpenMetrics text format (Prometheus).
//!
//! No label holds a text that a caller chose: tools are those of the registry, operations those of the table of routes, rules
//! those of the operator.

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};
use toolhost_host::{CallObserver, EndedCall};

use super::projects::OpenProject;

/// Upper bounds of times in seconds. Those of the conventions for generative AI begin at 10 ms, which most calls are faster than.
const SECONDS: [f64; 18] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0,
    300.0,
];
/// Upper bounds of the time a person takes, seconds.
const PERSON_SECONDS: [f64; 10] = [1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];
/// How a tool is called that there is not.
const OTHER: &str = "_OTHER";
/// The prefix of all names.
const PREFIX: &str = "toolhost";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    effect: &'static str,
    outcome: &'static str,
    door: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StageLabels {
    stage: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RuleLabels {
    rule: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AnswerLabels {
    answer: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProjectLabels {
    project: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FenceLabels {
    project: String,
    tier: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SessionLabels {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct VersionLabels {
    version: String,
}

/// Makes the histograms of a family.
#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// The counters of a server.
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<StageLabels, Histogram, Buckets>,
    denials: Family<RuleLabels, Counter>,
    answer_seconds: Family<AnswerLabels, Histogram, Buckets>,
    requests: Family<RequestLabels, Counter>,
    failed_logins: Counter,
    lost_spans: Counter,
    sessions: Family<SessionLabels, Gauge>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    #[must_use]
    pub fn new(version: &str) -> Arc<Self> {
        let mut registry = Registry::with_prefix(PREFIX);
        let calls = Family::default();
        registry.register("calls", "Calls that have ended, by tool, effect, outcome and door", calls.clone());
        let call_seconds = Family::new_with_constructor(Buckets(&SECONDS));
        let help = "Where the time of calls went: in the gate, waiting for a person or a place, or running";
        registry.register_with_unit("call_stage", help, Unit::Seconds, call_seconds.clone());
        let denials = Family::default();
        registry.register("denials", "Calls that policy denied, by rule", denials.clone());
        let answer_seconds = Family::new_with_constructor(Buckets(&PERSON_SECONDS));
        let help = "How long after the question a person gave an answer that a call has used";
        registry.register_with_unit("answer", help, Unit::Seconds, answer_seconds.clone());
        let requests = Family::default();
        registry.register("http_requests", "Requests, by operation and HTTP status", requests.clone());
        let failed_logins = Counter::default();
        registry.register("failed_logins", "Requests with a token that opens nothing", failed_logins.clone());
        let lost_spans = Counter::default();
        let help = "Spans of traces that the collector did not take";
        registry.register("lost_spans", help, lost_spans.clone());
        let sessions = Family::default();
        registry.register("mcp_sessions", "MCP sessions over HTTP, awake or at rest", sessions.clone());
        let build = Family::<VersionLabels, Gauge>::default();
        build.get_or_create(&VersionLabels { version: version.to_owned() }).set(1);
        registry.register("build_info", "The version that runs", build);
        Arc::new(Self {
            registry,
            calls,
            call_seconds,
            denials,
            answer_seconds,
            requests,
            failed_logins,
            lost_spans,
            sessions,
        })
    }

    pub(crate) fn request(&self, operation: &'static str, status: u16) {
        self.requests.get_or_create(&RequestLabels { operation, status }).inc();
    }

    /// Counts an MCP session that is awake, or at rest, from now on; `by` is -1 for one that is so no longer.
    pub(crate) fn session(&self, rests: bool, by: i64) {
        let state = if rests { "resting" } else { "awake" };
        self.sessions.get_or_create(&SessionLabels { state }).inc_by(by);
    }

    pub(crate) fn failed_login(&self) {
        self.failed_logins.inc();
    }

    /// Counts spans of traces that were lost.
    pub fn lost_spans(&self, count: u64) {
        self.lost_spans.inc_by(count);
    }

    /// All of it as text, with what is true of these projects now.
    pub(crate) async fn text(&self, open: &[Arc<OpenProject>]) -> Result<String, fmt::Error> {
        let mut now = Registry::with_prefix(PREFIX);
        let asks = gauges(&mut now, "asks_open", "What people are asked and have not answered");
        let calls = gauges(&mut now, "calls_open", "Calls that have not ended");
        let running = gauges(&mut now, "calls_running", "Calls that hold a place among those that run at once");
        let fences = gauges(&mut now, "fence_info", "The fence of commands");
        for project in open {
            let labels = ProjectLabels { project: project.key.clone() };
            let load = project.gate.load();
            calls.get_or_create(&labels).set(count(load.open));
            running.get_or_create(&labels).set(count(load.running));
            let tier = project.gate.fence().await.to_owned();
            fences.get_or_create(&FenceLabels { project: project.key.clone(), tier }).set(1);
            match project.gate.queue().asks().open_after(project.id, 0, 0).await {
                Ok(page) => {
                    asks.get_or_create(&labels).set(page.more);
                }
                Err(error) => tracing::warn!(%error, project = project.key, "open asks could not be counted"),
            }
        }
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, &now)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

fn gauges<L>(registry: &mut Registry, name: &str, help: &str) -> Family<L, Gauge>
where
    L: Clone + std::hash::Hash + Eq,
    Family<L, Gauge>: Metric + EncodeMetric,
{
    let family = Family::default();
    registry.register(name, help, family.clone());
    family
}

fn count(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

impl CallObserver for Metrics {
    fn ended(&self, call: &EndedCall<'_>) {
        let labels = CallLabels {
            tool: call.tool.unwrap_or(OTHER).to_owned(),
            effect: call.effect.map_or(OTHER, |effect| effect.as_str()),
            outcome: call.outcome,
            door: call.door.to_owned(),
        };
        self.calls.get_or_create(&labels).inc();
        let times = call.times;
        for (stage, took) in [("gate", times.gate()), ("waiting", times.waiting), ("running", times.running)] {
            self.call_seconds.get_or_create(&StageLabels { stage }).observe(took.as_secs_f64());
        }
        if let Some(rule) = call.denied_by {
            self.denials.get_or_create(&RuleLabels { rule: rule.to_owned() }).inc();
        }
        if let Some(answer) = call.answer {
            let labels = AnswerLabels { answer: if answer.agreed { "allowed" } else { "denied" } };
            self.answer_seconds.get_or_create(&labels).observe(answer.after.as_secs_f64());
        }
    }
}
