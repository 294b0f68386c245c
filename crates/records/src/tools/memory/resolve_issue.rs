//! `memory.resolve_issue`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::tool::RecordTool;
use crate::{Edit, Issue, Kind, ProjectRecords, RecordError, RecordId, Saved};

pub(crate) struct ResolveIssue;

/// Says that an issue is resolved, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as ISS-001.
    id: String,
    /// How.
    resolution: Option<String>,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for ResolveIssue {
    type Input = Input;
    type Output = Saved<Issue>;
    const NAME: &'static str = "memory.resolve_issue";
    const TITLE: &'static str = "Resolve an issue";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "by waiting",
                arguments: json!({"id":"ISS-001","resolution":"waits for the server"}),
                files: &[],
                before: &[("memory.save_issue", r#"{"stage":"coding","content":"the login test is flaky"}"#)],
                expect: Expect::Data(&[("/resolved", r#"true"#)]),
            },
            Example {
                says: "twice",
                arguments: json!({"id":"ISS-001"}),
                files: &[],
                before: &[
                    ("memory.save_issue", r#"{"stage":"coding","content":"the login test is flaky"}"#),
                    ("memory.resolve_issue", r#"{"id":"ISS-001"}"#),
                ],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let now = desk.now_ms();
        let record = RecordId::of(Kind::Issue, &input.id)?;
        let saved = desk.update::<Issue>(&input.id, &input.edit, |content| {
            if content.resolved {
                let (from, expected) = ("resolved already".to_owned(), "open".to_owned());
                return Err(RecordError::NotInState { id: record, from, expected });
            }
            content.resolved = true;
            content.resolved_at_ms = Some(now);
            content.resolution = input.resolution;
            Ok(())
        });
        Ok(saved.await?)
    }
}
