//! `tool.list`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolhost_contract::{Alias, Ctx, Example, Expect, Facts, Help, Tool, ToolError};

pub(crate) struct List;

/// Lists your tools, with a line about each; `tool.describe` tells all about one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// Only tools of this family, such as `file` or `git`.
    family: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    tools: Vec<Line>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: String,
    /// The name where dots are not allowed.
    wire_name: String,
    title: String,
    /// The first sentence of its description.
    summary: String,
    /// What it can do: `reads`, `writes`, `executes`, `reaches` or `asks`.
    effect: String,
}

impl Tool for List {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "tool.list";
    const TITLE: &'static str = "List your tools";
    const FACTS: Facts = Facts { help: Some(Help::ListsTools), ..Facts::READS };

    fn aliases(&self) -> Vec<Alias> {
        vec![Alias::new("list_my_tools")]
    }

    fn examples(&self) -> Vec<Example> {
        vec![Example {
            says: "one family",
            arguments: json!({"family": "tool"}),
            files: &[],
            before: &[],
            expect: Expect::Data(&[("/tools/0/name", "\"tool.list\""), ("/tools/1/wireName", "\"tool_describe\"")]),
        }]
    }

    fn render(&self, output: &Output) -> String {
        if output.tools.is_empty() {
            return "no tools of that family; call without `family` to see all".to_owned();
        }
        let lines = output.tools.iter().map(|tool| format!("{} ({}): {}", tool.wire_name, tool.effect, tool.summary));
        lines.collect::<Vec<_>>().join("\n")
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        let wanted = |name: &str| input.family.as_ref().is_none_or(|family| name.split('.').next() == Some(family));
        let tools = ctx.catalog.tools().into_iter().filter(|tool| wanted(&tool.name)).map(|tool| Line {
            name: tool.name,
            wire_name: tool.wire_name,
            title: tool.title,
            summary: first_sentence(&tool.description),
            effect: tool.effect.as_str().to_owned(),
        });
        Ok(Output { tools: tools.collect() })
    }
}

fn first_sentence(text: &str) -> String {
    let text = text.replace('\n', " ");
    text.split_once(". ").map_or(text.clone(), |(first, _)| format!("{first}."))
}
