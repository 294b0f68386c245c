//! Change sets for `builder_walk.rs`: each edit as it is sent, and as the model understands it.

use serde_json::{Value, json};
use toolhost_testkit::Seed;

use crate::gate::walk_files::{FLOW, SLOTS, definition, edges, new_object, nodes, passage, text_of};
use crate::gate::walk_model::{Object, Set, State, Wish};

/// A change set that is to be staged.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) version: &'static str,
    pub(crate) operations: Vec<Value>,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) is_plain: bool,
    pub(crate) has_graph: bool,
}

impl Plan {
    fn new(version: &'static str) -> Self {
        Self { version, is_plain: true, ..Self::default() }
    }

    /// The arguments of a stage.
    pub(crate) fn sent(&self, revisions: &Value, supersedes: Option<i64>) -> Value {
        let mut set = json!({
            "schemaVersion": self.version, "targetType": "workflow", "mode": "optimize",
            "operations": self.operations, "revisions": revisions,
        });
        if let Some(old) = supersedes {
            set["extensions"] = json!({"supersedes": format!("cs-{old}")});
        }
        json!({"changeSet": set})
    }

    fn is_about(&self, object: &str) -> bool {
        self.wishes.iter().any(|wish| wish.object == object)
    }

    fn add(&mut self, operation: Option<Value>, object: &str, wanted: Option<Object>, part: &'static str) -> &mut Wish {
        let (is_made_on_all, places, markers) = (operation.is_none(), Vec::new(), Vec::new());
        self.operations.extend(operation);
        self.wishes.push(Wish { object: object.to_owned(), wanted, part, places, markers, is_made_on_all });
        self.wishes.last_mut().unwrap()
    }
}

/// Makes edits, each with a text that nothing else has.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    markers: usize,
}

impl Planner {
    fn marker(&mut self) -> String {
        self.markers += 1;
        format!("m{:05}x", self.markers)
    }

    /// One or two edits of what the session sees, or of what it read before; `None` if what was chosen cannot be.
    pub(crate) fn plan(&mut self, seed: &mut Seed, view: &State, from: &State) -> Option<Plan> {
        let mut plan = Plan::new(if seed.below(2) == 0 { "1.0" } else { "1.1" });
        for _ in 0..1 + seed.below(2) {
            let kind = seed.below(100);
            match kind {
                0..60 => self.edit(seed, &mut plan, view, from, kind),
                60..68 => self.edit_agent(seed, &mut plan, view, from),
                68..76 => self.add_new(seed, &mut plan, view, kind < 74),
                76..80 => delete_asset(seed, &mut plan, view),
                80..86 => self.insert_node(seed, &mut plan, view),
                86..91 => delete_node(&mut plan, view),
                91..94 => set_agent(seed, &mut plan, view),
                _ => self.mention_or_break(seed, &mut plan, view, from, kind < 98),
            }
        }
        (!plan.wishes.is_empty()).then_some(plan)
    }

    /// The same places as an earlier set, with other texts.
    pub(crate) fn replacing(&mut self, view: &State, old: &Set) -> Option<Plan> {
        let mut plan = Plan::new("1.0");
        for draft in &old.drafts {
            if draft.object.starts_with("step:") && !has_node(view, &draft.object) {
                return None;
            }
            let mut wanted = view.get(&draft.object)?.clone();
            let markers: Vec<String> = draft.places.iter().map(|_| self.marker()).collect();
            wanted.extend(draft.places.iter().cloned().zip(markers.clone()));
            let part = if draft.object == FLOW { "doc " } else { "" };
            let operation = upsert(&draft.object, whole(&draft.object, &wanted));
            let wish = plan.add(Some(operation), &draft.object, Some(wanted), part);
            (wish.places, wish.markers) = (draft.places.clone(), markers);
        }
        Some(plan)
    }

    /// A line or a field of a text.
    fn edit(&mut self, seed: &mut Seed, plan: &mut Plan, view: &State, from: &State, kind: u64) {
        let Some(name) = text_object(seed, plan, view, from) else { return };
        let lead = if name == FLOW { "doc " } else { "" };
        let marker = self.marker();
        if kind >= 50 && !name.starts_with("asset:") {
            return put(plan, view, from, &name, &format!("{lead}note"), Some(&marker), &marker);
        }
        let place = format!("{lead}slot {}", seed.below(SLOTS as u64));
        let value = (kind >= 6).then_some(&marker);
        put(plan, view, from, &name, &place, value, &marker);
    }

    /// A text that refers to an asset which may be missing, or a step without a heading that it must have.
    fn mention_or_break(&mut self, seed: &mut Seed, plan: &mut Plan, view: &State, from: &State, mentions: bool) {
        let Some(name) = text_object(seed, plan, view, from).filter(|name| name.starts_with("step:")) else { return };
        let marker = self.marker();
        let (place, value) = if mentions {
            (format!("slot {}", seed.below(SLOTS as u64)), format!("{marker} see `assets/n{}.md`", seed.below(3)))
        } else {
            ("heading".to_owned(), format!("## Aim {marker}"))
        };
        put(plan, view, from, &name, &place, Some(&value), &marker);
        plan.is_plain = false;
    }

    fn edit_agent(&mut self, seed: &mut Seed, plan: &mut Plan, view: &State, from: &State) {
        let is_small = plan.version == "1.1";
        let source = if is_small { view } else { from };
        let is_meant = |name: &&String| name.starts_with("agent:") && !plan.is_about(name) && view.contains_key(*name);
        let agents: Vec<&String> = source.keys().filter(is_meant).collect();
        let Some(name) = pick(seed, &agents) else { return };
        let (place, pointer) = if seed.below(2) == 0 { ("title", "metadata") } else { ("role", "persona") };
        let marker = self.marker();
        let mut wanted = source[name].clone();
        wanted.insert(place.to_owned(), marker.clone());
        let small = json!({"agent_fields": {pointer: {place: marker}}});
        let payload = if is_small { small } else { whole(name, &wanted) };
        let wish = plan.add(Some(upsert(name, payload)), name, Some(wanted), "");
        (wish.places, wish.markers) = (vec![place.to_owned()], vec![marker]);
    }

    fn add_new(&mut self, seed: &mut Seed, plan: &mut Plan, view: &State, is_asset: bool) {
        let number = seed.below(3);
        let name = if is_asset { format!("asset:assets/n{number}.md") } else { format!("agent:e{number}") };
        if view.contains_key(&name) || plan.is_about(&name) {
            return;
        }
        let marker = self.marker();
        let wanted = new_object(&name, &marker);
        let places: Vec<String> =
            wanted.iter().filter(|(_, value)| value.contains(&marker)).map(|(p, _)| p.clone()).collect();
        let wish = plan.add(Some(upsert(&name, whole(&name, &wanted))), &name, Some(wanted), "");
        (wish.places, wish.markers) = (places, vec![marker]);
    }

    /// A node in the middle of an edge, with its step.
    fn insert_node(&mut self, seed: &mut Seed, plan: &mut Plan, view: &State) {
        let ways = edges(&view[FLOW]);
        if plan.is_about(FLOW) || plan.version == "1.0" || ways.is_empty() {
            return;
        }
        let (from, to) = pick(seed, &ways).unwrap();
        let marker = self.marker();
        let (node, step) = (marker.clone(), format!("step:main/{marker}"));
        let payload = json!({
            "nodes": [{"id": node, "agentId": "ada"}], "deleteEdges": [{"from": from, "to": to}],
            "edges": [{"from": from, "to": node, "label": "on"}, {"from": node, "to": to, "label": "on"}],
        });
        let mut flow = view[FLOW].clone();
        flow.remove(&format!("graph edge {from}--{to}"));
        flow.insert(format!("graph node {node}"), "ada".to_owned());
        for (from, to) in [(&from, &node), (&node, &to)] {
            flow.insert(format!("graph edge {from}--{to}"), format!("{from}>{to}"));
        }
        plan.add(Some(upsert(FLOW, payload)), FLOW, Some(flow), "graph ").markers = vec![marker.clone()];
        let object = new_object(&step, &marker);
        plan.add(Some(upsert(&step, whole(&step, &object))), &step, Some(object), "").markers = vec![marker];
        (plan.is_plain, plan.has_graph) = (false, true);
    }
}

/// Whether a step has a node in the graph that is seen, where somebody else may have taken it out.
fn has_node(view: &State, step: &str) -> bool {
    nodes(&view[FLOW]).contains(&step.trim_start_matches("step:main/").to_owned()) && view.contains_key(step)
}

/// A text that can be edited: it is there in what was read, and a step also has its node in what is seen.
fn text_object(seed: &mut Seed, plan: &Plan, view: &State, from: &State) -> Option<String> {
    let source = if plan.version == "1.1" { view } else { from };
    let is_meant = |name: &&String| {
        !name.starts_with("agent:") && !plan.is_about(name) && (!name.starts_with("step:") || has_node(view, name))
    };
    let all: Vec<&String> = source.keys().filter(is_meant).collect();
    pick(seed, &all).cloned()
}

/// Sets a place of a text: in a set of parts on what is seen, else in the whole text as it was read.
fn put(plan: &mut Plan, view: &State, from: &State, name: &str, place: &str, value: Option<&String>, marker: &str) {
    let is_small = plan.version == "1.1";
    let source = if is_small { view } else { from };
    let before = source[name].get(place);
    if before == value {
        return;
    }
    let mut wanted = source[name].clone();
    match value {
        Some(value) => drop(wanted.insert(place.to_owned(), value.clone())),
        None => drop(wanted.remove(place)),
    }
    let payload = match place.rsplit(' ').next() {
        _ if !is_small => whole(name, &wanted),
        Some("note") => json!({"frontMatter": {"note": value}}),
        Some("heading") => json!({"textEdits": [{"find": before, "replace": value}]}),
        _ => json!({"textEdits": [{"find": passage(place, before), "replace": passage(place, value)}]}),
    };
    let part = if name == FLOW { "doc " } else { "" };
    if name == FLOW && !is_small {
        // The graph is not named, and stays as the session sees it.
        wanted.retain(|place, _| place.starts_with("doc "));
        let graph = view[FLOW].iter().filter(|(place, _)| place.starts_with("graph "));
        wanted.extend(graph.map(|(place, value)| (place.clone(), value.clone())));
    }
    let wish = plan.add(Some(upsert(name, payload)), name, Some(wanted), part);
    wish.places = vec![place.to_owned()];
    wish.is_made_on_all = is_small && !place.ends_with("note");
    wish.markers.extend(value.map(|_| marker.to_owned()));
}

fn delete_asset(seed: &mut Seed, plan: &mut Plan, view: &State) {
    let is_meant = |name: &&String| name.starts_with("asset:") && !plan.is_about(name);
    let assets: Vec<&String> = view.keys().filter(is_meant).collect();
    let Some(name) = pick(seed, &assets) else { return };
    plan.add(Some(json!({"op": "delete", "targetType": "asset", "target": target(name)})), name, None, "");
    plan.is_plain = false;
}

/// A node that was put in goes, its step with it, and an edge closes the gap.
fn delete_node(plan: &mut Plan, view: &State) {
    let flow = &view[FLOW];
    let ways = edges(flow);
    let end = |node: &str, is_out: bool| -> Option<String> {
        let mut ends = ways.iter().filter(|(from, to)| if is_out { from == node } else { to == node });
        let (from, to) = ends.next()?;
        ends.next().is_none().then(|| if is_out { to.clone() } else { from.clone() })
    };
    let last = nodes(flow).into_iter().rfind(|node| node.starts_with('m'));
    let Some(node) = last.filter(|_| plan.version == "1.1" && !plan.is_about(FLOW)) else { return };
    let (Some(from), Some(to), step) = (end(&node, false), end(&node, true), format!("step:main/{node}")) else {
        return;
    };
    let is_closed = ways.contains(&(from.clone(), to.clone()));
    if is_closed || plan.is_about(&step) || !view.contains_key(&step) {
        return;
    }
    let payload = json!({"deleteNodes": [node], "edges": [{"from": from, "to": to, "label": "on"}]});
    let mut after = flow.clone();
    after.retain(|place, ends| {
        let is_way = place.starts_with("graph edge ") && ends.split('>').any(|end| end == node);
        !is_way && *place != format!("graph node {node}")
    });
    after.insert(format!("graph edge {from}--{to}"), format!("{from}>{to}"));
    plan.add(Some(upsert(FLOW, payload)), FLOW, Some(after), "graph ");
    plan.add(None, &step, None, "");
    (plan.is_plain, plan.has_graph) = (false, true);
}

/// The agent of a node; now and then one that is not there.
fn set_agent(seed: &mut Seed, plan: &mut Plan, view: &State) {
    if plan.is_about(FLOW) || plan.version == "1.0" {
        return;
    }
    let mut agents: Vec<String> =
        view.keys().filter_map(|name| name.strip_prefix("agent:").map(str::to_owned)).collect();
    agents.push("nobody".to_owned());
    let (Some(node), Some(agent)) = (pick(seed, &nodes(&view[FLOW])), pick(seed, &agents)) else { return };
    let mut flow = view[FLOW].clone();
    flow.insert(format!("graph node {node}"), agent.clone());
    let payload = json!({"nodes": [{"id": node, "agentId": agent}]});
    plan.add(Some(upsert(FLOW, payload)), FLOW, Some(flow), "graph ");
    (plan.is_plain, plan.has_graph) = (false, true);
}

fn pick<T: Clone>(seed: &mut Seed, all: &[T]) -> Option<T> {
    all.get(usize::try_from(seed.below(all.len() as u64)).unwrap()).cloned()
}

fn target(name: &str) -> Value {
    let (kind, id) = name.split_once(':').unwrap();
    match kind {
        "asset" => json!({"path": id}),
        "agent" => json!({"agentId": id}),
        "step" => json!({"workflowId": "main", "nodeId": id.trim_start_matches("main/")}),
        _ => json!({"workflowId": id}),
    }
}

fn upsert(name: &str, payload: Value) -> Value {
    let kind = name.split(':').next().unwrap();
    json!({"op": "upsert", "targetType": kind, "target": target(name), "payload": payload})
}

/// The payload that holds an object as a whole; of the workflow its document.
fn whole(name: &str, object: &Object) -> Value {
    match name.split(':').next() {
        Some("agent") => json!({"agent_definition": definition(name, object)}),
        Some("asset") => json!({"content": text_of(name, object)}),
        Some("step") => json!({"step_markdown": text_of(name, object)}),
        _ => json!({"workflow_md": text_of(name, object)}),
    }
}
