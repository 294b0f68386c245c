//! What examples begin with: a small package, and what was done with it.

use serde_json::Value;
use toolhost_contract::{Example, Expect};

/// A tool and its arguments, JSON.
type Before = (&'static str, &'static str);

/// A small workflow package in the folder `pkg`, and the calls made before an example.
pub(crate) struct Given(&'static [Before]);

impl Given {
    pub(crate) fn example(&self, says: &'static str, arguments: Value, expect: Expect) -> Example {
        Example { says, arguments, files: FILES, before: self.0, expect }
    }
}

const FILES: &[(&str, &str)] = &[
    (
        "pkg/bmad.json",
        r#"{"schemaVersion":"1.1","name":"tea","version":"1.0.0","entry":{"workflow":"workflow.md","graph":"workflow.graph.json","agents":"agents.json"}}"#,
    ),
    (
        "pkg/workflow.md",
        "---\nschemaVersion: \"1.1\"\nworkflowType: tea\nstepsCompleted: []\ncurrentNodeId: \"\"\n---\n\n# Tea\n",
    ),
    (
        "pkg/workflow.graph.json",
        r#"{"schemaVersion":"1.1","entryNodeId":"begin","nodes":[{"id":"begin","type":"step","file":"steps/begin.md","agentId":"ada"},{"id":"end","type":"end","file":"steps/end.md"}],"edges":[{"from":"begin","to":"end","label":"done"}]}"#,
    ),
    (
        "pkg/agents.json",
        r#"{"schemaVersion":"1.1","agents":[{"id":"ada","metadata":{"name":"Ada","title":"Tea master","icon":"T"},"persona":{"role":"makes tea","identity":"a tea master","communication_style":"short","principles":["hot"]}}]}"#,
    ),
    (
        "pkg/steps/begin.md",
        "---\nschemaVersion: \"1.1\"\nnodeId: begin\ntype: step\nagentId: ada\n---\n\n## Goal\n\nMake tea.\n\n## Instructions\n\nAs assets/guide.md says.\n\n## Completion (Document-as-State)\n\nThere is tea.\n",
    ),
    (
        "pkg/steps/end.md",
        "---\nschemaVersion: \"1.1\"\nnodeId: end\ntype: end\n---\n\n## Goal\n\nEnd.\n\n## Instructions\n\nNone.\n\n## Completion (Document-as-State)\n\nIt is over.\n",
    ),
    ("pkg/assets/guide.md", "# Guide\n"),
];
const IMPORTED: Before = ("builder.package.import", r#"{"path":"pkg"}"#);
const NEW_ASSET: Before = (
    "builder.change.stage",
    r##"{"changeSet":{"schemaVersion":"1.0","targetType":"asset","mode":"create","operations":[{"op":"upsert","targetType":"asset","target":{"path":"assets/new.md"},"payload":{"content":"# New\n"}}]}}"##,
);
const APPLY: Before = ("builder.change.apply", r#"{"changeSetId":"cs-1","confirmSource":"ui_manual_apply"}"#);

/// The folder; the project has no package.
pub(crate) const FOLDER: Given = Given(&[]);
/// The package, imported.
pub(crate) const PACKAGE: Given = Given(&[IMPORTED]);
/// The package, and cs-1: a new asset.
pub(crate) const STAGED: Given = Given(&[IMPORTED, NEW_ASSET]);
/// As [`STAGED`], applied: change 2 of the package.
pub(crate) const APPLIED: Given = Given(&[IMPORTED, NEW_ASSET, APPLY]);
