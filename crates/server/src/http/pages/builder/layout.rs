//! Where the nodes and edges of a graph are drawn: in layers, from the top down.
//!
//! Edges that would close a cycle are turned around first; each node stands one layer below the lowest node that leads to it; an edge
//! that skips layers has a bend in each of them; and in each layer, nodes and bends are put near what they are linked with
//! (barycentres), so that few lines cross. No function here calls itself, so a long graph costs no stack.

/// The size of a node, and what is left free around it.
pub(super) const NODE_WIDTH: usize = 216;
pub(super) const NODE_HEIGHT: usize = 56;
const BEND_WIDTH: usize = 16;
const GAP_ACROSS: usize = 24;
const GAP_DOWN: usize = 64;
const MARGIN: usize = 16;
/// How often the order of all layers is improved, down and up.
const SWEEPS: usize = 6;
/// Nodes and bends of a graph that is drawn; a larger one would not be readable.
const SPOTS_MAX: usize = 2000;
const EDGES_MAX: usize = 2000;

/// Where everything is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The middle of each node.
    pub(super) nodes: Vec<(usize, usize)>,
    /// The way of each edge, from node to node, in the order of the edges.
    pub(super) ways: Vec<Way>,
    pub(super) width: usize,
    pub(super) height: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) points: Vec<(usize, usize)>,
    /// Whether it leads up, to what comes before.
    pub(super) is_back: bool,
}

/// Lays a graph out; `None` where it is too large to be drawn. Nodes that come first stand first where nothing says otherwise.
pub(super) fn layout(nodes: usize, edges: &[(usize, usize)]) -> Option<Layout> {
    if nodes > SPOTS_MAX || edges.len() > EDGES_MAX {
        return None;
    }
    let is_back = back_edges(nodes, edges);
    let down: Vec<(usize, usize)> =
        edges.iter().zip(&is_back).map(|(&(from, to), back)| if *back { (to, from) } else { (from, to) }).collect();
    let layer = layers(nodes, &down);
    let mut drawing = Drawing::new(nodes, &down, layer)?;
    drawing.improve();
    Some(drawing.placed(nodes, edges, &is_back))
}

/// Which edges close a cycle, or begin and end in one node.
fn back_edges(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Fresh,
        Open,
        Done,
    }
    let mut out = vec![Vec::new(); nodes];
    for (number, (from, _)) in edges.iter().enumerate() {
        out[*from].push(number);
    }
    let mut state = vec![State::Fresh; nodes];
    let mut is_back = vec![false; edges.len()];
    for start in 0..nodes {
        if state[start] != State::Fresh {
            continue;
        }
        state[start] = State::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&edge) = out[*node].get(*next) else {
                state[*node] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge].1;
            match state[to] {
                State::Open => is_back[edge] = true,
                State::Fresh => {
                    state[to] = State::Open;
                    path.push((to, 0));
                }
                State::Done => {}
            }
        }
    }
    is_back
}

/// The layer of each node: the length of the longest path to it. Edges lead down, but for those of a node to itself.
fn layers(nodes: usize, down: &[(usize, usize)]) -> Vec<usize> {
    let mut out = vec![Vec::new(); nodes];
    let mut waits_for = vec![0_usize; nodes];
    for &(from, to) in down.iter().filter(|(from, to)| from != to) {
        out[from].push(to);
        waits_for[to] += 1;
    }
    let mut layer = vec![0; nodes];
    let mut ready: Vec<usize> = (0..nodes).filter(|&node| waits_for[node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &to in &out[node] {
            layer[to] = layer[to].max(layer[node] + 1);
            waits_for[to] -= 1;
            if waits_for[to] == 0 {
                ready.push(to);
            }
        }
    }
    layer
}

/// Nodes and bends in their layers. A spot below the number of nodes is a node, the others are bends.
struct Drawing {
    /// The layer of each spot.
    layer: Vec<usize>,
    /// The spots of each layer, from left to right.
    rows: Vec<Vec<usize>>,
    /// What each spot is linked with in the layer above and in that below.
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    /// The spots that each edge leads through, from the top down.
    chains: Vec<Vec<usize>>,
    nodes: usize,
}

impl Drawing {
    fn new(nodes: usize, down: &[(usize, usize)], layer: Vec<usize>) -> Option<Self> {
        let rows = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
        let links = vec![Vec::new(); nodes];
        let mut drawing = Self { layer, rows, above: links.clone(), below: links, chains: Vec::new(), nodes };
        for node in 0..nodes {
            drawing.rows[drawing.layer[node]].push(node);
        }
        for &(from, to) in down {
            let mut chain = vec![from];
            for layer in drawing.layer[from] + 1..drawing.layer[to].max(drawing.layer[from] + 1) {
                chain.push(drawing.bend(layer)?);
            }
            chain.push(to);
            if from != to {
                for pair in chain.windows(2) {
                    drawing.below[pair[0]].push(pair[1]);
                    drawing.above[pair[1]].push(pair[0]);
                }
            }
            drawing.chains.push(chain);
        }
        Some(drawing)
    }

    fn bend(&mut self, layer: usize) -> Option<usize> {
        let spot = self.layer.len();
        self.layer.push(layer);
        self.rows[layer].push(spot);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        (spot < SPOTS_MAX).then_some(spot)
    }

    /// Puts the spots of each layer near what they are linked with.
    fn improve(&mut self) {
        let mut place = vec![0_usize; self.layer.len()];
        let note = |place: &mut Vec<usize>, row: &[usize]| {
            // Twice the distance from the middle, so that layers of other lengths stand around the same middle.
            row.iter().enumerate().for_each(|(at, spot)| place[*spot] = SPOTS_MAX + 2 * at + 1 - row.len());
        };
        self.rows.iter().for_each(|row| note(&mut place, row));
        let mut best = (self.crossings(&place), self.rows.clone());
        for sweep in 0..SWEEPS {
            let goes_down = sweep % 2 == 0;
            let order: Vec<usize> =
                if goes_down { (0..self.rows.len()).collect() } else { (0..self.rows.len()).rev().collect() };
            for at in order {
                let links = if goes_down { &self.above } else { &self.below };
                let weight = |spot: &usize| {
                    let linked = &links[*spot];
                    match linked.len() {
                        0 => place[*spot] * SPOTS_MAX,
                        count => linked.iter().map(|other| place[*other]).sum::<usize>() * SPOTS_MAX / count,
                    }
                };
                let mut row = self.rows[at].clone();
                row.sort_by_cached_key(weight);
                note(&mut place, &row);
                self.rows[at] = row;
            }
            let crossings = self.crossings(&place);
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// How many lines cross. Counted by pairs of neighbouring layers: lines in order of their upper ends, and how many of those before
    /// end further right.
    fn crossings(&self, place: &[usize]) -> usize {
        let mut crossings = 0;
        for row in &self.rows {
            let mut ends: Vec<usize> = Vec::new();
            for spot in row {
                let mut below: Vec<usize> = self.below[*spot].iter().map(|other| place[*other]).collect();
                below.sort_unstable();
                for end in &below {
                    crossings += ends.len() - ends.partition_point(|other| other <= end);
                }
                for end in below {
                    ends.insert(ends.partition_point(|other| *other <= end), end);
                }
            }
        }
        crossings
    }

    fn width_of(&self, spot: usize) -> usize {
        if spot < self.nodes { NODE_WIDTH } else { BEND_WIDTH }
    }

    fn placed(&self, nodes: usize, edges: &[(usize, usize)], is_back: &[bool]) -> Layout {
        let row_width = |row: &Vec<usize>| row.iter().map(|spot| self.width_of(*spot) + GAP_ACROSS).sum::<usize>();
        let inside = self.rows.iter().map(row_width).max().unwrap_or(0).max(NODE_WIDTH + GAP_ACROSS);
        let mut middle = vec![(0, 0); self.layer.len()];
        for (number, row) in self.rows.iter().enumerate() {
            let mut x = MARGIN + (inside - row_width(row)) / 2;
            for spot in row {
                let width = self.width_of(*spot) + GAP_ACROSS;
                middle[*spot] = (x + width / 2, MARGIN + number * (NODE_HEIGHT + GAP_DOWN) + NODE_HEIGHT / 2);
                x += width;
            }
        }
        let ways = self.chains.iter().enumerate().map(|(number, chain)| {
            let mut points = self.line(chain, number, &middle);
            let is_loop = edges[number].0 == edges[number].1;
            if is_back[number] && !is_loop {
                points.reverse();
            }
            Way { points, is_back: is_back[number] }
        });
        let ways = ways.collect();
        let down = self.rows.len().max(1) * (NODE_HEIGHT + GAP_DOWN) - GAP_DOWN;
        Layout { nodes: middle[..nodes].to_vec(), ways, width: inside + 2 * MARGIN, height: down + 2 * MARGIN }
    }

    /// The points of an edge, from the top down. Edges of one node leave it side by side.
    fn line(&self, chain: &[usize], number: usize, middle: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let (first, last) = (chain[0], chain[chain.len() - 1]);
        let half = NODE_HEIGHT / 2;
        if first == last {
            let (x, y) = middle[first];
            let (edge, out) = (x + NODE_WIDTH / 2, x + NODE_WIDTH / 2 + GAP_ACROSS / 2);
            return vec![(edge, y - half / 2), (out, y - half / 2), (out, y + half / 2), (edge, y + half / 2)];
        }
        let mut points = vec![(self.port(first, number, middle, true), middle[first].1 + half)];
        for spot in &chain[1..chain.len() - 1] {
            let (x, y) = middle[*spot];
            points.extend([(x, y - half), (x, y + half)]);
        }
        points.push((self.port(last, number, middle, false), middle[last].1 - half));
        points
    }

    /// Where an edge leaves a node at the bottom, or comes to it at the top: in the order of the other ends.
    fn port(&self, node: usize, number: usize, middle: &[(usize, usize)], at_bottom: bool) -> usize {
        let mut ends: Vec<(usize, usize)> = Vec::new();
        for (other, chain) in self.chains.iter().enumerate().filter(|(_, chain)| chain[0] != chain[chain.len() - 1]) {
            let neighbour = match at_bottom {
                true if chain[0] == node => chain[1],
                false if chain[chain.len() - 1] == node => chain[chain.len() - 2],
                _ => continue,
            };
            ends.push((middle[neighbour].0, other));
        }
        ends.sort_unstable();
        let at = ends.iter().position(|(_, other)| *other == number).unwrap_or(0);
        middle[node].0 - NODE_WIDTH / 2 + NODE_WIDTH * (at + 1) / (ends.len() + 1)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{Drawing, GAP_DOWN, NODE_HEIGHT, NODE_WIDTH, SPOTS_MAX, back_edges, layers, layout};

    fn check_layers(nodes: usize, edges: &[(usize, usize)], expected: &[usize]) {
        let is_back = back_edges(nodes, edges);
        let turn = |(&(from, to), back): (&(usize, usize), &bool)| if *back { (to, from) } else { (from, to) };
        let down: Vec<_> = edges.iter().zip(&is_back).map(turn).collect();
        assert_eq!(layers(nodes, &down), expected, "{edges:?}");
    }

    #[test]
    fn a_node_stands_below_all_that_lead_to_it() {
        check_layers(4, &[(0, 1), (1, 2), (0, 2), (2, 3)], &[0, 1, 2, 3]);
        check_layers(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], &[0, 1, 1, 2]);
        check_layers(3, &[], &[0, 0, 0]);
        check_layers(3, &[(0, 1), (1, 2), (2, 0)], &[0, 1, 2]);
        check_layers(2, &[(0, 0), (0, 1), (1, 0)], &[0, 1]);
    }

    #[test]
    fn nodes_do_not_cover_each_other_and_edges_end_at_their_nodes() {
        let edges: Vec<(usize, usize)> =
            (0..99).map(|node| (node, node + 1)).chain((0..60).map(|node| (node, node * 7 % 100))).collect();
        let drawn = layout(100, &edges).unwrap();
        for (one, (x, y)) in drawn.nodes.iter().enumerate() {
            assert!(*x + NODE_WIDTH / 2 <= drawn.width && *y + NODE_HEIGHT / 2 <= drawn.height);
            let covers = |(a, b): &(usize, usize)| x.abs_diff(*a) < NODE_WIDTH && y.abs_diff(*b) < NODE_HEIGHT;
            assert_eq!(drawn.nodes.iter().filter(|other| covers(other)).count(), 1, "node {one}");
        }
        for (way, (from, to)) in drawn.ways.iter().zip(&edges) {
            let is_at = |point: (usize, usize), node: usize| {
                let (x, y) = drawn.nodes[node];
                x.abs_diff(point.0) <= NODE_WIDTH / 2 && y.abs_diff(point.1) <= NODE_HEIGHT / 2
            };
            assert!(is_at(way.points[0], *from) && is_at(way.points[way.points.len() - 1], *to), "{from} {to}");
        }
    }

    #[test]
    fn an_edge_over_layers_goes_around_what_stands_there() {
        let drawn = layout(3, &[(0, 1), (1, 2), (0, 2)]).unwrap();
        let (x, y) = drawn.nodes[1];
        let past = drawn.ways[2].points.iter().filter(|(_, at)| at.abs_diff(y) <= NODE_HEIGHT / 2);
        assert!(past.clone().count() == 2 && past.clone().all(|(at, _)| at.abs_diff(x) > NODE_WIDTH / 2));
        assert_eq!(drawn.height, 3 * NODE_HEIGHT + 2 * GAP_DOWN + 32);
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        let edges = [(0, 5), (1, 4), (2, 3)];
        let mut drawing = Drawing::new(6, &edges, layers(6, &edges)).unwrap();
        let crossings = |drawing: &Drawing| {
            let mut place = vec![0; drawing.layer.len()];
            drawing.rows.iter().for_each(|row| row.iter().enumerate().for_each(|(at, spot)| place[*spot] = at));
            drawing.crossings(&place)
        };
        assert_eq!(crossings(&drawing), 3);
        drawing.improve();
        assert_eq!(crossings(&drawing), 0);
    }

    #[test]
    fn an_edge_back_is_one_and_leads_from_its_node_to_the_other() {
        let drawn = layout(3, &[(0, 1), (1, 2), (2, 0), (1, 1)]).unwrap();
        assert_eq!(drawn.ways.iter().map(|way| way.is_back).collect::<Vec<_>>(), [false, false, true, true]);
        let back = &drawn.ways[2].points;
        assert!(back[0].1 > back[back.len() - 1].1);
    }

    #[test]
    fn a_graph_that_is_too_large_is_not_drawn_and_a_long_one_costs_no_stack() {
        let chain: Vec<(usize, usize)> = (0..SPOTS_MAX - 1).map(|node| (node, node + 1)).collect();
        assert!(layout(SPOTS_MAX, &chain).is_some());
        assert!(layout(SPOTS_MAX + 1, &chain).is_none());
        let wide: Vec<(usize, usize)> = (0..1000).map(|_| (0, 999)).chain((0..999).map(|n| (n, n + 1))).collect();
        assert!(layout(1000, &wide).is_none());
        assert!(layout(0, &[]).is_some());
    }
}
