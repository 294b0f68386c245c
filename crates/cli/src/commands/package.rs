//! `toolhost package`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolhost_builder::{Files, Finding, Package, Severity, from_zip, limits, validate};

use crate::settings::Settings;
use crate::{EXIT_FAILED, print};

/// Workflow packages (BMAD 1.1)
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check a package, a folder or a zip: its files against their schemas, and whether everything named is there
    Validate {
        path: PathBuf,
        /// Warnings count, too
        #[arg(long)]
        strict: bool,
    },
    /// Print a JSON Schema (2020-12) of what packages are made of; without a name, the names
    Schema { name: Option<String> },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Validate { path, strict } => {
            let findings = match read(&path)? {
                Ok(files) => validate(&Package::read(files)),
                Err(findings) => findings,
            };
            show(&findings, settings.json)?;
            let bad = findings.iter().any(|finding| strict || finding.severity == Severity::Error);
            Ok(if bad { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
        }
        Command::Schema { name } => schema(name.as_deref()),
    }
}

fn schema(name: Option<&str>) -> anyhow::Result<ExitCode> {
    let all = toolhost_builder::schema::ALL;
    match name {
        None => all.iter().for_each(|schema| print::line(schema.name)),
        Some(name) => {
            let names: Vec<&str> = all.iter().map(|schema| schema.name).collect();
            let Some(schema) = all.iter().find(|schema| schema.name == name) else {
                let problem = format!("there is no schema `{}`: {}", print::visible(name), names.join(", "));
                return Err(crate::Usage::error(problem));
            };
            print::line(schema.text.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The files of a folder or a zip. A zip that cannot be trusted has findings instead.
fn read(path: &Path) -> anyhow::Result<Result<Files, Vec<Finding>>> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if !metadata.is_dir() {
        anyhow::ensure!(
            metadata.len() <= limits::PACKAGE_BYTES_MAX as u64,
            "{} is {} bytes long; {} is the most",
            path.display(),
            metadata.len(),
            limits::PACKAGE_BYTES_MAX
        );
        return Ok(from_zip(&std::fs::read(path).with_context(|| path.display().to_string())?));
    }
    let mut files = Files::new();
    let mut bytes = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let place = entry.path();
            if kind.is_dir() {
                folders.push(place);
                continue;
            }
            // A link may lead anywhere, and a pipe has no end.
            anyhow::ensure!(kind.is_file(), "{} is no plain file: a package has no links", place.display());
            bytes += usize::try_from(entry.metadata()?.len())?;
            anyhow::ensure!(
                files.len() < limits::FILES_MAX && bytes <= limits::PACKAGE_BYTES_MAX,
                "{} holds more than {} files or {} bytes",
                path.display(),
                limits::FILES_MAX,
                limits::PACKAGE_BYTES_MAX
            );
            let name = place.strip_prefix(path)?.to_string_lossy().into_owned();
            files.insert(name, std::fs::read(&place).with_context(|| place.display().to_string())?);
        }
    }
    Ok(Ok(files))
}

fn show(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    if json {
        return print::json(&json!({ "findings": findings }));
    }
    for finding in findings {
        let (style, word) = match finding.severity {
            Severity::Error => (print::BAD, "error"),
            Severity::Warning => (print::WARN, "warning"),
        };
        print::line(format_args!(
            "{} {}{}: {} ({})",
            print::paint(style, word),
            print::visible(&finding.file),
            print::visible(&finding.pointer),
            print::visible(&finding.message),
            finding.code
        ));
        if !finding.hint.is_empty() {
            print::line(format_args!("  {}", print::paint(print::DIM, print::visible(&finding.hint))));
        }
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    print::note(format_args!("{errors} errors, {} warnings", findings.len() - errors));
    Ok(())
}
