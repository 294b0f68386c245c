//! The shape of a graph: it begins at one place, all of it is reached, and each way comes to an end.

use std::collections::{BTreeSet, HashMap};

use crate::finding::{Finding, Findings};
use crate::graph::Links;
use crate::package::{Node, NodeKind, Workflow};

/// Nodes that one message names.
pub(super) const NAMED_MAX: usize = 5;

pub(super) fn check(workflow: &Workflow, findings: &mut Findings) {
    let Some(shape) = Shape::of(workflow) else { return };
    let ends_well = shape.check_ends(findings);
    let enters_well = shape.check_entry(findings);
    let mut is_right = ends_well && enters_well;
    for members in shape.links.cycles() {
        is_right &= shape.check_cycle(&members, ends_well, findings);
    }
    is_right &= shape.check_inner_cycles(findings);
    // What is not reached follows from what was told already.
    if let (true, Some(entry)) = (is_right, shape.entry) {
        shape.check_reached(entry, findings);
    }
}

/// A graph whose nodes have ids of their own and whose edges lead from a node to a node.
pub(super) struct Shape<'a> {
    workflow: &'a Workflow,
    pub(super) links: Links,
    /// Where it begins, if that node is there.
    pub(super) entry: Option<usize>,
}

impl<'a> Shape<'a> {
    /// None where a node or an edge has a finding of its own.
    pub(super) fn of(workflow: &'a Workflow) -> Option<Self> {
        let numbers: HashMap<&str, usize> =
            workflow.nodes.iter().enumerate().map(|(number, node)| (node.id.as_str(), number)).collect();
        if numbers.len() < workflow.nodes.len() || !workflow.is_whole() {
            return None;
        }
        let number = |id: &str| numbers.get(id).copied();
        let edges: Option<Vec<(usize, usize)>> =
            workflow.edges.iter().map(|edge| Some((number(&edge.from)?, number(&edge.to)?))).collect();
        let links = Links::new(workflow.nodes.len(), edges?);
        let entry = workflow.entry_node_id.as_deref().and_then(number);
        Some(Self { workflow, links, entry })
    }

    /// The node that has to be the entry, where the graph names another one that it leads to.
    pub(super) fn mistaken_entry(&self) -> Option<usize> {
        let entered = self.entry?;
        match self.links.roots().as_slice() {
            // A loop may lead back to the start, so the graph's own word says where it begins.
            [only] if *only != entered && self.links.reached(&[*only])[entered] => Some(*only),
            _ => None,
        }
    }

    fn id(&self, number: usize) -> &str {
        &self.workflow.nodes[number].id
    }

    fn check_entry(&self, findings: &mut Findings) -> bool {
        let (graph, at) = (&self.workflow.graph_path, "/entryNodeId");
        let Some(entry) = self.workflow.entry_node_id.as_deref() else { return false };
        let Some(entered) = self.entry else {
            let finding = Finding::error("ENTRY_NODE_MISSING", graph, at, format!("there is no node `{entry}`"));
            findings.add(finding.expected("the id of a node").actual(entry).hint("name the first node"));
            return false;
        };
        if let Some(meant) = self.mistaken_entry() {
            let meant = self.id(meant);
            let message = format!(
                "nothing leads to `{meant}`: it is the entry, or the edge that should lead to it is missing or leads elsewhere"
            );
            let finding = Finding::error("ENTRY_MISMATCH", graph, at, message).expected(meant).actual(entry);
            findings.add(finding.hint(format!("let an edge lead to `{meant}`, or write `{meant}` as the entry")));
            return false;
        }
        let roots = self.links.roots();
        // Where the entry is one of several, the others are those that are not reached.
        if let [first, _, ..] = roots.as_slice()
            && !roots.contains(&entered)
        {
            let names: Vec<String> = roots.iter().take(NAMED_MAX).map(|root| format!("`{}`", self.id(*root))).collect();
            let more = if roots.len() > NAMED_MAX { " and others" } else { "" };
            let message = format!("nothing leads to {}{more}, so each of them could be the entry", names.join(", "));
            let finding = Finding::warning("ENTRY_AMBIGUOUS", graph, at, message).actual(entry);
            findings.add(finding.expected(self.id(*first)).hint("add edges to those that are not the entry"));
            return false;
        }
        true
    }

    /// Each node is reached from the entry. Of those that are not, the first ones have a finding: what follows them would
    /// be reached with them.
    fn check_reached(&self, entry: usize, findings: &mut Findings) {
        let mut told = self.unreached(entry);
        told.sort_unstable();
        for (first, behind) in told {
            let node = &self.workflow.nodes[first];
            let with = match behind {
                0 => String::new(),
                1 => ", nor to the node behind it".to_owned(),
                count => format!(", nor to the {count} nodes behind it"),
            };
            let message = format!("no way leads from the entry to `{}`{with}", node.id);
            let pointer = format!("/nodes/{}", node.index);
            let finding = Finding::warning("NODE_UNREACHABLE", &self.workflow.graph_path, pointer, message);
            let hint = format!("add an edge that leads to `{}`, or take the node out", node.id);
            findings.add(finding.expected("a way from the entry").actual("none").hint(hint));
        }
    }

    /// The first nodes of what is not reached from the entry, each with the number of nodes that are reached through it.
    fn unreached(&self, entry: usize) -> Vec<(usize, usize)> {
        let mut reached = self.links.reached(&[entry]);
        let mut found = Vec::new();
        // Each node stands before those that it leads to.
        for first in self.links.finished().into_iter().rev() {
            if reached[first] {
                continue;
            }
            let behind = self.links.reached(&[first]);
            let count = (0..reached.len()).filter(|node| behind[*node] && !reached[*node] && *node != first).count();
            for (reached, behind) in reached.iter_mut().zip(&behind) {
                *reached |= behind;
            }
            found.push((first, count));
        }
        found
    }

    /// Each way comes to an end, and an end is the end.
    fn check_ends(&self, findings: &mut Findings) -> bool {
        let workflow = self.workflow;
        let graph = &workflow.graph_path;
        // What is no known type has its own finding, and may be meant as an end.
        if workflow.nodes.iter().all(|node| node.kind.is_some_and(|kind| kind != NodeKind::End)) {
            let message = format!("`{graph}` has no node of the type `end`");
            let finding = Finding::error("END_MISSING", graph, "/nodes", message).expected("a node of the type `end`");
            let last = workflow.nodes.iter().enumerate().filter(|(number, _)| self.links.out(*number).is_empty());
            let last: Vec<String> = last.take(NAMED_MAX).map(|(_, node)| format!("`{}`", node.id)).collect();
            let hint = match last.as_slice() {
                [] => "add an `end` node, and the edges that lead to it".to_owned(),
                [one] => {
                    format!("give {one}, which leads nowhere, the type `end`; or add an `end` node and edges to it")
                }
                several => {
                    let names = several.join(", ");
                    format!(
                        "give each of {names}, which lead nowhere, the type `end`; or add an `end` node and edges to it"
                    )
                }
            };
            findings.add(finding.actual("none").hint(hint));
            return false;
        }
        let mut ends_well = true;
        let ends: BTreeSet<&str> = workflow
            .nodes
            .iter()
            .filter(|node| node.kind == Some(NodeKind::End))
            .map(|node| node.id.as_str())
            .collect();
        for edge in workflow.edges.iter().filter(|edge| ends.contains(edge.from.as_str())) {
            let message = format!("an edge leads from `{}` to `{}`, but `{}` is an end", edge.from, edge.to, edge.from);
            let finding = Finding::error("END_WITH_EDGE", graph, format!("/edges/{}/from", edge.index), message);
            let hint = format!("take the edge out, or give `{}` another type", edge.from);
            findings.add(finding.expected("a node that is no end").actual(&edge.from).hint(hint));
            ends_well = false;
        }
        if workflow.edges.is_empty() && workflow.nodes.len() > 1 {
            let message = format!("the graph `{graph}` has {} nodes and no edges", workflow.nodes.len());
            let finding =
                Finding::error("EDGES_MISSING", graph, "/edges", message).expected("the ways between the nodes");
            findings.add(finding.actual("none").hint("add an edge for each way, with `from` and `to`"));
            return false;
        }
        let is_dead_end = |node: &Node, number: usize| {
            node.kind.is_some_and(|kind| kind != NodeKind::End) && self.links.out(number).is_empty()
        };
        for (number, node) in workflow.nodes.iter().enumerate().filter(|(number, node)| is_dead_end(node, *number)) {
            let message = format!("no edge leads on from `{}`, and it is no end", self.id(number));
            let finding = Finding::error("DEAD_END", graph, format!("/nodes/{}", node.index), message);
            let finding = finding.expected("an edge to the next node, or the type `end`").actual("neither");
            findings.add(finding.hint("add the edge, or make it an `end`"));
            ends_well = false;
        }
        ends_well
    }

    /// A loop inside of a larger one has a decision of its own. One of a whole loop without any has been told.
    fn check_inner_cycles(&self, findings: &mut Findings) -> bool {
        let decides = |number: usize| {
            // What is no known type has its own finding, and may be meant as a decision.
            self.workflow.nodes[number].kind.is_none_or(|kind| kind == NodeKind::Decision)
        };
        let count = self.workflow.nodes.len();
        let inside = (0..count).filter(|from| !decides(*from)).flat_map(|from| {
            self.links.out(from).iter().filter(|to| !decides(**to)).map(move |to| (from, *to)).collect::<Vec<_>>()
        });
        let whole: Vec<Vec<usize>> = self.links.cycles();
        let mut is_right = true;
        for members in Links::new(count, inside).cycles().into_iter().filter(|inner| !whole.contains(inner)) {
            let shown = self.shown(&members);
            let message = format!("the loop of {shown} has no decision, so nothing can end it");
            let pointer = format!("/nodes/{}", self.workflow.nodes[members[0]].index);
            let finding = Finding::error("CYCLE_MISSING_DECISION", &self.workflow.graph_path, pointer, message);
            let finding = finding.expected("a decision node in the loop").actual(&shown);
            findings.add(finding.hint("make one of them a decision"));
            is_right = false;
        }
        is_right
    }

    /// The first nodes of some, for a message.
    fn shown(&self, members: &[usize]) -> String {
        let shown: Vec<&str> = members.iter().take(NAMED_MAX).map(|member| self.id(*member)).collect();
        format!("{}{}", shown.join(", "), if members.len() > NAMED_MAX { " …" } else { "" })
    }

    /// A loop is legal if something decides about it and something leads out of it.
    fn check_cycle(&self, members: &[usize], ends_well: bool, findings: &mut Findings) -> bool {
        let workflow = self.workflow;
        let first = &workflow.nodes[members[0]];
        let pointer = format!("/nodes/{}", first.index);
        let shown = self.shown(members);
        let mut is_right = true;
        let leaves = |member: &usize| self.links.out(*member).iter().any(|to| members.binary_search(to).is_err());
        let has_exit = !ends_well || members.iter().any(leaves);
        let is_lost = self.entry.is_some_and(|entry| !self.links.reached(&[entry])[members[0]]);
        let unreached = if is_lost { "; and no way leads to it from the entry" } else { "" };
        // What is no known type has its own finding, and may be meant as a decision.
        let decides = |kind: Option<NodeKind>| kind.is_none_or(|kind| kind == NodeKind::Decision);
        if !members.iter().any(|member| decides(workflow.nodes[*member].kind)) {
            let (also, hint) = if has_exit {
                ("", "make one of them a decision")
            } else {
                (" and no way out", "make one of them a decision, and add an edge that leaves the loop")
            };
            let message = format!("the loop of {shown} has no decision{also}, so nothing can end it{unreached}");
            let finding = Finding::error("CYCLE_MISSING_DECISION", &workflow.graph_path, &pointer, message);
            let finding = finding.expected("a decision node in the loop").actual(&shown);
            findings.add(finding.hint(hint));
            is_right = false;
        } else if !has_exit {
            let message = format!("no edge leads out of the loop of {shown}{unreached}");
            let finding = Finding::error("CYCLE_MISSING_EXIT", &workflow.graph_path, &pointer, message);
            let lost = self.entry.and_then(|entry| self.unreached(entry).into_iter().next());
            let lost = lost.filter(|(lost, _)| !members.contains(lost));
            let hint = match lost {
                Some((lost, _)) => {
                    format!("add an edge that leaves it, perhaps to `{}`, which nothing leads to", self.id(lost))
                }
                None => "add an edge that leaves it".to_owned(),
            };
            findings.add(finding.expected("an edge that leaves the loop").actual(&shown).hint(hint));
            is_right = false;
        }
        is_right
    }
}
