//! What a person makes in the package without an assistant: a workflow, a step, an agent, an edge, and the package itself. All but the
//! package are change sets, which a person looks at before they are applied.

use std::collections::BTreeMap;

use askama::Template;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use toolhost_builder::{Edge, Package, Workflow, begun, revision, sha256, to_zip};
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::Role;

use super::super::done::Done;
use super::super::forms::{Field, Shape, complain, filled};
use super::super::route::{Made, Route, Wanted};
use super::super::text::When;
use super::super::visitor::{Membership, Visitor};
use super::super::{Place, page, see, see_done};
use super::changes::change_path;
use super::edit::{need, stage_checked};
use super::{ByHand, place, remove, said, work};
use crate::http::{Replaces, envelope};

/// The pages of this file.
pub(in super::super) const ROUTES: &[Route] = &[
    Route { path: "/projects/{project}/builder/new", name: "builder-begin", takes_forms: true, make: begin },
    Route { path: "/projects/{project}/builder/new/{kind}", name: "builder-new", takes_forms: true, make: new },
];

/// Characters of the name of a package that is begun by hand, and of what it is for.
const NAME_CHARS_MAX: usize = 100;
const ABOUT_CHARS_MAX: usize = 2000;

/// The value of a field by which a direct edge stays.
const STAYS: &str = "stays";

/// What can be made by hand: as addresses write it, and its title.
const KINDS: [(&str, &str); 7] = [
    ("workflow", "Create a workflow"),
    ("step", "Create a step"),
    ("decision", "Create a decision"),
    ("agent", "Create an agent"),
    ("edge", "Create an edge between steps"),
    ("edge-removal", "Remove an edge between steps"),
    ("step-removal", "Remove a step"),
];

#[derive(Template)]
#[template(path = "builder/new.html")]
pub(super) struct NewPage<'a> {
    pub(super) place: Place<'a>,
    pub(super) title: String,
    pub(super) action: String,
    pub(super) back: String,
    pub(super) error: Option<String>,
    /// Whether a change set comes of it.
    pub(super) is_set: bool,
    /// What the form was filled from, where something is there already.
    pub(super) revision: Option<String>,
    /// The person's open sets that are in what the form offers.
    pub(super) open: Vec<(String, String)>,
    pub(super) fields: Vec<Field>,
}

/// Begins an empty package, for an owner.
fn begin(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        need(&membership, membership.role == Role::Owner)?;
        let about = || {
            vec![
                Field::new("name", "Name of the package", Shape::Line).needed(),
                Field::new("description", "What it is for", Shape::Text(3)),
            ]
        };
        let shown = |status, fields, error| {
            let new = NewPage {
                place: place(&visitor, &membership),
                title: "Begin an empty package".to_owned(),
                action: membership.path("builder/new"),
                back: membership.path("builder"),
                error,
                is_set: false,
                revision: None,
                open: Vec::new(),
                fields,
            };
            page(status, &new)
        };
        let Some(form) = &wanted.form else { return Ok(shown(StatusCode::OK, about(), None)) };
        let mut fields = filled(about(), form);
        let typed = |name: &str| form.get(name).map(|text| text.trim()).unwrap_or_default();
        let too_long =
            |name: &str, max: usize| (typed(name).chars().count() > max).then(|| format!("At most {max} characters."));
        let name = if typed("name").is_empty() { Some("Give it a name.".to_owned()) } else { None };
        let wrong = [
            ("name", name.or_else(|| too_long("name", NAME_CHARS_MAX))),
            ("description", too_long("description", ABOUT_CHARS_MAX)),
        ];
        if wrong.iter().any(|(_, why)| why.is_some()) {
            for (name, why) in wrong.iter().filter_map(|(name, why)| Some((name, why.as_ref()?))) {
                complain(&mut fields, name, why);
            }
            return Ok(shown(StatusCode::BAD_REQUEST, fields, None));
        }
        let description = Some(typed("description")).filter(|text| !text.is_empty());
        let package = begun(typed("name"), description, &When::on(visitor.clock.unix_ms()).iso);
        match work(&membership)?.import(visitor.by(), &to_zip(package.files()), Replaces::Nothing).await {
            Ok(_) => Ok(see_done(&membership.path("builder"), Done::Begun)),
            Err(error) if error.kind == ErrorKind::Conflict => {
                let why = "This project has a package already. An import puts another in its place.";
                Ok(shown(StatusCode::CONFLICT, fields, Some(why.to_owned())))
            }
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => Ok(shown(envelope::status(&error), fields, Some(said(&error)))),
        }
    })
}

fn new(visitor: Visitor<'_>, wanted: Wanted) -> Made<'_> {
    Box::pin(async move {
        let membership = visitor.membership(wanted.part("project")).await?;
        let missing = || ToolError::new(ErrorKind::NotFound, "Nothing of this kind is made by hand.");
        let (kind, title) = *KINDS.iter().find(|(kind, _)| *kind == wanted.part("kind")).ok_or_else(missing)?;
        need(&membership, membership.role != Role::Viewer)?;
        let by_hand = ByHand::of(&visitor, &membership).await?;
        let made = NewObject { visitor: &visitor, membership: &membership, by_hand: &by_hand, kind, title };
        match &wanted.form {
            None => Ok(made.shown(StatusCode::OK, filled(made.fields(), &wanted.query), None)),
            Some(form) => made.answer(form).await,
        }
    })
}

/// A form for something new.
struct NewObject<'a> {
    visitor: &'a Visitor<'a>,
    membership: &'a Membership,
    by_hand: &'a ByHand,
    kind: &'static str,
    title: &'static str,
}

/// An operation of a change set.
fn upsert(kind: &str, target: Value, payload: Value) -> Value {
    json!({ "op": "upsert", "targetType": kind, "target": target, "payload": payload, "reason": "made by hand" })
}

impl NewObject<'_> {
    fn package(&self) -> &Package {
        self.by_hand.package()
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.all_fields();
        for field in &mut fields {
            let may_be_empty = matches!(field.name, "title" | "principles" | "style" | "next" | "otherwise" | "direct");
            field.is_needed = !may_be_empty;
        }
        fields
    }

    fn all_fields(&self) -> Vec<Field> {
        let package = self.package();
        let agents: Vec<&str> = package.agents().iter().map(|agent| &*agent.id).collect();
        let workflows: Vec<&str> = package.workflows().iter().map(|workflow| &*workflow.id).collect();
        let named = |names: &[&str]| {
            Shape::Choice(names.iter().map(|name| ((*name).to_owned(), super::super::text::name(name))).collect())
        };
        let new_agent = || {
            let agents = Shape::Offered(agents.iter().map(|id| ((*id).to_owned(), String::new())).collect());
            Field::new("agent", "Agent", agents)
                .hint("The id of the agent that does it. One that is not there yet is created, too.")
        };
        let first = workflows.first().map(|id| (*id).to_owned()).unwrap_or_default();
        match self.kind {
            "workflow" => vec![
                id_field("Id of the workflow"),
                Field::new("title", "Title", Shape::Line),
                goal_field("What it is for"),
                Field::new("step", "Id of its first step", Shape::Line).value("begin"),
                new_agent(),
                instructions_field(),
            ],
            "agent" => vec![
                id_field("Id of the agent"),
                Field::new("title", "Title", Shape::Line).hint("Such as Ward nurse."),
                Field::new("role", "Role", Shape::Text(2)).hint("What the agent is there for."),
                Field::new("identity", "Identity", Shape::Text(2)).hint("Who the agent is: experience, knowledge."),
                Field::new("style", "Style", Shape::Line).hint("How the agent speaks, such as: plain and short."),
                Field::new("principles", "Principles", Shape::Text(3)).hint("One in each line."),
            ],
            "step" => vec![
                Field::new("workflow", "Workflow", named(&workflows)).value(first),
                id_field("Id of the step"),
                Field::new("title", "Title", Shape::Line),
                new_agent(),
                Field::new("after", "Comes after", Shape::Offered(self.nodes()))
                    .hint("The id of a step of the workflow."),
                Field::new("label", "When", Shape::Line).hint("In which case it comes after that step.").value("done"),
                Field::new("next", "Leads to", Shape::Offered(self.nodes()))
                    .hint("The id of a step; empty: the workflow ends with it."),
                direct_field(),
                goal_field("Goal"),
                instructions_field(),
            ],
            "decision" => vec![
                Field::new("workflow", "Workflow", named(&workflows)).value(first),
                id_field("Id of the decision"),
                Field::new("title", "Title", Shape::Line).hint("Such as Is it long enough?"),
                new_agent(),
                Field::new("after", "Comes after", Shape::Offered(self.nodes()))
                    .hint("The id of a step of the workflow."),
                Field::new("label", "When", Shape::Line).hint("In which case it comes after that step.").value("done"),
                Field::new("condition", "Condition", Shape::Line)
                    .hint("What is looked at, such as: the text has more than 500 words."),
                Field::new("next", "Leads to, where the condition is true", Shape::Offered(self.nodes()))
                    .hint("The id of a step of the workflow; empty: the workflow ends there."),
                Field::new("otherwise", "Leads to otherwise", Shape::Offered(self.nodes())).hint(
                    "The id of another step; empty: the workflow ends there. A step before this one makes a loop, which the \
                     decision can end.",
                ),
                direct_field(),
                goal_field("Goal"),
                instructions_field(),
            ],
            "edge-removal" | "step-removal" => self.fields_of_removal(),
            _ => vec![
                Field::new("workflow", "Workflow", named(&workflows)).value(first),
                Field::new("from", "From the step", Shape::Offered(self.nodes())),
                Field::new("to", "To the step", Shape::Offered(self.nodes())),
                Field::new("label", "When", Shape::Line)
                    .hint("In which case the workflow goes this way.")
                    .value("done"),
            ],
        }
    }

    fn fields_of_removal(&self) -> Vec<Field> {
        if self.kind == "edge-removal" {
            let edges = match self.edges() {
                none if none.is_empty() => vec![(String::new(), "There is no edge.".to_owned())],
                edges => edges,
            };
            return vec![
                Field::new("edge", "Edge", Shape::Choice(edges))
                    .hint("A step that leads nowhere without it becomes an end of the workflow."),
            ];
        }
        vec![
            Field::new("node", "Step", Shape::Choice(self.removable())),
            Field::new("next", "Steps before it lead to", Shape::Offered(self.nodes()))
                .hint("The id of a step; empty: the step that comes after it, or nothing where it was an end."),
        ]
    }

    /// The edges of all workflows: as the form sends them, and as people read them. A label may hold characters that no field can.
    fn edges(&self) -> Vec<(String, String)> {
        let says = |(workflow, edge): (&Workflow, &Edge)| {
            let label = label(edge);
            let when = if label.is_empty() { String::new() } else { format!(" ({label})") };
            super::super::text::name(&format!("{}: {} → {}{when}", workflow.id, edge.from, edge.to))
        };
        self.all_edges().map(|one| (sent(one), says(one))).collect()
    }

    fn all_edges(&self) -> impl Iterator<Item = (&Workflow, &Edge)> {
        let workflows = self.package().workflows().iter();
        workflows.flat_map(|workflow| workflow.edges.iter().map(move |edge| (workflow, edge)))
    }

    /// The edge that a form has sent.
    fn edge(&self, form: &BTreeMap<String, String>) -> Option<(&Workflow, &Edge)> {
        let wanted = form.get("edge")?;
        self.all_edges().find(|one| sent(*one) == *wanted)
    }

    /// The steps of all workflows: as the form sends them, and as people read them.
    fn removable(&self) -> Vec<(String, String)> {
        let says = |(workflow, node): (&Workflow, &str)| super::super::text::name(&format!("{}: {node}", workflow.id));
        self.all_nodes().map(|one| (sent_node(&one.0.id, one.1), says(one))).collect()
    }

    fn all_nodes(&self) -> impl Iterator<Item = (&Workflow, &str)> {
        let workflows = self.package().workflows().iter();
        workflows.flat_map(|workflow| workflow.nodes.iter().map(move |node| (workflow, &*node.id)))
    }

    /// The step that a form has sent to be removed.
    fn node(&self, form: &BTreeMap<String, String>) -> Option<(&Workflow, &str)> {
        let wanted = form.get("node")?;
        self.all_nodes().find(|(workflow, node)| sent_node(&workflow.id, node) == *wanted)
    }

    /// What those before a step that goes lead to, as the form says it, or as the graph does.
    fn then(
        &self,
        form: &BTreeMap<String, String>,
        (workflow, node): (&Workflow, &str),
    ) -> Result<Option<String>, &'static str> {
        match form.get("next").map(|next| next.trim()).filter(|next| !next.is_empty()) {
            None => remove::successor(workflow, node),
            Some(next) if next == node => Err("This is the step that goes."),
            Some(next) if workflow.node(next).is_none() => Err("The workflow has no such step."),
            Some(next) => Ok(Some(next.to_owned())),
        }
    }

    /// The steps of all workflows, as ids that a field offers.
    fn nodes(&self) -> Vec<(String, String)> {
        let workflows = self.package().workflows().iter();
        let nodes = workflows.flat_map(|workflow| workflow.nodes.iter().map(move |node| (node, workflow)));
        nodes
            .filter_map(|(node, workflow)| {
                let title = node.value.get("title").and_then(Value::as_str).unwrap_or_default();
                let label = super::super::text::name(&format!("{title} ({})", workflow.id));
                Some((node.value.get("id")?.as_str()?.to_owned(), label))
            })
            .collect()
    }

    fn shown(&self, status: StatusCode, fields: Vec<Field>, error: Option<String>) -> Response<Body> {
        let new = NewPage {
            place: place(self.visitor, self.membership),
            title: self.title.to_owned(),
            action: self.membership.path(&format!("builder/new/{}", self.kind)),
            back: self.membership.path("builder"),
            error,
            is_set: true,
            revision: None,
            open: self.by_hand.open(self.membership),
            fields,
        };
        page(status, &new)
    }

    async fn answer(&self, form: &BTreeMap<String, String>) -> Result<Response<Body>, ToolError> {
        let mut fields = filled(self.fields(), form);
        let form = &fields.iter().map(|field| (field.name.to_owned(), field.value.clone())).collect();
        let missing: Vec<&'static str> = fields
            .iter()
            .filter(|field| field.is_needed && field.value.trim().is_empty())
            .map(|field| field.name)
            .collect();
        for name in &missing {
            complain(&mut fields, name, "This is needed.");
        }
        let wrong = self.wrong(form);
        for (name, why) in wrong.iter().filter(|(name, _)| !missing.contains(name)) {
            complain(&mut fields, name, why);
        }
        if !missing.is_empty() || !wrong.is_empty() {
            return Ok(self.shown(StatusCode::BAD_REQUEST, fields, None));
        }
        let kind = match self.kind {
            "edge" | "edge-removal" | "step-removal" => "workflow",
            "decision" => "step",
            kind => kind,
        };
        let mode = if matches!(self.kind, "edge-removal" | "step-removal") { "optimize" } else { "create" };
        let set = json!({
            "schemaVersion": "1.1",
            "targetType": kind,
            "mode": mode,
            "operations": self.operations(form),
            "revisions": self.revisions(form),
        });
        match stage_checked(self.visitor, self.membership, set).await {
            Ok(id) => Ok(see(&change_path(self.membership, &id))),
            Err(error) if error.kind == ErrorKind::Internal => Err(error),
            Err(error) => Ok(self.shown(envelope::status(&error), fields, Some(said(&error)))),
        }
    }

    /// The fields with values that cannot be taken, and why. Fields that are only empty are not listed here.
    fn wrong(&self, form: &BTreeMap<String, String>) -> Vec<(&'static str, &'static str)> {
        let typed = |name: &str| form.get(name).map(|text| text.trim()).unwrap_or_default();
        let no_id = "An id has letters, digits and - . _ only, and begins with a letter or a digit.";
        // An agent that is there already may have an id of another form.
        let made = ["id", "step", "agent"].into_iter().filter(|name| !typed(name).is_empty());
        let made = made.filter(|name| *name != "agent" || self.package().agent(typed("agent")).is_none());
        let mut wrong: Vec<_> = made.filter(|name| !is_id(typed(name))).map(|name| (name, no_id)).collect();
        match self.kind {
            "workflow" if self.package().workflow(typed("id")).is_some() => {
                wrong.push(("id", "There is a workflow of this id."));
            }
            "agent" if self.package().agent(typed("id")).is_some() => {
                wrong.push(("id", "There is an agent of this id."));
            }
            "workflow" | "agent" => {}
            "edge-removal" | "step-removal" => wrong.extend(self.wrong_removal(form)),
            _ => match self.package().workflow(typed("workflow")) {
                None => wrong.push(("workflow", "There is no such workflow.")),
                Some(workflow) => wrong.extend(self.wrong_steps(workflow, &typed)),
            },
        }
        wrong
    }

    fn wrong_removal(&self, form: &BTreeMap<String, String>) -> Option<(&'static str, &'static str)> {
        if self.kind == "edge-removal" {
            return self.edge(form).is_none().then_some(("edge", "The package has no such edge any more."));
        }
        let Some(found) = self.node(form) else { return Some(("node", "The package has no such step any more.")) };
        match self.then(form, found) {
            Err(why) => Some(("next", why)),
            Ok(None) if remove::is_entry(found.0, found.1) => {
                Some(("next", "The workflow begins with this step: say which one it begins with then."))
            }
            Ok(_) => None,
        }
    }

    /// What is wrong with the steps that a form names of a workflow.
    fn wrong_steps<'t>(
        &self,
        workflow: &Workflow,
        typed: &dyn Fn(&str) -> &'t str,
    ) -> Vec<(&'static str, &'static str)> {
        let named: &[&'static str] =
            if self.kind == "edge" { &["from", "to"] } else { &["after", "next", "otherwise"] };
        let is_unknown = |name: &&&'static str| !typed(name).is_empty() && workflow.node(typed(name)).is_none();
        let unknown = named.iter().filter(is_unknown);
        let mut wrong: Vec<_> = unknown.map(|name| (*name, "The workflow has no such step.")).collect();
        if self.kind != "edge" && workflow.node(typed("id")).is_some() {
            wrong.push(("id", "The workflow has a step of this id."));
        }
        if self.kind == "decision" && typed("otherwise") == typed("next") {
            wrong.push(match typed("next") {
                "" => ("otherwise", "One of the two ways has to lead to a step."),
                _ => ("otherwise", "Both ways lead to this step: choose another, or make no decision."),
            });
        }
        wrong
    }

    /// What the set is made on: the workflow that it changes, as it is now. The operations are small edits, so nothing is written over that
    /// the person has not seen.
    fn revisions(&self, form: &BTreeMap<String, String>) -> Value {
        let named = || self.package().workflow(form.get("workflow")?.trim());
        let of_edge = self.edge(form).map(|(workflow, _)| workflow);
        let of_node = self.node(form).map(|(workflow, _)| workflow);
        match of_edge.or(of_node).or_else(named) {
            Some(workflow) => json!({ "workflowRevision": revision::workflow(self.package(), workflow) }),
            None => json!({}),
        }
    }

    fn operations(&self, form: &BTreeMap<String, String>) -> Vec<Value> {
        let typed = |name: &str| form.get(name).map(|text| text.trim().replace("\r\n", "\n")).unwrap_or_default();
        let or_id = |text: String| if text.is_empty() { typed("id") } else { text };
        let workflow = typed("workflow");
        match self.kind {
            "workflow" => {
                let (id, first, agent) = (typed("id"), typed("step"), typed("agent"));
                let front =
                    json!({ "schemaVersion": "1.1", "workflowType": id, "stepsCompleted": [], "currentNodeId": "" });
                let document = document(&front, &format!("# {}\n\n{}\n", or_id(typed("title")), typed("goal")));
                let node = json!({ "id": first, "type": "end", "file": format!("steps/{first}.md"), "title": first, "agentId": agent });
                let graph = json!({ "schemaVersion": "1.1", "entryNodeId": first, "nodes": [node], "edges": [] });
                let made = json!({ "workflow_md": document, "graph_json": graph });
                let text = step_text("end", (&first, &first, &agent), &[], (&typed("goal"), &typed("instructions")));
                let step = json!({ "workflowId": id, "nodeId": first });
                let mut operations = self.agent(&agent);
                operations.push(upsert("workflow", json!({ "workflowId": id }), made));
                operations.push(upsert("step", step, json!({ "step_markdown": text })));
                operations
            }
            "agent" => vec![agent_of(
                &typed("id"),
                &or_id(typed("title")),
                (typed("role"), typed("identity")),
                &typed("style"),
                &typed("principles"),
            )],
            "step" | "decision" => self.step(&typed),
            "edge-removal" => self.removal(form),
            "step-removal" => {
                let Some((workflow, node)) = self.node(form) else { return Vec::new() };
                let then = self.then(form, (workflow, node)).unwrap_or_default();
                let edit = remove::without_step(workflow, node, then.as_deref());
                vec![upsert("workflow", json!({ "workflowId": workflow.id }), edit)]
            }
            _ => {
                let (from, to, label) = (typed("from"), typed("to"), typed("label"));
                let edge = self.way(&workflow, &from, (&to, &label), false);
                let nodes: Vec<Value> = self.goes_on(&workflow, &from).into_iter().collect();
                let mut operations = vec![graph_edit(&workflow, [("nodes", nodes), ("edges", vec![edge])])];
                operations.extend(self.leads(&workflow, &from, (&to, &label)));
                operations
            }
        }
    }

    /// A step or a decision: its node, the edges to it and from it, its text, and what it needs that is not there yet.
    fn step(&self, typed: &dyn Fn(&str) -> String) -> Vec<Value> {
        let (workflow, id, agent, after) = (typed("workflow"), typed("id"), typed("agent"), typed("after"));
        let title = if typed("title").is_empty() { id.clone() } else { typed("title") };
        let (next, otherwise, condition) = (typed("next"), typed("otherwise"), typed("condition"));
        // A way of a decision always leads to a step: the one that ends the workflow is made for it.
        let end = self.free_end(&workflow, &id);
        let or_end = |to: &String| if to.is_empty() { end.clone() } else { to.clone() };
        let (node_type, leads) = match (self.kind, &*next) {
            ("decision", _) => {
                let yes = json!({ "to": or_end(&next), "label": condition, "conditionText": condition });
                ("decision", vec![yes, json!({ "to": or_end(&otherwise), "label": "otherwise", "isDefault": true })])
            }
            (_, "") => ("end", Vec::new()),
            _ => ("step", vec![json!({ "to": next, "label": "done" })]),
        };
        let node = |id: &str, kind: &str, title: &str| json!({ "id": id, "type": kind, "file": format!("steps/{id}.md"), "title": title, "agentId": agent });
        let at = |node: &str| json!({ "workflowId": workflow, "nodeId": node });
        // What was the end goes on now.
        let mut nodes = vec![node(&id, node_type, &title)];
        nodes.extend(self.goes_on(&workflow, &after));
        let text = step_text(node_type, (&id, &title, &agent), &leads, (&typed("goal"), &typed("instructions")));
        let mut steps = vec![upsert("step", at(&id), json!({ "step_markdown": text }))];
        if leads.iter().any(|way| way["to"] == json!(end)) {
            nodes.push(node(&end, "end", "End"));
            let says = ("The work is done.", "Say that the work is done.");
            let text = step_text("end", (&end, "End", &agent), &[], says);
            steps.push(upsert("step", at(&end), json!({ "step_markdown": text })));
        }
        let direct = self.direct(&workflow, &after, &leads, &typed("direct"));
        let mut edges = vec![self.way(&workflow, &after, (&id, &typed("label")), !direct.is_empty())];
        edges.extend(leads.iter().cloned().map(|mut edge| {
            edge["from"] = json!(id);
            edge
        }));
        let mut operations = self.agent(&agent);
        operations.push(graph_edit(&workflow, [("nodes", nodes), ("edges", edges), ("deleteEdges", direct)]));
        operations.extend(steps);
        operations.extend(self.leads(&workflow, &after, (&id, &typed("label"))));
        operations
    }

    /// The edges that lead straight from a step to those that a new one behind it leads to, unless they are to stay.
    fn direct(&self, workflow: &str, after: &str, leads: &[Value], stays: &str) -> Vec<Value> {
        if stays == STAYS {
            return Vec::new();
        }
        let edges = self.package().workflow(workflow).map_or(&[][..], |workflow| &workflow.edges);
        let is_direct = |edge: &&Edge| edge.from == after && leads.iter().any(|way| way["to"] == json!(edge.to));
        edges.iter().filter(is_direct).map(named).collect()
    }

    /// An id that no node of the workflow has, for one that ends it.
    fn free_end(&self, workflow: &str, id: &str) -> String {
        let has = |node: &str| self.package().workflow(workflow).is_some_and(|workflow| workflow.node(node).is_some());
        let ids = ["end".to_owned(), format!("{id}-end")].into_iter();
        let mut ids = ids.chain((2..).map(|n| format!("{id}-end-{n}")));
        ids.find(|end| end != id && !has(end)).unwrap_or_default()
    }

    /// Removes an edge. A step that leads nowhere without it is an end.
    fn removal(&self, form: &BTreeMap<String, String>) -> Vec<Value> {
        let Some((workflow, edge)) = self.edge(form) else { return Vec::new() };
        let is_only = workflow.edges.iter().filter(|other| other.from == edge.from).count() == 1;
        let nodes: Vec<Value> = is_only.then(|| json!({ "id": edge.from, "type": "end" })).into_iter().collect();
        vec![graph_edit(&workflow.id, [("nodes", nodes), ("deleteEdges", vec![named(edge)])])]
    }

    /// The agent of this id, where the package has none.
    fn agent(&self, id: &str) -> Vec<Value> {
        if self.package().agent(id).is_some() {
            return Vec::new();
        }
        let role = (format!("Works as {id}."), format!("Knows the work of {id}."));
        vec![agent_of(id, id, role, "", "")]
    }

    /// A node that was an end and leads on now; none of one that is no end.
    fn goes_on(&self, workflow: &str, node: &str) -> Option<Value> {
        let found = self.package().workflow(workflow)?.node(node)?;
        let is_end = found.value.get("type").and_then(Value::as_str) == Some("end");
        is_end.then(|| json!({ "id": node, "type": "step" }))
    }

    /// An edge. Beside others from the same step it is taken on its condition, and the one that was there alone becomes the default. One
    /// that takes the place of another is taken in the case of that one.
    fn way(&self, workflow: &str, from: &str, (to, label): (&str, &str), takes_place: bool) -> Value {
        let mut edge = json!({ "from": from, "to": to, "label": label });
        if !takes_place && self.has_ways(workflow, from) {
            edge["conditionText"] = label.into();
        }
        edge
    }

    fn has_ways(&self, workflow: &str, from: &str) -> bool {
        let edges = self.package().workflow(workflow).map_or(&[][..], |workflow| &workflow.edges);
        edges.iter().any(|edge| edge.from == from)
    }

    /// The operation that says in the text of a step where it leads, for one that lists no ways yet. A list follows the graph by itself.
    fn leads(&self, workflow: &str, node: &str, (to, label): (&str, &str)) -> Option<Value> {
        let front = self.package().workflow(workflow)?.step(node)?.document.as_deref()?.front();
        if front.get("transitions").is_some() {
            return None;
        }
        let payload = json!({ "transitions": [{ "to": to, "label": label }], "frontMatter": { "type": "step" } });
        Some(upsert("step", json!({ "workflowId": workflow, "nodeId": node }), payload))
    }
}

/// An operation on the graph of a workflow. A change set has no empty lists.
fn graph_edit<const LISTS: usize>(workflow: &str, lists: [(&str, Vec<Value>); LISTS]) -> Value {
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let payload: Map<String, Value> = lists.map(|(name, list)| (name.to_owned(), list.into())).collect();
    upsert("workflow", json!({ "workflowId": workflow }), payload.into())
}

fn label(edge: &Edge) -> &str {
    edge.value.get("label").and_then(Value::as_str).unwrap_or_default()
}

/// An edge as a form sends it: the hash of its workflow, its ends and its label.
fn sent((workflow, edge): (&Workflow, &Edge)) -> String {
    sha256(json!([workflow.id, edge.from, edge.to, label(edge)]).to_string().as_bytes())
}

/// A step as a form sends it.
pub(super) fn sent_node(workflow: &str, node: &str) -> String {
    sha256(json!([workflow, node]).to_string().as_bytes())
}

/// An edge as a change set names one that goes.
fn named(edge: &Edge) -> Value {
    match edge.value.get("id").filter(|id| id.is_string()) {
        Some(id) => id.clone(),
        None => {
            json!({ "from": edge.from, "to": edge.to, "label": edge.value.get("label").filter(|label| label.is_string()) })
        }
    }
}

fn id_field(label: &'static str) -> Field {
    Field::new("id", label, Shape::Line).hint("Letters, digits and - . _ only, such as check-claims.")
}

fn goal_field(label: &'static str) -> Field {
    Field::new("goal", label, Shape::Text(2))
}

fn instructions_field() -> Field {
    Field::new("instructions", "Instructions", Shape::Text(6)).hint("What the agent does, step by step.")
}

/// What becomes of an edge between the two steps that a new one is put between.
fn direct_field() -> Field {
    let ways = [("", "Remove that edge: the new step comes between"), (STAYS, "Keep that direct way, too")];
    let ways = ways.map(|(value, says)| (value.to_owned(), says.to_owned()));
    Field::new("direct", "If an edge already leads from the step before to a step after", Shape::Choice(ways.into()))
}

/// Whether a text can be an id in a package.
fn is_id(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_inner)
}

fn agent_of(id: &str, title: &str, (role, identity): (String, String), style: &str, principles: &str) -> Value {
    let or = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
    let mut lines: Vec<&str> = principles.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        lines.push("Do the work as it was asked for.");
    }
    let definition = json!({
        "id": id,
        "metadata": { "name": id, "title": title, "icon": "A" },
        "persona": {
            "role": role, "identity": identity, "communication_style": or(style, "Plain."), "principles": lines,
        },
    });
    upsert("agent", json!({ "agentId": id }), json!({ "agent_definition": definition }))
}

/// A document with this front matter, whose values are written as JSON: that is YAML, too.
fn document(front: &Value, text: &str) -> String {
    let fields = front.as_object().into_iter().flatten().map(|(name, value)| format!("{name}: {value}\n"));
    format!("---\n{}---\n\n{text}", fields.collect::<String>())
}

fn step_text(
    node_type: &str,
    (id, title, agent): (&str, &str, &str),
    leads: &[Value],
    (goal, instructions): (&str, &str),
) -> String {
    let mut front =
        json!({ "schemaVersion": "1.1", "nodeId": id, "type": node_type, "title": title, "agentId": agent });
    if !leads.is_empty() {
        front["transitions"] = json!(leads);
    }
    let text = format!(
        "# {title}\n\n## Goal\n\n{goal}\n\n## Instructions\n\n{instructions}\n\n## Completion (Document-as-State)\n\n\
         Add this step to `stepsCompleted`.\n"
    );
    document(&front, &text)
}
