//! The records of a plan that a person creates and changes by a form: which, and the fields of each.

use toolhost_records::Kind as RecordKind;

use super::forms::{Field, Shape, choice};

/// A kind of records that a person creates here.
pub(super) struct Kind {
    /// As addresses write it.
    pub(super) word: &'static str,
    pub(super) title: &'static str,
    pub(super) tool: &'static str,
    /// The page of the plan that lists them.
    pub(super) list: &'static str,
}

pub(super) const KINDS: &[Kind] = &[
    Kind { word: "requirement", title: "Create a requirement", tool: "requirement.create", list: "plan" },
    Kind { word: "feature", title: "Create a feature", tool: "feature.add", list: "plan/features" },
    Kind { word: "milestone", title: "Create a milestone", tool: "milestone.add", list: "plan" },
    Kind { word: "component", title: "Create a component", tool: "component.add", list: "plan/features" },
    Kind { word: "artifact", title: "Save an artifact", tool: "artifact.save", list: "plan/artifacts" },
    Kind { word: "insight", title: "Save an insight", tool: "memory.save_insight", list: "plan/memory" },
    Kind { word: "issue", title: "Save an issue", tool: "memory.save_issue", list: "plan/memory" },
    Kind { word: "learning", title: "Save a learning", tool: "memory.save_learning", list: "plan/memory" },
    Kind { word: "iteration", title: "Create an iteration", tool: "iteration.create", list: "plan/iterations" },
    Kind { word: "persona", title: "Create a persona", tool: "persona.add", list: "plan/personas" },
];

/// The kinds whose records a person changes here: the kind, as addresses of forms write it, and the tool.
pub(super) const CHANGED: &[(RecordKind, &str, &str)] = &[
    (RecordKind::Requirement, "requirement", "requirement.update"),
    (RecordKind::Feature, "feature", "feature.update"),
    (RecordKind::Milestone, "milestone", "milestone.update"),
    (RecordKind::Component, "component", "component.update"),
    (RecordKind::Persona, "persona", "persona.update"),
];

/// What the form of records of this kind calls a field.
pub(super) fn label(kind: RecordKind, field: &str) -> Option<&'static str> {
    let (_, word, _) = CHANGED.iter().find(|(changed, ..)| *changed == kind)?;
    let kind = KINDS.iter().find(|kind| kind.word == *word)?;
    fields(kind).iter().find(|known| known.name == field).map(|known| known.label)
}

fn of_iteration() -> Field {
    Field::new("iteration", "Iteration", Shape::Line).hint("Its number, or 0 for none. Empty: the current one.")
}

/// Fields that must not be empty.
const NEEDED: &[&str] = &["title", "name", "content", "stage", "role", "technology"];

pub(super) fn fields(kind: &Kind) -> Vec<Field> {
    let mut fields = all_fields(kind);
    fields.iter_mut().for_each(|field| field.is_needed = NEEDED.contains(&field.name));
    fields
}

fn all_fields(kind: &Kind) -> Vec<Field> {
    let line = |name, label| Field::new(name, label, Shape::Line);
    let lines = |name, label| Field::new(name, label, Shape::Text(3)).hint("One in each line.");
    let long = |name, label| Field::new(name, label, Shape::Text(6));
    match kind.word {
        "requirement" => vec![
            line("title", "Title"),
            long("description", "Description").hint("What must be true, and for whom."),
            Field::new("priority", "Priority", choice(None, &["high", "medium", "low"])).value("medium"),
            Field::new("category", "Category", choice(None, &["functional", "non_functional"])).value("functional"),
            lines("acceptanceCriteria", "Acceptance criteria"),
            of_iteration(),
        ],
        "feature" => vec![
            line("name", "Name"),
            long("description", "Description").hint("What it does."),
            lines("requirementIds", "Requirements that it meets").hint("One in each line, such as REQ-001."),
            lines("completionCriteria", "Completion criteria"),
            line("estimatedEffort", "Effort").hint("Such as 3h or 2 days."),
            lines("dependencies", "Features that must be there before").hint("One in each line, such as FEAT-001."),
            of_iteration(),
        ],
        "milestone" => vec![
            line("name", "Name"),
            line("deadline", "Deadline").hint("The day, such as 2026-12-24."),
            lines("features", "Features").hint("One in each line, such as FEAT-001."),
            of_iteration(),
        ],
        "component" => vec![
            line("name", "Name"),
            Field::new("componentType", "Type", choice(None, COMPONENTS)),
            line("otherType", "Name of the type, if the type is other"),
            lines("responsibilities", "Responsibilities"),
            line("technology", "Technology").hint("What it is built with."),
            lines("relatedFeatures", "Features that it serves").hint("One in each line, such as FEAT-001."),
            of_iteration(),
        ],
        "artifact" => vec![
            Field::new("kind", "Kind", choice(None, ARTIFACTS)).value("idea"),
            Field::new("content", "Content", Shape::Text(16))
                .hint("The whole document, in Markdown. It becomes the newest version."),
            of_iteration(),
        ],
        "insight" => vec![
            line("stage", "Stage").hint("The stage of the work, such as design or coding."),
            long("content", "What is to be remembered"),
            Field::new("importance", "Importance", choice(None, &["critical", "important", "normal"])).value("normal"),
            of_iteration(),
        ],
        "issue" => vec![
            line("stage", "Stage").hint("The stage of the work, such as design or coding."),
            long("content", "What is to be remembered"),
            of_iteration(),
        ],
        "learning" => vec![long("content", "What is to be remembered"), of_iteration()],
        "iteration" => vec![
            line("title", "Title"),
            long("description", "Description").hint("What it is to reach."),
            line("base", "Builds on")
                .hint("The number of an iteration; 0 for what belongs to none. Empty: the current one."),
            Field::new("inheritance", "Takes over", choice(None, &["none", "partial", "full"]))
                .value("partial")
                .hint("From its base: nothing, the plan, or the plan and the artifacts."),
        ],
        _ => vec![
            line("name", "Name").hint("The name that commits and comments carry."),
            line("role", "Role").hint("The profile whose tools it gets, such as developer."),
            long("personality", "Personality").hint("How it works and speaks."),
        ],
    }
}

const COMPONENTS: &[&str] =
    &["backend_service", "frontend_component", "database", "api_gateway", "message_queue", "other"];
const ARTIFACTS: &[&str] = &["idea", "prd", "design", "plan", "check_report", "delivery_report"];
