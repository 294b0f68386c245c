//! `toolhost review`

use std::collections::BTreeMap;
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use toolhost_contract::workspace::Executor;
use toolhost_contract::{quoted, visible_json};
use toolhost_host::{Decision, EditRules, PERMIT_LIVES_MS_DEFAULT, Shown, Standing, ask_id, ask_number};
use toolhost_store::{Ask, AskKind, AskPage, AskState, AskSummary};

use crate::asks::{came, decided, edited_arguments, ended, state};
use crate::attention::AttentionFlags;
use crate::hosting::key_of;
use crate::keyboard::SingleKeys;
use crate::selection::{Column, Selection};
use crate::settings::Settings;
use crate::terminal::{self, Asked, Terminal};
use crate::webhook::{self, Notifying, Watched};
use crate::wire::Answers;
use crate::{EXIT_FAILED, Usage, print, projects, wire};

/// Lines of a list.
const SHOWN_MAX: i64 = 200;
/// Asks that are looked through for those that are selected.
const SELECTED_FROM_MAX: i64 = 10_000;
/// Columns that are not called as their fields.
const COLUMNS: &[Column] =
    &[("id", &["number"]), ("who", &["persona"]), ("until", &["expiresAtMs"]), ("what", &["summary"])];
/// Most that are named where one has to be chosen.
const NAMED_MAX: usize = 5;
/// Most that are answered at once.
const OPEN_MAX: usize = 1000;
/// How often the queue is looked at.
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// How long nothing is asked after a question went away by itself.
const SWAP_SETTLE: Duration = Duration::from_secs(2);
/// Longest text read from standard input, bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// What waits for a person: approvals, reviews and questions
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List what is open
    List {
        /// What has ended, too; the newest first
        #[arg(long)]
        all: bool,
        /// Of each project of this machine, not only of this one
        #[arg(long)]
        all_projects: bool,
        #[command(flatten)]
        selection: Selection,
    },
    /// Show one: the real effect, or the text
    Show {
        id: String,
        /// All pages of a long one; then it can be allowed
        #[arg(long)]
        all: bool,
    },
    /// Answer; without an answer on the command line you are asked at the terminal. The exit code is 1 if one of them was
    /// answered before, has expired or was withdrawn
    Decide(Decide),
    /// Wait for what comes and answer one after the other; without a terminal, print each as a line of JSON
    Watch {
        #[command(flatten)]
        attention: AttentionFlags,
    },
    /// Send a test to the webhook of the configuration, signed as all that goes there
    WebhookTest,
    /// Take an answer back that no call has used yet
    Revoke { id: String },
}

#[derive(clap::Args)]
struct Decide {
    /// One or several, such as ask-7 [default: the only one that is open]
    ids: Vec<String>,
    /// All that is open now
    #[arg(long, conflicts_with = "ids")]
    everything: bool,
    #[command(flatten)]
    answer: AnswerFlags,
    /// With --allow: allow calls like this one, too
    #[arg(long, requires = "allow")]
    rule: bool,
    /// With --rule: what of the arguments must match, instead of what is suggested
    #[arg(long = "when", value_name = "ARGUMENT=GLOB", requires = "rule")]
    conditions: Vec<String>,
    /// With --rule: for how long, such as 8h or 30m
    #[arg(long = "for", value_name = "TIME", requires = "rule")]
    lives: Option<humantime::Duration>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct AnswerFlags {
    /// The call may run
    #[arg(long)]
    allow: bool,
    /// The call may not run; the comment goes back to the model. It stands behind an equals sign: what comes after a space
    /// is one more id
    #[arg(long, value_name = "COMMENT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    deny: Option<String>,
    /// Allow the call with other arguments: a JSON object with all of them, such as
    /// '{"path": "a.txt", "content": "Hello"}', which replaces those of the call. Of a review: your text, which replaces
    /// the one under review. `-` reads it from standard input
    #[arg(long, value_name = "JSON|TEXT")]
    edit: Option<String>,
    /// The text is good as it is
    #[arg(long)]
    pass: bool,
    /// What to do better; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Do not answer this
    #[arg(long)]
    cancel: bool,
    #[arg(long)]
    yes: bool,
    #[arg(long)]
    no: bool,
    /// The answer to a question; `-` reads it from standard input
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    if let Command::List { all, all_projects: true, selection } = &args.command {
        return list_everywhere(*all, selection, settings).await;
    }
    if let Command::WebhookTest = args.command {
        let (origin, status) = webhook::test(settings).await?;
        match settings.json {
            true => print::json(&json!({ "webhook": origin, "status": status }))?,
            false => print::line(format_args!("the webhook at {origin} answered with the status {status}")),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let answers = wire::open_answers(settings).await?;
    let code = match args.command {
        Command::WebhookTest => ExitCode::SUCCESS,
        Command::List { all, selection, .. } => list(&answers, all, &selection, settings.json).await?,
        Command::Show { id, all } => show(&answers, number(&id)?, all, settings.json).await?,
        Command::Decide(decide) => decide_all(&answers, &decide, settings).await?,
        Command::Watch { attention } => {
            let telling = attention.webhook.then(|| Notifying::of_one(settings, watched(&answers, settings)?));
            let telling = telling.transpose()?;
            let code = watch(&answers, attention, settings).await;
            if let Some(telling) = telling {
                telling.close().await;
            }
            code?
        }
        Command::Revoke { id } => {
            answers.queue.take_back(&answers.person, number(&id)?, "cli").await?;
            print::line(format_args!("the answer to {} is taken back", ask_id(number(&id)?)));
            ExitCode::SUCCESS
        }
    };
    answers.connection.close().await?;
    Ok(code)
}

async fn show(answers: &Answers, number: i64, all: bool, json: bool) -> anyhow::Result<ExitCode> {
    let (ask, shown) = answers.queue.get(answers.person.project_id, number).await?;
    let id = ask_id(ask.number);
    let pages = shown.pages();
    let printed = if json {
        print::whole(visible_json(&serde_json::to_string_pretty(&ask)?))
    } else {
        let mut text = ended(&ask).unwrap_or_else(|| format!("{id} is open")) + "\n";
        match pages.first() {
            Some(first) if !all && pages.len() > 1 => {
                let count = pages.len();
                let rest = match ask.state {
                    AskState::Open => format!(
                        "NOT ALL OF IT: this is page 1 of {count}. `toolhost review show {id} --all` shows the rest; \
                         only then can it be allowed"
                    ),
                    _ => format!("page 1 of {count}: `toolhost review show {id} --all` shows the rest"),
                };
                text.push_str(&print::asked(&format!("{first}\n\n{rest}")));
            }
            _ => text.push_str(&print::asked(&shown.whole())),
        }
        if let Some(arguments) = edited_arguments(&ask) {
            let arguments = print::asked(&quoted(&arguments));
            text.push_str(&format!("\n\nallowed with these arguments instead:\n{arguments}"));
        }
        if let Some(came) = came(&ask) {
            text.push_str(&format!("\n\n{came}"));
        }
        if let Some(rule) = shown.rule_text().filter(|_| ask.state == AskState::Open) {
            let rule = print::asked(&quoted(&rule));
            text.push_str(&format!("\n\n`--allow --rule` would allow:\n{rule}"));
        }
        print::whole(text)
    };
    // Whoever looks at its beginning alone, through `head`, has not been shown the rest.
    if let Err(error) = &printed
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(anyhow::anyhow!("it could not be printed: {error}"));
    }
    if all && printed.is_ok() && !print::goes_nowhere() && ask.state == AskState::Open {
        answers.queue.saw(&answers.person, &ask, &shown, "cli").await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The asks of one project, and how many there are beyond.
async fn page(answers: &Answers, all: bool, selection: &Selection) -> anyhow::Result<AskPage> {
    let (asks, project) = (answers.queue.asks(), answers.person.project_id);
    let most = if selection.is_any() { SELECTED_FROM_MAX } else { SHOWN_MAX };
    let page = if all { asks.newest(project, most).await? } else { asks.open_after(project, 0, most).await? };
    Ok(AskPage { asks: selection.of_items(page.asks, COLUMNS)?, more: page.more })
}

async fn list(answers: &Answers, all: bool, selection: &Selection, json: bool) -> anyhow::Result<ExitCode> {
    let page = page(answers, all, selection).await?;
    if json {
        print::json(&page.asks)?;
    } else if page.asks.is_empty() {
        print::aside(if selection.is_any() { "nothing that waits fits" } else { "nothing waits for a person" });
        return Ok(ExitCode::SUCCESS);
    } else {
        print::table(&["id", "state", "who", "tool", "until", "what"], &page.asks.iter().map(row).collect::<Vec<_>>());
    }
    if page.more > 0 {
        print::aside(format_args!("{} more", page.more));
    }
    Ok(ExitCode::SUCCESS)
}

/// The same of each project whose folder is there. One that cannot be read is told, and hides no other.
async fn list_everywhere(all: bool, selection: &Selection, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (mut rows, mut values, mut more, mut failed) = (Vec::new(), Vec::new(), 0, false);
    for found in projects::all(&settings.projects()?).await? {
        let root = found.root.display().to_string();
        if found.problem.is_none() && !found.is_there() {
            continue;
        }
        let read = async {
            if let Some(problem) = &found.problem {
                anyhow::bail!("{}: {problem}", found.state.display());
            }
            let answers = wire::open_answers(&settings.with_root(Some(found.root.clone()))).await?;
            let page = page(&answers, all, selection).await?;
            answers.connection.close().await?;
            Ok(page)
        };
        let page = match read.await {
            Ok(page) => page,
            Err(error) => {
                print::failure(&error.context(root));
                failed = true;
                continue;
            }
        };
        more += page.more;
        for ask in &page.asks {
            let mut value = serde_json::to_value(ask)?;
            value["root"] = json!(root);
            values.push(value);
            rows.push([row(ask), vec![print::cell(&root)]].concat());
        }
    }
    if settings.json {
        print::json(&values)?;
    } else if rows.is_empty() {
        print::aside("nothing waits for a person in any project");
    } else {
        print::table(&["id", "state", "who", "tool", "until", "what", "project"], &rows);
        print::aside("answer with `toolhost review decide ID --root PROJECT`");
    }
    if more > 0 {
        print::aside(format_args!("{more} more"));
    }
    Ok(if failed { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// A line of the list.
fn row(ask: &AskSummary) -> Vec<String> {
    vec![
        ask_id(ask.number),
        print::cell(&state(ask)),
        print::cell(&ask.persona),
        print::cell(&ask.tool),
        print::local_time(ask.expires_at_ms),
        print::cell(&print::first_line(&ask.summary)),
    ]
}

/// All that was open when this was asked, the oldest first: what comes later nobody has seen.
async fn all_open(answers: &Answers) -> anyhow::Result<Vec<i64>> {
    let mut numbers = Vec::new();
    loop {
        let last = numbers.last().copied().unwrap_or(0);
        let page = answers.queue.asks().open_after(answers.person.project_id, last, SHOWN_MAX).await?;
        numbers.extend(page.asks.iter().map(|ask| ask.number));
        if page.more == 0 || page.asks.is_empty() || numbers.len() >= OPEN_MAX {
            return Ok(numbers);
        }
    }
}

/// The one that is open, where it is clear which is meant.
async fn only_open(answers: &Answers) -> anyhow::Result<i64> {
    let open = all_open(answers).await?;
    match open[..] {
        [one] => Ok(one),
        [] => anyhow::bail!("nothing waits for a person"),
        _ => {
            let first: Vec<String> = open.iter().take(NAMED_MAX).map(|number| ask_id(*number)).collect();
            let more = open.len().saturating_sub(NAMED_MAX);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            Err(Usage::error(format!("say which: {}{more} wait, and `--everything` is all of them", first.join(", "))))
        }
    }
}

async fn decide_all(answers: &Answers, decide: &Decide, settings: &Settings) -> anyhow::Result<ExitCode> {
    let numbers = if decide.everything {
        all_open(answers).await?
    } else if decide.ids.is_empty() {
        vec![only_open(answers).await?]
    } else {
        decide.ids.iter().map(|id| decide.number(id)).collect::<anyhow::Result<Vec<i64>>>()?
    };
    let said = decide.answer.said()?;
    let terminal = terminal(answers, settings).await;
    let mut code = ExitCode::SUCCESS;
    let mut told = Vec::new();
    let count = numbers.len();
    for (n, number) in numbers.into_iter().enumerate() {
        let place = (count > 1).then_some((n + 1, count));
        match decide_one(answers, decide, said.as_ref(), &terminal, (number, place)).await {
            Ok(Came::Open) => print::aside(format_args!("{} stays open", ask_id(number))),
            Ok(Came::Left) => {
                let left = count - n;
                let verb = if left == 1 { "stays" } else { "stay" };
                print::aside(format_args!("{} {verb} open", print::count(left, "question")));
                break;
            }
            Ok(Came::Decided(ask)) if settings.json => told.push(json!({ "id": ask_id(number), "answer": ask.answer })),
            Ok(Came::Decided(ask)) => {
                print::line(decided(&ask));
                if matches!(ask.kind, AskKind::Approval) {
                    let see = format_args!("what came of it: toolhost review show {}", ask_id(number));
                    print::aside(print::paint(print::DIM, see));
                }
            }
            // What was said wrong is wrong for all of them.
            Err(error) if error.is::<Usage>() => return Err(error),
            Err(error) => {
                code = ExitCode::from(EXIT_FAILED);
                print::failure(&error);
            }
        }
    }
    if settings.json {
        print::json(&told)?;
    }
    Ok(code)
}

/// Asks with the rules of this project. Where its workspace cannot be opened from here, the host that made the call applies them.
async fn terminal(answers: &Answers, settings: &Settings) -> Terminal {
    let rules = wire::kit(settings).await.ok().map(|(kit, _)| {
        let workspace = kit.local.map(|local| local as std::sync::Arc<dyn Executor>);
        EditRules { registry: kit.registry, profiles: kit.profiles, workspace }
    });
    Terminal::new(answers.person.clone(), answers.queue.clone(), rules)
}

/// What came of one of the asks that a person decides.
enum Came {
    Decided(Box<Ask>),
    Open,
    /// The person leaves this one and those behind it open.
    Left,
}

async fn decide_one(
    answers: &Answers,
    decide: &Decide,
    said: Option<&(&'static str, Option<String>)>,
    terminal: &Terminal,
    (number, place): (i64, Option<(usize, usize)>),
) -> anyhow::Result<Came> {
    let (ask, shown) = answers.queue.get(answers.person.project_id, number).await?;
    if let Some(ended) = ended(&ask) {
        anyhow::bail!(ended);
    }
    let decision = match said {
        Some((word, text)) => {
            let text = match text {
                Some(text) if *word == "answer" => Some(shown.chosen(text.clone())?),
                text => text.clone(),
            };
            let answer = shown.answer(word, text)?;
            let decision = Decision { answer, rule: decide.standing(&shown)? };
            terminal.check(&ask, &shown, &decision).await?;
            decision
        }
        None if !terminal::is_there() => {
            let words: Vec<String> = shown.answers().iter().map(|word| format!("--{word}")).collect();
            return Err(Usage::error(format!("say the answer: {}", words.join(", "))));
        }
        None => match terminal.ask(&ask, &shown, place).await {
            Asked::Decided(decision) => decision,
            Asked::Later => return Ok(Came::Open),
            Asked::Leave => return Ok(Came::Left),
        },
    };
    Ok(Came::Decided(Box::new(answers.queue.decide(&answers.person, number, decision, "cli").await?)))
}

/// The project of the watch, as the webhook names it.
fn watched(answers: &Answers, settings: &Settings) -> anyhow::Result<Watched> {
    let project = answers.connection.project();
    let (name, key) = (project.name.clone(), key_of(&settings.resolve()?));
    Ok(Watched { name, key, id: project.id, asks: answers.queue.asks().clone() })
}

async fn watch(answers: &Answers, attention: AttentionFlags, settings: &Settings) -> anyhow::Result<ExitCode> {
    let stop = crate::signals::ended_by_signal();
    let ask_here = terminal::is_there() && !settings.json;
    let terminal = terminal(answers, settings).await.with_keys();
    // While nothing is asked, a key can end the watch.
    let mut idle = if ask_here { SingleKeys::on() } else { None };
    if ask_here {
        print::aside(print::paint(
            print::DIM,
            "waiting for what comes; one key is an answer, ? says which, and q or Ctrl-C ends the watch",
        ));
    }
    // What was shown once and left for later is not shown again.
    let mut last = 0;
    let mut followed = Vec::new();
    loop {
        tell_what_came(answers, &mut followed).await?;
        let page = answers.queue.asks().open_after(answers.person.project_id, last, SHOWN_MAX).await?;
        let waiting = page.asks.len() + usize::try_from(page.more).unwrap_or(0);
        // The watch goes on when a notification fails.
        if let Err(error) = attention.call(&page.asks) {
            print::failure(&error);
        }
        for (n, ask) in page.asks.into_iter().enumerate() {
            last = ask.number;
            if !ask_here {
                print::json_line(&ask)?;
                continue;
            }
            idle = None;
            let (ask, shown) = answers.queue.get(answers.person.project_id, ask.number).await?;
            tell_what_came(answers, &mut followed).await?;
            let place = (waiting > 1).then_some((n + 1, waiting));
            let presented = tokio::select! {
                presented = terminal.ask(&ask, &shown, place) => presented,
                () = until_ended(answers, ask.number) => {
                    let (ask, _) = answers.queue.get(answers.person.project_id, ask.number).await?;
                    print::note(ended(&ask).unwrap_or_default());
                    // A key that was meant for this one must not answer the next.
                    tokio::time::sleep(SWAP_SETTLE).await;
                    continue;
                }
                () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
            };
            if matches!(presented, Asked::Leave) {
                return Ok(ExitCode::SUCCESS);
            }
            if let Asked::Decided(decision) = presented {
                match answers.queue.decide(&answers.person, ask.number, decision, "cli").await {
                    Ok(ask) => {
                        print::note(decided(&ask));
                        followed.push(ask.number);
                    }
                    Err(error) => print::failure(&error.into()),
                }
            }
        }
        if page.more > 0 {
            continue;
        }
        if ask_here && idle.is_none() {
            idle = SingleKeys::on();
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH_EVERY) => {}
            () = terminal.left(), if ask_here => return Ok(ExitCode::SUCCESS),
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// Tells of each answer that was given here what came of it, once.
async fn tell_what_came(answers: &Answers, followed: &mut Vec<i64>) -> anyhow::Result<()> {
    let mut left = Vec::new();
    for number in followed.drain(..) {
        let Some(ask) = answers.queue.asks().get(answers.person.project_id, number).await? else { continue };
        let is_over = matches!(ask.state, AskState::Withdrawn | AskState::Expired);
        match came(&ask) {
            Some(came) => print::aside(format_args!("{}: {came}", ask_id(number))),
            None if is_over => print::aside(format_args!("{}: {}", ask_id(number), ended(&ask).unwrap_or_default())),
            None => left.push(number),
        }
    }
    *followed = left;
    Ok(())
}

/// Returns when the ask is no longer open.
async fn until_ended(answers: &Answers, number: i64) {
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        match answers.queue.asks().get(answers.person.project_id, number).await {
            Ok(Some(ask)) if ask.state == AskState::Open => {}
            _ => return,
        }
    }
}

impl AnswerFlags {
    /// The word that was said, with its text.
    fn said(&self) -> anyhow::Result<Option<(&'static str, Option<String>)>> {
        let flags = [
            ("allow", self.allow, None),
            ("deny", self.deny.is_some(), self.deny.as_ref()),
            ("edit", self.edit.is_some(), self.edit.as_ref()),
            ("pass", self.pass, None),
            ("feedback", self.feedback.is_some(), self.feedback.as_ref()),
            ("cancel", self.cancel, None),
            ("yes", self.yes, None),
            ("no", self.no, None),
            ("answer", self.answer.is_some(), self.answer.as_ref()),
        ];
        let Some((word, _, text)) = flags.into_iter().find(|(_, given, _)| *given) else { return Ok(None) };
        let text = match text.map(String::as_str) {
            Some("-") => {
                let mut text = String::new();
                std::io::stdin().take(TEXT_BYTES_MAX + 1).read_to_string(&mut text).context("standard input")?;
                Some(text)
            }
            text => text.map(str::to_owned),
        };
        Ok(Some((word, text)))
    }
}

impl Decide {
    fn number(&self, id: &str) -> anyhow::Result<i64> {
        match self.answer.deny.as_deref() {
            Some("") if ask_number(id).is_none() => {
                let id = print::visible_line(id);
                Err(Usage::error(format!(
                    "`{id}` is not an id such as ask-7; the comment of --deny stands behind an equals sign: --deny={id:?}"
                )))
            }
            _ => number(id),
        }
    }

    fn standing(&self, shown: &Shown) -> anyhow::Result<Option<Standing>> {
        if !self.rule {
            return Ok(None);
        }
        let conditions = if self.conditions.is_empty() {
            let Some(suggested) = shown.rule.clone() else {
                return Err(Usage::error("no rule is suggested for this; say one with --when ARGUMENT=GLOB"));
            };
            suggested
        } else {
            let pairs = self.conditions.iter().map(|pair| {
                let (name, glob) = pair
                    .split_once('=')
                    .ok_or_else(|| Usage::error(format!("`{}` is not ARGUMENT=GLOB", print::visible_line(pair))))?;
                Ok((name.to_owned(), glob.to_owned()))
            });
            // Everything else stays as it was.
            let mut conditions = shown.rule.clone().unwrap_or_default();
            conditions.extend(pairs.collect::<anyhow::Result<BTreeMap<String, String>>>()?);
            conditions
        };
        let lives_ms =
            self.lives.map_or(PERMIT_LIVES_MS_DEFAULT, |lives| u64::try_from(lives.as_millis()).unwrap_or(u64::MAX));
        Ok(Some(Standing { conditions, lives_ms }))
    }
}

fn number(id: &str) -> anyhow::Result<i64> {
    ask_number(id).ok_or_else(|| Usage::error(format!("`{}` is not an id such as ask-7", print::visible_line(id))))
}
