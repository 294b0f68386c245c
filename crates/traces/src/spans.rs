//! What all spans have: ids, the sampler's word, and the way into the queue.

use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{
    IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample, SpanData, SpanEvents, SpanLinks,
};
use toolhost_contract::Clock;
use toolhost_host::TraceParent;

use crate::queue::Queue;
use crate::time::Time;

/// Who makes the spans.
const SCOPE: &str = "toolhost";

/// Makes spans.
pub(crate) struct Spans {
    sampler: Sampler,
    ids: RandomIdGenerator,
    scope: InstrumentationScope,
    pub(crate) time: Time,
    pub(crate) queue: Arc<Queue>,
}

/// A span that has ended.
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) begins: SystemTime,
    pub(crate) ends: SystemTime,
    pub(crate) attributes: Vec<KeyValue>,
    pub(crate) links: Vec<SpanContext>,
    pub(crate) failed: bool,
}

impl Spans {
    pub(crate) fn new(sampler: Sampler, clock: Arc<dyn Clock>, version: &'static str, queue: Arc<Queue>) -> Self {
        let scope = InstrumentationScope::builder(SCOPE).with_version(version).build();
        Self { sampler, ids: RandomIdGenerator::default(), scope, time: Time::new(clock), queue }
    }

    /// The place of a new span in its trace, and whether it is told of.
    pub(crate) fn place(&self, parent: Option<&SpanContext>, kind: &SpanKind) -> SpanContext {
        let trace = parent.map_or_else(|| self.ids.new_trace_id(), SpanContext::trace_id);
        let around = Context::new();
        let around = match parent {
            Some(parent) => around.with_remote_span_context(parent.clone()),
            None => around,
        };
        let sampled = self.sampler.should_sample(Some(&around), trace, "", kind, &[], &[]);
        let flags = match sampled.decision {
            SamplingDecision::RecordAndSample => TraceFlags::SAMPLED,
            SamplingDecision::Drop | SamplingDecision::RecordOnly => TraceFlags::default(),
        };
        SpanContext::new(trace, self.ids.new_span_id(), flags, false, sampled.trace_state)
    }

    /// Puts a span at its place into the queue, if it is told of.
    pub(crate) fn end(&self, place: SpanContext, parent: Option<&SpanContext>, span: Span) {
        if !place.is_sampled() {
            return;
        }
        let mut links = SpanLinks::default();
        links.links.extend(span.links.into_iter().map(Link::with_context));
        self.queue.put(SpanData {
            span_context: place,
            parent_span_id: parent.map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: parent.is_some_and(SpanContext::is_remote),
            span_kind: span.kind,
            name: span.name.into(),
            start_time: span.begins,
            end_time: span.ends,
            attributes: span.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: if span.failed { Status::error("") } else { Status::Unset },
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// An operation that another program has begun.
pub(crate) fn remote(parent: &TraceParent) -> SpanContext {
    let flags = if parent.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    // What other systems have added is carried on, or left out whole where it is not as it has to be.
    let state: TraceState = parent.state.parse().unwrap_or_default();
    SpanContext::new(
        TraceId::from_bytes(parent.trace_id.to_be_bytes()),
        SpanId::from_bytes(parent.span_id.to_be_bytes()),
        flags,
        true,
        state,
    )
}

/// A span as the calls below it name it.
pub(crate) fn parent_of(place: &SpanContext) -> TraceParent {
    TraceParent {
        trace_id: u128::from_be_bytes(place.trace_id().to_bytes()),
        span_id: u64::from_be_bytes(place.span_id().to_bytes()),
        is_sampled: place.is_sampled(),
        state: place.trace_state().header(),
    }
}
