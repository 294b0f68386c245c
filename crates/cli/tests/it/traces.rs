//! Traces as a collector gets them: from a host on a pipe, from a server, and from a session of a model.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use serde_json::{Value, json};
use toolhost_testkit::{Answers, CollectorServer, Era, McpProcess, Program, TempWorkspace, http, until};

use crate::room::program;
use crate::served::{Served, token};

/// Stands in arguments, results and names of files, and in no span.
const PRIVATE: &str = "pr1vate";
/// A parent in a message of MCP, and one in an HTTP header.
const OF_MESSAGE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OF_HTTP: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// Longer than any test.
const FOR_EVER: &str = "3600000";

/// The program, which sends its traces to this collector: at once, or only at its end.
fn traced(workspace: &TempWorkspace, collector: &CollectorServer, delay_ms: &str) -> Program {
    program(workspace)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .variable("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collectors%20key")
        .variable("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        .variable("OTEL_BSP_SCHEDULE_DELAY", delay_ms)
}

/// The spans that have come, by name.
fn spans(collector: &CollectorServer) -> BTreeMap<String, Span> {
    let decoded =
        collector.posted().into_iter().map(|posted| ExportTraceServiceRequest::decode(&*posted.body).unwrap());
    let of_scopes = decoded.flat_map(|message| message.resource_spans).flat_map(|resource| resource.scope_spans);
    of_scopes.flat_map(|scope| scope.spans).map(|span| (span.name.clone(), span)).collect()
}

fn names(collector: &CollectorServer) -> Vec<String> {
    spans(collector).into_keys().collect()
}

/// A text or number of a span.
fn told(span: &Span, name: &str) -> Option<Value> {
    let value = span.attributes.iter().find(|attribute| attribute.key == name)?.value.clone()?.value?;
    Some(match value {
        Attribute::StringValue(text) => json!(text),
        Attribute::IntValue(number) => json!(number),
        other => json!(format!("{other:?}")),
    })
}

#[track_caller]
fn tells(span: &Span, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(told(span, name).as_ref(), Some(value), "{name} of {span:?}");
    }
}

/// The parent of a span as `traceparent` writes it.
fn parent(span: &Span) -> String {
    format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.parent_span_id))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nothing of what calls were about is in the bytes.
#[track_caller]
fn nothing_private(collector: &CollectorServer) {
    for posted in collector.posted() {
        let text = String::from_utf8_lossy(&posted.body).into_owned();
        assert!(!text.contains(PRIVATE), "{text}");
    }
}

async fn call_with_parent(host: &mut McpProcess, tool: &str, arguments: Value, parent: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": parent });
    host.request("tools/call", params).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_a_pipe_is_a_span_below_the_one_of_its_message() {
    for era in [Era::Session, Era::Stateless] {
        let collector = CollectorServer::start(Answers::Taken).await;
        let workspace = TempWorkspace::new();
        workspace.write(&format!("{PRIVATE}.txt"), format!("{PRIVATE} content"));
        // What waits for others is sent at the end.
        let program = traced(&workspace, &collector, FOR_EVER);
        let mut host = McpProcess::open(&program, &["--session", "the-session"], era).await;
        let file = json!({ "path": format!("{PRIVATE}.txt") });
        let of_message = json!({ "traceparent": OF_MESSAGE, "tracestate": "rojo=1" });
        let read = call_with_parent(&mut host, "file_read", file.clone(), of_message).await;
        assert!(read.to_string().contains(PRIVATE), "{read}");
        let list = json!({ "path": "." });
        call_with_parent(&mut host, "file_list", list, json!({ "traceparent": "00-none-of-it-01" })).await;
        call_with_parent(&mut host, "file_write", json!({ "path": "/", "content": PRIVATE }), json!({})).await;
        host.call(&format!("no_{PRIVATE}"), json!({})).await;
        assert!(host.close().await.success());

        let spans = spans(&collector);
        let read = &spans["tools/call file_read"];
        assert_eq!((parent(read), read.trace_state.as_str()), (OF_MESSAGE.to_owned(), "rojo=1"));
        assert_eq!((read.kind(), read.status.clone().unwrap().code()), (SpanKind::Server, StatusCode::Unset));
        tells(
            read,
            &[
                ("mcp.method.name", json!("tools/call")),
                ("mcp.session.id", json!("the-session")),
                ("mcp.protocol.version", json!(if era == Era::Session { "2025-11-25" } else { "2026-07-28" })),
                ("network.transport", json!("pipe")),
                ("gen_ai.operation.name", json!("execute_tool")),
                ("gen_ai.tool.name", json!("file_read")),
                ("toolhost.effect", json!("reads")),
                ("toolhost.outcome", json!("ok")),
            ],
        );
        assert!(told(read, "jsonrpc.request.id").is_some() && told(read, "error.type").is_none(), "{read:?}");
        let run = &spans["toolhost.gate.run"];
        assert!(run.start_time_unix_nano < run.end_time_unix_nano, "{run:?}");
        // A parent that is none is as good as no parent.
        let list = &spans["tools/call file_list"];
        assert!(list.parent_span_id.is_empty() && list.trace_id.len() == 16, "{list:?}");
        let failed = &spans["tools/call file_write"];
        assert_eq!(failed.status.clone().unwrap().code(), StatusCode::Error);
        tells(failed, &[("error.type", json!("tool_error"))]);
        // No text that a client has chosen is the name of a span.
        tells(&spans["tools/call"], &[("error.type", json!("tool_error"))]);
        nothing_private(&collector);
    }
}

/// Who sends, to whom, and what stands in the head.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_says_whose_it_is_and_has_the_operators_headers() {
    let collector = CollectorServer::start(Answers::First(503)).await;
    let workspace = TempWorkspace::new();
    let program = traced(&workspace, &collector, "0").variable("OTEL_SERVICE_NAME", "tools of the team");
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    host.call("file_list", json!({})).await;
    // It is sent again, for the collector says that it may pass.
    until("two messages", || collector.posted().len() >= 2).await;
    assert!(host.close().await.success());
    let posted = collector.posted();
    assert_eq!(posted[0].body, posted[1].body);
    let head = posted[0].head.to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf") && head.contains("x-key: collectors key"), "{head}");
    let message = ExportTraceServiceRequest::decode(&*posted[0].body).unwrap();
    let resource = message.resource_spans[0].resource.clone().unwrap();
    let named = |name: &str| {
        let found = resource.attributes.iter().find(|attribute| attribute.key == name);
        found.and_then(|attribute| attribute.value.clone()?.value)
    };
    assert_eq!(named("service.name"), Some(Attribute::StringValue("tools of the team".to_owned())));
    assert_eq!(named("deployment.environment.name"), Some(Attribute::StringValue("test".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_a_person_is_a_span_of_its_own() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    workspace.write_beside("operator.toml", "[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n");
    let program =
        traced(&workspace, &collector, FOR_EVER).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let forms = json!({ "elicitation": { "form": {} } });
    let mut host = McpProcess::open_with(&program, &["--client-approvals"], Era::Session, forms).await;
    let id = host.begin_call("bash", json!({ "command": format!("echo {PRIVATE}") })).await;
    let form = host.until_asked().await;
    host.respond(&form, json!({ "action": "accept", "content": { "decision": "allow" } })).await;
    let answer = host.answer_to(id).await;
    assert!(answer.to_string().contains(PRIVATE), "{answer}");
    assert!(host.close().await.success());
    let spans = spans(&collector);
    let (call, wait, run) = (&spans["tools/call bash"], &spans["toolhost.gate.approve"], &spans["toolhost.gate.run"]);
    tells(wait, &[("toolhost.answer", json!("allowed"))]);
    for part in [wait, run] {
        assert_eq!((&part.trace_id, &part.parent_span_id), (&call.trace_id, &call.span_id));
        assert!(call.start_time_unix_nano <= part.start_time_unix_nano, "{call:?} {part:?}");
        assert!(part.end_time_unix_nano <= call.end_time_unix_nano, "{call:?} {part:?}");
    }
    assert!(wait.end_time_unix_nano <= run.start_time_unix_nano, "{wait:?} {run:?}");
    nothing_private(&collector);
}

/// The call that a person has allowed answers no request itself: it was made by the one that waited.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ran_when_it_was_allowed_is_told_beside_the_one_that_waited() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    let config = "[approvals]\nhold_seconds = 0\n[[profiles.developer.rules]]\ntool = 'bash'\ndecide = 'ask'\n";
    workspace.write_beside("operator.toml", config);
    let program =
        traced(&workspace, &collector, FOR_EVER).variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"));
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    let pending = host.call("bash", json!({ "command": "true" })).await;
    assert!(pending.to_string().contains("pending_approval"), "{pending}");
    assert_eq!(program.run(&["review", "decide", "ask-1", "--allow"]).code, Some(0));
    let wait = json!({ "approvalId": "ask-1" });
    call_with_parent(&mut host, "approval_wait", wait, json!({ "traceparent": OF_MESSAGE })).await;
    assert!(host.close().await.success());
    let spans = spans(&collector);
    tells(&spans["tools/call bash"], &[("toolhost.outcome", json!("pending"))]);
    assert_eq!(spans["tools/call bash"].status.clone().unwrap().code(), StatusCode::Unset);
    let (waited, ran) = (&spans["tools/call approval_wait"], &spans["execute_tool bash"]);
    assert_eq!((parent(waited), parent(ran)), (OF_MESSAGE.to_owned(), OF_MESSAGE.to_owned()));
    assert_eq!((told(ran, "toolhost.outcome"), told(ran, "jsonrpc.request.id")), (Some(json!("ok")), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_http_is_below_its_message_and_linked_to_its_request() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    workspace.write(&format!("{PRIVATE}.txt"), PRIVATE);
    let program = traced(&workspace, &collector, FOR_EVER);
    let (secret, key) = token(&program, &[]);
    let server = Served::start(&program, &[]);
    let call = |tool: &str, meta: Value| {
        let mut own = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        own.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        let params = json!({ "name": tool, "arguments": { "path": format!("{PRIVATE}.txt") }, "_meta": own });
        json!({ "jsonrpc": "2.0", "id": "of-the-client", "method": "tools/call", "params": params }).to_string()
    };
    let of_both = call("file_read", json!({ "traceparent": OF_MESSAGE }));
    let of_http = call("file_list", json!({}));
    for (tool, body) in [("file_read", &of_both), ("file_list", &of_http)] {
        let headers = [
            ("accept", "application/json, text/event-stream"),
            ("traceparent", OF_HTTP),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let reply = server.send_with(&secret, ("POST", "/mcp"), &headers, body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    // The API has only the header.
    let api = format!("/api/v1/projects/{key}/calls");
    let body = json!({ "tool": "git.status", "arguments": {} }).to_string();
    server.send_with(&secret, ("POST", &api), &[("traceparent", OF_HTTP)], &body).await;
    assert_eq!(server.end(), Some(0));

    let spans = spans(&collector);
    let read = &spans["tools/call file_read"];
    assert_eq!(parent(read), OF_MESSAGE);
    let linked = read.links.first().map(|link| format!("00-{}-{}-01", hex(&link.trace_id), hex(&link.span_id)));
    assert_eq!(linked.as_deref(), Some(OF_HTTP));
    tells(
        read,
        &[
            ("network.transport", json!("tcp")),
            ("network.protocol.name", json!("http")),
            ("jsonrpc.request.id", json!("of-the-client")),
            ("mcp.protocol.version", json!("2026-07-28")),
        ],
    );
    let list = &spans["tools/call file_list"];
    assert_eq!((parent(list), list.links.len()), (OF_HTTP.to_owned(), 0));
    let status = &spans["execute_tool git_status"];
    assert_eq!((parent(status), status.kind()), (OF_HTTP.to_owned(), SpanKind::Internal));
    assert_eq!((told(status, "mcp.method.name"), told(status, "toolhost.door")), (None, Some(json!("http"))));
    nothing_private(&collector);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_its_caller_does_not_sample_is_not_sent() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    let program = traced(&workspace, &collector, FOR_EVER);
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    let unsampled = OF_MESSAGE.replace("-01", "-00");
    call_with_parent(&mut host, "file_list", json!({}), json!({ "traceparent": unsampled })).await;
    call_with_parent(&mut host, "git_status", json!({}), json!({ "traceparent": OF_MESSAGE })).await;
    assert!(host.close().await.success());
    let names = names(&collector);
    assert!(names.contains(&"tools/call git_status".to_owned()), "{names:?}");
    assert!(!names.contains(&"tools/call file_list".to_owned()), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_a_tree_of_its_replies_and_calls() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    workspace.write(&format!("{PRIVATE}.txt"), PRIVATE);
    let usage = json!({ "inputTokens": 70, "cachedTokens": 20, "cacheWriteTokens": 0, "outputTokens": 7 });
    let arguments = json!({ "path": format!("{PRIVATE}.txt") });
    let turns = json!({ "turns": [
        { "calls": [{ "tool": "file_read", "arguments": arguments }], "usage": usage },
        { "text": format!("{PRIVATE} it is.") },
    ] });
    workspace.write_beside("story.json", &turns.to_string());
    let program = traced(&workspace, &collector, FOR_EVER);
    let model = format!("script:{}", workspace.beside("story.json").display());
    let goal = format!("Read {PRIVATE}.");
    let ran = tokio::task::spawn_blocking(move || {
        program.run(&["run", &goal, "--model", &model, "--persona", "Reader", "--json"])
    });
    let ran = ran.await.unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");

    let spans = spans(&collector);
    let session = &spans["invoke_agent Reader"];
    assert!(session.parent_span_id.is_empty(), "{session:?}");
    tells(
        session,
        &[
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.name", json!("Reader")),
            ("gen_ai.usage.input_tokens", json!(70)),
            ("toolhost.session.status", json!("completed")),
        ],
    );
    let (chat, call) = (&spans["chat script"], &spans["execute_tool file_read"]);
    assert_eq!(chat.kind(), SpanKind::Client);
    for below in [chat, call] {
        assert_eq!((&below.trace_id, &below.parent_span_id), (&session.trace_id, &session.span_id));
        assert_eq!(told(below, "gen_ai.conversation.id"), told(session, "gen_ai.conversation.id"));
    }
    tells(chat, &[("gen_ai.request.model", json!("script"))]);
    nothing_private(&collector);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_holds_up_neither_calls_nor_the_end() {
    let collector = CollectorServer::start(Answers::Nothing).await;
    let workspace = TempWorkspace::new();
    let program = traced(&workspace, &collector, "0").variable("OTEL_EXPORTER_OTLP_TIMEOUT", FOR_EVER);
    let program = program.variable("OTEL_BSP_MAX_QUEUE_SIZE", "4");
    let mut host = McpProcess::open(&program, &[], Era::Session).await;
    host.call("file_list", json!({})).await;
    // Within a minute, where an answer of the collector is waited for an hour.
    assert!(host.close().await.success());

    let (secret, key) = token(&program, &[]);
    let server = Served::start(&program, &["--metrics", "127.0.0.1:0"]);
    for _ in 0..20 {
        assert_eq!(server.call(&secret, &key, "file.list", json!({})).await.status, 200);
    }
    let page = http(server.address("metrics"), ("GET", "/metrics"), &[], "").await.body;
    let lost = page.lines().find_map(|line| line.strip_prefix("toolhost_lost_spans_total "));
    let lost: Option<u64> = lost.and_then(|count| count.trim().parse().ok());
    assert!(lost.is_some_and(|lost| lost > 0), "{page}");
    assert_eq!(server.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_environment_says_wrong_is_a_warning() {
    let collector = CollectorServer::start(Answers::Taken).await;
    let workspace = TempWorkspace::new();
    let program = traced(&workspace, &collector, "0").variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let log = workspace.beside("log.txt");
    let file = std::fs::File::create(&log).unwrap();
    let mut host = McpProcess::start_logging(&program, &[], Era::Session, file.into());
    host.initialize().await;
    host.call("file_list", json!({})).await;
    assert!(host.close().await.success());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("OTEL_EXPORTER_OTLP_PROTOCOL") && log.contains("http/protobuf"), "{log}");
    assert_eq!(names(&collector), Vec::<String>::new());
}
