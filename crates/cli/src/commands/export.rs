//! `toolhost export`

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use toolhost_contract::SystemClock;
use toolhost_store::Role;

use crate::settings::Settings;
use crate::{print, wire};

/// Write all records and their history as JSON Lines, which `import` reads back
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file; standard output otherwise
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let (store, project, user) = wire::open_store(&resolved, Arc::new(SystemClock::default())).await?;
    wire::need_role(&store, &project, &user, Role::Viewer).await?;
    let desk = store.records().desk(wire::who(&project, &user))?;
    let lines = match &args.output {
        None => {
            let mut out = std::io::BufWriter::new(std::io::stdout());
            let lines = desk.export(&mut |line| Ok(writeln!(out, "{line}")?)).await?;
            out.flush()?;
            lines
        }
        Some(path) => {
            // Beside its place first: an export that stops half-way is not taken for a whole one.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
            let unwritable = || format!("{} cannot be written", path.display());
            let name = format!(".{}.part", path.file_name().unwrap_or_default().to_string_lossy());
            let part = folder.join(name);
            let mut out = std::io::BufWriter::new(std::fs::File::create(&part).with_context(unwritable)?);
            let lines = desk.export(&mut |line| Ok(writeln!(out, "{line}")?)).await?;
            out.flush().with_context(unwritable)?;
            out.get_ref().sync_all().with_context(unwritable)?;
            std::fs::rename(&part, path).with_context(unwritable)?;
            lines
        }
    };
    store.close().await?;
    if let Some(path) = args.output {
        if settings.json {
            print::json(&json!({ "file": path, "lines": lines }))?;
        } else {
            print::note(format_args!("{lines} lines written to {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
