//! `git.init`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

use super::Mode;

pub(crate) struct Init;

/// Creates a git repository in the workspace root, without hooks. Fails if a repository is there already.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The name of the first branch; `main` by default.
    #[serde(default = "main_branch")]
    branch: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    branch: String,
}

fn main_branch() -> String {
    "main".to_owned()
}

/// `$1` is the branch.
const INIT: &str = r#"
if [ -e .git ] || [ -L .git ]; then
    if [ -d .git ] && [ -z "$(ls -A .git)" ]; then
        echo "a command is under way: try again when it has ended" >&2
    else
        echo "a repository is there already" >&2
    fi
    exit 70
fi
git check-ref-format --branch "$1" >/dev/null || exit 70
exec git init --quiet --template= --initial-branch="$1" .
"#;

impl Tool for Init {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.init";
    const TITLE: &'static str = "Create a repository";
    const FACTS: Facts = Facts::CHANGES_REPOSITORY;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "a new repository",
                arguments: json!({}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/branch", "\"main\"")]),
            },
            Example {
                says: "a repository is not created twice",
                arguments: json!({}),
                files: &[],
                before: &[("git.init", "{}")],
                expect: Expect::Fails(ErrorKind::Conflict),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        format!("created a repository; its branch is {}", output.branch)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let branch = super::name(super::NEW_BRANCH, &input.branch)?;
        let result = super::run(ctx, Mode::Write, INIT, &[&branch], "", &[]).await?;
        if result.exit_code != 0 {
            return Err(super::refused("no repository was created", &result));
        }
        Ok(Output { branch })
    }
}
