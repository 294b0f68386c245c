//! The plan of a project: milestones, requirements and what covers them, tasks and what they wait for, artifacts, what was learned,
//! iterations and personas. All of it is read with the tools that agents read with.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use toolhost_contract::cursor::number_cursor;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_host::ask_id;
use toolhost_records::{RecordId, TASK};
use toolhost_store::AskKind;

use super::calls::{can_edit, listed, text, texts};
use super::ended::in_words;
use super::forms::{Field, Shape, choice, filled};
use super::known::titles;
use super::plan_new::buttons;
use super::record::{address, links};
use super::route::{Made, Route, Wanted};
use super::text::{Shown, TextPage, When, count, encoded, name, words};
use super::visitor::{Membership, Visitor};
use super::{PLAN, Place, page};

/// Records of one page.
const ROWS_MAX: usize = 50;
/// Features that are read to tell which tasks cover the requirements of a page.
const FEATURES_MAX: usize = 200;
/// Reviews that are listed beside the artifacts.
const REVIEWS_MAX: i64 = 20;
/// What is found of the memory, at most; words of a search; and how much of each find is shown.
const FINDS_MAX: usize = 50;
const WORDS_MAX: usize = 50;
const FIND_LINES_MAX: usize = 12;
const FIND_BYTES_MAX: usize = 2048;
const CATEGORIES: &[&str] = &["decisions", "patterns", "insights", "issues", "learnings"];
const ARTIFACTS: &[&str] = &["idea", "prd", "design", "plan", "check_report", "delivery_report"];

/// The pages of this part.
pub(super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/plan", name: "plan", takes_forms: false, make: overview },
    Route { path: "/projects/{project}/plan/features", name: "features", takes_forms: false, make: features },
    Route { path: "/projects/{project}/plan/tasks", name: "tasks", takes_forms: false, make: tasks },
    Route { path: "/projects/{project}/plan/artifacts", name: "artifacts", takes_forms: false, make: artifacts },
    Route { path: "/projects/{project}/plan/artifacts/{kind}", name: "artifact", takes_forms: false, make: artifact },
    Route { path: "/projects/{project}/plan/memory", name: "memory", takes_forms: false, make: memory },
    Route { path: "/projects/{project}/plan/iterations", name: "iterations", takes_forms: false, make: iterations },
    Route { path: "/projects/{project}/plan/personas", name: "personas", takes_forms: false, make: personas },
];

/// The pages of the plan, as its own menu names them.
pub(super) const MENU: &[(&str, &str)] = &[
    ("plan", "Milestones and requirements"),
    ("plan/features", "Features and components"),
    ("plan/tasks", "Tasks"),
    ("plan/artifacts", "Artifacts"),
    ("plan/memory", "Memory"),
    ("plan/iterations", "Iterations"),
    ("plan/personas", "Personas"),
];

/// A list of records with a form above it. All pages of the plan look like this.
#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage<'a> {
    place: Place<'a>,
    membership: &'a Membership,
    path: &'static str,
    title: &'static str,
    /// Forms that create a record.
    buttons: Vec<(String, &'static str)>,
    /// A filter, sent by GET.
    fields: Vec<Field>,
    groups: Vec<Group>,
}

#[derive(Default)]
struct Group {
    title: &'static str,
    /// What is said where there is nothing.
    empty: &'static str,
    rows: Vec<Row>,
    next: Option<String>,
}

/// A record in a list.
#[derive(Default)]
struct Row {
    address: String,
    title: String,
    badge: String,
    facts: String,
    when: Option<When>,
    related: Vec<Related>,
    text: Shown,
}

/// Other records, by what they are to one.
struct Related {
    label: &'static str,
    links: Vec<Other>,
    /// What is said where there are none; empty for nothing.
    none: &'static str,
}

/// Another record: its id, where it is, and what it is called, if that is known.
struct Other {
    id: String,
    address: String,
    title: String,
}

impl Related {
    fn new<'t>(
        label: &'static str,
        membership: &Membership,
        ids: impl Iterator<Item = &'t str>,
        none: &'static str,
    ) -> Self {
        let other = |(id, address)| Other { id, address, title: String::new() };
        Self { label, links: links(membership, ids).into_iter().map(other).collect(), none }
    }
}

/// Families of tools whose changes these pages show.
const FAMILIES: &str = "task feature requirement milestone iteration persona memory artifact";

impl<'a> PlanPage<'a> {
    fn new(visitor: &'a Visitor<'_>, membership: &'a Membership, path: &'static str) -> Self {
        let title = MENU.iter().find(|(known, _)| *known == path).map_or("Plan", |(_, title)| title);
        let place = Place { live: FAMILIES, ..membership.place(visitor, PLAN) };
        Self { place, membership, path, title, buttons: buttons(membership, path), fields: Vec::new(), groups: vec![] }
    }

    /// The page with these lists, in which other records stand with what they are called.
    async fn with(mut self, visitor: &Visitor<'_>, groups: Vec<Group>) -> Result<Self, ToolError> {
        self.groups = groups;
        let rows = self.groups.iter_mut().flat_map(|group| &mut group.rows);
        let others: Vec<&mut Other> = rows.flat_map(|row| &mut row.related).flat_map(|one| &mut one.links).collect();
        let titles = titles(visitor, self.membership, others.iter().map(|other| &*other.id)).await?;
        for other in others {
            if let Some(title) = titles.get(&other.id) {
                other.title.clone_from(title);
            }
        }
        Ok(self)
    }

    fn menu(&self) -> &'static [(&'static str, &'static str)] {
        MENU
    }
}

fn row(membership: &Membership, record: &Value, title: &str, facts: &[&str]) -> Row {
    let id = text(record, "id");
    let facts: Vec<String> =
        std::iter::once(id).chain(facts.iter().copied()).filter(|fact| !fact.is_empty()).map(name).collect();
    Row { address: address(membership, id), title: name(title), facts: facts.join(" · "), ..Row::default() }
}

/// The arguments of a list: its page, and the iteration that the person looks at.
fn arguments(wanted: &Wanted) -> Value {
    let mut arguments = json!({ "limit": ROWS_MAX });
    if let Some(cursor) = wanted.asked("cursor") {
        arguments["cursor"] = cursor.into();
    }
    if let Some(iteration) = iteration(wanted) {
        arguments["iteration"] = iteration.into();
    }
    arguments
}

fn iteration(wanted: &Wanted) -> Option<i64> {
    wanted.asked("iteration").and_then(|number| number.parse().ok()).filter(|number| *number >= 0)
}

/// The address of the next page, with the same filter.
fn next(wanted: &Wanted, cursor: Option<&str>, kept: &[&str]) -> Option<String> {
    let kept = kept.iter().filter_map(|name| {
        let value = wanted.asked(name).filter(|value| !value.is_empty())?;
        Some(format!("&{name}={}", encoded(value)))
    });
    cursor.map(|cursor| format!("?cursor={}{}", encoded(cursor), kept.collect::<String>()))
}

fn of_iteration() -> Field {
    Field::new("iteration", "Iteration", Shape::Line)
        .hint("Its number, or 0 for what is in none. Empty: the current one.")
}

fn overview(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { show_overview(&visitor, &wanted).await })
}

async fn show_overview(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let mut groups = Vec::new();
    // Milestones are few, and stand on the first page alone.
    if wanted.asked("cursor").is_none() {
        let data = visitor.read(&membership, "milestone.list", arguments(wanted)).await?;
        let rows = listed(&data, "items").0.iter().map(|one| Row {
            related: vec![Related::new("Features", &membership, texts(one, "features"), "none yet")],
            ..row(&membership, one, text(one, "name"), &[text(one, "deadline")])
        });
        groups.push(Group {
            title: "Milestones",
            empty: "There is no milestone.",
            rows: rows.collect(),
            ..Group::default()
        });
    }
    let data = visitor.read(&membership, "requirement.list", arguments(wanted)).await?;
    let tasks = tasks_of_features(visitor, &membership, wanted, &data).await?;
    let (requirements, cursor) = listed(&data, "requirements");
    let rows = requirements.iter().map(|one| {
        let features: Vec<&str> = texts(one, "relatedFeatures").collect();
        let done_by = features.iter().filter_map(|feature| tasks.get(*feature)).flatten().map(String::as_str);
        let badge = if features.is_empty() { "not covered" } else { "" };
        Row {
            badge: badge.to_owned(),
            related: vec![
                Related::new("Features", &membership, features.iter().copied(), "no feature is to meet it"),
                Related::new("Tasks", &membership, done_by, "no task works on it"),
            ],
            ..row(&membership, one, text(one, "title"), &[text(one, "priority"), &words(text(one, "category"))])
        }
    });
    groups.push(Group {
        title: "Requirements and what covers them",
        empty: "There is no requirement.",
        rows: rows.collect(),
        next: next(wanted, cursor, &["iteration"]),
    });
    let fields = filled(vec![of_iteration()], &wanted.query);
    let shown = PlanPage { fields, ..PlanPage::new(visitor, &membership, "plan") };
    Ok(page(StatusCode::OK, &shown.with(visitor, groups).await?))
}

/// The tasks of the features that the requirements of a page name.
async fn tasks_of_features(
    visitor: &Visitor<'_>,
    membership: &Membership,
    wanted: &Wanted,
    requirements: &Value,
) -> Result<BTreeMap<String, Vec<String>>, ToolError> {
    let named = listed(requirements, "features").0.iter().filter_map(|one| RecordId::parse(text(one, "id")));
    let Some(first) = named.map(|id| id.number).min() else { return Ok(BTreeMap::new()) };
    let mut arguments = arguments(wanted);
    // From the first of them on; the cursor of the page is one of requirements.
    arguments["limit"] = FEATURES_MAX.into();
    arguments["cursor"] = number_cursor((first > 1).then(|| first - 1)).map_or(Value::Null, Value::from);
    if arguments["cursor"].is_null() {
        arguments.as_object_mut().and_then(|fields| fields.remove("cursor"));
    }
    let data = visitor.read(membership, "feature.list", arguments).await?;
    let tasks = |one: &Value| texts(one, "assignedToTasks").map(str::to_owned).collect();
    Ok(listed(&data, "items").0.iter().map(|one| (text(one, "id").to_owned(), tasks(one))).collect())
}

fn features(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let data = visitor.read(&membership, "feature.list", arguments(&wanted)).await?;
        let (items, cursor) = listed(&data, "items");
        let of = iteration(&wanted).map_or(json!({}), |number| json!({ "iteration": number }));
        let design = visitor.read(&membership, "design.get", of).await?;
        let components = listed(&design, "components").0;
        let mut serving: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for component in components {
            for feature in texts(component, "relatedFeatures") {
                serving.entry(feature).or_default().push(text(component, "id"));
            }
        }
        let serving = |feature: &str| serving.get(feature).into_iter().flatten().copied();
        let rows = items.iter().map(|one| Row {
            badge: words(text(one, "status")),
            related: vec![
                Related::new("Meets", &membership, texts(one, "requirementIds"), "no requirement"),
                Related::new("Tasks", &membership, texts(one, "assignedToTasks"), "no task works on it"),
                Related::new("Components", &membership, serving(text(one, "id")), ""),
                Related::new("Waits for", &membership, texts(one, "dependencies"), ""),
            ],
            ..row(&membership, one, text(one, "name"), &[text(one, "estimatedEffort")])
        });
        let features = Group {
            title: "Features",
            empty: "There is no feature.",
            rows: rows.collect(),
            next: next(&wanted, cursor, &["iteration"]),
        };
        let mut groups = vec![features];
        // A page of its own for each would say little: components are few, and stand below the first features.
        if wanted.asked("cursor").is_none() {
            let rows = components.iter().map(|one| {
                let kind = words(text(one, "componentType"));
                Row {
                    related: vec![Related::new("Serves", &membership, texts(one, "relatedFeatures"), "no feature")],
                    ..row(&membership, one, text(one, "name"), &[&kind, text(one, "technology")])
                }
            });
            let empty = "There is no component.";
            groups.push(Group { title: "Components", empty, rows: rows.collect(), ..Group::default() });
        }
        let fields = filled(vec![of_iteration()], &wanted.query);
        let shown = PlanPage { fields, ..PlanPage::new(&visitor, &membership, "plan/features") };
        Ok(page(StatusCode::OK, &shown.with(&visitor, groups).await?))
    })
}

fn tasks(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move { show_tasks(&visitor, &wanted).await })
}

async fn show_tasks(visitor: &Visitor<'_>, wanted: &Wanted) -> Result<Response<Body>, ToolError> {
    let membership = visitor.membership(wanted.part("project")).await?;
    let states: Vec<&str> = TASK.states.iter().map(|(state, _)| *state).collect();
    let mut arguments = arguments(wanted);
    let state = wanted.asked("status").filter(|state| states.contains(state));
    if let Some(state) = state {
        arguments["status"] = state.into();
    }
    let data = visitor.read(&membership, "task.list", arguments).await?;
    let (items, cursor) = listed(&data, "items");
    let rows = items.iter().map(|one| {
        let holder = one.get("holder");
        let held = holder.map(|holder| format!("held by {}", name(text(holder, "name"))));
        let until = holder.and_then(|holder| holder.get("leaseUntilMs")).and_then(Value::as_i64);
        let left = until.map(|until| visitor.time_left(until)).unwrap_or_default();
        Row {
            badge: words(text(one, "status")),
            related: vec![
                Related::new("Waits for", &membership, texts(one, "dependencies"), ""),
                Related::new("Feature", &membership, one.get("featureId").and_then(Value::as_str).into_iter(), ""),
            ],
            ..row(&membership, one, text(one, "title"), &[&held.unwrap_or_default(), &left])
        }
    });
    let group = Group {
        title: "Tasks",
        empty: if state.is_some() { "There is no such task." } else { "There is no task." },
        rows: rows.collect(),
        next: next(wanted, cursor, &["status", "iteration"]),
    };
    let new = (membership.path("plan/tasks/new"), "Create a task");
    let fields = vec![Field::new("status", "State", choice(Some("all"), &states)), of_iteration()];
    let shown = PlanPage {
        buttons: if can_edit(&membership) { vec![new] } else { Vec::new() },
        fields: filled(fields, &wanted.query),
        ..PlanPage::new(visitor, &membership, "plan/tasks")
    };
    Ok(page(StatusCode::OK, &shown.with(visitor, vec![group]).await?))
}

fn artifacts(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let of = iteration(&wanted).map_or(json!({}), |number| json!({ "iteration": number }));
        let data = visitor.read(&membership, "artifact.list", of).await?;
        let query = iteration(&wanted).map(|number| format!("?iteration={number}")).unwrap_or_default();
        let rows = listed(&data, "items").0.iter().map(|one| {
            let version = format!("version {}", one["version"]);
            let length = one.get("characters").and_then(Value::as_u64).unwrap_or_default();
            let length = format!("{} characters", count(length));
            let kind = text(one, "kind");
            Row {
                address: membership.path(&format!("plan/artifacts/{}{query}", encoded(kind))),
                when: one.get("updatedAtMs").and_then(Value::as_i64).map(|at| When::of(&visitor, at)),
                related: vec![Related::new("Versions", &membership, std::iter::once(text(one, "id")), "")],
                ..row(&membership, one, &words(kind), &[&version, &length])
            }
        });
        let group = Group {
            title: "Artifacts of the iteration",
            empty: "There is no artifact.",
            rows: rows.collect(),
            ..Group::default()
        };
        let project = &membership.project;
        let asks = project.gate.queue().asks().newest_of(project.id, Some(AskKind::Review), REVIEWS_MAX).await?;
        let rows = asks.asks.iter().map(|ask| {
            let id = ask_id(ask.number);
            let ended = in_words(ask);
            Row {
                address: membership.address(&id),
                title: name(&ask.summary),
                badge: if ended.is_empty() { "waits for an answer".to_owned() } else { String::new() },
                facts: if ended.is_empty() { id } else { format!("{id} · {ended}") },
                when: Some(When::of(&visitor, ask.created_at_ms)),
                ..Row::default()
            }
        });
        let reviews = Group {
            title: "Reviews of texts, the newest first",
            empty: "Nobody was asked to review a text.",
            rows: rows.collect(),
            ..Group::default()
        };
        Ok(page(
            StatusCode::OK,
            &PlanPage {
                fields: filled(vec![of_iteration()], &wanted.query),
                groups: vec![group, reviews],
                ..PlanPage::new(&visitor, &membership, "plan/artifacts")
            },
        ))
    })
}

/// The text of an artifact: its newest version, or the one that is asked for.
fn artifact(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "There is no such artifact.");
        let kind = ARTIFACTS.iter().find(|kind| **kind == wanted.part("kind")).ok_or_else(missing)?;
        let mut arguments = json!({ "kind": kind });
        let mut query = String::new();
        let version = wanted.asked("version").and_then(|number| number.parse::<i64>().ok()).filter(|n| *n > 0);
        for (field, value) in [("version", version), ("iteration", iteration(&wanted))] {
            if let Some(value) = value {
                arguments[field] = value.into();
                query.push_str(&format!("{field}={value}&"));
            }
        }
        let data = visitor.read(&membership, "artifact.load", arguments).await?;
        let (version, latest) = (&data["version"], &data["latestVersion"]);
        let about = format!("{}, version {version} of {latest}", text(&data, "id"));
        let back = (membership.path("plan/artifacts"), "All artifacts");
        let title = words(kind);
        let place = membership.place(&visitor, PLAN);
        let content = text(&data, "content");
        let whole = TextPage::of(place, (&title, &about), back, query, (content, wanted.asked("part")));
        Ok(page(StatusCode::OK, &whole.or_markdown(content, wanted.asked("view"))))
    })
}

fn memory(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let words_asked = wanted.asked("q").unwrap_or_default().split_whitespace().take(WORDS_MAX);
        let mut arguments =
            json!({ "scope": "project", "keywords": words_asked.collect::<Vec<_>>(), "limit": FINDS_MAX });
        if let Some(category) = wanted.asked("category").filter(|category| CATEGORIES.contains(category)) {
            arguments["category"] = category.into();
        }
        let data = visitor.read(&membership, "memory.query", arguments).await?;
        let rows = listed(&data, "items").0.iter().map(|one| {
            let content = &one["content"];
            let own = ["title", "content", "description", "name"].map(|field| text(content, field));
            let said: Vec<&str> = own.into_iter().filter(|text| !text.is_empty()).collect();
            Row {
                badge: name(text(one, "kind")),
                when: one.get("createdAtMs").and_then(Value::as_i64).map(|at| When::of(&visitor, at)),
                text: Shown::of(&said.get(1..).unwrap_or_default().join("\n"), FIND_LINES_MAX, FIND_BYTES_MAX),
                ..row(&membership, one, said.first().copied().unwrap_or("(without words)"), &[])
            }
        });
        let is_asked = ["q", "category"].iter().any(|name| wanted.asked(name).is_some_and(|asked| !asked.is_empty()));
        let empty =
            if is_asked { "Nothing fits." } else { "Nothing is remembered yet: agents keep here what they learn." };
        let group = Group { title: "Found", empty, rows: rows.collect(), ..Group::default() };
        let fields = vec![
            Field::new("q", "Words to look for", Shape::Line).hint("Without words: the newest."),
            Field::new("category", "Kind", choice(Some("all"), CATEGORIES)),
        ];
        Ok(page(
            StatusCode::OK,
            &PlanPage {
                fields: filled(fields, &wanted.query),
                groups: vec![group],
                ..PlanPage::new(&visitor, &membership, "plan/memory")
            },
        ))
    })
}

fn iterations(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let mut of = arguments(&wanted);
        of.as_object_mut().and_then(|fields| fields.remove("iteration"));
        let data = visitor.read(&membership, "iteration.list", of).await?;
        let current = data.get("current").and_then(Value::as_i64).unwrap_or_default();
        let (items, cursor) = listed(&data, "items");
        let rows = items.iter().map(|one| {
            let is_current = RecordId::parse(text(one, "id")).is_some_and(|id| id.number == current);
            Row {
                badge: words(text(one, "status")),
                related: vec![Related::new(
                    "Builds on",
                    &membership,
                    one.get("baseIterationId").and_then(Value::as_str).into_iter(),
                    "",
                )],
                ..row(&membership, one, text(one, "title"), &[if is_current { "the current one" } else { "" }])
            }
        });
        let group = Group {
            title: "Iterations",
            empty: "There is no iteration: records belong to the project as a whole.",
            rows: rows.collect(),
            next: next(&wanted, cursor, &[]),
        };
        Ok(page(
            StatusCode::OK,
            &PlanPage { groups: vec![group], ..PlanPage::new(&visitor, &membership, "plan/iterations") },
        ))
    })
}

fn personas(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let mut of = arguments(&wanted);
        of.as_object_mut().and_then(|fields| fields.remove("iteration"));
        let data = visitor.read(&membership, "persona.list", of).await?;
        let (items, cursor) = listed(&data, "items");
        let rows = items.iter().map(|one| Row {
            text: Shown::of(text(one, "personality"), FIND_LINES_MAX, FIND_BYTES_MAX),
            ..row(&membership, one, text(one, "name"), &[&format!("profile {}", name(text(one, "role")))])
        });
        let group = Group {
            title: "Personas",
            empty: "There is no persona: sessions work under the default name.",
            rows: rows.collect(),
            next: next(&wanted, cursor, &[]),
        };
        Ok(page(
            StatusCode::OK,
            &PlanPage { groups: vec![group], ..PlanPage::new(&visitor, &membership, "plan/personas") },
        ))
    })
}
