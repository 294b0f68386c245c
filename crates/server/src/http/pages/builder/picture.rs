//! The graph of a workflow as a picture, and the same as a list for whom a picture says nothing.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use serde_json::Value;
use toolhost_builder::change::{Change, GraphDiff};
use toolhost_contract::visible_line;

use super::super::text::short;
use super::layout::{NODE_HEIGHT, NODE_WIDTH, Way, layout};

/// Characters of a text in a node, and beside an edge.
const NODE_CHARS_MAX: usize = 22;
const EDGE_CHARS_MAX: usize = 16;
/// Nodes in the list.
const LISTED_MAX: usize = 1000;

/// A graph as it is drawn.
#[derive(Template)]
#[template(path = "builder/picture.html")]
pub(super) struct Picture {
    /// What it shows, in words.
    label: String,
    width: usize,
    height: usize,
    /// Whether it is drawn; one that is too large is a list alone.
    is_drawn: bool,
    nodes: Vec<NodeShape>,
    edges: Vec<EdgeShape>,
    list: Vec<ListedNode>,
    /// Nodes that the list leaves out.
    more: usize,
    /// Whether the list is shown in full beside the picture, or unfolded on demand.
    is_open: bool,
}

struct NodeShape {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    class: String,
    full: String,
    name: String,
    detail: String,
    href: Option<String>,
    /// What became of it, as a sign and a word.
    mark: Option<(&'static str, &'static str)>,
}

struct EdgeShape {
    path: String,
    arrow: String,
    class: String,
    full: String,
    label: String,
    label_x: usize,
    label_y: usize,
}

/// A node in the list, with where it leads.
struct ListedNode {
    name: String,
    href: Option<String>,
    detail: String,
    mark: Option<&'static str>,
    leads_to: Vec<ListedEdge>,
}

struct ListedEdge {
    name: String,
    label: String,
    mark: Option<&'static str>,
}

struct Node<'g> {
    id: &'g str,
    value: &'g Value,
}

struct Edge<'g> {
    ends: (usize, usize),
    value: &'g Value,
}

/// Which side of a change a graph is.
#[derive(Clone, Copy)]
pub(super) enum Side<'d> {
    /// It is the graph as it is.
    Only,
    Before(&'d GraphDiff),
    After(&'d GraphDiff),
}

/// The widest picture that is whole in one of two columns, in pixels.
const HALF_PAGE: usize = 440;

impl Picture {
    /// Whether two pictures of this width fit beside each other on a screen of 1,280 pixels.
    fn fits_beside(&self) -> bool {
        !self.is_drawn || self.width <= HALF_PAGE
    }

    /// Draws a graph. `href` is where a node leads.
    pub(super) fn of(graph: &Value, label: &str, side: Side<'_>, href: impl Fn(&str) -> Option<String>) -> Self {
        let (nodes, edges) = read(graph);
        let marks = Marks::of(side);
        let pairs: Vec<(usize, usize)> = edges.iter().map(|edge| edge.ends).collect();
        let drawn = layout(nodes.len(), &pairs).filter(|_| !nodes.is_empty());
        let mut picture = Self {
            label: visible_line(label),
            width: drawn.as_ref().map_or(0, |drawn| drawn.width),
            height: drawn.as_ref().map_or(0, |drawn| drawn.height),
            is_drawn: drawn.is_some(),
            nodes: Vec::new(),
            edges: Vec::new(),
            list: listed(&nodes, &edges, &marks, &href),
            more: nodes.len().saturating_sub(LISTED_MAX),
            is_open: matches!(side, Side::Only),
        };
        let Some(drawn) = drawn else { return picture };
        picture.nodes = nodes.iter().zip(&drawn.nodes).map(|(node, at)| node.shape(*at, &marks, &href)).collect();
        picture.edges = edges.iter().zip(&drawn.ways).map(|(edge, way)| edge.shape(way, &nodes, &marks)).collect();
        picture
    }
}

/// A graph before and after a change, each where it is there.
#[derive(Template)]
#[template(path = "builder/pictures.html")]
pub(super) struct Pictures {
    before: Option<Picture>,
    after: Option<Picture>,
}

impl Pictures {
    /// `of`: what the graph belongs to.
    pub(super) fn of(diff: Option<&GraphDiff>, sides: Option<&[Value; 2]>, of: &str) -> Self {
        let both = diff.zip(sides);
        let drawn = |graph: &Value, side: Side<'_>, words: &str| {
            let is_there = graph.get("nodes").is_some();
            is_there.then(|| Picture::of(graph, &format!("Graph {words} ({of})"), side, |_| None))
        };
        Self {
            before: both.and_then(|(diff, [before, _])| drawn(before, Side::Before(diff), "before")),
            after: both.and_then(|(diff, [_, after])| drawn(after, Side::After(diff), "after")),
        }
    }

    /// Two pictures that are too wide to stand beside each other stand one below the other.
    fn class(&self) -> &'static str {
        let are_narrow = [&self.before, &self.after].into_iter().flatten().all(Picture::fits_beside);
        if are_narrow { "two" } else { "stacked" }
    }
}

/// The nodes that have an id, the entry first, and the edges between them.
fn read(graph: &Value) -> (Vec<Node<'_>>, Vec<Edge<'_>>) {
    let list = |name: &str| graph.get(name).and_then(Value::as_array).into_iter().flatten();
    let entry = graph.get("entryNodeId").and_then(Value::as_str).unwrap_or_default();
    let mut nodes: Vec<Node<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let all = list("nodes").filter_map(|value| Some(Node { id: value.get("id")?.as_str()?, value }));
    let (first, others): (Vec<_>, Vec<_>) = all.partition(|node| node.id == entry);
    for node in first.into_iter().chain(others) {
        places.entry(node.id).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        });
    }
    let place =
        |value: &Value, end: &str| value.get(end).and_then(Value::as_str).and_then(|id| places.get(id)).copied();
    let edges = list("edges");
    let edges = edges.filter_map(|value| Some(Edge { ends: (place(value, "from")?, place(value, "to")?), value }));
    (nodes, edges.collect())
}

/// What became of nodes and edges, by their names.
#[derive(Default)]
struct Marks<'d> {
    nodes: BTreeMap<&'d str, Change>,
    edges: BTreeMap<&'d str, Change>,
}

impl<'d> Marks<'d> {
    fn of(side: Side<'d>) -> Self {
        let (diff, hidden) = match side {
            Side::Only => return Self::default(),
            Side::Before(diff) => (diff, Change::Added),
            Side::After(diff) => (diff, Change::Deleted),
        };
        let of = |items: &'d [toolhost_builder::change::ItemChange]| {
            let shown = items.iter().filter(|item| item.change != hidden);
            shown.map(|item| (item.name.as_str(), item.change)).collect()
        };
        Self { nodes: of(&diff.nodes), edges: of(&diff.edges) }
    }
}

/// A change as a sign and a word: nobody has to tell it by its color.
fn sign(change: Change) -> (&'static str, &'static str) {
    match change {
        Change::Added => ("+", "added"),
        Change::Modified => ("~", "changed"),
        Change::Deleted => ("−", "removed"),
    }
}

fn text<'g>(value: &'g Value, name: &str) -> &'g str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Node<'_> {
    fn title(&self) -> &str {
        match text(self.value, "title") {
            "" => self.id,
            title => title,
        }
    }

    /// Its kind and its agent.
    fn detail(&self) -> String {
        match (text(self.value, "type"), text(self.value, "agentId")) {
            ("", "") => String::new(),
            (kind, "") => kind.to_owned(),
            (kind, agent) => format!("{kind} · {agent}"),
        }
    }

    fn shape(&self, at: (usize, usize), marks: &Marks<'_>, href: &impl Fn(&str) -> Option<String>) -> NodeShape {
        let kind = match text(self.value, "type") {
            kind @ ("decision" | "merge" | "end" | "subworkflow") => kind,
            _ => "step",
        };
        let mark = marks.nodes.get(self.id).copied().map(sign);
        let word = mark.map(|(_, word)| format!(" ({word})")).unwrap_or_default();
        let detail = self.detail();
        NodeShape {
            x: at.0 - NODE_WIDTH / 2,
            y: at.1 - NODE_HEIGHT / 2,
            width: NODE_WIDTH,
            height: NODE_HEIGHT,
            class: format!("node {kind} {}", mark.map_or("", |(_, word)| word)),
            full: visible_line(&format!("{} ({}): {detail}{word}", self.title(), self.id)),
            name: short(self.title(), NODE_CHARS_MAX),
            detail: short(&detail, NODE_CHARS_MAX + 4),
            href: href(self.id),
            mark,
        }
    }
}

impl Edge<'_> {
    /// As a change names it.
    fn name(&self) -> String {
        format!("{} -> {} ({})", text(self.value, "from"), text(self.value, "to"), text(self.value, "label"))
    }

    fn shape(&self, way: &Way, nodes: &[Node<'_>], marks: &Marks<'_>) -> EdgeShape {
        let points = &way.points;
        let mut path = format!("M{} {}", points[0].0, points[0].1);
        let is_loop = self.ends.0 == self.ends.1;
        for pair in points.windows(2) {
            let [(x, y), (to_x, to_y)] = [pair[0], pair[1]];
            let half = y.midpoint(to_y);
            match is_loop || x == to_x {
                true => path.push_str(&format!("L{to_x} {to_y}")),
                false => path.push_str(&format!("C{x} {half} {to_x} {half} {to_x} {to_y}")),
            }
        }
        let (x, y) = points[points.len() - 1];
        let arrow = match (is_loop, way.is_back) {
            (true, _) => format!("{x},{y} {},{} {},{}", x + 7, y - 4, x + 7, y + 4),
            (false, false) => format!("{x},{y} {},{} {},{}", x - 4, y - 7, x + 4, y - 7),
            (false, true) => format!("{x},{y} {},{} {},{}", x - 4, y + 7, x + 4, y + 7),
        };
        let mark = marks.edges.get(&*self.name()).copied().map(sign);
        let label = text(self.value, "label");
        let (from, to) = (nodes[self.ends.0].title(), nodes[self.ends.1].title());
        let said = if label.is_empty() { String::new() } else { format!(": {label}") };
        let word = mark.map(|(_, word)| format!(" ({word})")).unwrap_or_default();
        let short_label = short(label, EDGE_CHARS_MAX);
        let (begin, next) = (points[0], points[1]);
        EdgeShape {
            path,
            arrow,
            class: format!(
                "edge{}{} {}",
                if way.is_back { " back" } else { "" },
                if self.value.get("isDefault").and_then(Value::as_bool) == Some(true) { " default" } else { "" },
                mark.map_or("", |(_, word)| word)
            ),
            full: visible_line(&format!("from {from} to {to}{said}{word}")),
            label: mark.map_or_else(|| short_label.clone(), |(sign, _)| format!("{sign} {short_label}")),
            label_x: begin.0.midpoint(next.0) + if is_loop { 8 } else { 0 },
            label_y: begin.1.midpoint(next.1),
        }
    }
}

/// The nodes in the order of the graph, each with where it leads.
fn listed(
    nodes: &[Node<'_>],
    edges: &[Edge<'_>],
    marks: &Marks<'_>,
    href: &impl Fn(&str) -> Option<String>,
) -> Vec<ListedNode> {
    let word = |change: Option<&Change>| change.map(|change| sign(*change).1);
    let mut leads_to: Vec<Vec<ListedEdge>> = Vec::new();
    leads_to.resize_with(nodes.len(), Vec::new);
    for edge in edges {
        leads_to[edge.ends.0].push(ListedEdge {
            name: visible_line(nodes[edge.ends.1].title()),
            label: visible_line(text(edge.value, "label")),
            mark: word(marks.edges.get(&*edge.name())),
        });
    }
    let row = |(node, leads_to): (&Node<'_>, Vec<ListedEdge>)| ListedNode {
        name: visible_line(node.title()),
        href: href(node.id),
        detail: visible_line(&node.detail()),
        mark: word(marks.nodes.get(node.id)),
        leads_to,
    };
    nodes.iter().zip(leads_to).take(LISTED_MAX).map(row).collect()
}
