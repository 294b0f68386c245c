//! `toolhost doctor`

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use toolhost_contract::workspace::{Executor, FenceReport, MemoryReport, Tier};

use crate::print::{self, BAD, BOLD, GOOD, WARN, paint};
use crate::settings::{Resolved, Settings, USER_DEFAULT};
use crate::wire;
use toolhost_store::Store;

/// Show which fence works on this machine, what it does not stop, and where files are kept
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Accept git's files as they are, and let commands run again
    #[arg(long)]
    accept_git: bool,
}

/// What `--accept-git` does.
const ACCEPTING: &str = "Toolhost forgets what it had kept of git's files in this workspace to put it back: hooks, \
configuration and what they name stay as they are now. Commands run again. Before you use git here, look at what it \
obeys: .git, folders of hooks, and files that your settings include.";

/// What a person does about commands that are refused.
const LOOK: &str =
    "Look at what is named. If a command has written there, put it right. Then say `toolhost doctor --accept-git`.";

/// Said while something may still change what a person has looked at.
const NOT_YET: &str = "nothing was accepted: a command is under way in the workspace and could change git's files after you \
have looked. Say this again when it has ended";

/// Said before the reason where accepting is not enough.
const STILL_REFUSED: &str = "git's files are accepted, but commands are still refused";

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (kit, resolved) = wire::kit(settings).await?;
    let executor = wire::local(&kit)?;
    if args.accept_git {
        let former = executor.looked_at().await.err();
        match executor.accept_git().await {
            Err(toolhost_contract::workspace::Error::CommandUnderWay) => anyhow::bail!(NOT_YET),
            accepted => accepted.context(STILL_REFUSED)?,
        }
        if !settings.json {
            if let Some(former) = former {
                print::line(format_args!("Commands were refused: {}", print::visible_line(&former.to_string())));
            }
            print::line(ACCEPTING);
            print::line(format_args!("git's files in {} are accepted\n", resolved.root.display()));
        }
    }
    let refused = executor.looked_at().await.err().map(|error| error.to_string());
    let report = executor.report().await;
    if settings.json {
        print::json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "fence": report,
            "root": resolved.root,
            "state": resolved.state,
            // Without its password.
            "database": resolved.database.as_deref().map(Store::address),
            "project": resolved.project,
            "user": user(&resolved),
            "config": resolved.config_file,
            "toolchains": resolved.toolchains,
            "acceptedGit": args.accept_git,
            "refused": refused,
        }))?;
    } else {
        if let Some(refused) = &refused {
            let refused = paint(BAD, format_args!("commands are refused: {}", print::visible_line(refused)));
            print::line(format_args!("{refused}\n{LOOK}\n"));
        }
        tell(&report, &resolved);
    }
    Ok(if report.tier.is_some() && refused.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts a host in a delegated cgroup of its own.
const IN_A_SCOPE: &str = "systemd-run --user --scope -p Delegate=yes toolhost mcp";

fn memory(report: &MemoryReport) -> String {
    let limit = report.limit_bytes >> 20;
    match (&report.cgroup, &report.why) {
        (Some(cgroup), _) => {
            format!("at most {limit} MiB per command, enforced by the kernel in cgroup {}", cgroup.display())
        }
        (None, why) => {
            let why = why.as_deref().unwrap_or("there is no cgroup");
            format!(
                "at most {limit} MiB per command, checked several times a second ({why}); for a limit that the kernel \
                 enforces, start the host with `{IN_A_SCOPE}` or pass --command-cgroup"
            )
        }
    }
}

fn tell(report: &FenceReport, resolved: &Resolved) {
    let fence = match report.tier {
        Some(Tier::Full) => paint(GOOD, "full: bwrap, Landlock, seccomp, limits"),
        Some(Tier::Landlock) => paint(WARN, "landlock: Landlock, seccomp, limits, without namespaces"),
        Some(Tier::Off) => paint(BAD, "OFF: commands run with your rights"),
        None => paint(BAD, "none holds: commands are refused"),
    };
    print::line(format_args!("{}       {fence}", paint(BOLD, "fence")));
    print::line(format_args!("  runs as   {}", report.probe.runs_as));
    print::line(format_args!("  kernel    {}, Landlock ABI {}", report.probe.kernel, report.probe.landlock_abi));
    let bwrap =
        report.probe.bwrap.as_ref().map_or_else(|| "not installed".to_owned(), |path| path.display().to_string());
    print::line(format_args!("  bwrap     {bwrap}"));
    print::line(format_args!("  memory    {}", memory(&report.memory)));
    for why in &report.why {
        print::line(format_args!("  {}  {why}", paint(WARN, "note    ")));
    }
    for hole in &report.holes {
        print::line(format_args!("  not held  {hole}"));
    }
    print::line(format_args!("{}   {}", paint(BOLD, "workspace"), resolved.root.display()));
    print::line(format_args!("{}       {}", paint(BOLD, "state"), resolved.state.display()));
    if let Some(url) = &resolved.database {
        print::line(format_args!("{}    {}", paint(BOLD, "database"), Store::address(url)));
    }
    let user = user(resolved).unwrap_or("as `toolhost login --status` shows");
    print::line(format_args!("{}        {}", paint(BOLD, "user"), print::visible_line(user)));
    let there = if resolved.config_file.exists() { "" } else { " (not there: built-in settings)" };
    print::line(format_args!("{}      {}{there}", paint(BOLD, "config"), resolved.config_file.display()));
    for toolchain in &resolved.toolchains {
        print::line(format_args!("  readable  {}", toolchain.display()));
    }
}

/// The user who was named, or this machine's own; `None` where only the login to a shared database says who it is.
fn user(resolved: &Resolved) -> Option<&str> {
    resolved.user.as_deref().or_else(|| resolved.database.is_none().then_some(USER_DEFAULT))
}
