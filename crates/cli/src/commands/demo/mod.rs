//! `toolhost demo`: the two-minute tour.
//!
//! A real project in a temporary folder, a real host in a process of its own, and this program as its MCP client over
//! stdio. No model, no network, no compiler. Every step says beforehand how it must end; a tour that goes wrong fails.

mod story;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use toolhost_contract::{Outcome, SystemClock};
use toolhost_store::{Filter, Store};

use self::story::{Step, Wanted};
use crate::print::{self, BAD, BOLD, DIM, GOOD, WARN, paint, visible};
use crate::settings::Settings;

/// Lines of an answer that the timeline shows.
const SHOWN_LINES: usize = 6;

/// Take the two-minute tour: an agent at work in a real project, and what it cannot do
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove the tour's folder, and with it its audit, when it is over
    #[arg(long)]
    remove: bool,
}

/// Where the tour takes place.
struct Stage {
    folder: PathBuf,
}

/// One call of the tour, as it went.
struct Played {
    step: &'static Step,
    outcome: Outcome,
    as_wanted: bool,
}

type Client = RunningService<RoleClient, ()>;

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let stage = Stage::build()?;
    let talk = !settings.json;
    if talk {
        print::line(format_args!("{}\n", paint(BOLD, "Toolhost: tools for AI agents that people can trust")));
        print::line(format_args!("a project was made in {}", stage.project().display()));
    }
    let client = stage.connect(settings.sandbox_flag()).await?;
    let tools = client.list_all_tools().await.context("the host did not list its tools")?;
    if talk {
        print::line(format_args!("a host serves it over MCP: profile developer, {} tools\n", tools.len()));
    }
    let mut played = Vec::new();
    for (n, step) in story::STEPS.iter().enumerate() {
        let step = play(&client, step, &stage).await?;
        if talk {
            show(n + 1, &step);
        }
        played.push(step);
    }
    // The host ends when its client leaves, and writes its last rows.
    client.cancel().await.context("the host did not end")?;
    let audit = look_back(&stage).await?;
    let untouched = stage.outside_is_untouched();
    let good = played.iter().all(|step| step.as_wanted) && audit.verdict.problems.is_empty() && untouched;
    if settings.json {
        let steps: Vec<Value> = played
            .iter()
            .map(|p| json!({ "step": p.step.says, "tool": p.step.tool, "asWanted": p.as_wanted, "outcome": p.outcome }))
            .collect();
        print::json(&json!({
            "ok": good, "steps": steps, "state": stage.state(), "audit": { "rows": audit.verdict.rows, "problems": audit.verdict.problems.len() },
        }))?;
    } else {
        timeline(&played, &audit);
        conclude(&stage, &played, &audit.verdict, untouched, args.remove);
    }
    if args.remove {
        std::fs::remove_dir_all(&stage.folder)?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Stage {
    fn build() -> anyhow::Result<Self> {
        // Kept when the tour is over: the audit is there to be looked at.
        let folder = tempfile::Builder::new().prefix("toolhost-demo-").tempdir()?.keep();
        let stage = Self { folder: folder.canonicalize()? };
        // Commands may run as another user, who must be able to pass.
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&stage.folder, std::fs::Permissions::from_mode(0o755))?;
        }
        std::fs::create_dir(stage.project())?;
        for (name, text) in story::FILES {
            std::fs::write(stage.project().join(name), text)?;
        }
        std::fs::write(stage.folder.join(story::SECRET_FILE), story::SECRET)?;
        // Nobody will answer here: a call that needs a person comes back as waiting at once.
        std::fs::write(stage.config(), "[approvals]\nhold_seconds = 0\n")?;
        Ok(stage)
    }

    fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// Starts the host as any MCP client would, and opens a session.
    async fn connect(&self, sandbox: &str) -> anyhow::Result<Client> {
        let program = std::env::current_exe()?;
        let mut command = tokio::process::Command::new(program);
        command.arg("--root").arg(self.project()).arg("--state").arg(self.state()).arg("--config").arg(self.config());
        command.args(["--sandbox", sandbox, "mcp", "--profile", "developer", "--persona", "Demo Agent"]);
        command.env_remove("TOOLHOST_PROFILE");
        let client = ().serve(TokioChildProcess::new(command)?).await;
        client.context("the host could not be started")
    }

    /// Fills in where things are.
    fn fill(&self, arguments: &str) -> anyhow::Result<Value> {
        let text = arguments.replace("{outside}", &self.folder.to_string_lossy());
        Ok(serde_json::from_str(&text)?)
    }

    fn outside_is_untouched(&self) -> bool {
        let secret = std::fs::read_to_string(self.folder.join(story::SECRET_FILE));
        secret.is_ok_and(|secret| secret == story::SECRET) && !self.folder.join(story::PLANTED_FILE).exists()
    }
}

async fn play(client: &Client, step: &'static Step, stage: &Stage) -> anyhow::Result<Played> {
    let mut request = CallToolRequestParams::new(step.tool);
    request.arguments = stage.fill(step.arguments)?.as_object().cloned();
    let result = client.call_tool(request).await.with_context(|| format!("the call of {} failed", step.tool))?;
    let structured = result.structured_content.context("the host gave no structured answer")?;
    let mut outcome: Outcome = serde_json::from_value(structured).context("the host's answer has another shape")?;
    outcome.text = result.content.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect();
    if outcome.text.contains(story::SECRET.trim()) {
        bail!("the secret outside the workspace was read: {}", outcome.text);
    }
    let as_wanted = match step.wanted {
        Wanted::Ok => outcome.ok && outcome.data.get("exitCode").is_none_or(|code| code == 0),
        Wanted::Exit(code) => outcome.ok && outcome.data.get("exitCode") == Some(&json!(code)),
        Wanted::ExitNonZero => outcome.ok && outcome.data.get("exitCode").is_some_and(|code| code != 0),
        Wanted::Refused(kind) => outcome.error.as_ref().is_some_and(|error| error.kind == kind),
        Wanted::Waits => outcome.ok && outcome.data.get("status") == Some(&json!("pending_approval")),
    };
    Ok(Played { step, outcome, as_wanted })
}

fn show(n: usize, played: &Played) {
    let step = played.step;
    if let Some(chapter) = step.chapter {
        print::line(paint(BOLD, chapter));
    }
    let outcome = &played.outcome;
    let mark = match (played.as_wanted, &step.wanted) {
        (false, _) => paint(BAD, "unexpected"),
        (true, Wanted::Refused(kind)) => paint(WARN, format_args!("refused ({})", kind.as_str())),
        (true, Wanted::Waits) => paint(WARN, "waits for a person"),
        (true, Wanted::ExitNonZero) => paint(WARN, "stopped by the fence"),
        (true, Wanted::Exit(code)) => paint(WARN, format_args!("exit code {code}")),
        (true, Wanted::Ok) => paint(GOOD, "ok"),
    };
    print::line(format_args!("{n:>3}. {} {}", step.says, paint(DIM, format_args!("[{}]", outcome.meta.tool))));
    print::line(format_args!(
        "     {mark} {}",
        paint(DIM, format_args!("{} ms, fence {}", outcome.meta.duration_ms, outcome.meta.fence))
    ));
    let lines: Vec<&str> = outcome.text.lines().filter(|line| !line.trim().is_empty()).collect();
    for text in lines.iter().take(SHOWN_LINES) {
        print::line(paint(DIM, format_args!("     | {}", visible(text))));
    }
    if lines.len() > SHOWN_LINES {
        print::line(paint(DIM, format_args!("     | … {} more lines", lines.len() - SHOWN_LINES)));
    }
}

/// What the audit tells afterwards.
struct LookBack {
    verdict: toolhost_store::Verdict,
    /// Call id to the reason it was let through or stopped.
    decisions: HashMap<String, String>,
}

async fn look_back(stage: &Stage) -> anyhow::Result<LookBack> {
    let store = Store::open(&stage.state(), Arc::new(SystemClock::default())).await?;
    let project = store.project(&stage.project(), "project", "local").await?;
    let reader = store.reader();
    let verdict = reader.verify_audit(project.id).await?;
    let rows = reader.audit(project.id, &Filter { limit: i64::MAX, ..Filter::default() }).await?;
    store.close().await?;
    let mut decisions = HashMap::new();
    for row in rows {
        let body: Value = serde_json::from_str(&row.body)?;
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        if let (Some(decide), Some(why)) = (text("/decision/policy/decide"), text("/decision/policy/why")) {
            let answer = text("/decision/comment").map(|comment| format!(": {comment}")).unwrap_or_default();
            decisions.insert(row.call_id, format!("{decide}, {why}{answer}"));
        }
    }
    Ok(LookBack { verdict, decisions })
}

/// All calls once more, a line each, as the audit has them.
fn timeline(played: &[Played], audit: &LookBack) {
    print::line("");
    let rows: Vec<Vec<String>> = played
        .iter()
        .enumerate()
        .map(|(n, played)| {
            let outcome = &played.outcome;
            let ended = match (&outcome.error, outcome.data.get("exitCode")) {
                (Some(error), _) => error.kind.as_str().to_owned(),
                (None, None) if matches!(played.step.wanted, Wanted::Waits) => "waits".to_owned(),
                (None, Some(code)) if code != 0 => format!("exit code {code}"),
                _ => "ok".to_owned(),
            };
            let decision = audit.decisions.get(outcome.meta.call_id.as_str());
            vec![
                (n + 1).to_string(),
                outcome.meta.tool.clone(),
                decision.cloned().unwrap_or_else(|| "-".to_owned()),
                ended,
                format!("{} ms", outcome.meta.duration_ms),
            ]
        })
        .collect();
    print::table(&["#", "call", "decision", "ended", "took"], &rows);
}

fn conclude(stage: &Stage, played: &[Played], verdict: &toolhost_store::Verdict, untouched: bool, removed: bool) {
    let (project, state): (&Path, &Path) = (&stage.project(), &stage.state());
    let unexpected = played.iter().filter(|step| !step.as_wanted).count();
    print::line("");
    let steps = if unexpected == 0 {
        paint(GOOD, format_args!("all {} calls went as they should", played.len()))
    } else {
        paint(BAD, format_args!("{unexpected} of {} calls did not go as they should", played.len()))
    };
    print::line(steps);
    print::line(if untouched {
        paint(GOOD, "nothing outside the project was read or changed")
    } else {
        paint(BAD, "something outside the project was changed")
    });
    let chain = if verdict.problems.is_empty() { paint(GOOD, "verifies") } else { paint(BAD, "does NOT verify") };
    print::line(format_args!("the audit has {} rows and {chain}", verdict.rows));
    if removed {
        print::line("all of it is removed, as you asked");
        return;
    }
    print::line(format_args!(
        "\nlook at it:  toolhost audit show --root {} --state {}",
        project.display(),
        state.display()
    ));
    print::line(format_args!(
        "what waits:  toolhost review list --root {} --state {}",
        project.display(),
        state.display()
    ));
    print::line("next:        toolhost doctor, then connect your agent to `toolhost mcp` (see the README)");
}
