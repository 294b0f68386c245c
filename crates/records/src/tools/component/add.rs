//! `component.add`

use crate::Records;
use crate::{Component, ComponentType, Interface, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, iteration_of};
use crate::tools::sheet::sheet;

pub(crate) struct Add(pub(crate) Records);

/// Keeps a new component of the design.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: String,
    /// What it is.
    component_type: ComponentType,
    /// What it does, one sentence each.
    #[schemars(length(min = 1))]
    responsibilities: Vec<String>,
    /// What it is built with.
    technology: String,
    /// What it offers to others.
    #[serde(default)]
    interfaces: Vec<Interface>,
    /// The features it serves, such as FEAT-001.
    #[serde(default)]
    related_features: Vec<String>,
    /// What `other` stands for.
    other_type: Option<String>,
    /// The number of an iteration; the current one if left out, 0 for what belongs to none.
    #[schemars(range(min = 0))]
    iteration: Option<i64>,
}

impl Tool for Add {
    type Input = Input;
    type Output = Saved<Component>;
    const NAME: &'static str = "component.add";
    const TITLE: &'static str = "Add a component";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("add_component"), Alias::new("create_design_component")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a page",
                arguments: json!({"name":"web","componentType":"frontend_component","responsibilities":["shows pages"],"technology":"HTML"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""COMP-001""#)]),
            },
            Example {
                says: "one that does nothing",
                arguments: json!({"name":"web","componentType":"other","responsibilities":[],"technology":"HTML"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
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
        let content = Component {
            name: input.name,
            component_type: input.component_type,
            other_type: input.other_type,
            responsibilities: input.responsibilities,
            technology: input.technology,
            interfaces: input.interfaces,
            related_features: input.related_features,
        };
        Ok(desk.create(content, iteration, None).await?)
    }
}
