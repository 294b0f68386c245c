//! What refers to what: both directions, with the place and the kind of each reference.
//!
//! An [`Index`] is built once, in time linear in the package, and answers each question by a look-up.

mod build;

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        build::index(package)
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
