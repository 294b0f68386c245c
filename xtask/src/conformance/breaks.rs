//! `cargo xtask breaks`: breaks one rule after the other in a copy of the repository, and expects the test that names it to fail.
//!
//! The copy and what is built of it stand below the target folder and stay there, so that the next run builds only what it changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::conformance::{Break, Conformance, Test};
use crate::scratch::Scratch;
use crate::tidy;
use crate::{finding, shell};

/// Where the tests of a package wait while others run: what cargo does not see it does not build.
const AWAY: &str = "tests.away";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Break only these rules. Every recorded one if none is named.
    rules: Vec<String>,
}

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let tree = tidy::read(root)?;
    let all = Conformance::read(&tree)?;
    let findings = all.check(&tree);
    if !findings.is_empty() {
        return Ok(finding::show("breaks", &findings, &[]));
    }
    for rule in &arguments.rules {
        ensure!(all.breaks.iter().any(|one| one.rule == *rule), "no break of {rule} is recorded");
    }
    let broken = Broken { scratch: Scratch::new(shell::target(root).join("breaks")) };
    broken.show_tests_of(&|_| true)?;
    broken.scratch.mirror(root, &tree)?;
    let mut unseen = Vec::new();
    for one in all.breaks.iter().filter(|one| arguments.rules.is_empty() || arguments.rules.contains(&one.rule)) {
        println!("{}", shell::bold(&format!("== {}: {}", one.rule, one.file)));
        let test = all.failing(one).context("the check has found its test")?;
        if broken.noticed(one, test).with_context(|| format!("the break of {}", one.rule))? {
            println!("{}: {test} failed, as it should", one.rule);
        } else {
            println!("{}: {test} did not notice", one.rule);
            unseen.push(&*one.rule);
        }
    }
    println!("breaks: {}", if unseen.is_empty() { "each was noticed".to_owned() } else { unseen.join(", ") });
    Ok(if unseen.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A copy in which rules are broken.
struct Broken {
    scratch: Scratch,
}

impl Broken {
    fn tree(&self) -> PathBuf {
        self.scratch.tree()
    }

    /// Lets cargo see the outer tests of these packages, and of no others.
    fn show_tests_of(&self, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
        let Ok(packages) = fs::read_dir(self.tree().join("crates")) else {
            return Ok(());
        };
        for package in packages {
            let package = package?;
            let (shown, away) = (package.path().join("tests"), package.path().join(AWAY));
            let (from, to) = if wanted(&package.file_name().to_string_lossy()) { (away, shown) } else { (shown, away) };
            if from.exists() {
                fs::rename(&from, &to).with_context(|| format!("cannot rename {}", from.display()))?;
            }
        }
        Ok(())
    }

    /// Whether the test fails while the rule is broken.
    fn noticed(&self, one: &Break, test: &Test) -> Result<bool> {
        self.show_tests_of(&|package| test.is_outside && test.package == package)?;
        let file = self.tree().join(&one.file);
        let text = fs::read_to_string(&file)?;
        fs::write(&file, text.replacen(&one.find, &one.replace, 1))?;
        let failed = self.fails(test);
        fs::write(&file, text)?;
        failed
    }

    fn fails(&self, test: &Test) -> Result<bool> {
        // A break that does not build has shown nothing.
        shell::must_run(self.cargo(test).args(["--quiet", "--no-run"]))?;
        self.build_fence(test)?;
        let mut command = self.cargo(test);
        let output =
            command.args(["--no-fail-fast", "--", "--exact", &test.name]).output().context("cannot start cargo")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let ended = |how: &str| said.lines().any(|line| line == format!("test {} ... {how}", test.name));
        if ended("FAILED") {
            return Ok(true);
        }
        ensure!(ended("ok"), "{test} did not run:\n{said}{}", String::from_utf8_lossy(&output.stderr));
        Ok(false)
    }

    /// The example that begins the commands of a package's tests, where it has one: `--test` alone builds none.
    fn build_fence(&self, test: &Test) -> Result<()> {
        let example = format!("{}_fence", test.package);
        let source = self.tree().join(format!("crates/{}/examples/{example}.rs", test.package));
        if !test.is_outside || !source.exists() {
            return Ok(());
        }
        let mut command = shell::cargo(&self.tree());
        command.env("CARGO_TARGET_DIR", self.scratch.target()).args(["build", "--workspace", "--locked", "--quiet"]);
        shell::must_run(command.args(["--example", &example]))
    }

    /// The whole workspace, so that third-party crates are built with the features they have everywhere.
    fn cargo(&self, test: &Test) -> Command {
        let mut command = shell::cargo(&self.tree());
        command.env("CARGO_TARGET_DIR", self.scratch.target()).args(["test", "--workspace", "--locked"]);
        command.arg(if test.is_outside { "--test=it" } else { "--lib" });
        command
    }
}
