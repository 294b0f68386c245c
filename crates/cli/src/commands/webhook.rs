//! `toolhost webhook`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolhost::Need;

use crate::settings::Settings;
use crate::webhook::ProjectWebhooks;
use crate::{print, wire};

/// Where the owners of the project want its approvals, reviews and questions to be told
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the webhooks of the project. For owners
    List,
    /// Add a webhook, and print the secret that checks its messages: it is shown this once. For owners
    Add {
        /// Where the requests go; it begins as `project_webhooks` in the configuration lets it
        url: String,
    },
    /// Remove a webhook. For owners
    Remove {
        /// The webhook, as `webhook list` shows it
        id: String,
    },
    /// Send a webhook one request that says nothing, and print how it was answered. For owners
    Test {
        /// The webhook, as `webhook list` shows it
        id: String,
    },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let need = if matches!(args.command, Command::List) { Need::Reading } else { Need::Writing };
    let webhooks = ProjectWebhooks::of(settings)?;
    let connection = wire::connect(&settings.resolve()?, need).await?;
    let (told, said): (Value, String) = match args.command {
        Command::List => {
            let known = webhooks.list(&connection).await?;
            let lines =
                known.iter().map(|webhook| format!("{}  {}  by {}", webhook.id, webhook.url, webhook.created_by));
            let said = lines.collect::<Vec<_>>().join("\n");
            (json!(known), if said.is_empty() { "no webhooks".to_owned() } else { said })
        }
        Command::Add { url } => {
            let (webhook, secret) = webhooks.add(&connection, &url).await?;
            let said =
                format!("added {}; its messages are signed with this secret, shown this once:\n{secret}", webhook.id);
            let mut told = json!(webhook);
            told["secret"] = secret.into();
            (told, said)
        }
        Command::Remove { id } => {
            webhooks.remove(&connection, &id).await?;
            (json!({ "id": id, "removed": true }), format!("removed {id}"))
        }
        Command::Test { id } => {
            let status = webhooks.test(&connection, &id).await?;
            (json!({ "id": id, "status": status }), format!("{id} answered with the status {status}"))
        }
    };
    if settings.json {
        print::json(&told)?;
    } else {
        print::line(format_args!("{said}"));
    }
    Ok(ExitCode::SUCCESS)
}
