//! `artifact.load`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::arguments::InIteration;
use crate::tools::given;
use crate::tools::tool::{RecordAnswer, RecordTool};
use crate::{Artifact, ArtifactKind, ProjectRecords, Query};

pub(crate) struct Load;

/// Loads a document of the iteration: its latest version, or an earlier one.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct Input {
    /// Which document.
    kind: ArtifactKind,
    /// An earlier version.
    #[schemars(range(min = 1))]
    version: Option<i64>,
    #[serde(flatten)]
    within: InIteration,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    id: String,
    version: i64,
    /// The newest version there is.
    latest_version: i64,
    kind: ArtifactKind,
    content: String,
}

impl RecordAnswer for Output {
    fn text(&self) -> String {
        format!(
            "{} {} version {} of {}\n\n{}",
            self.id,
            self.kind.as_str(),
            self.version,
            self.latest_version,
            self.content
        )
    }
}

impl RecordTool for Load {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "artifact.load";
    const TITLE: &'static str = "Load an artifact";
    const FACTS: Facts = Facts::READS;

    fn aliases(&self) -> Vec<Alias> {
        vec![
            Alias::new("load_idea").preset(json!({"kind": "idea"})),
            Alias::new("load_prd_doc").preset(json!({"kind": "prd"})),
            Alias::new("load_design_doc").preset(json!({"kind": "design"})),
            Alias::new("load_plan_doc").preset(json!({"kind": "plan"})),
        ]
    }

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "the latest",
                arguments: json!({"kind":"prd"}),
                files: &[],
                before: &[given::ARTIFACT],
                expect: Expect::Data(&[("/version", r#"1"#), ("/content", r#""Todo List\nA list of things to do.""#)]),
            },
            Example {
                says: "one that is not there",
                arguments: json!({"kind":"plan"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let iteration = input.within.number(desk).await?;
        let query = Query {
            iteration: Some(iteration),
            title: Some(input.kind.as_str().to_owned()),
            limit: 1,
            ..Query::default()
        };
        let Some(found) = desk.list::<Artifact>(&query).await?.items.pop() else {
            let message = format!("this iteration has no `{}` yet", input.kind.as_str());
            return Err(
                ToolError::new(ErrorKind::NotFound, message).hint("`artifact.list` shows the documents there are")
            );
        };
        let (version, content) = match (input.version, found.record_id()) {
            (Some(version), Some(id)) if version != found.version => {
                let then = desk.version(id, version).await?;
                let content: Artifact = serde_json::from_value(then.content).map_err(ToolError::internal)?;
                (version, content.content)
            }
            _ => (found.version, found.content.content),
        };
        Ok(Output { id: found.id, version, latest_version: found.version, kind: input.kind, content })
    }
}
