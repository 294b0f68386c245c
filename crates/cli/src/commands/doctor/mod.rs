//! `toolhost doctor`

mod checks;

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;
use toolhost::Kit;
use toolhost_contract::workspace::{Executor, FenceReport, MemoryReport, Tier};
use toolhost_sandbox::LocalExecutor;

use self::checks::{Finding, Standing};
use crate::print::{self, BAD, BOLD, GOOD, WARN, paint};
use crate::settings::{NO_CONFIGURATION, Resolved, Settings, USER_DEFAULT};
use crate::wire;
use toolhost_store::Store;

/// Check the fence, the database, the configuration, the clients and the model, and say what to do about what is not well
///
/// It answers also where something is broken, and changes nothing unless it is told to. The exit code is 1 where something
/// does not work.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Accept git's files as they are, and let commands run again
    #[arg(long)]
    accept_git: bool,
    /// List what the fence does not hold here, each with what helps
    #[arg(long)]
    fence: bool,
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
    let opened = Opened::of(settings).await?;
    let executor = wire::local(&opened.kit)?;
    if args.accept_git {
        opened.accept_git(executor, settings).await?;
    }
    let refused = executor.looked_at().await.err().map(|error| error.to_string());
    let report = executor.report().await;
    let findings = opened.findings(&report, refused.as_deref(), settings).await;
    let bad = findings.iter().filter(|finding| finding.standing == Standing::Bad).count();
    if settings.json {
        opened.print_json(&report, refused.as_deref(), &findings, args.accept_git)?;
    } else {
        tell(&report, &opened.resolved, args.fence);
        for finding in &findings {
            print::line(told(finding));
        }
        let notes = findings.iter().filter(|finding| finding.standing == Standing::Note).count();
        print::line(format_args!("\n{}", verdict(bad, notes)));
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What could be opened of the settings.
struct Opened {
    kit: Kit,
    resolved: Resolved,
    /// What the settings came to.
    settings: Finding,
    /// Where the workspace cannot be opened, the fence is tried in an empty folder, and nothing is known of the project.
    instead: Option<tempfile::TempDir>,
}

impl Opened {
    /// As much as can be opened: with all settings, without the configuration file, or in an empty folder.
    async fn of(settings: &Settings) -> anyhow::Result<Self> {
        let error = match wire::kit(settings).await {
            Ok((kit, resolved)) => {
                let there = if resolved.config_file.exists() {
                    "is understood"
                } else {
                    "is not there: the built-in settings hold"
                };
                let says = format!("{} {there}", resolved.config_file.display());
                return Ok(Self { kit, resolved, settings: Finding::good("configuration", says), instead: None });
            }
            Err(error) => print::all_of(&error),
        };
        if let Ok((kit, resolved)) = wire::kit(&settings.built_in()).await {
            let settings = Finding::bad(
                "configuration",
                error,
                "correct what is named; the other checks used the built-in settings",
            );
            return Ok(Self { kit, resolved, settings, instead: None });
        }
        let folder = tempfile::tempdir()?;
        let root = folder.path().join("workspace");
        std::fs::create_dir(&root)?;
        let elsewhere = settings.elsewhere(root, folder.path().join("state"), NO_CONFIGURATION.into());
        let (kit, resolved) = wire::kit(&elsewhere).await?;
        let settings = Finding::bad("workspace", error, "go into the project's folder, or name it with --root DIR");
        Ok(Self { kit, resolved, settings, instead: Some(folder) })
    }

    async fn accept_git(&self, executor: &LocalExecutor, settings: &Settings) -> anyhow::Result<()> {
        anyhow::ensure!(self.settings.standing == Standing::Good, "{}", self.settings.says);
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
            print::line(format_args!("git's files in {} are accepted\n", self.resolved.root.display()));
        }
        Ok(())
    }

    async fn findings(&self, report: &FenceReport, refused: Option<&str>, settings: &Settings) -> Vec<Finding> {
        let mut findings = vec![checks::fence(report, refused), checks::git(&self.resolved)];
        let looks_further = self.instead.is_none();
        if looks_further {
            findings.push(checks::database(&self.resolved).await);
        }
        let is_good = self.settings.standing == Standing::Good;
        findings.push(self.settings.clone());
        if looks_further {
            findings.extend(checks::clients(&self.resolved, &self.kit.profiles));
        }
        if looks_further && is_good {
            findings.push(checks::model(settings, &self.resolved));
        }
        findings
    }

    fn print_json(
        &self,
        report: &FenceReport,
        refused: Option<&str>,
        findings: &[Finding],
        accepted: bool,
    ) -> anyhow::Result<()> {
        let resolved = &self.resolved;
        print::json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ok": findings.iter().all(|finding| finding.standing != Standing::Bad),
            "checks": findings,
            "fence": report,
            "root": resolved.root,
            "state": resolved.state,
            // Without its password.
            "database": resolved.database.as_deref().map(Store::address),
            "project": resolved.project,
            "user": user(resolved),
            "config": resolved.config_file,
            "toolchains": resolved.toolchains,
            "acceptedGit": accepted,
            "refused": refused,
        }))
    }
}

/// A finding in a line, and what to do about it in the next.
fn told(finding: &Finding) -> String {
    let mark = match finding.standing {
        Standing::Good => paint(GOOD, "ok  "),
        Standing::Note => paint(WARN, "note"),
        Standing::Bad => paint(BAD, "bad "),
    };
    let line = format!("{mark}  {:<14} {}", finding.about, print::visible_line(&finding.says));
    match &finding.fix {
        Some(fix) => format!("{line}\n      {:<14} -> {}", "", print::visible_line(fix)),
        None => line,
    }
}

fn verdict(bad: usize, notes: usize) -> String {
    let notes = match notes {
        0 => String::new(),
        notes => format!(", {} to look at", print::count(notes, "note")),
    };
    match bad {
        0 => format!("{}{notes}", paint(GOOD, "Toolhost is ready")),
        1 => {
            format!("{}{notes}", paint(BAD, "one thing does not work: the line that begins with `bad` says what to do"))
        }
        bad => format!(
            "{}{notes}",
            paint(BAD, format_args!("{bad} things do not work: the lines that begin with `bad` say what to do"))
        ),
    }
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

/// `is_whole`: with all that the fence does not hold.
fn tell(report: &FenceReport, resolved: &Resolved, is_whole: bool) {
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
    if is_whole {
        report.holes.iter().for_each(|hole| print::line(format_args!("  not held  {hole}")));
    } else if !report.holes.is_empty() {
        let count = print::count(report.holes.len(), "thing");
        print::line(format_args!(
            "  not held  {count}, rare ones among them: `toolhost doctor --fence` says which, and what helps"
        ));
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
