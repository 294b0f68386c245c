//! `memory.resolve_issue`

use crate::Records;
use crate::{Issue, Kind, RecordError, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit};
use crate::tools::sheet::sheet;

pub(crate) struct ResolveIssue(pub(crate) Records);

/// Says that an issue is resolved, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as ISS-001.
    id: String,
    /// How.
    resolution: Option<String>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for ResolveIssue {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let now = desk.now_ms();
        let record = RecordId::of(Kind::Issue, &input.id)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Issue>(&input.id, &edit, |content| {
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
