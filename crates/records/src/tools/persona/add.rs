//! `persona.add`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use crate::tools::given;
use crate::tools::tool::RecordTool;
use crate::{Persona, ProjectRecords, Saved};

pub(crate) struct Add;

/// Keeps a new persona: a name under which an agent works.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The name that commits and comments carry.
    #[schemars(length(min = 1, max = 100))]
    name: String,
    /// The profile whose tools it gets, such as `developer`.
    #[schemars(length(min = 1, max = 100))]
    role: String,
    /// How it works and speaks.
    #[serde(default)]
    personality: String,
}

impl RecordTool for Add {
    type Input = Input;
    type Output = Saved<Persona>;
    const NAME: &'static str = "persona.add";
    const TITLE: &'static str = "Add a persona";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a developer",
                arguments: json!({"name":"Ada","role":"developer"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/id", r#""PERS-001""#)]),
            },
            Example {
                says: "the same name again",
                arguments: json!({"name":"Ada","role":"reviewer"}),
                files: &[],
                before: &[given::PERSONA],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    async fn run(&self, _: &Ctx<'_>, desk: &ProjectRecords, input: Input) -> Result<Self::Output, ToolError> {
        let content = Persona { name: input.name, role: input.role, personality: input.personality };
        Ok(desk.create(content, 0, None).await?)
    }
}
