//! `persona.add`

use crate::Records;
use crate::{Persona, Saved};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use crate::tools::desk::desk;
use crate::tools::given;
use crate::tools::sheet::sheet;

pub(crate) struct Add(pub(crate) Records);

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

impl Tool for Add {
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

    fn revision(&self, output: &Self::Output) -> Option<String> {
        output.revision()
    }

    fn render(&self, output: &Self::Output) -> String {
        sheet(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Self::Output, ToolError> {
        let desk = desk(&self.0, ctx)?;
        let content = Persona { name: input.name, role: input.role, personality: input.personality };
        Ok(desk.create(content, 0, None).await?)
    }
}
