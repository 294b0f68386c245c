//! What to do about a finding, for who writes change sets: in operations, and not in files.

use serde_json::Value;
use toolhost_contract::{REDACTED, Redactor, did_you_mean, nearest_names};

use super::{ChangeSet, Op, Operation, snapshot};
use crate::assets;
use crate::finding::{Finding, quoted};
use crate::package::{Edge, Package, Workflow};
use crate::refs::Object;

/// Longest passage that a finding carries, characters.
const PASSAGE_CHARS_MAX: usize = 300;
/// Most edges that a hint names.
const EDGES_NAMED_MAX: usize = 5;
/// Most names that are told where none is like the one that is not there.
const NAMES_SHOWN_MAX: usize = 20;
/// Texts that are searched for what is like a passage are at most this long, characters.
const SEARCHED_CHARS_MAX: usize = 100_000;

/// Adds to findings about the operations of a set what would be right there: the passage that was probably meant, or what
/// a new object needs.
pub fn explain(package: &Package, set: &ChangeSet, findings: &mut [Finding], secrets: &Redactor) {
    for finding in findings {
        if let Some(meant) = below_assets(&finding.file).filter(|_| finding.code == "ASSET_PATH") {
            finding.message.push_str(&format!("; did you mean `{meant}`?"));
            finding.hint = format!("write `{meant}`: all assets are below `{}`", assets::FOLDER);
        }
        if finding.code == "TARGET_NOT_FOUND"
            && (is_told_otherwise(package, set, finding) || add_nearest(package, set, finding))
        {
            continue;
        }
        let Some(operation) = index_of(&finding.pointer).and_then(|index| set.operations.get(index)) else { continue };
        match (finding.code.as_str(), &operation.object) {
            ("TEXT_NOT_FOUND", object) => add_passage(package, object, operation, finding, secrets),
            ("TARGET_NOT_FOUND", object) if operation.op == Op::Upsert => {
                let needs = match object {
                    Object::Workflow(_) => "`graph_json`, its whole graph, and `workflow_md`",
                    Object::Step { .. } => "`step_markdown`, its whole text, and a node in the graph of its workflow",
                    Object::Agent(_) => "`agent_definition`, all of its fields",
                    _ => "`content`, its whole text",
                };
                let kind = operation.target_type().as_str();
                finding.hint = format!("name one that is there; a new {kind} is given as a whole: {needs}");
            }
            _ => {}
        }
    }
}

/// Says of a step that is not there what is: its workflow is not, or the set itself takes its node out.
fn is_told_otherwise(package: &Package, set: &ChangeSet, finding: &mut Finding) -> bool {
    let Some(Object::Step { workflow, node }) = Object::parse(&finding.actual) else { return false };
    let flow = Object::Workflow(workflow.clone());
    let is_made = set.operations.iter().any(|operation| operation.object == flow && operation.op == Op::Upsert);
    if !package.has_workflow(&workflow) && !is_made {
        let there: Vec<&str> = package.workflow_ids().into_iter().collect();
        let near: Vec<String> = nearest_names(&workflow, &there).into_iter().map(quoted).collect();
        finding.message = format!("there is no workflow `{}`{}", quoted(&workflow), did_you_mean(&near));
        finding.hint = "write the id of a workflow of the package in `workflowId`".to_owned();
        return true;
    }
    let takes_out = |operation: &Operation| operation.object == flow && operation.edits.delete_nodes.contains(&node);
    if set.operations.iter().any(takes_out) {
        finding.message = format!("the set takes the node `{node}` out (`deleteNodes`), and its step goes with it");
        finding.hint = "leave out this operation, or keep the node".to_owned();
        return true;
    }
    false
}

/// Adds to a finding about a missing object the names of existing objects that the author may have meant: none that goes
/// with the same set, and no asset that is no text, which no set changes: of that one all is said then.
fn add_nearest(package: &Package, set: &ChangeSet, finding: &mut Finding) -> bool {
    let Some(object) = Object::parse(&finding.actual) else { return false };
    if let Object::Asset(path) = &object
        && !assets::is_text(path)
        && package.has_asset(path)
    {
        finding.message = format!("the asset `{}` is no text, and a set changes texts only", quoted(path));
        finding.hint = "tell the person who owns the package what should become of it".to_owned();
        return true;
    }
    let stays = |name: &&str| !deletes(set, &named_as(&object, name));
    let (name, there): (&str, Vec<&str>) = match &object {
        Object::Workflow(id) => (id, package.workflow_ids().into_iter().collect()),
        Object::Step { workflow, node } => {
            let nodes = package.workflow(workflow).into_iter().flat_map(|workflow| &workflow.nodes);
            (node, nodes.map(|node| node.id.as_str()).collect())
        }
        Object::Agent(id) => (id, package.agents().iter().map(|agent| agent.id.as_str()).collect()),
        Object::Asset(path) => (path, package.asset_paths().filter(|path| assets::is_text(path)).collect()),
        Object::Package | Object::Variable { .. } => return false,
    };
    let there: Vec<&str> = there.into_iter().filter(stays).collect();
    let near: Vec<String> = nearest_names(name, &there).into_iter().map(quoted).collect();
    finding.message.push_str(&did_you_mean(&near));
    if near.is_empty() && !there.is_empty() {
        let shown = there.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{}`", quoted(name)));
        let shown: Vec<String> = shown.collect();
        let more = there.len() - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        finding.message.push_str(&format!("; there are {}{more}", shown.join(", ")));
    }
    false
}

/// The object of the same kind (and workflow) that has this name.
fn named_as(object: &Object, name: &str) -> Object {
    match object {
        Object::Workflow(_) => Object::Workflow(name.to_owned()),
        Object::Step { workflow, .. } => Object::Step { workflow: workflow.clone(), node: name.to_owned() },
        Object::Agent(_) => Object::Agent(name.to_owned()),
        _ => Object::Asset(name.to_owned()),
    }
}

/// `operations[2].payload` is about the third operation.
fn index_of(pointer: &str) -> Option<usize> {
    pointer.strip_prefix("operations[")?.split_once(']')?.0.parse().ok()
}

/// The path of an asset that lacks only the folder of all assets.
pub(super) fn below_assets(path: &str) -> Option<String> {
    let meant = format!("{}{path}", assets::FOLDER);
    (!path.starts_with(assets::FOLDER) && assets::problem(&meant).is_none()).then_some(meant)
}

fn add_passage(package: &Package, object: &Object, operation: &Operation, finding: &mut Finding, secrets: &Redactor) {
    // What hides a secret is not there, and has a hint of its own.
    let is_meant = |find: &&str| quoted(find) == finding.actual && !find.contains(REDACTED);
    let Some(find) = operation.edits.text_edits.iter().map(|edit| edit.find.as_str()).find(is_meant) else { return };
    // As a read shows them: what is like a secret must not be found by guessing.
    let shown = |mut text: String| {
        secrets.redact(&mut text);
        text
    };
    let texts = snapshot(package, object).unwrap_or_default().0.into_values().map(shown);
    let Some((line, passage)) = texts.filter_map(|text| nearest_passage(&text, find)).next() else { return };
    let shown: String = passage.chars().take(PASSAGE_CHARS_MAX).collect();
    // With its line ends and quotes as JSON has them, so that it can be copied into `find`.
    finding.message.push_str(&format!("; line {line} has {}", Value::from(shown)));
    finding.hint = "copy the passage from the line that is named, letter by letter".to_owned();
}

/// The passage of a text that differs from this one only in quotes, dashes, spaces and case; else the line that has most of
/// its words. With its line, from 1.
fn nearest_passage(text: &str, find: &str) -> Option<(usize, String)> {
    let text: Vec<char> = text.chars().take(SEARCHED_CHARS_MAX).collect();
    let line_of = |at: usize| text[..at].iter().filter(|c| **c == '\n').count() + 1;
    let (plain, places): (Vec<char>, Vec<usize>) = plain(text.iter().copied()).into_iter().unzip();
    let wanted: Vec<char> = self::plain(find.trim().chars()).into_iter().map(|(c, _)| c).collect();
    if wanted.is_empty() {
        return None;
    }
    if let Some(at) = plain.windows(wanted.len()).position(|window| window == wanted) {
        let (first, last) = (places[at], places[at + wanted.len() - 1]);
        return Some((line_of(first), text[first..=last].iter().collect()));
    }
    let words = |line: &str| line.to_lowercase().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let first = find.lines().find(|line| !line.trim().is_empty())?;
    let wanted = words(first);
    let whole: String = text.iter().collect();
    let common = |line: &str| words(line).iter().filter(|word| wanted.contains(word)).count();
    let lines = whole.lines().enumerate().map(|(index, line)| (common(line), index, line));
    // Of equal ones the first.
    let (count, index, line) = lines.max_by_key(|(count, index, _)| (*count, std::cmp::Reverse(*index)))?;
    (count > 0 && count * 2 >= wanted.len()).then(|| (index + 1, line.to_owned()))
}

/// Characters without what editors and models write in several ways, each with its place.
fn plain(chars: impl Iterator<Item = char>) -> Vec<(char, usize)> {
    let mut out: Vec<(char, usize)> = Vec::new();
    for (at, c) in chars.enumerate() {
        let c = match c {
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => '\'',
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            c if c.is_whitespace() => ' ',
            c => c.to_lowercase().next().unwrap_or(c),
        };
        if c != ' ' || out.last().is_none_or(|(last, _)| *last != ' ') {
            out.push((c, at));
        }
    }
    out
}

/// Says what is to be done about a finding in the files that a set makes.
pub(super) fn in_operations(base: &Package, after: &Package, set: &ChangeSet, finding: &mut Finding) {
    let hint = match finding.code.as_str() {
        "FILE_MISSING" => file_missing(after, set, finding),
        "ENTRY_NODE_MISSING" => entry_missing(base, after, finding),
        "DEFAULT_EDGE_MISSING" => default_missing(base, after, finding),
        "DEFAULT_EDGE_DUPLICATE" => Some("set `isDefault: false` on the one that was the default".to_owned()),
        "ASSET_NOT_FOUND" => else_upsert(set, finding, "add the asset", &Object::Asset(finding.actual.clone())),
        "AGENT_NOT_FOUND" => else_upsert(set, finding, "add the agent", &Object::Agent(finding.actual.clone())),
        "WORKFLOW_NOT_FOUND" => else_upsert(set, finding, "add it", &Object::Workflow(finding.actual.clone())),
        _ => None,
    };
    if let Some(hint) = hint {
        finding.hint = hint;
    }
}

fn deletes(set: &ChangeSet, object: &Object) -> bool {
    set.operations.iter().any(|operation| operation.op == Op::Delete && operation.object == *object)
}

fn else_upsert(set: &ChangeSet, finding: &Finding, add: &str, object: &Object) -> Option<String> {
    if deletes(set, object) {
        return Some(format!(
            "the set deletes `{object}`: change what names it in the same set, or leave the delete out"
        ));
    }
    let kind = object.to_string();
    let kind = kind.split(':').next().unwrap_or_default();
    Some(finding.hint.replace(add, &format!("upsert the {kind} in the same set")))
}

/// The workflow whose graph a finding is about, and the node.
fn node_of<'a>(package: &'a Package, finding: &Finding) -> Option<(&'a Workflow, &'a crate::package::Node)> {
    let workflow = package.workflows().iter().find(|workflow| workflow.graph_path == finding.file)?;
    let index: usize = finding.pointer.strip_prefix("/nodes/")?.split('/').next()?.parse().ok()?;
    Some((workflow, workflow.nodes.iter().find(|node| node.index == index)?))
}

/// The graph still begins with a node that the set takes out.
fn entry_missing(base: &Package, after: &Package, finding: &Finding) -> Option<String> {
    let workflow = after.workflows().iter().find(|workflow| workflow.graph_path == finding.file)?;
    let was_there = base.workflow(&workflow.id)?.node(&finding.actual).is_some();
    was_there
        .then(|| "the set deletes it: name the node that comes first now as `entryNodeId` in the same set".to_owned())
}

/// A node without its step: the step was not made, or it goes and the node does not.
fn file_missing(after: &Package, set: &ChangeSet, finding: &Finding) -> Option<String> {
    let (workflow, node) = node_of(after, finding)?;
    let (id, node_id) = (&workflow.id, &node.id);
    let step = Object::Step { workflow: id.clone(), node: node_id.clone() };
    if deletes(set, &step) {
        return Some(format!(
            "the node is still in the graph: in place of the delete of `{step}`, upsert `workflow:{id}` with \
             `deleteNodes: [\"{node_id}\"]`, which takes the step along"
        ));
    }
    Some(format!(
        "upsert the step in the same set: `targetType` step, `target` {{\"workflowId\": \"{id}\", \"nodeId\": \
         \"{node_id}\"}}, `payload` {{\"step_markdown\": …}}"
    ))
}

/// Several ways lead on and none is the default: where a node was put in between, the way that led there before is left.
fn default_missing(base: &Package, after: &Package, finding: &Finding) -> Option<String> {
    let (workflow, node) = node_of(after, finding)?;
    let edges: Vec<&Edge> = workflow.edges.iter().filter(|edge| edge.from == node.id).collect();
    let before = base.workflow(&workflow.id);
    let was_there = |edge: &&&Edge| {
        before.is_some_and(|known| known.edges.iter().any(|one| (&one.from, &one.to) == (&edge.from, &edge.to)))
    };
    let old: Vec<&&Edge> = edges.iter().filter(was_there).collect();
    let of = |edges: &[&&Edge]| {
        let names: Vec<String> = edges.iter().take(EDGES_NAMED_MAX).map(|edge| told(edge)).collect();
        names.join(" or ")
    };
    let one_default = format!("give one of them `isDefault: true`: {}", of(&edges.iter().collect::<Vec<_>>()));
    Some(if old.is_empty() || old.len() == edges.len() {
        one_default
    } else {
        format!("if {} was to go, name it in `deleteEdges`; else {one_default}", of(&old))
    })
}

/// An edge as `deleteEdges` takes it.
fn told(edge: &Edge) -> String {
    match edge.value.get("id").and_then(Value::as_str) {
        Some(id) => format!("`{}` (`{}` to `{}`)", quoted(id), edge.from, edge.to),
        None => format!("`{{\"from\": \"{}\", \"to\": \"{}\"}}`", edge.from, edge.to),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest_passage;

    #[test]
    fn a_passage_that_differs_in_quotes_spaces_or_case_is_found_as_it_stands() {
        let text = "# Title\n\nSay \u{201c}please\u{201d}\nand don\u{2019}t  shout.\n";
        let found = nearest_passage(text, "say \"please\" and don't shout.");
        assert_eq!(found, Some((3, "Say \u{201c}please\u{201d}\nand don\u{2019}t  shout.".to_owned())));
    }

    #[test]
    fn else_the_line_with_most_of_its_words_is_told_and_none_if_nothing_is_like_it() {
        let text = "Ask the customer for the number.\nAsk the customer for the order number, twice.\n";
        let found = nearest_passage(text, "Ask the customer for the order number once.");
        assert_eq!(found, Some((2, "Ask the customer for the order number, twice.".to_owned())));
        assert_eq!(nearest_passage(text, "something else entirely"), None);
        assert_eq!(nearest_passage(text, "  "), None);
    }
}
