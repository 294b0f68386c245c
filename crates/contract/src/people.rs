//! People in a call: what they are shown, what they are asked and what they say.

use crate::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ToolError;

/// What a call would do, for the person who has to allow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// One line: what happens to what.
    pub summary: String,
    /// The whole of it: a diff, a parsed command, a plan.
    pub detail: String,
    /// Bytes of the effect that `detail` does not hold. A call that nobody can be shown whole can only be denied.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// What the effect rests on beyond the arguments, such as the hash of the file that would be replaced. An approval
    /// holds for as long as it is the same.
    pub rests_on: Value,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a tool asks a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub wanted: Wanted,
    /// What all rounds about one thing have in common.
    pub subject: String,
    pub title: String,
    /// The text to look at, or the question.
    pub text: String,
    /// Answers that the person can choose from, where the answer is a text; they may give another.
    pub choices: Vec<String>,
}

/// Which answers there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Pass or edit.
    PassOrEdit,
    /// Pass, edit or feedback.
    PassEditOrFeedback,
    YesOrNo,
    Text,
}

/// What a person said. Whatever else comes, and nothing at all, is no yes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The call may run.
    Allow,
    /// The call may run with these arguments instead.
    AllowEdited {
        arguments: Value,
    },
    /// The call may not run; the comment goes back to the model.
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// The text is good as it is.
    Pass,
    /// This text instead.
    Edit {
        text: String,
    },
    /// The model has to try again, minding this.
    Feedback {
        text: String,
    },
    /// The person does not want to be asked this.
    Cancel,
    Yes,
    No,
    Text {
        text: String,
    },
}

impl Answer {
    /// Whether it agrees to what was shown.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Allow | Self::AllowEdited { .. } | Self::Pass | Self::Yes)
    }
}

/// How asking ended for now.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Answered {
        answer: Answer,
        by: String,
        round: i64,
    },
    /// Nobody has answered yet; `approval.wait` goes on waiting.
    Pending(Pending),
}

/// An ask that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// Such as `ask-7`.
    pub approval_id: String,
    pub expires_at_ms: i64,
}

/// Where an ask stands that somebody waited for.
#[derive(Debug, Clone, PartialEq)]
pub enum Waited {
    /// No answer yet.
    Pending(Pending),
    /// The call that was allowed, or that asked, has run: its outcome.
    Finished {
        outcome: Value,
    },
    /// Another call uses the answer and has not ended.
    Running,
    /// The host died while the call ran.
    Unknown,
    Expired,
    Withdrawn,
}

/// The people behind the host, for the tools that ask them.
pub trait People: Send + Sync {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Asked, ToolError>>;

    /// Waits for the answer to an ask of the same caller, and runs the call that waits for it.
    fn wait<'a>(&'a self, approval_id: &'a str, timeout_ms: u64) -> BoxFuture<'a, Result<Waited, ToolError>>;
}
