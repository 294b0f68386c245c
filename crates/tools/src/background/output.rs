//! `bash.output`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, OtherName, Tool, ToolError, Waits};

use super::Read;

pub(crate) struct Output;

/// Reads on in the output of a background command or of a cut answer; tells whether it has ended.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// As `bash` gave it.
    handle: String,
    /// How long to wait for more, in milliseconds.
    #[schemars(range(max = 60_000))]
    #[serde(default = "wait_default")]
    wait_ms: u64,
}

const fn wait_default() -> u64 {
    1000
}

/// What models call the argument `handle`.
pub(super) const NAMES: &[OtherName] = &[
    OtherName::argument("id", "handle"),
    OtherName::argument("bash_id", "handle"),
    OtherName::argument("shell_id", "handle"),
    OtherName::argument("task_id", "handle"),
    OtherName::argument("session_id", "handle"),
];

impl Tool for Output {
    type Input = Input;
    type Output = Read;
    const NAME: &'static str = "bash.output";
    const TITLE: &'static str = "Read a background command";
    const FACTS: Facts = Facts { waits: Waits::Command, ..Facts::READS };
    const OTHER_NAMES: &'static [&'static [OtherName]] = &[NAMES];
    const CALLED_ELSEWHERE: &'static [&'static str] = &["BashOutput", "TaskOutput", "get_terminal_output"];

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
        let heard = tokio::select! {
            heard = ctx.background.read(&input.handle, input.wait_ms) => heard?,
            () = ctx.cancel.cancelled() => return Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled")),
        };
        Ok(Read::new(input.handle, heard))
    }
}
