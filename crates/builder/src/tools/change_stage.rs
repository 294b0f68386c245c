//! `builder.change.stage`

use crate::Finding;
use crate::change::{Found, Report};
use crate::packages::{ProjectPackage, Staged, Whose};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolhost_contract::{Ctx, ErrorKind, Example, Expect, Facts, ToolError};

use super::given::PACKAGE;
use super::tool::{PackageAnswer, PackageTool};
use super::{set_number, staging_session};

pub(crate) struct ChangeStage;

/// Stages a change set: only this session sees the package with it, until a person applies it. The set: `schemaVersion` (1.1),
/// `targetType`, `mode`, `operations` (`op` upsert or delete, `targetType`, `target`, `payload`), and `revisions` copied from the
/// read.
///
/// Change existing objects in parts: `textEdits` (find, replace) of any text; of a workflow `nodes`, `edges`, `deleteNodes`,
/// `deleteEdges`, `entryNodeId`, `frontMatter`; of a step `transitions`, `frontMatter`; of an agent `agent_fields`. What follows
/// from an edit is changed, too, and listed in `implied`. `builder.schema.read` has each field and examples.
///
/// To rename a node, an asset or an agent: `operations: []` and `extensions: {"renames": [{"from": "step:WORKFLOW/old", "to":
/// "step:WORKFLOW/new"}]}`; content and references follow. Over several workflows: `extensions: {"baseRevisions":
/// {"workflow:ID": "…"}}`. In place of an earlier set: `extensions: {"supersedes": "cs-1"}`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Input {
    /// The session; its own if left out.
    session_id: Option<String>,
    #[schemars(schema_with = "change_set_schema")]
    change_set: Map<String, Value>,
    /// Whether to validate it at once, as `builder.change.validate` does: then `validation` has the report.
    #[serde(default)]
    validate: bool,
}

/// What was staged, and what was found if that was asked for.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StagedSet")]
pub(crate) struct Output {
    #[serde(flatten)]
    staged: Staged,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
}

/// What the validation found, without what the answer says of the set already.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Validation {
    /// Whether the set may be applied.
    valid: bool,
    /// Whether it ended with the first of the five stages.
    schema_failed: bool,
    /// What must be fixed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Found>,
    /// What is probably not as meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Found>,
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

impl PackageAnswer for Output {}

impl PackageTool for ChangeStage {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = "builder.change.stage";
    const TITLE: &'static str = "Stage a change of the package";
    const FACTS: Facts = Facts::WRITES_RECORDS;

    fn examples(&self) -> Vec<Example> {
        let set = |operation: Value| {
            json!({
                "changeSet": {
                    "schemaVersion": "1.0", "targetType": "asset", "mode": "create", "operations": [operation],
                },
            })
        };
        vec![
            PACKAGE.example(
                "a new asset",
                set(json!({
                    "op": "upsert", "targetType": "asset", "target": {"path": "assets/new.md"},
                    "payload": {"content": "# New\n"}, "reason": "asked for",
                })),
                Expect::Data(&[
                    ("/changeSetId", "\"cs-1\""),
                    ("/status", "\"staged\""),
                    ("/objects/0", "\"asset:assets/new.md\""),
                ]),
            ),
            PACKAGE.example(
                "a new asset, validated at once",
                {
                    let mut arguments = set(json!({
                        "op": "upsert", "targetType": "asset", "target": {"path": "assets/new.md"},
                        "payload": {"content": "# New\n"},
                    }));
                    arguments["validate"] = json!(true);
                    arguments
                },
                Expect::Data(&[("/status", "\"validated\""), ("/validation/valid", "true")]),
            ),
            PACKAGE.example(
                "a change of what is there, without the revision that was read",
                set(json!({
                    "op": "upsert", "targetType": "asset", "target": {"path": "assets/guide.md"},
                    "payload": {"content": "# Other\n"},
                })),
                Expect::Fails(ErrorKind::Validation),
            ),
        ]
    }

    async fn run(&self, ctx: &Ctx<'_>, package: &ProjectPackage, input: Input) -> Result<Output, ToolError> {
        let session = staging_session(ctx, input.session_id)?;
        let mut staged = package.stage(&session, &Value::Object(input.change_set)).await?;
        let mut validation = None;
        if input.validate {
            let number = set_number(&staged.change_set_id)?;
            let found = package.validate(Whose::Session(&session), Some(number)).await?;
            staged.status = found.status;
            let Report { valid, schema_failed, errors, mut warnings, .. } = found.report;
            // Each fact once: what was found while it was staged is found again.
            let is_again = |found: &Found, one: &Finding| (&found.code, &found.message) == (&one.code, &one.message);
            warnings.retain(|found| !staged.warnings.iter().any(|one| is_again(found, one)));
            validation = Some(Validation { valid, schema_failed, errors, warnings });
        }
        Ok(Output { staged, validation })
    }
}
