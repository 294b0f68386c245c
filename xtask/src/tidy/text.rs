//! The rules for every text file, and for the links between documents.

use crate::finding::Finding;
use crate::tidy::Tree;

/// Where this was made says nothing to who reads it. In halves, so that this file keeps its own rule.
const WORKPLACE: [&str; 4] =
    [concat!("/wo", "rk/"), concat!(".libr", "ary"), concat!("suba", "gent"), concat!("issue", " #")];

/// Written by a test rather than a person: they show output as it was, blanks included.
const SNAPSHOT: &str = ".snap";

/// Checks one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_rust = path.ends_with(".rs");
    let is_snapshot = path.ends_with(SNAPSHOT);
    for (index, line) in text.lines().enumerate() {
        let mut push = |what: &str| findings.push(Finding::in_line(path, index + 1, what));
        if !is_snapshot && line.ends_with([' ', '\t']) {
            push("blanks at the end of the line");
        }
        if is_rust && line.contains('\t') {
            push("a tab; `cargo fmt` indents with blanks, and a literal says `\\t`");
        }
        if let Some(word) = workplace_word(line) {
            push(&format!("`{word}` is about where this was made, not about what it is"));
        }
    }
    if text.contains("\r\n") {
        findings.push(Finding::new(path, "lines end with carriage returns"));
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        findings.push(Finding::new(path, "does not end with exactly one newline"));
    }
    findings
}

fn workplace_word(line: &str) -> Option<&'static str> {
    let lower = line.to_lowercase();
    WORKPLACE.into_iter().find(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let begins = !lower[..at].ends_with(|char: char| char.is_alphanumeric() || "_-./}".contains(char));
            let numbered = lower[at + word.len()..].starts_with(|char: char| char.is_ascii_digit());
            match word.chars().next() {
                // A path of its own, not the end of a longer one.
                Some('/') => begins,
                // A folder's name, not a field of a struct.
                Some('.') => begins || lower[..at].ends_with('/'),
                _ => !word.ends_with('#') || numbered,
            }
        })
    })
}

/// Checks that relative links lead somewhere: in the documents at the root and those in docs/.
pub(crate) fn check_links(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    if !path.ends_with(".md") || (path.contains('/') && !path.starts_with("docs/")) {
        return Vec::new();
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
        let file = target.split('#').next().unwrap_or_default();
        if is_elsewhere || file.is_empty() {
            continue;
        }
        if !resolve(folder, file).is_some_and(|file| file.is_empty() || tree.has(&file)) {
            findings.push(Finding::in_line(path, line, format!("the link `{target}` leads nowhere")));
        }
    }
    findings
}

/// The targets of links and images, with their lines. Code is left out: it shows links, it does not make them.
pub(crate) fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Between backticks is code: every second piece.
        for prose in line.split('`').step_by(2) {
            let inline = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            found.extend(inline.map(|target| (index + 1, target)));
        }
        let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(reference.and_then(|(_, rest)| rest.split(' ').next()).map(|target| (index + 1, target)));
    }
    found.into_iter().map(|(line, target)| (line, target.trim_start_matches('<').trim_end_matches('>'))).collect()
}

/// A path from the root, or nothing if it leads out of the repository. A leading `/` leads out: of the whole machine.
pub(crate) fn resolve(folder: &str, file: &str) -> Option<String> {
    if file.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{check, check_links};
    use crate::tidy::Tree;

    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let said = check(path, text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said, expected, "{text:?}");
    }

    #[test]
    fn clutter_is_found() {
        check_text("a.md", "a \nb\n", &["a.md:1: blanks at the end of the line"]);
        check_text("a.md", "a", &["a.md: does not end with exactly one newline"]);
        check_text("a.md", "a\n\n", &["a.md: does not end with exactly one newline"]);
        check_text("a.md", "a\r\nb\r\n", &["a.md: lines end with carriage returns"]);
        check_text("a.rs", "\tb\n", &["a.rs:1: a tab; `cargo fmt` indents with blanks, and a literal says `\\t`"]);
        check_text("Makefile", "\tb\n", &[]);
        check_text("a.snap", "a \n", &[]);
        check_text("empty", "", &[]);
    }

    #[test]
    fn words_of_the_workplace_are_found() {
        for text in [
            concat!("see /wo", "rk/main/x"),
            concat!("a `.libr", "ary` folder"),
            concat!("x/.libr", "ary/y"),
            concat!("by a Suba", "gent"),
            concat!("fixes Issue", " #12"),
        ] {
            assert_eq!(check("a.md", &format!("{text}\n")).len(), 1, "{text}");
        }
        for text in
            [concat!("at/wo", "rk/now"), concat!("self.libr", "ary"), "the issue # sign", concat!("wo", "rk/it")]
        {
            check_text("a.md", &format!("{text}\n"), &[]);
        }
    }

    #[test]
    fn dead_links_are_found() {
        let tree = Tree::from([("README.md", ""), ("docs/decisions/0001-a.md", ""), ("crates/host/src/lib.rs", "")]);
        for (path, text, dead) in [
            ("README.md", "[a](docs/decisions/0001-a.md#why) [b](docs/) [c](https://x.org/y) [d](#e)", 0),
            ("README.md", "[a](docs/b.md) and ![b](c.png \"title\")", 2),
            ("README.md", "[a]: docs/b.md", 1),
            ("README.md", "`[a](docs/b.md)`\n```\n[a](docs/b.md)\n```", 0),
            ("docs/decisions/0001-a.md", "[a](../../README.md) [b](<../../crates/host/src/lib.rs>) [c](../..)", 0),
            ("docs/decisions/0001-a.md", "[a](README.md) [b](../../../README.md) [c](/README.md)", 3),
            ("crates/host/notes.md", "[a](nowhere.md)", 0),
        ] {
            assert_eq!(check_links(&tree, path, text).len(), dead, "{path}: {text}");
        }
    }
}
