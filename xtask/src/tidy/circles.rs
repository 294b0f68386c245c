//! Circles of imports between the modules of a crate: who reads one of them has to read all of them.
//!
//! A module and the modules inside it may name each other: they are one subject, told in parts. Tests may name whatever they
//! test, so what stands behind `#[cfg(test)]` counts for nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::tidy::Tree;
use crate::tidy::source::{paths, split};

/// A circle that stays: the crate, its modules, and why it is one.
type Accepted<'a> = (&'a str, &'a [&'a str], &'a str);
/// Which modules name which.
type Graph = BTreeMap<String, BTreeSet<String>>;

const ACCEPTED: [Accepted<'static>; 4] = [
    (
        "deploy",
        &["journal", "listing", "plan"],
        "a plan is made of the last manifest, and the journal keeps manifest and plan",
    ),
    (
        "host",
        &["shell::builtins", "shell::heredocs", "shell::reader", "shell::words"],
        "a word of a shell may hold a command, and a command is made of words",
    ),
    (
        "sandbox",
        &["local", "running"],
        "the executor starts commands, and each runs in the workspace that the executor has opened",
    ),
    (
        "sandbox",
        &["git::accepted", "git::around", "git::packed", "git::places", "git::snapshot"],
        "a place of git's says how a snapshot treats it, and a snapshot goes from place to place",
    ),
];

/// Checks the crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_but(tree, &ACCEPTED)
}

fn check_but(tree: &Tree, accepted: &[Accepted<'_>]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(Vec<&str>, &str)>> = BTreeMap::new();
    for (path, text) in tree.rust_files() {
        if let Some((name, module)) = place(path) {
            crates.entry(name).or_default().push((module, text));
        }
    }
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (name, modules) in &crates {
        for circle in circles(&graph(modules)) {
            let is_it = |(of, modules, _): &Accepted<'_>| of == name && circle.iter().eq(modules.iter());
            match accepted.iter().position(is_it) {
                Some(at) => drop(known.insert(at)),
                None => found.push(Finding::new(
                    format!("crates/{name}/src"),
                    format!("{} import each other in a circle: move what both need below both", circle.join(", ")),
                )),
            }
        }
    }
    let gone = accepted.iter().enumerate().filter(|(at, _)| !known.contains(at));
    found.extend(gone.map(|(_, (name, modules, _))| {
        let what = format!("{} of `{name}` are accepted as a circle, and are none", modules.join(", "));
        Finding::new("xtask/src/tidy/circles.rs", what)
    }));
    found
}

/// The crate of a file, and its module as the names that lead to it; nothing for binaries and tests.
fn place(path: &str) -> Option<(&str, Vec<&str>)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut module: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
    if module.first() == Some(&"bin") || module.last() == Some(&"tests") {
        return None;
    }
    if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
        module.pop();
    }
    Some((name, module))
}

/// Which modules of a crate name which others, without those around them and inside them.
fn graph(modules: &[(Vec<&str>, &str)]) -> Graph {
    let names: BTreeSet<&[&str]> = modules.iter().map(|(module, _)| module.as_slice()).collect();
    let mut graph = Graph::new();
    for (module, text) in modules {
        let code = split(text.split("#[cfg(test)]").next().unwrap_or_default()).code;
        let mut named = BTreeSet::new();
        for (_, path) in paths(&code) {
            let mut full = match path.split("::").next() {
                Some("crate") => Vec::new(),
                Some("self" | "super") => module.clone(),
                _ => continue,
            };
            for part in path.split("::") {
                match part {
                    "crate" | "self" => {}
                    "super" => full.truncate(full.len().saturating_sub(1)),
                    name => full.push(name),
                }
            }
            // The longest beginning that is a module; the rest is what is named in it.
            while !names.contains(full.as_slice()) && full.pop().is_some() {}
            if !full.starts_with(module) && !module.starts_with(&full) {
                named.insert(full.join("::"));
            }
        }
        graph.insert(module.join("::"), named);
    }
    graph
}

/// Modules of which each leads to all others.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let ways: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|from| (from.as_str(), reached(graph, from))).collect();
    let mut found: Vec<Vec<&str>> = Vec::new();
    for (from, reached) in &ways {
        let circle: Vec<&str> = reached.iter().copied().filter(|to| ways[to].contains(from)).collect();
        if circle.first() == Some(from) && circle.len() > 1 {
            found.push(circle);
        }
    }
    found
}

/// All modules that one leads to, over others too.
fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = graph[from].iter().map(String::as_str).collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(graph[module].iter().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::{Accepted, check_but};
    use crate::tidy::Tree;

    fn check_files<const N: usize>(files: [(&str, &str); N], accepted: &[Accepted<'_>]) -> Vec<String> {
        let files = files.map(|(file, text)| (format!("crates/shop/src/{file}"), text));
        let tree = Tree::from(files.each_ref().map(|(path, text)| (path.as_str(), *text)));
        check_but(&tree, accepted).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn circles_of_two_and_of_three_are_found() {
        let two = [("a.rs", "use crate::b::X;"), ("b.rs", "fn f() { super::a::f() }"), ("c.rs", "use crate::a::f;")];
        let found = "crates/shop/src: a, b import each other in a circle: move what both need below both";
        assert_eq!(check_files(two, &[]), [found]);
        let three =
            [("a/mod.rs", "use crate::{b::{self, X}, c::Y};"), ("b.rs", "use super::c;"), ("c.rs", "use crate::a;")];
        let found = "crates/shop/src: a, b, c import each other in a circle: move what both need below both";
        assert_eq!(check_files(three, &[]), [found]);
    }

    #[test]
    fn what_is_no_circle_is_left_alone() {
        let line = [("a.rs", "use crate::b; // use crate::c;"), ("b.rs", "use std::a::c;"), ("c.rs", "use crate::a;")];
        assert_eq!(check_files(line, &[]), [""; 0]);
        // A module and those inside it, the root of the crate, and tests.
        let family =
            [("a/mod.rs", "use self::b::X;"), ("a/b.rs", "use super::Y;\nuse crate::root;"), ("lib.rs", "use a::Y;")];
        assert_eq!(check_files(family, &[]), [""; 0]);
        let tests =
            [("a.rs", "use crate::b;"), ("b.rs", "#[cfg(test)]\nuse crate::a;"), ("b/tests.rs", "use crate::a;")];
        assert_eq!(check_files(tests, &[]), [""; 0]);
    }

    #[test]
    fn what_is_accepted_must_be_there() {
        let accepted: [Accepted<'_>; 1] = [("shop", &["a", "b"], "why")];
        assert_eq!(check_files([("a.rs", "use crate::b;"), ("b.rs", "use crate::a;")], &accepted), [""; 0]);
        let gone = "xtask/src/tidy/circles.rs: a, b of `shop` are accepted as a circle, and are none";
        assert_eq!(check_files([("a.rs", "use crate::b;"), ("b.rs", "")], &accepted), [gone]);
    }
}
