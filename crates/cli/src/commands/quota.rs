//! `toolhost quota`

use std::process::ExitCode;

use serde_json::json;
use toolhost::Need;
use toolhost_store::{Quota, Role};

use crate::settings::Settings;
use crate::{Usage, print, wire};

/// What turns a limit off.
const NONE: &str = "none";

/// How much of the host the calls of the project may have
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the quota
    Show,
    /// Change the quota; what is not named stays. For owners
    Set {
        /// Calls that may begin in a minute, of all hosts of the database together; `none` for no limit
        #[arg(long, value_name = "COUNT")]
        calls_per_minute: Option<Limit>,
        /// Calls that one host may have open at once; `none` for no limit
        #[arg(long, value_name = "COUNT")]
        calls_open: Option<Limit>,
    },
}

/// A number, or none.
#[derive(Clone, Copy)]
struct Limit(Option<u32>);

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = (text != NONE).then(|| text.parse::<u32>()).transpose();
        number.map(Self).map_err(|_| format!("it is a number, or `{NONE}`"))
    }
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let need = if matches!(args.command, Command::Show) { Need::Reading } else { Need::Writing };
    let connection = wire::connect(&resolved, need).await?;
    let (quotas, project) = (connection.store().quotas(), connection.project().id);
    let quota = match args.command {
        Command::Show => {
            connection.need_role(Role::Viewer).await?;
            quotas.get(project).await?
        }
        Command::Set { calls_per_minute, calls_open } => {
            connection.need_role(Role::Owner).await?;
            let now = quotas.get(project).await?;
            let quota = Quota::new(
                calls_per_minute.map_or(now.calls_per_minute(), |limit| limit.0),
                calls_open.map_or(now.calls_open(), |limit| limit.0),
            );
            let quota = quota.map_err(Usage::error)?;
            let work = async { anyhow::Ok(quotas.set(project, quota).await?) };
            connection.record(&connection.who(), "quota.set", json!(quota), work).await?;
            quota
        }
    };
    if settings.json {
        print::json(&json!(quota))?;
    } else {
        for (what, limit) in [("calls a minute", quota.calls_per_minute()), ("calls open", quota.calls_open())] {
            let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
            print::line(format_args!("{what}: {limit}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
