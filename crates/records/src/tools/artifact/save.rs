//! `artifact.save`

use crate::Records;
use crate::{Artifact, ArtifactKind, Query, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::{desk, edit, iteration_of};
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Save(pub(crate) Records);

/// Saves a document of the iteration as its next version; the versions before are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Which document.
    kind: ArtifactKind,
    /// The whole document, in Markdown.
    content: String,
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

impl Tool for Save {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let iteration = iteration_of(&desk, input.iteration).await?;
        let fits =
            Query { iteration: Some(iteration), title: Some(input.kind.as_str().to_owned()), ..Query::default() };
        let edit = edit(input.expected_version, input.why);
        let new = Artifact { kind: input.kind, content: input.content.clone() };
        let change = |artifact: &mut Artifact| {
            artifact.content = input.content;
            Ok(())
        };
        Ok(desk.create_or_update(new, iteration, &fits, &edit, change).await?)
    }
}
