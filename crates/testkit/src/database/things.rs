//! Contents to keep: the least that each kind asks for.

use toolhost_records::{
    Artifact, ArtifactKind, AuthorKind, Category, Comment, Component, ComponentType, Decision, Document, DocumentType,
    Feature, Importance, Insight, Issue, Learning, Milestone, Pattern, Persona, Priority, Requirement, Status, Task,
    Ticket, TicketState, TicketType,
};

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

pub fn requirement(title: &str) -> Requirement {
    Requirement {
        title: title.to_owned(),
        description: format!("what {title} is about"),
        priority: Priority::Medium,
        category: Category::Functional,
        acceptance_criteria: vec!["it works".to_owned()],
    }
}

pub fn feature(name: &str, requirements: &[&str], dependencies: &[&str]) -> Feature {
    Feature {
        name: name.to_owned(),
        description: String::new(),
        status: Status::Pending,
        requirement_ids: owned(requirements),
        completion_criteria: Vec::new(),
        estimated_effort: None,
        dependencies: owned(dependencies),
        labels: Vec::new(),
        external_id: None,
        completed_at_ms: None,
    }
}

pub fn component(name: &str, features: &[&str]) -> Component {
    Component {
        name: name.to_owned(),
        component_type: ComponentType::BackendService,
        other_type: None,
        responsibilities: Vec::new(),
        technology: "Rust".to_owned(),
        interfaces: Vec::new(),
        related_features: owned(features),
    }
}

pub fn task(title: &str, dependencies: &[&str]) -> Task {
    Task {
        title: title.to_owned(),
        description: String::new(),
        status: Status::Pending,
        feature_id: None,
        component_id: None,
        dependencies: owned(dependencies),
        unknown_dependencies: Vec::new(),
        estimated_effort: Some("2h".to_owned()),
        files_to_create: Vec::new(),
        acceptance_criteria: Vec::new(),
        labels: Vec::new(),
        external_id: None,
        started_at_ms: None,
        completed_at_ms: None,
    }
}

/// A task that goes with its feature and its component.
pub fn task_of(title: &str, feature: &str, component: &str, dependencies: &[&str]) -> Task {
    Task { feature_id: Some(feature.to_owned()), component_id: Some(component.to_owned()), ..task(title, dependencies) }
}

pub fn milestone(name: &str, features: &[&str]) -> Milestone {
    Milestone { name: name.to_owned(), features: owned(features), deadline: None }
}

pub fn artifact(kind: ArtifactKind, content: &str) -> Artifact {
    Artifact { kind, content: content.to_owned() }
}

pub fn persona(name: &str) -> Persona {
    Persona { name: name.to_owned(), role: "developer".to_owned(), personality: String::new() }
}

pub fn ticket(title: &str) -> Ticket {
    Ticket {
        title: title.to_owned(),
        description: String::new(),
        ticket_type: TicketType::Feature,
        state: TicketState::Backlog,
        priority: Priority::High,
        acceptance_criteria: Vec::new(),
        assignee: None,
    }
}

pub fn comment(ticket: &str, content: &str) -> Comment {
    Comment {
        ticket_id: ticket.to_owned(),
        author: "ann".to_owned(),
        author_kind: AuthorKind::Human,
        content: content.to_owned(),
    }
}

pub fn document(ticket: &str, document_type: DocumentType, content: &str) -> Document {
    Document { ticket_id: ticket.to_owned(), document_type, author: "ann".to_owned(), content: content.to_owned() }
}

pub fn insight(content: &str, importance: Importance) -> Insight {
    Insight { stage: "plan".to_owned(), content: content.to_owned(), importance }
}

pub fn issue(content: &str) -> Issue {
    Issue {
        stage: "build".to_owned(),
        content: content.to_owned(),
        resolved: false,
        resolution: None,
        resolved_at_ms: None,
    }
}

pub fn learning(content: &str) -> Learning {
    Learning { content: content.to_owned() }
}

pub fn decision(title: &str, text: &str, source: Option<&str>) -> Decision {
    Decision {
        title: title.to_owned(),
        context: String::new(),
        decision: text.to_owned(),
        consequences: Vec::new(),
        source_id: source.map(str::to_owned),
    }
}

pub fn pattern(name: &str, description: &str, source: Option<&str>) -> Pattern {
    Pattern {
        name: name.to_owned(),
        description: description.to_owned(),
        usage: Vec::new(),
        tags: Vec::new(),
        code_example: None,
        source_id: source.map(str::to_owned),
    }
}
