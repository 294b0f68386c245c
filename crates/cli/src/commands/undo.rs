//! `toolhost undo`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use toolhost::Host;
use toolhost_contract::visible_line;
use toolhost_contract::workspace::{Access, Fence, Workspace};
use toolhost_host::Undo;
use toolhost_store::{Changes, Role};

use super::audit::one_call;
use crate::settings::Settings;
use crate::since::{since, unix_ms};
use crate::{EXIT_FAILED, print, terminal, wire};

/// Put back what file tools have changed
///
/// Shows the diff and asks. What was changed since by somebody else stops it, and nothing is put back. Without an option
/// it is about the last call that changed a file. An undo is a change like any other: undo it to have everything again.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Which {
    /// What one session has changed: its id, the beginning of an agent's, or `last`
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What one call has changed: its id, or the end of it that `audit show` shows
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// All that was changed since, such as 30m or 2026-11-21T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<SystemTime>,
}

/// Said where one of several calls cannot be undone.
const STOPPED_MANY: &str = "nothing was undone, since all of it is put back or nothing. `toolhost audit show` lists the calls: \
undo those one by one, with --call, that did not change what is named above";
/// Said where the one call cannot be undone.
const STOPPED_ONE: &str = "nothing was undone: what has come later to the files named above would be lost. `toolhost undo \
--call ID` undoes another call";

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let host = wire::open(settings).await?;
    host.connection().need_role(Role::Editor).await?;
    let project = host.connection().project().id;
    let which = match (&args.which.session, &args.which.call, args.which.since) {
        (Some(session), ..) => Changes::Session(one_session(&host, session).await?),
        (_, Some(call), _) => Changes::Call(one_call(&host.store().reader(), project, call).await?),
        (.., Some(since)) => Changes::SinceMs(unix_ms(since)),
        _ => Changes::LastCall,
    };
    let workspace = Workspace::new(Arc::clone(host.executor()), Fence::closed(Access::Write));
    let log = host.store().file_log();
    let mut undo = Undo::plan(&log, project, &workspace, &which).await?;
    undo.steps.iter_mut().for_each(|step| host.connection().redact(&mut step.diff));
    let code = if undo.is_empty() {
        match &which {
            Changes::Session(id) => print::aside(format_args!(
                "there is nothing to undo: the session {} has changed no files, or there is no such session",
                visible_line(id)
            )),
            _ => print::aside("there is nothing to undo"),
        }
        ExitCode::SUCCESS
    } else if undo.conflicts.is_empty() {
        if !settings.json {
            show(&undo);
        }
        if args.yes || terminal::agreed(&format!("put back {}?", print::count(undo.steps.len(), "file")), "say --yes")?
        {
            let call = host.request("undo", serde_json::json!({ "calls": undo.calls }), "all");
            let who = host.connection().who_calls(&call);
            let work = async { Ok::<_, anyhow::Error>(undo.apply(&log, project, &call, workspace).await?) };
            host.connection().record(&who, "undo", call.arguments.clone(), work).await?;
            if settings.json {
                print::json(&undo)?;
            } else {
                print::line(format_args!("as before: {}", print::count(undo.steps.len(), "file")));
            }
            ExitCode::SUCCESS
        } else {
            print::aside("nothing was undone");
            ExitCode::from(EXIT_FAILED)
        }
    } else {
        if settings.json {
            print::json(&undo)?;
        }
        for conflict in &undo.conflicts {
            print::note(format_args!("{}: {}", visible_line(&conflict.path), visible_line(&conflict.why)));
        }
        print::note(match which {
            Changes::Session(_) | Changes::SinceMs(_) => STOPPED_MANY,
            Changes::Call(_) | Changes::LastCall => STOPPED_ONE,
        });
        ExitCode::from(EXIT_FAILED)
    };
    host.close().await?;
    Ok(code)
}

/// The session that somebody means. Those of clients are known by their whole ids alone.
async fn one_session(host: &Host, typed: &str) -> anyhow::Result<String> {
    let (project, user) = (host.connection().project().id, host.connection().user().id);
    match host.store().sessions().meant(project, user, typed).await {
        Ok(found) => Ok(found.id),
        Err(toolhost_store::Error::NoSession { .. }) if typed != super::run::LAST => Ok(typed.to_owned()),
        Err(error) => Err(error.into()),
    }
}

fn show(undo: &Undo) {
    for step in &undo.steps {
        for line in print::visible(&step.diff).lines() {
            print::line(print::diff_line(line));
        }
    }
    for folder in &undo.folders {
        print::line(format_args!("{}/ goes if nothing is in it", visible_line(folder)));
    }
}
