//! `git.diff`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Tool, ToolError};

pub(crate) struct Diff;

/// Shows what has changed as a unified diff: not staged by default, staged, or since a commit or branch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What is staged for the next commit.
    #[serde(default)]
    staged: bool,
    /// Only this file or folder, from the workspace root.
    path: Option<String>,
    /// Compare with this commit or branch instead of the index.
    base: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Unified diff; empty if nothing has changed.
    diff: String,
    /// The middle was left out.
    truncated: bool,
}

impl Tool for Diff {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "git.diff";
    const TITLE: &'static str = "Show changes";
    const FACTS: Facts = Facts { paths: &["path"], ..Facts::READS_REPOSITORY };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[&[
        OtherName::argument("file_path", "path"),
        OtherName::argument("file", "path"),
        OtherName::argument("cached", "staged"),
        OtherName::argument("ref", "base"),
        OtherName::argument("commit", "base"),
        OtherName::argument("branch", "base"),
    ]];

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "an option is no revision",
            arguments: json!({"base": "--output=/tmp/x"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::Validation),
        }]
    }

    fn render(&self, output: &Output) -> String {
        if output.diff.is_empty() { "no changes".to_owned() } else { output.diff.clone() }
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let base = input.base.as_deref().map(|base| super::name("revision", base)).transpose()?;
        let path = input.path.as_deref().map(super::path).transpose()?;
        let mut arguments = vec![
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--submodule=short",
            "--ignore-submodules=dirty",
        ];
        if input.staged {
            arguments.push("--cached");
        }
        if let Some(base) = &base {
            arguments.extend(["--end-of-options", base]);
        }
        arguments.push("--");
        if let Some(path) = &path {
            arguments.push(path.as_str());
        }
        let result = super::read(ctx, &arguments).await?;
        if result.exit_code != 0 {
            let base = base.as_deref().unwrap_or("HEAD");
            return Err(super::refused(&format!("the diff against `{base}` could not be made"), &result));
        }
        Ok(Output { diff: result.stdout.text, truncated: result.stdout.truncated })
    }
}
