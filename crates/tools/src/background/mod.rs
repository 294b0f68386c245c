//! Commands in the background: what they print, and their end.

pub(crate) mod kill;
pub(crate) mod output;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolhost_contract::{Heard, Outcome};

/// What was read of a command in the background.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Read {
    handle: String,
    /// Whether it is under way.
    running: bool,
    /// What it printed since it was last read, stdout and stderr as they came.
    output: String,
    /// Bytes before `output` that were not kept.
    left_out: u64,
    /// More is there to be read at once.
    more: bool,
    /// Once it has ended by itself or by a signal: 0 is success, 128 + n: ended by signal n.
    exit_code: Option<i64>,
    /// Why it has no exit code: it was ended by `bash_kill`, its limits, or the end of its session.
    error: Option<String>,
    /// What git or this host obeys that was put back when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    put_back: Vec<String>,
}

impl Read {
    fn new(handle: String, heard: Heard) -> Self {
        let Heard { text, left_out, more, outcome } = heard;
        let said = |field: &str| outcome.as_ref().and_then(|outcome| outcome.data.get(field)).cloned();
        let put_back = said("putBack").and_then(|names| serde_json::from_value(names).ok()).unwrap_or_default();
        let failed = outcome.as_ref().filter(|outcome| !outcome.ok);
        let timed_out = said("timedOut").and_then(|timed_out| timed_out.as_bool()).unwrap_or(false);
        let error = match failed {
            Some(Outcome { text, .. }) => Some(text.clone()),
            None => timed_out.then(|| "its time limit was reached, and everything it had started was ended".to_owned()),
        };
        Self {
            handle,
            running: outcome.is_none(),
            output: text,
            left_out,
            more,
            exit_code: said("exitCode").as_ref().and_then(Value::as_i64),
            error,
            put_back,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if self.left_out > 0 {
            text.push_str(&format!("[{} bytes before this were not kept]\n", self.left_out));
        }
        text.push_str(&self.output);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let state = match (&self.error, self.exit_code) {
            _ if self.running => format!("{} is running", self.handle),
            (Some(error), _) => format!("{} has ended: {error}", self.handle),
            (None, Some(code)) => format!("{} has ended with exit code {code}", self.handle),
            (None, None) => format!("{} has ended", self.handle),
        };
        let more = if self.more { "; more of its output is there to be read" } else { "" };
        text.push_str(&format!("[{state}{more}]"));
        if !self.put_back.is_empty() {
            text.push_str(&format!("\n[toolhost put back {}]", toolhost_contract::named(&self.put_back, 50)));
        }
        text
    }
}
