//! `toolhost audit`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};
use toolhost::Need;
use toolhost_contract::{SystemClock, named, visible_json};
use toolhost_store::{ExportEnd, Filter, People, Project, Reader, Role, Row, Store};

use super::checkpoint::{self, Checkpoint};

use crate::output::Output;
use crate::print::{self, BAD, DIM, GOOD, WARN, paint, visible_line};
use crate::settings::{Resolved, Settings};
use crate::since::{since, unix_ms};
use crate::wire;

/// Most ids in one message.
const NAMED_MAX: usize = 3;

/// Rows read at once for an export.
const EXPORT_PAGE_ROWS: i64 = 1000;

/// How often `follow` looks for new rows.
const FOLLOW_EVERY: Duration = Duration::from_millis(300);

/// Read the audit: what was called, decided and done
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the last rows
    Show(Show),
    /// Show the last rows, then each new one as it is written, until Ctrl-C
    Follow(Follow),
    /// Follow the hash chain and name every row that was changed or is missing
    ///
    /// By itself the chain cannot tell what somebody did who may write the database: a chain that was rebuilt with all its
    /// hashes; what was edited outside it, such as the text of an ask, an older version of a record or what a file held; a
    /// tail that was cut off together with all that later calls left behind. Keep checkpoints or exports of the audit on
    /// another machine, where no agent and no host writes, and compare with --against.
    Verify {
        /// Compare with what was written earlier, an audit export or a checkpoint
        #[arg(long, value_name = "FILE")]
        against: Option<PathBuf>,
        /// Also take an export that was cut off or has no last line `end`, and compare the rows that it still has
        #[arg(long, requires = "against")]
        partial: bool,
    },
    /// Print where the chain ends, signed; keep it elsewhere for `verify --against`
    Checkpoint {
        /// The file, at whose end it is added; standard output otherwise
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Write all rows as JSON Lines
    Export {
        /// The file; standard output otherwise
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct Follow {
    /// How many of the last rows to begin with
    #[arg(long, short = 'n', default_value_t = 10)]
    limit: i64,
    #[command(flatten)]
    only: Only,
}

#[derive(clap::Args)]
struct Only {
    /// Only this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only this session
    #[arg(long)]
    session: Option<String>,
    /// Only what this user, or an agent in their name, has done
    #[arg(long, value_name = "USER")]
    by: Option<String>,
    /// Only calls that failed or whose end is unknown
    #[arg(long)]
    failed: bool,
    /// Only calls that may have changed something, and decisions
    #[arg(long)]
    changes: bool,
}

impl Only {
    /// # Errors
    /// No user has this name, or the database cannot be read.
    async fn filter(self, people: &People) -> anyhow::Result<Filter> {
        let user = match &self.by {
            Some(name) => {
                let unknown = || {
                    anyhow::anyhow!(
                        "no user is called `{}`; `toolhost member list` shows the members",
                        visible_line(name)
                    )
                };
                Some(people.user(name).await?.ok_or_else(unknown)?)
            }
            None => None,
        };
        Ok(Filter {
            tool: self.tool,
            session: self.session,
            user,
            failed_only: self.failed,
            changes_only: self.changes,
            last: true,
            ..Filter::default()
        })
    }
}

#[derive(clap::Args)]
struct Show {
    /// How many rows
    #[arg(long, short = 'n', default_value_t = 50)]
    limit: i64,
    #[command(flatten)]
    only: Only,
    /// Only this call: its id, or the end of it that is shown
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Only rows since then, such as 30m or 2026-11-21T09:00:00Z; a number means minutes
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<SystemTime>,
}

pub(crate) async fn run(args: Args, settings: &Settings) -> anyhow::Result<ExitCode> {
    let resolved = settings.resolve()?;
    let connection = wire::connect(&resolved, Need::Reading).await?;
    connection.need_role(Role::Viewer).await?;
    let (reader, project) = (connection.store().reader(), connection.project());
    let code = match args.command {
        Command::Show(show) => self::show(connection.store(), project.id, show, settings.json).await,
        Command::Follow(follow) => self::follow(connection.store(), project.id, follow, settings.json).await,
        Command::Verify { against, partial } => {
            let former = |path: PathBuf| checkpoint::former(&path, &project.name, &resolved.audit_key, partial);
            let former = against.map(former).transpose();
            match former {
                Ok(former) => verify(&reader, project.id, former, settings.json).await,
                Err(error) => Err(error),
            }
        }
        Command::Checkpoint { output } => checkpoint(&reader, project, &resolved, output).await,
        Command::Export { output } => export(&reader, project.id, output).await,
    };
    wire::close_reading(&connection).await?;
    code
}

async fn show(store: &Store, project: i64, show: Show, json: bool) -> anyhow::Result<ExitCode> {
    let reader = store.reader();
    let call = match &show.call {
        Some(call) => Some(one_call(&reader, project, call).await?),
        None => None,
    };
    let filter = Filter {
        call,
        since_ms: show.since.map(unix_ms),
        limit: show.limit.max(1),
        ..show.only.filter(&store.people()).await?
    };
    for row in reader.audit(project, &filter).await? {
        if json { print::json_line(&row.exported())? } else { print::line(one_line(&row)) }
    }
    Ok(ExitCode::SUCCESS)
}

/// The whole id of a call that a person names by the end of it, as [`one_line`] shows it.
///
/// # Errors
/// No call is named so, or several are.
pub(crate) async fn one_call(reader: &Reader, project: i64, end: &str) -> anyhow::Result<String> {
    let mut calls = reader.calls_that_end_in(project, end).await?;
    let shown = visible_line(end);
    match (calls.pop(), calls.is_empty()) {
        (Some(call), true) => Ok(call),
        (None, _) => anyhow::bail!("there is no call `{shown}`; `toolhost audit show` lists the calls"),
        (Some(call), false) => {
            calls.push(call);
            anyhow::bail!(
                "several calls end in `{shown}`, {} among them: write more of the id",
                named(&calls, NAMED_MAX)
            )
        }
    }
}

/// Prints each row when it is written, until a signal comes or the reader of the output is gone.
async fn follow(store: &Store, project: i64, follow: Follow, json: bool) -> anyhow::Result<ExitCode> {
    let ended = crate::signals::ended_by_signal();
    let reader = store.reader();
    let mut filter = Filter { limit: follow.limit, ..follow.only.filter(&store.people()).await? };
    if follow.limit <= 0 {
        filter = Filter { after_seq: reader.audit_end(project).await?, limit: EXPORT_PAGE_ROWS, last: false, ..filter };
    }
    loop {
        let rows = reader.audit(project, &filter).await?;
        for row in &rows {
            let line = if json { visible_json(&row.exported().to_string()) } else { one_line(row) };
            match print::whole(line) {
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
                printed => printed?,
            }
        }
        let is_full = !filter.last && i64::try_from(rows.len()).is_ok_and(|count| count == filter.limit);
        filter.after_seq = rows.last().map_or(filter.after_seq, |row| row.seq);
        (filter.last, filter.limit) = (false, EXPORT_PAGE_ROWS);
        let pause = if is_full { Duration::ZERO } else { FOLLOW_EVERY };
        tokio::select! {
            () = ended.cancelled() => return Ok(ExitCode::SUCCESS),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Last characters of a call's id, which tell the calls of a page apart.
const ID_CHARS: usize = 6;

fn one_line(row: &Row) -> String {
    let body = row.content();
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let state = match (row.event.as_str(), body.pointer("/outcome/ok").and_then(Value::as_bool)) {
        ("finished", Some(true)) if body.pointer("/outcome/pending").is_some() => paint(WARN, "waits for a person"),
        ("finished", Some(true)) => paint(GOOD, "ok"),
        ("finished", _) => {
            paint(BAD, format_args!("{}: {}", text("/outcome/kind"), print::first_line(text("/outcome/message"))))
        }
        ("unknown", _) => paint(WARN, "unknown: the host ended while it ran"),
        ("decision", _) => paint(
            WARN,
            format_args!(
                "{} says {}",
                visible_line(text("/caller/persona")),
                visible_line(text("/decision/say")).replace('_', " ")
            ),
        ),
        _ => paint(DIM, "started"),
    };
    let exit = body.pointer("/outcome/exitCode").and_then(Value::as_i64).filter(|code| *code != 0);
    let exit = exit.map(|code| format!(" {}", paint(WARN, format_args!("exit {code}")))).unwrap_or_default();
    let took = body.get("durationMs").and_then(Value::as_u64).map(|ms| format!(" {ms} ms")).unwrap_or_default();
    let arguments = match body.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(arguments) => {
            let text = visible_line(&arguments.to_string());
            let short: String = text.chars().take(100).collect();
            format!(" {}", paint(DIM, if short.len() < text.len() { format!("{short}…") } else { short }))
        }
    };
    // Which end belongs to which beginning.
    let id = visible_line(&row.call_id);
    let id = paint(DIM, format_args!("#{}", &id[id.floor_char_boundary(id.len().saturating_sub(ID_CHARS))..]));
    format!(
        "{:>6}  {}  {:<16} {state}{exit}{took} {id}{arguments}",
        row.seq,
        print::local_time(row.at_ms),
        print::tool_name(&row.tool)
    )
}

async fn verify(
    reader: &Reader,
    project: i64,
    former: Option<BTreeMap<i64, String>>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut verdict = reader.verify_audit(project).await?;
    let compared = former.as_ref().map(BTreeMap::len);
    if let Some(former) = former {
        verdict.problems.extend(reader.compare_audit(project, &former).await?);
    }
    let holds = verdict.problems.is_empty();
    if json {
        let problems: Vec<Value> = verdict.problems.iter().map(|p| json!({ "seq": p.seq, "what": p.what })).collect();
        print::json(&json!({ "ok": holds, "rows": verdict.rows, "compared": compared, "problems": problems }))?;
    } else if holds {
        let compared = match compared {
            None => String::new(),
            Some(1) => ", and the row of then is in it".to_owned(),
            Some(count) => format!(", and the {count} rows of then are in it"),
        };
        print::line(format_args!("{} the chain of {} rows holds{compared}", paint(GOOD, "ok"), verdict.rows));
    } else {
        for problem in &verdict.problems {
            print::line(format_args!("{} row {} {}", paint(BAD, "FAIL"), problem.seq, problem.what));
        }
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes a checkpoint only if the chain holds: a checkpoint of a broken chain would make it look sound.
async fn checkpoint(
    reader: &Reader,
    project: &Project,
    resolved: &Resolved,
    output: Option<PathBuf>,
) -> anyhow::Result<ExitCode> {
    let verdict = reader.verify_audit(project.id).await?;
    if let Some(first) = verdict.problems.first() {
        anyhow::bail!("the chain does not hold: row {} {}; `toolhost audit verify` shows all", first.seq, first.what);
    }
    let now = toolhost_contract::Clock::unix_ms(&SystemClock::default());
    let made = Checkpoint::sign(&project.name, verdict.seq, verdict.hash, now, &resolved.audit_key)?;
    match output {
        None => print::json_line(&made)?,
        Some(path) => {
            let unwritable = || format!("{} cannot be written", path.display());
            let mut file = std::fs::OpenOptions::new();
            let mut file = file.create(true).append(true).open(&path).with_context(unwritable)?;
            // In one piece: two that are added at once are two lines.
            file.write_all(format!("{}\n", serde_json::to_string(&made)?).as_bytes()).with_context(unwritable)?;
            file.sync_all().with_context(unwritable)?;
            print::aside(format_args!("a checkpoint of {} rows is at the end of {}", made.rows, path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(reader: &Reader, project: i64, output: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let mut sink = Output::open(output.as_deref())?;
    let mut after_seq = 0;
    let mut end = ExportEnd::default();
    loop {
        let rows = reader.audit(project, &Filter { after_seq, limit: EXPORT_PAGE_ROWS, ..Filter::default() }).await?;
        let Some(last) = rows.last() else { break };
        after_seq = last.seq;
        for row in &rows {
            let line = row.exported().to_string();
            end.add(&line);
            sink.line(&if output.is_none() { print::exported(line) } else { line })?;
        }
    }
    let count = end.rows;
    sink.line(&end.line().to_string())?;
    sink.finish()?;
    if let Some(path) = output {
        print::aside(format_args!("{count} rows written to {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
