//! The package as a whole: its workflows, agents and assets, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use toolhost_builder::refs::{Locator, Object};
use toolhost_builder::{Finding, Package, Severity};
use toolhost_contract::visible_line;
use toolhost_store::Role;

use super::super::route::{Made, Route, Wanted};
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, guard, page};
use super::{Link, Part, change_link, encoded, part, place, session_by_hand, whole, work};
use crate::http::WholePackage;

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder", name: "builder", takes_forms: false, make: overview },
    Route { path: "/projects/{project}/builder/list", name: "builder-list", takes_forms: false, make: list },
    Route {
        path: "/projects/{project}/builder/findings",
        name: "builder-findings",
        takes_forms: false,
        make: findings,
    },
    Route { path: "/projects/{project}/builder/export", name: "builder-export", takes_forms: false, make: export },
];

#[derive(Template)]
#[template(path = "builder/package.html")]
struct PackagePage<'a> {
    place: Place<'a>,
    name: String,
    description: String,
    moment: i64,
    /// Whether it has no workflow yet: what it lacks is awaited.
    is_begun: bool,
    errors: usize,
    warnings: usize,
    counts: Vec<Count>,
    rows: Vec<Row>,
    part: Part,
    /// Sets that are not applied, and how many more there are.
    open: Vec<Link>,
    more: usize,
    /// Whether there are steps to build on, if only for this person.
    has_steps: bool,
    can_edit: bool,
}

/// How many there are of a kind, and where they are listed.
struct Count {
    href: String,
    words: String,
}

#[derive(Template)]
#[template(path = "builder/none.html")]
struct NonePage<'a> {
    place: Place<'a>,
    is_owner: bool,
}

/// Open sets that the page of the package names.
const OPEN_MAX: usize = 10;

#[derive(Template)]
#[template(path = "builder/list.html")]
struct ListPage<'a> {
    place: Place<'a>,
    title: &'static str,
    rows: Vec<Row>,
    part: Part,
}

struct Row {
    href: String,
    name: String,
    detail: String,
}

#[derive(Template)]
#[template(path = "builder/findings.html")]
struct FindingsPage<'a> {
    place: Place<'a>,
    /// Whether it was begun and has nothing yet.
    is_begun: bool,
    count: usize,
    findings: Vec<FindingRow>,
    part: Part,
}

/// What is wrong, with where it leads.
pub(super) struct FindingRow {
    pub(super) is_error: bool,
    pub(super) href: Option<String>,
    pub(super) at: String,
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) code: String,
}

impl FindingRow {
    pub(super) fn of(membership: &Membership, whole: &WholePackage, finding: &Finding) -> Self {
        let Finding { severity, file, line, column, code, message, hint, .. } = finding;
        let at = match (line, column) {
            (Some(line), Some(column)) => format!("{file}, line {line}, column {column}"),
            (Some(line), None) => format!("{file}, line {line}"),
            _ => file.clone(),
        };
        Self {
            is_error: *severity == Severity::Error,
            href: place_of(membership, whole, file, *line),
            at: visible_line(&at),
            message: visible_line(message),
            hint: visible_line(hint),
            code: visible_line(code),
        }
    }
}

/// Where a file stands: on the page of the one object that it is, or on a page of its own.
fn place_of(membership: &Membership, whole: &WholePackage, file: &str, line: Option<usize>) -> Option<String> {
    if !whole.package.files().contains_key(file) {
        return None;
    }
    let line_of = |line: Option<usize>| line.map(|line| format!("&line={line}#L{line}")).unwrap_or_default();
    match text_object(whole, file) {
        Some(object) => Some(membership.object_path(&object) + &line_of(line)),
        None => Some(membership.file_path(file, line)),
    }
}

/// The one object whose text a file is; none of a file that many share.
pub(super) fn text_object(whole: &WholePackage, file: &str) -> Option<Object> {
    let objects = whole.index.find(&Locator::Path(file.to_owned())).objects;
    let is_text = |object: &&Object| match object {
        Object::Workflow(id) => whole.package.workflow(id).is_some_and(|workflow| workflow.path == file),
        Object::Step { .. } | Object::Asset(_) => true,
        Object::Package | Object::Agent(_) | Object::Variable { .. } => false,
    };
    let mut found = objects.iter().filter(is_text);
    found.next().cloned().filter(|_| found.next().is_none())
}

/// How many findings each workflow has, by its id: those of its own files.
fn by_workflow(whole: &WholePackage) -> BTreeMap<&str, usize> {
    let mut in_file: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &whole.findings {
        *in_file.entry(&finding.file).or_default() += 1;
    }
    let count = |workflow: &toolhost_builder::Workflow| {
        let steps = workflow.nodes.iter().filter_map(|node| node.path.as_deref());
        let files: BTreeSet<&str> = [&*workflow.path, &*workflow.graph_path].into_iter().chain(steps).collect();
        files.iter().filter_map(|file| in_file.get(file)).sum()
    };
    whole.package.workflows().iter().map(|workflow| (&*workflow.id, count(workflow))).collect()
}

/// `1 step`, `2 steps`
pub(super) fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

fn overview(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let Some(whole) = work(&membership)?.package(visitor.by()).await? else {
            let page_of = NonePage { place: place(&visitor, &membership), is_owner: membership.role == Role::Owner };
            return Ok(page(StatusCode::OK, &page_of));
        };
        let package = &whole.package;
        let said =
            |name: &str| package.manifest().and_then(|manifest| manifest.get(name)?.as_str()).unwrap_or_default();
        let findings = by_workflow(&whole);
        let row = |workflow: &toolhost_builder::Workflow| {
            let found = match findings.get(&*workflow.id).copied().unwrap_or_default() {
                0 => "no findings".to_owned(),
                count => counted(count, "finding"),
            };
            Row {
                href: membership.object_path(&Object::Workflow(workflow.id.clone())),
                name: visible_line(workflow.title()),
                detail: visible_line(&format!("{} · {} · {found}", workflow.id, counted(workflow.nodes.len(), "node"))),
            }
        };
        let address = membership.path("builder");
        let (workflows, part) = part(package.workflows().iter().collect(), wanted.asked("from"), &address);
        let count = |kind: &str, count: usize, one: &str| Count {
            href: membership.path(&format!("builder/list?kind={kind}")),
            words: counted(count, one),
        };
        let by = visitor.by();
        let open = work(&membership)?.changes(by, None, true).await?;
        let seen = work(&membership)?.seen_by(by, &session_by_hand(&membership)).await?;
        let has_steps = |package: &Package| !package.workflows().is_empty();
        let errors = whole.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        Ok(page(
            StatusCode::OK,
            &PackagePage {
                place: place(&visitor, &membership),
                name: visible_line(package.name().unwrap_or("Workflow package")),
                description: visible_line(said("description")),
                moment: whole.moment,
                is_begun: package.is_begun(),
                errors,
                warnings: whole.findings.len() - errors,
                counts: vec![
                    count("agents", package.agents().len(), "agent"),
                    count("assets", package.asset_paths().count(), "asset"),
                    count("files", package.files().len(), "file"),
                ],
                rows: workflows.into_iter().map(row).collect(),
                part,
                open: open.iter().take(OPEN_MAX).map(|set| change_link(&membership, set)).collect(),
                more: open.len().saturating_sub(OPEN_MAX),
                has_steps: has_steps(package) || seen.is_some_and(|seen| has_steps(&seen.package)),
                can_edit: membership.role != Role::Viewer,
            },
        ))
    })
}

fn list(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let whole = whole(&visitor, &membership).await?;
        let kind = wanted.asked("kind").unwrap_or_default();
        let (title, rows) = rows(&membership, &whole.package, kind);
        let address = membership.path(&format!("builder/list?kind={}", encoded(kind)));
        let (rows, part) = part(rows, wanted.asked("from"), &address);
        Ok(page(StatusCode::OK, &ListPage { place: place(&visitor, &membership), title, rows, part }))
    })
}

fn rows(membership: &Membership, package: &Package, kind: &str) -> (&'static str, Vec<Row>) {
    match kind {
        "agents" => {
            let row = |agent: &toolhost_builder::Agent| {
                let said = |at: &str| agent.value.pointer(at).and_then(Value::as_str).unwrap_or_default();
                Row {
                    href: membership.object_path(&Object::Agent(agent.id.clone())),
                    name: visible_line(&agent.id),
                    detail: visible_line(&format!("{} · {}", said("/metadata/name"), said("/metadata/title"))),
                }
            };
            ("Agents", package.agents().iter().map(row).collect())
        }
        "assets" => {
            let row = |path: &str| Row {
                href: membership.object_path(&Object::Asset(path.to_owned())),
                name: visible_line(path),
                detail: bytes_of(package, path),
            };
            ("Assets", package.asset_paths().map(row).collect())
        }
        _ => {
            let row = |path: &String| Row {
                href: membership.file_path(path, None),
                name: visible_line(path),
                detail: bytes_of(package, path),
            };
            ("Files", package.files().keys().map(row).collect())
        }
    }
}

fn bytes_of(package: &Package, path: &str) -> String {
    package.files().get(path).map(|bytes| counted(bytes.len(), "byte")).unwrap_or_default()
}

fn findings(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let whole = whole(&visitor, &membership).await?;
        let mut all: Vec<&Finding> = whole.findings.iter().collect();
        all.sort_by_key(|finding| finding.severity != Severity::Error);
        let count = all.len();
        let (shown, part) = part(all, wanted.asked("from"), &membership.path("builder/findings"));
        let findings = shown.into_iter().map(|finding| FindingRow::of(&membership, &whole, finding)).collect();
        let place = place(&visitor, &membership);
        Ok(page(StatusCode::OK, &FindingsPage { place, is_begun: whole.package.is_begun(), count, findings, part }))
    })
}

fn export(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let archive = work(&membership)?.export(visitor.by()).await?;
        let mut response = Response::new(Body::from(archive.zip));
        guard(response.headers_mut());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(crate::http::api_work::ZIP));
        let name = HeaderValue::from_static("attachment; filename=\"package.zip\"");
        headers.insert(header::CONTENT_DISPOSITION, name);
        Ok(response)
    })
}
