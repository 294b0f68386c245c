//! The measurements, one function each. Ours and the peer take turns, so that a busy minute hits both.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::client::{Client, Server};
use crate::bench::http::{Connection, HttpServer};
use crate::bench::http_rows::{self, HttpPeer};
use crate::bench::packages::{self, Packages};
use crate::bench::peers::Peers;
use crate::bench::people;
use crate::bench::playground::{PAGE, Playground, RARE_WORD, TREE_FILES};
use crate::bench::records::{Engine, Shelves, word};
use crate::bench::table::{Budget, Measured, Row, Unit};
use crate::bench::{agent, build, workbench};

/// The fence that is strongest here.
const FULL: &[&str] = &[];

const STARTS: usize = 15;
pub(crate) const READS: usize = 2_000;
pub(crate) const READS_PER_TURN: usize = 250;
const WINDOW: usize = 64;
const WALKS: usize = 30;
const SPAWNS: usize = 60;
const FENCE_ROUNDS: &str = "150";
/// Rounds of calls over records.
const RECORD_CALLS: usize = 40;
/// Calls before the first that counts: caches fill, pools open.
pub(crate) const WARM_UP: usize = 20;
/// A host is idle when it was asked nothing for a second, and has given back what it does not need then.
const IDLE: Duration = Duration::from_secs(2);

/// Connections that read at once.
pub(crate) const HTTP_CONNECTIONS: usize = 16;
const IDLE_SESSIONS: usize = 1_000;
/// By when sessions in which nothing happens rest: after a minute, and looked for every two seconds.
const SESSIONS_SETTLE: Duration = Duration::from_secs(70);
/// Each token may have 64 sessions.
const SESSION_TOKENS: usize = 20;

const BURST: usize = 3_000;
/// By when the memory of a burst has been given back.
const BURST_SETTLE: Duration = Duration::from_secs(5);

const FLOOD: &str = "head -c 10G /dev/zero";
/// As much as a model may ask for, up to this.
const FLOOD_MS_MAX: u64 = 240_000;
pub(crate) const KIB_PER_MIB: f64 = 1024.0;

/// What is measured, against whom, on what.
pub(crate) struct Stage {
    /// Of the repository.
    pub(crate) root: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) peers: Peers,
    pub(crate) playground: Playground,
    pub(crate) shelves: Shelves,
    pub(crate) packages: Packages,
}

impl Stage {
    /// The sandbox's own measurement of its fence, built when it is first asked for.
    fn fence_cost(&self) -> Result<PathBuf> {
        build(&self.root, &["--package", "toolhost-sandbox", "--example", "fence_cost"], "dist/examples/fence_cost")
    }

    /// The agent's own measurement, built when it is first asked for.
    pub(crate) fn loop_cost(&self) -> Result<PathBuf> {
        build(&self.root, &["--package", "toolhost-cli", "--example", "loop_cost"], "dist/examples/loop_cost")
    }

    /// The measurement of its budget.
    pub(crate) fn trim_cost(&self) -> Result<PathBuf> {
        build(&self.root, &["--package", "toolhost-agent", "--example", "trim_cost"], "dist/examples/trim_cost")
    }

    fn ours(&self, root: &Path, flags: &[&str]) -> Server {
        let state = self.playground.state(&flags.join(""));
        let server = Server::new("toolhost", &self.program).arg("mcp").arg("--root").arg(root);
        let server = server.arg("--profile").arg("developer").arg("--state").arg(state);
        flags.iter().fold(server, Server::arg)
    }
}

/// A row before it is measured.
struct Plan {
    what: &'static str,
    unit: Unit,
    budgets: &'static [Budget],
    measure: fn(&Stage) -> Result<Measured>,
}

#[rustfmt::skip]
const PLANS: [Plan; 49] = [
    Plan { what: "start to tools/list", unit: Unit::Milliseconds, measure: start,
        budgets: &[Budget::OursMax(15.0), Budget::RatioMax(0.1)] },
    Plan { what: "file_read 4 KiB, median", unit: Unit::Milliseconds, measure: read,
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "file_read 4 KiB, 64 in flight", unit: Unit::PerSecond, measure: read_pipelined,
        budgets: &[Budget::RatioMin(1.5)] },
    // Over stdio in the same run, by the same program.
    Plan { what: "file_read 4 KiB over HTTP, median", unit: Unit::Milliseconds, measure: read_over_http,
        budgets: &[Budget::AddedMax(0.15)] },
    Plan { what: "file_read 4 KiB over HTTP, 16 connections", unit: Unit::PerSecond, measure: reads_over_http,
        budgets: &[Budget::OursMin(8000.0)] },
    Plan { what: "file_read over HTTP beside mcp-proxy", unit: Unit::Milliseconds, measure: |stage| http_rows::read_beside(stage, HttpPeer::McpProxy),
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "file_read over HTTP beside fastmcp", unit: Unit::Milliseconds, measure: |stage| http_rows::read_beside(stage, HttpPeer::Fastmcp),
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "16 connections over HTTP beside mcp-proxy", unit: Unit::PerSecond, measure: |stage| http_rows::reads_beside(stage, HttpPeer::McpProxy),
        budgets: &[Budget::RatioMin(1.0)] },
    Plan { what: "16 connections over HTTP beside fastmcp", unit: Unit::PerSecond, measure: |stage| http_rows::reads_beside(stage, HttpPeer::Fastmcp),
        budgets: &[Budget::RatioMin(1.0)] },
    Plan { what: "event to a subscriber, 95 of 100, SQLite", unit: Unit::Milliseconds, measure: |stage| http_rows::event(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(50.0)] },
    Plan { what: "event to a subscriber, 95 of 100, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| http_rows::event(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(50.0)] },
    Plan { what: "1,000 idle sessions over HTTP", unit: Unit::Mebibytes, measure: idle_sessions,
        budgets: &[Budget::AddedMax(60.0)] },
    Plan { what: "file_list **/*, 10,000 files, a page", unit: Unit::Milliseconds, measure: list,
        budgets: &[Budget::RatioMax(1.15)] },
    Plan { what: "file_search, 10,000 files", unit: Unit::Milliseconds, measure: search,
        budgets: &[Budget::RatioMax(1.15)] },
    Plan { what: "git_status", unit: Unit::Milliseconds, measure: git_status,
        budgets: &[Budget::AddedMax(10.0)] },
    Plan { what: "fence, full: added to a spawn", unit: Unit::Milliseconds, measure: |stage| fence(stage, "fullUs", "bareUs"),
        budgets: &[Budget::AddedMax(8.0)] },
    Plan { what: "Landlock + seccomp alone", unit: Unit::Milliseconds, measure: |stage| fence(stage, "enforcedUs", "helperUs"),
        budgets: &[Budget::AddedMax(1.0)] },
    // The whole Landlock tier besides: helper, user, private folder, supervisor.
    Plan { what: "fence, Landlock tier", unit: Unit::Milliseconds, measure: |stage| fence(stage, "landlockUs", "bareUs"),
        budgets: &[] },
    // What a caller waits for: gate and audit included, two commits to the disk among them.
    Plan { what: "bash true, through the gate", unit: Unit::Milliseconds, measure: |stage| bash(stage, FULL),
        budgets: &[] },
    Plan { what: "task_ready, 100,000 tasks, SQLite", unit: Unit::Milliseconds, measure: |stage| task_ready(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "task_list of one state, SQLite", unit: Unit::Milliseconds, measure: |stage| task_list(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "memory_query, 100,000 memories, SQLite", unit: Unit::Milliseconds, measure: |stage| memory_query(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "cycle check, 500,000 edges, SQLite", unit: Unit::Milliseconds, measure: |stage| cycle_check(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(300.0)] },
    Plan { what: "task_ready, 100,000 tasks, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| task_ready(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "task_list of one state, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| task_list(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "memory_query, 100,000 memories, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| memory_query(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "cycle check, 500,000 edges, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| cycle_check(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(300.0)] },
    Plan { what: "builder reads, 10,000 workflows, SQLite", unit: Unit::Milliseconds, measure: |stage| packages::reads(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "builder_refs_find, SQLite", unit: Unit::Milliseconds, measure: |stage| packages::refs(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(20.0)] },
    Plan { what: "builder_change_validate, 200 operations, SQLite", unit: Unit::Milliseconds, measure: |stage| packages::validate(stage, Engine::Sqlite),
        budgets: &[Budget::OursMax(100.0)] },
    Plan { what: "builder reads, 10,000 workflows, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| packages::reads(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(5.0)] },
    Plan { what: "builder_refs_find, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| packages::refs(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(20.0)] },
    Plan { what: "builder_change_validate, 200 operations, PostgreSQL", unit: Unit::Milliseconds, measure: |stage| packages::validate(stage, Engine::Postgres),
        budgets: &[Budget::OursMax(100.0)] },
    Plan { what: "file_write that a person allows", unit: Unit::Milliseconds, measure: people::approval,
        budgets: &[Budget::AddedMax(2.0)] },
    Plan { what: "deploy of 50,000 files", unit: Unit::Milliseconds, measure: people::deploy,
        budgets: &[Budget::RatioMax(2.0)] },
    Plan { what: "agent: a step of 50", unit: Unit::Milliseconds, measure: |stage| agent::steps(stage, "50"),
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "agent: a step of 300", unit: Unit::Milliseconds, measure: |stage| agent::steps(stage, "300"),
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "agent: beside openai-agents", unit: Unit::Milliseconds, measure: |stage| agent::beside_python(stage, "openai-agents"),
        budgets: &[Budget::RatioMax(1.0)] },
    Plan { what: "agent: beside pydantic-ai", unit: Unit::Milliseconds, measure: |stage| agent::beside_python(stage, "pydantic-ai"),
        budgets: &[Budget::RatioMax(1.0)] },
    // What grows by a tenth in twenty times the steps is noise of the machine's.
    Plan { what: "agent: our own part of the 1,000th step", unit: Unit::Milliseconds, measure: agent::own,
        budgets: &[Budget::RatioMax(1.3)] },
    Plan { what: "agent: 1,000 sessions at once", unit: Unit::Mebibytes, measure: agent::crowd_memory,
        budgets: &[Budget::OursMax(300.0)] },
    Plan { what: "agent: the last of 1,000 sessions", unit: Unit::Milliseconds, measure: agent::crowd_last,
        budgets: &[Budget::RatioMax(2.0)] },
    Plan { what: "agent: trimming 5 MB", unit: Unit::Milliseconds, measure: agent::trim,
        budgets: &[Budget::OursMax(100.0)] },
    Plan { what: "workbench: the slowest page of a full project", unit: Unit::Milliseconds, measure: workbench::pages,
        budgets: &[Budget::OursMax(30.0)] },
    Plan { what: "workbench: a change on an open page, 95 of 100", unit: Unit::Milliseconds, measure: workbench::change,
        budgets: &[Budget::OursMax(250.0)] },
    Plan { what: "workbench: 1,000 open pages", unit: Unit::Mebibytes, measure: workbench::streams,
        budgets: &[Budget::AddedMax(64.0)] },
    Plan { what: "idle memory", unit: Unit::Mebibytes, measure: idle_memory,
        budgets: &[Budget::OursMax(25.0)] },
    Plan { what: "memory 5 s after 3,000 reads at once", unit: Unit::Mebibytes, measure: burst_memory,
        budgets: &[Budget::RatioMax(1.5)] },
    Plan { what: "memory for 10 GB of output", unit: Unit::Mebibytes, measure: flood_memory,
        budgets: &[Budget::OursMax(16.0)] },
];

/// Measures every row whose name has `only` in it. A row that fails says so in the table; the others still count.
pub(crate) fn measure(stage: &Stage, only: &str) -> Vec<Row> {
    let plans = PLANS.iter().filter(|plan| plan.what.contains(only));
    plans
        .map(|plan| {
            println!("measuring {} ...", plan.what);
            let measured = (plan.measure)(stage).map_err(|error| format!("{error:#}"));
            Row { what: plan.what, unit: plan.unit, budgets: plan.budgets, measured }
        })
        .collect()
}

fn start(stage: &Stage) -> Result<Measured> {
    let root = stage.playground.pages();
    let ours = stage.ours(&root, FULL);
    let peer = stage.peers.node_server(&root);
    let ready = |server: &Server| Client::start(server).map(|client| client.ready_after);
    // The first start makes the database; what a person meets every day is the others.
    ready(&ours)?;
    take_turns(STARTS, || ready(&ours), peer.map(|peer| (peer.name, move || ready(&peer))))
}

fn read(stage: &Stage) -> Result<Measured> {
    let mut ours = Reader::ours(stage)?;
    let mut peer = Reader::peer(stage)?;
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..READS / READS_PER_TURN {
        for _ in 0..READS_PER_TURN {
            our_times.push(ours.read()?);
        }
        if let Some(peer) = &mut peer {
            for _ in 0..READS_PER_TURN {
                peer_times.push(peer.read()?);
            }
        }
    }
    Ok(Measured {
        ours: median_ms(our_times)?,
        peer: peer.map(|peer| Ok::<_, anyhow::Error>((peer.name, median_ms(peer_times)?))).transpose()?,
    })
}

/// Ours over HTTP beside ours over standard input and output.
fn read_over_http(stage: &Stage) -> Result<Measured> {
    let server = HttpServer::start(stage, 1)?;
    let mut over_http = server.connect(0)?;
    let mut over_stdio = Reader::ours(stage)?;
    for _ in 0..WARM_UP {
        over_http.read(PAGE)?;
    }
    let (mut http_times, mut stdio_times) = (Vec::new(), Vec::new());
    for _ in 0..READS / READS_PER_TURN {
        for _ in 0..READS_PER_TURN {
            http_times.push(over_http.read(PAGE)?);
        }
        for _ in 0..READS_PER_TURN {
            stdio_times.push(over_stdio.read()?);
        }
    }
    Ok(Measured { ours: median_ms(http_times)?, peer: Some(("over stdio", median_ms(stdio_times)?)) })
}

pub(crate) fn reads_over_http(stage: &Stage) -> Result<Measured> {
    let server = HttpServer::start(stage, 1)?;
    let mut connections = (0..HTTP_CONNECTIONS).map(|_| server.connect(0)).collect::<Result<Vec<_>>>()?;
    for connection in &mut connections {
        connection.read(PAGE)?;
    }
    let began = Instant::now();
    let reading = |mut connection: Connection| move || (0..READS).try_for_each(|_| connection.read(PAGE).map(drop));
    let threads: Vec<_> = connections.into_iter().map(|connection| thread::spawn(reading(connection))).collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    let count = (HTTP_CONNECTIONS * READS) as f64;
    Ok(Measured { ours: count / began.elapsed().as_secs_f64(), peer: None })
}

/// Resident memory with 1,000 sessions that were opened and left for a minute, beside what it was before.
fn idle_sessions(stage: &Stage) -> Result<Measured> {
    let server = HttpServer::start(stage, SESSION_TOKENS)?;
    let mut connections = (0..SESSION_TOKENS).map(|token| server.connect(token)).collect::<Result<Vec<_>>>()?;
    for connection in &mut connections {
        connection.read(PAGE)?;
    }
    let before = server.memory_kib()? as f64 / KIB_PER_MIB;
    for number in 0..IDLE_SESSIONS {
        connections[number % SESSION_TOKENS].open_session()?;
    }
    let fresh = server.memory_kib()? as f64 / KIB_PER_MIB;
    println!("{fresh:10.1} MiB  before they rest");
    std::thread::sleep(SESSIONS_SETTLE);
    let after = server.memory_kib()? as f64 / KIB_PER_MIB;
    Ok(Measured { ours: after, peer: Some(("before", before)) })
}

fn read_pipelined(stage: &Stage) -> Result<Measured> {
    let mut ours = Reader::ours(stage)?;
    let mut peer = Reader::peer(stage)?;
    let name = peer.as_ref().map(|peer| peer.name);
    let times = take_turns(3, || ours.read_pipelined(), name.zip(peer.as_mut().map(|peer| || peer.read_pipelined())))?;
    let per_second = |ms: f64| READS as f64 / ms * 1000.0;
    Ok(Measured { ours: per_second(times.ours), peer: times.peer.map(|(name, ms)| (name, per_second(ms))) })
}

fn list(stage: &Stage) -> Result<Measured> {
    let root = stage.playground.tree();
    let mut client = Client::start(&stage.ours(&root, FULL))?;
    // As many as one page holds; the walk is over all of them either way.
    let limit = client.maximum_of("file_list", "limit").map_or(TREE_FILES as u64, |max| max.min(TREE_FILES as u64));
    let arguments = json!({"path": ".", "pattern": "**/*", "recursive": true, "limit": limit});
    let peer = stage.peers.ripgrep(&root, &["--files"]).map(|mut rg| ("rg --files", move || spawn(&mut rg)));
    take_turns(WALKS, || Ok(client.call("file_list", &arguments)?.1), peer)
}

fn search(stage: &Stage) -> Result<Measured> {
    let root = stage.playground.tree();
    let mut client = Client::start(&stage.ours(&root, FULL))?;
    let arguments = json!({"pattern": RARE_WORD});
    let (found, _) = client.call("file_search", &arguments)?;
    ensure!(found.to_string().contains(RARE_WORD), "file_search did not find `{RARE_WORD}`");
    let peer = stage.peers.ripgrep(&root, &["--line-number", RARE_WORD]).map(|mut rg| ("rg", move || spawn(&mut rg)));
    take_turns(WALKS, || Ok(client.call("file_search", &arguments)?.1), peer)
}

fn git_status(stage: &Stage) -> Result<Measured> {
    let root = stage.playground.repository();
    let mut client = Client::start(&stage.ours(&root, FULL))?;
    let mut git = Command::new("git");
    git.args(["status", "--porcelain"]).current_dir(&root);
    take_turns(WALKS, || Ok(client.call("git_status", &json!({}))?.1), Some(("git status", || spawn(&mut git))))
}

fn bash(stage: &Stage, flags: &[&str]) -> Result<Measured> {
    let mut client = Client::start(&stage.ours(&stage.playground.pages(), flags))?;
    let mut bare = Command::new("bash");
    bare.args(["-c", "true"]);
    take_turns(SPAWNS, || run(&mut client, &json!({"command": "true"})), Some(("bare spawn", || spawn(&mut bare))))
}

/// The executor by itself, without gate and audit, beside the bare spawn that it is compared with.
fn fence(stage: &Stage, ours: &str, peer: &str) -> Result<Measured> {
    // As a host does: the small program, where it is there.
    let beside = stage.program.with_file_name("toolhost-fence");
    let helper = if beside.exists() { &beside } else { &stage.program };
    let output = Command::new(stage.fence_cost()?).arg(helper).arg(FENCE_ROUNDS).output()?;
    ensure!(output.status.success(), "fence_cost failed: {}", String::from_utf8_lossy(&output.stderr));
    let medians: Value = serde_json::from_slice(&output.stdout)?;
    let ms =
        |name: &str| medians[name].as_f64().map(|us| us / 1000.0).with_context(|| format!("fence_cost gave no {name}"));
    let name = if peer == "bareUs" { "bare spawn" } else { "helper without" };
    Ok(Measured { ours: ms(ours)?, peer: Some((name, ms(peer)?)) })
}

fn task_ready(stage: &Stage, engine: Engine) -> Result<Measured> {
    let calls = vec![("task_ready", json!({"limit": 20}), "/items/0/id")];
    of_records(stage, engine, RECORD_CALLS, &calls)
}

fn task_list(stage: &Stage, engine: Engine) -> Result<Measured> {
    let calls = vec![("task_list", json!({"status": "pending", "limit": 20}), "/items/0/id")];
    of_records(stage, engine, RECORD_CALLS, &calls)
}

/// Rare words, frequent ones, both together, misspelt ones, and none.
fn memory_query(stage: &Stage, engine: Engine) -> Result<Measured> {
    let mut calls = Vec::new();
    for n in [3, 40, 500, 2000, 3000] {
        let misspelt: String = word(n).replacen('o', "", 1);
        for keywords in [vec![word(n)], vec![word(n), word(1), word(2)], vec![misspelt, word(n + 7)]] {
            calls.push(("memory_query", json!({ "keywords": keywords }), "/items/0/id"));
        }
    }
    calls.push(("memory_query", json!({}), "/items/0/id"));
    of_records(stage, engine, RECORD_CALLS, &calls)
}

fn cycle_check(stage: &Stage, engine: Engine) -> Result<Measured> {
    let calls = vec![("check_task_dependencies", json!({"limit": 10}), "/order/0")];
    of_records(stage, engine, 15, &calls)
}

/// The calls by turns; each must answer with something at its pointer.
fn of_records(stage: &Stage, engine: Engine, rounds: usize, calls: &[(&str, Value, &str)]) -> Result<Measured> {
    let folder = stage.playground.state("records");
    let shelf = stage.shelves.get(engine, &stage.root, &stage.program, &folder)?;
    let mut client = Client::start(&shelf.server(&stage.program))?;
    let mut times = Vec::new();
    for round in 0..rounds + 2 {
        for (tool, arguments, pointer) in calls {
            let (result, took) = client.call(tool, arguments)?;
            let found = result["structuredContent"]["data"].pointer(pointer);
            ensure!(found.is_some(), "{tool} {arguments} found nothing: {:.300}", result.to_string());
            // The first ones fill the caches.
            if round >= 2 {
                times.push(took);
            }
        }
    }
    Ok(Measured { ours: median_ms(times)?, peer: None })
}

fn idle_memory(stage: &Stage) -> Result<Measured> {
    let client = Client::start(&stage.ours(&stage.playground.pages(), FULL))?;
    thread::sleep(IDLE);
    Ok(Measured { ours: client.memory_kib("VmRSS")? as f64 / KIB_PER_MIB, peer: None })
}

/// Resident memory a while after a client has sent 3,000 reads without waiting for any, beside what it was before.
fn burst_memory(stage: &Stage) -> Result<Measured> {
    let mut reader = Reader::ours(stage)?;
    thread::sleep(IDLE);
    let before = reader.client.memory_kib("VmRSS")? as f64 / KIB_PER_MIB;
    reader.client.pipeline(reader.tool, &reader.arguments, BURST, BURST)?;
    thread::sleep(BURST_SETTLE);
    let after = reader.client.memory_kib("VmRSS")? as f64 / KIB_PER_MIB;
    Ok(Measured { ours: after, peer: Some(("before the burst", before)) })
}

/// By how much the highest point ever reached has risen.
fn flood_memory(stage: &Stage) -> Result<Measured> {
    let mut client = Client::start(&stage.ours(&stage.playground.pages(), FULL))?;
    run(&mut client, &json!({"command": "true"}))?;
    let before = client.memory_kib("VmHWM")?;
    let timeout = client.maximum_of("bash", "timeoutMs").map_or(FLOOD_MS_MAX, |max| max.min(FLOOD_MS_MAX));
    run(&mut client, &json!({"command": FLOOD, "timeoutMs": timeout}))?;
    let after = client.memory_kib("VmHWM")?;
    Ok(Measured { ours: (after - before) as f64 / KIB_PER_MIB, peer: None })
}

/// A connection on which the page is read.
struct Reader {
    name: &'static str,
    client: Client,
    tool: &'static str,
    arguments: Value,
}

impl Reader {
    fn ours(stage: &Stage) -> Result<Self> {
        let server = stage.ours(&stage.playground.pages(), FULL);
        Self::start(&server, "file_read", json!({"path": PAGE}))
    }

    fn peer(stage: &Stage) -> Result<Option<Self>> {
        let server = stage.peers.rust_server(&stage.playground.pages());
        let page = json!({"path": stage.playground.page()});
        server.map(|server| Self::start(&server, "read_text_file", page)).transpose()
    }

    fn start(server: &Server, tool: &'static str, arguments: Value) -> Result<Self> {
        let mut reader = Self { name: server.name, client: Client::start(server)?, tool, arguments };
        for _ in 0..WARM_UP {
            reader.read()?;
        }
        Ok(reader)
    }

    fn read(&mut self) -> Result<Duration> {
        Ok(self.client.call(self.tool, &self.arguments)?.1)
    }

    fn read_pipelined(&mut self) -> Result<Duration> {
        self.client.pipeline(self.tool, &self.arguments, READS, WINDOW)
    }
}

/// Runs a command through our server; one that failed or ran out of time measures nothing.
fn run(client: &mut Client, arguments: &Value) -> Result<Duration> {
    let (result, took) = client.call("bash", arguments)?;
    let data = &result["structuredContent"]["data"];
    ensure!(data["exitCode"] == 0, "`{}` did not end with 0: {data:.300}", arguments["command"]);
    Ok(took)
}

/// Runs a program by itself and takes all it prints, as somebody who calls it would.
pub(crate) fn spawn(command: &mut Command) -> Result<Duration> {
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().context("cannot start the peer")?;
    let took = began.elapsed();
    ensure!(output.status.success(), "the peer failed with {}", output.status);
    Ok(took)
}

/// Measures both sides in turns and takes the medians, in milliseconds.
pub(crate) fn take_turns(
    turns: usize,
    mut ours: impl FnMut() -> Result<Duration>,
    mut peer: Option<(&'static str, impl FnMut() -> Result<Duration>)>,
) -> Result<Measured> {
    let (mut our_times, mut peer_times) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        our_times.push(ours()?);
        if let Some((_, peer)) = &mut peer {
            peer_times.push(peer()?);
        }
    }
    let peer = peer.map(|(name, _)| Ok::<_, anyhow::Error>((name, median_ms(peer_times)?))).transpose()?;
    Ok(Measured { ours: median_ms(our_times)?, peer })
}

pub(crate) fn median_ms(mut times: Vec<Duration>) -> Result<f64> {
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("nothing was measured")?;
    Ok(median.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::{PLANS, median_ms};
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn every_row_has_its_own_name() {
        let names: BTreeSet<_> = PLANS.iter().map(|plan| plan.what).collect();
        assert_eq!(names.len(), PLANS.len());
    }

    #[test]
    fn the_median_ignores_one_slow_call() {
        let times = [1, 900, 2].map(Duration::from_millis).to_vec();
        assert!((median_ms(times).expect("there are times") - 2.0).abs() < 1e-9);
        assert!(median_ms(Vec::new()).is_err());
    }
}
