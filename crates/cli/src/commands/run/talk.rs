//! A conversation: one session, and what a person says to it at this terminal, one message after the other.

use std::sync::Arc;

use toolhost::{Host, Session};
use toolhost_agent::session::Status;

use super::conduct::{self, Conducted};
use crate::print::{self, DIM, paint};
use crate::terminal::Terminal;

/// What stands before what a person types.
const PROMPT: &str = "you> ";
/// What ends a conversation, besides the end of the input.
const LEAVE: [&str; 3] = ["/quit", "/exit", "/q"];

/// What the person says next; none where they leave.
pub(in crate::commands) async fn next_message(terminal: &Terminal) -> Option<String> {
    loop {
        let line = tokio::select! {
            line = terminal.prompt(PROMPT) => line?,
            _ = tokio::signal::ctrl_c() => {
                print::note("");
                return None;
            }
        };
        let message = line.trim();
        if LEAVE.contains(&message) {
            return None;
        }
        if !message.is_empty() {
            return Some(message.to_owned());
        }
    }
}

/// Runs a session, and goes on with each message until the person leaves. `message`: the first one, where the session has its
/// goal already and is not to go on as it was.
///
/// # Errors
/// As [`conduct::run`].
pub(in crate::commands) async fn talk(
    host: &Host,
    session: &Session,
    message: Option<String>,
    terminal: &Arc<Terminal>,
) -> anyhow::Result<Conducted> {
    let mut conducted = conduct::run(host, session.clone(), message, false, Some(Arc::clone(terminal))).await?;
    print::aside(paint(DIM, "say what comes next; Ctrl-D or /quit leaves, and `toolhost run --continue` comes back"));
    while conducted.result.status != Status::Cancelled {
        let Some(message) = next_message(terminal).await else { break };
        let here = (Some(Arc::clone(terminal)), true);
        conducted = conduct::run_after(host, session.clone(), Some(message), false, here).await?;
    }
    Ok(conducted)
}
