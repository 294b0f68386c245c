//! `approval.wait`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Attachment, Ctx, ErrorKind, Example, Expect, Facts, Help, Tool, ToolError, Waited, Waits};

const TIMEOUT_MS_DEFAULT: u64 = 30_000;

pub(crate) struct Wait;

/// Waits for a person's answer to your pending call and, once allowed, runs it, exactly once; the answer has its outcome. Waiting
/// again returns the same outcome.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The approvalId of the pending call, such as `ask-7`.
    approval_id: String,
    /// How long to wait, in milliseconds; 30000 by default.
    #[schemars(range(min = 0, max = 600_000))]
    timeout_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    /// `pending`: nobody has answered yet. `finished`: the call has ended, see `outcome`. `running`: another call runs it.
    /// `unknown`: the host ended while it ran; look before you repeat anything. `expired`, `withdrawn`: it did not run.
    status: String,
    approval_id: String,
    /// `pending`: until when an answer is waited for, milliseconds since 1970.
    expires_at: Option<i64>,
    /// `finished`: the outcome of the call itself, with `ok`, `data` and `error`; denied ones too.
    outcome: Option<Value>,
    /// What the call's answer has beside its text.
    #[serde(skip)]
    attachments: Vec<Attachment>,
}

impl Tool for Wait {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "approval.wait";
    const TITLE: &'static str = "Wait for a person";
    const FACTS: Facts = Facts { help: Some(Help::AwaitsApproval), waits: Waits::Person, ..Facts::READS };

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "an approval that is not there",
            arguments: json!({"approvalId": "ask-99"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        match output.status.as_str() {
            "finished" => {
                let text = output.outcome.as_ref().and_then(|outcome| outcome.get("text")).and_then(Value::as_str);
                text.unwrap_or("it has ended").to_owned()
            }
            "pending" => format!("{} has no answer yet; wait again", output.approval_id),
            "running" => format!("{} was allowed and is running; wait again", output.approval_id),
            "unknown" => format!(
                "{} was allowed and started, and the host ended while it ran: look at what is there before you repeat it",
                output.approval_id
            ),
            "expired" => format!("{} has expired without an answer; it did not run", output.approval_id),
            _ => format!("{} was withdrawn; it did not run", output.approval_id),
        }
    }

    fn attachments(&self, output: &Output) -> Vec<Attachment> {
        output.attachments.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let timeout_ms = input.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT);
        let waited = ctx.people.wait(&input.approval_id, timeout_ms).await?;
        let mut output = Output {
            status: String::new(),
            approval_id: input.approval_id,
            expires_at: None,
            outcome: None,
            attachments: Vec::new(),
        };
        let status = match waited {
            Waited::Pending(pending) => {
                output.expires_at = Some(pending.expires_at_ms);
                "pending"
            }
            Waited::Finished { mut outcome } => {
                let attached = outcome.as_object_mut().and_then(|outcome| outcome.remove("attachments"));
                output.attachments =
                    attached.map(serde_json::from_value).transpose().map_err(ToolError::internal)?.unwrap_or_default();
                output.outcome = Some(outcome);
                "finished"
            }
            Waited::Running => "running",
            Waited::Unknown => "unknown",
            Waited::Expired => "expired",
            Waited::Withdrawn => "withdrawn",
        };
        status.clone_into(&mut output.status);
        Ok(output)
    }
}
