//! Writes docs/conformance.md.

use std::fmt::Write as _;

use crate::conformance::{Conformance, Document, Rule, Status, decision};
use crate::tidy::Tree;

const HEAD: &str = "\
# What the documents ask for, and the tests that hold it

`cargo xtask gen` writes this page from [conformance.toml](conformance.toml), which has every rule of the four documents, and from
the tests that name a rule in their doc comment (`/// Rules: 000.1.`). A rule is

- **held**: a test names it, and failed when the rule was broken. [breaks.toml](../xtask/breaks.toml) has the break and the test
  that failed; `cargo xtask breaks` does it again in a copy of the repository.
- **tested**: a test names it, and no break of it is recorded yet.
- **differs**: Toolhost does something else, for the reason that the decision gives.
- **open**: nothing tests it, or it is not kept yet. The end of the page lists these rules.
";

pub(crate) fn written(all: &Conformance, tree: &Tree) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n| document | rules | held | tested | differs | open |\n|---|---|---|---|---|---|\n");
    for document in &all.documents {
        row_of_totals(&mut page, &title(document), all, &document.rules.iter().collect::<Vec<_>>());
    }
    row_of_totals(&mut page, "together", all, &all.rules().map(|(_, rule)| rule).collect::<Vec<_>>());
    for document in &all.documents {
        line(&mut page, format_args!("\n## {}\n\n| id | rule | status | tests |\n|---|---|---|---|", title(document)));
        for rule in &document.rules {
            let tests = all.tests_of(&rule.id).map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", ");
            let status = status(all, rule, tree);
            line(&mut page, format_args!("| {} | {} | {status} | {tests} |", rule.id, in_a_cell(&rule.says)));
        }
    }
    lists(&mut page, all);
    page
}

/// What is left to do: the rules without a test, and those whose test was not seen to fail.
fn lists(page: &mut String, all: &Conformance) {
    let of = |status: Status| all.rules().map(|(_, rule)| rule).filter(move |rule| all.status(rule) == status);
    page.push_str("\n## Open: without a test, or not kept yet\n\n");
    for rule in of(Status::Open) {
        let why = rule.open.as_deref().unwrap_or("no test");
        line(page, format_args!("- {}, {}: {why}", rule.id, rule.says));
    }
    if of(Status::Tested).next().is_some() {
        page.push_str("\n## Open: tested, and the test not yet seen to fail\n\n");
    }
    for document in &all.documents {
        let ids: Vec<&str> = of(Status::Tested)
            .filter(|rule| document.rules.iter().any(|one| one.id == rule.id))
            .map(|rule| &*rule.id)
            .collect();
        if !ids.is_empty() {
            line(page, format_args!("{}\n", ids.join(", ")));
        }
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
}

fn row_of_totals(page: &mut String, name: &str, all: &Conformance, rules: &[&Rule]) {
    let count = |status: Status| rules.iter().filter(|rule| all.status(rule) == status).count();
    let [held, tested, differs, open] = [Status::Held, Status::Tested, Status::Differs, Status::Open].map(count);
    line(page, format_args!("| {name} | {} | {held} | {tested} | {differs} | {open} |", rules.len()));
}

fn title(document: &Document) -> String {
    format!("{}: {}", document.id, document.title)
}

fn status(all: &Conformance, rule: &Rule, tree: &Tree) -> String {
    match all.status(rule) {
        Status::Held => "held".to_owned(),
        Status::Tested => "tested".to_owned(),
        Status::Open => "open".to_owned(),
        Status::Differs => {
            let number = rule.differs.as_deref().unwrap_or_default();
            let path = decision(tree, number).and_then(|path| path.strip_prefix("docs/")).unwrap_or_default();
            format!("differs: [{number}]({path})")
        }
    }
}

/// A bar would end the cell.
fn in_a_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A line is written into a text, which cannot fail.
fn line(page: &mut String, words: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{words}");
}
