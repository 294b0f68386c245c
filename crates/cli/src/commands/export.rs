//! `toolhost export`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use toolhost::{Need, Recording};
use toolhost_records::ProjectRecords;
use toolhost_records::Records;
use toolhost_store::Role;

use crate::output::Output;
use crate::print;
use crate::settings::Settings;
use crate::wire;

/// Write all records and their history as JSON Lines, which `import` reads back
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file; standard output otherwise
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let connection = wire::connect(&resolved, Need::Reading).await?;
    connection.need_role(Role::Viewer).await?;
    let who = connection.who();
    let desk = Records::new(connection.store().database()).desk(who.clone())?;
    let arguments =
        json!({ "to": args.output.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy()) });
    let owns = connection.need_role(Role::Owner).await.is_ok();
    let recording = if owns { wire::IF_WRITABLE } else { Recording::Required };
    let work = write(&desk, args.output.as_deref());
    let lines = connection.record_if(recording, &who, "export", arguments, work).await?;
    wire::close_reading(&connection).await?;
    if let Some(path) = args.output {
        if settings.json {
            print::json(&json!({ "file": path, "lines": lines }))?;
        } else {
            print::aside(format_args!("{lines} lines written to {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the lines and says how many.
async fn write(desk: &ProjectRecords, path: Option<&Path>) -> anyhow::Result<u64> {
    let mut output = Output::open(path)?;
    let lines =
        desk.export(&mut |line| Ok(output.line(&if path.is_none() { print::exported(line) } else { line })?)).await?;
    output.finish()?;
    Ok(lines)
}
