//! `memory.promote_to_decision`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Decision, ProjectRecords, Saved};

pub(crate) struct PromoteToDecision;

/// Keeps a decision of the project, made of an insight, an issue or a learning.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// What was decided about.
    #[schemars(length(min = 1, max = 500))]
    title: String,
    /// What made it necessary.
    context: String,
    /// What was decided.
    #[schemars(length(min = 1))]
    decision: String,
    /// What follows from it.
    #[serde(default)]
    consequences: Vec<String>,
    /// The insight, issue or learning it is made of, such as INS-001. Each becomes one decision at most.
    source_id: Option<String>,
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for PromoteToDecision {
    type Input = Input;
    type Output = Saved<Decision>;
    const NAME: &'static str = "memory.promote_to_decision";
    const TITLE: &'static str = "Keep a decision";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("promote_to_decision")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "of an insight",
                arguments: json!({"title":"Database","context":"one machine","decision":"SQLite","sourceId":"INS-001"}),
                files: &[],
                before: &[given::INSIGHT],
                expect: Expect::Data(&[("/id", r#""DEC-001""#), ("/sourceId", r#""INS-001""#)]),
            },
            Example {
                says: "twice",
                arguments: json!({"title":"Database","context":"","decision":"SQLite, really","sourceId":"INS-001"}),
                files: &[],
                before: &[
                    given::INSIGHT,
                    (
                        "memory.promote_to_decision",
                        r#"{"title":"Database","context":"one machine","decision":"SQLite","sourceId":"INS-001"}"#,
                    ),
                ],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let content = Decision {
            title: input.title,
            context: input.context,
            decision: input.decision,
            consequences: input.consequences,
            source_id: input.source_id,
        };
        Ok(desk.promote(content, iteration).await?)
    }
}
