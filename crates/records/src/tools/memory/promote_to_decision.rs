//! `memory.promote_to_decision`

use crate::Records;
use crate::{Decision, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct PromoteToDecision(pub(crate) Records);

/// Keeps a decision of the project, made of an insight, an issue or a learning.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
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
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for PromoteToDecision {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
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
