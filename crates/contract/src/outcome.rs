//! What every call ends in: one envelope on every door.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ErrorCode, ErrorKind, ToolError};
use crate::ids::CallId;

/// What stands in an answer where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// The envelope `{ok, data, error, meta}` (CrewAgent seed BAI-2.4, AC-3).
///
/// `text` is the same answer for a reader, complete on its own; it is not part of the JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    pub ok: bool,
    /// What the tool's output schema says; null on failure.
    pub data: Value,
    pub error: Option<OutcomeError>,
    pub meta: Meta,
    /// What the answer has beside its text. MCP clients get them as content of the result.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attachments: Vec<Attachment>,
    #[serde(skip)]
    pub text: String,
}

/// A part of an answer that its text cannot hold: an image, a sound, or a document with an address of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Such as `image/png`.
    pub mime_type: String,
    /// The address of a document. An image or a sound without one stands for itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uri: Option<String>,
    #[serde(flatten)]
    pub content: AttachmentContent,
}

/// What an attachment holds. Secrets are removed from texts and not from bytes, so what is a text is never given as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AttachmentContent {
    Text(String),
    /// Bytes in standard base64 with padding (RFC 4648, section 4).
    Base64(String),
}

impl Attachment {
    /// How much of an answer's limit it takes, bytes.
    pub fn size(&self) -> usize {
        let content = match &self.content {
            AttachmentContent::Text(text) | AttachmentContent::Base64(text) => text.len(),
        };
        content + self.mime_type.len() + self.uri.as_ref().map_or(0, String::len)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeError {
    pub code: ErrorCode,
    pub kind: ErrorKind,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<Value>,
}

/// The refusal of a call, as the error of the code that made the call for a user.
impl From<OutcomeError> for ToolError {
    fn from(OutcomeError { code, kind, message, hint, details }: OutcomeError) -> Self {
        Self { code, hint, details, ..Self::new(kind, message) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The canonical name, or what was asked for if there is no such tool.
    pub tool: String,
    pub call_id: CallId,
    pub session_id: Option<String>,
    pub user_id: i64,
    pub project_id: i64,
    pub workflow_id: Option<i64>,
    /// Revisions of what was read or written, for tools of records and of the builder.
    pub revision: Option<Revision>,
    /// Whether this tool could have changed anything.
    pub allow_write: bool,
    pub duration_ms: u64,
    /// The fence that commands get here: `full`, `landlock`, `off` or `refused`.
    pub fence: String,
    /// How arguments were read that were not written as the tool takes them, such as "`file_path` as `path`".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// What a person changed in the arguments before they allowed the call, such as "`command` is `make test`".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<String>,
}

/// SHA-256 of the canonical JSON of the workflow and of the object itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    pub workflow: Option<String>,
    pub target: Option<String>,
}

/// An outcome as Bonsai's tools answer (seed 004, Error Handling): a rendering for programs that expect this form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The answer as text; empty where the call failed.
    pub output: String,
    /// What failed and what to try next.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// The fields of the answer, such as `exitCode`; of a failure its `code`, `kind` and `details`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metadata: Option<serde_json::Map<String, Value>>,
}

impl Outcome {
    /// The same outcome as a [`ToolResult`].
    pub fn tool_result(&self) -> ToolResult {
        let Some(error) = &self.error else {
            let metadata = match &self.data {
                Value::Object(fields) => Some(fields.clone()),
                Value::Null => None,
                data => Some(serde_json::Map::from_iter([("data".to_owned(), data.clone())])),
            };
            return ToolResult { output: self.text.clone(), error: None, metadata };
        };
        let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let mut metadata = serde_json::Map::new();
        metadata.insert("code".to_owned(), error.code.as_str().into());
        metadata.insert("kind".to_owned(), serde_json::to_value(error.kind).unwrap_or_default());
        metadata.extend(error.details.clone().map(|details| ("details".to_owned(), details)));
        ToolResult { output: String::new(), error: Some(format!("{}{hint}", error.message)), metadata: Some(metadata) }
    }
}

/// What a tool returns when it succeeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    pub data: Value,
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// SHA-256 of the canonical JSON (RFC 8785) of the one object that was read or written, where there is one.
    pub revision: Option<String>,
    /// The workflow that the object is, or is in.
    pub workflow: Option<WorkflowRef>,
}

/// A workflow of a package, as answers name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowRef {
    /// Its number in the project; none for one that is only staged.
    pub number: Option<i64>,
    /// SHA-256 of the canonical JSON of the whole workflow.
    pub revision: Option<String>,
}
