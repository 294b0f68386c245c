//! What waits for what: circles, an order of work, the longest way through it. Pure, and linear in tasks and
//! dependencies.

use std::collections::HashMap;

use crate::Graph;

/// Circles that are told; one is enough to stop the work.
const CIRCLES_MAX: usize = 20;
/// Circles of the whole project that are looked at.
const CIRCLES_FOUND_MAX: usize = 1000;
/// Minutes of a task that says nothing of its effort.
const EFFORT_MINUTES_DEFAULT: i64 = 60;

/// What was found in the whole project about the tasks of one iteration. Tasks are their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Each from a task over what it depends on back to itself.
    pub(super) circles: Vec<Vec<i64>>,
    /// Tasks that depend on themselves.
    pub(super) own: Vec<i64>,
    /// Open tasks of the iteration, each after those it depends on; those in a circle, or behind one, are not among them.
    pub(super) order: Vec<i64>,
    /// The chain of open tasks that takes longest, wherever its tasks belong, to the last one of the iteration.
    pub(super) critical: Vec<i64>,
    pub(super) critical_minutes: i64,
}

/// Tasks as positions, so that everything else is arrays.
struct Tasks {
    numbers: Vec<i64>,
    completed: Vec<bool>,
    minutes: Vec<i64>,
    /// What the task at a position depends on: `targets[starts[n]..starts[n + 1]]`.
    starts: Vec<usize>,
    targets: Vec<u32>,
}

pub(super) fn examine(graph: &Graph, iteration: i64) -> Findings {
    let mut findings = Findings::default();
    let tasks = tasks(graph, &mut findings);
    let here = |task: usize| graph.nodes[task].iteration == iteration;
    let here_by_number = |number: &i64| tasks.numbers.binary_search(number).is_ok_and(here);
    // A circle may lead through other iterations.
    findings.circles = circles(&tasks);
    findings.circles.retain(|circle| circle.iter().any(here_by_number));
    findings.circles.truncate(CIRCLES_MAX);
    findings.own.retain(here_by_number);
    let order = order(&tasks);
    (findings.critical, findings.critical_minutes) = critical(&tasks, &order, here);
    findings.order = order.into_iter().filter(|task| here(*task)).map(|task| tasks.numbers[task]).collect();
    findings
}

fn tasks(graph: &Graph, findings: &mut Findings) -> Tasks {
    let numbers: Vec<i64> = graph.nodes.iter().map(|node| node.number).collect();
    let position: HashMap<i64, u32> = numbers.iter().zip(0..).map(|(number, at)| (*number, at)).collect();
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(graph.edges.len());
    for (from, to) in &graph.edges {
        match (position.get(from), position.get(to)) {
            (Some(_), Some(_)) if from == to => findings.own.push(*from),
            (Some(from), Some(to)) => pairs.push((*from, *to)),
            // A reference has both its ends, so this one came or went between two queries of no one moment.
            _ => {}
        }
    }
    pairs.sort_unstable();
    findings.own.sort_unstable();
    let mut starts = vec![0; numbers.len() + 1];
    for (from, _) in &pairs {
        starts[*from as usize + 1] += 1;
    }
    for at in 0..numbers.len() {
        starts[at + 1] += starts[at];
    }
    let minutes = graph.nodes.iter().map(|node| match node.effort_minutes {
        0 => EFFORT_MINUTES_DEFAULT,
        told => told,
    });
    Tasks {
        completed: graph.nodes.iter().map(|node| node.completed).collect(),
        minutes: minutes.collect(),
        numbers,
        starts,
        targets: pairs.into_iter().map(|(_, to)| to).collect(),
    }
}

impl Tasks {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn depends_on(&self, task: usize) -> &[u32] {
        &self.targets[self.starts[task]..self.starts[task + 1]]
    }
}

/// Depth-first search with a stack of its own: a chain of a hundred thousand tasks must not end the process.
fn circles(tasks: &Tasks) -> Vec<Vec<i64>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; tasks.len()];
    let mut found = Vec::new();
    for root in 0..tasks.len() {
        if marks[root] != Mark::New {
            continue;
        }
        let mut path = vec![(root, 0)];
        marks[root] = Mark::Open;
        while let Some((task, next)) = path.last_mut() {
            let Some(to) = tasks.depends_on(*task).get(*next).map(|to| *to as usize) else {
                marks[*task] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, 0));
                }
                Mark::Open if found.len() < CIRCLES_FOUND_MAX => {
                    let from = path.iter().position(|(task, _)| *task == to).unwrap_or(0);
                    let mut circle: Vec<i64> = path[from..].iter().map(|(task, _)| tasks.numbers[*task]).collect();
                    circle.push(tasks.numbers[to]);
                    found.push(circle);
                }
                Mark::Open | Mark::Done => {}
            }
        }
    }
    found
}

/// Kahn's order over open tasks, the lowest number first among those that are free.
fn order(tasks: &Tasks) -> Vec<usize> {
    let open = |task: usize| !tasks.completed[task];
    let mut waits = vec![0_u32; tasks.len()];
    let mut users: Vec<(u32, u32)> = Vec::with_capacity(tasks.targets.len());
    for (task, waits) in waits.iter_mut().enumerate().filter(|(task, _)| open(*task)) {
        for to in tasks.depends_on(task).iter().filter(|to| open(**to as usize)) {
            *waits += 1;
            users.push((*to, u32::try_from(task).unwrap_or(u32::MAX)));
        }
    }
    users.sort_unstable();
    let mut free: std::collections::BinaryHeap<std::cmp::Reverse<usize>> =
        (0..tasks.len()).filter(|task| open(*task) && waits[*task] == 0).map(std::cmp::Reverse).collect();
    let mut order = Vec::new();
    while let Some(std::cmp::Reverse(task)) = free.pop() {
        order.push(task);
        let first = users.partition_point(|(to, _)| (*to as usize) < task);
        for (_, user) in users[first..].iter().take_while(|(to, _)| *to as usize == task) {
            let waits = &mut waits[*user as usize];
            *waits -= 1;
            if *waits == 0 {
                free.push(std::cmp::Reverse(*user as usize));
            }
        }
    }
    order
}

/// The longest way along the dependencies of open tasks, by effort.
fn critical(tasks: &Tasks, order: &[usize], here: impl Fn(usize) -> bool) -> (Vec<i64>, i64) {
    let mut ends_after = vec![0_i64; tasks.len()];
    let mut before: Vec<Option<u32>> = vec![None; tasks.len()];
    for &task in order {
        let longest = tasks.depends_on(task).iter().filter(|to| !tasks.completed[**to as usize]);
        let longest = longest.max_by_key(|to| (ends_after[**to as usize], std::cmp::Reverse(**to)));
        before[task] = longest.copied();
        ends_after[task] = tasks.minutes[task] + longest.map_or(0, |to| ends_after[*to as usize]);
    }
    let last = order
        .iter()
        .copied()
        .filter(|task| here(*task))
        .max_by_key(|task| (ends_after[*task], std::cmp::Reverse(*task)));
    let Some(last) = last else { return (Vec::new(), 0) };
    let mut chain = vec![tasks.numbers[last]];
    let mut at = last;
    while let Some(earlier) = before[at] {
        at = earlier as usize;
        chain.push(tasks.numbers[at]);
    }
    chain.reverse();
    (chain, ends_after[last])
}

#[cfg(test)]
mod tests {
    use super::{Findings, examine};
    use crate::{Graph, Node};

    /// Tasks 1 to `count`, an hour each; those in `completed` are done.
    fn graph(count: i64, completed: &[i64], edges: &[(i64, i64)]) -> Graph {
        let node = |number| Node { number, iteration: 0, completed: completed.contains(&number), effort_minutes: 0 };
        Graph { nodes: (1..=count).map(node).collect(), edges: edges.to_vec(), unknown: Vec::new() }
    }

    fn check(graph: &Graph, expected: Findings) {
        assert_eq!(examine(graph, 0), expected, "{graph:?}");
    }

    #[test]
    fn a_plan_has_an_order_and_a_longest_way() {
        check(
            &graph(4, &[], &[(2, 1), (3, 2), (4, 1)]),
            Findings { order: vec![1, 2, 3, 4], critical: vec![1, 2, 3], critical_minutes: 180, ..Findings::default() },
        );
    }

    #[test]
    fn what_is_completed_is_no_work_any_more() {
        check(
            &graph(3, &[1], &[(2, 1), (3, 2)]),
            Findings { order: vec![2, 3], critical: vec![2, 3], critical_minutes: 120, ..Findings::default() },
        );
    }

    #[test]
    fn a_circle_is_told_as_a_chain_and_stops_what_is_behind_it() {
        check(
            &graph(5, &[], &[(1, 2), (2, 3), (3, 1), (4, 3)]),
            Findings {
                circles: vec![vec![1, 2, 3, 1]],
                order: vec![5],
                critical: vec![5],
                critical_minutes: 60,
                ..Findings::default()
            },
        );
    }

    #[test]
    fn a_task_that_depends_on_itself_is_told() {
        check(
            &graph(2, &[], &[(1, 1)]),
            Findings {
                own: vec![1],
                order: vec![1, 2],
                critical: vec![1],
                critical_minutes: 60,
                ..Findings::default()
            },
        );
    }

    #[test]
    fn work_of_another_iteration_comes_first_but_is_not_listed_and_a_circle_through_it_is_found() {
        let mut two = graph(3, &[], &[(2, 1), (3, 2)]);
        two.nodes[0].iteration = 7;
        let expected =
            Findings { order: vec![2, 3], critical: vec![1, 2, 3], critical_minutes: 180, ..Findings::default() };
        check(&two, expected);
        two.edges.push((1, 3));
        assert_eq!(examine(&two, 0).circles, [vec![1, 3, 2, 1]]);
        assert_eq!(examine(&two, 5), Findings::default(), "an iteration without tasks");
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_is_no_deeper_than_one() {
        let edges: Vec<(i64, i64)> = (2..=100_000).map(|task| (task, task - 1)).collect();
        let found = examine(&graph(100_000, &[], &edges), 0);
        assert_eq!((found.order.len(), found.critical.len(), found.circles.len()), (100_000, 100_000, 0));
    }

    #[test]
    fn nothing_is_fine() {
        check(&graph(0, &[], &[]), Findings::default());
    }
}
