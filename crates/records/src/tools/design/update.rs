//! `design.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::desk::set;
use crate::tools::tool::RecordTool;
use crate::{DataModel, Design, Edit, ProjectRecords, Query, Saved, TechnologyStack};

pub(crate) struct Update;

/// Says what the design is besides its components. What you leave out stays as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Such as `three services behind a gateway`.
    architecture_style: Option<String>,
    /// All things the product stores.
    data_models: Option<Vec<DataModel>>,
    /// What the product is built with.
    technology_stack: Option<TechnologyStack>,
    /// How it is brought to where it runs.
    deployment: Option<String>,
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
    type Input = Input;
    type Output = Saved<Design>;
    const NAME: &'static str = "design.update";
    const TITLE: &'static str = "Describe the design";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "its style",
            arguments: json!({"architectureStyle":"one page","technologyStack":{"frontend":"HTML"}}),
            files: &[],
            before: &[],
            expect: Expect::Data(&[
                ("/architectureStyle", r#""one page""#),
                ("/technologyStack/frontend", r#""HTML""#),
            ]),
        }]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let fits = Query { iteration: Some(iteration), ..Query::default() };
        let change = |content: &mut Design| {
            set(&mut content.architecture_style, input.architecture_style);
            set(&mut content.data_models, input.data_models);
            set(&mut content.technology_stack, input.technology_stack);
            set(&mut content.deployment, input.deployment);
            Ok(())
        };
        Ok(desk.create_or_update(Design::default(), iteration, &fits, &input.edit, change).await?)
    }
}
