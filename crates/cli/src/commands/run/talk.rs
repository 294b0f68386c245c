//! A conversation: one session, and what a person says to it at this terminal, one message after the other.

use std::sync::Arc;

use toolhost::{Host, Session};
use toolhost_agent::session::Status;

use super::conduct::{self, Conducted};
use crate::print::{self, DIM, paint};
use crate::terminal::Terminal;

/// What stands before what a person types.
const PROMPT: &str = "you> ";
/// What stands before the further lines of a message.
const PROMPT_MORE: &str = "...> ";
/// What ends a conversation, besides the end of the input.
const LEAVE: [&str; 3] = ["/quit", "/exit", "/q"];
/// What lists the commands of a conversation.
const HELP: [&str; 2] = ["/help", "/?"];
const HELP_TEXT: &str = "Each line is a message. A \\ at the end of a line continues the message on the next line. While the model works, \
Ctrl-C ends the current call and pauses the session; a second Ctrl-C cancels it. /quit, /exit and Ctrl-D leave the conversation, and `toolhost \
run --continue` resumes it. In another terminal, `toolhost undo --session last` undoes the changes of files.";

/// What the person says next; none where they leave.
pub(in crate::commands) async fn next_message(terminal: &Terminal) -> Option<String> {
    let mut message = String::new();
    loop {
        let prompt = if message.is_empty() { PROMPT } else { PROMPT_MORE };
        let line = tokio::select! {
            line = terminal.prompt(prompt) => line?,
            _ = tokio::signal::ctrl_c() => {
                print::note("");
                return None;
            }
        };
        if let Some(begun) = line.strip_suffix('\\') {
            message.push_str(begun);
            message.push('\n');
            continue;
        }
        message.push_str(&line);
        let said = std::mem::take(&mut message);
        let first = said.split_whitespace().next().unwrap_or_default();
        match said.trim() {
            "" => {}
            _ if LEAVE.contains(&first) => return None,
            _ if HELP.contains(&first) => print::note(HELP_TEXT),
            _ if is_command(first) => {
                let word = print::visible_line(first);
                print::note(format_args!("unknown command `{word}`: it was not sent. /help lists the commands"));
            }
            said => return Some(said.to_owned()),
        }
    }
}

/// Whether a word is written as a command of a conversation: a slash and letters.
fn is_command(said: &str) -> bool {
    said.strip_prefix('/')
        .is_some_and(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-'))
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
