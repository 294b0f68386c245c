//! Step files against the graph, the agents and the assets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolhost_contract::{is_slip_of, nearest};

use super::Scope;
use super::manifest::{agent_missing, check_mentions, workflow_missing, workflows_are_told};
use crate::document::{Document, code_lines};
use crate::finding::{Finding, Findings, quoted};
use crate::package::{Edge, Node, NodeKind, Package, SECTION_RECOMMENDED, SECTIONS_REQUIRED, Step, Workflow};

pub(super) fn check(package: &Package, workflow: &Workflow, scope: Scope<'_>, findings: &mut Findings) {
    // What a graph says of a step, it may say otherwise when it changes.
    let is_whole = scope.has(&workflow.graph_path);
    let is_meant = |step: &&Step| is_whole || scope.has(&step.path);
    if super::is_too_large(workflow) || !workflow.steps.iter().any(|step| is_meant(&step)) {
        return;
    }
    let mut nodes: BTreeMap<&str, &Node> = BTreeMap::new();
    let mut twice: BTreeSet<&str> = BTreeSet::new();
    for node in &workflow.nodes {
        if nodes.insert(&node.id, node).is_some() {
            twice.insert(&node.id);
        }
    }
    let mut ways: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in &workflow.edges {
        ways.entry(&edge.from).or_default().push(edge);
    }
    // An edge that leads to no node, or from none, has its own finding; what a step says of that way would follow from it.
    let begins_nowhere = |edge: &&Edge| !nodes.contains_key(edge.from.as_str());
    let lost: BTreeSet<&str> = workflow.edges.iter().filter(begins_nowhere).map(|edge| edge.to.as_str()).collect();
    let agents: BTreeSet<&str> = package.agents().iter().map(|agent| agent.id.as_str()).collect();
    let are_listed = transitions_are_listed(workflow, &ways);
    let mut seen = BTreeSet::new();
    for step in workflow.steps.iter().filter(is_meant) {
        let (Some(document), Some(node)) = (&step.document, nodes.get(step.node_id.as_str())) else { continue };
        // A file that two nodes share has its own finding, and so have two nodes with one id. It is compared with the node that
        // it names.
        let named = document.field("nodeId").unwrap_or_default();
        let is_others = named != step.node_id
            && workflow.steps.iter().any(|other| other.path == step.path && other.node_id == named);
        if is_others || !seen.insert(&step.path) || twice.contains(step.node_id.as_str()) {
            continue;
        }
        check_front(&step.path, document, findings);
        check_node(&step.path, document, node, findings);
        check_agent(package, &step.path, document, node, &agents, findings);
        check_sections(&step.path, document, node, findings);
        let ways = ways.get(node.id.as_str()).map(Vec::as_slice).unwrap_or_default();
        // A graph without any edge has its own finding.
        let has_ways = !workflow.edges.is_empty() || workflow.nodes.len() == 1;
        if workflow.is_whole() && has_ways && ways.iter().all(|edge| nodes.contains_key(edge.to.as_str())) {
            // An end with a way on has its own finding.
            if are_listed && !ways.is_empty() && node.kind != Some(NodeKind::End) && !lists_transitions(document) {
                findings.add(transitions_missing(&step.path, ways));
            }
            check_transitions(&step.path, document, ways, &lost, findings);
        }
        check_subworkflow(package, (&workflow.id, &step.path), document, node, findings);
        check_mentions(package, &step.path, document, findings);
    }
}

/// The front matter ends where it was meant to, and its fields have the names that are read.
pub(super) fn check_front(file: &str, document: &Document, findings: &mut Findings) {
    if let Some(at) = document.cut_at() {
        let message = format!("the front matter of `{file}` ends at its second `---`, and fields stand below that");
        let finding = Finding::warning("FRONT_MATTER_CUT", file, "", message).at(document.body_line() + at, 1);
        findings.add(
            finding
                .expected("one `---` after all fields")
                .actual("a `---` before some fields")
                .hint("remove the first one"),
        );
    }
    let mut lines = document.body().lines().enumerate();
    if let Some((at, _)) = lines.find(|(_, line)| CONFLICT_MARKS.iter().any(|mark| line.starts_with(mark))) {
        let message = format!("`{file}` has marks of a merge that was not finished");
        let finding = Finding::warning("MERGE_UNFINISHED", file, "", message).at(document.body_line() + at, 1);
        let hint = "keep one of the two texts, and take the marks out";
        findings.add(finding.expected("one text").actual("two, between `<<<<<<<` and `>>>>>>>`").hint(hint));
    }
    let fields = document.front().as_object().into_iter().flat_map(|fields| fields.keys());
    for name in fields {
        if let Some(meant) = field_meant(name) {
            let also = if document.front().get(meant).is_some() {
                format!(", and `{meant}` is there, too")
            } else {
                String::new()
            };
            let message = format!("nobody reads the field `{name}`{also}");
            let finding = Finding::warning("FIELD_MISSPELT", file, format!("/{name}"), message).actual(name);
            findings.add(finding.expected(meant).hint(format!("write `{meant}` if that is meant")));
        }
    }
}

/// The field that was meant by a name that is none. Fields of one's own are fine; one letter more or less than one that is
/// read is none of those.
fn field_meant(name: &str) -> Option<&'static str> {
    let meant = nearest(name, FIELDS.into_iter().filter(|_| !FIELDS.contains(&name))).into_iter().next();
    let is_slip = |meant: &&str| {
        meant.len().abs_diff(name.len()) <= 1
            && is_slip_of(name, meant)
            && meant.as_bytes().first() == name.to_ascii_lowercase().as_bytes().first()
    };
    meant.filter(is_slip)
}

/// What git and its like write around two texts of which a person has to choose one.
const CONFLICT_MARKS: [&str; 2] = ["<<<<<<< ", ">>>>>>> "];

/// The fields of a step's front matter that are read.
const FIELDS: [&str; 9] =
    ["nodeId", "type", "title", "agentId", "workflowId", "inputs", "outputs", "setsVariables", "transitions"];

fn check_node(file: &str, document: &Document, node: &Node, findings: &mut Findings) {
    // A type that is none has its own finding, in the graph or in the step.
    let kind = node.value.get("type").and_then(Value::as_str).filter(|_| node.kind.is_some());
    let is_type = document.field("type").is_some_and(|kind| NodeKind::from_name(kind).is_some());
    for (name, expected, code) in [
        ("nodeId", Some(node.id.as_str()), "STEP_NODE_MISMATCH"),
        ("type", kind.filter(|_| is_type), "STEP_TYPE_MISMATCH"),
    ] {
        let (Some(expected), Some(actual)) = (expected, document.field(name)) else { continue };
        if expected != actual {
            let message = format!("`{name}` is `{actual}`, but the graph says `{expected}`");
            let finding = Finding::error(code, file, format!("/{name}"), message);
            let hint = format!("write `{expected}` here, or change the graph");
            findings.add(finding.expected(expected).actual(actual).hint(hint));
        }
    }
    for (name, code) in
        [("title", "STEP_TITLE_MISMATCH"), ("inputs", "STEP_INPUTS_MISMATCH"), ("outputs", "STEP_OUTPUTS_MISMATCH")]
    {
        let (Some(told), Some(said)) = (node.value.get(name), document.front().get(name)) else { continue };
        let is_same = match (told, said) {
            (Value::Array(told), Value::Array(said)) => {
                told.iter().all(|t| said.contains(t)) && said.iter().all(|s| told.contains(s))
            }
            (Value::String(told), Value::String(said)) => told == said,
            // One of them has a finding of its own.
            _ => true,
        };
        if !is_same {
            let message = format!("`{name}` is {}, but the graph says {}", short(said), short(told));
            let finding = Finding::warning(code, file, format!("/{name}"), message);
            let hint = "write in both what is meant; people and programs read either";
            findings.add(finding.expected(short(told)).actual(short(said)).hint(hint));
        }
    }
}

fn short(value: &Value) -> String {
    match value.as_str() {
        Some(text) => format!("`{}`", quoted(text)),
        None => quoted(&value.to_string()),
    }
}

fn check_agent(
    package: &Package,
    file: &str,
    document: &Document,
    node: &Node,
    agents: &BTreeSet<&str>,
    findings: &mut Findings,
) {
    let Some(agent) = document.field("agentId").filter(|_| !package.agents().is_empty()) else { return };
    if !agents.contains(agent) {
        // Where the graph names the same one, it has the finding.
        if node.agent_id.as_deref() != Some(agent) {
            findings.add(agent_missing(package, file, "/agentId", agent));
        }
    } else if let Some(expected) = node.agent_id.as_deref().filter(|expected| *expected != agent) {
        // One that is none has its own finding.
        if !agents.contains(expected) {
            return;
        }
        let message = format!("`agentId` is `{agent}`, but the graph says `{expected}`");
        let finding = Finding::warning("STEP_AGENT_MISMATCH", file, "/agentId", message);
        let hint = format!("write `{expected}` here, or change the graph");
        findings.add(finding.expected(expected).actual(agent).hint(hint));
    }
}

fn check_sections(file: &str, document: &Document, node: &Node, findings: &mut Findings) {
    for section in SECTIONS_REQUIRED.into_iter().filter(|section| !document.has_section(section)) {
        let finding = Finding::error("SECTION_MISSING", file, "", format!("`{file}` has no section `{section}`"));
        let finding = finding.expected(section);
        findings.add(match nearly_section(document, section) {
            Some((line, heading)) => {
                let hint = format!("this line has `{}`: write `{section}`", quoted(heading));
                finding.at(document.body_line() + line, 1).actual(quoted(heading)).hint(hint)
            }
            None => {
                let hint = format!("add a line `{section}` and its text");
                finding.at(document.body_line(), 1).actual("nothing").hint(hint)
            }
        });
    }
    for section in SECTIONS_REQUIRED.into_iter().filter(|section| document.is_empty_section(section)) {
        let message = format!("the section `{section}` of `{file}` says nothing");
        let at = document.sections(section).first().copied().unwrap_or_default();
        let finding = Finding::warning("SECTION_EMPTY", file, "", message).at(document.body_line() + at, 1);
        findings.add(finding.expected("text below the heading").actual("nothing").hint("write it"));
    }
    for section in SECTIONS_REQUIRED.into_iter().chain([SECTION_RECOMMENDED]) {
        if let Some(second) = document.sections(section).get(1) {
            let message = format!("`{file}` has the section `{section}` more than once");
            let finding = Finding::warning("SECTION_DUPLICATE", file, "", message);
            let finding = finding.at(document.body_line() + second, 1);
            findings.add(finding.expected("one").actual(section).hint("make one section of them"));
        }
    }
    if node.kind == Some(NodeKind::Step) && !document.has_section(SECTION_RECOMMENDED) {
        let message = format!("`{file}` has no section `{SECTION_RECOMMENDED}`, so nothing says when it is done");
        let finding = Finding::warning("SECTION_RECOMMENDED", file, "", message).at(document.body_line(), 1);
        findings.add(finding.expected(SECTION_RECOMMENDED).actual("nothing").hint("add it"));
    }
}

/// The heading that was probably meant for a section, and its line within the body: one that differs in case, level, spaces
/// or a mark at its end.
fn nearly_section<'a>(document: &'a Document, section: &str) -> Option<(usize, &'a str)> {
    let plain = |heading: &str| {
        let words = heading.trim_start_matches('#').trim_end_matches([' ', ':', '#', '.']);
        words.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
    };
    let code = code_lines(document.body());
    let headings = document.body().lines().enumerate().filter(|(line, text)| {
        text.starts_with('#') && !code.get(*line).copied().unwrap_or(false) && text.trim_end() != section
    });
    let wanted = plain(section);
    headings.into_iter().find(|(_, text)| plain(text) == wanted)
}

/// Whether the steps of a workflow say themselves where they lead: of those with a way on, three do for each that does not.
fn transitions_are_listed(workflow: &Workflow, ways: &BTreeMap<&str, Vec<&Edge>>) -> bool {
    let with_ways = workflow.steps.iter().filter(|step| ways.contains_key(step.node_id.as_str()));
    let documents: Vec<&Document> = with_ways.filter_map(|step| step.document.as_deref()).collect();
    let listing = documents.iter().filter(|document| lists_transitions(document)).count();
    listing >= 3 * (documents.len() - listing)
}

/// Whether a step says where it leads, also under a name that is misspelt.
fn lists_transitions(document: &Document) -> bool {
    let mut fields = document.front().as_object().into_iter().flat_map(|fields| fields.keys());
    fields.any(|name| name == "transitions" || field_meant(name) == Some("transitions"))
}

fn transitions_missing(file: &str, ways: &[&Edge]) -> Finding {
    let targets: Vec<String> = ways.iter().take(TARGETS_SHOWN).map(|edge| format!("`{}`", edge.to)).collect();
    let more = if ways.len() > targets.len() { ", …" } else { "" };
    let targets = format!("{}{more}", targets.join(", "));
    let message = format!("`{file}` lists no transitions, as other steps do, and the graph leads to {targets}");
    let finding = Finding::warning("TRANSITIONS_MISSING", file, "", message);
    finding
        .expected(format!("transitions to {targets}"))
        .actual("nothing")
        .hint("add `transitions` to the front matter")
}

/// How many targets of a step without transitions are named.
const TARGETS_SHOWN: usize = 5;

/// The transitions that a step lists lead where the graph's edges lead, and the same of them is the default. A step that
/// lists none, in a workflow whose other steps mostly list none, too, leaves it to the graph. To the lost nodes leads an edge that begins nowhere.
fn check_transitions(file: &str, document: &Document, ways: &[&Edge], lost: &BTreeSet<&str>, findings: &mut Findings) {
    let Some(transitions) = document.front().get("transitions").and_then(Value::as_array) else { return };
    let of = |name: &str, transition: &Value| transition.get(name).and_then(Value::as_str).map(str::to_owned);
    let told: BTreeSet<String> = transitions.iter().filter_map(|transition| of("to", transition)).collect();
    let unsaid: BTreeSet<&str> = ways.iter().map(|edge| edge.to.as_str()).filter(|to| !told.contains(*to)).collect();
    let lead_nowhere: Vec<usize> = (0..transitions.len())
        .filter(|at| {
            let to = of("to", &transitions[*at]);
            to.is_some_and(|to| !lost.contains(to.as_str()) && !ways.iter().any(|edge| edge.to == to))
        })
        .collect();
    for &index in &lead_nowhere {
        let to = of("to", &transitions[index]).unwrap_or_default();
        let pointer = format!("/transitions/{index}/to");
        // One that leads elsewhere than the edge it stands for is one mistake and not two.
        let meant = unsaid.first().filter(|_| unsaid.len() == 1 && lead_nowhere.len() == 1);
        let (message, hint) = match meant {
            Some(meant) => (
                format!("the step leads to `{to}`, but the graph leads to `{meant}`"),
                format!("write `{meant}` here, or change the edge"),
            ),
            None => (
                format!("the step leads to `{to}`, but the graph has no such edge"),
                "add the edge, or take this out".to_owned(),
            ),
        };
        let finding = Finding::warning("TRANSITION_WITHOUT_EDGE", file, pointer, message);
        findings.add(finding.expected(meant.unwrap_or(&"the target of an edge").to_string()).actual(to).hint(hint));
    }
    if !(unsaid.len() == 1 && lead_nowhere.len() == 1) {
        for way in unsaid {
            let message = format!("the graph leads to `{way}`, but the step's transitions do not");
            let finding = Finding::warning("EDGE_WITHOUT_TRANSITION", file, "/transitions", message);
            findings.add(finding.expected(way).actual("nothing").hint("add the transition, or take the edge out"));
        }
    }
    check_numbers(file, transitions, ways, findings);
    check_default(file, transitions, ways, findings);
    check_words(file, transitions, ways, findings);
}

/// A step says each way once, also where several lead to one node.
fn check_numbers(file: &str, transitions: &[Value], ways: &[&Edge], findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, transition) in transitions.iter().enumerate() {
        let mut said = transition.clone();
        if let Some(fields) = said.as_object_mut() {
            fields.remove("isDefault");
        }
        if transition.is_object() && !seen.insert(said.to_string()) {
            let to = transition.get("to").and_then(Value::as_str).unwrap_or_default();
            let message = format!("the transition to `{to}` is there twice");
            let finding = Finding::warning("TRANSITION_DUPLICATE", file, format!("/transitions/{index}"), message);
            findings.add(finding.expected("each way once").actual(to).hint("take one of them out"));
        }
    }
    let to = |transition: &Value| transition.get("to").and_then(Value::as_str).map(str::to_owned);
    let targets: BTreeSet<&str> = ways.iter().map(|edge| edge.to.as_str()).collect();
    for target in targets {
        let edges = ways.iter().filter(|edge| edge.to == target).count();
        let said = transitions.iter().filter(|transition| to(transition).as_deref() == Some(target)).count();
        // What the step does not say at all has its own finding.
        if said > 0 && said < edges {
            let message =
                format!("the graph leads to `{target}` in {edges} ways, and the step's transitions in {said}");
            let finding = Finding::warning("EDGE_WITHOUT_TRANSITION", file, "/transitions", message);
            let finding = finding.expected(format!("{edges} ways to `{target}`")).actual(said.to_string());
            findings.add(finding.hint("add the transition, with the edge's label, or take the edge out"));
        }
    }
}

/// What a step says of a way in words is what the graph says of it.
fn check_words(file: &str, transitions: &[Value], ways: &[&Edge], findings: &mut Findings) {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    for (index, transition) in transitions.iter().enumerate() {
        let to = text(transition, "to").unwrap_or_default();
        let leading: Vec<&&Edge> = ways.iter().filter(|edge| edge.to == to).collect();
        // Several ways to one node are told apart by these very words.
        let [edge] = leading.as_slice() else { continue };
        for name in ["label", "conditionText"] {
            let (Some(here), Some(there)) = (text(transition, name), text(&edge.value, name)) else { continue };
            if here.trim() != there.trim() {
                let (shown, of_graph) = (quoted(&here), quoted(&there));
                let message = format!("`{name}` of the way to `{to}` is `{shown}` here, and `{of_graph}` in the graph");
                let pointer = format!("/transitions/{index}/{name}");
                let finding = Finding::warning("TRANSITION_WORDS_DIFFER", file, pointer, message);
                findings.add(finding.expected(of_graph).actual(shown).hint("say the same in both"));
            }
        }
    }
}

/// Where several ways lead on, a step says of the same one as the graph that it is the default.
fn check_default(file: &str, transitions: &[Value], ways: &[&Edge], findings: &mut Findings) {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    for (index, transition) in transitions.iter().enumerate().filter(|_| ways.len() > 1) {
        let (to, label) = (text(transition, "to").unwrap_or_default(), text(transition, "label"));
        let mut edges: Vec<&&Edge> = ways.iter().filter(|edge| edge.to == to).collect();
        if edges.len() > 1 {
            edges.retain(|edge| text(&edge.value, "label") == label);
        }
        let is_default = transition.get("isDefault").and_then(Value::as_bool).unwrap_or(false);
        // What is neither true nor false has its own finding.
        let is_clear = |edge: &Edge| edge.value.get("isDefault").is_none_or(Value::is_boolean);
        if let [edge] = edges.as_slice()
            && is_default != edge.is_default
            && is_clear(edge)
        {
            let (here, there) = if is_default { ("is", "is not") } else { ("is not", "is") };
            let message = format!("the way to `{to}` {here} the default here, and {there} in the graph");
            let pointer = format!("/transitions/{index}/isDefault");
            let finding = Finding::warning("TRANSITION_DEFAULT_MISMATCH", file, pointer, message);
            let finding = finding.expected(edge.is_default.to_string()).actual(is_default.to_string());
            findings.add(finding.hint("let the step and the graph name the same way as the default"));
            // That another one is the default instead is the same mistake.
            return;
        }
    }
}

/// A step that starts another workflow names it in `workflowId`.
fn check_subworkflow(
    package: &Package,
    (workflow, file): (&str, &str),
    document: &Document,
    node: &Node,
    findings: &mut Findings,
) {
    if node.kind != Some(NodeKind::Subworkflow) {
        let kind = node.value.get("type").and_then(Value::as_str).filter(|_| node.kind.is_some());
        if let (Some(id), Some(kind)) = (document.field("workflowId"), kind) {
            let message = format!("`workflowId` is read of a `subworkflow`, and `{}` is a `{}`", node.id, kind);
            let finding = Finding::warning("SUBWORKFLOW_TYPE", file, "/workflowId", message).actual(id);
            let hint = "make the node a `subworkflow`, or take the field out";
            findings.add(finding.expected("a node of type `subworkflow`").hint(hint));
        }
        return;
    }
    match document.field("workflowId") {
        Some(id) if id == workflow => {
            let message = format!("`{}` starts the workflow that it is in, again and again", node.id);
            let finding = Finding::warning("SUBWORKFLOW_ITSELF", file, "/workflowId", message);
            let hint = "name another workflow, or lead back with an edge";
            findings.add(finding.expected("another workflow").actual(id).hint(hint));
        }
        Some(id) if package.has_workflow(id) || !workflows_are_told(package) => {}
        Some(id) => findings.add(workflow_missing(package, file, "/workflowId".to_owned(), id)),
        None => {
            let message = format!("`{}` starts another workflow, and does not say which one", node.id);
            let finding = Finding::error("SUBWORKFLOW_UNNAMED", file, "/workflowId", message);
            let hint = "add `workflowId: <id of a workflow>` to the front matter";
            findings.add(finding.expected("the id of a workflow").actual("nothing").hint(hint));
        }
    }
}
