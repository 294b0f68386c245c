//! `toolhost change`

use std::process::ExitCode;

use toolhost::{ApplyOptions, Changes, Need};
use toolhost_builder::packages::{ChangeSetLine, Deed, Preview};
use toolhost_contract::Outcome;
use toolhost_store::Role;

use super::call::exit_code;
use crate::changes::{self, Extent};
use crate::settings::Settings;
use crate::{EXIT_FAILED, print, terminal, wire};

/// Changes of the workflow package: look at what sessions have staged, apply it, take it back
///
/// A model stages change sets; only a person applies them.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// What is staged; with --all also what was applied or discarded
    List {
        #[arg(long)]
        all: bool,
        /// Of one session only
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// What a change set would change, as a diff
    Show {
        #[arg(value_name = "cs-N")]
        id: String,
    },
    /// Check a change set as its apply would
    Validate {
        #[arg(value_name = "cs-N")]
        id: String,
    },
    /// Apply a change set: shows it and asks first, and refuses one that is not valid
    Apply {
        #[arg(value_name = "cs-N")]
        id: String,
        /// Only these operations, by their place in the set, from 0
        #[arg(long, value_name = "N,…", value_delimiter = ',')]
        only: Option<Vec<i64>>,
        /// Let this object go; once for each one that the set deletes
        #[arg(long, value_name = "OBJECT")]
        delete: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Give a staged change set up
    Discard {
        #[arg(value_name = "cs-N")]
        id: String,
    },
    /// What has been applied, the newest first
    History,
    /// Take an applied change back
    Undo {
        /// Its number in the history; the last one that is still there if left out
        #[arg(value_name = "N")]
        moment: Option<i64>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let need = match args.command {
        Command::List { .. } | Command::Show { .. } | Command::Validate { .. } | Command::History => Need::Reading,
        Command::Apply { .. } | Command::Discard { .. } | Command::Undo { .. } => Need::Writing,
    };
    let host = wire::open_for(settings, need).await?;
    host.connection().need_role(Role::Viewer).await?;
    let changes = host.changes();
    let code = match args.command {
        Command::List { all, session } => list(&changes.list(session.as_deref(), !all).await?, settings.json)?,
        Command::Show { id } => {
            show(&changes.preview(&id).await?, settings.json)?;
            ExitCode::SUCCESS
        }
        Command::Validate { id } => {
            let found = wire::outcome(changes.validate(&id).await)?;
            let told = tell(&found, settings.json)?;
            if found.data["valid"] == false { ExitCode::from(EXIT_FAILED) } else { told }
        }
        Command::Discard { id } => tell(&wire::outcome(changes.discard(&id).await)?, settings.json)?,
        Command::Apply { id, only, delete, yes } => {
            let options = ApplyOptions { operations: only, confirm_deletes: delete };
            let preview = changes.preview_with(&id, &options).await?;
            // Nobody reads and agrees to what cannot be applied: the apply says why at once.
            let can_be = preview.report.as_ref().is_some_and(|report| report.valid);
            if can_be && !settings.json {
                show(&preview, false)?;
            }
            if can_be && !yes && !terminal::agreed(&format!("apply {id}?"), "say --yes")? {
                print::aside("nothing was applied");
                ExitCode::from(EXIT_FAILED)
            } else {
                tell(&wire::outcome(changes.apply(&id, &options).await)?, settings.json)?
            }
        }
        Command::History => history(&changes.history().await?, settings.json)?,
        Command::Undo { moment, yes } => undo(changes, moment, yes, settings.json).await?,
    };
    if need == Need::Reading {
        wire::close_reading(host.connection()).await?;
    } else {
        host.close().await?;
    }
    Ok(code)
}

async fn undo(changes: Changes<'_>, moment: Option<i64>, yes: bool, json: bool) -> anyhow::Result<ExitCode> {
    let deeds = changes.history().await?;
    let last = deeds.iter().find(|deed| deed.kind == "apply" && deed.undone_by.is_none()).map(|deed| deed.moment);
    let Some(moment) = moment.or(last) else {
        print::aside("there is nothing to undo");
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(deed) = deeds.iter().find(|deed| deed.moment == moment).filter(|_| !json) {
        print::note(format_args!("change {moment} by {} changed:", print::visible_line(&deed.by)));
        deed.files.iter().for_each(|file| print::note(format_args!("  {}", print::visible_line(file))));
    }
    if !yes && !terminal::agreed(&format!("take change {moment} back?"), "say --yes")? {
        print::aside("nothing was undone");
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    tell(&wire::outcome(changes.undo(moment).await)?, json)
}

fn tell(outcome: &Outcome, json: bool) -> anyhow::Result<ExitCode> {
    super::call::show(outcome, json)?;
    if let Some(details) = outcome.error.as_ref().and_then(|error| error.details.as_ref()).filter(|_| !json) {
        conflicts(details);
        changes::refused(details);
    }
    Ok(exit_code(outcome))
}

/// Lines of one side of a conflict that are shown; --json has all.
const SIDE_LINES_MAX: usize = 12;

/// The three sides of each place that two people have changed.
fn conflicts(details: &serde_json::Value) {
    let lists = details.get("conflicts").and_then(|list| list.as_array()).into_iter().flatten();
    for conflict in lists {
        let text = |value: &serde_json::Value, name: &str| match value.get(name) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) if !other.is_null() => other.to_string(),
            _ => String::new(),
        };
        print::note(print::paint(print::BAD, print::visible_line(&text(conflict, "object"))));
        for clash in conflict.get("clashes").and_then(|list| list.as_array()).into_iter().flatten() {
            for (side, says) in [("base", "before"), ("current", "there now"), ("ours", "wanted")] {
                print::note(print::paint(print::DIM, format!("  {says}:")));
                let shown = print::visible(&text(clash, side));
                for line in shown.lines().take(SIDE_LINES_MAX) {
                    print::note(format_args!("    {line}"));
                }
                let more = shown.lines().count().saturating_sub(SIDE_LINES_MAX);
                if more > 0 {
                    print::note(print::paint(print::DIM, format!("    … {}", print::count(more, "more line"))));
                }
            }
        }
    }
}

fn list(lines: &[ChangeSetLine], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print::json(&lines)?;
    } else if lines.is_empty() {
        print::aside("nothing is staged");
    } else {
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| {
                let objects = print::visible_line(&line.objects.join(", "));
                let (id, mut status) = (line.change_set_id.clone(), line.status.clone());
                if !line.based_on.is_empty() {
                    status += &format!(" on {}", line.based_on.join(", "));
                }
                vec![id, status, print::visible_line(&line.by), print::local_time(line.created_at_ms), objects]
            })
            .collect();
        print::table(&["id", "status", "by", "staged", "objects"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(preview: &Preview, json: bool) -> anyhow::Result<()> {
    if json {
        return print::json(&changes::as_json(preview));
    }
    changes::show(preview, Extent::Whole);
    Ok(())
}

fn history(deeds: &[Deed], json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print::json(&deeds)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = deeds
        .iter()
        .map(|deed| {
            let what = match (&deed.change_set_id, deed.undoes, deed.undone_by) {
                (Some(set), _, Some(by)) => format!("{set}, taken back by {by}"),
                (Some(set), ..) => set.clone(),
                (_, Some(undoes), _) => format!("takes back {undoes}"),
                _ => String::new(),
            };
            let more = deed.file_count - i64::try_from(deed.files.len()).unwrap_or(i64::MAX);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let files = print::visible_line(&format!("{}{more}", deed.files.join(", ")));
            vec![
                deed.moment.to_string(),
                deed.kind.clone(),
                print::visible_line(&deed.by),
                print::local_time(deed.created_at_ms),
                what,
                files,
            ]
        })
        .collect();
    print::table(&["n", "kind", "by", "when", "what", "files"], &rows);
    Ok(ExitCode::SUCCESS)
}
