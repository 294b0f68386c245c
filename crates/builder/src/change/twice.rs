//! What a node and its step say in two places: who changes it in one of them only leaves them apart.

use serde_json::{Map, Value};

use super::small::{OF_A_WAY, SAID_TWICE};
use crate::document::Document;

/// Whether two changes, of a graph and of the document of a step, are both changes of what both say, so that neither is whole
/// without the other. Each is given as the texts before and after it.
#[must_use]
pub fn says_twice(node: &str, graph: [Option<&str>; 2], document: [Option<&str>; 2]) -> bool {
    let [before, after] = graph.map(|text| of_node(text?, node));
    let [was, is] = document.map(|text| of_step(text?));
    before != after && was != is
}

/// What a graph says of a node that its step says, too: its fields, and the ways out of it.
fn of_node(graph: &str, node: &str) -> Option<Value> {
    let graph: Value = serde_json::from_str(graph.trim_start_matches('\u{feff}')).ok()?;
    let own =
        graph.get("nodes")?.as_array()?.iter().find(|known| known.get("id").and_then(Value::as_str) == Some(node))?;
    let mut ways: Vec<Value> = Vec::new();
    for edge in graph.get("edges").and_then(Value::as_array).into_iter().flatten() {
        if edge.get("from").and_then(Value::as_str) == Some(node) {
            ways.push(Value::Object(only(edge, OF_A_WAY.iter().chain(&["to"]))));
        }
    }
    let mut said = only(own, SAID_TWICE.iter());
    said.insert("ways".to_owned(), Value::Array(ways));
    Some(Value::Object(said))
}

/// The fields of a step that its node or its edges have, too.
fn of_step(document: &str) -> Option<Value> {
    let document = Document::parse("", document.as_bytes()).ok()?;
    Some(Value::Object(only(document.front(), SAID_TWICE.iter().chain(&["nodeId", "transitions"]))))
}

fn only<'a>(value: &Value, names: impl Iterator<Item = &'a &'a str>) -> Map<String, Value> {
    names.filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::says_twice;

    #[test]
    fn a_change_of_a_title_in_both_is_one_and_one_of_the_text_is_not() {
        let graph = |title: &str, label: &str, about: &str| {
            format!(
                r#"{{"nodes": [{{"id": "a", "title": "{title}", "description": "{about}"}}, {{"id": "b"}}],
                     "edges": [{{"from": "a", "to": "b", "label": "{label}"}}]}}"#
            )
        };
        let step = |title: &str, label: &str, body: &str| {
            format!("---\nnodeId: a\ntitle: {title}\ntransitions:\n  - to: b\n    label: {label}\n---\n{body}\n")
        };
        let (plain, text) = (graph("A", "on", "x"), step("A", "on", "x"));
        let check = |after: &str, step: &str, expected: bool| {
            let found = says_twice("a", [Some(&plain), Some(after)], [Some(&text), Some(step)]);
            assert_eq!(found, expected, "{after} {step}");
        };
        check(&graph("B", "on", "x"), &step("B", "on", "x"), true);
        check(&graph("A", "go", "x"), &step("A", "go", "x"), true);
        check(&graph("B", "on", "x"), &step("A", "on", "y"), false);
        check(&graph("A", "on", "y"), &step("B", "on", "x"), false);
        assert!(says_twice("a", [None, Some(&plain)], [None, Some(&text)]));
        assert!(!says_twice("b", [Some(&plain), Some(&graph("B", "on", "x"))], [None, Some(&text)]));
    }
}
