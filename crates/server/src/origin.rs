//! Where calls come from: what requests say of the trace that they belong to.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::NumberOrString;
use rmcp::service::RequestContext;
use toolhost_host::{McpRequest, Origin, TraceParent, Transport};

/// In HTTP headers, and in `_meta` of a request of MCP (SEP-414).
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
/// The header that names a session of MCP.
const SESSION: &str = "mcp-session-id";
/// Longest id of a client's that is kept, characters.
const ID_CHARS_MAX: usize = 64;

/// The operation that sent an HTTP request.
pub(crate) fn of_headers(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    // A request has one parent: with two of them nobody knows which.
    let (Some(parent), None) = (values.next(), values.next()) else { return None };
    let states = headers.get_all(TRACESTATE).iter().filter_map(|state| state.to_str().ok());
    let state = states.collect::<Vec<_>>().join(",");
    TraceParent::parse(parent.to_str().ok()?, Some(&state))
}

/// Of a request of MCP. What its `_meta` says is the parent: one HTTP request may carry several messages, and a message may be sent
/// again. `session` is that of a client on a pipe.
pub(crate) fn of_request(
    context: &RequestContext<RoleServer>,
    (method, prompt): (&'static str, Option<&'static str>),
    session: Option<&str>,
) -> Arc<Origin> {
    let text = |name: &str| context.meta.get(name).and_then(|value| value.as_str());
    let of_message = text(TRACEPARENT).and_then(|parent| TraceParent::parse(parent, text(TRACESTATE)));
    let http = context.extensions.get::<Parts>();
    let of_http = http.and_then(|parts| of_headers(&parts.headers));
    let (parent, linked) = match of_message {
        Some(of_message) => (Some(of_message), of_http),
        None => (of_http, None),
    };
    let session = match http {
        Some(parts) => parts.headers.get(SESSION).and_then(|id| id.to_str().ok()),
        None => session,
    };
    let id = match &context.id {
        NumberOrString::Number(number) => number.to_string(),
        NumberOrString::String(text) => kept(text),
    };
    let request = McpRequest {
        method,
        prompt,
        id: Some(id),
        session: session.map(kept),
        protocol_version: context.protocol_version().map(|version| kept(&version.to_string())),
        transport: if http.is_some() { Transport::Http } else { Transport::Pipe },
    };
    Arc::new(Origin { parent, linked, request: Some(request) })
}

fn kept(id: &str) -> String {
    id.chars().take(ID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::{TRACEPARENT, TRACESTATE, of_headers};

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn states_of_several_headers_are_one_and_two_parents_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        headers.append(TRACESTATE, HeaderValue::from_static("a=1"));
        headers.append(TRACESTATE, HeaderValue::from_static("b=2"));
        assert_eq!(of_headers(&headers).map(|parent| parent.state).as_deref(), Some("a=1,b=2"));
        headers.append(TRACEPARENT, HeaderValue::from_static(PARENT));
        assert_eq!(of_headers(&headers), None);
    }
}
