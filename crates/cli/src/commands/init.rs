//! `toolhost init`

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use toolhost::Need;
use toolhost_store::Store;

use crate::print;
use crate::settings::Settings;
use crate::wire;

/// Register a project and create its state folder (other commands do this on first use)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The project's folder
    dir: Option<PathBuf>,
    /// Create a new database where the former one is missing
    #[arg(long)]
    new: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let settings = settings.with_root(args.dir);
    let resolved = settings.resolve()?;
    if args.new {
        anyhow::ensure!(
            resolved.database.is_none(),
            "--new is for a state folder: create a database on the server, and name it with --database"
        );
        anyhow::ensure!(
            !Store::is_in(&resolved.state),
            "{} has a database: move the folder away first to begin a new one",
            resolved.state.display()
        );
        if let Some(known) = &resolved.known {
            known.forget()?;
        }
    }
    let connection = wire::connect(&resolved, Need::Writing).await?;
    let (store, project) = (connection.store(), connection.project());
    if settings.json {
        print::json(
            &json!({ "project": project.id, "name": project.name, "root": resolved.root, "state": resolved.state, "database": store.place() }),
        )?;
    } else {
        print::line(format_args!("project {} ({})", print::visible_line(&project.name), resolved.root.display()));
        print::line(format_args!("records {}", store.place()));
        print::line("next    `toolhost doctor` shows the fence, `toolhost mcp` serves an agent");
    }
    connection.close().await?;
    Ok(ExitCode::SUCCESS)
}
