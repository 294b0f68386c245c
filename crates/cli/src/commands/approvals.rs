//! `toolhost approvals`

use std::process::ExitCode;

use crate::settings::Settings;
use crate::{print, wire};

/// Permissions of the newest kind first, so many of them.
const SHOWN_MAX: i64 = 200;

/// What people have allowed by rule
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the rules: in force, expired and revoked
    List,
    /// End a rule now
    Revoke {
        /// Its number
        number: i64,
    },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let answers = wire::open_answers(settings).await?;
    let project = answers.person.project_id;
    match args.command {
        Command::List => {
            let permits = answers.queue.asks().permits(project, SHOWN_MAX).await?;
            if settings.json {
                print::json(&permits)?;
            } else {
                let rows: Vec<Vec<String>> = permits
                    .iter()
                    .map(|permit| {
                        let state = match (&permit.revoked_by, permit.revoked_at_ms) {
                            (Some(by), Some(at)) => format!("revoked by {by}, {}", print::time(at)),
                            _ => format!("until {}", print::time(permit.expires_at_ms)),
                        };
                        vec![
                            permit.number.to_string(),
                            permit.profile.clone(),
                            permit.tool.clone(),
                            print::cell(&permit.conditions.to_string()),
                            print::cell(&permit.granted_by),
                            print::visible(&state),
                        ]
                    })
                    .collect();
                print::table(&["rule", "profile", "tool", "conditions", "granted by", "state"], &rows);
            }
        }
        Command::Revoke { number } => {
            answers.queue.revoke(&answers.person, number, "cli").await?;
            print::line(format_args!("rule {number} is revoked"));
        }
    }
    answers.store.close().await?;
    Ok(ExitCode::SUCCESS)
}
