//! The persona of Layer 0B (seed BAI-2.2): an architect of one field of work, never a helper for anything.

use serde_json::{Value, json};
use toolhost_builder::domain::{self, DomainProfile, ITEMS_MAX, Source, fallback, is_generic};

use super::{LayerId, PromptLayer};

const PERSONA: &str = include_str!("layers/persona.md");

/// The profile for work on a project that has no package.
#[must_use]
pub fn workspace_profile(project: &str, about: Option<&str>) -> DomainProfile {
    let list = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    let told = about.and_then(domain::line).filter(|about| !is_generic(about));
    let (source, confidence) = if told.is_some() { (Source::WorkflowSignal, 0.5) } else { (Source::Fallback, 0.2) };
    let named = || match domain::line(project) {
        Some(project) => domain::line(&format!("software engineering of the project {project}")),
        None => None,
    };
    DomainProfile {
        industry_domain: told.or_else(named).unwrap_or_else(|| "software engineering".to_owned()),
        target_users: list(["the people who use what the project makes", "the engineers who keep it"]),
        core_pain_points: list(["changes that break what worked", "code that only its author understands"]),
        expected_outcomes: list(["a change that does what was asked, checked", "a project that is easier to change"]),
        quality_style: list(["small, complete changes", "in the style of the project"]),
        source,
        confidence,
    }
}

/// Layer 0B: how to use the five fields of a profile. It is the same text for every profile, so that all sessions share
/// it; the values stand in Layer 5 ([`profile_values`]). A profile that lacks a field gives a blank layer, which no prompt
/// accepts.
#[must_use]
pub fn build_domain_persona_layer(profile: &DomainProfile) -> PromptLayer {
    let text = if missing_field(profile).is_some() { "" } else { PERSONA };
    PromptLayer::new(LayerId::Persona, text)
}

/// The values of a profile as `domain_profile` in Layer 5 has them: each text is one bounded line, each list has a bound,
/// and a field of work that fits anything is replaced by the default.
#[must_use]
pub fn profile_values(profile: &DomainProfile) -> Value {
    let domain = domain::line(&profile.industry_domain).filter(|domain| !is_generic(domain));
    json!({
        "industry_domain": domain.unwrap_or_else(|| fallback().industry_domain),
        "target_users": listed(&profile.target_users),
        "core_pain_points": listed(&profile.core_pain_points),
        "expected_outcomes": listed(&profile.expected_outcomes),
        "quality_style": listed(&profile.quality_style),
        "source": profile.source,
        "confidence": confidence(profile.confidence),
    })
}

/// The first of the five fields that says nothing.
pub(crate) fn missing_field(profile: &DomainProfile) -> Option<&'static str> {
    let says = |list: &[String]| list.iter().any(|text| domain::line(text).is_some());
    let fields = [
        ("industry_domain", domain::line(&profile.industry_domain).is_some()),
        ("target_users", says(&profile.target_users)),
        ("core_pain_points", says(&profile.core_pain_points)),
        ("expected_outcomes", says(&profile.expected_outcomes)),
        ("quality_style", says(&profile.quality_style)),
    ];
    fields.into_iter().find(|(_, says)| !says).map(|(name, _)| name)
}

fn listed(texts: &[String]) -> Vec<String> {
    texts.iter().filter_map(|text| domain::line(text)).take(ITEMS_MAX).collect()
}

fn confidence(said: f64) -> f64 {
    if said.is_finite() { said.clamp(0.0, 1.0) } else { 0.0 }
}
