//! `toolhost deploy`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use toolhost::{Host, Need, Recording};
use toolhost_contract::{Clock, SystemClock, visible_line};
use toolhost_deploy::{DeployMark, DeployPlan, DeployProgress, Deployment, Reason, Recovered};
use toolhost_store::Role;

use crate::hosting::deploys::note_recovered;
use crate::settings::Settings;
use crate::{EXIT_FAILED, EXIT_HELD_BACK, Usage, print, terminal, wire};

/// Paths of one kind that are shown unless all are wanted.
const SHOWN_MAX: usize = 40;
/// How often the progress bar is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Copy the workspace into your project folder: planned, agreed to, whole or not at all, and undoable
///
/// The folder is set by --deploy-to, or `to` below [deploy] in the configuration; `ship` there lists the extensions and
/// names that ship, `ship_also` adds to the usual ones, `protect` lists globs that are never deleted.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show what a deploy would do
    Plan {
        /// Every path
        #[arg(long)]
        all: bool,
    },
    /// Deploy, after you have agreed to the plan
    Run {
        /// Do not ask
        #[arg(long, short, conflicts_with = "digest")]
        yes: bool,
        /// Agree to the plan with this digest and no other
        #[arg(long, value_name = "SHA256")]
        digest: Option<String>,
        /// Deploy nothing if a file would stay back
        #[arg(long)]
        strict: bool,
    },
    /// Put everything back as it was before the newest deploy
    Undo {
        /// Its id; the newest one otherwise
        id: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// List the deploys
    History,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (need, role) = match args.command {
        Command::Plan { .. } | Command::History => (Need::Reading, Role::Viewer),
        Command::Run { .. } | Command::Undo { .. } => (Need::Writing, Role::Editor),
    };
    let host = wire::open_for(settings, need).await?;
    host.connection().need_role(role).await?;
    let Some(deployment) = host.deployment().cloned() else {
        return Err(Usage::error(
            "no deploy target is set: name your project folder with --deploy-to DIR, or with `to` below [deploy] in \
             config.toml",
        ));
    };
    let target = deployment.target();
    if !target.is_dir() {
        let target = print::visible_line(&target.to_string_lossy());
        anyhow::bail!(
            "the deploy target {target} is not a folder, or it does not exist. Create it with `mkdir -p`, or name another \
             one with --deploy-to DIR, or with `to` below [deploy] in config.toml"
        );
    }
    let recovered = deployment.recover().await;
    note_mended(&host, &deployment, need).await?;
    recovered?;
    let done = run_one(&host, &deployment, args.command, settings).await;
    // Another one may have died meanwhile.
    note_mended(&host, &deployment, need).await?;
    let code = done?;
    host.close().await?;
    Ok(code)
}

async fn run_one(
    host: &Host,
    deployment: &Deployment,
    command: Command,
    settings: &Settings,
) -> anyhow::Result<ExitCode> {
    Ok(match command {
        Command::Plan { all } => {
            let plan = planned(deployment).await?;
            if settings.json {
                print::json(&json!({ "digest": plan.digest(), "plan": plan }))?;
            } else {
                show(&plan, if all { usize::MAX } else { SHOWN_MAX });
                print::line(format_args!("digest {}", plan.digest()));
            }
            ExitCode::SUCCESS
        }
        Command::Run { yes, digest, strict } => {
            let order = Order { yes, digest, strict, json: settings.json };
            deploy(host, deployment, &order).await?
        }
        Command::Undo { id, yes } => undo(host, deployment, id, yes, settings.json).await?,
        Command::History => {
            let history = deployment.history().await?;
            if settings.json {
                print::json(&history)?;
            } else {
                let rows: Vec<Vec<String>> = history
                    .iter()
                    .map(|one| {
                        let state = serde_json::to_value(one.state).unwrap_or_default();
                        vec![
                            one.id.clone(),
                            print::local_time(one.at_ms),
                            print::visible_line(&one.who),
                            state.as_str().unwrap_or_default().to_owned(),
                            one.new.to_string(),
                            one.changed.to_string(),
                            one.deleted.to_string(),
                        ]
                    })
                    .collect();
                print::table(&["id", "at", "who", "state", "new", "changed", "deleted"], &rows);
            }
            ExitCode::SUCCESS
        }
    })
}

/// Tells the person what was recovered after a crash, and records it, even if they only asked for a plan.
async fn note_mended(host: &Host, deployment: &Deployment, need: Need) -> anyhow::Result<()> {
    let recording = if need == Need::Writing { Recording::Required } else { wire::IF_WRITABLE };
    tell_recovered(&note_recovered(host.connection(), deployment, recording).await?);
    Ok(())
}

async fn planned(deployment: &Deployment) -> anyhow::Result<DeployPlan> {
    Ok(deployment.plan(&crate::signals::ended_by_signal()).await?)
}

/// How a deploy is asked for.
struct Order {
    yes: bool,
    digest: Option<String>,
    strict: bool,
    json: bool,
}

async fn deploy(host: &Host, deployment: &Deployment, order: &Order) -> anyhow::Result<ExitCode> {
    let Order { yes, digest, strict, json } = order;
    let (digest, json) = (digest.as_deref(), *json);
    let plan = planned(deployment).await?;
    let held_back: Vec<Reason> = plan.held_back().cloned().collect();
    if *strict && !held_back.is_empty() {
        tell("stays back", &held_back[..held_back.len().min(SHOWN_MAX)]);
        anyhow::bail!("nothing was deployed: {} would stay back", held_back.len());
    }
    if plan.is_empty() {
        print::aside("there is nothing to deploy");
        tell("stays back", &held_back[..held_back.len().min(SHOWN_MAX)]);
        return Ok(tell_held_back(held_back.len(), json));
    }
    if digest.is_some_and(|digest| !plan.digest().eq_ignore_ascii_case(digest)) {
        anyhow::bail!("the plan is another one now, with the digest {}: look at it again", plan.digest());
    }
    if !json {
        show(&plan, SHOWN_MAX);
    }
    if !*yes
        && digest.is_none()
        && !terminal::agreed(
            &format!("deploy to {}?", deployment.target().display()),
            "look at the plan, then say --digest or --yes",
        )?
    {
        print::aside("nothing was deployed");
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    let who = host.connection().who();
    let mark = DeployMark {
        id: who.call_id.clone(),
        at_ms: SystemClock::default().unix_ms(),
        who: host.connection().user().name.clone(),
    };
    let arguments = json!({ "digest": plan.digest(), "to": deployment.name() });
    let (bar, progress) = bar();
    let work = async { anyhow::Ok(deployment.run(plan, mark, progress, &crate::signals::ended_by_signal()).await?) };
    let deployed = host.connection().record(&who, "deploy.run", arguments, work).await;
    bar.finish_and_clear();
    let deployed = deployed?;
    if json {
        let mut told = serde_json::to_value(&deployed)?;
        told["heldBack"] = serde_json::to_value(&held_back)?;
        print::json(&told)?;
    } else {
        print::line(format_args!(
            "deployed {} new, {} changed, {} deleted; undo it with `toolhost deploy undo`",
            deployed.new, deployed.changed, deployed.deleted
        ));
        tell("kept", &deployed.kept);
    }
    Ok(tell_held_back(held_back.len(), json))
}

/// The last line of a deploy that could not take everything along, and its exit code.
fn tell_held_back(count: usize, json: bool) -> ExitCode {
    if count == 0 {
        return ExitCode::SUCCESS;
    }
    if !json {
        print::line(format_args!("{count} {} back", if count == 1 { "stays" } else { "stay" }));
    }
    ExitCode::from(EXIT_HELD_BACK)
}

async fn undo(
    host: &Host,
    deployment: &Deployment,
    id: Option<String>,
    yes: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let Some(plan) = deployment.undo_plan().await? else {
        print::aside("there is no deploy to undo");
        return Ok(ExitCode::SUCCESS);
    };
    if id.as_ref().is_some_and(|id| *id != plan.id) {
        anyhow::bail!("only the newest deploy can be undone, and that is {}", plan.id);
    }
    if !plan.conflicts.is_empty() {
        tell("changed since", &plan.conflicts);
        anyhow::bail!("nothing was undone: {} files were changed since the deploy", plan.conflicts.len());
    }
    if !json {
        for (what, paths) in
            [("back as it was", &plan.restored), ("removed", &plan.removed), ("comes back", &plan.returned)]
        {
            some(what, paths.iter().map(String::as_str), SHOWN_MAX);
        }
    }
    if !yes && !terminal::agreed(&format!("undo the deploy {}?", plan.id), "say --yes")? {
        print::aside("nothing was undone");
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    let who = host.connection().who();
    let (bar, progress) = bar();
    let work = async { anyhow::Ok(deployment.undo(plan.id.clone(), progress).await?) };
    let undone = host.connection().record(&who, "deploy.undo", json!({ "deploy": plan.id }), work).await;
    bar.finish_and_clear();
    let undone = undone?;
    if json {
        print::json(&undone)?;
    } else {
        print::line(format_args!(
            "{} restored, {} removed, {} returned",
            undone.restored, undone.removed, undone.returned
        ));
        tell("kept", &undone.kept);
    }
    Ok(ExitCode::SUCCESS)
}

fn bar() -> (ProgressBar, DeployProgress) {
    let bar = if print::has_asides() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    bar.set_style(
        ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len}").unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.enable_steady_tick(DRAW_EVERY);
    let drawn = bar.clone();
    let tell = move |done: usize, total: usize, doing: &'static str| {
        drawn.set_message(doing);
        drawn.set_length(total as u64);
        drawn.set_position(done as u64);
    };
    (bar, Arc::new(tell))
}

fn show(plan: &DeployPlan, most: usize) {
    some("new", plan.new.iter().map(|file| file.path.as_str()), most);
    some("changed", plan.changed.iter().map(|file| file.path.as_str()), most);
    some("deleted", plan.orphans.iter().map(|file| file.path.as_str()), most);
    for (what, reasons) in [("stays", &plan.protected), ("not shipped", &plan.refused)] {
        let told = |held_back: bool| {
            let of_kind = reasons.iter().filter(move |one| one.held_back == held_back);
            of_kind.map(|one| format!("{} ({})", one.path, one.why)).collect::<Vec<String>>()
        };
        some("stays back", told(true).iter().map(String::as_str), most);
        some(what, told(false).iter().map(String::as_str), most);
    }
    print::line(format_args!(
        "{} new, {} changed, {} deleted, {} as they were, {} bytes, to {}",
        plan.new.len(),
        plan.changed.len(),
        plan.orphans.len(),
        plan.unchanged,
        plan.bytes,
        print::visible_line(&plan.target)
    ));
    let held_back = plan.held_back().count();
    if held_back > 0 {
        print::line(format_args!(
            "{held_back} of these cannot be deployed or deleted and stay back (marked `stays back`)"
        ));
    }
}

fn some<'a>(what: &str, lines: impl Iterator<Item = &'a str>, most: usize) {
    let mut more = 0;
    for (n, line) in lines.enumerate() {
        if n < most {
            print::line(format_args!("{what}: {}", visible_line(line)));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        print::line(format_args!("{what}: {more} more"));
    }
}

fn tell(what: &str, reasons: &[Reason]) {
    for one in reasons {
        print::note(format_args!("{what}: {} ({})", visible_line(&one.path), visible_line(&one.why)));
    }
}

fn tell_recovered(recovered: &[Recovered]) {
    for one in recovered {
        let (id, what, kept) = match one {
            Recovered::Discarded { id } => (id, "had not begun and was discarded", &[][..]),
            Recovered::Finished { id, kept } => (id, "was interrupted and is finished now", kept.as_slice()),
            Recovered::TakenBack { id, kept } => (id, "was interrupted and is taken back", kept.as_slice()),
        };
        print::aside(format_args!("the deploy {id} {what}"));
        tell("kept", kept);
    }
}
