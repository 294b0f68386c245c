//! `memory.save_insight`

use crate::Records;
use crate::{Importance, Insight, Saved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct SaveInsight(pub(crate) Records);

/// Remembers something you noticed, for this iteration and later ones. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The stage of the work, such as design or coding.
    #[schemars(length(min = 1, max = 100))]
    stage: String,
    /// What is to be remembered.
    #[schemars(length(min = 1))]
    content: String,
    /// How much it matters.
    #[serde(default = "importance_default")]
    importance: Importance,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    #[serde(flatten)]
    saved: Saved<Insight>,
    /// It was already there, and nothing was added.
    duplicate: bool,
}

impl Tool for SaveInsight {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "memory.save_insight";
    const TITLE: &'static str = "Save an insight";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("save_insight")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a critical one",
                arguments: json!({"stage":"design","content":"SQLite is fast enough","importance":"critical"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""INS-001""#), ("/duplicate", r#"false"#)]),
            },
            Example {
                says: "the same again",
                arguments: json!({"stage":"design","content":"sqlite is fast enough!"}),
                files: &[],
                before: &[given::INSIGHT],
                expect: Expect::Data(&[("/id", r#""INS-001""#), ("/duplicate", r#"true"#)]),
            },
        ]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.saved.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        let note = if output.duplicate { "already there\n" } else { "" };
        format!("{note}{}", sheet(&output.saved))
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let (saved, new) = desk
            .create_once(
                Insight { stage: input.stage, content: input.content, importance: input.importance },
                iteration,
            )
            .await?;
        Ok(Output { saved, duplicate: !new })
    }
}

fn importance_default() -> Importance {
    Importance::Normal
}
