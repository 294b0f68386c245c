//! `memory.save_insight`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::{Once, RecordTool};
use crate::{Importance, Insight, ProjectRecords};

pub(crate) struct SaveInsight;

/// Remembers something you noticed, for this iteration and later ones. What is already there is not kept twice.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for SaveInsight {
    type Input = Input;
    type Output = Once<Insight>;
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let insight = Insight { stage: input.stage, content: input.content, importance: input.importance };
        Once::keep(desk, insight, iteration).await
    }
}

fn importance_default() -> Importance {
    Importance::Normal
}
