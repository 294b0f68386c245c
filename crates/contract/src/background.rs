//! Commands that go on while their caller does other things.

use std::sync::Arc;

use crate::BoxFuture;
use crate::error::{ErrorKind, ToolError};
use crate::outcome::{Outcome, Success};

/// Takes what a command prints, as it comes.
pub type Listener = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// What a call has to do with the background: it may answer before it ends, and tools read and end what answered so.
pub trait Background: Send + Sync {
    /// Keeps this call for the caller's session, which has to end it.
    ///
    /// # Errors
    /// The caller has no session, or too many of its commands are under way.
    fn begin(&self) -> Result<Begun<'_>, ToolError>;

    /// Listens to a command that answers at its end, so that what has no room in the answer can be read afterwards. `None`: the
    /// caller has no session that could read it.
    fn listen(&self) -> Option<Listening<'_>>;

    /// What a command of the caller's session has printed since it was last read. Where that is nothing and the command is
    /// under way, waits for `wait_ms`.
    ///
    /// # Errors
    /// The caller's session has no such command.
    fn read<'a>(&'a self, handle: &'a str, wait_ms: u64) -> BoxFuture<'a, Result<Heard, ToolError>>;

    /// The same after it was ended, with all it has started.
    ///
    /// # Errors
    /// As [`Background::read`].
    fn end<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Heard, ToolError>>;
}

/// No call goes on.
#[derive(Debug, Default)]
pub struct NoBackground;

impl Background for NoBackground {
    fn begin(&self) -> Result<Begun<'_>, ToolError> {
        Err(no_session())
    }

    fn listen(&self) -> Option<Listening<'_>> {
        None
    }

    fn read<'a>(&'a self, _: &'a str, _: u64) -> BoxFuture<'a, Result<Heard, ToolError>> {
        Box::pin(async { Err(no_session()) })
    }

    fn end<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Heard, ToolError>> {
        Box::pin(async { Err(no_session()) })
    }
}

/// Why a call cannot go on after its answer.
pub fn no_session() -> ToolError {
    let message = "this caller has no session in which a command could go on in the background";
    ToolError::new(ErrorKind::Validation, message).hint("leave `background` out")
}

/// A call that will answer before it ends.
pub struct Begun<'a> {
    /// Such as `command-3`.
    pub handle: String,
    /// What it prints goes here.
    pub listener: Listener,
    /// Gives the caller its answer now. The call goes on, and what it comes to at last is kept for the caller.
    pub answer: Box<dyn FnOnce(Success) + Send + 'a>,
}

/// What a command prints is listened to.
pub struct Listening<'a> {
    /// What it prints goes here.
    pub listener: Listener,
    /// Keeps what was heard for the caller's session, and answers its handle, such as `command-3`. Otherwise it is forgotten.
    pub keep: Box<dyn FnOnce() -> String + Send + 'a>,
}

/// What was read of a command in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// What it printed, stdout and stderr as they came.
    pub text: String,
    /// Bytes before that which were not kept.
    pub left_out: u64,
    /// More is there to be read at once.
    pub more: bool,
    /// What the call came to; `None`: it is under way.
    pub outcome: Option<Outcome>,
}
