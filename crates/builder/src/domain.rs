//! Whom a package is for: what its author says, else what its texts tell, else a safe default that is an architect of
//! applications and never a generic helper (CrewAgent seed BAI-2.2).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolhost_contract::visible_line;

use crate::package::{Package, Workflow};

/// Texts of one list.
pub const ITEMS_MAX: usize = 8;
/// Characters of one text.
pub const TEXT_CHARS_MAX: usize = 200;
/// Where the front matter of a workflow says whom it is for.
pub(crate) const FIELD: &str = "domain_profile";
/// The lists of a profile.
const LISTS: [&str; 4] = ["target_users", "core_pain_points", "expected_outcomes", "quality_style"];

/// Where a profile comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `domain_profile` in the front matter of the workflow, or of the entry workflow.
    ProjectMeta,
    /// Names, descriptions, variables, assets and agents.
    WorkflowSignal,
    /// Nothing told.
    #[default]
    Fallback,
}

impl Source {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProjectMeta => "project_meta",
            Self::WorkflowSignal => "workflow_signal",
            Self::Fallback => "fallback",
        }
    }
}

/// Whom a package is for, and what is good for them. Each text is one line of at most [`TEXT_CHARS_MAX`] characters,
/// each list has at most [`ITEMS_MAX`]. Read from JSON, a field that is left out is empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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

/// A profile in the front matter that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` in the front matter of workflow `{workflow}` is not {expected}")]
pub struct Damaged {
    /// The workflow.
    pub workflow: String,
    /// The field, such as `domain_profile.target_users`.
    pub field: String,
    /// What it is to be.
    pub expected: &'static str,
}

impl Damaged {
    /// The stable code.
    pub const CODE: &'static str = "AI_DOMAIN_PROFILE_INCOMPLETE";
}

/// The profile of a package, for work at one of its workflows if it is named: the seed's `resolve_domain_profile`.
///
/// What the front matter says goes before what the texts tell, and that before the default, field by field. The named
/// workflow speaks first, then the entry of the package, then the first one at hand that says anything. Asks for no more of a package
/// than its manifest, its agents, the names of its assets and these three workflows.
///
/// # Errors
/// If a profile is there but no object, its domain no text, or one of its lists no list of texts.
pub fn resolve_domain_profile(package: &Package, workflow_id: Option<&str>) -> Result<DomainProfile, Damaged> {
    let workflow = workflow_id.and_then(|id| package.workflow(id)).or_else(|| package.entry_workflow());
    let told = from_signals(package, workflow, fallback());
    let of_any = || package.workflows().iter().find_map(said);
    let said = workflow.and_then(said).or_else(|| package.entry_workflow().and_then(said)).or_else(of_any);
    let Some((workflow, said)) = said else { return Ok(told) };
    check(workflow, said)?;
    // One without a word in it says nothing.
    let is_empty =
        field_of_work(&said["industry_domain"]).is_none() && LISTS.iter().all(|name| texts(said.get(*name)).is_empty());
    Ok(if is_empty { told } else { from_metadata(said, told) })
}

/// What is wrong with what a workflow says of whom the package is for.
pub(crate) fn damage(workflow: &Workflow) -> Option<Damaged> {
    let (workflow, said) = said(workflow)?;
    check(workflow, said).err()
}

/// Whether the text of a workflow may hold a profile: whoever keeps packages in parts has to have that workflow at hand.
#[must_use]
pub fn is_said(document: &[u8]) -> bool {
    document.windows(FIELD.len()).any(|part| part == FIELD.as_bytes())
}

fn check(workflow: &Workflow, said: &Value) -> Result<(), Damaged> {
    let damaged = |name: Option<&str>, expected| {
        let field = name.map_or_else(|| FIELD.to_owned(), |name| format!("{FIELD}.{name}"));
        Damaged { workflow: workflow.id.clone(), field, expected }
    };
    let fields = said.as_object().ok_or_else(|| damaged(None, "an object"))?;
    if fields.get("industry_domain").is_some_and(|value| !value.is_string() && !value.is_null()) {
        return Err(damaged(Some("industry_domain"), "a text"));
    }
    let is_list = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let wrong = LISTS.iter().find(|name| fields.get(**name).is_some_and(|value| !is_list(value) && !value.is_null()));
    wrong.map_or(Ok(()), |name| Err(damaged(Some(name), "a list of texts")))
}

/// Architecture of applications, for nobody in particular: what holds where nothing is told.
#[must_use]
pub fn fallback() -> DomainProfile {
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

/// A text as a profile holds it: one line, bounded, nothing unseen in it. Nothing, if there is nothing to read.
#[must_use]
pub fn line(text: &str) -> Option<String> {
    // Cut first: what is shown of a character may be longer than the character.
    let cut: String = text.trim().chars().take(TEXT_CHARS_MAX).collect();
    let shown: String = visible_line(&cut).chars().take(TEXT_CHARS_MAX).collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

fn said(workflow: &Workflow) -> Option<(&Workflow, &Value)> {
    Some((workflow, front(workflow)?.get(FIELD).filter(|value| !value.is_null())?))
}

fn from_metadata(said: &Value, told: DomainProfile) -> DomainProfile {
    let list = |name, other: Vec<String>| match texts(said.get(name)) {
        found if found.is_empty() => other,
        found => found,
    };
    let complete = said.get("industry_domain").and_then(text).is_some()
        && LISTS.iter().all(|name| !texts(said.get(*name)).is_empty());
    DomainProfile {
        industry_domain: said.get("industry_domain").and_then(field_of_work).unwrap_or(told.industry_domain),
        target_users: list("target_users", told.target_users),
        core_pain_points: list("core_pain_points", told.core_pain_points),
        expected_outcomes: list("expected_outcomes", told.expected_outcomes),
        quality_style: list("quality_style", told.quality_style),
        source: Source::ProjectMeta,
        confidence: if complete { 1.0 } else { 0.9 },
    }
}

fn from_signals(package: &Package, workflow: Option<&Workflow>, fallback: DomainProfile) -> DomainProfile {
    let manifest = package.manifest();
    let entries = manifest.and_then(|manifest| manifest.get("workflows")?.as_array()).into_iter().flatten();
    let of = |entry: &&Value| workflow.is_some_and(|workflow| entry["id"] == workflow.id.as_str());
    let entry = entries.into_iter().find(of);
    let of_workflow = ["description", "displayName"].iter().find_map(|name| field_of_work(entry?.get(*name)?));
    let described = manifest.and_then(|manifest| manifest.get("description")).and_then(field_of_work).or(of_workflow);
    let kind = workflow.and_then(|workflow| front(workflow)?.get("workflowType")).and_then(Value::as_str).map(words);
    let kind = kind.and_then(|kind| specific(&kind));
    let named = package.name().map(words).and_then(|name| specific(&name));
    let assets: BTreeSet<String> = package.asset_hashes().into_keys().map(stem).collect();
    let of_assets = || {
        let is_kind = |name: &&str| name.split(' ').all(|word| speaks(&PRODUCTS, word) || speaks(&GUIDES, word));
        let named = assets.iter().map(String::as_str).filter(|name| !is_kind(name));
        let named: Vec<&str> = named.take(ASSETS_IN_DOMAIN).collect();
        specific(&named.join(", "))
    };
    let Some(domain) = described.clone().or_else(|| kind.clone()).or(named).or_else(of_assets) else {
        return fallback;
    };
    let audience = variables(workflow).filter(|(name, _)| speaks(&AUDIENCE, name));
    let users: Vec<String> = audience.filter_map(|(_, value)| text(value)).take(ITEMS_MAX).collect();
    let made = assets.iter().filter(|name| speaks(&PRODUCTS, name)).filter_map(|name| line(name));
    let outputs = workflow.into_iter().flat_map(|workflow| &workflow.nodes);
    let outcomes: BTreeSet<String> =
        outputs.flat_map(|node| texts(node.value.get("outputs"))).filter_map(|n| line(&words(n))).chain(made).collect();
    let guides =
        assets.iter().filter(|name| speaks(&GUIDES, name)).filter_map(|name| line(&format!("as the {name} says")));
    // How an agent speaks is its own manner, and no standard for what the package says.
    let styles: BTreeSet<String> = guides.collect();
    let or = |found: Vec<String>, other| if found.is_empty() { other } else { found };
    let told = [described.is_some(), kind.is_some(), !users.is_empty(), !styles.is_empty(), !outcomes.is_empty()];
    let signs = told.iter().filter(|sign| **sign).count();
    DomainProfile {
        industry_domain: domain,
        target_users: or(users, fallback.target_users),
        // No name tells what is hard for people: roles of agents say who does the work, not who suffers.
        core_pain_points: fallback.core_pain_points,
        expected_outcomes: or(outcomes.into_iter().take(ITEMS_MAX).collect(), fallback.expected_outcomes),
        quality_style: or(styles.into_iter().take(ITEMS_MAX).collect(), fallback.quality_style),
        source: Source::WorkflowSignal,
        confidence: (3 + signs) as f64 / 10.0,
    }
}

fn speaks(signs: &[&str], name: &str) -> bool {
    signs.iter().any(|sign| name.to_lowercase().contains(sign))
}

/// Parts of names of variables whose value says for whom something is.
const AUDIENCE: [&str; 6] = ["audience", "user", "customer", "reader", "client", "patient"];
/// Parts of names of assets that something is made from.
const PRODUCTS: [&str; 5] = ["template", "report", "form", "letter", "outline"];
/// Parts of names of assets that say how something is to be.
const GUIDES: [&str; 7] = ["style", "tone", "voice", "guide", "checklist", "standard", "criteria"];
/// Assets whose names stand for the field of work where nothing else names it.
const ASSETS_IN_DOMAIN: usize = 3;

/// `assets/forms/discharge-letter.md` as `discharge letter`.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    words(name.rsplit_once('.').map_or(name, |(stem, _)| stem))
}

fn front(workflow: &Workflow) -> Option<&Value> {
    workflow.document.as_ref().map(crate::document::Document::front)
}

fn variables(workflow: Option<&Workflow>) -> impl Iterator<Item = (&String, &Value)> {
    let fields = workflow.and_then(|workflow| front(workflow)?.get("variables")?.as_object());
    fields.into_iter().flatten()
}

/// A text that names a field of work, and not one that fits anything.
fn field_of_work(value: &Value) -> Option<String> {
    specific(value.as_str()?)
}

fn specific(text: &str) -> Option<String> {
    line(text).filter(|text| !is_generic(text))
}

fn text(value: &Value) -> Option<String> {
    line(value.as_str()?)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(text).take(ITEMS_MAX).collect()
}

/// `research-report` as words.
fn words(name: impl AsRef<str>) -> String {
    let spaced: Vec<&str> = name.as_ref().split(['-', '_', '.', '/']).filter(|part| !part.is_empty()).collect();
    spaced.join(" ")
}

/// Words that say nothing of a field, and those for what every package is made of: a domain of these alone is none.
const GENERIC: [&str; 149] = [
    "a",
    "agent",
    "agents",
    "ai",
    "all",
    "alles",
    "an",
    "and",
    "any",
    "anybody",
    "anyone",
    "anything",
    "app",
    "application",
    "applications",
    "apps",
    "are",
    "asset",
    "assets",
    "assist",
    "assistant",
    "assistants",
    "assistent",
    "assistentin",
    "assists",
    "be",
    "best",
    "bmad",
    "bot",
    "build",
    "builder",
    "building",
    "builds",
    "by",
    "can",
    "chat",
    "chatbot",
    "collection",
    "create",
    "creates",
    "das",
    "default",
    "demo",
    "den",
    "der",
    "description",
    "die",
    "digital",
    "do",
    "does",
    "ein",
    "eine",
    "einen",
    "everybody",
    "everyone",
    "everything",
    "example",
    "first",
    "flow",
    "flows",
    "for",
    "für",
    "general",
    "generic",
    "good",
    "great",
    "help",
    "helper",
    "helpers",
    "helpful",
    "helps",
    "hilfreiche",
    "hilfreicher",
    "hilft",
    "i",
    "in",
    "is",
    "it",
    "jede",
    "jeden",
    "job",
    "jobs",
    "ki",
    "kit",
    "main",
    "make",
    "makes",
    "mit",
    "my",
    "new",
    "of",
    "on",
    "or",
    "our",
    "package",
    "packages",
    "placeholder",
    "process",
    "processes",
    "project",
    "purpose",
    "run",
    "runs",
    "sample",
    "set",
    "simple",
    "smart",
    "some",
    "someone",
    "something",
    "start",
    "step",
    "steps",
    "stuff",
    "task",
    "tasks",
    "tba",
    "tbd",
    "template",
    "test",
    "tests",
    "that",
    "the",
    "thing",
    "things",
    "this",
    "to",
    "todo",
    "tool",
    "tools",
    "und",
    "untitled",
    "us",
    "use",
    "uses",
    "using",
    "various",
    "virtual",
    "we",
    "what",
    "whatever",
    "with",
    "work",
    "worker",
    "workflow",
    "workflows",
    "works",
    "you",
    "your",
];
/// The same, in Chinese.
const GENERIC_CHINESE: [&str; 7] = ["通用", "智能", "人工", "万能", "助手", "助理", "机器人"];

/// Whether a text names no field of work: nothing is left without the words that fit anything.
#[must_use]
pub fn is_generic(domain: &str) -> bool {
    let mut rest = domain.to_lowercase();
    for word in GENERIC_CHINESE {
        rest = rest.replace(word, " ");
    }
    rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).all(|word| GENERIC.contains(&word))
}
