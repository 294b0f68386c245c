//! `session.result`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};
use toolhost_store::Steps;

pub(crate) struct SessionResult(pub(crate) Steps);

/// Reads again the answer or the arguments of an earlier call of this session: a handle stands for those that were too long or
/// too old to be shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Such as call_3_0.
    #[schemars(regex(pattern = r"^call_[0-9]{1,9}_[0-9]{1,9}$"))]
    handle: String,
    /// `result`: its answer; `arguments`: its arguments, as JSON.
    #[serde(default)]
    part: Part,
    /// Where to begin, in characters.
    #[serde(default)]
    offset: usize,
    /// Most characters.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(default = "chars_default")]
    limit: usize,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Part {
    #[default]
    Result,
    Arguments,
}

fn chars_default() -> usize {
    20_000
}

/// A part of a result or of arguments.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub(crate) struct Output {
    handle: String,
    /// The tool that was called.
    tool: String,
    /// Whether that call succeeded.
    ok: bool,
    /// The part that was asked for.
    content: String,
    /// Where it begins, in characters.
    offset: usize,
    /// Of the whole text, in characters.
    total_chars: usize,
    /// Where the next part begins; none after the last.
    next_offset: Option<usize>,
}

impl Tool for SessionResult {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "session.result";
    const TITLE: &'static str = "Read an earlier result again";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "a call that this session has not made",
            arguments: json!({"handle": "call_3_0"}),
            files: &[],
            before: &[],
            expect: Expect::Fails(ErrorKind::NotFound),
        }]
    }

    fn render(&self, output: &Output) -> String {
        let Output { handle, tool, offset, total_chars, content, .. } = output;
        let end = offset + content.chars().count();
        let more = output.next_offset.map(|next| format!("\n[more with offset {next}]")).unwrap_or_default();
        format!("{tool} ({handle}), characters {offset} to {end} of {total_chars}:\n{content}{more}")
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let scope = &ctx.call.scope;
        let missing = || {
            let message = format!("this session has no result `{}`", input.handle);
            ToolError::new(ErrorKind::NotFound, message).hint("handles stand where a result was shortened or put away")
        };
        let session = scope.session_id.as_deref().ok_or_else(missing)?;
        let step = async |name: &str| {
            let found = self.0.get(scope.project_id, scope.user_id, session, name).await;
            found.map_err(ToolError::from)?.ok_or_else(missing)
        };
        let called = step(&input.handle).await?;
        let text = |field: &str| called.body.get(field).and_then(Value::as_str).unwrap_or_default();
        let asked;
        let whole = match input.part {
            Part::Result => text("content"),
            Part::Arguments => {
                let (turn, index) = place(&input.handle).ok_or_else(missing)?;
                asked = arguments(&step(&format!("turn_{turn}")).await?.body, index).ok_or_else(missing)?;
                &asked
            }
        };
        let content: String = whole.chars().skip(input.offset).take(input.limit).collect();
        let total_chars = whole.chars().count();
        let end = input.offset.saturating_add(content.chars().count());
        Ok(Output {
            tool: text("tool").to_owned(),
            ok: called.body.get("ok").and_then(Value::as_bool).unwrap_or(false),
            handle: input.handle,
            content,
            offset: input.offset,
            total_chars,
            next_offset: (end < total_chars).then_some(end),
        })
    }
}

/// The turn of a handle, and the call's place in it.
fn place(handle: &str) -> Option<(&str, usize)> {
    let (turn, index) = handle.strip_prefix("call_")?.split_once('_')?;
    Some((turn, index.parse().ok()?))
}

/// What a model said for arguments, as the journal has it: JSON, or what was none.
fn arguments(turn: &Value, index: usize) -> Option<String> {
    let asked = turn.pointer(&format!("/reply/calls/{index}/arguments"))?;
    let malformed = asked.get("malformed").and_then(Value::as_str).map(str::to_owned);
    malformed.or_else(|| Some(asked.get("json")?.to_string()))
}
