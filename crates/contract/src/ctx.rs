//! What a running tool is handed.

use crate::shell::Analyzed;
use crate::workspace::{Watch, Workspace};
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::call::Call;
use crate::clock::Clock;
use crate::example::Example;
use crate::facts::Effect;
use crate::people::People;
use crate::session::Session;

/// Everything a tool may use besides its own fields.
pub struct Ctx<'a> {
    pub call: &'a Call,
    /// The workspace as the caller's profile may see it.
    pub workspace: &'a Workspace,
    pub catalog: &'a dyn Catalog,
    pub people: &'a dyn People,
    pub background: &'a dyn Background,
    /// The caller's session, for a command that keeps its `/tmp` and home; `None`: the caller has none.
    pub session: Option<Session>,
    pub grants: Grants,
    /// What the effect rested on when a person allowed this call ([`Preview::rests_on`](crate::Preview)).
    pub approved: Option<serde_json::Value>,
    /// What the call's shell command runs, if it has one. A tool never analyzes a command itself: the host does, once a call.
    pub command: Option<&'a Analyzed>,
    pub clock: &'a dyn Clock,
    /// Cancelled when the caller no longer wants the answer.
    pub cancel: CancellationToken,
    pub progress: std::sync::Arc<dyn ProgressSink>,
}

/// What the profile grants beyond its list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grants {
    /// Longest time limit a command may ask for, in milliseconds.
    pub command_timeout_ms_max: u64,
    /// The same for a command in the background.
    pub background_timeout_ms_max: u64,
}

/// Where a long call stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with every report; seconds for commands.
    pub done: f64,
    pub total: Option<f64>,
    pub message: String,
    /// The end of what a command has printed so far, for people who watch. A tool reports as much as [`OUTPUT_SEEN_BYTES`], in which secrets
    /// can be told; the host passes on the last [`OUTPUT_TAIL_BYTES`] of it.
    pub output: Option<String>,
}

/// Of a running command's output, in which secrets are looked for: a private key is known by its first line, and masked to its last.
pub const OUTPUT_SEEN_BYTES: usize = 128 * 1024;
/// Of a running command's output, for people who watch it.
pub const OUTPUT_TAIL_BYTES: usize = 8 * 1024;

pub trait ProgressSink: Send + Sync {
    fn report(&self, progress: Progress);
}

/// Nobody listens.
#[derive(Debug, Default)]
pub struct Silent;

impl ProgressSink for Silent {
    fn report(&self, _: Progress) {}
}

/// The tools the caller's profile has, for `tool.list`, `tool.describe` and `tool.search`.
pub trait Catalog: Send + Sync {
    /// In the registry's order.
    fn tools(&self) -> Vec<ToolSummary>;

    /// How the caller calls a tool, by its canonical name; `None` if it does not have it.
    fn called(&self, tool: &str) -> Option<String> {
        self.tools().into_iter().map(|summary| summary.name).find(|name| name == tool)
    }

    /// Canonical names of the caller's tools that this name may stand for, best first.
    fn nearest(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A tool as a caller sees it.
#[derive(Debug, Clone)]
pub struct ToolSummary {
    pub name: String,
    pub wire_name: String,
    pub aliases: Vec<String>,
    /// What other hosts call tools that do the same.
    pub called_elsewhere: &'static [&'static str],
    pub title: String,
    pub description: String,
    pub effect: Effect,
    pub input_schema: serde_json::Value,
    pub output_schema: serde_json::Value,
    pub examples: Vec<Example>,
}

impl Ctx<'_> {
    /// Follows a command: cancelled with the call, its progress told to the caller.
    pub fn watch(&self) -> Watch {
        let sink = std::sync::Arc::clone(&self.progress);
        let tail = std::sync::Arc::new(std::sync::Mutex::new(Tail::default()));
        let filled = std::sync::Arc::clone(&tail);
        let take = move |piece: &[u8]| filled.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(piece);
        let tell = move |p: crate::workspace::Progress| {
            let seconds = p.elapsed.as_secs_f64();
            let message = format!("running for {seconds:.0} s, {} bytes of output", p.output_bytes);
            let output = tail.lock().unwrap_or_else(std::sync::PoisonError::into_inner).text();
            sink.report(Progress { done: seconds, total: None, message, output });
        };
        let (progress, output) = (Some(std::sync::Arc::new(tell) as _), Some(std::sync::Arc::new(take) as _));
        Watch { cancel: self.cancel.clone(), progress, output }
    }
}

/// The end of what a command has printed.
#[derive(Default)]
struct Tail {
    bytes: std::collections::VecDeque<u8>,
    is_cut: bool,
}

impl Tail {
    fn add(&mut self, piece: &[u8]) {
        let kept = &piece[piece.len().saturating_sub(OUTPUT_SEEN_BYTES)..];
        let over = (self.bytes.len() + kept.len()).saturating_sub(OUTPUT_SEEN_BYTES);
        self.is_cut |= over > 0 || kept.len() < piece.len();
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(kept);
    }

    /// Whole lines: half a secret would not be known as one.
    fn text(&self) -> Option<String> {
        let (first, second) = self.bytes.as_slices();
        let bytes = [first, second].concat();
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let to = bytes.iter().rposition(ends).map_or(0, |end| end + 1);
        let from = if self.is_cut { bytes.iter().position(ends).map_or(to, |end| end + 1) } else { 0 };
        (from < to).then(|| String::from_utf8_lossy(&bytes[from..to]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_last_whole_lines() {
        let mut tail = Tail::default();
        assert_eq!(tail.text(), None);
        tail.add(b"one\ntw");
        assert_eq!(tail.text().as_deref(), Some("one\n"));
        tail.add(b"o\n");
        assert_eq!(tail.text().as_deref(), Some("one\ntwo\n"));
        tail.add(&[b'x'; OUTPUT_SEEN_BYTES - 6]);
        tail.add(b"\n");
        let text = tail.text().unwrap_or_default();
        assert!(text.starts_with("two\nxxx"), "the rest of the first line went with its beginning");
        assert_eq!(text.len(), OUTPUT_SEEN_BYTES - 1);
        tail.add(&[b'y'; 3 * OUTPUT_SEEN_BYTES]);
        assert_eq!(tail.text(), None, "the middle of a line");
        tail.add(b"\nend\r");
        assert_eq!(tail.text().as_deref(), Some("end\r"));
    }
}
