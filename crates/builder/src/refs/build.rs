//! Reads the references of a package.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::{Index, Kind, Object, Ref};
use crate::assets;
use crate::document::Document;
use crate::finding::token;
use crate::package::{Agent, MANIFEST, Node, Package, Step, Workflow};

/// The part of a package that is read.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// Workflows with all that is in them, agents and assets.
    pub(super) wholes: &'a BTreeSet<Object>,
    /// What is known of the rest.
    pub(super) rest: &'a Index,
    /// References that resolve are left out.
    pub(super) only_unresolved: bool,
}

pub(super) fn index(package: &Package, part: Option<Part<'_>>) -> Index {
    let mut builder = Builder { package, part, index: Index::default(), there: HashSet::new() };
    builder.objects();
    builder.manifest();
    for workflow in package.workflows() {
        if builder.is_read(|| Object::Workflow(workflow.id.clone())) {
            builder.workflow(workflow);
        }
    }
    for agent in package.agents() {
        if builder.is_read(|| Object::Agent(agent.id.clone())) {
            builder.agent(agent);
        }
    }
    for asset in package.assets() {
        let from = Object::Asset(asset.path.to_owned());
        if builder.is_read(|| from.clone()) {
            builder.body(&from, asset.path, asset.text.unwrap_or_default(), 1);
        }
    }
    builder.index
}

struct Builder<'a> {
    package: &'a Package,
    part: Option<Part<'a>>,
    index: Index,
    there: HashSet<Object>,
}

impl Builder<'_> {
    fn is_read(&self, whole: impl FnOnce() -> Object) -> bool {
        self.part.is_none_or(|part| part.wholes.contains(&whole()))
    }

    fn is_there(&self, object: &Object) -> bool {
        let is_elsewhere = |part: Part<'_>| !part.wholes.contains(&object.whole()) && part.rest.is_there(object);
        self.there.contains(object) || self.part.is_some_and(is_elsewhere)
    }

    /// Notes what there is, so that each reference knows whether it resolves.
    fn objects(&mut self) {
        let package = self.package;
        self.named(Object::Package, &[], &[MANIFEST]);
        for workflow in package.workflows() {
            let object = Object::Workflow(workflow.id.clone());
            if !self.is_read(|| object.clone()) {
                continue;
            }
            self.named(object, &[&workflow.id], &[&workflow.path, &workflow.graph_path]);
            for node in &workflow.nodes {
                let full = format!("{}/{}", workflow.id, node.id);
                self.named(step_of(workflow, &node.id), &[&node.id, &full], node.path.as_deref().as_slice());
            }
            let variables = workflow.document.as_ref().and_then(|document| document.front().get("variables"));
            for name in variables.and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys()) {
                self.named(variable(workflow, name), &[name], &[]);
            }
        }
        for id in package.workflow_ids() {
            if !self.is_read(|| Object::Workflow(id.to_owned())) {
                continue;
            }
            self.named(Object::Workflow(id.to_owned()), &[id], &[]);
        }
        for agent in package.agents() {
            if !self.is_read(|| Object::Agent(agent.id.clone())) {
                continue;
            }
            self.named(Object::Agent(agent.id.clone()), &[&agent.id], package.agents_path().as_slice());
        }
        for path in package.asset_hashes().into_keys() {
            if !self.is_read(|| Object::Asset(path.to_owned())) {
                continue;
            }
            self.named(Object::Asset(path.to_owned()), &[], &[path]);
        }
    }

    fn named(&mut self, object: Object, ids: &[&str], paths: &[&str]) {
        if !self.there.insert(object.clone()) {
            return;
        }
        for id in ids {
            self.index.ids.entry((*id).to_owned()).or_default().push(object.clone());
        }
        for path in paths {
            self.index.paths.entry((*path).to_owned()).or_default().push(object.clone());
        }
    }

    /// `place`: the file, the pointer and the line.
    fn add(&mut self, from: &Object, to: Object, kind: Kind, place: (&str, impl FnOnce() -> String, Option<usize>)) {
        // What is set is there from then on, also without a declaration.
        if kind == Kind::VariableWrite
            && let Object::Variable { name, .. } = &to
        {
            let name = name.clone();
            self.named(to.clone(), &[&name], &[]);
        }
        let resolved = self.is_there(&to);
        if resolved && self.part.is_some_and(|part| part.only_unresolved) {
            return;
        }
        let number = self.index.refs.len();
        self.index.outbound.entry(from.clone()).or_default().push(number);
        self.index.inbound.entry(to.clone()).or_default().push(number);
        let (file, pointer, line) = place;
        let (from, file, pointer) = (from.clone(), file.to_owned(), pointer());
        self.index.refs.push(Ref { from, to, kind, file, pointer, line, resolved });
    }

    fn manifest(&mut self) {
        for workflow in self.package.workflows() {
            let to = Object::Workflow(workflow.id.clone());
            self.add(&Object::Package, to, Kind::Entry, (MANIFEST, || workflow.pointer.clone(), None));
        }
    }

    fn workflow(&mut self, workflow: &Workflow) {
        let from = Object::Workflow(workflow.id.clone());
        let graph = workflow.graph_path.as_str();
        if let Some(entry) = &workflow.entry_node_id {
            self.add(&from, step_of(workflow, entry), Kind::Entry, (graph, || "/entryNodeId".to_owned(), None));
        }
        if let Some(document) = &workflow.document {
            self.document(&from, &workflow.path, document);
            let variables = document.front().get("variables").and_then(Value::as_object);
            for name in variables.into_iter().flat_map(|fields| fields.keys()) {
                let pointer = || format!("/variables/{}", token(name));
                self.add(&from, variable(workflow, name), Kind::VariableWrite, (&workflow.path, pointer, None));
            }
        }
        // What is said in words of a node or of a way.
        for (pointer, path) in workflow.graph.iter().flat_map(assets::mentions_in) {
            self.add(&from, Object::Asset(path), Kind::Asset, (graph, || pointer, None));
        }
        for edge in &workflow.edges {
            let (from, to) = (step_of(workflow, &edge.from), step_of(workflow, &edge.to));
            self.add(&from, to, Kind::Edge, (graph, || format!("/edges/{}", edge.index), None));
        }
        // Writers first, so that a reader resolves wherever in the graph its writer stands.
        for (name, kind) in VARIABLE_FIELDS {
            for node in &workflow.nodes {
                self.variables(workflow, &node.id, graph, &format!("/nodes/{}", node.index), &node.value, (name, kind));
            }
            for step in &workflow.steps {
                let Some(document) = &step.document else { continue };
                self.variables(workflow, &step.node_id, &step.path, "", document.front(), (name, kind));
            }
        }
        for node in &workflow.nodes {
            self.node(workflow, node);
        }
        for step in &workflow.steps {
            self.step(workflow, step);
        }
    }

    fn node(&mut self, workflow: &Workflow, node: &Node) {
        if let Some(agent) = &node.agent_id {
            let pointer = || format!("/nodes/{}/agentId", node.index);
            let place = (workflow.graph_path.as_str(), pointer, None);
            self.add(&step_of(workflow, &node.id), Object::Agent(agent.clone()), Kind::Agent, place);
        }
    }

    fn step(&mut self, workflow: &Workflow, step: &Step) {
        let Some(document) = &step.document else { return };
        let from = step_of(workflow, &step.node_id);
        if let Some(agent) = document.field("agentId") {
            let place = (step.path.as_str(), || "/agentId".to_owned(), None);
            self.add(&from, Object::Agent(agent.to_owned()), Kind::Agent, place);
        }
        if let Some(id) = document.field("workflowId") {
            let place = (step.path.as_str(), || "/workflowId".to_owned(), None);
            self.add(&from, Object::Workflow(id.to_owned()), Kind::Subworkflow, place);
        }
        let transitions = document.front().get("transitions").and_then(Value::as_array);
        for (index, transition) in transitions.into_iter().flatten().enumerate() {
            if let Some(to) = transition.get("to").and_then(Value::as_str) {
                let place = (step.path.as_str(), || format!("/transitions/{index}/to"), None);
                self.add(&from, step_of(workflow, to), Kind::Transition, place);
            }
        }
        self.document(&from, &step.path, document);
    }

    /// The variables in one list of a node or a step.
    fn variables(
        &mut self,
        workflow: &Workflow,
        node: &str,
        file: &str,
        at: &str,
        value: &Value,
        (field, kind): (&str, Kind),
    ) {
        let names = value.get(field).and_then(Value::as_array);
        for (index, name) in names.into_iter().flatten().enumerate() {
            // A list may also name files; those are found as assets.
            if let Some(name) = name.as_str().filter(|name| !name.is_empty() && !name.contains('/')) {
                let place = (file, || format!("{at}/{field}/{index}"), None);
                self.add(&step_of(workflow, node), variable(workflow, name), kind, place);
            }
        }
    }

    /// The assets that a document mentions, in its front matter and below it.
    fn document(&mut self, from: &Object, file: &str, document: &Document) {
        for (pointer, path) in assets::mentions_in(document.front()) {
            self.add(from, Object::Asset(path), Kind::Asset, (file, || pointer, None));
        }
        self.body(from, file, document.body(), document.body_line());
    }

    fn body(&mut self, from: &Object, file: &str, text: &str, first_line: usize) {
        for mention in assets::mentions(text) {
            let place = (file, String::new, Some(first_line + mention.line));
            self.add(from, Object::Asset(mention.path), Kind::Asset, place);
        }
    }

    fn agent(&mut self, agent: &Agent) {
        let Some(file) = self.package.agents_path() else { return };
        let from = Object::Agent(agent.id.clone());
        let at = format!("/agents/{}", agent.index);
        for (pointer, path) in assets::mentions_in(&agent.value) {
            self.add(&from, Object::Asset(path), Kind::Asset, (file, || format!("{at}{pointer}"), None));
        }
        for (inside, named) in agent.menu_workflows() {
            // A menu may also name workflows of the runtime; only ours are references.
            if let Some(to) = self.workflow_named(named) {
                self.add(&from, to, Kind::Subworkflow, (file, || format!("{at}{inside}"), None));
            }
        }
    }

    fn workflow_named(&self, named: &str) -> Option<Object> {
        let by_id = Object::Workflow(named.to_owned());
        if self.is_there(&by_id) {
            return Some(by_id);
        }
        let workflow_in = |index: &Index| {
            let here = index.paths.get(named)?;
            here.iter().find(|object| matches!(object, Object::Workflow(_)) && self.is_there(object)).cloned()
        };
        workflow_in(&self.index).or_else(|| workflow_in(self.part?.rest))
    }
}

/// The lists that name variables.
const VARIABLE_FIELDS: [(&str, Kind); 3] =
    [("outputs", Kind::VariableWrite), ("setsVariables", Kind::VariableWrite), ("inputs", Kind::VariableRead)];

fn step_of(workflow: &Workflow, node: &str) -> Object {
    Object::Step { workflow: workflow.id.clone(), node: node.to_owned() }
}

fn variable(workflow: &Workflow, name: &str) -> Object {
    Object::Variable { workflow: workflow.id.clone(), name: name.to_owned() }
}
