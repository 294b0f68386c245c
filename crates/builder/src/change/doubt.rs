//! What a set makes of a package that is right, and probably not as meant.

use std::collections::BTreeSet;

use serde_json::Value;
use toolhost_contract::{Redactor, nearest};

use super::rename::wanted;
use super::{ChangeSet, Rename};
use crate::assets;
use crate::domain;
use crate::files::folder_of;
use crate::finding::{Finding, quoted, token};
use crate::package::{Edge, MANIFEST, Package, Workflow};
use crate::refs::{Index, Locator, Object};
use crate::schema::WORKFLOW_FRONT_MATTER;

/// What to look at again in the workflows that a set changes.
pub(super) fn doubts((base, after): (&Package, &Package), set: &ChangeSet, secrets: &Redactor) -> Vec<Finding> {
    let touched: BTreeSet<&str> = set.operations.iter().filter_map(|operation| operation.object.workflow()).collect();
    let mut findings = Vec::new();
    for id in touched {
        if let Some(workflow) = after.workflow(id) {
            conditions(base.workflow(id), workflow, &mut findings);
            fields(base.workflow(id), workflow, &mut findings);
        }
    }
    for Rename { from, to } in wanted(set).0 {
        let kept = match &from {
            Object::Step { workflow, node } => node_kept((base, after), workflow, node),
            Object::Agent(id) => agent_kept(after, id),
            // A path that leads nowhere is found as such, but in the manifest, which a set does not write.
            Object::Asset(path) => lines_with(after, [MANIFEST].into_iter(), std::slice::from_ref(path)),
            Object::Workflow(_) | Object::Package | Object::Variable { .. } => Vec::new(),
        };
        tell_kept(after, kept, (&from, &to), secrets, &mut findings);
    }
    findings
}

/// Lines of one file, and files, that still have a former name and are told.
const STILL_NAMED_MAX: usize = 5;
const STILL_NAMING_MAX: usize = 20;

/// A line of a text that has a name in it.
struct Line<'a> {
    file: &'a str,
    /// From 1.
    number: usize,
    /// The character at which the name begins, from 1.
    column: usize,
    text: &'a str,
}

/// The former name of a node or its file in the texts of its workflow. A rename follows what refers to it; a sentence that
/// speaks of it is the author's to change.
fn node_kept<'a>((base, after): (&Package, &'a Package), id: &str, node: &str) -> Vec<Line<'a>> {
    let Some(workflow) = after.workflow(id) else { return Vec::new() };
    let path = base.workflow(id).and_then(|before| before.node(node)?.path.as_deref());
    let kept = workflow.nodes.iter().any(|node| node.path.as_deref() == path);
    let variable = Object::Variable { workflow: id.to_owned(), name: node.to_owned() };
    let is_variable = !Index::of(after).find(&Locator::Object(variable)).inbound.is_empty();
    // Where a variable has the same name, nobody can tell which of them a sentence means, but for one about the state.
    let mut names = in_quotes(node);
    let is_meant = |line: &Line<'_>| {
        !is_variable || STATE_WORDS.iter().any(|word| line.text.contains(word)) || line.text.contains(".md")
    };
    if let Some(path) = path.filter(|_| !kept) {
        let relative = path.strip_prefix(folder_of(&workflow.path)).unwrap_or(path);
        // A name alone may be any file's.
        names.extend([path, relative].iter().filter(|path| path.contains('/')).map(|path| (*path).to_owned()));
        names.extend([path, relative].iter().flat_map(|path| [format!("({path})"), format!("`{path}`")]));
    }
    let mut lines = lines_with(after, texts_of(workflow).chain(documents(after)), &names);
    // The graph of another workflow has nodes and files of its own.
    let others: BTreeSet<&str> = after.workflows().iter().map(|other| other.graph_path.as_str()).collect();
    let own = data(after).filter(|file| *file == workflow.graph_path || !others.contains(file));
    lines.extend(lines_with(after, own, &in_data(names)));
    lines.retain(is_meant);
    lines
}

/// Fields of the state that hold ids of nodes.
const STATE_WORDS: [&str; 3] = ["stepsCompleted", "currentNodeId", "nodeId"];

/// The former name of an agent in the texts of the workflows, and in the assets.
fn agent_kept<'a>(after: &'a Package, id: &str) -> Vec<Line<'a>> {
    let names = in_quotes(id);
    let texts = after.workflows().iter().flat_map(texts_of);
    let mut lines = lines_with(after, texts.chain(documents(after)), &names);
    lines.extend(lines_with(after, data(after), &in_data(names)));
    lines
}

/// The assets that people read.
fn documents(package: &Package) -> impl Iterator<Item = &str> {
    package.assets().map(|asset| asset.path).filter(|path| path.ends_with(".md"))
}

/// The files in which each text is a value with quotes of its own.
fn data(package: &Package) -> impl Iterator<Item = &str> {
    let graphs = package.workflows().iter().map(|workflow| workflow.graph_path.as_str());
    let assets =
        package.assets().map(|asset| asset.path).filter(|path| !path.ends_with(".md") && assets::is_text(path));
    package.agents_path().into_iter().chain(graphs).chain([MANIFEST]).chain(assets)
}

/// The names that can only be a part of a text in JSON, where each value has quotes.
fn in_data(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| !name.starts_with('"')).collect()
}

fn in_quotes(name: &str) -> Vec<String> {
    ['`', '"', '\''].iter().map(|quote| format!("{quote}{name}{quote}")).collect()
}

fn texts_of(workflow: &Workflow) -> impl Iterator<Item = &str> {
    std::iter::once(workflow.path.as_str()).chain(workflow.steps.iter().map(|step| step.path.as_str()))
}

fn lines_with<'a>(package: &'a Package, files: impl Iterator<Item = &'a str>, names: &[String]) -> Vec<Line<'a>> {
    let mut found: Vec<Line<'a>> = Vec::new();
    let mut naming = 0;
    for file in files {
        let text = package.files().get(file).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
        let before = found.len();
        let lines = text.lines().enumerate().filter_map(|(index, text)| {
            let at = names.iter().filter_map(|name| text.find(name.as_str())).min()?;
            Some(Line { file, number: index + 1, column: text[..at].chars().count() + 1, text })
        });
        found.extend(lines.take(STILL_NAMED_MAX));
        naming += usize::from(found.len() > before);
        if naming == STILL_NAMING_MAX {
            break;
        }
    }
    found
}

fn tell_kept(
    after: &Package,
    kept: Vec<Line<'_>>,
    (from, to): (&Object, &Object),
    secrets: &Redactor,
    findings: &mut Vec<Finding>,
) {
    let (what, former) = match from {
        Object::Step { node, .. } => ("node", node),
        Object::Agent(id) => ("agent", id),
        Object::Asset(path) => ("asset", path),
        Object::Workflow(_) | Object::Package | Object::Variable { .. } => return,
    };
    let graphs: BTreeSet<&str> = after.workflows().iter().map(|workflow| workflow.graph_path.as_str()).collect();
    for Line { file, number, column, text } in kept {
        let mut line = text.trim().to_owned();
        secrets.redact(&mut line);
        let message = format!("`{file}` still names `{former}`, which is `{to}` now: `{}`", quoted(&line));
        let mut finding = Finding::warning("FORMER_NAME_KEPT", file, "", message).line(number);
        finding.column = Some(column);
        let hint = match file {
            MANIFEST => "no set changes this file: tell the person who owns the package".to_owned(),
            _ if graphs.contains(file) => {
                format!("if it means the {what}, change that text with `nodes` or `edges` of the workflow")
            }
            _ => format!("if it means the {what}, change it with `textEdits`"),
        };
        findings.push(finding.expected("the new name").actual(former).hint(hint));
    }
}

/// Of a condition that is said twice, one was changed alone.
fn conditions(before: Option<&Workflow>, after: &Workflow, findings: &mut Vec<Finding>) {
    let Some(before) = before else { return };
    let key = |edge: &Edge| {
        let id = edge.value.get("id").and_then(Value::as_str).map(str::to_owned);
        id.unwrap_or_else(|| format!("{}\n{}\n{}", edge.from, edge.to, edge.value["label"]))
    };
    let known: std::collections::HashMap<String, &Edge> = before.edges.iter().map(|edge| (key(edge), edge)).collect();
    for edge in &after.edges {
        let (Some(former), Some(rule)) = (known.get(&key(edge)), edge.value.get("conditionExpr")) else { continue };
        let text = |edge: &Edge| edge.value.get("conditionText").cloned();
        if former.value.get("conditionExpr") != Some(rule) || text(former) == text(edge) {
            continue;
        }
        let (from, to) = (&edge.from, &edge.to);
        let message = format!(
            "the edge from `{from}` to `{to}` has another `conditionText`, and its `conditionExpr` is as it was: they may now \
             say different things"
        );
        let pointer = format!("/edges/{}/conditionText", edge.index);
        let finding = Finding::warning("CONDITION_TEXT_ALONE", &after.graph_path, pointer, message);
        let hint = "change `conditionExpr` as well, or take it out (null)";
        findings.push(finding.expected("both as they mean the same").actual(rule.to_string()).hint(hint));
    }
}

/// A field of the document that the format does not have. It is allowed, and often a slip.
fn fields(before: Option<&Workflow>, after: &Workflow, findings: &mut Vec<Finding>) {
    let Some(front) = after.document.as_ref().and_then(|document| document.front().as_object()) else { return };
    let former = before.and_then(|before| before.document.as_ref()).map(|document| document.front());
    let schema = WORKFLOW_FRONT_MATTER.value();
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    // Our own is read, too: it says whom the package is for.
    let known: Vec<&str> = fields.chain([domain::FIELD]).collect();
    for name in front.keys().filter(|name| !known.contains(&name.as_str())) {
        if former.is_some_and(|former| former.get(name).is_some()) {
            continue;
        }
        let message = format!("the format has no field `{}` in the front matter of a workflow", name.escape_debug());
        let pointer = format!("/{}", token(name));
        let finding = Finding::warning("FRONT_MATTER_FIELD_UNKNOWN", &after.path, pointer, message);
        let hint = match nearest(name, known.iter().copied()).first() {
            Some(near) => format!("did you mean `{near}`? A value that steps read belongs into `variables`"),
            None => "it is kept; a value that steps read belongs into `variables`".to_owned(),
        };
        findings.push(finding.expected(format!("one of {}", known.join(", "))).actual(name).hint(hint));
    }
}
