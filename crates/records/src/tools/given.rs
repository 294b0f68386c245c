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
