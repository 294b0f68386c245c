//! `tool.describe`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

pub(crate) struct Describe;

/// Tells all about one of your tools: what it does, its arguments, its answer, and examples.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Any of the tool's names.
    name: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Output {
    name: String,
    wire_name: String,
    aliases: Vec<String>,
    title: String,
    description: String,
    effect: String,
    /// JSON Schema (2020-12) of the arguments.
    input_schema: Value,
    /// JSON Schema (2020-12) of `data` in the answer.
    output_schema: Value,
    /// Calls that work, and calls that show an error.
    examples: Vec<Shown>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Shown {
    says: String,
    arguments: Value,
    /// The kind of the error that this call fails with; null if it works.
    fails: Option<String>,
}

impl Shown {
    fn of(example: &Example) -> Self {
        Self {
            says: example.says.to_owned(),
            arguments: example.arguments.clone(),
            fails: example.fails().map(|kind| kind.as_str().to_owned()),
        }
    }

    fn line(&self) -> String {
        let fails = self.fails.as_ref().map_or(String::new(), |kind| format!(" (fails with `{kind}`)"));
        format!("{}{fails}:\n  {}", self.says, self.arguments)
    }
}

impl Tool for Describe {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "tool.describe";
    const TITLE: &'static str = "Describe a tool";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "by any of its names",
                arguments: json!({"name": "read_file"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[
                    ("/name", "\"file.read\""),
                    ("/effect", "\"reads\""),
                    ("/examples/0/fails", "null"),
                    ("/examples/3/fails", "\"security\""),
                ]),
            },
            Example {
                says: "a tool that is not there",
                arguments: json!({"name": "file.red"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::NotFound),
            },
        ]
    }

    fn render(&self, output: &Output) -> String {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
        let examples: Vec<String> = output.examples.iter().map(Shown::line).collect();
        format!(
            "{} ({}): {}\n\n{}\n\nother names: {}\n\narguments:\n{}\n\nanswer:\n{}\n\nexamples:\n{}",
            output.name,
            output.effect,
            output.title,
            output.description,
            std::iter::once(&output.wire_name).chain(&output.aliases).cloned().collect::<Vec<_>>().join(", "),
            pretty(&output.input_schema),
            pretty(&output.output_schema),
            examples.join("\n")
        )
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let mut tools = ctx.catalog.tools();
        let known = |tool: &toolhost_contract::ToolSummary| {
            tool.name == input.name || tool.wire_name == input.name || tool.aliases.contains(&input.name)
        };
        let Some(at) = tools.iter().position(known) else {
            let shown: String = input.name.chars().take(80).collect();
            let error = ToolError::new(ErrorKind::NotFound, format!("you have no tool `{shown}`"));
            let near = ctx.catalog.nearest(&input.name);
            let hint = near
                .first()
                .map_or("`tool.list` shows those you have".to_owned(), |name| format!("did you mean `{name}`?"));
            return Err(error.hint(hint));
        };
        let tool = tools.swap_remove(at);
        Ok(Output {
            name: tool.name,
            wire_name: tool.wire_name,
            aliases: tool.aliases,
            title: tool.title,
            description: tool.description,
            effect: tool.effect.as_str().to_owned(),
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            examples: tool.examples.iter().map(Shown::of).collect(),
        })
    }
}
