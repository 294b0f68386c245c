//! `record.get`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{ProjectRecords, Saved};

/// Most records that are told to name one.
const NAMED_BY_MAX: i64 = 200;

pub(crate) struct Get;

/// Returns one record of any kind by its id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Such as REQ-001, TASK-001 or TKT-001.
    id: String,
}

impl RecordTool for Get {
    type Input = Input;
    type Output = Saved<Map<String, Value>>;
    const NAME: &'static str = "record.get";
    const TITLE: &'static str = "Show a record";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a requirement",
                arguments: json!({"id":"REQ-001"}),
                files: &[],
                before: &[given::REQUIREMENT],
                expect: Expect::Data(&[("/id", r#""REQ-001""#), ("/version", "1"), ("/title", r#""Sign in""#)]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"id":"TASK-009"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let stored = desk.get_any(super::history::any_id(&input.id)?).await?;
        let Value::Object(mut content) = stored.body else {
            return Err(ToolError::internal(format!("the content of {} is no object", stored.id)));
        };
        let named_by = desk.named_by(stored.id, NAMED_BY_MAX).await?;
        if !named_by.is_empty() {
            content.insert("referredBy".to_owned(), named_by.iter().map(ToString::to_string).collect());
        }
        Ok(Saved {
            id: stored.id.to_string(),
            version: stored.version,
            iteration: (stored.iteration != 0).then_some(stored.iteration),
            content,
            holder: stored.holder,
            created_at_ms: stored.created_at_ms,
            updated_at_ms: stored.updated_at_ms,
        })
    }
}
