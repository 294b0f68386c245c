//! `artifact.save`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Artifact, ArtifactKind, Edit, ProjectRecords, Query, Saved};

pub(crate) struct Save;

/// Saves a document of the iteration as its next version; the versions before are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which document.
    kind: ArtifactKind,
    /// The whole document, in Markdown.
    content: String,
    #[serde(flatten)]
    within: InIteration,
    #[serde(flatten)]
    edit: Edit,
}

impl RecordTool for Save {
    type Input = Input;
    type Output = Saved<Artifact>;
    const NAME: &'static str = "artifact.save";
    const TITLE: &'static str = "Save an artifact";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("save_idea").preset(json!({"kind": "idea"})),
            Alias::new("save_prd_doc").preset(json!({"kind": "prd"})),
            Alias::new("save_design_doc").preset(json!({"kind": "design"})),
            Alias::new("save_plan_doc").preset(json!({"kind": "plan"})),
            Alias::new("save_check_report").preset(json!({"kind": "check_report"})),
            Alias::new("save_delivery_report").preset(json!({"kind": "delivery_report"})),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a requirements document",
                arguments: json!({"kind":"prd","content":"Todo List"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/version", r#"1"#), ("/kind", r#""prd""#)]),
            },
            Example {
                says: "its next version",
                arguments: json!({"kind":"prd","content":"Todo List, two"}),
                files: &[],
                before: &[given::ARTIFACT],
                expect: Expect::Data(&[("/version", r#"2"#)]),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let fits =
            Query { iteration: Some(iteration), title: Some(input.kind.as_str().to_owned()), ..Query::default() };
        let new = Artifact { kind: input.kind, content: input.content.clone() };
        let change = |artifact: &mut Artifact| {
            artifact.content = input.content;
            Ok(())
        };
        Ok(desk.create_or_update(new, iteration, &fits, &input.edit, change).await?)
    }
}
