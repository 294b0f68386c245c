//! Whether a set may be applied: five stages, each with a finding per thing that is wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolhost_contract::{REDACTED, Redactor};

use super::doubt::doubts;
use super::explain::{below_assets, in_operations};
use super::report::{Report, Stage};
use super::set::parse_with;
use super::write::unwritable;
use super::{ChangeSet, Op, Operation, affected, impact_on, snapshot};
use crate::assets;
use crate::check::{Scope, locate, position, within};
use crate::files;
use crate::finding::{Finding, Severity, quoted};
use crate::hidden;
use crate::limits::SECRETS_TOLD_MAX;
use crate::package::{MANIFEST, Package};
use crate::refs::{Index, Kind, Locator, Object, Ref};
use crate::schema::Schemas;

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    /// The schemas, compiled.
    pub schemas: &'a Schemas,
    /// The package without the set. What was wrong with it already does not count against the set.
    pub base: &'a Package,
    /// The package with it: see [`super::overlay`]. All workflows whose references matter are at hand in both.
    pub after: &'a Package,
    /// The set, as it was stored.
    pub set: &'a Value,
    /// What looks like a secret.
    pub secrets: &'a Redactor,
    /// What could not be written, as `overlay` said.
    pub unwritten: &'a [Finding],
}

/// Says whether a set may be applied: the five stages, one after the other. A set that fails the first one is looked at
/// no further.
#[must_use]
pub fn validate(check: &Check<'_>) -> Report {
    let mut report = Report::default();
    let mut looked: Option<Looked> = None;
    for stage in Stage::ALL {
        report.stages.push(stage);
        match (stage, &mut looked) {
            (Stage::Schema, _) => looked = check_schema(check, &mut report),
            (_, None) => {}
            (Stage::Bmad, Some(looked)) => {
                report.extend(looked.of(stage), stage);
                check_written(check, &looked.set, &mut report);
                let mut doubts = doubts((check.base, check.after), &looked.set, check.secrets);
                locate(check.after, &mut doubts);
                doubts.into_iter().for_each(|doubt| report.add(stage, doubt, false));
            }
            (Stage::Reference, Some(looked)) => {
                report.extend(looked.of(stage), stage);
                check_deleted(check, &looked.set, &mut report);
            }
            (Stage::Impact, Some(looked)) => check_impact(&looked.set, &mut report),
            (Stage::Security, Some(looked)) => {
                report.extend(looked.of(stage), stage);
                let operations = &looked.set.operations;
                let before = |operation: &Operation| suspects(check.base, &operation.object, check.secrets);
                let known: BTreeSet<String> = operations.iter().flat_map(before).collect();
                for (index, operation) in operations.iter().enumerate() {
                    check_safety(check, index, operation, &known, &mut report);
                }
            }
        }
        if stage == Stage::Schema && !report.errors.is_empty() {
            report.schema_failed = true;
            break;
        }
    }
    report.finished()
}

/// A set that is one, and what the rules say of its files. Each stage takes its own findings.
struct Looked {
    set: ChangeSet,
    found: Vec<(Finding, bool)>,
}

impl Looked {
    fn of(&mut self, stage: Stage) -> Vec<(Finding, bool)> {
        let (own, rest) =
            std::mem::take(&mut self.found).into_iter().partition(|(found, _)| Stage::of(&found.code) == stage);
        self.found = rest;
        own
    }
}

/// The contract of the set, and the schemas of what it writes.
fn check_schema(check: &Check<'_>, report: &mut Report) -> Option<Looked> {
    let parsed = match parse_with(&check.schemas.change_set, check.set) {
        Ok(parsed) => parsed,
        Err(refused) => {
            report.refuse(refused);
            return None;
        }
    };
    let set = parsed.set;
    report.impact = impact_on(check.base, &set.operations);
    for finding in parsed.warnings {
        report.add(Stage::Schema, finding, false);
    }
    let mut found = check_files(check, &set);
    for (finding, _) in &mut found {
        in_operations(check.base, check.after, &set, finding);
    }
    found.extend(check.unwritten.iter().map(|finding| (finding.clone(), false)));
    let mut looked = Looked { set, found };
    report.extend(looked.of(Stage::Schema), Stage::Schema);
    Some(looked)
}

/// What the rules say of the files that the set touches, and whether they said it before.
fn check_files(check: &Check<'_>, set: &ChangeSet) -> Vec<(Finding, bool)> {
    let mut touched = BTreeSet::new();
    for operation in &set.operations {
        for package in [check.base, check.after] {
            touch(package, operation, &mut touched);
        }
    }
    let manifest = |package: &Package| package.files().get(MANIFEST).cloned();
    if set.operations.iter().any(|o| matches!(o.object, Object::Workflow(_)))
        && manifest(check.base) != manifest(check.after)
    {
        touched.insert(MANIFEST.to_owned());
    }
    let after = within(check.after, check.schemas, Scope::Files(&touched));
    if after.is_empty() {
        return Vec::new();
    }
    let mut before: BTreeMap<Known, usize> = BTreeMap::new();
    for finding in within(check.base, check.schemas, Scope::Files(&touched)) {
        *before.entry(known(&finding)).or_default() += 1;
    }
    // Each finding of the base excuses one of its kind, and no more.
    let mut was_there = |finding: &Finding| match before.get_mut(&known(finding)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let told = |finding: Finding| (was_there(&finding), finding);
    after.into_iter().map(told).map(|(before, finding)| (finding, before)).collect()
}

type Known = (Severity, String, String, String, String);

/// What makes a finding the same one, even where other items now stand before its own.
fn known(finding: &Finding) -> Known {
    let plain = |text: &str| {
        let parts = text.split('/').enumerate().map(|(at, part)| {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            if at > 0 && (rest.is_empty() || rest.starts_with('`')) { rest } else { part }
        });
        parts.collect::<Vec<_>>().join("/")
    };
    let place = plain(&finding.pointer);
    (
        finding.severity,
        finding.file.clone(),
        finding.code.clone(),
        place,
        format!("{}\n{}", plain(&finding.message), finding.actual),
    )
}

/// The files of an operation's objects.
fn touch(package: &Package, operation: &Operation, touched: &mut BTreeSet<String>) {
    for object in affected(package, operation) {
        match &object {
            Object::Workflow(id) => {
                let workflow = package.workflow(id);
                touched.extend(workflow.into_iter().flat_map(|w| [w.path.clone(), w.graph_path.clone()]));
            }
            Object::Step { workflow, node } => {
                let Some(workflow) = package.workflow(workflow) else { continue };
                touched.extend(workflow.node(node).and_then(|node| node.path.clone()));
                if operation.op == Op::Delete {
                    // Its node may still be there, and then misses it.
                    touched.insert(workflow.graph_path.clone());
                }
            }
            Object::Agent(_) => touched.extend(package.agents_path().map(str::to_owned)),
            Object::Asset(path) => drop(touched.insert(path.clone())),
            Object::Package | Object::Variable { .. } => {}
        }
    }
}

/// What the set makes is there; if something kept it from being written, that has been told already.
fn check_written(check: &Check<'_>, set: &ChangeSet, report: &mut Report) {
    if !check.unwritten.is_empty() {
        return;
    }
    let after = check.after;
    for (index, operation) in set.operations.iter().enumerate().filter(|(_, operation)| operation.op == Op::Upsert) {
        let is_there = match &operation.object {
            Object::Workflow(id) => after.has_workflow(id),
            Object::Step { workflow, node } => after.workflow(workflow).is_some_and(|w| w.step(node).is_some()),
            Object::Agent(id) => after.agent(id).is_some(),
            Object::Asset(path) => after.has_asset(path),
            Object::Package | Object::Variable { .. } => false,
        };
        if !is_there {
            let message = format!("operations[{index}] makes `{}`, but it is not there", operation.object);
            let finding = Finding::error("TARGET_NOT_WRITTEN", "", format!("operations[{index}]"), message);
            report.add(Stage::Bmad, finding.hint("stage the set again"), false);
        }
    }
}

/// What still refers to something that the set takes out.
fn check_deleted(check: &Check<'_>, set: &ChangeSet, report: &mut Report) {
    let deletes: Vec<&Operation> = set.operations.iter().filter(|operation| operation.op == Op::Delete).collect();
    if deletes.is_empty() {
        return;
    }
    let (before, after) = (Index::of(check.base), Index::of(check.after));
    // A place in data has a pointer, one in a text has a line.
    let place = |file: &str, pointer: &str, line: Option<usize>| {
        (file.to_owned(), pointer.to_owned(), line.filter(|_| pointer.is_empty()))
    };
    let mut told: BTreeSet<(String, String, Option<usize>)> =
        report.errors.iter().map(|found| place(&found.file, &found.path, found.line)).collect();
    for operation in deletes {
        for object in affected(check.base, operation) {
            let locator = Locator::Object(object.clone());
            let broken = after.find(&locator).inbound.into_iter().filter(|r| !r.resolved);
            // A choice of a menu is a reference only as long as there is such a workflow.
            let lost = before.find(&locator).inbound.into_iter().filter(|r| is_lost_choice(check, &object, r));
            let uses: Vec<Ref> = broken.chain(lost).collect();
            // A node names its agent in the graph and in its step: that is one use.
            let is_agent = matches!(object, Object::Agent(_));
            let is_told = |r: &&Ref| told.contains(&place(&r.file, &r.pointer, r.line));
            let mut users: BTreeSet<Object> = uses.iter().filter(is_told).map(|r| r.from.clone()).collect();
            for reference in uses {
                let Ref { from, file, pointer, line, .. } = reference;
                if !told.insert(place(&file, &pointer, line)) || (!users.insert(from.clone()) && is_agent) {
                    continue;
                }
                // What follows from an operation is one that who wrote the set has not numbered.
                let message = format!("`{from}` refers to `{object}`, which the set deletes");
                let mut finding =
                    Finding::error("REFERENCE_BROKEN", &file, pointer, message).expected("no reference to it");
                finding.line = line;
                let mut finding = finding.actual(object.to_string()).hint("change what refers to it in the same set");
                if file.starts_with(assets::FOLDER) && !assets::is_text(&file) {
                    finding.severity = Severity::Warning;
                    finding = finding.hint("a set writes no file of this kind: tell the person who owns the package");
                }
                let mut found = [finding];
                locate(check.after, &mut found);
                let [mut finding] = found;
                finding.column = finding.column.or_else(|| column_of(check.after, &finding, &object));
                if let Some(text) = line_of(check.after, &finding, check.secrets) {
                    finding.message.push_str(&format!("; the line is `{text}`"));
                }
                report.add(Stage::Reference, finding, false);
            }
        }
    }
}

/// The line that a finding is about, as a message may carry it.
fn line_of(package: &Package, finding: &Finding, secrets: &Redactor) -> Option<String> {
    let text = std::str::from_utf8(package.files().get(&finding.file)?).ok()?;
    let line = text.lines().nth(finding.line?.checked_sub(1)?)?.trim();
    // Before it is cut: half of a secret is not seen to be one.
    let mut line = line.to_owned();
    secrets.redact(&mut line);
    (!line.is_empty()).then(|| quoted(&line))
}

/// Where in its line a text names an object, from 1.
fn column_of(package: &Package, finding: &Finding, object: &Object) -> Option<usize> {
    let text = std::str::from_utf8(package.files().get(&finding.file)?).ok()?;
    let line = text.lines().nth(finding.line?.checked_sub(1)?)?;
    let name = match object {
        Object::Workflow(id) | Object::Agent(id) | Object::Asset(id) => id,
        Object::Step { node, .. } => node,
        Object::Variable { name, .. } => name,
        Object::Package => return None,
    };
    Some(line[..line.find(name.as_str())?].chars().count() + 1)
}

fn is_lost_choice(check: &Check<'_>, deleted: &Object, reference: &Ref) -> bool {
    let (Object::Agent(id), Kind::Subworkflow, Object::Workflow(gone)) = (&reference.from, reference.kind, deleted)
    else {
        return false;
    };
    let inside = reference.pointer.splitn(4, '/').nth(3).map(|rest| format!("/{rest}")).unwrap_or_default();
    let choice = |package: &Package| Some(package.agent(id)?.value.pointer(&inside)?.as_str()?.to_owned());
    !check.after.has_workflow(gone) && choice(check.base).is_some() && choice(check.base) == choice(check.after)
}

fn check_impact(set: &ChangeSet, report: &mut Report) {
    let computed = report.impact.clone();
    for (name, said, is) in set.declared_impact.iter().flat_map(|said| super::impact::differences(said, &computed)) {
        let message = format!(
            "the set says that its `{name}` is {}, but it is {}",
            quoted(&said.to_string()),
            quoted(&is.to_string())
        );
        let finding = Finding::warning("IMPACT_DIFFERS", "", format!("impact.{name}"), message);
        let finding =
            finding.expected(is.to_string()).actual(said.to_string()).hint("leave the impact out: it is computed");
        report.add(Stage::Impact, finding, false);
    }
    for flag in &computed.risk_flags {
        let message = match flag.as_str() {
            "cross-object" => "the set changes objects of several kinds",
            "high-churn" => "the set changes much at once",
            "deletes" => "the set deletes something",
            _ => "the set changes how steps follow each other",
        };
        let finding =
            Finding::warning(&format!("RISK_{}", flag.to_uppercase().replace('-', "_")), "", "operations", message);
        report.add(
            Stage::Impact,
            finding.actual(flag).hint("nothing to fix: say it where you sum up what the set does"),
            false,
        );
    }
}

/// Paths, sizes and hidden characters of one operation.
fn check_safety(check: &Check<'_>, index: usize, operation: &Operation, known: &BTreeSet<String>, report: &mut Report) {
    let at = format!("operations[{index}]");
    if let Object::Asset(path) = &operation.object
        && operation.op == Op::Upsert
        && let Some((code, said)) = unwritable(check.base, path)
        && !report.errors.iter().any(|found| found.file == *path && found.code == code)
    {
        let message = format!("the path of the asset `{}` {said}", path.escape_debug());
        let finding = Finding::error(code, path, format!("{at}.target.path"), message).actual(path);
        let hint = match below_assets(path) {
            Some(meant) => format!("write `{meant}`: all assets are below `{}`", assets::FOLDER),
            None => "choose another path".to_owned(),
        };
        report.add(Stage::Security, finding.expected("a path such as `assets/a.md`").hint(hint), false);
    }
    let payload = operation.to_value().get("payload").cloned().unwrap_or_default();
    for name in ["path", "graphPath"] {
        let path = payload.get(name).and_then(Value::as_str).unwrap_or_default();
        if let Some(problem) = files::problem(path).filter(|_| payload.get(name).is_some()) {
            let message = format!("the path `{}` {problem}", path.escape_debug());
            let finding = Finding::error("PATH_UNSAFE", "", format!("{at}.payload.{name}"), message).actual(path);
            report.add(
                Stage::Security,
                finding.expected("a path below the package").hint("choose another path"),
                false,
            );
        }
    }
    check_hidden(&at, operation, report);
    check_secrets(check, &at, operation, known, report);
}

/// What looks like a secret and stood in none of the objects that the set changes (one that is moved or renamed keeps its
/// own), and what its author could not see and takes out.
fn check_secrets(check: &Check<'_>, at: &str, operation: &Operation, known: &BTreeSet<String>, report: &mut Report) {
    let added = suspects(check.after, &operation.object, check.secrets);
    let new: Vec<&String> = added.difference(known).collect();
    for (index, secret) in new.iter().take(SECRETS_TOLD_MAX).enumerate().filter(|_| operation.op == Op::Upsert) {
        let left = if index == 0 { new.len().saturating_sub(SECRETS_TOLD_MAX) } else { 0 };
        let more = if left > 0 { format!("; {left} more are not listed") } else { String::new() };
        let message = format!("`{}` gets what looks like a secret{more}", operation.object);
        let finding = Finding::warning("SECRET_ADDED", "", format!("{at}.payload"), message);
        let finding = in_file(check.after, operation, secret, finding);
        let finding = finding.expected("the name of a variable that holds it").actual("a key, a token or a password");
        report.add(Stage::Security, finding.hint("take it out, and name where the people who run this find it"), false);
    }
    if operation.op == Op::Upsert {
        let left = hidden_in(check.after, &operation.object, check.secrets);
        let before = hidden_in(check.base, &operation.object, check.secrets);
        let lost: Vec<&String> = before.difference(&left).collect();
        if let Some(first) = lost.first() {
            let secrets = if lost.len() == 1 { "a secret".to_owned() } else { format!("{} secrets", lost.len()) };
            let message = format!("`{}` loses {secrets} that a read shows as `{REDACTED}`", operation.object);
            let finding = Finding::warning("SECRET_REMOVED", "", format!("{at}.payload"), message);
            // The secret is gone, so the number of its former line would lead to another text.
            let finding = Finding { line: None, column: None, ..in_file(check.base, operation, first, finding) };
            let hint = "if it was to stay, change only the passages around it by `textEdits`; else say that it goes";
            report.add(Stage::Security, finding.hint(hint), false);
        }
    }
}

/// What a read of an object does not show.
fn hidden_in(package: &Package, object: &Object, secrets: &Redactor) -> BTreeSet<String> {
    let texts = snapshot(package, object).unwrap_or_default().0;
    texts.values().flat_map(|text| secrets.spans(text).into_iter().map(|span| text[span].to_owned())).collect()
}

fn suspects(package: &Package, object: &Object, secrets: &Redactor) -> BTreeSet<String> {
    let texts = snapshot(package, object).unwrap_or_default().0;
    texts.values().flat_map(|text| secrets.suspects(text)).collect()
}

/// The same finding with the place where a text stands in the files of an operation.
fn in_file(package: &Package, operation: &Operation, text: &str, finding: Finding) -> Finding {
    let mut touched = BTreeSet::new();
    touch(package, operation, &mut touched);
    let place = touched.into_iter().find_map(|path| {
        let whole = std::str::from_utf8(package.files().get(&path)?).ok()?;
        let (line, column) = position(whole, whole.find(text)?);
        Some((path, line, column))
    });
    match place {
        Some((file, line, column)) => Finding { file, ..finding }.at(line, column),
        None => finding,
    }
}

/// What a person does not see in the reason; what a set writes is looked at where it stands.
fn check_hidden(at: &str, operation: &Operation, report: &mut Report) {
    let Some(reason) = &operation.reason else { return };
    let (found, count) = hidden::find_in(reason);
    let left_out = count - found.len();
    for one in found {
        let message = format!("`{at}.reason` contains {} in line {}", one.name(), one.line);
        let finding = Finding::warning("HIDDEN_CHARACTERS", "", format!("{at}.reason"), message);
        let finding = finding.at(one.line, one.column).expected("text that shows all it says").actual(one.name());
        report.add(Stage::Security, finding.hint("take it out"), false);
    }
    if left_out > 0 {
        let message = format!("`{at}.reason` contains {left_out} more hidden characters");
        let finding = Finding::warning("HIDDEN_CHARACTERS", "", format!("{at}.reason"), message);
        report.add(Stage::Security, finding.hint("take them out"), false);
    }
}
