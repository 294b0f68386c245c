//! `record.history`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::sheet::listed;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{ProjectRecords, RecordId, Version};

pub(crate) struct History;

/// Shows every version of a record of any kind, the newest first: who changed it, when, how and why. Deleted records, too.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as REQ-001 or TKT-001.
    id: String,
    /// Most versions of one answer.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "versions_default")]
    limit: i64,
    /// Only versions before this one.
    #[schemars(range(min = 1))]
    before: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    id: String,
    versions: Vec<Version>,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!("{}\n\n{}", self.id, listed("versions", &self.versions))
    }
}

impl RecordTool for History {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "record.history";
    const TITLE: &'static str = "Show what a record was";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "two versions",
            arguments: json!({"id":"REQ-001"}),
            files: &[],
            before: &[
                given::REQUIREMENT,
                ("requirement.update", r#"{"id":"REQ-001","title":"Log in","why":"shorter"}"#),
            ],
            expect: Expect::Data(&[
                ("/versions/0/version", r#"2"#),
                ("/versions/0/why", r#""shorter""#),
                ("/versions/1/content/title", r#""Sign in""#),
            ]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let id = any_id(&input.id)?;
        Ok(Output { id: id.to_string(), versions: desk.history(id, input.before, input.limit).await? })
    }
}

fn versions_default() -> i64 {
    20
}

pub(super) fn any_id(text: &str) -> Result<RecordId, ToolError> {
    RecordId::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        ToolError::new(ErrorKind::Validation, format!("`{shown}` is not the id of a record"))
            .hint("ids look like REQ-001, FEAT-001, TASK-001 or TKT-001")
    })
}
