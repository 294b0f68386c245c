//! What refers to what: both directions, with the place and the kind of each reference.
//!
//! An [`Index`] is built once, in time linear in the package, and answers each question by a look-up.

mod build;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::build::Part;
use crate::package::Package;

/// Something that can refer or be referred to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// The package itself.
    Package,
    /// A workflow, by its id.
    Workflow(String),
    /// A step.
    Step {
        /// The id of its workflow.
        workflow: String,
        /// The id of its node.
        node: String,
    },
    /// An agent, by its id.
    Agent(String),
    /// An asset, by its path.
    Asset(String),
    /// A variable of a workflow.
    Variable {
        /// The id of the workflow.
        workflow: String,
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package => f.write_str("package"),
            Self::Workflow(id) => write!(f, "workflow:{id}"),
            Self::Step { workflow, node } => write!(f, "step:{workflow}/{node}"),
            Self::Agent(id) => write!(f, "agent:{id}"),
            Self::Asset(path) => write!(f, "asset:{path}"),
            Self::Variable { workflow, name } => write!(f, "variable:{workflow}/{name}"),
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Object {
    /// Reads what [`Display`](fmt::Display) writes, such as `step:main/step-01`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == "package" {
            return Some(Self::Package);
        }
        let (kind, name) = text.split_once(':')?;
        let inner = || name.split_once('/').map(|(workflow, inner)| (workflow.to_owned(), inner.to_owned()));
        Some(match kind {
            "workflow" => Self::Workflow(name.to_owned()),
            "agent" => Self::Agent(name.to_owned()),
            "asset" => Self::Asset(name.to_owned()),
            "step" => inner().map(|(workflow, node)| Self::Step { workflow, node })?,
            "variable" => inner().map(|(workflow, name)| Self::Variable { workflow, name })?,
            _ => return None,
        })
    }

    /// What it is a part of: a workflow has its steps and variables, and everything else is a whole.
    pub(crate) fn whole(&self) -> Self {
        self.workflow().map_or_else(|| self.clone(), |id| Self::Workflow(id.to_owned()))
    }

    /// The workflow that it is, or is in.
    #[must_use]
    pub fn workflow(&self) -> Option<&str> {
        match self {
            Self::Workflow(id) => Some(id),
            Self::Step { workflow, .. } | Self::Variable { workflow, .. } => Some(workflow),
            Self::Package | Self::Agent(_) | Self::Asset(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` names no object")))
    }
}

impl JsonSchema for Object {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ObjectName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "an object of the package, such as `step:main/step-01` or `asset:assets/style.md`"
        })
    }
}

/// How one thing refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ReferenceKind")]
pub enum Kind {
    /// A package to its workflows' entry, a workflow to its first step.
    Entry,
    /// The graph leads from one step to another.
    Edge,
    /// The step's own text leads to another.
    Transition,
    /// It is done by an agent.
    Agent,
    /// It mentions an asset.
    Asset,
    /// It reads a variable.
    VariableRead,
    /// It sets a variable.
    VariableWrite,
    /// It starts a workflow.
    Subworkflow,
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Reference")]
pub struct Ref {
    /// What refers.
    pub from: Object,
    /// What is referred to.
    pub to: Object,
    /// How.
    pub kind: Kind,
    /// The file in which it stands.
    pub file: String,
    /// A JSON pointer into the file or its front matter; empty if it stands in a text.
    pub pointer: String,
    /// The line, from 1, if it stands in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Whether what is referred to is there.
    pub resolved: bool,
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locator {
    /// All workflows, steps, agents and variables of this id. `workflow/node` names one step.
    Id(String),
    /// What this file is: a workflow, a step, an asset, the package, or all agents.
    Path(String),
    /// One object.
    Object(Object),
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id `{id}`"),
            Self::Path(path) => write!(f, "path `{path}`"),
            Self::Object(object) => write!(f, "`{object}`"),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Refs {
    /// The objects that the locator means; none if there is nothing of that name, not even a reference to it.
    pub objects: Vec<Object>,
    /// What refers to them.
    pub inbound: Vec<Ref>,
    /// What they refer to.
    pub outbound: Vec<Ref>,
}

/// All references of a package.
#[derive(Debug, Default)]
pub struct Index {
    refs: Vec<Ref>,
    inbound: HashMap<Object, Vec<usize>>,
    outbound: HashMap<Object, Vec<usize>>,
    ids: HashMap<String, Vec<Object>>,
    paths: HashMap<String, Vec<Object>>,
}

impl Index {
    /// Reads all references of a package.
    #[must_use]
    pub fn of(package: &Package) -> Self {
        build::index(package, None)
    }

    /// Reads the references of some wholes alone: workflows with all that is in them, agents and assets. `rest` knows what else there
    /// is: the same package with other contents of these wholes.
    #[must_use]
    pub(crate) fn of_part(package: &Package, wholes: &BTreeSet<Object>, rest: &Self) -> Self {
        build::index(package, Some(Part { wholes, rest, only_unresolved: false }))
    }

    /// The same without those that resolve.
    fn unresolved_of_part(package: &Package, wholes: &BTreeSet<Object>, rest: &Self) -> Self {
        build::index(package, Some(Part { wholes, rest, only_unresolved: true }))
    }

    /// What is referred to and is not there, with what refers to it.
    pub(crate) fn unresolved(&self) -> impl Iterator<Item = (Object, Object)> {
        let unresolved = self.refs.iter().filter(|reference| !reference.resolved);
        unresolved.map(|reference| (reference.from.clone(), reference.to.clone()))
    }

    /// What is unresolved in a package that is this one with other contents of these wholes, beside what is unresolved in both.
    pub(crate) fn unresolved_with(&self, after: &Package, wholes: &BTreeSet<Object>) -> BTreeSet<(Object, Object)> {
        let part = Self::unresolved_of_part(after, wholes, self);
        let is_read = |object: &Object| wholes.contains(&object.whole());
        let is_gone = |object: &Object| is_read(object) && !part.is_there(object);
        let gone = self.inbound.iter().filter(|(object, _)| is_gone(object));
        let broken = gone.flat_map(|(_, numbers)| numbers).map(|number| &self.refs[*number]);
        let broken = broken.filter(|reference| !is_read(&reference.from));
        part.unresolved().chain(broken.map(|reference| (reference.from.clone(), reference.to.clone()))).collect()
    }

    /// With references that were read elsewhere: of workflows that are not at hand.
    pub fn add(&mut self, refs: Vec<Ref>) {
        for one in refs {
            let number = self.refs.len();
            self.outbound.entry(one.from.clone()).or_default().push(number);
            self.inbound.entry(one.to.clone()).or_default().push(number);
            self.refs.push(one);
        }
    }

    /// All references, in the order of the package.
    #[must_use]
    pub fn all(&self) -> &[Ref] {
        &self.refs
    }

    /// What refers to this, and what this refers to.
    #[must_use]
    pub fn find(&self, locator: &Locator) -> Refs {
        let none = Vec::new();
        let objects = match locator {
            Locator::Id(id) => self.ids.get(id).unwrap_or(&none).clone(),
            Locator::Path(path) => self.paths.get(path).unwrap_or(&none).clone(),
            Locator::Object(object) => {
                let is_known = self.inbound.contains_key(object) || self.outbound.contains_key(object);
                if is_known || self.is_there(object) { vec![object.clone()] } else { Vec::new() }
            }
        };
        let collect = |by: &HashMap<Object, Vec<usize>>| {
            let numbers = objects.iter().filter_map(|object| by.get(object)).flatten();
            numbers.map(|number| self.refs[*number].clone()).collect()
        };
        Refs { inbound: collect(&self.inbound), outbound: collect(&self.outbound), objects }
    }

    fn is_there(&self, object: &Object) -> bool {
        let (Object::Workflow(name)
        | Object::Agent(name)
        | Object::Asset(name)
        | Object::Step { node: name, .. }
        | Object::Variable { name, .. }) = object
        else {
            return true;
        };
        let by = if matches!(object, Object::Asset(_)) { &self.paths } else { &self.ids };
        by.get(name).is_some_and(|known| known.contains(object))
    }
}

/// What refers to this, and what this refers to. For several questions, keep an [`Index`].
#[must_use]
pub fn find(package: &Package, locator: &Locator) -> Refs {
    Index::of(package).find(locator)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test says by panicking what does not hold")]
mod tests {
    use std::collections::BTreeSet;

    use super::{Index, Object};
    use crate::package::{Edits, Package};

    const GRAPH: &str = r#"{"schemaVersion": "1.1", "entryNodeId": "a", "nodes": [
        {"id": "a", "type": "step", "file": "steps/a.md", "agentId": "clerk", "outputs": ["made"]},
        {"id": "b", "type": "end", "file": "steps/b.md", "agentId": "clerk", "inputs": ["made"]}],
        "edges": [{"from": "a", "to": "b", "label": "on"}]}"#;
    const STEP: &str =
        "---\nschemaVersion: \"1.1\"\nnodeId: b\ntype: end\nworkflowId: other\n---\n\nAfter `assets/one.md`.\n";
    const AGENTS: &str = r#"{"schemaVersion": "1.1", "agents": [{"id": "clerk", "menu": [{"workflow": "other"}]}]}"#;

    /// A package of two workflows, the second of which is started by the first.
    fn package() -> Package {
        let manifest = r#"{"schemaVersion": "1.1", "name": "two", "version": "1.0.0",
            "entry": {"workflow": "main.md", "graph": "main.json", "agents": "agents.json"},
            "workflows": [{"id": "main", "workflow": "main.md", "graph": "main.json"},
                {"id": "other", "workflow": "other.md", "graph": "other.json"}]}"#;
        let document = "---\nschemaVersion: \"1.1\"\nvariables:\n  said: x\n---\n\n# Main\n";
        let files = [
            ("bmad.json", manifest),
            ("main.md", document),
            ("main.json", GRAPH),
            ("steps/a.md", "---\nnodeId: a\n---\n"),
            ("steps/b.md", STEP),
            ("other.md", document),
            ("other.json", r#"{"schemaVersion": "1.1", "nodes": []}"#),
            ("agents.json", AGENTS),
            ("assets/one.md", "See assets/two.md.\n"),
            ("assets/two.md", "Two.\n"),
        ];
        Package::read(files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into())
    }

    #[test]
    fn what_is_unresolved_is_found_by_the_wholes_that_have_changed_alone() {
        let before = package();
        let index = Index::of(&before);
        let known: BTreeSet<_> = index.unresolved().collect();
        let without_other = String::from_utf8(before.files()["bmad.json"].clone()).unwrap();
        let without_other = without_other.replace(
            r#",
                {"id": "other", "workflow": "other.md", "graph": "other.json"}"#,
            "",
        );
        let workflow = |id: &str| Object::Workflow(id.to_owned());
        let asset = |path: &str| Object::Asset(path.to_owned());
        let (agent, main) = (Object::Agent("clerk".to_owned()), workflow("main"));
        let one_graph = GRAPH.replace("\"b\", \"type\"", "\"c\", \"type\"");
        for (path, text, whole, is_broken) in [
            // Gone, and referred to by what has not changed.
            ("assets/two.md", None, asset("assets/two.md"), true),
            ("bmad.json", Some(&*without_other), workflow("other"), true),
            ("agents.json", Some(r#"{"schemaVersion": "1.1", "agents": []}"#), agent.clone(), true),
            // Another node, another writer of the variable, another agent.
            ("main.json", Some(&*one_graph), main.clone(), true),
            ("main.json", Some(&*GRAPH.replace("\"outputs\": [\"made\"]", "\"outputs\": []")), main.clone(), true),
            (
                "main.json",
                Some(&*GRAPH.replace("\"clerk\", \"outputs\"", "\"nobody\", \"outputs\"")),
                main.clone(),
                true,
            ),
            ("steps/b.md", Some(&*STEP.replace("workflowId: other", "workflowId: nowhere")), main.clone(), true),
            ("assets/one.md", Some("See assets/three.md.\n"), asset("assets/one.md"), true),
            // As good as before.
            ("assets/one.md", Some("See assets/one.md.\n"), asset("assets/one.md"), false),
            ("steps/b.md", Some(&*STEP.replace("assets/one.md", "assets/two.md")), main.clone(), false),
            ("main.json", Some(&*GRAPH.replace("\"made\"", "\"said\"")), main, false),
            ("agents.json", Some(&*AGENTS.replace("other", "main")), agent, false),
        ] {
            let edits: Edits = [(path.to_owned(), text.map(|text| text.as_bytes().to_vec()))].into();
            let (after, wholes) = (before.edited(&edits), [whole, Object::Package].into());
            let mut found = index.unresolved_with(&after, &wholes);
            found.retain(|pair| !known.contains(pair));
            let mut all: BTreeSet<_> = Index::of(&after).unresolved().collect();
            all.retain(|pair| !known.contains(pair));
            // A menu names a workflow that is not ours by nothing that is a reference.
            found.retain(|(from, to)| !matches!((from, to), (Object::Agent(_), Object::Workflow(_))));
            assert_eq!(found, all, "{path}: {text:?}");
            assert_eq!(!found.is_empty(), is_broken, "{path}: {text:?}: {found:?}");
        }
    }
}
