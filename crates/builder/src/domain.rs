//! Whom a package is for: what its author says, else what its texts tell, else a safe default that is an architect of
//! applications and never a generic helper (CrewAgent seed BAI-2.2).

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::package::{Package, Workflow};

/// Texts of one list.
const ITEMS_MAX: usize = 8;
/// Characters of one text.
const TEXT_CHARS_MAX: usize = 200;

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `domain_profile` in the front matter of the workflow, or of the entry workflow.
    ProjectMeta,
    /// Names, descriptions, variables, assets and agents.
    WorkflowSignal,
    /// Nothing told.
    Fallback,
}

/// Whom a package is for, and what is good for them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainProfile {
    /// The field of work.
    pub industry_domain: String,
    /// Who uses what the workflow makes.
    pub target_users: Vec<String>,
    /// What is hard for them.
    pub core_pain_points: Vec<String>,
    /// What they are to have in the end.
    pub expected_outcomes: Vec<String>,
    /// How it is to be.
    pub quality_style: Vec<String>,
    /// Where this was found.
    pub source: Source,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
}

/// The profile of a package, for work at one of its workflows if it is named.
#[must_use]
pub fn resolve(package: &Package, workflow_id: Option<&str>) -> DomainProfile {
    let workflow = workflow_id.and_then(|id| package.workflow(id)).or_else(|| package.workflows().first());
    let fallback = fallback();
    if let Some(said) = workflow.and_then(|workflow| front(workflow)?.get("domain_profile")).filter(|v| v.is_object()) {
        return from_metadata(said, fallback);
    }
    from_signals(package, workflow, fallback)
}

fn from_metadata(said: &Value, fallback: DomainProfile) -> DomainProfile {
    let list = |name, other: Vec<String>| match texts(said.get(name)) {
        found if found.is_empty() => other,
        found => found,
    };
    DomainProfile {
        industry_domain: said.get("industry_domain").and_then(text).unwrap_or(fallback.industry_domain),
        target_users: list("target_users", fallback.target_users),
        core_pain_points: list("core_pain_points", fallback.core_pain_points),
        expected_outcomes: list("expected_outcomes", fallback.expected_outcomes),
        quality_style: list("quality_style", fallback.quality_style),
        source: Source::ProjectMeta,
        confidence: 1.0,
    }
}

fn from_signals(package: &Package, workflow: Option<&Workflow>, fallback: DomainProfile) -> DomainProfile {
    let manifest = package.manifest();
    let described = manifest.and_then(|manifest| manifest.get("description")).and_then(text);
    let kind = workflow.and_then(|workflow| front(workflow)?.get("workflowType")).and_then(text);
    let named = package.name().map(words);
    let Some(domain) = described.clone().or_else(|| kind.clone().map(|kind| words(&kind))).or(named) else {
        return fallback;
    };
    let audience = variables(workflow).filter(|name| AUDIENCE.iter().any(|sign| name.to_lowercase().contains(sign)));
    let users: Vec<String> = audience.map(words).take(ITEMS_MAX).collect();
    let roles = package.agents().iter().filter_map(|agent| agent.value.pointer("/persona/role").and_then(text));
    let goals: Vec<String> = roles.take(ITEMS_MAX).collect();
    let outcomes = workflow.into_iter().flat_map(|workflow| &workflow.nodes);
    let outcomes: BTreeSet<String> =
        outcomes.flat_map(|node| texts(node.value.get("outputs"))).map(|n| words(&n)).collect();
    let styles: BTreeSet<String> = package
        .agents()
        .iter()
        .filter_map(|agent| agent.value.pointer("/persona/communication_style").and_then(text))
        .collect();
    let or = |found: Vec<String>, other| if found.is_empty() { other } else { found };
    let told = [described.is_some(), kind.is_some(), !users.is_empty(), !goals.is_empty(), !outcomes.is_empty()];
    let signs = told.iter().filter(|sign| **sign).count();
    DomainProfile {
        industry_domain: domain,
        target_users: or(users, fallback.target_users),
        core_pain_points: or(goals, fallback.core_pain_points),
        expected_outcomes: or(outcomes.into_iter().take(ITEMS_MAX).collect(), fallback.expected_outcomes),
        quality_style: or(styles.into_iter().take(ITEMS_MAX).collect(), fallback.quality_style),
        source: Source::WorkflowSignal,
        confidence: 0.3 + 0.1 * signs as f64,
    }
}

/// Parts of names of variables that say for whom something is.
const AUDIENCE: [&str; 6] = ["audience", "user", "customer", "reader", "client", "patient"];

fn fallback() -> DomainProfile {
    let list = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    DomainProfile {
        industry_domain: "industry application architecture: workflows for people who know their trade".to_owned(),
        target_users: list(["experts of a trade", "the team that runs their workflow"]),
        core_pain_points: list(["knowledge that is in heads only", "steps that are done differently each time"]),
        expected_outcomes: list(["a workflow that others can follow", "results that can be checked"]),
        quality_style: list(["precise", "in the words of the trade"]),
        source: Source::Fallback,
        confidence: 0.1,
    }
}

fn front(workflow: &Workflow) -> Option<&Value> {
    workflow.document.as_ref().map(crate::document::Document::front)
}

fn variables(workflow: Option<&Workflow>) -> impl Iterator<Item = &String> {
    let fields = workflow.and_then(|workflow| front(workflow)?.get("variables")?.as_object());
    fields.into_iter().flat_map(|fields| fields.keys())
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS_MAX).collect())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(text).take(ITEMS_MAX).collect()
}

/// `research-report` as words.
fn words(name: impl AsRef<str>) -> String {
    let spaced: Vec<&str> = name.as_ref().split(['-', '_', '.', '/']).filter(|part| !part.is_empty()).collect();
    spaced.join(" ")
}
