//! `toolhost run`: the agent's loop in this terminal, live.

pub(super) mod again;
pub(super) mod conduct;
pub(super) mod live;
mod status;
mod talk;

use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use toolhost::SEMANTIC_READ_TOOLS;
use toolhost::{Error, Host, Need, SessionRequest, iterations_default};
use toolhost_agent::session::{AnswerForm, LoopLimits};
use toolhost_agent::start::{BuilderTarget, StartError, Task};
use toolhost_builder::envelope::{Mode, TargetType};

use self::conduct::Conducted;
use crate::hosting::key_of;
use crate::settings::Settings;
use crate::traces::Tracing;
use crate::{EXIT_DENIED, Usage, model, personas, print, terminal, wire};

/// Most bytes of a goal that comes through standard input.
const GOAL_BYTES_MAX: u64 = 256 * 1024;
/// The session that its user worked in last.
pub(super) const LAST: &str = "last";
/// The profile of sessions on workflow packages.
const BUILDER: &str = "builder";

/// Let a model work on a task, with the tools of a profile, live in this terminal
///
/// Everything it does passes the gate and is written down step by step: a session that was interrupted goes on with
/// `toolhost run --continue`. Ctrl-C ends the call under way and pauses it, a second one cancels it. Without a goal, a
/// conversation begins: each line is a message, and Ctrl-D ends it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to do, in words; `-` reads it from standard input; at a terminal, none begins a conversation
    goal: Option<String>,
    /// Go on with the session that you worked in last, with the goal as the next message
    #[arg(
        long = "continue", short = 'c', conflicts_with_all = ["profile", "persona", "ticket", "target", "answer_schema"]
    )]
    is_continued: bool,
    /// Whose tools, rules and fence apply [default: the persona's role; else developer, or builder with --target]
    ///
    /// With --target the model has the tools for packages only, whatever the profile has; the profile builder stands in for
    /// one that cannot read packages.
    #[arg(long, env = "TOOLHOST_PROFILE")]
    profile: Option<String>,
    /// The model: anthropic:NAME, openai:NAME, openai:NAME@URL, gemini:NAME, ollama:NAME, script:FILE, replay:FILE,
    /// record:FILE:MODEL
    #[arg(long, value_name = "MODEL", env = "TOOLHOST_MODEL")]
    model: Option<String>,
    /// Who works, as commits and comments name them; a persona of the project brings its profile along
    #[arg(long, default_value = "Toolhost Agent")]
    persona: String,
    /// The ticket that the work is about
    #[arg(long, value_name = "ID")]
    ticket: Option<String>,
    /// A file or folder of the workspace that the model looks at first; may be said several times
    #[arg(long = "file", value_name = "PATH", conflicts_with_all = ["is_continued", "target"])]
    files: Vec<String>,
    /// Work on the workflow package: workflow:ID, step:ID, agent:ID or asset:PATH
    #[arg(long, value_name = "TYPE:ID")]
    target: Option<String>,
    /// With --target: the workflow it is in, where the target does not tell
    #[arg(long, value_name = "ID", requires = "target")]
    workflow: Option<String>,
    /// With --target: whether it is to be made or to be made better
    #[arg(long, default_value = "optimize", requires = "target")]
    mode: BuildMode,
    /// With --target: tokens of the context that the model is given [default: 70 of 100 of its window]
    #[arg(long, value_name = "N", requires = "target")]
    context_budget: Option<u64>,
    /// With --target: tokens of the window left for the reply [default: 30 of 100]
    #[arg(long, value_name = "N", requires = "target")]
    reserve_for_response: Option<u64>,
    /// With --target: give the model every tool of the profile
    #[arg(long, requires = "target")]
    all_tools: bool,
    /// A JSON Schema that the answer has to pass
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    answer_schema: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitFlags,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum BuildMode {
    Create,
    Optimize,
}

/// How far a session may go.
#[derive(clap::Args, Clone)]
pub(crate) struct LimitFlags {
    /// Replies of the model [default: 50; with --target 8]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
    /// Answers sent back to be fixed
    #[arg(long, value_name = "N", default_value_t = 2)]
    max_repairs: u32,
    /// Tokens of the whole session, in and out
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// US dollars of the whole session
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// Time of the whole session, such as 10m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    max_time: Option<Duration>,
}

impl LimitFlags {
    pub(super) fn limits(&self, iterations_default: u32) -> LoopLimits {
        LoopLimits {
            max_iterations: self.max_iterations.unwrap_or(iterations_default),
            max_repairs: self.max_repairs,
            tokens_max: self.max_tokens,
            cost_max: self.max_cost,
            time_max: self.max_time,
            ..LoopLimits::default()
        }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let dollars: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if dollars.is_finite() && dollars >= 0.0 { Ok(dollars) } else { Err("it is a number from 0".to_owned()) }
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let goal = args.goal.as_deref().map(|goal| said(goal, "say what to do, in words")).transpose()?;
    if args.is_continued {
        return again::resume(settings, LAST, goal, args.model, &args.limits).await;
    }
    if goal.is_none() && (settings.json || !terminal::is_there()) {
        return Err(Usage::error(
            "say what to do: toolhost run \"GOAL\", or `toolhost run -` to read it from standard input; a conversation needs a terminal",
        ));
    }
    let mut task = task(&args, goal.clone().unwrap_or_default())?;
    let resolved = settings.resolve()?;
    let model = model::open(&settings.models_of(&key_of(&resolved))?, args.model.as_deref())?;
    let usual = match task {
        Task::Workspace { .. } => "developer",
        Task::Builder(_) => BUILDER,
    };
    let tracing = Tracing::start();
    let mut host = wire::open_observed(&resolved, Need::Writing, &tracing.observers(None)).await?;
    // Whoever may only read has no business with the operator's model.
    host.connection().need_role(toolhost_store::Role::Editor).await?;
    wire::about_ticket(&mut host, args.ticket.clone()).await?;
    let role = personas::role(&host, &args.persona, args.profile.as_deref(), usual).await?;
    let profile = for_task(role.profile, role.personality.is_some(), &task, &host)?;
    let limits = args.limits.limits(match &task {
        Task::Builder(_) => iterations_default(&AnswerForm::Change),
        Task::Workspace { .. } => iterations_default(&AnswerForm::Text),
    });
    let person = conduct::person(&host);
    if let (None, Some(terminal)) = (&goal, &person) {
        print::aside(print::paint(print::DIM, format_args!("a conversation with {}; what is to be done?", model.spec)));
        let Some(first) = talk::next_message(terminal).await else {
            host.close().await?;
            return Ok(ExitCode::SUCCESS);
        };
        task = with_goal(task, first);
    }
    let request =
        SessionRequest::new(task).profile(profile).persona(&args.persona).limits(limits).files(args.files.clone());
    let session = host.start(request, &model).await.map_err(|error| match error {
        Error::Start(error) => {
            let told = match error {
                StartError::Budget(_) => said_budget(&args, model.model.facts().window),
                _ => String::new(),
            };
            anyhow::anyhow!("{error} ({}){told}", error.code().as_str())
        }
        error => personas::told(error),
    })?;
    let conducted = match &person {
        Some(terminal) if goal.is_none() => talk::talk(&host, &session, None, terminal).await,
        _ => conduct::run(&host, session, None, settings.json, person).await,
    };
    // Also where it failed: its commands may be under way.
    let closed = host.close().await;
    tracing.close().await;
    closed?;
    Ok(ended(&conducted?))
}

/// Which options may be the reason why no context fits.
fn said_budget(args: &Args, window: u32) -> String {
    let reserve = args.reserve_for_response.map(|reserve| {
        format!("; --reserve-for-response {reserve} is taken from the model's window of {window} tokens: reserve less")
    });
    let context = args.context_budget.map(|context| format!("; --context-budget {context} is yours: allow more"));
    [reserve, context].into_iter().flatten().collect()
}

/// The profile of a session. One that is set for all work, and has no tools for packages, does not keep people from
/// working on those; a persona's own is not exchanged.
fn for_task(named: String, is_role: bool, task: &Task, host: &Host) -> anyhow::Result<String> {
    let Task::Builder(target) = task else { return Ok(named) };
    let profile = host.gate().profile(&named)?;
    if SEMANTIC_READ_TOOLS.iter().all(|tool| profile.has(tool)) {
        return Ok(named);
    }
    if target.all_tools {
        return Err(Usage::error(format!(
            "the profile {named} cannot read workflow packages, so --all-tools has nothing to give for --target: name a profile \
             that can, such as --profile {BUILDER}, or leave --all-tools out"
        )));
    }
    if is_role {
        return Err(Usage::error(format!(
            "the profile {named} of this persona cannot read workflow packages: name another persona, or leave --persona out"
        )));
    }
    print::aside(format_args!("the profile {named} cannot read workflow packages; using the profile {BUILDER}"));
    Ok(BUILDER.to_owned())
}

/// What somebody says with an argument, or through standard input where that is `-`.
///
/// # Errors
/// If it says nothing, with the words in `nothing`.
pub(super) fn said(argument: &str, nothing: &str) -> anyhow::Result<String> {
    let mut text = argument.to_owned();
    if argument == "-" {
        text.clear();
        std::io::stdin().take(GOAL_BYTES_MAX + 1).read_to_string(&mut text).context("standard input")?;
        if text.len() as u64 > GOAL_BYTES_MAX {
            return Err(Usage::error(format!("standard input has more than {} KiB", GOAL_BYTES_MAX >> 10)));
        }
    }
    if text.trim().is_empty() {
        return Err(Usage::error(nothing));
    }
    Ok(text)
}

fn with_goal(mut task: Task, said: String) -> Task {
    match &mut task {
        Task::Workspace { goal, .. } => *goal = said,
        Task::Builder(target) => target.goal = said,
    }
    task
}

fn task(args: &Args, goal: String) -> anyhow::Result<Task> {
    let Some(target) = &args.target else {
        let schema = args.answer_schema.as_ref().map(|file| -> anyhow::Result<_> {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))
        });
        return Ok(Task::Workspace { goal, schema: schema.transpose()? });
    };
    let (kind, id) = target.split_once(':').unwrap_or((target, ""));
    let target_type = match kind {
        "workflow" => TargetType::Workflow,
        "step" => TargetType::Step,
        "agent" => TargetType::Agent,
        "asset" => TargetType::Asset,
        _ => {
            return Err(Usage::error(format!(
                "`{kind}` is not a target: use workflow:ID, step:ID, agent:ID or asset:PATH"
            )));
        }
    };
    if id.is_empty() {
        return Err(Usage::error(format!("which {kind}? say --target {kind}:ID")));
    }
    let mode = match args.mode {
        BuildMode::Create => Mode::Create,
        BuildMode::Optimize => Mode::Optimize,
    };
    // As a list of changes names it: `step:main/write`.
    let inside = id.split_once('/').filter(|_| target_type == TargetType::Step);
    let (inside, id) = inside.map_or((None, id), |(workflow, id)| (Some(workflow.to_owned()), id));
    if let (Some(inside), Some(named)) = (&inside, &args.workflow)
        && inside != named
    {
        return Err(Usage::error(format!("--target says the workflow `{inside}`, and --workflow says `{named}`")));
    }
    let workflow_id = args.workflow.clone().or(inside);
    let context_budget = args.context_budget;
    Ok(Task::Builder(BuilderTarget {
        goal,
        target_type,
        target_id: id.to_owned(),
        mode,
        workflow_id,
        context_budget,
        reserve_for_response: args.reserve_for_response,
        all_tools: args.all_tools,
    }))
}

/// How the program ends, and what is said last.
pub(super) fn ended(conducted: &Conducted) -> ExitCode {
    use toolhost_agent::session::Status;
    if let Some(next) = &conducted.next {
        print::aside(print::paint(print::DIM, next));
    }
    match conducted.result.status {
        Status::Completed => ExitCode::SUCCESS,
        Status::Cancelled => ExitCode::from(EXIT_DENIED),
        Status::Paused | Status::Limited | Status::Failed => ExitCode::FAILURE,
    }
}
