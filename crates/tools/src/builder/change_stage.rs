//! `builder.change.stage`

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolhost_contract::{Ctx, Effect, ErrorKind, Example, Expect, Tool, ToolError, Trace};
use toolhost_store::Packages;
use toolhost_store::packages::Staged;

use super::{shelf, staging_session, told};
use crate::given::PACKAGE;

pub(crate) struct ChangeStage(pub(crate) Packages);

/// Stages a change set: this session then sees the package with it, nobody else does, and a person applies it. The set:
/// `schemaVersion` (1.1), `targetType`, `mode`, `operations` (`op` upsert or delete, `targetType`, `target`, `payload`) and
/// `revisions` as they came with the read.
///
/// What is there is changed in parts: `textEdits` (find, replace) of any text; of a workflow `nodes`, `edges`,
/// `deleteNodes`, `deleteEdges`, `entryNodeId`, `frontMatter`; of a step `transitions`, `frontMatter`; of an agent
/// `agent_fields`. Node and step, edge and transition are kept alike: `implied` tells.
///
/// To rename, delete the old and upsert the new in one set, with `extensions: {"rewriteReferences": true, "renames":
/// [{"from": "asset:assets/a.md", "to": "asset:assets/b.md"}]}`. Over several workflows: `extensions: {"baseRevisions":
/// {"workflow:ID": "…"}}`. In place of an earlier set: `extensions: {"supersedes": "cs-1"}`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The session; its own if left out.
    session_id: Option<String>,
    #[schemars(schema_with = "change_set_schema")]
    change_set: Map<String, Value>,
}

/// Its contract says what is wrong with it better than a schema at the door would, and takes older shapes too.
fn change_set_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "The change set, a JSON object of contract 1.1 (or 1.0, which has no small edits).",
        "examples": [{
            "schemaVersion": "1.1", "targetType": "step", "mode": "optimize",
            "operations": [{
                "op": "upsert", "targetType": "step", "target": { "workflowId": "main", "nodeId": "begin" },
                "payload": { "textEdits": [{ "find": "Ask them.", "replace": "Ask them twice." }] }, "reason": "clearer",
            }],
            "revisions": { "workflowRevision": "as it came with the read" },
        }],
    })
}

impl Tool for ChangeStage {
    type Input = Input;
    type Output = Staged;
    const NAME: &'static str = "builder.change.stage";
    const TITLE: &'static str = "Stage a change of the package";
    const EFFECT: Effect = Effect::Writes;
    const TRACE: Trace = Trace::Records;

    fn examples(&self) -> Vec<Example> {
        let set = |operation: Value| {
            json!({
                "changeSet": {
                    "schemaVersion": "1.0", "targetType": "asset", "mode": "create", "operations": [operation],
                },
            })
        };
        vec![
            Example {
                says: "a new asset",
                arguments: set(json!({
                    "op": "upsert", "targetType": "asset", "target": {"path": "assets/new.md"},
                    "payload": {"content": "# New\n"}, "reason": "asked for",
                })),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Data(&[
                    ("/changeSetId", "\"cs-1\""),
                    ("/status", "\"staged\""),
                    ("/objects/0", "\"asset:assets/new.md\""),
                ]),
            },
            Example {
                says: "a change of what is there, without the revision that was read",
                arguments: set(json!({
                    "op": "upsert", "targetType": "asset", "target": {"path": "assets/guide.md"},
                    "payload": {"content": "# Other\n"},
                })),
                files: PACKAGE.0,
                before: PACKAGE.1,
                expect: Expect::Fails(ErrorKind::Validation),
            },
        ]
    }

    fn render(&self, output: &Staged) -> String {
        told(output)
    }

    async fn run(&self, ctx: &Ctx<'_>, input: Input) -> Result<Staged, ToolError> {
        let session = staging_session(ctx, input.session_id)?;
        Ok(shelf(&self.0, ctx)?.stage(&session, &Value::Object(input.change_set)).await?)
    }
}
