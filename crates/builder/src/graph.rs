//! Graph algorithms over numbered nodes. None of them calls itself, so a long graph costs no stack.

/// Who leads to whom, both ways.
pub(crate) struct Links {
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
}

impl Links {
    pub(crate) fn new(nodes: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut links = Self { out: vec![Vec::new(); nodes], into: vec![Vec::new(); nodes] };
        for (from, to) in edges {
            links.out[from].push(to);
            links.into[to].push(from);
        }
        links
    }

    pub(crate) fn out(&self, node: usize) -> &[usize] {
        &self.out[node]
    }

    pub(crate) fn into(&self, node: usize) -> &[usize] {
        &self.into[node]
    }

    /// Nodes that nothing leads to.
    pub(crate) fn roots(&self) -> Vec<usize> {
        (0..self.into.len()).filter(|&node| self.into[node].is_empty()).collect()
    }

    /// Which nodes can be reached from these.
    pub(crate) fn reached(&self, from: &[usize]) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut open = from.to_vec();
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                open.extend(&self.out[node]);
            }
        }
        reached
    }

    /// The sets of nodes that lie on a cycle together, each in order, the first first. Kosaraju's algorithm.
    pub(crate) fn cycles(&self) -> Vec<Vec<usize>> {
        let mut component = vec![usize::MAX; self.out.len()];
        let mut components: Vec<Vec<usize>> = Vec::new();
        for root in self.finished().into_iter().rev() {
            if component[root] != usize::MAX {
                continue;
            }
            let number = components.len();
            let mut members = Vec::new();
            let mut open = vec![root];
            component[root] = number;
            while let Some(node) = open.pop() {
                members.push(node);
                for &before in &self.into[node] {
                    if component[before] == usize::MAX {
                        component[before] = number;
                        open.push(before);
                    }
                }
            }
            members.sort_unstable();
            components.push(members);
        }
        components.retain(|members| members.len() > 1 || self.out[members[0]].contains(&members[0]));
        components.sort_unstable();
        components
    }

    /// All nodes, each after those that it leads to and that were not begun before it.
    pub(crate) fn finished(&self) -> Vec<usize> {
        let mut begun = vec![false; self.out.len()];
        let mut finished = Vec::with_capacity(self.out.len());
        for start in 0..self.out.len() {
            if std::mem::replace(&mut begun[start], true) {
                continue;
            }
            let mut path = vec![(start, 0)];
            while let Some((node, next)) = path.last_mut() {
                match self.out[*node].get(*next) {
                    Some(&to) => {
                        *next += 1;
                        if !std::mem::replace(&mut begun[to], true) {
                            path.push((to, 0));
                        }
                    }
                    None => {
                        finished.push(*node);
                        path.pop();
                    }
                }
            }
        }
        finished
    }
}

#[cfg(test)]
mod tests {
    use super::Links;

    fn check(nodes: usize, edges: &[(usize, usize)], expected: &[&[usize]]) {
        assert_eq!(Links::new(nodes, edges.iter().copied()).cycles(), expected, "{edges:?}");
    }

    #[test]
    fn nodes_on_a_cycle_are_found_together() {
        check(3, &[(0, 1), (1, 2)], &[]);
        check(3, &[(0, 1), (1, 2), (2, 0)], &[&[0, 1, 2]]);
        check(2, &[(0, 1), (1, 1)], &[&[1]]);
        check(5, &[(0, 1), (1, 0), (1, 2), (2, 3), (3, 2), (3, 4)], &[&[0, 1], &[2, 3]]);
        check(4, &[(3, 2), (2, 1), (1, 0)], &[]);
    }

    #[test]
    fn a_chain_of_a_million_nodes_costs_no_stack() {
        let links = Links::new(1_000_000, (0..999_999).map(|node| (node, node + 1)));
        assert!(links.cycles().is_empty());
        assert_eq!(links.roots(), [0]);
    }
}
