//! The rules of the documents that Toolhost answers to, the tests that hold them, and the breaks that made those tests fail.
//!
//! The rules stand in docs/conformance.toml. [`scan`] finds the tests that name them, [`page`] writes docs/conformance.md from
//! both, and [`breaks`] breaks a rule in a copy of the repository and expects its tests to fail.

pub(crate) mod breaks;
mod page;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::finding::Finding;
use crate::tidy::Tree;

const RULES: &str = "docs/conformance.toml";
const BREAKS: &str = "xtask/breaks.toml";
pub(crate) const PAGE: &str = "docs/conformance.md";
const DECISIONS: &str = "docs/decisions/";

/// One of the documents, and what it asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The first part of its rules' ids.
    id: String,
    title: String,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    says: String,
    /// The number of the decision that says what holds instead.
    differs: Option<String>,
    /// Why the rule is not kept yet.
    open: Option<String>,
}

/// The smallest change that breaks a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Break {
    rule: String,
    /// The test that names the rule and failed, as the page shows it.
    test: String,
    file: String,
    /// Occurs once in the file.
    find: String,
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    documents: Vec<Document>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Breaks {
    breaks: Vec<Break>,
}

/// A test by its package, and by its name as the test program has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    package: String,
    name: String,
    /// One of `tests/it`, and not one inside the library.
    is_outside: bool,
}

/// As the page shows it: `store::numbers::a_number_is_never_given_twice`.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.package, self.name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// A test failed when the rule was broken.
    Held,
    /// A test names the rule, and no break of it is recorded.
    Tested,
    /// A decision says what holds instead.
    Differs,
    /// Nothing tests it, or it is not kept yet.
    Open,
}

/// Everything that is said of the rules anywhere.
pub(crate) struct Conformance {
    documents: Vec<Document>,
    breaks: Vec<Break>,
    tests: BTreeMap<String, BTreeSet<Test>>,
    /// What the scan of the tests found wrong.
    misplaced: Vec<Finding>,
}

impl Conformance {
    pub(crate) fn read(tree: &Tree) -> Result<Self> {
        let text = |path: &str| tree.text(path).with_context(|| format!("there is no {path}"));
        let rules: Rules = toml::from_str(text(RULES)?).with_context(|| format!("{RULES} cannot be read"))?;
        let breaks: Breaks = toml::from_str(text(BREAKS)?).with_context(|| format!("{BREAKS} cannot be read"))?;
        let known: BTreeSet<&str> = rules.documents.iter().flat_map(|one| &one.rules).map(|one| &*one.id).collect();
        let mut tests: BTreeMap<String, BTreeSet<Test>> = BTreeMap::new();
        let mut misplaced = Vec::new();
        for (path, text) in tree.rust_files() {
            let (named, wrong) = scan::rules_of(path, text);
            misplaced.extend(wrong);
            for scan::Named { rule, line, test } in named {
                if known.contains(&*rule) {
                    tests.entry(rule).or_default().insert(test);
                } else {
                    misplaced.push(Finding::in_line(path, line, format!("`{rule}` is not a rule of {RULES}")));
                }
            }
        }
        Ok(Self { documents: rules.documents, breaks: breaks.breaks, tests, misplaced })
    }

    /// What is wrong with the rules, the tests that name them and the breaks, without running any.
    pub(crate) fn check(&self, tree: &Tree) -> Vec<Finding> {
        let mut findings = self.misplaced.clone();
        let mut ids = BTreeSet::new();
        for (document, rule) in self.rules() {
            let mut push = |what: String| findings.push(Finding::new(RULES, format!("{}: {what}", rule.id)));
            if !rule.id.strip_prefix(&*document.id).is_some_and(|rest| rest.starts_with('.')) {
                push(format!("does not begin with `{}.`", document.id));
            }
            if !ids.insert(&rule.id) {
                push("two rules have this id".to_owned());
            }
            if let Some(number) = rule.differs.as_deref().filter(|number| decision(tree, number).is_none()) {
                push(format!("there is no decision {number} in {DECISIONS}"));
            }
        }
        for one in &self.breaks {
            let mut push = |what: String| findings.push(Finding::new(BREAKS, format!("{}: {what}", one.rule)));
            if self.failing(one).is_none() {
                push(format!("`{}` does not name this rule", one.test));
            }
            let times = tree.text(&one.file).map_or(0, |text| text.matches(&one.find).count());
            if times != 1 {
                push(format!("`find` occurs {times} times in {}, not once", one.file));
            }
            if one.file.contains("/tests/") || one.find == one.replace {
                push("a break changes what ships".to_owned());
            }
        }
        findings
    }

    /// The text of docs/conformance.md.
    pub(crate) fn page(&self, tree: &Tree) -> String {
        page::written(self, tree)
    }

    fn rules(&self) -> impl Iterator<Item = (&Document, &Rule)> {
        self.documents.iter().flat_map(|document| document.rules.iter().map(move |rule| (document, rule)))
    }

    fn tests_of(&self, rule: &str) -> impl Iterator<Item = &Test> {
        self.tests.get(rule).into_iter().flatten()
    }

    /// The test that failed when the rule was broken.
    fn failing(&self, one: &Break) -> Option<&Test> {
        self.tests_of(&one.rule).find(|test| test.to_string() == one.test)
    }

    fn status(&self, rule: &Rule) -> Status {
        match (rule.open.is_some(), rule.differs.is_some(), self.tests.contains_key(&rule.id)) {
            (false, true, _) => Status::Differs,
            (true, _, _) | (_, _, false) => Status::Open,
            (false, false, true) if self.breaks.iter().any(|one| one.rule == rule.id) => Status::Held,
            (false, false, true) => Status::Tested,
        }
    }
}

/// The path of a decision's page by its number.
fn decision<'a>(tree: &'a Tree, number: &str) -> Option<&'a str> {
    let begin = format!("{DECISIONS}{number}-");
    tree.paths().find(|path| path.starts_with(&begin))
}

#[cfg(test)]
mod tests {
    use super::{Conformance, PAGE, Status};
    use crate::finding::listed;
    use crate::shell;
    use crate::tidy::{self, Tree};

    const TEST: &str = "/// Rules: 000.1, 000.2.\n#[test]\nfn it_holds() {}\n";

    fn check(rules: &str, breaks: &str, source: &str, expected: &[&str]) {
        let rules = format!("[[documents]]\nid = '000'\ntitle = 'T'\nrules = [{rules}]\n");
        let tree = Tree::from([
            ("docs/conformance.toml", &*rules),
            ("xtask/breaks.toml", breaks),
            ("docs/decisions/0001-why.md", "# 0001\n"),
            ("crates/a/src/lib.rs", "const A: u8 = 8;\n"),
            ("crates/a/tests/it/b.rs", source),
        ]);
        let read = Conformance::read(&tree).expect("the rules can be read");
        let said = read.check(&tree).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said, expected);
    }

    const TWO: &str = "{ id = '000.1', says = 'a' }, { id = '000.2', says = 'b' }";

    #[test]
    fn this_house_shows_which_rules_it_keeps() {
        let tree = tidy::read(shell::root()).expect("git lists this repository");
        let read = Conformance::read(&tree).expect("the rules can be read");
        let findings = read.check(&tree);
        assert!(findings.is_empty(), "{}", listed(&findings));
        assert!(tree.text(PAGE) == Some(&*read.page(&tree)), "{PAGE} is stale: run `cargo xtask gen`");
    }

    #[test]
    fn an_id_that_is_no_rule_is_refused() {
        check(TWO, "breaks = []", TEST, &[]);
        let unknown = "/// Rules: 000.3.\n#[test]\nfn it_holds() {}\n";
        let said = "crates/a/tests/it/b.rs:1: `000.3` is not a rule of docs/conformance.toml";
        check(TWO, "breaks = []", unknown, &[said]);
        let twice = "{ id = '000.1', says = 'a' }, { id = '000.1', says = 'b' }, { id = '001.2', says = 'c', differs = '0002' }";
        check(
            twice,
            "breaks = []",
            "",
            &[
                "docs/conformance.toml: 000.1: two rules have this id",
                "docs/conformance.toml: 001.2: does not begin with `000.`",
                "docs/conformance.toml: 001.2: there is no decision 0002 in docs/decisions/",
            ],
        );
    }

    #[test]
    fn a_break_that_breaks_nothing_any_more_is_found() {
        let broken = |rule: &str, file: &str, find: &str| {
            format!(
                "[[breaks]]\nrule = '{rule}'\ntest = 'a::b::it_holds'\nfile = 'crates/a/{file}'\nfind = '{find}'\nreplace = '9'\n"
            )
        };
        check(TWO, &broken("000.1", "src/lib.rs", "8;"), TEST, &[]);
        check(
            TWO,
            &broken("000.1", "src/lib.rs", "7;"),
            TEST,
            &["xtask/breaks.toml: 000.1: `find` occurs 0 times in crates/a/src/lib.rs, not once"],
        );
        check(
            TWO,
            &broken("000.2", "tests/it/b.rs", "fn"),
            "fn it() {}\n",
            &[
                "xtask/breaks.toml: 000.2: `a::b::it_holds` does not name this rule",
                "xtask/breaks.toml: 000.2: a break changes what ships",
            ],
        );
    }

    #[test]
    fn a_rule_is_held_by_a_test_that_was_seen_to_fail() {
        let rules = "[[documents]]\nid = '0'\ntitle = 'T'\nrules = [{ id = '0.1', says = 'held' }, { id = '0.2', says = 'tested' }, \
             { id = '0.3', says = 'differs', differs = '0001' }, { id = '0.4', says = 'open' }, \
             { id = '0.5', says = 'later', open = 'why' }]\n";
        let tree = Tree::from([
            ("docs/conformance.toml", rules),
            (
                "xtask/breaks.toml",
                "[[breaks]]\nrule = '0.1'\ntest = 'a::b::it_holds'\nfile = 'crates/a/src/lib.rs'\nfind = '8'\nreplace = '9'\n",
            ),
            ("docs/decisions/0001-why.md", "# 0001\n"),
            ("crates/a/src/lib.rs", "const A: u8 = 8;\n"),
            ("crates/a/tests/it/b.rs", "/// Rules: 0.1, 0.2, 0.3, 0.5.\n#[test]\nfn it_holds() {}\n"),
        ]);
        let read = Conformance::read(&tree).expect("the rules can be read");
        let of = read.rules().map(|(_, rule)| read.status(rule)).collect::<Vec<_>>();
        assert_eq!(of, [Status::Held, Status::Tested, Status::Differs, Status::Open, Status::Open]);
        let page = read.page(&tree);
        for line in [
            "| 0: T | 5 | 1 | 1 | 1 | 2 |",
            "| 0.1 | held | held | `a::b::it_holds` |",
            "| 0.3 | differs | differs: [0001](decisions/0001-why.md) | `a::b::it_holds` |",
            "- 0.4, open: no test",
            "- 0.5, later: why",
            "0.2",
        ] {
            assert!(page.lines().any(|one| one == line), "{line}\n{page}");
        }
    }
}
