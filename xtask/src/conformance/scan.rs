//! Finds the tests that name rules in their doc comments: `/// Rules: 000.1, 001.3.`

use crate::conformance::Test;
use crate::finding::Finding;
use crate::tidy::source;

const MARK: &str = "/// Rules:";

/// A rule as a test names it.
pub(crate) struct Named {
    pub(crate) rule: String,
    pub(crate) line: usize,
    pub(crate) test: Test,
}

/// The rules that the tests of one file name, and what names rules without being a test.
pub(crate) fn rules_of(path: &str, text: &str) -> (Vec<Named>, Vec<Finding>) {
    let (mut named, mut wrong) = (Vec::new(), Vec::new());
    if !text.contains(MARK) {
        return (named, wrong);
    }
    let source = source::split(text);
    let (mut waiting, mut is_test, mut in_attribute) = (Vec::new(), false, false);
    for (index, (code, comment)) in source.code.lines().zip(source.comments.lines()).enumerate() {
        if let Some(rules) = comment.trim().strip_prefix(MARK) {
            let rules = rules.split(',').map(|rule| rule.trim().trim_end_matches('.'));
            waiting.extend(rules.filter(|rule| !rule.is_empty()).map(|rule| (index + 1, rule.to_owned())));
        }
        let code = code.trim();
        if code.is_empty() {
            continue;
        }
        if in_attribute || code.starts_with("#[") {
            in_attribute = !code.ends_with(']');
            is_test |= code.starts_with("#[test]") || code.starts_with("#[tokio::test");
            continue;
        }
        let test = function(code).filter(|_| is_test).and_then(|name| test(path, name));
        for (line, rule) in waiting.drain(..) {
            match &test {
                Some(test) => named.push(Named { rule, line, test: test.clone() }),
                None => wrong.push(Finding::in_line(path, line, format!("`{rule}` is named by what is not a test"))),
            }
        }
        is_test = false;
    }
    (named, wrong)
}

/// The name of the function that begins in this line.
fn function(code: &str) -> Option<&str> {
    let (before, rest) = code.split_once("fn ")?;
    let is_one = before.is_empty() || before.ends_with(' ');
    rest.split('(').next().filter(|_| is_one)
}

/// A test by the file it stands in, called as its test program calls it.
fn test(path: &str, function: &str) -> Option<Test> {
    let (package, file) = path.strip_prefix("crates/").unwrap_or(path).split_once('/')?;
    let file = file.strip_suffix(".rs")?;
    let outside = file.strip_prefix("tests/it/");
    let file = outside.or_else(|| file.strip_prefix("src/"))?;
    let mut parts: Vec<&str> = file.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).collect();
    if outside.is_none() && parts.last() != Some(&"tests") {
        parts.push("tests");
    }
    parts.push(function);
    Some(Test { package: package.to_owned(), name: parts.join("::"), is_outside: outside.is_some() })
}

#[cfg(test)]
mod tests {
    use super::rules_of;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let (named, wrong) = rules_of(path, text);
        let mut said: Vec<String> = named
            .iter()
            .map(|one| format!("{} {} {} {}", one.rule, one.line, one.test.package, one.test.name))
            .collect();
        said.extend(wrong.iter().map(ToString::to_string));
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn a_test_names_rules_in_its_doc_comment() {
        let text = "/// Says why.\n///\n/// Rules: 000.1, 001.22.\n/// Rules: 2.3.\n#[tokio::test(flavor = \"multi_thread\")]\n#[expect(\n    a,\n)]\nasync fn it() {}\n";
        check("crates/a/tests/it/b.rs", text, &["000.1 3 a b::it", "001.22 3 a b::it", "2.3 4 a b::it"]);
        let inside = "mod tests {\n    /// Rules: 1.\n    #[test]\n    fn it() {}\n}\n";
        check("crates/a/tests/it/b/c.rs", inside, &["1 2 a b::c::it"]);
        check("crates/a/src/b/mod.rs", inside, &["1 2 a b::tests::it"]);
        check("crates/a/src/b/tests.rs", inside, &["1 2 a b::tests::it"]);
        check("xtask/src/c.rs", inside, &["1 2 xtask c::tests::it"]);
    }

    #[test]
    fn what_is_no_test_names_no_rule() {
        let said = ["crates/a/tests/it/b.rs:1: `1` is named by what is not a test"];
        check("crates/a/tests/it/b.rs", "/// Rules: 1.\nfn helper() {}\n", &said);
        check("crates/a/tests/it/b.rs", "/// Rules: 1.\n#[derive(Debug)]\nstruct Fn;\n#[test]\nfn it() {}\n", &said);
        check("crates/a/tests/it/b.rs", "const A: &str = \"\n/// Rules: 1.\n\";\n#[test]\nfn it() {}\n", &[]);
    }
}
