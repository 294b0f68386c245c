//! Secrets in what is shown of a graph.

use crate::change::GraphDiff;
use toolhost_contract::Redactor;

/// Masks what looks like a secret in what differs in a graph: names of edges have their labels.
pub(super) fn mask_graph(graph: &mut GraphDiff, secrets: &Redactor) {
    let items = graph.nodes.iter_mut().chain(&mut graph.edges).flat_map(|item| {
        secrets.redact(&mut item.name);
        &mut item.fields
    });
    for field in items.chain(&mut graph.fields) {
        secrets.redact(&mut field.name);
        field.before.iter_mut().chain(&mut field.after).for_each(|value| secrets.redact_json(value));
    }
}
