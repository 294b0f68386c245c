//! `bash.kill`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Facts, OtherName, Tool, ToolError, Waits};

use super::Read;
use super::output::NAMES;

pub(crate) struct Kill;

/// Ends a background command with all it has started; reads its last output.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// As `bash` with `background` gave it.
    handle: String,
}

impl Tool for Kill {
    type Input = Input;
    type Output = Read;
    const NAME: &'static str = "bash.kill";
    const TITLE: &'static str = "End a background command";
    const FACTS: Facts = Facts { effect: Effect::Writes, waits: Waits::Command, ..Facts::READS };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &["KillShell", "KillBash", "TaskStop", "kill_terminal"];

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a command that this session has not begun",
            arguments: json!({"handle": "command-99"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Read) -> String {
        output.text()
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Read, ToolError> {
        let heard = ctx.background.end(&input.handle).await?;
        Ok(Read::new(input.handle, heard))
    }
}
