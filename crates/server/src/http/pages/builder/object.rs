//! One object of the package: its text, its graph, what is wrong with it, and what refers to what.

use std::collections::BTreeSet;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::Value;
use toolhost_builder::packages::ChangeSetLine;
use toolhost_builder::refs::{Locator, Object, Ref};
use toolhost_contract::{ErrorKind, ToolError, visible_line};
use toolhost_store::Role;

use super::super::route::{Made, Route, Wanted};
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see};
use super::edit::text_and_revision;
use super::new::sent_node;
use super::package::{FindingRow, counted, text_object};
use super::picture::{Picture, Side};
use super::text::{TextPart, Wish};
use super::{Link, change_link, encoded, is_there, place, session_by_hand, whole, work};
use crate::http::WholePackage;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/object", name: "builder-object", takes_forms: false, make: one },
    Route { path: "/projects/{project}/builder/file", name: "builder-file", takes_forms: false, make: file },
];

/// Most references and findings of one object on its page.
const SHOWN_MAX: usize = 200;

#[derive(Template)]
#[template(path = "builder/object.html")]
struct ObjectPage<'a> {
    place: Place<'a>,
    kind: &'static str,
    title: String,
    name: String,
    facts: Vec<Fact>,
    picture: Option<Picture>,
    findings: Vec<FindingRow>,
    variables: Vec<Link>,
    inbound: Vec<Reference>,
    outbound: Vec<Reference>,
    more: usize,
    text: Option<TextPart>,
    text_of: String,
    /// Open change sets that change it.
    changes: Vec<Link>,
    /// Where it is edited by hand, and what that is called.
    edit: Option<(String, &'static str)>,
    ask: Option<String>,
    /// Where a step and an edge of a workflow are made by hand.
    new: Vec<Link>,
}

/// A line about the object.
struct Fact {
    name: &'static str,
    text: String,
    href: Option<String>,
}

struct Reference {
    href: Option<String>,
    name: String,
    how: String,
    at: String,
    is_missing: bool,
}

#[derive(Template)]
#[template(path = "builder/file.html")]
struct FilePage<'a> {
    place: Place<'a>,
    title: String,
    object: Option<Link>,
    findings: Vec<FindingRow>,
    text: Option<TextPart>,
}

fn no_such() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "There is no such object in the package.")
}

fn one(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let object = Object::parse(wanted.asked("name").unwrap_or_default()).ok_or_else(no_such)?;
        let whole = whole(&visitor, &membership).await?;
        let changes = work(&membership)?.changes(visitor.by(), None, true).await?;
        let wish = Wish::of(wanted.asked("part"), wanted.asked("line"));
        if object == Object::Package {
            return Ok(see(&membership.path("builder")));
        }
        let name = object.to_string();
        if content(&membership, &whole, &object).is_none()
            && let Some(form) = staged_form(&visitor, &membership, &object).await?
        {
            return Ok(see(&form));
        }
        match changes.iter().find(|set| set.objects.contains(&name)) {
            // Nobody has applied it: the set shows it as it would be.
            Some(set) if content(&membership, &whole, &object).is_none() => {
                Ok(see(&membership.path(&format!("builder/changes/{}", encoded(&set.change_set_id)))))
            }
            _ => shown(&visitor, &membership, (&whole, &object), (wish, &changes)),
        }
    })
}

/// The form of an object that this person has staged by hand, and nobody has applied.
async fn staged_form(
    visitor: &Visitor<'_>,
    membership: &Membership,
    object: &Object,
) -> Result<Option<String>, ToolError> {
    let seen = work(membership)?.seen_by(visitor.by(), &session_by_hand(membership)).await?;
    let Some(seen) = seen.filter(|_| membership.role != Role::Viewer) else { return Ok(None) };
    let (has_form, path) = match object {
        Object::Agent(id) => (seen.package.agent(id).is_some(), super::agent::edit_path(id)),
        _ => {
            let has_text = text_and_revision(&seen.package, object).is_some();
            (has_text, format!("builder/edit?name={}", encoded(&object.to_string())))
        }
    };
    Ok(has_form.then(|| membership.path(&path)))
}

/// What an object is, apart from what refers to it.
struct Content {
    kind: &'static str,
    title: String,
    facts: Vec<Fact>,
    picture: Option<Picture>,
    /// The file whose text it is, or a text of its own.
    text: Option<String>,
    text_of: String,
    /// The files that findings about it are in.
    files: BTreeSet<String>,
}

fn shown(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (whole, object): (&WholePackage, &Object),
    (wish, changes): (Wish, &[ChangeSetLine]),
) -> Result<Response<Body>, ToolError> {
    let content = content(membership, whole, object).ok_or_else(no_such)?;
    let refs = whole.index.find(&Locator::Object(object.clone()));
    let more = refs.inbound.len().saturating_sub(SHOWN_MAX) + refs.outbound.len().saturating_sub(SHOWN_MAX);
    let reference = |one: &Ref, other: &Object| Reference::of(membership, whole, one, other);
    let findings = whole.findings.iter().filter(|finding| content.files.contains(&finding.file));
    let name = object.to_string();
    let touching = changes.iter().filter(|set| set.objects.contains(&name));
    let can_edit = membership.role != Role::Viewer;
    let has_text = content.text.is_some() && !matches!(object, Object::Agent(_) | Object::Variable { .. });
    let is_target = !matches!(object, Object::Variable { .. } | Object::Package);
    Ok(page(
        StatusCode::OK,
        &ObjectPage {
            place: place(visitor, membership),
            kind: content.kind,
            title: content.title,
            facts: content.facts,
            picture: content.picture,
            findings: findings.take(SHOWN_MAX).map(|one| FindingRow::of(membership, whole, one)).collect(),
            variables: variables(membership, whole, object),
            inbound: refs.inbound.iter().take(SHOWN_MAX).map(|one| reference(one, &one.from)).collect(),
            outbound: refs.outbound.iter().take(SHOWN_MAX).map(|one| reference(one, &one.to)).collect(),
            more,
            text: content.text.map(|text| TextPart::of(&text, wish, membership.object_path(object) + "&part=")),
            text_of: visible_line(&content.text_of),
            changes: touching.map(|set| change_link(membership, set)).collect(),
            edit: match object {
                Object::Agent(id) if can_edit => {
                    Some((membership.path(&super::agent::edit_path(id)), "Edit the agent by hand"))
                }
                _ => (can_edit && has_text).then(|| {
                    let path = format!("builder/edit?name={}", encoded(&name));
                    (membership.path(&path), "Edit the text by hand")
                }),
            },
            ask: (can_edit && is_target)
                .then(|| membership.path(&format!("builder/assistant?name={}", encoded(&name)))),
            new: match object {
                Object::Workflow(id) if can_edit => [
                    ("step", "Create a step"),
                    ("decision", "Create a decision"),
                    ("edge", "Create an edge between steps"),
                    ("edge-removal", "Remove an edge between steps"),
                    ("step-removal", "Remove a step"),
                ]
                .map(|(kind, label)| Link {
                    href: membership.path(&format!("builder/new/{kind}?workflow={}", encoded(id))),
                    name: label.to_owned(),
                })
                .into(),
                Object::Step { workflow, node } if can_edit => {
                    let path = format!("builder/new/step-removal?node={}", sent_node(workflow, node));
                    vec![Link { href: membership.path(&path), name: "Remove this step".to_owned() }]
                }
                _ => Vec::new(),
            },
            name: visible_line(&name),
        },
    ))
}

impl Reference {
    fn of(membership: &Membership, whole: &WholePackage, one: &Ref, other: &Object) -> Self {
        let kind = serde_json::to_value(one.kind).unwrap_or_default();
        let line = one.line.map(|line| format!(", line {line}")).unwrap_or_default();
        let there = is_there(&whole.package, other);
        Self {
            href: there.then(|| membership.object_path(other)),
            name: visible_line(&other.to_string()),
            how: kind.as_str().unwrap_or_default().replace('-', " "),
            at: visible_line(&format!("{}{line}", one.file)),
            is_missing: !one.resolved || !there,
        }
    }
}

/// The variables of a workflow.
fn variables(membership: &Membership, whole: &WholePackage, object: &Object) -> Vec<Link> {
    let Object::Workflow(id) = object else { return Vec::new() };
    let document = whole.package.workflow(id).and_then(|workflow| workflow.document.as_ref());
    let said = document.and_then(|document| document.front().get("variables")).and_then(Value::as_object);
    let link = |name: &String| {
        let object = Object::Variable { workflow: id.clone(), name: name.clone() };
        Link { href: membership.object_path(&object), name: visible_line(name) }
    };
    said.into_iter().flat_map(|fields| fields.keys()).take(SHOWN_MAX).map(link).collect()
}

/// The text of a file. Bytes that are not text are named as such.
pub(super) fn text_of(whole: &WholePackage, path: &str) -> Option<String> {
    let bytes = whole.package.files().get(path)?;
    let binary = |_| format!("[{} that are not text]", counted(bytes.len(), "byte"));
    Some(String::from_utf8(bytes.clone()).unwrap_or_else(binary))
}

/// An object of this kind and title about which nothing else is known.
fn bare(kind: &'static str, title: &str) -> Content {
    Content {
        kind,
        title: visible_line(title),
        facts: Vec::new(),
        picture: None,
        text: None,
        text_of: String::new(),
        files: BTreeSet::new(),
    }
}

fn file_fact(membership: &Membership, whole: &WholePackage, name: &'static str, path: &str) -> Fact {
    let is_there = whole.package.files().contains_key(path);
    Fact { name, text: visible_line(path), href: is_there.then(|| membership.file_path(path, None)) }
}

fn workflow_fact(membership: &Membership, id: &str) -> Fact {
    let href = Some(membership.object_path(&Object::Workflow(id.to_owned())));
    Fact { name: "Workflow", text: visible_line(id), href }
}

fn content(membership: &Membership, whole: &WholePackage, object: &Object) -> Option<Content> {
    match object {
        Object::Workflow(id) => workflow(membership, whole, id),
        Object::Step { workflow, node } => step(membership, whole, workflow, node),
        Object::Agent(id) => agent(membership, whole, id),
        Object::Asset(path) => Some(Content {
            text: Some(text_of(whole, path).filter(|_| whole.package.has_asset(path))?),
            text_of: path.clone(),
            files: [path.clone()].into_iter().collect(),
            ..bare("Asset", path)
        }),
        Object::Variable { workflow, name } => variable(membership, whole, object, (workflow, name)),
        Object::Package => None,
    }
}

fn workflow(membership: &Membership, whole: &WholePackage, id: &str) -> Option<Content> {
    let workflow = whole.package.workflow(id)?;
    let href =
        |node: &str| Some(membership.object_path(&Object::Step { workflow: id.to_owned(), node: node.to_owned() }));
    let label = format!("Graph of the workflow {id}");
    let steps = workflow.nodes.iter().filter_map(|node| node.path.clone());
    Some(Content {
        facts: vec![
            file_fact(membership, whole, "Document", &workflow.path),
            file_fact(membership, whole, "Graph", &workflow.graph_path),
        ],
        picture: workflow.graph.as_ref().map(|graph| Picture::of(graph, &label, Side::Only, href)),
        text: text_of(whole, &workflow.path),
        text_of: workflow.path.clone(),
        files: [workflow.path.clone(), workflow.graph_path.clone()].into_iter().chain(steps).collect(),
        ..bare("Workflow", workflow.title())
    })
}

fn step(membership: &Membership, whole: &WholePackage, workflow: &str, node: &str) -> Option<Content> {
    let found = whole.package.workflow(workflow)?.node(node)?;
    let said = |name: &str| found.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = found.path.clone().unwrap_or_default();
    let agent = found.agent_id.clone().map(|id| Fact {
        name: "Agent",
        text: visible_line(&id),
        href: whole.package.agent(&id).map(|_| membership.object_path(&Object::Agent(id.clone()))),
    });
    let fact = |name, text: &str| Fact { name, text: visible_line(text), href: None };
    let facts = [
        Some(workflow_fact(membership, workflow)),
        Some(fact("Kind", said("type"))),
        agent,
        Some(fact("Description", said("description"))),
        Some(file_fact(membership, whole, "File", &path)),
    ];
    Some(Content {
        facts: facts.into_iter().flatten().filter(|fact| !fact.text.is_empty()).collect(),
        text: text_of(whole, &path),
        text_of: path.clone(),
        files: [path].into_iter().collect(),
        ..bare("Step", if said("title").is_empty() { node } else { said("title") })
    })
}

fn agent(membership: &Membership, whole: &WholePackage, id: &str) -> Option<Content> {
    let agent = whole.package.agent(id)?;
    let file = whole.package.agents_path().unwrap_or_default();
    let said = |at: &str| agent.value.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let fact = |name, at| Fact { name, text: visible_line(said(at)), href: None };
    let facts = [fact("Name", "/metadata/name"), fact("Title", "/metadata/title"), fact("Role", "/persona/role")];
    let facts = facts.into_iter().filter(|fact| !fact.text.is_empty());
    Some(Content {
        facts: facts.chain([file_fact(membership, whole, "File", file)]).collect(),
        text: serde_json::to_string_pretty(&agent.value).ok(),
        text_of: format!("{id} in {file}"),
        ..bare("Agent", id)
    })
}

fn variable(
    membership: &Membership,
    whole: &WholePackage,
    object: &Object,
    (workflow, name): (&str, &str),
) -> Option<Content> {
    let document = whole.package.workflow(workflow)?.document.as_ref();
    let value = document.and_then(|document| document.front().get("variables")?.get(name));
    if value.is_none() && whole.index.find(&Locator::Object(object.clone())).inbound.is_empty() {
        return None;
    }
    let text = value.map_or_else(|| "not declared".to_owned(), Value::to_string);
    let value = Fact { name: "Begins as", text: visible_line(&text), href: None };
    Some(Content { facts: vec![workflow_fact(membership, workflow), value], ..bare("Variable", name) })
}

fn file(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let path = wanted.asked("path").unwrap_or_default();
        let whole = whole(&visitor, &membership).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "There is no such file in the package.");
        let text = text_of(&whole, path).ok_or_else(missing)?;
        let wish = Wish::of(wanted.asked("part"), wanted.asked("line"));
        let address = membership.file_path(path, None) + "&part=";
        let findings = whole.findings.iter().filter(|finding| finding.file == path).take(SHOWN_MAX);
        let object = text_object(&whole, path)
            .map(|object| Link { href: membership.object_path(&object), name: visible_line(&object.to_string()) });
        Ok(page(
            StatusCode::OK,
            &FilePage {
                place: place(&visitor, &membership),
                title: visible_line(path),
                object,
                findings: findings.map(|one| FindingRow::of(&membership, &whole, one)).collect(),
                text: Some(TextPart::of(&text, wish, address)),
            },
        ))
    })
}
