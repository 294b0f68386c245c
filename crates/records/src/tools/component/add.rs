//! `component.add`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::tool::RecordTool;
use crate::{Component, ComponentType, Interface, ProjectRecords, Saved};

pub(crate) struct Add;

/// Keeps a new component of the design.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    within: InIteration,
}

impl RecordTool for Add {
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

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
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
