//! `record.restore`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Preview, ToolError};

use crate::tools::desk::pretty;
use crate::tools::given;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Edit, ProjectRecords, RecordError};

pub(crate) struct Restore;

/// Makes a record what it was at a version, also one that was deleted. That is a new version: nothing is lost. A state that follows rules, such as a task's, stays as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which one, such as REQ-001.
    id: String,
    /// The version; `record.history` shows them.
    #[schemars(range(min = 1))]
    version: i64,
    #[serde(flatten)]
    edit: Edit,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    id: String,
    version: i64,
    content: serde_json::Value,
}

impl RecordAnswer for Output {}

impl RecordTool for Restore {
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

    async fn preview(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = super::history::any_id(&input.id)?;
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = super::history::any_id(&input.id)?;
        let stored = desk.restore(id, input.version, &input.edit).await?;
        Ok(Output { id: stored.id.to_string(), version: stored.version, content: stored.body })
    }
}
