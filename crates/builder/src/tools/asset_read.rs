//! `builder.asset.read`

use crate::envelope::TargetType;
use crate::packages::Packages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError, WorkflowRef};

use super::given::PACKAGE;
use super::{Read, Workflow, session, shelf, workflow_of};

pub(crate) struct AssetRead(pub(crate) Packages);

/// Reads an asset of the package, and what refers to it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Its path, from `assets/` on.
    path: String,
    /// The workflow that the question is about: its number or its id.
    workflow_id: Option<Workflow>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Object {
    path: String,
    content: String,
    /// Its ending: `md`, `txt`, `json`, `yaml` or `yml`.
    file_type: String,
    /// The references to it, each with its place.
    referenced_by: Vec<Value>,
}

impl Tool for AssetRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.asset.read";
    const TITLE: &'static str = "Read an asset";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "with its references",
                arguments: json!({"path": "assets/guide.md"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[
                    ("/content", "\"# Guide\\n\""),
                    ("/file_type", "\"md\""),
                    ("/referenced_by/0/from", "\"step:main/begin\""),
                ]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"path": "assets/other.md"}),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Self::Output) -> String {
        output.text()
    }

    fn revision(&self, output: &Self::Output) -> Option<String> {
        Some(output.target.clone())
    }

    fn workflow(&self, output: &Self::Output) -> Option<WorkflowRef> {
        output.workflow.clone()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let workflow = workflow_of(ctx, input.workflow_id);
        let shelf = shelf(&self.0, ctx)?;
        Read::new(shelf.read(TargetType::Asset, &input.path, workflow.as_ref(), session(ctx)).await?)
    }
}
