//! What examples begin with: calls that make one record of each kind.

/// A tool and its arguments, JSON.
type Given = (&'static str, &'static str);

/// Makes REQ-001.
pub(crate) const REQUIREMENT: Given = (
    "requirement.create",
    r#"{"title":"Sign in","description":"Users sign in","priority":"high","category":"functional","acceptanceCriteria":["a form"]}"#,
);
/// Makes FEAT-001 for REQ-001.
pub(crate) const FEATURE: Given = (
    "feature.add",
    r#"{"name":"Login","description":"A login form","requirementIds":["REQ-001"],"completionCriteria":["works"]}"#,
);
/// Makes COMP-001.
pub(crate) const COMPONENT: Given = (
    "component.add",
    r#"{"name":"web","componentType":"frontend_component","responsibilities":["shows pages"],"technology":"HTML"}"#,
);
/// Makes TASK-001 of FEAT-001 and COMP-001.
pub(crate) const TASK: Given = (
    "task.create",
    r#"{"title":"Build the form","description":"With two fields","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":["it sends"]}"#,
);
/// Makes TASK-002, which waits for TASK-001.
pub(crate) const WAITING_TASK: Given = (
    "task.create",
    r#"{"title":"Test the form","description":"In a browser","featureId":"FEAT-001","componentId":"COMP-001","acceptanceCriteria":["it passes"],"dependencies":["TASK-001"]}"#,
);
/// Makes TKT-001.
pub(crate) const TICKET: Given = (
    "ticket.create",
    r#"{"title":"Dark mode","description":"For the night","acceptanceCriteria":["pages are dark","it is remembered"]}"#,
);
/// Makes MILE-001 with FEAT-001.
pub(crate) const MILESTONE: Given =
    ("milestone.add", r#"{"name":"Beta","features":["FEAT-001"],"deadline":"2026-12-24"}"#);
/// Makes PERS-001.
pub(crate) const PERSONA: Given = ("persona.add", r#"{"name":"Ada","role":"developer"}"#);
/// Makes ITER-001.
pub(crate) const ITERATION: Given = ("iteration.create", r#"{"title":"Basics"}"#);
/// Makes INS-001.
pub(crate) const INSIGHT: Given =
    ("memory.save_insight", r#"{"stage":"design","content":"SQLite is fast enough","importance":"critical"}"#);
/// Makes the document of the kind `prd`.
pub(crate) const ARTIFACT: Given =
    ("artifact.save", r#"{"kind":"prd","content":"Todo List\nA list of things to do."}"#);

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
