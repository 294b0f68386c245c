//! `builder.asset.read`

use crate::envelope::TargetType;
use crate::packages::ProjectPackage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::PACKAGE;
use super::tool::{PackageTool, Read};
use super::{Workflow, workflow_of};

pub(crate) struct AssetRead;

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
#[schemars(rename = "Asset")]
pub(crate) struct Object {
    path: String,
    content: String,
    /// Its ending: `md`, `txt`, `json`, `yaml` or `yml`.
    file_type: String,
    /// The references to it, each with its place.
    referenced_by: Vec<Value>,
}

impl PackageTool for AssetRead {
    type Input = Input;
    type Output = Read<Object>;
    const NAME: &'static str = "builder.asset.read";
    const TITLE: &'static str = "Read an asset";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            PACKAGE.example(
                "with its references",
                json!({"path": "assets/guide.md"}),
                Expect::Data(&[
                    ("/content", "\"# Guide\\n\""),
                    ("/file_type", "\"md\""),
                    ("/referenced_by/0/from", "\"step:main/begin\""),
                ]),
            ),
            PACKAGE.example(
                "one that is not there",
                json!({"path": "assets/other.md"}),
                Expect::Fails(ErrorKind::NotFound),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Self::Output, ToolError> {
        let workflow = workflow_of(ctx, input.workflow_id);
        Read::object(ctx, package, TargetType::Asset, &input.path, workflow).await
    }
}
