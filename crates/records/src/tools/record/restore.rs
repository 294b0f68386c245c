//! `record.restore`

use crate::RecordError;
use crate::Records;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{desk, edit, pretty};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Restore(pub(crate) Records);

/// Makes a record what it was at a version, also one that was deleted. That is a new version: nothing is lost. A state that follows rules, such as a task's, stays as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as REQ-001.
    id: String,
    /// The version; `record.history` shows them.
    #[schemars(range(min = 1))]
    version: i64,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    id: String,
    version: i64,
    content: serde_json::Value,
}

impl Tool for Restore {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "record.restore";
    const TITLE: &'static str = "Restore a version";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "after a delete",
                arguments: json!({"id":"REQ-001","version":1}),
                files: &[],
                before: &[given::REQUIREMENT, ("requirement.delete", r#"{"id":"REQ-001"}"#)],
                expect: Expect::Data(&[("/version", r#"3"#), ("/content/title", r#""Sign in""#)]),
            },
            Example {
                says: "a version that never was",
                arguments: json!({"id":"REQ-001","version":9}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let (desk, id) = (desk(&self.0, ctx)?, super::history::any_id(&input.id)?);
        let then = desk.version(id, input.version).await?;
        // Where it was deleted, nothing is there now.
        let now = match desk.get_any(id).await {
            Ok(record) => format!("version {}:\n{}", record.version, pretty(&record.body)),
            Err(RecordError::NotFound { .. }) => "deleted".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let summary = format!("make {id} what it was at version {}", input.version);
        let detail = format!("version {}:\n{}\n\nas it is now, {now}", input.version, pretty(&then.content));
        Ok(Some(Preview { summary, detail, left_out: 0, rests_on: serde_json::Value::Null }))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let id = super::history::any_id(&input.id)?;
        let stored = desk.restore(id, input.version, &edit(input.expected_version, input.why)).await?;
        Ok(Output { id: stored.id.to_string(), version: stored.version, content: stored.body })
    }
}
