//! What survives its process: the steps of a session, kept in order, and what people want of it meanwhile.

use crate::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::Trace;
use crate::ids::CallId;

/// The journal of one session, held by one process at a time.
///
/// Whoever runs a session asks for each step by its name first, and only does what no run before has done. Embedded, a
/// journal is rows of the store; an engine for durable execution could be one, too.
pub trait Journal: Send + Sync {
    /// The session's id.
    fn session_id(&self) -> &str;

    /// What a step came to in an earlier run. Told once: whoever asks keeps it.
    fn recall(&self, step: &str) -> Option<Value>;

    /// Keeps what a step came to. When this returns it is on its way to the disk; [`Journal::settle`] waits for it.
    /// `tally`: where the session stands now, for lists.
    fn keep<'a>(&'a self, step: &'a str, value: Value, tally: Option<Value>)
    -> BoxFuture<'a, Result<(), JournalError>>;

    /// What a person has said since, the oldest first: it is kept under this step as `{text}`, and is not told again. `None`
    /// if nothing waits.
    fn take_message<'a>(&'a self, step: &'a str) -> BoxFuture<'a, Result<Option<String>, JournalError>>;

    /// Waits until everything kept so far survives the process. Before any effect that rests on it.
    fn settle(&self) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Waits until a person wants something of the session, other than what they are known to want.
    fn signal(&self, known: Option<Signal>) -> BoxFuture<'_, Signal>;

    /// What became of a call that was asked for and whose end the journal does not know. `trace`: what a call of its tool
    /// leaves behind.
    fn fate<'a>(&'a self, call: &'a CallId, trace: Trace) -> BoxFuture<'a, Result<Fate, JournalError>>;
}

/// What people may want of a session that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// To stop after the step under way, and go on later.
    Pause,
    /// To stop at once, for good.
    Cancel,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It has changed nothing: it never got as far.
    NeverStarted,
    /// It is known, and has changed nothing: it was refused, or waits for a person, or began and left no trace where its
    /// tool leaves one.
    Undone,
    /// It ran to its end, and this is what the audit keeps of it: `{ok, error?}`.
    Ended(Value),
    /// It began, and the store knows no more. The files tell whether it made the changes that it logged, or the journal at
    /// the target whether it deployed.
    Logged,
    /// It began, and its transaction was committed. This is what it wrote, as JSON.
    Committed(Value),
    /// It began, and nobody saw it end.
    Unknown,
}

/// Why a session cannot go on being written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Another process holds it now.
    #[error("session {0} is run by another process")]
    Lost(String),
    #[error("the session's journal cannot be written: {0}")]
    Failed(String),
}
