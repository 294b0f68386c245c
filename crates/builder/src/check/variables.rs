//! Variables: each is set before it is read, on each way from the entry.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use toolhost_contract::nearest;

use super::shape::Shape;
use crate::finding::{Finding, Findings, Severity};
use crate::graph::Links;
use crate::package::{NodeKind, Package, Step, Workflow};

/// Nodes times variables, up to which the ways of the variables are followed.
const FOLLOWED_MAX: usize = 64 * 1024 * 1024;
/// Readers of a variable that are named in one message.
const READERS_SHOWN: usize = 3;

/// A variable that the condition of an edge reads.
pub(super) struct Read {
    /// The node that the edge leads from.
    pub(super) from: String,
    pub(super) name: String,
    pub(super) pointer: String,
}

/// What a workflow says of its variables.
pub(super) struct Variables<'a> {
    /// Those that it begins with.
    given: BTreeSet<&'a str>,
    /// Who sets which.
    sets: Vec<BTreeSet<&'a str>>,
    /// Who reads which, with the file and the pointer of the place that says so.
    reads: Vec<BTreeMap<&'a str, (&'a str, String)>>,
}

impl<'a> Variables<'a> {
    /// None where a file that could say more cannot be understood: that has its own finding.
    pub(super) fn of(workflow: &'a Workflow) -> Option<Self> {
        let front = workflow.document.as_ref()?.front().as_object()?;
        if front.get("variables").is_some_and(|variables| !variables.is_object()) {
            return None;
        }
        let mut given: BTreeSet<&str> = front.keys().map(String::as_str).collect();
        given.extend(
            front.get("variables").and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()),
        );
        let steps: HashMap<&str, &Step> = workflow.steps.iter().map(|step| (step.node_id.as_str(), step)).collect();
        let (mut sets, mut reads) = (Vec::new(), Vec::new());
        for node in &workflow.nodes {
            let step = steps.get(node.id.as_str())?;
            let front = step.document.as_ref()?.front();
            let at = format!("/nodes/{}", node.index);
            let set = [(&node.value, "outputs"), (front, "outputs"), (front, "setsVariables")];
            sets.push(set.into_iter().flat_map(|(value, name)| names(value, name)).map(|(_, name)| name).collect());
            let mut read: BTreeMap<&str, (&str, String)> = BTreeMap::new();
            for (value, file, at) in [(front, step.path.as_str(), ""), (&node.value, workflow.graph_path.as_str(), &at)]
            {
                for (index, name) in names(value, "inputs") {
                    read.entry(name).or_insert_with(|| (file, format!("{at}/inputs/{index}")));
                }
            }
            reads.push(read);
        }
        Some(Self { given, sets, reads })
    }

    /// All that there are.
    pub(super) fn known(&self) -> BTreeSet<&'a str> {
        self.given.iter().chain(self.sets.iter().flatten()).copied().collect()
    }

    pub(super) fn check(&self, package: &Package, workflow: &Workflow, conditions: &[Read], findings: &mut Findings) {
        let known = self.known();
        self.check_unset(package, workflow, &known, findings);
        self.check_order(workflow, &known, conditions, findings);
    }

    /// What nobody sets: told once for each variable, where it is read first.
    fn check_unset(&self, package: &Package, workflow: &Workflow, known: &BTreeSet<&str>, findings: &mut Findings) {
        let mut unset: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, reads) in self.reads.iter().enumerate() {
            for name in reads.keys().filter(|name| !known.contains(*name)) {
                unset.entry(name).or_default().push(number);
            }
        }
        let is_entry = package.entry_workflow().is_some_and(|entry| entry.id == workflow.id);
        for (name, readers) in unset {
            let shown = readers.iter().take(READERS_SHOWN).map(|reader| format!("`{}`", workflow.nodes[*reader].id));
            let mut shown = shown.collect::<Vec<_>>().join(", ");
            if readers.len() > READERS_SHOWN {
                shown = format!("{shown} and {} more", readers.len() - READERS_SHOWN);
            }
            let verb = if readers.len() == 1 { "reads" } else { "read" };
            let other = if is_entry { "" } else { " here, unless a workflow that starts this one does" };
            let message = format!("{shown} {verb} `{name}`, and nothing sets it{other}");
            let (file, pointer) = &self.reads[readers[0]][name];
            // A workflow that another one starts may get its variables from that one.
            let severity = if is_entry { Severity::Error } else { Severity::Warning };
            let finding = Finding::error("VARIABLE_NEVER_SET", file, pointer.clone(), message);
            let finding = Finding { severity, ..finding };
            findings.add(finding.expected("a variable of the workflow").actual(name).hint(how_to_set(name, known)));
        }
    }

    /// What is set on no way to its reader, or not on all of them.
    fn check_order(&self, workflow: &Workflow, known: &BTreeSet<&str>, conditions: &[Read], findings: &mut Findings) {
        let of_steps = self.reads.iter().flat_map(BTreeMap::keys).copied();
        let read: BTreeSet<&str> = of_steps.chain(conditions.iter().map(|read| read.name.as_str())).collect();
        let followed: Vec<&str> =
            read.into_iter().filter(|name| known.contains(name) && !self.given.contains(name)).collect();
        let Some(shape) = Shape::of(workflow).filter(|shape| shape.mistaken_entry().is_none()) else { return };
        let Some(entry) = shape.entry else { return };
        if followed.is_empty() || followed.len().saturating_mul(workflow.nodes.len()) > FOLLOWED_MAX {
            return;
        }
        let index: HashMap<&str, usize> = followed.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        let made: Vec<Vec<usize>> =
            self.sets.iter().map(|sets| sets.iter().filter_map(|name| index.get(name).copied()).collect()).collect();
        let is_merge: Vec<bool> = workflow.nodes.iter().map(|node| node.kind == Some(NodeKind::Merge)).collect();
        let ways = Ways::follow(&shape.links, entry, &made, &is_merge, followed.len());
        for (number, reads) in self.reads.iter().enumerate().filter(|(number, _)| ways.reached[*number]) {
            for (name, (file, pointer)) in reads {
                let Some(&bit) = index.get(name) else { continue };
                let (some, all) = (ways.some[number].has(bit), ways.all[number].has(bit));
                // A merge takes what has come.
                if all || (some && is_merge[number]) {
                    continue;
                }
                let reader = format!("`{}`", workflow.nodes[number].id);
                findings.add(self.unset(workflow, (&reader, name), (file, pointer), some));
            }
        }
        let numbers: HashMap<&str, usize> =
            workflow.nodes.iter().enumerate().map(|(number, node)| (node.id.as_str(), number)).collect();
        for Read { from, name, pointer } in conditions {
            let (Some(&bit), Some(&number)) = (index.get(name.as_str()), numbers.get(from.as_str())) else { continue };
            // The node itself comes before what leads on from it.
            let is_set = ways.all[number].has(bit) || made[number].contains(&bit);
            let some = ways.some[number].has(bit);
            // What the step reads itself has its own finding.
            let is_told = self.reads[number].contains_key(name.as_str());
            if !ways.reached[number] || is_set || is_told || (some && is_merge[number]) {
                continue;
            }
            let reader = format!("the condition of a way that leads on from `{from}`");
            findings.add(self.unset(workflow, (&reader, name), (&workflow.graph_path, pointer), some));
        }
    }

    /// A variable that is set on no way to its reader, or on `some` of them.
    fn unset(&self, workflow: &Workflow, (reader, name): (&str, &str), at: (&str, &str), some: bool) -> Finding {
        let (file, pointer) = at;
        let setters = workflow.nodes.iter().zip(&self.sets).filter(|(_, sets)| sets.contains(name));
        let setter = setters.map(|(node, _)| node.id.as_str()).next().unwrap_or_default();
        let finding = if some {
            let message = format!("not each way to {reader} sets `{name}`, which it reads");
            Finding::warning("VARIABLE_MAYBE_UNSET", file, pointer, message).expected("set on each way")
        } else {
            let message = format!("{reader} reads `{name}` before it is set: `{setter}` sets it later");
            Finding::error("VARIABLE_READ_BEFORE_SET", file, pointer, message).expected("set by a step on the way here")
        };
        let hint = format!("set `{name}` in an earlier step, or give it a value in `variables` of workflow.md");
        finding.actual(name).hint(hint)
    }
}

/// What to do about a variable that nothing sets.
pub(super) fn how_to_set(name: &str, known: &BTreeSet<&str>) -> String {
    let how =
        "add it to the `outputs` of the step that sets it, or to `variables` in workflow.md, or no longer read it";
    match nearest(name, known.iter().copied()).first() {
        Some(meant) => format!("write `{meant}` if that is meant; else {how}"),
        None => how.to_owned(),
    }
}

/// The names in a list of variables. One that is a path names a file.
fn names<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let list = value.get(field).and_then(Value::as_array).into_iter().flatten().enumerate();
    list.filter_map(|(at, name)| Some((at, name.as_str()?))).filter(|(_, name)| !name.is_empty() && !name.contains('/'))
}

/// A set of numbered variables.
#[derive(Clone, PartialEq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize, is_set: bool) -> Self {
        Self(vec![if is_set { u64::MAX } else { 0 }; count.div_ceil(64)])
    }

    fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn add(&mut self, bits: &[usize]) {
        for bit in bits {
            self.0[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (one, other) in self.0.iter_mut().zip(&other.0) {
            *one = with(*one, *other);
        }
    }
}

/// What is set when a node begins.
struct Ways {
    reached: Vec<bool>,
    /// On some way to it.
    some: Vec<Bits>,
    /// On each.
    all: Vec<Bits>,
}

impl Ways {
    /// Follows all ways from the entry until nothing more is learned. Where branches meet in a merge, all of them have been
    /// gone.
    fn follow(links: &Links, entry: usize, made: &[Vec<usize>], is_merge: &[bool], variables: usize) -> Self {
        let reached = links.reached(&[entry]);
        let mut some = vec![Bits::new(variables, false); made.len()];
        let mut all = vec![Bits::new(variables, true); made.len()];
        all[entry] = Bits::new(variables, false);
        // Nodes before those that they lead to, so that few rounds are enough.
        let order: Vec<usize> = links.finished().into_iter().rev().filter(|node| reached[*node]).collect();
        let mut is_stable = false;
        while !is_stable {
            is_stable = true;
            for &node in &order {
                let joins = is_merge[node];
                let mut some_here = Bits::new(variables, false);
                let mut all_here = Bits::new(variables, !joins && node != entry);
                for &before in links.into(node).iter().filter(|before| reached[**before]) {
                    let with = |bits: &Bits| {
                        let mut bits = bits.clone();
                        bits.add(&made[before]);
                        bits
                    };
                    some_here.merge(&with(&some[before]), |one, other| one | other);
                    match joins {
                        true => all_here.merge(&with(&all[before]), |one, other| one | other),
                        false => all_here.merge(&with(&all[before]), |one, other| one & other),
                    }
                }
                is_stable &= some_here == some[node] && all_here == all[node];
                (some[node], all[node]) = (some_here, all_here);
            }
        }
        Self { reached, some, all }
    }
}
