//! What examples begin with: a small package, and what was done with it.

/// A tool and its arguments, JSON.
type Given = (&'static str, &'static str);

/// A small workflow package in the folder `pkg`, and the call that imports it.
pub(crate) const PACKAGE: (&[(&str, &str)], &[Given]) = (
    &[
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
    ],
    &[IMPORTED],
);
const IMPORTED: Given = ("builder.package.import", r#"{"path":"pkg"}"#);
const NEW_ASSET: Given = (
    "builder.change.stage",
    r##"{"changeSet":{"schemaVersion":"1.0","targetType":"asset","mode":"create","operations":[{"op":"upsert","targetType":"asset","target":{"path":"assets/new.md"},"payload":{"content":"# New\n"}}]}}"##,
);
/// The package, and cs-1: a new asset.
pub(crate) const STAGED: &[Given] = &[IMPORTED, NEW_ASSET];
/// As [`STAGED`], applied: change 2 of the package.
pub(crate) const APPLIED: &[Given] =
    &[IMPORTED, NEW_ASSET, ("builder.change.apply", r#"{"changeSetId":"cs-1","confirmSource":"ui_manual_apply"}"#)];
