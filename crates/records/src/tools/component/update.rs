//! `component.update`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Example, Expect, Facts, ToolError};

use crate::tools::desk::{set, set_or_clear};
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Component, ComponentType, Edit, Interface, Kind, ProjectRecords, RecordId, Saved};

pub(crate) struct Update;

/// Changes the fields you give of a component; the others stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
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
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Update {
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

    fn changes(&self, _: &Ctx<'_>, input: &Input) -> Result<Option<RecordId>, ToolError> {
        Ok(Some(RecordId::of(Kind::Component, &input.id)?))
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let saved = desk.update::<Component>(&input.id, &input.edit, |content| {
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
