//! What a plan is made of: requirements, features, components, the design, tasks and milestones (Cowork Forge's fields).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{Body, OnDelete, Reference, references};
use super::error::Result;
use super::kind::{Kind, words};

words! {
    /// How much it matters.
    Priority { High = "high", Medium = "medium", Low = "low" }
}

words! {
    /// What kind of requirement it is.
    Category { Functional = "functional", NonFunctional = "non_functional" }
}

words! {
    /// Where a feature or a task stands.
    Status { Pending = "pending", InProgress = "in_progress", Completed = "completed", Blocked = "blocked" }
}

words! {
    /// What a component is.
    ComponentType {
        BackendService = "backend_service",
        FrontendComponent = "frontend_component",
        Database = "database",
        ApiGateway = "api_gateway",
        MessageQueue = "message_queue",
        Other = "other",
    }
}

/// What must be true of the product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    pub title: String,
    pub description: String,
    pub priority: Priority,
    pub category: Category,
    pub acceptance_criteria: Vec<String>,
}

/// What the product will have, to meet its requirements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feature {
    pub name: String,
    pub description: String,
    pub status: Status,
    pub requirement_ids: Vec<String>,
    pub completion_criteria: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_effort: Option<String>,
    /// Features that must be there before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its id in the system it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
}

/// What a component offers to others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Interface {
    /// What it is called.
    pub name: String,
    /// What goes in.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// What comes out.
    #[serde(default)]
    pub outputs: Vec<String>,
}

/// A part of the design.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    pub name: String,
    pub component_type: ComponentType,
    /// What `other` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_type: Option<String>,
    pub responsibilities: Vec<String>,
    pub technology: String,
    #[serde(default)]
    pub interfaces: Vec<Interface>,
    #[serde(default)]
    pub related_features: Vec<String>,
}

/// What the design says besides its components.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Design {
    #[serde(default)]
    pub architecture_style: String,
    #[serde(default)]
    pub data_models: Vec<DataModel>,
    #[serde(default)]
    pub technology_stack: TechnologyStack,
    #[serde(default)]
    pub deployment: String,
}

/// A thing the product stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct DataModel {
    /// What it is called.
    pub name: String,
    /// Its fields, as `name: type`.
    #[serde(default)]
    pub fields: Vec<String>,
}

/// What the product is built with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TechnologyStack {
    /// Behind the scenes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// What people see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontend: Option<String>,
    /// Where data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    pub title: String,
    pub description: String,
    pub status: Status,
    /// A task is made with one; it may lose it later, and imported ones may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_id: Option<String>,
    /// As `featureId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component_id: Option<String>,
    /// Tasks that must be completed before.
    #[serde(default)]
    pub dependencies: Vec<String>,
    /// Ids that an import brought along and that name nothing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_dependencies: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_effort: Option<String>,
    #[serde(default)]
    pub files_to_create: Vec<String>,
    pub acceptance_criteria: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Its id in the system it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at_ms: Option<i64>,
}

/// Features that are done together, by a date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Milestone {
    pub name: String,
    #[serde(default)]
    pub features: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

impl Body for Requirement {
    const KIND: Kind = Kind::Requirement;

    fn title(&self) -> &str {
        &self.title
    }
}

impl Body for Feature {
    const KIND: Kind = Kind::Feature;

    fn title(&self) -> &str {
        &self.name
    }

    fn state(&self) -> &str {
        self.status.as_str()
    }

    fn references(&self) -> Result<Vec<Reference>> {
        let mut all = references("requirementIds", Kind::Requirement, OnDelete::Unlink, &self.requirement_ids)?;
        all.extend(references("dependencies", Kind::Feature, OnDelete::Unlink, &self.dependencies)?);
        Ok(all)
    }
}

impl Body for Component {
    const KIND: Kind = Kind::Component;

    fn title(&self) -> &str {
        &self.name
    }

    fn references(&self) -> Result<Vec<Reference>> {
        references("relatedFeatures", Kind::Feature, OnDelete::Unlink, &self.related_features)
    }
}

impl Body for Design {
    const KIND: Kind = Kind::Design;

    fn title(&self) -> &str {
        "design"
    }
}

impl Body for Task {
    const KIND: Kind = Kind::Task;

    fn title(&self) -> &str {
        &self.title
    }

    fn state(&self) -> &str {
        self.status.as_str()
    }

    fn references(&self) -> Result<Vec<Reference>> {
        let mut all = references("featureId", Kind::Feature, OnDelete::Cascade, &self.feature_id)?;
        all.extend(references("componentId", Kind::Component, OnDelete::Cascade, &self.component_id)?);
        all.extend(references("dependencies", Kind::Task, OnDelete::Unlink, &self.dependencies)?);
        Ok(all)
    }

    fn effort_minutes(&self) -> i64 {
        self.estimated_effort.as_deref().map_or(0, effort_minutes)
    }

    fn dangling(&self) -> usize {
        self.unknown_dependencies.len()
    }
}

/// Reads an effort such as `3h`, `2 days`, `1.5 h` or `90 min`; 0 if it is not one. A day has eight hours, a week five
/// days.
fn effort_minutes(text: &str) -> i64 {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let Ok(amount) = text[..end].parse::<f64>() else { return 0 };
    let minutes = match text[end..].trim().to_lowercase().as_str() {
        "m" | "min" | "mins" | "minute" | "minutes" => 1.0,
        "" | "h" | "hr" | "hrs" | "hour" | "hours" => 60.0,
        "d" | "day" | "days" => 8.0 * 60.0,
        "w" | "week" | "weeks" => 40.0 * 60.0,
        _ => return 0,
    };
    // A plan of more minutes than fit is no plan.
    (amount * minutes).round().clamp(0.0, 1e9) as i64
}

impl Body for Milestone {
    const KIND: Kind = Kind::Milestone;

    fn title(&self) -> &str {
        &self.name
    }

    fn references(&self) -> Result<Vec<Reference>> {
        references("features", Kind::Feature, OnDelete::Unlink, &self.features)
    }
}
