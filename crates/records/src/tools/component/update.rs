//! `component.update`

use crate::Records;
use crate::{Component, ComponentType, Interface, Kind, RecordId, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, Preview, Tool, ToolError};

use crate::tools::desk::{changing, desk, edit, set, set_or_clear};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Update(pub(crate) Records);

/// Changes the fields you give of a component; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which one, such as COMP-001.
    id: String,
    /// What it is called.
    #[schemars(length(min = 1, max = 500))]
    name: Option<String>,
    /// What it is.
    component_type: Option<ComponentType>,
    /// What `other` stands for; empty for nothing.
    other_type: Option<String>,
    /// All of them.
    responsibilities: Option<Vec<String>>,
    /// What it is built with.
    technology: Option<String>,
    /// All of them.
    interfaces: Option<Vec<Interface>>,
    /// All features it serves.
    related_features: Option<Vec<String>>,
    /// Change it only if it is still at this version.
    #[schemars(range(min = 1))]
    expected_version: Option<i64>,
    /// Why, for its history.
    #[schemars(length(max = 2000))]
    why: Option<String>,
}

impl Tool for Update {
    type Input = Input;
    type Output = Saved<Component>;
    const NAME: &'static str = "component.update";
    const TITLE: &'static str = "Change a component";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "what it serves",
            arguments: json!({"id":"COMP-001","relatedFeatures":["FEAT-001"],"interfaces":[{"name":"GET /login"}]}),
            files: &[],
            before: &[given::REQUIREMENT, given::FEATURE, given::COMPONENT],
            expect: Expect::Data(&[("/relatedFeatures/0", r#""FEAT-001""#), ("/interfaces/0/name", r#""GET /login""#)]),
        }]
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn preview(&self, ctx: &Ctx<'_>, input: Input) -> Result<Option<Preview>, ToolError> {
        let id = RecordId::of(Kind::Component, &input.id)?;
        changing(ctx, &desk(&self.0, ctx)?, id, Self::TITLE).await.map(Some)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let edit = edit(input.expected_version, input.why);
        let saved = desk.update::<Component>(&input.id, &edit, |content| {
            set(&mut content.name, input.name);
            set(&mut content.component_type, input.component_type);
            set_or_clear(&mut content.other_type, input.other_type);
            set(&mut content.responsibilities, input.responsibilities);
            set(&mut content.technology, input.technology);
            set(&mut content.interfaces, input.interfaces);
            set(&mut content.related_features, input.related_features);
            Ok(())
        });
        Ok(saved.await?)
    }
}
