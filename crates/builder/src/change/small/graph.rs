//! A graph, edited node by node and edge by edge.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use toolhost_contract::nearest;

use super::{Made, set_fields};
use crate::change::Implied;
use crate::change::set::{EdgeName, SmallEdits};
use crate::finding::Finding;
use crate::limits::ID_BYTES_MAX;
use crate::refs::Object;

type Fields = Map<String, Value>;

/// Gives ids to the edges of a whole graph that have none, each one that says its ends.
pub(super) fn name_edges(object: &Object, graph: &mut Value, implied: &mut Vec<Implied>) {
    let Some(edges) = graph.get_mut("edges").and_then(Value::as_array_mut) else { return };
    let mut taken: BTreeSet<String> =
        edges.iter().filter_map(|edge| edge.get("id")?.as_str().map(str::to_owned)).collect();
    let mut count = 0;
    for edge in edges.iter_mut().filter_map(Value::as_object_mut).filter(|edge| !edge.contains_key("id")) {
        let (Some(from), Some(to)) = (text(edge, "from"), text(edge, "to")) else { continue };
        let id = edge_id(from, to, |id| taken.contains(id));
        edge.shift_insert(0, "id".to_owned(), json!(id));
        taken.insert(id);
        count += 1;
    }
    let says = match count {
        0 => return,
        1 => "an edge has no id, and gets one that says its ends".to_owned(),
        count => format!("{count} edges have no id, and get ids that say their ends"),
    };
    implied.push(Implied { object: object.clone(), says });
}

/// An id that says the ends of an edge, so that those of two sessions differ.
fn edge_id(from: &str, to: &str, is_taken: impl Fn(&str) -> bool) -> String {
    // An id is ASCII, and room is left for a number behind it.
    let id: String = format!("{from}--{to}").chars().filter(char::is_ascii).take(ID_BYTES_MAX - 8).collect();
    let ids = (2..).map(|n| format!("{id}-{n}"));
    std::iter::once(id.clone()).chain(ids).find(|id| !is_taken(id)).unwrap_or_default()
}

/// The graph of a workflow as a value.
pub(super) struct Graph<'a> {
    object: &'a Object,
    value: Value,
    nodes: Vec<Fields>,
    edges: Vec<Fields>,
    /// Edges that went with a node, each with that node.
    gone: Vec<(Fields, String)>,
    /// Edges that the set takes out by name.
    deleted: Vec<Fields>,
}

impl<'a> Graph<'a> {
    pub(super) fn parse(object: &'a Object, text: &str) -> Made<Self> {
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
        let list = |name: &str| -> Option<Vec<Fields>> {
            value.get(name)?.as_array()?.iter().map(|item| item.as_object().cloned()).collect()
        };
        let (Some(nodes), Some(edges)) = (list("nodes"), list("edges")) else {
            let message = format!("the graph of `{object}` is not one that can be edited in parts");
            let finding = Finding::error("GRAPH_NOT_EDITABLE", "", "", message);
            return Err(Box::new(finding.expected("lists of nodes and edges").hint("give `graph_json`")));
        };
        Ok(Self { object, nodes, edges, gone: Vec::new(), deleted: Vec::new(), value })
    }

    pub(super) fn into_value(mut self) -> Value {
        self.value["nodes"] = json!(self.nodes);
        self.value["edges"] = json!(self.edges);
        self.value
    }

    /// Makes the edits of a set, all that can be made.
    ///
    /// # Errors
    /// What cannot be made of them.
    pub(super) fn change(&mut self, edits: &SmallEdits, implied: &mut Vec<Implied>) -> Result<(), Vec<Finding>> {
        let mut findings = Vec::new();
        let mut note = |done: Made<()>| findings.extend(done.err().map(|finding| *finding));
        for name in &edits.delete_edges {
            note(self.edge_named(name).map(|at| self.deleted.push(self.edges.remove(at))));
        }
        for id in &edits.delete_nodes {
            note(self.delete_node(id, implied));
        }
        for wanted in &edits.nodes {
            self.put_node(wanted, implied);
        }
        let before = self.edges.len();
        for wanted in &edits.edges {
            let wanted = self.in_place_of(wanted, &edits.edges, implied);
            note(self.put_edge(&wanted, implied));
        }
        self.former_is_default(before, implied);
        if let Some(id) = &edits.entry_node_id {
            note(self.node_named(id).map(|_| self.value["entryNodeId"] = json!(id)));
        }
        if findings.is_empty() { Ok(()) } else { Err(findings) }
    }

    /// A new edge, with what the way said whose place it takes: from `a` to `c` one was deleted, and new edges lead from `a` to
    /// `b` and from there to `c`. When the way is taken is said by its first part.
    fn in_place_of(&self, wanted: &Fields, all: &[Fields], implied: &mut Vec<Implied>) -> Fields {
        let mut edge = wanted.clone();
        let (Some(from), Some(to)) = (text(wanted, "from"), text(wanted, "to")) else { return edge };
        let leads_on = |gone: &&Fields| {
            let end = text(gone, "to");
            text(gone, "from") == Some(from)
                && all.iter().any(|on| text(on, "from") == Some(to) && text(on, "to") == end)
        };
        let Some(gone) = self.deleted.iter().find(leads_on).filter(|_| self.edges_between(from, to, None).is_empty())
        else {
            return edge;
        };
        let is_said = |name: &&str| gone.get(*name).is_some_and(|value| !value.is_null() && *value != json!(false));
        let when: Vec<&str> = ["isDefault", "conditionText", "conditionExpr"].into_iter().filter(is_said).collect();
        // One that is always taken says nothing that has to be kept.
        let kept = if when.is_empty() { Vec::new() } else { [&["label"], when.as_slice()].concat() };
        let has_own = |wanted: &Fields| wanted.contains_key("conditionText") || wanted.contains_key("conditionExpr");
        let names = kept.into_iter().filter(|name| !wanted.contains_key(*name));
        let names: Vec<&str> = names.filter(|name| !(name.starts_with("condition") && has_own(wanted))).collect();
        for name in &names {
            edge.extend(gone.get(*name).map(|value| ((*name).to_owned(), value.clone())));
        }
        if !names.is_empty() {
            let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let end = text(gone, "to").unwrap_or_default();
            let says =
                format!("the edge from `{from}` to `{to}` has {names} of the edge to `{end}`, whose place it takes");
            self.imply(implied, says);
        }
        edge
    }

    /// Beside a new way out that has a condition, the only way that was there before is the one without: the default.
    fn former_is_default(&mut self, before: usize, implied: &mut Vec<Implied>) {
        let froms: BTreeSet<String> =
            self.edges[before..].iter().filter_map(|edge| text(edge, "from").map(str::to_owned)).collect();
        for from in froms {
            let is_own = |edge: &Fields| text(edge, "from") == Some(from.as_str());
            let (former, new) = self.edges.split_at_mut(before);
            let mut former: Vec<&mut Fields> = former.iter_mut().filter(|edge| is_own(edge)).collect();
            let new: Vec<&mut Fields> = new.iter_mut().filter(|edge| is_own(edge)).collect();
            let [only] = former.as_mut_slice() else { continue };
            if let Some(to) = default_beside(only, new.iter().map(|edge| &**edge)) {
                self.imply(
                    implied,
                    format!("the way from `{from}` to `{to}` is the default, as it alone has no condition"),
                );
            }
        }
    }

    fn delete_node(&mut self, id: &str, implied: &mut Vec<Implied>) -> Made<()> {
        let at = self.node_named(id)?;
        self.nodes.remove(at);
        let before = self.edges.len();
        let is_at = |edge: &Fields| text(edge, "from") == Some(id) || text(edge, "to") == Some(id);
        self.gone.extend(self.edges.iter().filter(|edge| is_at(edge)).map(|edge| (edge.clone(), id.to_owned())));
        self.edges.retain(|edge| !is_at(edge));
        match before - self.edges.len() {
            0 => {}
            1 => self.imply(implied, format!("the edge at `{id}` goes with it")),
            gone => self.imply(implied, format!("{gone} edges at `{id}` go with it")),
        }
        Ok(())
    }

    fn put_node(&mut self, wanted: &Fields, implied: &mut Vec<Implied>) {
        let id = text(wanted, "id").unwrap_or_default();
        if let Some(node) = self.nodes.iter_mut().find(|node| text(node, "id") == Some(id)) {
            set_fields(node, wanted);
            return;
        }
        let mut node = Fields::new();
        node.insert("id".to_owned(), json!(id));
        node.insert("type".to_owned(), json!("step"));
        node.insert("file".to_owned(), json!(format!("steps/{id}.md")));
        set_fields(&mut node, wanted);
        let given = ["type", "file"].into_iter().filter(|name| !wanted.contains_key(*name));
        let given: Vec<String> =
            given.map(|name| format!("`{name}` is `{}`", text(&node, name).unwrap_or_default())).collect();
        if !given.is_empty() {
            self.imply(implied, format!("of the new node `{id}` {}, as nothing else is said", given.join(" and ")));
        }
        self.nodes.push(node);
    }

    fn put_edge(&mut self, wanted: &Fields, implied: &mut Vec<Implied>) -> Made<()> {
        let at = match self.edge_meant(wanted)? {
            Some(at) => {
                self.tell_changed(at, wanted, implied);
                set_fields(&mut self.edges[at], wanted);
                at
            }
            None => {
                let edge = self.new_edge(wanted, implied)?;
                self.edges.push(edge);
                self.edges.len() - 1
            }
        };
        if wanted.get("isDefault") == Some(&Value::Bool(true)) {
            self.only_default(at, implied);
        }
        Ok(())
    }

    /// Tells which texts an edge loses. An author who names an edge only by its ends may have meant to add a second one.
    fn tell_changed(&self, at: usize, wanted: &Fields, implied: &mut Vec<Implied>) {
        let edge = &self.edges[at];
        let (Some(id), None) = (text(edge, "id"), text(wanted, "id")) else { return };
        let lost: Vec<String> = ["label", "conditionText"]
            .into_iter()
            .filter(|name| wanted.get(*name).is_some_and(|new| edge.get(*name).is_some_and(|former| former != new)))
            .map(|name| format!("`{name}` was `{}`", text(edge, name).unwrap_or_default()))
            .collect();
        if !lost.is_empty() {
            let lost = lost.join(" and ");
            self.imply(
                implied,
                format!("this changes the edge `{id}`, whose {lost}; a second way there needs an `id` of its own"),
            );
        }
    }

    /// The edge with this id; without an id the one with these ends and this label, or the only one with these ends, whose
    /// label then changes, as that of a transition does. A second edge with the same ends is given an id.
    fn edge_meant(&self, wanted: &Fields) -> Made<Option<usize>> {
        if let Some(id) = text(wanted, "id") {
            return Ok(self.edges.iter().position(|edge| text(edge, "id") == Some(id)));
        }
        let (Some(from), Some(to)) = (text(wanted, "from"), text(wanted, "to")) else {
            let message = format!("an edge of `{}` is named by its `id`, or by `from` and `to`", self.object);
            return Err(Box::new(Finding::error("EDGE_UNNAMED", "", "", message).hint("name it")));
        };
        let label = text(wanted, "label");
        let found = self.edges_between(from, to, label);
        match (found.as_slice(), self.edges_between(from, to, None).as_slice()) {
            ([at], _) | ([], [at]) => Ok(Some(*at)),
            ([], _) => Ok(None),
            (several, _) => Err(Box::new(self.which_edge(from, to, several))),
        }
    }

    fn edges_between(&self, from: &str, to: &str, label: Option<&str>) -> Vec<usize> {
        let is_meant = |edge: &Fields| {
            text(edge, "from") == Some(from)
                && text(edge, "to") == Some(to)
                && label.is_none_or(|label| text(edge, "label") == Some(label))
        };
        self.edges.iter().enumerate().filter(|(_, edge)| is_meant(edge)).map(|(at, _)| at).collect()
    }

    fn new_edge(&self, wanted: &Fields, implied: &mut Vec<Implied>) -> Made<Fields> {
        let (Some(from), Some(to)) = (text(wanted, "from"), text(wanted, "to")) else {
            let id = text(wanted, "id").unwrap_or_default();
            if let Some((gone, node)) = self.gone.iter().find(|(edge, _)| text(edge, "id") == Some(id)) {
                return self.led_elsewhere(gone, node, wanted, implied);
            }
            let known = self.edges.iter().filter_map(|edge| text(edge, "id"));
            return Err(Box::new(not_found("edge", self.object, id, known)));
        };
        for end in [from, to] {
            self.node_named(end)?;
        }
        let taken: BTreeSet<&str> = self.edges.iter().filter_map(|edge| text(edge, "id")).collect();
        let id = edge_id(from, to, |id| taken.contains(id));
        let mut edge = Fields::new();
        let label = self.title_of(to);
        for (name, value) in [("id", id.as_str()), ("from", from), ("to", to), ("label", label)] {
            edge.insert(name.to_owned(), json!(value));
        }
        if text(wanted, "label").is_none() {
            self.imply(implied, format!("the edge from `{from}` to `{to}` has the label `{label}`, as none is given"));
        }
        set_fields(&mut edge, wanted);
        Ok(edge)
    }

    /// An edge of a node that the set deletes, which it leads to another node, or from one.
    fn led_elsewhere(&self, gone: &Fields, node: &str, wanted: &Fields, implied: &mut Vec<Implied>) -> Made<Fields> {
        let mut edge = gone.clone();
        set_fields(&mut edge, wanted);
        let (id, ends) = (text(gone, "id").unwrap_or_default(), [text(&edge, "from"), text(&edge, "to")]);
        if ends.contains(&Some(node)) {
            let message =
                format!("the edge `{id}` of `{}` goes with the node `{node}`, which the set deletes", self.object);
            let finding = Finding::error("TARGET_NOT_FOUND", "", "", message).actual(id);
            let hint = format!("say where it leads instead of `{node}`, in `from` or `to`");
            return Err(Box::new(finding.hint(hint)));
        }
        for end in ends.into_iter().flatten() {
            self.node_named(end)?;
        }
        let [from, to] = ends.map(Option::unwrap_or_default);
        self.imply(implied, format!("the edge `{id}` does not go with `{node}`: it leads from `{from}` to `{to}`"));
        Ok(edge)
    }

    /// What a node is called for people.
    fn title_of<'b>(&'b self, id: &'b str) -> &'b str {
        let node = self.nodes.iter().find(|node| text(node, "id") == Some(id));
        node.and_then(|node| text(node, "title")).filter(|title| !title.is_empty()).unwrap_or(id)
    }

    /// One way out is the default.
    fn only_default(&mut self, at: usize, implied: &mut Vec<Implied>) {
        let from = text(&self.edges[at], "from").unwrap_or_default().to_owned();
        let mut former = Vec::new();
        for (index, edge) in self.edges.iter_mut().enumerate() {
            let is_other = index != at && text(edge, "from") == Some(from.as_str());
            if is_other && edge.get("isDefault") == Some(&Value::Bool(true)) {
                edge.shift_remove("isDefault");
                former.push(text(edge, "to").unwrap_or_default().to_owned());
            }
        }
        for to in former {
            self.imply(implied, format!("the way from `{from}` to `{to}` is no longer the default"));
        }
    }

    fn edge_named(&self, name: &EdgeName) -> Made<usize> {
        match name {
            EdgeName::Id(id) => {
                let known = || self.edges.iter().filter_map(|edge| text(edge, "id"));
                let found = self.edges.iter().position(|edge| text(edge, "id") == Some(id));
                found.ok_or_else(|| Box::new(not_found("edge", self.object, id, known())))
            }
            EdgeName::Ends { from, to, label } => match self.edges_between(from, to, label.as_deref()).as_slice() {
                [] => {
                    let message = format!("`{}` has no such edge from `{from}` to `{to}`", self.object);
                    Err(Box::new(Finding::error("EDGE_NOT_FOUND", "", "", message).hint("read the graph again")))
                }
                [at] => Ok(*at),
                several => Err(Box::new(self.which_edge(from, to, several))),
            },
        }
    }

    fn which_edge(&self, from: &str, to: &str, several: &[usize]) -> Finding {
        let labels: Vec<String> =
            several.iter().map(|at| format!("`{}`", text(&self.edges[*at], "label").unwrap_or_default())).collect();
        let message = format!("{} edges lead from `{from}` to `{to}`: {}", several.len(), labels.join(", "));
        Finding::error("EDGE_UNCLEAR", "", "", message).expected("one of them").hint("name its `label`, or its `id`")
    }

    fn node_named(&self, id: &str) -> Made<usize> {
        let found = self.nodes.iter().position(|node| text(node, "id") == Some(id));
        let known = || self.nodes.iter().filter_map(|node| text(node, "id"));
        found.ok_or_else(|| Box::new(not_found("node", self.object, id, known())))
    }

    fn imply(&self, implied: &mut Vec<Implied>, says: String) {
        implied.push(Implied { object: self.object.clone(), says });
    }
}

/// Makes the only former way out of a node the default where each new one has a condition, and none is the default;
/// answers where it leads.
pub(super) fn default_beside<'a>(former: &mut Fields, mut new: impl Iterator<Item = &'a Fields>) -> Option<String> {
    let has_condition = |way: &Fields| {
        let said = |name: &str| way.get(name).is_some_and(|value| !value.is_null() && *value != json!(""));
        said("conditionText") || said("conditionExpr")
    };
    let is_default = |way: &Fields| way.get("isDefault") == Some(&Value::Bool(true));
    if is_default(former) || has_condition(former) || !new.all(|way| has_condition(way) && !is_default(way)) {
        return None;
    }
    former.insert("isDefault".to_owned(), json!(true));
    Some(text(former, "to").unwrap_or_default().to_owned())
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}

fn not_found<'a>(what: &str, object: &Object, name: &str, known: impl Iterator<Item = &'a str>) -> Finding {
    let message = format!("`{object}` has no {what} `{name}`");
    let code = format!("{}_NOT_FOUND", what.to_uppercase());
    let finding = Finding::error(&code, "", "", message).actual(name);
    finding.hint(match nearest(name, known).first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "read the graph again, and name what is there".to_owned(),
    })
}
