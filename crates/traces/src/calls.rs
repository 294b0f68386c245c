//! The span of a call, by the conventions for MCP and for generative AI, and those of its parts.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind};
use toolhost_contract::AGENT_DOOR;
use toolhost_host::{CallObserver, EndedCall, McpRequest, Transport};

use crate::Traces;
use crate::spans::{Span, remote};

/// What an operation of a tool is called.
const EXECUTE_TOOL: &str = "execute_tool";
/// The method that calls a tool.
const TOOLS_CALL: &str = "tools/call";
/// The kind of error of a call whose answer says that it is one: the request itself has succeeded.
const TOOL_ERROR: &str = "tool_error";
/// What has denied a call that no rule matched, as [`EndedCall::denied_by`] names it.
const DENIED_BY_EFFECT: &str = "effect";
/// Shorter waits for a place are not told.
const WAIT_MIN: Duration = Duration::from_millis(1);

impl CallObserver for Traces {
    fn ended(&self, call: &EndedCall<'_>) {
        let origin = call.origin;
        let parent = origin.and_then(|origin| origin.parent.as_ref()).map(remote);
        let request = origin.and_then(|origin| origin.request.as_ref());
        let kind = if request.is_some() { SpanKind::Server } else { SpanKind::Internal };
        let place = self.spans.place(parent.as_ref(), &kind);
        if !place.is_sampled() {
            return;
        }
        let ends = self.spans.time.now();
        let begins = ends.checked_sub(call.times.total).unwrap_or(ends);
        let failure = failure(call, request);
        let mut attributes = match request {
            Some(request) => of_request(request),
            None => Vec::new(),
        };
        attributes.extend(of_call(call, request));
        attributes.extend(failure.map(|kind| KeyValue::new("error.type", kind)));
        self.parts(call, &place, begins);
        let links = origin.and_then(|origin| origin.linked.as_ref()).map(remote).into_iter().collect();
        let name = name(call, request);
        let span = Span { name, kind, begins, ends, attributes, links, failed: failure.is_some() };
        self.spans.end(place, parent.as_ref(), span);
    }
}

impl Traces {
    /// The wait for a person or a place, and the run of the tool.
    fn parts(&self, call: &EndedCall<'_>, whole: &SpanContext, begun: std::time::SystemTime) {
        let times = call.times;
        let answer = call
            .answer
            .map(|answer| KeyValue::new("toolhost.answer", if answer.agreed { "allowed" } else { "denied" }));
        let wait = match call.is_asked {
            true => Some(("toolhost.gate.approve", answer)),
            false if times.waiting >= WAIT_MIN => Some(("toolhost.gate.wait", None)),
            false => None,
        };
        let wait = wait.map(|(name, answer)| (name, times.until_waiting, times.waiting, answer));
        let run = (!times.running.is_zero()).then_some(("toolhost.gate.run", times.until_running, times.running, None));
        for (name, after, took, attribute) in wait.into_iter().chain(run) {
            let begins = begun + after;
            let span = Span {
                name: name.to_owned(),
                kind: SpanKind::Internal,
                begins,
                ends: begins + took,
                attributes: attribute.into_iter().collect(),
                links: Vec::new(),
                failed: false,
            };
            self.spans.end(self.spans.place(Some(whole), &SpanKind::Internal), Some(whole), span);
        }
    }
}

/// The operation and what it is about, of which there are few.
fn name(call: &EndedCall<'_>, request: Option<&McpRequest>) -> String {
    let (operation, about) = match request {
        Some(McpRequest { method: TOOLS_CALL, .. }) => (TOOLS_CALL, call.wire_name),
        Some(McpRequest { method, prompt, .. }) => (*method, *prompt),
        None => (EXECUTE_TOOL, call.wire_name),
    };
    about.map_or_else(|| operation.to_owned(), |about| format!("{operation} {about}"))
}

/// Why a call has failed, of which there are few reasons.
fn failure(call: &EndedCall<'_>, request: Option<&McpRequest>) -> Option<&'static str> {
    match call.outcome {
        "ok" | "pending" => None,
        _ if request.is_some_and(|request| request.method == TOOLS_CALL) => Some(TOOL_ERROR),
        kind => Some(kind),
    }
}

fn of_request(request: &McpRequest) -> Vec<KeyValue> {
    let transport = match request.transport {
        Transport::Pipe => "pipe",
        Transport::Http => "tcp",
    };
    let mut attributes =
        vec![KeyValue::new("mcp.method.name", request.method), KeyValue::new("network.transport", transport)];
    if request.transport == Transport::Http {
        attributes.push(KeyValue::new("network.protocol.name", "http"));
    }
    let mut told = |name: &'static str, value: &Option<String>| {
        attributes.extend(value.clone().map(|value| KeyValue::new(name, value)));
    };
    told("mcp.session.id", &request.session);
    told("mcp.protocol.version", &request.protocol_version);
    told("jsonrpc.request.id", &request.id);
    attributes.extend(request.prompt.map(|prompt| KeyValue::new("gen_ai.prompt.name", prompt)));
    attributes
}

fn of_call(call: &EndedCall<'_>, request: Option<&McpRequest>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("toolhost.call.id", call.id.to_string()),
        KeyValue::new("toolhost.door", call.door.to_owned()),
        KeyValue::new("toolhost.outcome", call.outcome),
    ];
    if request.is_none_or(|request| request.method == TOOLS_CALL) {
        attributes.push(KeyValue::new("gen_ai.operation.name", EXECUTE_TOOL));
    }
    attributes.extend(call.wire_name.map(|tool| KeyValue::new("gen_ai.tool.name", tool.to_owned())));
    attributes.extend(call.effect.map(|effect| KeyValue::new("toolhost.effect", effect.as_str())));
    // Not the rule itself: its text may name files.
    let denier = |by| if by == DENIED_BY_EFFECT { DENIED_BY_EFFECT } else { "rule" };
    attributes.extend(call.denied_by.map(|by| KeyValue::new("toolhost.denied_by", denier(by))));
    let session = if call.door == AGENT_DOOR { "gen_ai.conversation.id" } else { "toolhost.session.id" };
    attributes.extend(call.session.map(|id| KeyValue::new(session, id.to_owned())));
    attributes
}
