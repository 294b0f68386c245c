//! The documents that are derived: tools, commands and configuration from the program, and from the tests the rules they hold.
//!
//! They are committed, so that a changed contract shows up in review; `--check` fails when they are stale.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::conformance::{Conformance, PAGE};
use crate::{commands, configuration, finding, shell, tidy};

const FOLDER: &str = "docs/generated";

/// Every document, and what the program is asked to get it.
const DOCUMENTS: [Document; 3] = [
    Document { file: "tools.json", ask: &["tools", "--profile", "all", "--json"] },
    Document { file: "openapi.json", ask: &["schema", "openapi"] },
    Document { file: "tools.md", ask: &["tools", "--profile", "all", "--markdown"] },
];

struct Document {
    file: &'static str,
    ask: &'static [&'static str],
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a document is stale.
    #[arg(long)]
    check: bool,
}

/// Begins with what needs no program; then asks the program for every document before it writes the first, so that a failure
/// leaves the old ones as they were.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let tree = tidy::read(root)?;
    let conformance = Conformance::read(&tree)?;
    let findings = conformance.check(&tree);
    if !findings.is_empty() {
        return Ok(finding::show("conformance", &findings, &[]));
    }
    let mut stale = usize::from(put(root, PAGE, &conformance.page(&tree), arguments)?);
    let program = shell::program(root)?;
    let texts = DOCUMENTS.iter().map(|document| ask(&program, document)).collect::<Result<Vec<_>>>()?;
    let pages = [("commands.md", commands::page(&program)?), ("configuration.md", configuration::page(&program)?)];
    fs::create_dir_all(root.join(FOLDER)).with_context(|| format!("cannot make {FOLDER}"))?;
    for (document, text) in DOCUMENTS.iter().zip(texts) {
        stale += usize::from(put(root, &format!("{FOLDER}/{}", document.file), &text, arguments)?);
    }
    for (name, text) in pages {
        stale += usize::from(put(root, &format!("{FOLDER}/{name}"), &text, arguments)?);
    }
    Ok(if arguments.check && stale > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Writes a document that is stale, or only says so. Whether it was.
fn put(root: &Path, name: &str, text: &str, arguments: &Arguments) -> Result<bool> {
    let path = root.join(name);
    let is_stale = fs::read_to_string(&path).ok().as_deref() != Some(text);
    let said = match (is_stale, arguments.check) {
        (false, _) => "up to date",
        (true, true) => "stale: run `cargo xtask gen`",
        (true, false) => {
            fs::write(&path, text).with_context(|| format!("cannot write {name}"))?;
            "written"
        }
    };
    println!("{name}: {said}");
    Ok(is_stale)
}

fn ask(program: &Path, document: &Document) -> Result<String> {
    let text = with_one_final_newline(&shell::stdout_of(Command::new(program).args(document.ask))?);
    ensure!(text != "\n", "`toolhost {}` printed nothing", document.ask.join(" "));
    Ok(text)
}

fn with_one_final_newline(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::with_one_final_newline;

    #[test]
    fn a_document_ends_with_one_newline_however_it_was_printed() {
        for printed in ["[]", "[]\n", "[]\n\n"] {
            assert_eq!(with_one_final_newline(printed), "[]\n");
        }
    }
}
