//! What differs between two graphs, as a person thinks of it: nodes, edges and their fields.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Change;

/// What differs between two graphs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphDiff {
    /// The nodes that were added, taken out or changed.
    pub nodes: Vec<ItemChange>,
    /// The edges that were added, taken out or changed.
    pub edges: Vec<ItemChange>,
    /// The fields of the graph itself, such as `entryNodeId`.
    pub fields: Vec<FieldChange>,
}

/// A node or an edge that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemChange {
    /// The node's id, or `from -> to (label)` of an edge; as it was, if it was there.
    pub name: String,
    /// What became of it.
    pub change: Change,
    /// Field by field.
    pub fields: Vec<FieldChange>,
}

/// A field that is not as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// Its name.
    pub name: String,
    /// As it was; none if it was not there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Value>,
    /// As it is; none if it is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Value>,
}

impl GraphDiff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.edges.is_empty() && self.fields.is_empty()
    }
}

/// What differs between two graphs; null is none.
pub(crate) fn compare(before: &Value, after: &Value) -> GraphDiff {
    let none = Map::new();
    let (old, new) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let is_own = |field: &FieldChange| field.name != "nodes" && field.name != "edges";
    GraphDiff {
        nodes: items(old.get("nodes"), new.get("nodes"), &[&["id"]]),
        edges: items(old.get("edges"), new.get("edges"), &[&["from", "to", "label"], &["id"], &["from", "to"]]),
        fields: fields(old, new).into_iter().filter(is_own).collect(),
    }
}

/// Pairs the items of two lists by each of these sets of fields in turn; what is left was added or taken out.
fn items(old: Option<&Value>, new: Option<&Value>, by: &[&[&str]]) -> Vec<ItemChange> {
    let list = |value: Option<&'_ Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (old, new) = (list(old), list(new));
    let mut partner: Vec<Option<usize>> = vec![None; new.len()];
    let mut is_free = vec![true; old.len()];
    for names in by {
        let key = |item: &Value| -> Option<String> {
            let values: Option<Vec<&str>> = names.iter().map(|name| item.get(*name)?.as_str()).collect();
            values.and_then(|values| serde_json::to_string(&values).ok())
        };
        let mut free: std::collections::HashMap<String, Vec<usize>> = std::collections::HashMap::new();
        for (index, item) in old.iter().enumerate().rev().filter(|(index, _)| is_free[*index]) {
            if let Some(key) = key(item) {
                free.entry(key).or_default().push(index);
            }
        }
        for (index, item) in new.iter().enumerate().filter(|(index, _)| partner[*index].is_none()).collect::<Vec<_>>() {
            let found = key(item).and_then(|key| free.get_mut(&key)?.pop());
            if let Some(found) = found {
                is_free[found] = false;
                partner[index] = Some(found);
            }
        }
    }
    let none = Value::Null;
    let gone = old.iter().enumerate().filter(|(index, _)| is_free[*index]);
    let mut changes: Vec<ItemChange> = gone.map(|(_, item)| change(Change::Deleted, item, item, &none)).collect();
    for (item, partner) in new.iter().zip(&partner) {
        match partner.map(|index| &old[index]) {
            None => changes.push(change(Change::Added, item, &none, item)),
            Some(before) if before != item => changes.push(change(Change::Modified, before, before, item)),
            Some(_) => {}
        }
    }
    changes
}

fn change(change: Change, named: &Value, before: &Value, after: &Value) -> ItemChange {
    let text = |name: &str| named.get(name).and_then(Value::as_str);
    let name = match (text("from"), text("to")) {
        (Some(from), Some(to)) => format!("{from} -> {to} ({})", text("label").unwrap_or_default()),
        _ => text("id").unwrap_or_default().to_owned(),
    };
    let none = Map::new();
    let fields = fields(before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    ItemChange { name, change, fields }
}

fn fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<FieldChange> {
    let added = after.keys().filter(|name| !before.contains_key(*name));
    let names = before.keys().chain(added);
    let differing = names.filter(|name| before.get(*name) != after.get(*name));
    let field = |name: &String| FieldChange {
        name: name.clone(),
        before: before.get(name).cloned(),
        after: after.get(name).cloned(),
    };
    differing.map(field).collect()
}
