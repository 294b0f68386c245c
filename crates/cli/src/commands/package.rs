//! `toolhost package`

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use toolhost::{Error, Need, Packages};
use toolhost_builder::limits::Size;
use toolhost_builder::packages::{Brought, PackageError};
use toolhost_builder::{Files, Finding, Severity, from_zip_up_to, limits, to_zip};
use toolhost_contract::{Clock, SystemClock};

use crate::settings::Settings;
use crate::wire;
use crate::{EXIT_FAILED, print};

/// Workflow packages (BMAD 1.1)
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Begin an empty package in this project
    ///
    /// It has no workflow yet. A model makes the first one, which becomes the entry of the package:
    ///   toolhost run --target workflow:main --mode create "A workflow that ..."
    #[command(verbatim_doc_comment)]
    New {
        /// The name of the package
        name: String,
        /// What it is for, in a sentence: this is what a model takes for its field of work
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// Check a package, a folder or a zip: its files against their schemas, and whether everything named is there
    Validate {
        path: PathBuf,
        /// Warnings count, too
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        sizes: Sizes,
    },
    /// Import a package, a folder or a zip, into this project
    Import {
        path: PathBuf,
        /// Put it in the place of the one that is there
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        sizes: Sizes,
    },
    /// Write the package of this project to a new folder, or to a file that ends in .zip
    Export { path: PathBuf },
    /// List the workflows of this project's package
    List,
}

/// How large a package may be
#[derive(clap::Args)]
struct Sizes {
    /// Most files
    #[arg(long, value_name = "N", default_value_t = limits::FILES_MAX)]
    max_files: usize,
    /// Most bytes of all files
    #[arg(long, value_name = "N", default_value_t = limits::PACKAGE_BYTES_MAX)]
    max_bytes: usize,
}

impl Sizes {
    fn most(&self) -> Size {
        Size { files: self.max_files, bytes: self.max_bytes }
    }
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Validate { path, strict, sizes } => {
            let findings = match read(&path, sizes.most())? {
                Ok(files) => Packages::validate(files, sizes.most()),
                Err(findings) => findings,
            };
            show(&findings, settings.json)?;
            let bad = findings.iter().any(|finding| strict || finding.severity == Severity::Error);
            Ok(if bad { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
        }
        Command::New { name, description } => begin(&name, description.as_deref(), settings).await,
        Command::Import { path, replace, sizes } => import(&path, replace, &sizes, settings).await,
        Command::Export { path } => export(&path, settings).await,
        Command::List => list(settings).await,
    }
}

async fn begin(name: &str, description: Option<&str>, settings: &Settings) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(!name.trim().is_empty(), "a package has a name");
    let connection = wire::connect(&settings.resolve()?, Need::Writing).await?;
    let created_at = print::time(SystemClock::default().unix_ms());
    let begun = connection.packages().begin(name, description, &created_at).await;
    connection.close().await?;
    begun?;
    if settings.json {
        print::json(&json!({ "name": name }))?;
    } else {
        print::line(format_args!("the package {} is begun; it has no workflow yet", print::visible_line(name)));
        print::aside("next: toolhost run --target workflow:main --mode create \"what the workflow is to do\"");
    }
    Ok(ExitCode::SUCCESS)
}

async fn import(path: &Path, replace: bool, sizes: &Sizes, settings: &Settings) -> anyhow::Result<ExitCode> {
    let files = match read(path, sizes.most())? {
        Ok(files) => files,
        Err(findings) => {
            show(&findings, settings.json)?;
            return Ok(ExitCode::from(EXIT_FAILED));
        }
    };
    let connection = wire::connect(&settings.resolve()?, Need::Writing).await?;
    let from = path.file_name().map(|name| name.to_string_lossy());
    let brought = connection.packages().import_from(from.as_deref(), files, replace, sizes.most()).await;
    connection.close().await?;
    match brought {
        Ok(brought) if settings.json => print::json(&brought)?,
        Ok(brought) => {
            let Brought { files, workflows, agents, assets, .. } = brought;
            let of = [(workflows, "workflow"), (agents, "agent"), (assets, "asset")];
            let of = of.map(|(number, one)| print::count(number, one)).join(", ");
            print::line(format_args!("{}: {of}", print::count(files, "file")));
            if brought.moment.is_none() {
                print::aside("nothing is different from what was here");
            }
            if !brought.warnings.is_empty() {
                show(&brought.warnings, false)?;
            }
        }
        Err(Error::Package(PackageError::Invalid(findings))) => {
            show(&findings, settings.json)?;
            return Ok(ExitCode::from(EXIT_FAILED));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(path: &Path, settings: &Settings) -> anyhow::Result<ExitCode> {
    let connection = wire::connect(&settings.resolve()?, Need::Reading).await?;
    let files = connection.packages().export().await?;
    wire::close_reading(&connection).await?;
    anyhow::ensure!(!path.exists(), "{} is there already: name a new one", path.display());
    if path.extension().is_some_and(|ending| ending == "zip") {
        std::fs::write(path, to_zip(&files)).with_context(|| path.display().to_string())?;
    } else {
        write_folder(path, &files)?;
    }
    print::aside(format_args!("{} in {}", print::count(files.len(), "file"), path.display()));
    Ok(ExitCode::SUCCESS)
}

/// Makes a folder with these files, or none.
fn write_folder(path: &Path, files: &Files) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    // As any new folder: what the umask leaves.
    let usual = std::fs::Permissions::from_mode(0o777);
    let partial = tempfile::Builder::new().prefix(".toolhost-export-").permissions(usual).tempdir_in(parent)?;
    for (name, bytes) in files {
        let file = partial.path().join(name);
        let folder = file.parent().unwrap_or(path);
        std::fs::create_dir_all(folder).with_context(|| path.join(name).display().to_string())?;
        std::fs::write(&file, bytes).with_context(|| path.join(name).display().to_string())?;
    }
    let partial = partial.keep();
    std::fs::rename(&partial, path).with_context(|| path.display().to_string())?;
    Ok(())
}

async fn list(settings: &Settings) -> anyhow::Result<ExitCode> {
    let connection = wire::connect(&settings.resolve()?, Need::Reading).await?;
    let lines = connection.packages().workflows().await?;
    wire::close_reading(&connection).await?;
    if settings.json {
        print::json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let (id, path) = (print::visible_line(&line.id), print::visible_line(&line.path));
            vec![line.number.to_string(), id, line.steps.to_string(), path]
        })
        .collect();
    print::table(&["n", "id", "steps", "file"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// The files of a folder or a zip. A zip that cannot be trusted has findings instead.
fn read(path: &Path, most: Size) -> anyhow::Result<Result<Files, Vec<Finding>>> {
    let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if !metadata.is_dir() {
        anyhow::ensure!(
            metadata.len() <= most.bytes as u64,
            "{} is {} bytes long; {} is the most: see --max-bytes",
            path.display(),
            metadata.len(),
            most.bytes
        );
        return Ok(from_zip_up_to(&std::fs::read(path).with_context(|| path.display().to_string())?, most));
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
            anyhow::ensure!(
                kind.is_file(),
                "{} is {}: a package has files only",
                print::visible_line(&place.display().to_string()),
                if kind.is_symlink() { "a link" } else { "no regular file" }
            );
            bytes += usize::try_from(entry.metadata()?.len())?;
            anyhow::ensure!(
                files.len() < most.files && bytes <= most.bytes,
                "{} holds more than {} files or {} bytes: see --max-files and --max-bytes",
                path.display(),
                most.files,
                most.bytes
            );
            let name = place.strip_prefix(path)?;
            // Another name in its place could be another file's.
            let Some(name) = name.to_str() else {
                anyhow::bail!(
                    "the name of {} is not UTF-8: rename the file",
                    print::visible_line(&format!("{name:?}"))
                );
            };
            files.insert(name.to_owned(), std::fs::read(&place).with_context(|| place.display().to_string())?);
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
            "{} {} ({})",
            print::paint(style, word),
            print::visible_line(&finding.to_string()),
            finding.code
        ));
        if !finding.hint.is_empty() {
            print::line(format_args!("  {}", print::paint(print::DIM, print::visible_line(&finding.hint))));
        }
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let warnings = print::count(findings.len() - errors, "warning");
    print::note(format_args!("{}, {warnings}", print::count(errors, "error")));
    Ok(())
}
