//! `toolhost approvals`

use std::process::ExitCode;

use toolhost_host::{Registered, rule_id, rule_number, rule_words};

use crate::settings::Settings;
use crate::{Usage, print, wire};

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
        /// Such as rule-9
        id: String,
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
                let registry = toolhost::registry(&toolhost_store::Database::default())?;
                let rows: Vec<Vec<String>> = permits
                    .iter()
                    .map(|permit| {
                        let state = match (&permit.revoked_by, permit.revoked_at_ms) {
                            (Some(by), Some(at)) => format!("revoked by {by}, {}", print::local_time(at)),
                            _ => format!("until {}", print::local_time(permit.expires_at_ms)),
                        };
                        let conditions = serde_json::from_value(permit.conditions.clone()).unwrap_or_default();
                        vec![
                            rule_id(permit.number),
                            permit.profile.clone(),
                            print::cell(&rule_words(
                                &permit.tool,
                                &conditions,
                                registry.get(&permit.tool).map(Registered::kinds),
                            )),
                            print::cell(&permit.granted_by),
                            print::visible_line(&state),
                        ]
                    })
                    .collect();
                print::table(&["id", "profile", "allows", "granted by", "state"], &rows);
            }
        }
        Command::Revoke { id } => {
            let number = rule_number(&id).ok_or_else(|| {
                Usage::error(format!("`{}` is not the id of a rule, such as rule-9", print::visible_line(&id)))
            })?;
            answers.queue.revoke(&answers.person, number, "cli").await?;
            print::line(format_args!("{} is revoked", rule_id(number)));
        }
    }
    answers.connection.close().await?;
    Ok(ExitCode::SUCCESS)
}
