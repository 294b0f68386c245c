//! What one change implies elsewhere: a node and its step, an edge and its transition say the same twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::graph::default_beside;
use super::{Made, front, set_fields};
use crate::change::set::SmallEdits;
use crate::change::write::made;
use crate::change::{ChangeSet, Implied, Op, Operation, Payload, StepPayload, WorkflowPayload};
use crate::document::Document;
use crate::finding::Finding;
use crate::package::{Edge, Node, Package, Workflow};
use crate::refs::Object;

/// What a node and the front matter of its step both say.
pub(in crate::change) const SAID_TWICE: [&str; 5] = ["type", "title", "agentId", "inputs", "outputs"];
/// What an edge and a transition both say.
pub(in crate::change) const OF_A_WAY: [&str; 3] = ["label", "isDefault", "conditionText"];

type Fields = Map<String, Value>;

/// The transitions of a step as they are to be; none if nothing is said of them.
pub(super) fn transitions(
    package: &Package,
    object: &Object,
    document: &str,
    edits: &SmallEdits,
    implied: &mut Vec<Implied>,
) -> Made<Option<Fields>> {
    if edits.transitions.is_empty() && edits.delete_transitions.is_empty() {
        return Ok(None);
    }
    let front = Document::parse("", document.as_bytes())?.front().clone();
    let mut all = listed(&front);
    if front.get("transitions").is_none()
        && let Object::Step { workflow, node } = object
        && let Some(workflow) = package.workflow(workflow)
    {
        // A step that lists none has those of its node.
        all = ways_of(workflow, node);
    }
    for to in &edits.delete_transitions {
        let before = all.len();
        all.retain(|transition| text(transition, "to") != to);
        if all.len() == before {
            let message = format!("`{object}` has no transition to `{to}`");
            return Err(Box::new(Finding::error("TRANSITION_NOT_FOUND", "", "", message).actual(to)));
        }
    }
    let before = all.len();
    for wanted in &edits.transitions {
        let to = text(wanted, "to");
        let mut meant: Vec<usize> = (0..all.len()).filter(|at| text(&all[*at], "to") == to).collect();
        if let (2.., Some(label)) = (meant.len(), wanted.get("label")) {
            meant.retain(|at| all[*at].get("label") == Some(label));
        }
        match meant.as_slice() {
            [] => {
                let label = title_of(package, object, to);
                if !wanted.contains_key("label") {
                    let says = format!("its transition to `{to}` has the label `{label}`, as none is given");
                    implied.push(Implied { object: object.clone(), says });
                }
                let mut transition =
                    Fields::from_iter([("to".to_owned(), json!(to)), ("label".to_owned(), json!(label))]);
                set_fields(&mut transition, wanted);
                all.push(transition);
            }
            [at] => set_fields(&mut all[*at], wanted),
            several => {
                let message = format!("`{object}` has {} transitions to `{to}`", several.len());
                let finding = Finding::error("TRANSITION_UNCLEAR", "", "", message);
                return Err(Box::new(finding.expected("one of them").hint("name its `label`")));
            }
        }
    }
    if let (1, [former, new @ ..]) = (before, all.as_mut_slice())
        && !new.is_empty()
        && let Some(to) = default_beside(former, new.iter())
    {
        let says = format!("its transition to `{to}` is the default, as it alone has no condition");
        implied.push(Implied { object: object.clone(), says });
    }
    Ok(Some(Fields::from_iter([("transitions".to_owned(), json!(all))])))
}

/// The ways out of a node, as the transitions of its step.
pub(super) fn ways_of(workflow: &Workflow, node: &str) -> Vec<Fields> {
    let way = |edge: &Edge| {
        let said = OF_A_WAY.iter().filter_map(|name| Some(((*name).to_owned(), edge.value.get(*name)?.clone())));
        let said = said.filter(|(_, value)| *value != json!(false));
        std::iter::once(("to".to_owned(), json!(edge.to))).chain(said).collect()
    };
    workflow.edges.iter().filter(|edge| edge.from == node).map(way).collect()
}

/// What the node that a step leads to is called for people.
fn title_of(package: &Package, step: &Object, node: &str) -> String {
    let workflow = step.workflow().and_then(|id| package.workflow(id));
    let title = workflow.and_then(|workflow| workflow.node(node)?.value.get("title")?.as_str());
    title.filter(|title| !title.is_empty()).unwrap_or(node).to_owned()
}

/// Adds to a set of whole objects what follows from it.
pub(super) fn add(before: &Package, set: &mut ChangeSet, implied: &mut Vec<Implied>) {
    delete_steps(before, set, implied);
    let Ok(after) = made(before, &set.operations) else { return };
    let touched: Vec<String> = {
        let mut ids: Vec<String> =
            set.operations.iter().filter_map(|operation| operation.object.workflow().map(str::to_owned)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    for id in touched {
        if let Some(workflow) = after.workflow(&id) {
            let former = before.workflow(&id);
            mirror(former, workflow, set, implied);
        }
    }
}

/// The step of a node that is taken out goes with it.
fn delete_steps(before: &Package, set: &mut ChangeSet, implied: &mut Vec<Implied>) {
    let mut gone = Vec::new();
    for operation in &set.operations {
        let (Object::Workflow(id), Some(Payload::Workflow(WorkflowPayload { graph_json: Some(graph), .. }))) =
            (&operation.object, &operation.payload)
        else {
            continue;
        };
        let nodes: Vec<&str> =
            graph["nodes"].as_array().into_iter().flatten().filter_map(|n| n["id"].as_str()).collect();
        let files: Vec<&str> =
            graph["nodes"].as_array().into_iter().flatten().filter_map(|n| n["file"].as_str()).collect();
        let steps = before.workflow(id).map(|workflow| workflow.steps.as_slice()).unwrap_or_default();
        for step in steps.iter().filter(|step| !nodes.contains(&step.node_id.as_str())) {
            let node = before.workflow(id).and_then(|workflow| workflow.node(&step.node_id));
            // Another node may have the file now.
            if node.and_then(|node| node.file.as_deref()).is_none_or(|file| !files.contains(&file)) {
                gone.push(Object::Step { workflow: id.clone(), node: step.node_id.clone() });
            }
        }
    }
    gone.retain(|object| !set.operations.iter().any(|operation| operation.object == *object));
    for object in gone {
        implied.push(Implied { object: object.clone(), says: "goes with its node".to_owned() });
        let reason = Some("its node goes".to_owned());
        set.operations.push(Operation { op: Op::Delete, object, payload: None, edits: SmallEdits::default(), reason });
    }
}

/// Lets nodes and steps, edges and transitions of one workflow agree where only one of the two was changed.
fn mirror(before: Option<&Workflow>, after: &Workflow, set: &mut ChangeSet, implied: &mut Vec<Implied>) {
    let object = Object::Workflow(after.id.clone());
    let mut graph = after.graph.clone();
    let mut steps: BTreeMap<String, Fields> = BTreeMap::new();
    for node in &after.nodes {
        let Some(document) = after.step(&node.id).and_then(|step| step.document.as_deref()) else { continue };
        let step = Object::Step { workflow: after.id.clone(), node: node.id.clone() };
        let front = document.front();
        let former = before.and_then(|before| before.node(&node.id));
        let former_front =
            before.and_then(|before| before.step(&node.id)?.document.as_deref()).map(|document| document.front());
        for name in SAID_TWICE {
            let (told, said) = (node.value.get(name), front.get(name));
            let (was_told, was_said) = (former.and_then(|f| f.value.get(name)), former_front.and_then(|f| f.get(name)));
            if told == said {
                continue;
            }
            let (is_told, is_said) = (told != was_told, said != was_said);
            match (is_told, is_said) {
                // What the step does not say it need not say.
                (true, false) if was_said.is_some() => {
                    let value = told.cloned().unwrap_or_default();
                    implied.push(Implied { object: step.clone(), says: says(name, &value, "as its node says") });
                    steps.entry(node.id.clone()).or_default().insert(name.to_owned(), value);
                }
                (false, true) if was_told.is_some() => {
                    let value = said.cloned().unwrap_or_default();
                    let at = format!("`{}`: {}", node.id, says(name, &value, "as its step says"));
                    implied.push(Implied { object: object.clone(), says: at });
                    set_in_graph(&mut graph, node, name, value);
                }
                _ => {}
            }
        }
        mirror_ways(before, after, node, front, former_front, &mut graph, &mut steps, implied);
    }
    if let Some(graph) = graph.filter(|graph| Some(graph) != after.graph.as_ref()) {
        put_graph(set, &object, graph);
    }
    for (node, fields) in steps {
        let step = Object::Step { workflow: after.id.clone(), node };
        let document = after.step(step_node(&step)).and_then(|step| step.document.as_deref());
        if let Some(text) = document.and_then(|document| front::set(document.text(), &fields).ok()) {
            put_step(set, &step, text);
        }
    }
}

/// The edges out of a node, and the transitions that its step lists.
#[expect(clippy::too_many_arguments, reason = "both sides, before and after")]
fn mirror_ways(
    before: Option<&Workflow>,
    after: &Workflow,
    node: &Node,
    front: &Value,
    former_front: Option<&Value>,
    graph: &mut Option<Value>,
    steps: &mut BTreeMap<String, Fields>,
    implied: &mut Vec<Implied>,
) {
    let Some(Value::Array(_)) = front.get("transitions") else { return };
    let out = |workflow: &Workflow| -> Vec<Fields> {
        let edges = workflow.edges.iter().filter(|edge| edge.from == node.id);
        edges.filter_map(|edge| edge.value.as_object().cloned()).collect()
    };
    let (edges, was_edges) = (out(after), before.map(out).unwrap_or_default());
    let told = listed(front);
    let was_told = former_front.map(listed).unwrap_or_default();
    let (is_graph, is_step) = (edges != was_edges, told != was_told);
    let key = |way: &Fields| (text(way, "to").to_owned(), text(way, "label").to_owned());
    let step = Object::Step { workflow: after.id.clone(), node: node.id.clone() };
    if is_graph && !is_step {
        // What an edge was before tells which transition is its own.
        let former = |edge: &Fields| {
            let id = edge.get("id").filter(|id| id.is_string());
            let same_id = was_edges.iter().find(|was| id.is_some() && was.get("id") == id);
            same_id.or_else(|| was_edges.iter().find(|was| key(was) == key(edge)))
        };
        let mut wanted: Vec<Fields> = Vec::new();
        for edge in &edges {
            let former = former(edge);
            let same = told.iter().find(|way| key(way) == key(edge));
            let partner = same.or_else(|| told.iter().find(|way| former.is_some_and(|was| key(was) == key(way))));
            let mut way = partner.cloned().unwrap_or_default();
            way.insert("to".to_owned(), json!(text(edge, "to")));
            let mut said = changed(former.filter(|_| partner.is_some()), edge);
            // A step need not tell what is not so.
            said.retain(|name, value| way.contains_key(name) || *value != json!(false));
            set_fields(&mut way, &said);
            wanted.push(way);
        }
        if wanted != told {
            let says = "its transitions are the ways out of its node in the graph".to_owned();
            implied.push(Implied { object: step, says });
            steps.entry(node.id.clone()).or_default().insert("transitions".to_owned(), json!(wanted));
        }
    } else if is_step && !is_graph {
        let Some(list) = graph.as_mut().and_then(|graph| graph.get_mut("edges")?.as_array_mut()) else { return };
        retarget(&Object::Workflow(after.id.clone()), &node.id, list, (&was_told, &told), implied);
        for gone in was_told.iter().filter(|was| !told.iter().any(|way| text(way, "to") == text(was, "to"))) {
            let kept = list.len();
            list.retain(|edge| edge["from"] != json!(node.id) || edge["to"] != json!(text(gone, "to")));
            if list.len() < kept {
                let says = format!("the edge from `{}` to `{}` goes with its transition", node.id, text(gone, "to"));
                implied.push(Implied { object: Object::Workflow(after.id.clone()), says });
            }
        }
        for way in told.iter().filter(|way| !text(way, "to").is_empty()) {
            let former = was_told.iter().find(|was| key(was) == key(way));
            let renamed = was_told.iter().find(|was| text(was, "to") == text(way, "to"));
            if former == Some(way) {
                continue;
            }
            let known = former.or(renamed);
            let said = changed(known, way);
            let ends: Vec<&mut Fields> = list
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .filter(|edge| edge.get("from") == Some(&json!(node.id)) && text(edge, "to") == text(way, "to"))
                .collect();
            let is_only =
                ends.len() == 1 && told.iter().filter(|other| text(other, "to") == text(way, "to")).count() == 1;
            // A step that did not list its transitions, or called them otherwise than the graph, means the only edge there.
            let own = known.map_or_else(|| key(way), key);
            match ends.into_iter().find(|edge| is_only || key(edge) == own) {
                Some(edge) => set_fields(edge, &said),
                None => {
                    let id = format!("{}--{}", node.id, text(way, "to"));
                    let is_taken = list.iter().any(|edge| edge["id"] == json!(id));
                    let mut edge = Fields::new();
                    if !is_taken {
                        edge.insert("id".to_owned(), json!(id));
                    }
                    edge.insert("from".to_owned(), json!(node.id));
                    edge.insert("to".to_owned(), json!(text(way, "to")));
                    set_fields(&mut edge, &changed(None, way));
                    list.push(Value::Object(edge));
                }
            }
            let says = format!("the edge from `{}` to `{}` is as its transition says", node.id, text(way, "to"));
            implied.push(Implied { object: Object::Workflow(after.id.clone()), says });
        }
    }
}

/// Lets the edges out of a node lead where its transitions do now.
fn retarget(
    flow: &Object,
    node: &str,
    edges: &mut [Value],
    (was, is): (&[Fields], &[Fields]),
    implied: &mut Vec<Implied>,
) {
    for (from, to) in retargeted(was, is) {
        let is_it = |edge: &Value| edge["from"] == json!(node) && edge["to"] == json!(from);
        let mut found = edges.iter_mut().filter(|edge| is_it(edge));
        if let (Some(edge), None) = (found.next(), found.next()) {
            edge["to"] = json!(to);
            let way =
                |ways: &[Fields], to: &str| ways.iter().find(|way| text(way, "to") == to).cloned().unwrap_or_default();
            let (gone, new) = (way(was, &from), way(is, &to));
            if let Some(edge) = edge.as_object_mut() {
                set_fields(edge, &changed(Some(&gone), &new));
                // The rule said what the former text says.
                if gone.get("conditionText") != new.get("conditionText") {
                    edge.shift_remove("conditionExpr");
                }
            }
            let says = format!("the edge from `{node}` to `{from}` leads to `{to}`, as its transition does");
            implied.push(Implied { object: flow.clone(), says });
        }
    }
}

/// Transitions that lead elsewhere than before: one for one, by their labels or because there is but one. What the edge of such
/// a one says besides is still meant.
fn retargeted(was: &[Fields], is: &[Fields]) -> Vec<(String, String)> {
    let only_in = |these: &[Fields], those: &[Fields]| -> Vec<Fields> {
        let has = |way: &&Fields| !those.iter().any(|other| text(other, "to") == text(way, "to"));
        these.iter().filter(has).cloned().collect()
    };
    let (gone, new) = (only_in(was, is), only_in(is, was));
    let ends = |gone: &Fields, new: &Fields| (text(gone, "to").to_owned(), text(new, "to").to_owned());
    if let ([gone], [new]) = (gone.as_slice(), new.as_slice()) {
        return vec![ends(gone, new)];
    }
    let same = |gone: &Fields| {
        let mut found =
            new.iter().filter(|way| !text(way, "label").is_empty() && text(way, "label") == text(gone, "label"));
        found.next().filter(|_| found.next().is_none()).map(|new| ends(gone, new))
    };
    gone.iter().filter_map(same).collect()
}

/// What is said of a way otherwise than before; null where it was said and is no longer.
fn changed(was: Option<&Fields>, is: &Fields) -> Fields {
    let names = OF_A_WAY.iter().filter(|name| was.and_then(|was| was.get(**name)) != is.get(**name));
    names.map(|name| ((*name).to_owned(), is.get(*name).cloned().unwrap_or_default())).collect()
}

fn says(name: &str, value: &Value, why: &str) -> String {
    match value {
        Value::Null => format!("`{name}` is taken out, {why}"),
        Value::String(text) if !text.contains('`') => format!("`{name}` is `{text}`, {why}"),
        other => format!("`{name}` is {other}, {why}"),
    }
}

fn set_in_graph(graph: &mut Option<Value>, node: &Node, name: &str, value: Value) {
    let item = graph.as_mut().and_then(|graph| graph.get_mut("nodes")?.get_mut(node.index)?.as_object_mut());
    if let Some(item) = item {
        set_fields(item, &Fields::from_iter([(name.to_owned(), value)]));
    }
}

fn put_graph(set: &mut ChangeSet, object: &Object, graph: Value) {
    for operation in &mut set.operations {
        if let (true, Some(Payload::Workflow(payload))) = (operation.object == *object, &mut operation.payload) {
            payload.graph_json = Some(graph);
            return;
        }
    }
    let payload = WorkflowPayload { graph_json: Some(graph), ..WorkflowPayload::default() };
    set.operations.push(added(object, Payload::Workflow(payload), "as its steps say"));
}

fn put_step(set: &mut ChangeSet, object: &Object, text: String) {
    for operation in &mut set.operations {
        if let (true, Some(Payload::Step(payload))) = (operation.object == *object, &mut operation.payload) {
            payload.step_markdown = text;
            return;
        }
    }
    let payload = StepPayload { step_markdown: text, path: None };
    set.operations.push(added(object, Payload::Step(payload), "as the graph says"));
}

fn added(object: &Object, payload: Payload, reason: &str) -> Operation {
    let (object, reason) = (object.clone(), Some(reason.to_owned()));
    Operation { op: Op::Upsert, object, payload: Some(payload), edits: SmallEdits::default(), reason }
}

fn step_node(object: &Object) -> &str {
    match object {
        Object::Step { node, .. } => node,
        _ => "",
    }
}

fn listed(front: &Value) -> Vec<Fields> {
    let transitions = front.get("transitions").and_then(Value::as_array).into_iter().flatten();
    transitions.filter_map(|transition| transition.as_object().cloned()).collect()
}

fn text<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}
