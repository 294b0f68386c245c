//! `toolhost demo`: the two-minute tour.
//!
//! A real project in a temporary folder, a real host, and the real loop with a model that plays a script: what
//! `toolhost run` does, without a network and without a compiler. Every step says beforehand how it must end; a tour that
//! goes wrong fails.

mod story;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use toolhost::{Need, OpenModel, SessionRequest, WORKSPACE_ITERATIONS};
use toolhost_agent::model::Script;
use toolhost_agent::session::{AnswerForm, CallStep, LoopLimits, ResultForm, Status, TurnStep, Unwatched, Watch, step};
use toolhost_store::Filter;

use self::story::{Step, Wanted};
use super::run::conduct;
use super::run::live::{self, Live};
use crate::print::{self, BAD, BOLD, GOOD, paint};
use crate::settings::Settings;
use crate::terminal::{self, Terminal};
use crate::wire;

/// In whose name the tour's agent commits.
const PERSONA: &str = "Demo Agent";
const PROFILE: &str = "developer";
const GOAL: &str = "The tests of greeter fail. Fix it and push. (Then try what an agent must not do.)";

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
    call: CallStep,
    /// The call's envelope, as the model was told it.
    envelope: Value,
    as_wanted: bool,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let stage = Stage::build()?;
    let talk = !settings.json;
    if talk {
        print::line(format_args!("{}\n", paint(BOLD, "Toolhost: tools for AI agents that people can trust")));
        print::line(format_args!("a project was made in {}", stage.project().display()));
        print::line(
            "a scripted model works in it with the profile developer; this is what `toolhost run` looks like\n",
        );
    }
    let (session, played) = play(&stage, settings, talk).await?;
    let audit = look_back(&stage, settings).await?;
    let untouched = stage.outside_is_untouched();
    let good = played.iter().all(|step| step.as_wanted) && audit.verdict.problems.is_empty() && untouched;
    if settings.json {
        let steps: Vec<Value> = played
            .iter()
            .map(
                |p| json!({ "step": p.step.says, "tool": p.step.tool, "asWanted": p.as_wanted, "outcome": p.envelope }),
            )
            .collect();
        print::json(&json!({
            "ok": good, "session": session, "steps": steps, "state": stage.state(),
            "audit": { "rows": audit.verdict.rows, "problems": audit.verdict.problems.len() },
        }))?;
    } else {
        timeline(&played, &audit);
        conclude(&stage, &session, &played, &audit.verdict, untouched, args.remove);
    }
    if args.remove {
        toolhost_sandbox::remove_folder(&stage.folder)?;
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
        for folder in story::GIT_FOLDERS {
            std::fs::create_dir_all(stage.project().join(folder))?;
        }
        for (name, text) in story::GIT_FILES.iter().chain(story::FILES) {
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

/// Runs the session; its id and its calls.
async fn play(stage: &Stage, settings: &Settings, talk: bool) -> anyhow::Result<(String, Vec<Played>)> {
    let host = wire::open(&settings.elsewhere(stage.project(), stage.state(), stage.config())).await?;
    let model = OpenModel { model: Arc::new(script(stage)?), spec: "script:demo".to_owned() };
    // The tour looks into the results, which are easier to look into as JSON.
    let request = SessionRequest::plain(GOAL)
        .profile(PROFILE)
        .persona(PERSONA)
        .results(ResultForm::Envelope)
        .limits(LoopLimits { max_iterations: WORKSPACE_ITERATIONS, ..LoopLimits::default() });
    let session = host.start(request, &model).await?.with_control(conduct::stopped_by_signals());
    let session = if terminal::is_there() { session.with_presenter(Arc::new(Terminal::of(&host))) } else { session };
    let watch: Arc<dyn Watch> = if talk {
        Arc::new(Live::of(&AnswerForm::Text, Some(Arc::clone(host.registry()))))
    } else {
        Arc::new(Unwatched)
    };
    let result = session.run_watched(None, &watch).await?;
    let id = session.id().to_owned();
    if talk {
        live::conclude(&result);
    }
    if result.status != Status::Completed {
        bail!("the tour did not come to its end: {:?}", result.error);
    }
    let mut played = Vec::new();
    let rows = host.store().sessions().steps(host.connection().project().id, &id, -1, i64::MAX).await?;
    for (n, step) in story::STEPS.iter().enumerate() {
        let turn = u32::try_from(n)?;
        let row = rows.iter().find(|row| row.step == step::call(turn, 0)).context("a call is not in the journal")?;
        played.push(judge(step, serde_json::from_value(row.body.clone())?)?);
    }
    // What the model said is there, too, and says no secret.
    for row in rows.iter().filter(|row| row.step.starts_with("turn_")) {
        let said: TurnStep = serde_json::from_value(row.body.clone())?;
        if said.reply.text.contains(story::SECRET.trim()) {
            bail!("the secret outside the workspace was told: {}", said.reply.text);
        }
    }
    host.close().await?;
    Ok((id, played))
}

/// The tour as a script: a turn with a word and a call for each step, and a last word.
fn script(stage: &Stage) -> anyhow::Result<Script> {
    let mut turns = Vec::new();
    for step in story::STEPS {
        let chapter = step.chapter.map(|chapter| format!("\n{chapter}.\n")).unwrap_or_default();
        turns.push(json!({
            "text": format!("{chapter}I {}.", step.says),
            "calls": [{ "tool": step.tool, "arguments": stage.fill(step.arguments)? }],
        }));
    }
    turns.push(json!({
        "text": "\nDone.\n`greet.sh` says the name again and its test passes; the change is committed. The push is for a \
                 person to allow. What lies outside the project was out of reach.",
    }));
    Ok(Script::parse("script", &json!({ "turns": turns }).to_string())?)
}

fn judge(step: &'static Step, call: CallStep) -> anyhow::Result<Played> {
    if call.content.contains(story::SECRET.trim()) {
        bail!("the secret outside the workspace was read: {}", call.content);
    }
    let envelope: Value = serde_json::from_str(&call.content).context("a result has another shape")?;
    let (ok, data) = (call.ok, &envelope["data"]);
    let as_wanted = match step.wanted {
        Wanted::Ok => ok && data.get("exitCode").is_none_or(|code| code == 0),
        Wanted::Exit(code) => ok && data.get("exitCode") == Some(&json!(code)),
        Wanted::ExitNonZero => ok && data.get("exitCode").is_some_and(|code| code != 0),
        Wanted::Refused(kind) => !ok && envelope["error"]["kind"] == kind.as_str(),
        // Whoever is at the terminal may have answered, and whatever they said is right; nobody is at that address.
        Wanted::Waits => terminal::is_there() || ok && data.get("status") == Some(&json!("pending_approval")),
    };
    Ok(Played { step, call, envelope, as_wanted })
}

/// What the audit tells afterwards.
struct LookBack {
    verdict: toolhost_store::Verdict,
    /// Call id to the reason it was let through or stopped.
    decisions: HashMap<String, String>,
}

async fn look_back(stage: &Stage, settings: &Settings) -> anyhow::Result<LookBack> {
    let settings = settings.elsewhere(stage.project(), stage.state(), stage.config());
    let connection = wire::connect(&settings.resolve()?, Need::Reading).await?;
    let (reader, project) = (connection.store().reader(), connection.project().id);
    let verdict = reader.verify_audit(project).await?;
    let rows = reader.audit(project, &Filter { limit: i64::MAX, ..Filter::default() }).await?;
    connection.close().await?;
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
            let (call, envelope) = (&played.call, &played.envelope);
            let ended = match (envelope["error"]["kind"].as_str(), envelope["data"].get("exitCode")) {
                (Some(kind), _) => kind.to_owned(),
                (None, None) if envelope["data"]["status"] == "pending_approval" => "waits".to_owned(),
                (None, Some(code)) if code != 0 => format!("exit code {code}"),
                _ => "ok".to_owned(),
            };
            let decision = audit.decisions.get(call.call_id.as_str());
            vec![
                (n + 1).to_string(),
                call.tool.clone(),
                decision.cloned().unwrap_or_else(|| "-".to_owned()),
                if played.as_wanted { ended } else { paint(BAD, format_args!("{ended}, unexpected")) },
                format!("{} ms", call.ms),
            ]
        })
        .collect();
    print::table(&["#", "call", "decision", "ended", "took"], &rows);
}

fn conclude(
    stage: &Stage,
    session: &str,
    played: &[Played],
    verdict: &toolhost_store::Verdict,
    untouched: bool,
    removed: bool,
) {
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
        "\nlook at it:   toolhost audit show --root {} --state {}",
        project.display(),
        state.display()
    ));
    print::line(format_args!(
        "the session:  toolhost session replay {session} --root {} --state {}",
        project.display(),
        state.display()
    ));
    print::line(format_args!(
        "what waits:   toolhost review list --root {} --state {}",
        project.display(),
        state.display()
    ));
    print::line(
        "next:         toolhost doctor, then `toolhost run` with a model of yours, or your agent on `toolhost mcp`",
    );
}
