//! `toolhost init`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use toolhost_contract::SystemClock;

use crate::print;
use crate::settings::Settings;
use crate::wire;

/// Register a project and make its state folder (other commands do it on first use)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The project's folder
    dir: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let settings = settings.with_root(args.dir);
    let resolved = settings.resolve()?;
    let (store, project, _) = wire::open_store(&resolved, Arc::new(SystemClock::default())).await?;
    if settings.json {
        print::json(
            &json!({ "project": project.id, "name": project.name, "root": resolved.root, "state": resolved.state, "database": store.place() }),
        )?;
    } else {
        print::line(format_args!("project {} ({})", print::visible(&project.name), resolved.root.display()));
        print::line(format_args!("records {}", store.place()));
        print::line("next    `toolhost doctor` shows the fence, `toolhost mcp` serves an agent");
    }
    store.close().await?;
    Ok(ExitCode::SUCCESS)
}
