//! `design.update`

use crate::Records;
use crate::{DataModel, Design, Query, Saved, TechnologyStack};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit, iteration_of, set};
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Says what the design is besides its components. What you leave out stays as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Such as `three services behind a gateway`.
    architecture_style: Option<String>,
    /// All things the product stores.
    data_models: Option<Vec<DataModel>>,
    /// What the product is built with.
    technology_stack: Option<TechnologyStack>,
    /// How it is brought to where it runs.
    deployment: Option<String>,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let fits = Query { iteration: Some(iteration), ..Query::default() };
        let change = |content: &mut Design| {
            set(&mut content.architecture_style, input.architecture_style);
            set(&mut content.data_models, input.data_models);
            set(&mut content.technology_stack, input.technology_stack);
            set(&mut content.deployment, input.deployment);
            Ok(())
        };
        Ok(desk
            .create_or_update(Design::default(), iteration, &fits, &edit(input.expected_version, input.why), change)
            .await?)
    }
}
