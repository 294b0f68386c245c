//! People look at files and texts: pass, edit, feedback or cancel.
//!
//! Only what a person says settles it: their edit is what is saved, their feedback goes back to the model, which tries
//! again, for as many rounds as they like. Cancelling is never a pass.

pub(crate) mod content;
pub(crate) mod file;

use schemars::JsonSchema;
use serde::Serialize;
use toolhost_contract::{Answer, Asked, Ctx, ErrorKind, Pending, Question, ToolError, Wanted};

/// What a review came to.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// `pass`, `edit` or `feedback`; `pending_review` while nobody has answered.
    status: String,
    /// The how many-th round about this, from 1.
    round: Option<i64>,
    /// Who answered.
    by: Option<String>,
    /// `edit`: the text as the person wants it.
    content: Option<String>,
    /// `feedback`: what to mind. Try again, then ask for the next round.
    feedback: Option<String>,
    /// Whether the person's text was written to the file.
    saved: bool,
    /// `pending_review`: `approval.wait` takes this.
    approval_id: Option<String>,
    /// `pending_review`: until when an answer is waited for, milliseconds since 1970.
    expires_at: Option<i64>,
}

/// What `ask` needs to know.
struct Subject<'a> {
    key: String,
    title: &'a str,
    text: &'a str,
    prompt: Option<&'a str>,
    feedback: bool,
}

/// Asks, and tells what was said. An edit is the caller's to save.
async fn ask(ctx: &Ctx<'_>, subject: Subject<'_>) -> Result<Output, ToolError> {
    let wanted = if subject.feedback { Wanted::PassEditOrFeedback } else { Wanted::PassOrEdit };
    let title = match subject.prompt {
        Some(prompt) => format!("{}: {prompt}", subject.title),
        None => subject.title.to_owned(),
    };
    let question = Question { wanted, subject: subject.key, title, text: subject.text.to_owned(), choices: Vec::new() };
    let mut output = Output {
        status: String::new(),
        round: None,
        by: None,
        content: None,
        feedback: None,
        saved: false,
        approval_id: None,
        expires_at: None,
    };
    match ctx.people.ask(&question).await? {
        Asked::Pending(Pending { approval_id, expires_at_ms }) => {
            "pending_review".clone_into(&mut output.status);
            output.approval_id = Some(approval_id);
            output.expires_at = Some(expires_at_ms);
        }
        Asked::Answered { answer, by, round } => {
            (output.round, output.by) = (Some(round), Some(by));
            match answer {
                Answer::Pass => "pass".clone_into(&mut output.status),
                Answer::Edit { text } => {
                    "edit".clone_into(&mut output.status);
                    output.content = Some(text);
                }
                Answer::Feedback { text } => {
                    "feedback".clone_into(&mut output.status);
                    output.feedback = Some(text);
                }
                // Whatever else was said is no pass.
                _ => return Err(cancelled(subject.title)),
            }
        }
    }
    Ok(output)
}

fn cancelled(title: &str) -> ToolError {
    ToolError::new(ErrorKind::Cancelled, format!("the person cancelled the review of {title}; it has not passed"))
        .hint("tell the person what you need, or go on with something else")
}

fn render(what: &str, output: &Output) -> String {
    let round = output.round.map(|round| format!(" (round {round})")).unwrap_or_default();
    match (&output.content, &output.feedback, &output.approval_id) {
        (Some(content), ..) => {
            let saved = if output.saved { "and it was saved" } else { "use it as it is" };
            format!("{what} was edited by the person{round}; this is the text, {saved}:\n{content}")
        }
        (_, Some(feedback), _) => {
            format!("{what} did not pass{round}. Mind this, then ask for the next round:\n{feedback}")
        }
        (.., Some(id)) => {
            format!("{what} waits for a person as {id}; `approval.wait` with this approvalId goes on waiting")
        }
        _ => format!("{what} passed{round}"),
    }
}
