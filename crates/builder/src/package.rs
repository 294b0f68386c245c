//! A package: its bytes, and what they say.
//!
//! The bytes are the truth. The view is made of them as far as they can be understood; what cannot be is left out of
//! the view and told as a finding, so that a broken package can still be looked at, fixed and exported unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::assets;
use crate::document::Document;
use crate::files::{Files, folder_of, is_left_over};
use crate::finding::Finding;
use crate::json;
use crate::limits::FILE_BYTES_MAX;

/// The file that says what a package consists of.
pub const MANIFEST: &str = "bmad.json";
/// The id of the entry workflow of a package that does not list it under an id of its own.
pub const MAIN_WORKFLOW: &str = "main";
/// The headings that each step must have.
pub const SECTIONS_REQUIRED: [&str; 2] = ["## Goal", "## Instructions"];
/// The heading that says when a step is done; without it, nobody can tell from the document.
pub const SECTION_RECOMMENDED: &str = "## Completion (Document-as-State)";

/// What a node of a graph does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Work.
    Step,
    /// A choice between edges.
    Decision,
    /// Where branches meet.
    Merge,
    /// The last of a path.
    End,
    /// Another workflow.
    Subworkflow,
}

impl NodeKind {
    /// As it is written in a graph.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "step" => Self::Step,
            "decision" => Self::Decision,
            "merge" => Self::Merge,
            "end" => Self::End,
            "subworkflow" => Self::Subworkflow,
            _ => return None,
        })
    }
}

/// A node of a graph.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its place in `nodes`.
    pub index: usize,
    /// Unique within its graph.
    pub id: String,
    /// What it does; none if the graph does not say it rightly.
    pub kind: Option<NodeKind>,
    /// The step file as the graph names it.
    pub file: Option<String>,
    /// The step file within the package.
    pub path: Option<String>,
    /// Who does it.
    pub agent_id: Option<String>,
    /// As it stands in the graph.
    pub value: Value,
}

/// An edge of a graph.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Its place in `edges`.
    pub index: usize,
    /// The node it leaves.
    pub from: String,
    /// The node it leads to.
    pub to: String,
    /// Whether it is taken when no other is.
    pub is_default: bool,
    /// As it stands in the graph.
    pub value: Value,
}

/// A step file that a node names.
#[derive(Debug, Clone)]
pub struct Step {
    /// The node.
    pub node_id: String,
    /// Within the package.
    pub path: String,
    /// Its parts, if it can be understood. Nodes that share a file share it.
    pub document: Option<Arc<Document>>,
}

/// A workflow of a package.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// Unique within its package.
    pub id: String,
    /// Where the manifest names it: a JSON pointer.
    pub pointer: String,
    /// The path of its document.
    pub path: String,
    /// The path of its graph.
    pub graph_path: String,
    /// What else the manifest says of it: its name, description and tags.
    pub about: Option<Value>,
    /// Its document, if it can be understood.
    pub document: Option<Document>,
    /// Its graph, if it is JSON.
    pub graph: Option<Value>,
    /// The node it begins with, as the graph says.
    pub entry_node_id: Option<String>,
    /// The nodes that have an id, in the graph's order.
    pub nodes: Vec<Node>,
    /// The edges that have two ends, in the graph's order.
    pub edges: Vec<Edge>,
    /// The steps whose file is there, in the order of the nodes.
    pub steps: Vec<Step>,
}

impl Workflow {
    /// The folder that the graph's file names start from, with a `/` at its end.
    #[must_use]
    pub fn folder(&self) -> &str {
        folder_of(&self.graph_path)
    }

    /// Whether the graph could be read with all of its nodes and edges.
    pub(crate) fn is_whole(&self) -> bool {
        let listed = |name| self.graph.as_ref().and_then(|graph| graph.get(name)?.as_array()).map(Vec::len);
        !self.nodes.is_empty() && listed("nodes") == Some(self.nodes.len()) && listed("edges") == Some(self.edges.len())
    }

    /// The node of this id.
    #[must_use]
    pub fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// What people call it: the name that the manifest has for it, else the first heading of its document, else its id.
    #[must_use]
    pub fn title(&self) -> &str {
        let named = self.about.as_ref().and_then(|about| about.get("displayName")?.as_str());
        let heading = || self.document.as_ref()?.body().lines().find_map(|line| line.strip_prefix("# ")).map(str::trim);
        named.or_else(heading).filter(|title| !title.is_empty()).unwrap_or(&self.id)
    }

    /// Where the manifest says that it is.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            id: self.id.clone(),
            pointer: self.pointer.clone(),
            path: self.path.clone(),
            graph_path: self.graph_path.clone(),
            about: self.about.clone(),
        }
    }

    /// The step of this node.
    #[must_use]
    pub fn step(&self, node_id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.node_id == node_id)
    }
}

/// An agent of a package.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Its place in `agents`.
    pub index: usize,
    /// Unique within its package.
    pub id: String,
    /// As it stands in the file.
    pub value: Value,
}

/// An asset of a package.
#[derive(Debug, Clone, Copy)]
pub struct Asset<'a> {
    /// Within the package, from `assets/` on.
    pub path: &'a str,
    /// Its content, if it is text.
    pub text: Option<&'a str>,
}

/// A package.
#[derive(Debug, Clone)]
pub struct Package {
    files: Files,
    manifest: Option<Value>,
    agents_path: Option<String>,
    agents_json: Option<Value>,
    workflows: Vec<Workflow>,
    agents: Vec<Agent>,
    problems: Vec<Finding>,
    is_part: bool,
    elsewhere: Elsewhere,
}

impl Agent {
    /// The workflows that its menu leads to, as they are named there (by an id or by the path of a file), each with its place
    /// below the agent.
    #[must_use]
    pub fn menu_workflows(&self) -> Vec<(String, &str)> {
        let menu = self.value.get("menu").and_then(Value::as_array).into_iter().flatten();
        let mut choices: Vec<(String, &Value)> = Vec::new();
        for (index, choice) in menu.enumerate() {
            choices.push((format!("/menu/{index}"), choice));
            let several = choice.get("multi").and_then(Value::as_array).into_iter().flatten().enumerate();
            choices.extend(several.map(|(n, choice)| (format!("/menu/{index}/multi/{n}"), choice)));
        }
        choices
            .into_iter()
            .flat_map(|(at, choice)| {
                ["workflow", "validate-workflow"].map(|name| (format!("{at}/{name}"), choice.get(name)))
            })
            .filter_map(|(at, named)| Some((at, named?.as_str()?)))
            .collect()
    }
}

/// What belongs to a package without being at hand: a store reads only the part that a question is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// The ids of the workflows, those at hand too.
    pub workflows: BTreeSet<String>,
    /// The paths of the assets, those at hand too, with the SHA-256 of their bytes.
    pub assets: BTreeMap<String, String>,
    /// The paths of all other files, those at hand too; none where they were not asked for.
    pub files: Option<BTreeSet<String>>,
}

/// Changes of files: new bytes, or none for a file that goes.
pub type Edits = BTreeMap<String, Option<Vec<u8>>>;

impl Package {
    /// Looks at files. Never fails: what cannot be understood is what [`crate::validate`] tells. Files that operating systems
    /// leave in folders, such as `.DS_Store`, and a `.git` are no part of a package and are left out.
    #[must_use]
    pub fn read(files: Files) -> Self {
        Self::whole(files, None)
    }

    fn whole(mut files: Files, known: Option<Known<'_>>) -> Self {
        files.retain(|path, _| !is_left_over(path));
        let mut problems = Vec::new();
        let manifest = read_json(&files, MANIFEST, &mut problems);
        let places = places_of(manifest.as_ref());
        Self::with(manifest, files, (places, None), problems, known)
    }

    /// Looks at a part of a package: some of its files, which need not hold the manifest. `head` is the manifest as far
    /// as it does not list workflows.
    #[must_use]
    pub fn part(head: Value, files: Files, places: Vec<Place>, elsewhere: Elsewhere) -> Self {
        Self::with(Some(head), files, (places, Some(elsewhere)), Vec::new(), None)
    }

    /// The same with other files. Where the manifest is at hand and changes, workflows that it no longer lists are gone,
    /// and those that it did not list before are read too.
    #[must_use]
    pub fn edited(&self, edits: &Edits) -> Self {
        let (mut files, mut elsewhere) = (self.files.clone(), self.elsewhere.clone());
        for (path, bytes) in edits {
            match bytes {
                Some(bytes) => drop(files.insert(path.clone(), bytes.clone())),
                None => drop(files.remove(path)),
            }
            if let Some(known) = elsewhere.files.as_mut().filter(|_| !path.starts_with(assets::FOLDER)) {
                match bytes {
                    Some(_) => known.insert(path.clone()),
                    None => known.remove(path),
                };
            }
            if path.starts_with(assets::FOLDER) {
                match bytes {
                    Some(bytes) => elsewhere.assets.insert(path.clone(), sha256(bytes)),
                    None => elsewhere.assets.remove(path),
                };
            }
        }
        let mut problems = Vec::new();
        let known = Some(Known::of(self, edits));
        if !self.is_part() {
            return Self::whole(files, known);
        }
        let mut manifest = self.manifest.clone();
        let mut at_hand: Vec<Place> = self.workflows.iter().map(Workflow::place).collect();
        if edits.contains_key(MANIFEST) {
            manifest = read_json(&files, MANIFEST, &mut problems);
            let listed = places_of(manifest.as_ref());
            let before = std::mem::take(&mut elsewhere.workflows);
            elsewhere.workflows = listed.iter().map(|place| place.id.clone()).collect();
            let read: BTreeSet<&str> = self.workflows.iter().map(|workflow| workflow.id.as_str()).collect();
            at_hand = listed
                .into_iter()
                .filter(|place| read.contains(place.id.as_str()) || !before.contains(&place.id))
                .collect();
        }
        Self::with(manifest, files, (at_hand, Some(elsewhere)), problems, known)
    }

    fn with(
        manifest: Option<Value>,
        files: Files,
        (places, elsewhere): (Vec<Place>, Option<Elsewhere>),
        mut problems: Vec<Finding>,
        known: Option<Known<'_>>,
    ) -> Self {
        let entry = |name| text_at(manifest.as_ref()?, &["entry", name]);
        let agents_path = entry("agents");
        let agents_json = agents_path.as_deref().and_then(|path| read_json(&files, path, &mut problems));
        let agents = items(agents_json.as_ref(), "agents").filter_map(agent).collect();
        let mut reader = Reader { files: &files, problems: &mut problems, graphs: BTreeSet::new(), known };
        let workflows = places.into_iter().map(|place| reader.workflow(place)).collect();
        let is_part = elsewhere.is_some();
        let elsewhere = elsewhere.unwrap_or_default();
        Self { manifest, agents_path, agents_json, workflows, agents, problems, is_part, elsewhere, files }
    }

    /// The files, byte for byte as they came.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The same, taken out.
    #[must_use]
    pub fn into_files(self) -> Files {
        self.files
    }

    /// The manifest, if it is JSON.
    #[must_use]
    pub fn manifest(&self) -> Option<&Value> {
        self.manifest.as_ref()
    }

    /// The name in the manifest.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.manifest.as_ref()?.get("name")?.as_str()
    }

    /// The path of the file with the agents.
    #[must_use]
    pub fn agents_path(&self) -> Option<&str> {
        self.agents_path.as_deref()
    }

    /// The file with the agents, if it is JSON.
    #[must_use]
    pub fn agents_json(&self) -> Option<&Value> {
        self.agents_json.as_ref()
    }

    /// The agents that have an id.
    #[must_use]
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The agent of this id.
    #[must_use]
    pub fn agent(&self, id: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// The workflows, the entry first.
    #[must_use]
    pub fn workflows(&self) -> &[Workflow] {
        &self.workflows
    }

    /// The workflow of this id.
    #[must_use]
    pub fn workflow(&self, id: &str) -> Option<&Workflow> {
        self.workflows.iter().find(|workflow| workflow.id == id)
    }

    /// The workflow that the package begins with, if it is at hand.
    #[must_use]
    pub fn entry_workflow(&self) -> Option<&Workflow> {
        let entry = |name| text_at(self.manifest.as_ref()?, &["entry", name]);
        let (path, graph) = (entry("workflow")?, entry("graph")?);
        self.workflows.iter().find(|workflow| workflow.path == path && workflow.graph_path == graph)
    }

    /// Whether it was begun and waits for its first workflow: it names neither an entry nor any other one.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        let entry = self.manifest.as_ref().and_then(|manifest| manifest.get("entry")?.as_object());
        let named =
            |fields: &serde_json::Map<String, Value>| fields.contains_key("workflow") || fields.contains_key("graph");
        entry.is_some_and(|fields| !named(fields)) && self.workflow_ids().is_empty()
    }

    /// The assets, in the order of their paths.
    pub fn assets(&self) -> impl Iterator<Item = Asset<'_>> {
        let from = self.files.range(assets::FOLDER.to_owned()..);
        from.take_while(|(path, _)| path.starts_with(assets::FOLDER))
            .map(|(path, bytes)| Asset { path, text: std::str::from_utf8(bytes).ok() })
    }

    /// The asset at this path.
    #[must_use]
    pub fn asset(&self, path: &str) -> Option<Asset<'_>> {
        let (path, bytes) = self.files.get_key_value(path).filter(|_| path.starts_with(assets::FOLDER))?;
        Some(Asset { path, text: std::str::from_utf8(bytes).ok() })
    }

    /// Whether there may be more than is at hand.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// The ids of all workflows, the paths of all assets: also of those that are not at hand.
    #[must_use]
    pub fn workflow_ids(&self) -> BTreeSet<&str> {
        let at_hand = self.workflows.iter().map(|workflow| workflow.id.as_str());
        at_hand.chain(self.elsewhere.workflows.iter().map(String::as_str)).collect()
    }

    /// Whether there is such a workflow, also where it is not at hand.
    #[must_use]
    pub fn has_workflow(&self, id: &str) -> bool {
        self.elsewhere.workflows.contains(id) || self.workflow(id).is_some()
    }

    /// Whether there is a file at this path, other than an asset; where that is not known here, it is taken to be.
    #[must_use]
    pub fn may_have_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
            || (self.is_part && self.elsewhere.files.as_ref().is_none_or(|known| known.contains(path)))
    }

    /// The paths of all assets with the SHA-256 of their bytes, also of those that are not at hand.
    #[must_use]
    pub fn asset_hashes(&self) -> BTreeMap<&str, String> {
        let mut all: BTreeMap<&str, String> =
            self.elsewhere.assets.iter().map(|(path, hash)| (path.as_str(), hash.clone())).collect();
        for (path, bytes) in self.files.range(assets::FOLDER.to_owned()..) {
            if !path.starts_with(assets::FOLDER) {
                break;
            }
            all.entry(path).or_insert_with(|| sha256(bytes));
        }
        all
    }

    /// The paths of all assets, also of those that are not at hand.
    pub fn asset_paths(&self) -> impl Iterator<Item = &str> {
        let elsewhere = self.elsewhere.assets.keys().map(String::as_str);
        let at_hand = self.assets().map(|asset| asset.path);
        elsewhere.chain(at_hand.filter(|path| !self.elsewhere.assets.contains_key(*path)))
    }

    /// Whether there is such an asset, also where it is not at hand.
    #[must_use]
    pub fn has_asset(&self, path: &str) -> bool {
        self.elsewhere.assets.contains_key(path) || self.asset(path).is_some()
    }

    /// What could not be understood.
    pub(crate) fn problems(&self) -> &[Finding] {
        &self.problems
    }
}

/// Where the manifest says that a workflow is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its id.
    pub id: String,
    /// Into the manifest.
    pub pointer: String,
    /// Of its document.
    pub path: String,
    /// Of its graph.
    pub graph_path: String,
    /// What else the manifest says of it.
    pub about: Option<Value>,
}

/// SHA-256 in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The workflows of a manifest. The entry comes first, and counts once if it is listed too.
#[must_use]
pub fn places_of(manifest: Option<&Value>) -> Vec<Place> {
    let listed = items(manifest, "workflows").filter_map(|(index, value)| {
        let text = |name| text_at(value, &[name]);
        Some(Place {
            id: text("id")?,
            pointer: format!("/workflows/{index}"),
            path: text("workflow")?,
            graph_path: text("graph")?,
            about: about(value),
        })
    });
    let mut places: Vec<Place> = listed.collect();
    let entry = |name| text_at(manifest?, &["entry", name]);
    let (Some(path), Some(graph_path)) = (entry("workflow"), entry("graph")) else { return places };
    match places.iter().position(|place| place.path == path && place.graph_path == graph_path) {
        Some(at) => {
            let place = places.remove(at);
            places.insert(0, place);
        }
        None => {
            let (id, pointer) = (MAIN_WORKFLOW.to_owned(), "/entry".to_owned());
            places.insert(0, Place { id, pointer, path, graph_path, about: None });
        }
    }
    places
}

/// What an entry of the manifest says besides where the workflow is.
fn about(entry: &Value) -> Option<Value> {
    let mut fields = entry.as_object()?.clone();
    for name in ["id", "workflow", "graph"] {
        fields.remove(name);
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// The paths of the step files that a graph names; none if it cannot be read.
#[must_use]
pub fn step_paths(graph_path: &str, graph: Option<&[u8]>) -> Vec<String> {
    let graph: Option<Value> = graph.and_then(|bytes| json::parse(graph_path, bytes).ok());
    let folder = folder_of(graph_path);
    let nodes = items(graph.as_ref(), "nodes").filter_map(|item| node(item, folder));
    nodes.filter_map(|node| node.path).collect()
}

/// What was read of the files of a package before some of them were changed.
struct Known<'a> {
    edits: &'a Edits,
    workflows: BTreeMap<&'a str, &'a Workflow>,
    /// Of steps, by path.
    documents: BTreeMap<&'a str, &'a Arc<Document>>,
    /// Files that could not be understood: what is wrong with them is told anew.
    wrong: BTreeSet<&'a str>,
}

impl<'a> Known<'a> {
    fn of(package: &'a Package, edits: &'a Edits) -> Self {
        let steps = package.workflows.iter().flat_map(|workflow| &workflow.steps);
        let is_same = |path: &str| !edits.contains_key(path);
        let documents = steps.filter_map(|step| Some((step.path.as_str(), step.document.as_ref()?)));
        Self {
            edits,
            workflows: package.workflows.iter().map(|workflow| (workflow.id.as_str(), workflow)).collect(),
            documents: documents.filter(|(path, _)| is_same(path)).collect(),
            wrong: package.problems.iter().map(|problem| problem.file.as_str()).collect(),
        }
    }

    /// The workflow at this place, if none of its files is changed or wrong.
    fn workflow(&self, place: &Place) -> Option<&'a Workflow> {
        let is_same = |path: &str| !self.edits.contains_key(path) && !self.wrong.contains(path);
        let found = *self.workflows.get(place.id.as_str())?;
        let mut steps = found.nodes.iter().filter_map(|node| node.path.as_deref());
        let is_there = found.place() == *place;
        (is_there && is_same(&found.path) && is_same(&found.graph_path) && steps.all(is_same)).then_some(found)
    }
}

struct Reader<'a> {
    files: &'a Files,
    problems: &'a mut Vec<Finding>,
    /// Paths already parsed, so that a file two workflows share is told about once.
    graphs: BTreeSet<String>,
    known: Option<Known<'a>>,
}

impl Reader<'_> {
    fn workflow(&mut self, place: Place) -> Workflow {
        if let Some(known) = self.known.as_ref().and_then(|known| known.workflow(&place)) {
            self.graphs.insert(place.graph_path);
            return known.clone();
        }
        let Place { id, pointer, path, graph_path, about } = place;
        let document = self.document(&path);
        let graph = if self.graphs.insert(graph_path.clone()) {
            read_json(self.files, &graph_path, self.problems)
        } else {
            read_json(self.files, &graph_path, &mut Vec::new())
        };
        let folder = folder_of(&graph_path);
        let nodes: Vec<Node> = items(graph.as_ref(), "nodes").filter_map(|item| node(item, folder)).collect();
        let edges = items(graph.as_ref(), "edges").filter_map(edge).collect();
        let steps = self.steps(&nodes);
        let entry_node_id = graph.as_ref().and_then(|graph| text_at(graph, &["entryNodeId"]));
        Workflow { id, pointer, path, graph_path, about, document, graph, entry_node_id, nodes, edges, steps }
    }

    fn steps(&mut self, nodes: &[Node]) -> Vec<Step> {
        let mut read: BTreeMap<&str, Option<Arc<Document>>> = BTreeMap::new();
        let mut steps = Vec::new();
        for node in nodes {
            let Some(path) = node.path.as_deref().filter(|path| self.files.contains_key(*path)) else { continue };
            let document = match read.get(path) {
                Some(document) => document.clone(),
                None => {
                    let known = self.known.as_ref().and_then(|known| known.documents.get(path).copied().cloned());
                    let document = known.or_else(|| self.document(path).map(Arc::new));
                    read.insert(path, document.clone());
                    document
                }
            };
            steps.push(Step { node_id: node.id.clone(), path: path.to_owned(), document });
        }
        steps
    }

    fn document(&mut self, path: &str) -> Option<Document> {
        let bytes = small(self.files, path)?;
        match Document::parse(path, bytes) {
            Ok(document) => Some(document),
            Err(problem) => {
                if !self.problems.iter().rev().take(1).any(|known| known.file == path) {
                    self.problems.push(*problem);
                }
                None
            }
        }
    }
}

/// A file that is there and not too large to be parsed.
fn small<'a>(files: &'a Files, path: &str) -> Option<&'a [u8]> {
    files.get(path).map(Vec::as_slice).filter(|bytes| bytes.len() <= FILE_BYTES_MAX)
}

fn read_json(files: &Files, path: &str, problems: &mut Vec<Finding>) -> Option<Value> {
    json::parse(path, small(files, path)?).map_err(|problem| problems.push(*problem)).ok()
}

fn items<'a>(value: Option<&'a Value>, list: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.and_then(|value| value.get(list)).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn text_at(value: &Value, path: &[&str]) -> Option<String> {
    path.iter().try_fold(value, |value, name| value.get(name))?.as_str().map(str::to_owned)
}

fn agent((index, value): (usize, &Value)) -> Option<Agent> {
    Some(Agent { index, id: text_at(value, &["id"])?, value: value.clone() })
}

fn node((index, value): (usize, &Value), folder: &str) -> Option<Node> {
    let text = |name| text_at(value, &[name]);
    let file = text("file");
    Some(Node {
        index,
        id: text("id")?,
        kind: text("type").as_deref().and_then(NodeKind::from_name),
        path: file.as_deref().map(|file| format!("{folder}{file}")),
        file,
        agent_id: text("agentId"),
        value: value.clone(),
    })
}

fn edge((index, value): (usize, &Value)) -> Option<Edge> {
    let text = |name| text_at(value, &[name]);
    let is_default = value.get("isDefault").and_then(Value::as_bool).unwrap_or(false);
    Some(Edge { index, from: text("from")?, to: text("to")?, is_default, value: value.clone() })
}
