//! `builder.schema.read`

use crate::guide::{Guide, Topic, guide};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, Tool, ToolError};

pub(crate) struct SchemaRead;

/// Tells how to write a change set: the fields of a kind of object, a line each, and examples of each thing that can be
/// done to it (make, change in parts, write anew, delete, rename). Read it before you write the first set of a kind.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// What it is about: `workflow`, `step`, `agent`, `asset`; or `set`, a change set as a whole, with renames and changes of
    /// several workflows. Default `set`.
    #[serde(default)]
    topic: Topic,
}

impl Tool for SchemaRead {
    type Input = Input;
    type Output = Guide;
    const NAME: &'static str = "builder.schema.read";
    const TITLE: &'static str = "Read how a change set is written";
    const FACTS: Facts = Facts::READS;

    fn examples(&self) -> Vec<Example> {
        vec![
            Example {
                says: "how a step is changed",
                arguments: json!({"topic": "step"}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[
                    ("/topic", "\"step\""),
                    ("/parts/0/fields/1", "\"nodeId: id, required. The node of the graph that this file belongs to\""),
                    ("/examples/0/changeSet/operations/0/targetType", "\"step\""),
                ]),
            },
            Example {
                says: "a change set as a whole",
                arguments: json!({}),
                files: &[],
                before: &[],
                expect: Expect::Data(&[("/topic", "\"set\"")]),
            },
            Example {
                says: "a kind of object that there is not",
                arguments: json!({"topic": "menu"}),
                files: &[],
                before: &[],
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Guide) -> String {
        let mut text = String::new();
        for part in &output.parts {
            text.push_str(&format!("## Fields: {}\n{}\n\n", part.name, part.fields.join("\n")));
        }
        for example in &output.examples {
            text.push_str(&format!("## Example: {}\n{}\n\n", example.says, example.change_set));
        }
        text.trim_end().to_owned()
    }

    async fn run(&self, _: &Ctx<'_>, input: Input) -> Result<Guide, ToolError> {
        Ok(guide(input.topic))
    }
}
