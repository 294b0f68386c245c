//! Answers of the API: the envelope of outcomes, and the HTTP status that goes with it.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use toolhost_contract::{BYTES_MAX, ErrorKind, Outcome, RETRY_AFTER_SECONDS, ToolError};

/// The content type of every answer.
pub(crate) const JSON: &str = "application/json";
/// Seconds after which whoever was told to wait may try again.
const RETRY_SECONDS: u64 = 1;

/// What a handler answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Data(StatusCode, Value),
    /// Of a call.
    Outcome(Box<Outcome>),
    /// The text of an answer that was kept, with its status.
    Kept(StatusCode, String),
    /// Something that is no JSON, or goes on.
    Raw(Response<Body>),
}

impl Reply {
    pub(crate) fn ok(data: Value) -> Self {
        Self::Data(StatusCode::OK, data)
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        match self {
            Self::Data(status, data) => {
                let envelope = json!({ "ok": true, "data": data, "error": null, "meta": {} });
                json_response(status, envelope.to_string())
            }
            Self::Outcome(outcome) => {
                let (status, text) = told(&outcome);
                let mut response = json_response(status, text);
                let details = outcome.error.as_ref().and_then(|error| error.details.as_ref());
                response.headers_mut().extend(retry_after(status, details));
                response
            }
            Self::Kept(status, text) => json_response(status, text),
            Self::Raw(response) => response,
        }
    }
}

/// # Errors
/// If the data are no JSON.
pub(crate) fn data<T: Serialize>(data: &T) -> Result<Reply, ToolError> {
    serde_json::to_value(data).map(Reply::ok).map_err(ToolError::internal)
}

/// What a call answers that waits for a person. The further fields are those of its tool.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what the gate and the tools that ask answer")]
#[schemars(rename = "PendingCall", rename_all = "camelCase")]
pub(crate) struct PendingData {
    #[schemars(extend("enum" = ["pending_approval", "pending_answer", "pending_review"]))]
    status: String,
    /// The ask that waits, such as `ask-7`. The tool `approval.wait` takes it, and so does the decision.
    approval_id: String,
    /// Until when an answer is waited for, milliseconds since 1970.
    expires_at: i64,
    #[schemars(flatten)]
    more: Map<String, Value>,
}

/// The envelope of an outcome with its text, and its status.
pub(crate) fn told(outcome: &Outcome) -> (StatusCode, String) {
    let status = match &outcome.error {
        Some(error) => status_of(error.kind, error.details.as_ref()),
        None if is_pending(&outcome.data) => StatusCode::ACCEPTED,
        None => StatusCode::OK,
    };
    let mut envelope = serde_json::to_value(outcome).unwrap_or_default();
    if let Value::Object(fields) = &mut envelope {
        fields.insert("text".to_owned(), outcome.text.clone().into());
    }
    (status, envelope.to_string())
}

/// Whether a call waits for a person.
fn is_pending(data: &Value) -> bool {
    data.get("status").and_then(Value::as_str).is_some_and(|status| status.starts_with("pending_"))
}

/// A failure as an answer.
pub(crate) fn problem(error: &ToolError) -> Response<Body> {
    if let Some(source) = &error.source {
        tracing::error!(error = %source, "a request failed");
    }
    problem_with(status(error), error)
}

pub(crate) fn problem_with(status: StatusCode, error: &ToolError) -> Response<Body> {
    let mut said = json!({ "code": error.code, "kind": error.kind, "message": error.message });
    if let Value::Object(fields) = &mut said {
        fields.extend(error.hint.clone().map(|hint| ("hint".to_owned(), hint.into())));
        fields.extend(error.details.clone().map(|details| ("details".to_owned(), details)));
    }
    let envelope = json!({ "ok": false, "data": null, "error": said, "meta": {} });
    let mut response = json_response(status, envelope.to_string());
    response.headers_mut().extend(retry_after(status, error.details.as_ref()));
    response
}

/// When to try again, for whom time helps.
fn retry_after(status: StatusCode, details: Option<&Value>) -> Option<(HeaderName, HeaderValue)> {
    if status != StatusCode::TOO_MANY_REQUESTS && status != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let seconds = details.and_then(|details| details.get(RETRY_AFTER_SECONDS)?.as_u64()).unwrap_or(RETRY_SECONDS);
    Some((header::RETRY_AFTER, seconds.into()))
}

pub(crate) fn json_response(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The HTTP status for a failure.
pub(crate) fn status(error: &ToolError) -> StatusCode {
    status_of(error.kind, error.details.as_ref())
}

fn status_of(kind: ErrorKind, details: Option<&Value>) -> StatusCode {
    match kind {
        // Waiting makes nothing smaller.
        ErrorKind::Limit if details.is_some_and(|details| details.get(BYTES_MAX).is_some()) => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        ErrorKind::Validation => StatusCode::BAD_REQUEST,
        ErrorKind::Security | ErrorKind::Permission | ErrorKind::Denied => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        // Whether it has happened is not known: whoever would repeat it has to look first.
        ErrorKind::Conflict | ErrorKind::Unknown => StatusCode::CONFLICT,
        ErrorKind::Limit => StatusCode::TOO_MANY_REQUESTS,
        // Of the machine that the tools work on.
        ErrorKind::Io | ErrorKind::Cancelled => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
