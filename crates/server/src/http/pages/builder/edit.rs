//! What a person changes by hand: the text of an object, whom the package is for, and the package as a whole.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolhost_builder::change::Found;
use toolhost_builder::domain::{ITEMS_MAX, TEXT_CHARS_MAX, resolve_domain_profile};
use toolhost_builder::limits::Size;
use toolhost_builder::refs::Object;
use toolhost_builder::{Files, Package, Severity, from_zip_up_to, revision};
use toolhost_contract::{ErrorKind, ToolError, is_deceptive, visible_line};
use toolhost_host::ANSWER_BYTES_MAX;
use toolhost_store::Role;

use super::super::done::Done;
use super::super::marks::with_ends_of;
use super::super::route::{Made, Route, Wanted};
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see, see_done};
use super::changes::change_path;
use super::package::counted;
use super::{ByHand, call, place, said, session_by_hand, work};
use crate::http::{Replaces, WholePackage, envelope};

/// Where a package is sent to.
pub(in super::super) const IMPORT: &str = "/projects/{project}/builder/import";
/// Most bytes of a form with a package: the package, twice as text.
pub(in super::super) const UPLOAD_BYTES_MAX: usize = 3 * ZIP_BYTES_MAX;
/// Most bytes of a package that is imported on a page.
const ZIP_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Names of files, and findings, that are shown of a package that was sent.
const SHOWN_MAX: usize = 50;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/edit", name: "builder-edit", takes_forms: true, make: edit },
    Route { path: "/projects/{project}/builder/profile", name: "builder-profile", takes_forms: true, make: profile },
    Route { path: IMPORT, name: "builder-import", takes_forms: true, make: import },
];

pub(super) fn need(membership: &Membership, is_enough: bool) -> Result<(), ToolError> {
    let message = format!("You are {} of this project: that is not enough for this.", membership.role.as_str());
    if is_enough { Ok(()) } else { Err(ToolError::new(ErrorKind::Permission, message)) }
}

#[derive(Template)]
#[template(path = "builder/edit.html")]
struct EditPage<'a> {
    place: Place<'a>,
    action: String,
    name: String,
    shown: String,
    href: String,
    revision: String,
    text: String,
    reason: String,
    error: Option<String>,
    /// The person's open sets that are in what the form shows.
    open: Vec<(String, String)>,
    /// Why its text cannot be edited here.
    closed: Option<&'static str>,
}

/// The text of an object and the revision around it, as a change set names it.
pub(super) fn text_and_revision(package: &Package, object: &Object) -> Option<(String, String)> {
    let (path, revision) = match object {
        Object::Asset(path) => (package.asset(path)?.path.to_owned(), revision::assets(package)),
        Object::Workflow(id) => {
            let workflow = package.workflow(id)?;
            (workflow.path.clone(), revision::workflow(package, workflow))
        }
        Object::Step { workflow, node } => {
            let workflow = package.workflow(workflow)?;
            (workflow.step(node)?.path.clone(), revision::workflow(package, workflow))
        }
        Object::Package | Object::Agent(_) | Object::Variable { .. } => return None,
    };
    String::from_utf8(package.files().get(&path)?.clone()).ok().map(|text| (text, revision))
}

fn edit(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        need(&membership, membership.role != Role::Viewer)?;
        let name =
            wanted.form.as_ref().map_or_else(|| wanted.asked("name"), |form| form.get("name").map(String::as_str));
        let missing = || ToolError::new(ErrorKind::NotFound, "There is no such text in the package.");
        let object = Object::parse(name.unwrap_or_default()).ok_or_else(missing)?;
        let by_hand = ByHand::of(&visitor, &membership).await?;
        let (text, revision) = text_and_revision(by_hand.package(), &object).ok_or_else(missing)?;
        let unseen = |c: char| is_deceptive(c) && !matches!(c, '\n' | '\t' | '\r');
        let closed = match () {
            () if text.len() > ANSWER_BYTES_MAX => Some("This text is too long to be edited here."),
            () if text.contains(unseen) => Some("This text has hidden characters, which a form would not show."),
            () => None,
        };
        let mut shown = EditPage {
            place: place(&visitor, &membership),
            action: membership.path("builder/edit"),
            name: object.to_string(),
            shown: visible_line(&object.to_string()),
            href: membership.object_path(&object),
            revision,
            text: if closed.is_some() { String::new() } else { text.clone() },
            reason: String::new(),
            error: None,
            open: by_hand.open(&membership),
            closed,
        };
        let Some(form) = wanted.form.as_ref().filter(|_| closed.is_none()) else {
            return Ok(page(StatusCode::OK, &shown));
        };
        match stage_text(&visitor, &membership, (&object, &text), form).await {
            Ok(id) => Ok(see(&change_path(&membership, &id))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                let field = |name: &str| form.get(name).cloned().unwrap_or_default();
                (shown.text, shown.reason, shown.revision) = (field("text"), field("reason"), field("revision"));
                shown.error = Some(said(&error));
                Ok(page(envelope::status(&error), &shown))
            }
        }
    })
}

/// Stages what a form says of a text; answers the id of the set.
async fn stage_text(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (object, before): (&Object, &str),
    form: &BTreeMap<String, String>,
) -> Result<String, ToolError> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let text = with_ends_of(before, field("text"));
    if text == before {
        return Err(ToolError::new(ErrorKind::Validation, "Nothing is different"));
    }
    let (kind, target, payload) = match object {
        Object::Asset(path) => ("asset", json!({ "path": path }), json!({ "content": text })),
        Object::Step { workflow, node } => {
            ("step", json!({ "workflowId": workflow, "nodeId": node }), json!({ "step_markdown": text }))
        }
        Object::Workflow(id) => ("workflow", json!({ "workflowId": id }), json!({ "workflow_md": text })),
        Object::Package | Object::Agent(_) | Object::Variable { .. } => return Err(ToolError::internal("no text")),
    };
    stage(visitor, membership, (kind, target, payload), (field("revision"), field("reason"))).await
}

/// Stages one operation in the person's name; answers the id of the set.
pub(super) async fn stage(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (kind, target, payload): (&str, Value, Value),
    (revision, reason): (&str, &str),
) -> Result<String, ToolError> {
    let field = match kind {
        "asset" => "assetsRevision",
        "agent" => "agentsRevision",
        _ => "workflowRevision",
    };
    let reason = if reason.trim().is_empty() { "edited by hand" } else { reason };
    let set = json!({
        "schemaVersion": "1.1",
        "targetType": kind,
        "mode": "optimize",
        "operations": [{ "op": "upsert", "targetType": kind, "target": target, "payload": payload, "reason": reason }],
        "revisions": { field: revision },
    });
    stage_checked(visitor, membership, set).await
}

/// Stages a set in the person's name; answers its id. One that could not be applied as it is is discarded at once: the person still has
/// the form with what they typed, and corrects it there.
///
/// # Errors
/// If it breaks the contract, or is not valid.
pub(super) async fn stage_checked(
    visitor: &Visitor<'_>,
    membership: &Membership,
    set: Value,
) -> Result<String, ToolError> {
    let arguments = json!({ "sessionId": session_by_hand(membership), "changeSet": set });
    let staged = call(visitor, membership, "builder.change.stage", arguments).await?;
    let id = staged.get("changeSetId").and_then(Value::as_str);
    let id = id.map(str::to_owned).ok_or_else(|| ToolError::internal("a staged set has no id"))?;
    let preview = work(membership)?.preview(visitor.by(), &id, None).await?;
    // What another open set brings is told on the page of this one.
    let is_own = |found: &&Found| found.change_set_id.as_ref().is_none_or(|brings| *brings == id);
    let report = preview.report.filter(|report| !report.valid && preview.conflicts.is_empty());
    let errors: Vec<&Found> = report.iter().flat_map(|report| &report.errors).filter(is_own).collect();
    if errors.is_empty() {
        return Ok(id);
    }
    call(visitor, membership, "builder.change.discard", json!({ "changeSetId": id })).await?;
    let line = |found: &&Found| {
        let at = match (&*found.file, found.line) {
            ("", None) => String::new(),
            ("", Some(line)) => format!(" (line {line})"),
            (file, None) => format!(" ({file})"),
            (file, Some(line)) => format!(" ({file}, line {line})"),
        };
        let hint = if found.hint.is_empty() { String::new() } else { format!(": {}", found.hint) };
        format!("{}{at}{hint}", found.message)
    };
    let findings: Vec<Value> = errors.iter().map(|found| json!({ "message": line(found) })).collect();
    let message =
        format!("This could not be applied. Correct your text and send it again; {id}, which had it, is discarded");
    Err(ToolError::new(ErrorKind::Validation, message).details(json!({ "findings": findings })))
}

/// The lists of a profile: their names in the front matter, and what they are for.
const LISTS: [(&str, &str); 4] = [
    ("target_users", "Who uses what it makes"),
    ("core_pain_points", "What is hard for them"),
    ("expected_outcomes", "What they are to have in the end"),
    ("quality_style", "How it is to be"),
];

#[derive(Template)]
#[template(path = "builder/profile.html")]
struct ProfilePage<'a> {
    place: Place<'a>,
    action: String,
    source: &'static str,
    revision: String,
    open: Vec<(String, String)>,
    domain: String,
    lists: Vec<ListField>,
    error: Option<String>,
    is_owner: bool,
    /// Whether there is a workflow that can say it.
    can_say: bool,
}

struct ListField {
    name: &'static str,
    label: &'static str,
    text: String,
}

fn profile(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let by_hand = ByHand::of(&visitor, &membership).await?;
        let package = by_hand.package();
        let is_owner = membership.role == Role::Owner;
        let entry = package.entry_workflow();
        let (known, damaged) = match resolve_domain_profile(package, None) {
            Ok(known) => (known, None),
            Err(damaged) => (toolhost_builder::domain::fallback(), Some(damaged.to_string())),
        };
        let list = |name: &str| match name {
            "target_users" => known.target_users.join("\n"),
            "core_pain_points" => known.core_pain_points.join("\n"),
            "expected_outcomes" => known.expected_outcomes.join("\n"),
            _ => known.quality_style.join("\n"),
        };
        let mut shown = ProfilePage {
            place: place(&visitor, &membership),
            action: membership.path("builder/profile"),
            source: match known.source.as_str() {
                "project_meta" => "The package says so itself.",
                "workflow_signal" => "Read from names, descriptions and variables: the package does not say it itself.",
                _ => "Nothing in the package says it: this is the default.",
            },
            revision: entry.map(|workflow| revision::workflow(package, workflow)).unwrap_or_default(),
            open: by_hand.open(&membership),
            domain: visible_line(&known.industry_domain),
            lists: LISTS.iter().map(|(name, label)| ListField { name, label, text: list(name) }).collect(),
            error: damaged.map(|damaged| visible_line(&damaged)),
            is_owner,
            can_say: entry.is_some(),
        };
        let (Some(form), Some(entry)) = (&wanted.form, entry) else { return Ok(page(StatusCode::OK, &shown)) };
        need(&membership, is_owner)?;
        let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let staged = async {
            let said = profile_of(form)?;
            let payload = json!({ "frontMatter": { "domain_profile": said } });
            let target = json!({ "workflowId": entry.id });
            let reason = "the owner says whom the package is for";
            stage(&visitor, &membership, ("workflow", target, payload), (field("revision"), reason)).await
        };
        match staged.await {
            Ok(id) => Ok(see(&change_path(&membership, &id))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                shown.error = Some(said(&error));
                field("industry_domain").clone_into(&mut shown.domain);
                field("revision").clone_into(&mut shown.revision);
                shown.lists.iter_mut().for_each(|list| field(list.name).clone_into(&mut list.text));
                Ok(page(envelope::status(&error), &shown))
            }
        }
    })
}

/// What a form says of whom the package is for.
fn profile_of(form: &BTreeMap<String, String>) -> Result<Value, ToolError> {
    let wrong = |message: String| ToolError::new(ErrorKind::Validation, message);
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let too_long = |text: &str| text.chars().count() > TEXT_CHARS_MAX;
    let domain = field("industry_domain").trim();
    if domain.is_empty() || too_long(domain) {
        return Err(wrong(format!("The field of work is a text of 1 to {TEXT_CHARS_MAX} characters")));
    }
    let mut said = json!({ "industry_domain": domain });
    for (name, label) in LISTS {
        let items: Vec<&str> = field(name).lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if items.is_empty() || items.len() > ITEMS_MAX || items.iter().any(|item| too_long(item)) {
            let most = format!("1 to {ITEMS_MAX} lines of at most {TEXT_CHARS_MAX} characters");
            return Err(wrong(format!("“{label}” has {most}")));
        }
        said[name] = json!(items);
    }
    Ok(said)
}

#[derive(Template)]
#[template(path = "builder/import.html")]
struct ImportPage<'a> {
    place: Place<'a>,
    action: String,
    has_package: bool,
    is_owner: bool,
    error: Option<String>,
    checked: Option<Checked>,
}

/// A package that was sent, and what it would replace.
struct Checked {
    /// As text, to be sent again.
    zip: String,
    /// Of what it replaces; empty where there is nothing.
    revision: String,
    files: String,
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    more: usize,
    findings: Vec<(bool, String)>,
    is_valid: bool,
}

fn import(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let known = work(&membership)?.package(visitor.by()).await?;
        let mut shown = ImportPage {
            place: place(&visitor, &membership),
            action: membership.path("builder/import"),
            has_package: known.is_some(),
            is_owner: membership.role == Role::Owner,
            error: None,
            checked: None,
        };
        if wanted.form.is_none() {
            return Ok(page(StatusCode::OK, &shown));
        }
        need(&membership, membership.role == Role::Owner)?;
        let done = match wanted.files.get("file") {
            Some(zip) => check(&visitor, &membership, (zip, known.as_deref())).await.map(Some),
            None => replace(&visitor, &membership, &wanted).await.map(|()| None),
        };
        match done {
            Ok(None) => Ok(see_done(&membership.path("builder"), Done::Imported)),
            Ok(checked) => {
                shown.checked = checked;
                Ok(page(StatusCode::OK, &shown))
            }
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => {
                shown.error = Some(said(&error));
                Ok(page(envelope::status(&error), &shown))
            }
        }
    })
}

/// Looks at a package that was sent, and at what it would replace.
async fn check(
    visitor: &Visitor<'_>,
    membership: &Membership,
    (zip, known): (&[u8], Option<&WholePackage>),
) -> Result<Checked, ToolError> {
    if zip.is_empty() {
        return Err(ToolError::new(ErrorKind::Validation, "Choose a zip file"));
    }
    if zip.len() > ZIP_BYTES_MAX {
        let message = format!("The file is larger than {ZIP_BYTES_MAX} bytes");
        return Err(ToolError::too_large(message, ZIP_BYTES_MAX)
            .hint("Import a larger package at a terminal: `toolhost package import PATH`."));
    }
    let work = work(membership)?;
    let found = work.findings(zip).await?;
    let revision = match known {
        Some(_) => work.export(visitor.by()).await?.revision,
        None => String::new(),
    };
    let none = Files::new();
    let sent = from_zip_up_to(zip, Size::default()).map(Package::read);
    let (now, then) = (known.map_or(&none, |known| known.whole.files()), sent.as_ref().map_or(&none, Package::files));
    let names = |wanted: &dyn Fn(&String) -> bool| {
        let all: Vec<&String> = then.keys().chain(now.keys().filter(|path| !then.contains_key(*path))).collect();
        all.into_iter().filter(|path| wanted(path)).map(|path| visible_line(path)).collect::<Vec<_>>()
    };
    let mut added = names(&|path| !now.contains_key(path));
    let mut removed = names(&|path| !then.contains_key(path));
    let mut changed = names(&|path| now.get(path).zip(then.get(path)).is_some_and(|(now, then)| now != then));
    let mut more = 0;
    for list in [&mut added, &mut changed, &mut removed] {
        more += list.len().saturating_sub(SHOWN_MAX);
        list.truncate(SHOWN_MAX);
    }
    let line =
        |finding: &toolhost_builder::Finding| (finding.severity == Severity::Error, visible_line(&finding.to_string()));
    Ok(Checked {
        zip: if found.valid { STANDARD.encode(zip) } else { String::new() },
        revision,
        files: counted(then.len(), "file"),
        added,
        changed,
        removed,
        more,
        findings: found.findings.iter().take(SHOWN_MAX).map(line).collect(),
        is_valid: found.valid,
    })
}

/// Puts a package that was looked at in the place of the one that it was compared with.
async fn replace(visitor: &Visitor<'_>, membership: &Membership, wanted: &Wanted) -> Result<(), ToolError> {
    let field =
        |name: &str| wanted.form.as_ref().and_then(|form| form.get(name)).map(String::as_str).unwrap_or_default();
    let wrong = |_| ToolError::new(ErrorKind::Validation, "Choose a zip file");
    let zip = STANDARD.decode(field("zip")).map_err(wrong)?;
    if zip.is_empty() {
        return Err(ToolError::new(ErrorKind::Validation, "Choose a zip file"));
    }
    let replaces = match field("revision") {
        "" => Replaces::Nothing,
        revision => Replaces::Revision(revision.to_owned()),
    };
    work(membership)?.import(visitor.by(), &zip, replaces).await.map(drop)
}
