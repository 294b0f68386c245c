//! Pages of the workbench over a full project: 200,000 records, 10,000 sessions, a million rows of the audit, and nine open change sets
//! over a workflow of 100 steps.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::client::{Client, Server};
use crate::bench::http::{Connection, HttpServer};
use crate::bench::packages::{self, Size};
use crate::bench::records::Engine;
use crate::bench::rows::{KIB_PER_MIB, Stage, median_ms};
use crate::bench::table::Measured;
use crate::shell;

const SESSIONS: &str = "10000";
const AUDIT_ROWS: &str = "1000000";
/// How often each page is asked for.
const LOOKS: usize = 15;
/// Changes that a page is watched for.
const CHANGES: &str = "100";
/// Pages that listen at once.
const STREAMS: usize = 1000;
/// The package, and its open change sets.
const PACKAGE: Size = Size { workflows: 3, steps: 100 };
const SETS: usize = 9;
/// Pages that are also looked at after each change of what they show.
const CHANGED_PAGES: [&str; 3] = ["builder/changes", "builder/changes/cs-1", "builder/changes/cs-9"];
/// Pages below a project.
const PAGES: [&str; 38] = [
    "sessions",
    "sessions?state=done",
    "sessions/new",
    "sessions/as_0000000000001000",
    "sessions/as_0000000000001000/trace",
    "sessions/as_0000000000001000/replay?step=4",
    "board",
    "plan",
    "plan/tasks",
    "plan/memory",
    "plan/memory?query=kabo",
    "plan/artifacts",
    "plan/iterations",
    "plan/personas",
    "records/TASK-050000",
    "builder",
    "builder/changes",
    "builder/changes/cs-1",
    "builder/changes/cs-9",
    "builder/object?name=asset%3Aassets%2Fa0.md",
    "builder/object?name=workflow%3Aw00000",
    "builder/findings",
    "builder/history",
    "builder/assistant",
    "builder/list?kind=steps",
    "files",
    "files?path=a.txt",
    "files/changes",
    "deploy",
    "audit",
    "audit?tool=file.write",
    "audit?tool=git.push",
    "audit?all=on",
    "audit?session=as_0000000000000200",
    "policy",
    "policy/models",
    "access",
    "access/clients",
];

/// The slowest page, as who has signed in waits for it.
pub(crate) fn pages(stage: &Stage) -> Result<Measured> {
    let shelf = stage.shelves.get(Engine::Sqlite, &stage.root, &stage.program, &stage.playground.state("records"))?;
    let (state, root) = shelf.state_and_root();
    std::fs::write(root.join("a.txt"), "one\ntwo\n")?;
    let filler = built(stage, "full_project")?;
    let root_path = root.canonicalize()?;
    shell::must_run(Command::new(filler).arg(&state).arg(&root_path).args([SESSIONS, AUDIT_ROWS]))?;
    let ours = || {
        let mut command = Command::new(&stage.program);
        shelf.place(|argument| {
            command.arg(argument);
        });
        command.arg("--json");
        command
    };
    let mut assistant = with_package(stage, ours)?;
    for number in 0..SETS {
        stage_set(&mut assistant, number)?;
    }
    let server = HttpServer::serve(1, ours)?;
    let mut browser = Connection::signed_in(server.address(), &link(&server, ours())?)?;
    let below = PAGES.iter().map(|page| format!("/projects/{}/{page}", server.project()));
    let all = below.chain(["/".to_owned(), "/search?q=task".to_owned(), "/projects".to_owned()]);
    let mut slowest = 0.0_f64;
    for path in all {
        let times = (0..LOOKS).map(|_| Ok(browser.page(&path)?.1)).collect::<Result<Vec<_>>>()?;
        let took = median_ms(times)?;
        println!("  {took:8.2} ms  {path}");
        slowest = slowest.max(took);
    }
    for page in CHANGED_PAGES {
        let path = format!("/projects/{}/{page}", server.project());
        let mut times = Vec::new();
        for look in 0..LOOKS {
            stage_set(&mut assistant, SETS + look)?;
            times.push(browser.page(&path)?.1);
        }
        let took = median_ms(times)?;
        println!("  {took:8.2} ms  {path} after each change");
        slowest = slowest.max(took);
    }
    Ok(Measured { ours: slowest, peer: None })
}

/// Brings a workflow package in, and answers an agent that can change it.
fn with_package(stage: &Stage, ours: impl Fn() -> Command) -> Result<Client> {
    let folder = stage.playground.state("package-of-workbench");
    packages::write_package(&folder, PACKAGE)?;
    shell::must_run(ours().args(["package", "import"]).arg(&folder))?;
    let shelf = stage.shelves.get(Engine::Sqlite, &stage.root, &stage.program, &stage.playground.state("records"))?;
    let mut server = Server::new("toolhost", &stage.program).arg("mcp").arg("--profile").arg("builder");
    server = server.arg("--session").arg("bench");
    let mut place = Vec::new();
    shelf.place(|argument| place.push(argument.to_owned()));
    Client::start(&place.iter().fold(server, Server::arg))
}

/// Stages a set: the first [`SETS`] change a workflow and an asset that it refers to, later ones another asset.
fn stage_set(assistant: &mut Client, number: usize) -> Result<()> {
    let path = packages::asset(usize::from(number >= SETS));
    let data = |answer: &Value| answer["structuredContent"]["data"].clone();
    let asset = data(&assistant.call("builder_asset_read", &json!({ "path": path }))?.0);
    let text = format!("{}Line {number} of a set.\n", asset["content"].as_str().context("the asset has no text")?);
    let mut revisions = asset["revisions"].clone();
    let mut operations = vec![json!({
        "op": "upsert", "targetType": "asset", "target": { "path": path }, "payload": { "content": text },
    })];
    if number < SETS {
        let id = packages::id(0);
        let workflow = data(&assistant.call("builder_workflow_read", &json!({ "workflowId": id }))?.0);
        revisions["workflowRevision"] = workflow["revisions"]["workflowRevision"].clone();
        operations.push(json!({
            "op": "upsert", "targetType": "workflow", "target": { "workflowId": id },
            "payload": { "nodes": [{ "id": format!("step-{number:02}"), "title": format!("New title {number}") }] },
        }));
    }
    let set = json!({ "changeSet": {
        "schemaVersion": "1.1", "targetType": "asset", "mode": "optimize", "operations": operations, "revisions": revisions,
    }});
    let (staged, _) = assistant.call("builder_change_stage", &set)?;
    ensure!(staged["structuredContent"]["ok"] == true, "a set was refused: {:.600}", staged.to_string());
    Ok(())
}

/// An example of the test kit.
fn built(stage: &Stage, example: &str) -> Result<PathBuf> {
    let arguments = ["build", "--locked", "--example", example, "--package", "toolhost-testkit"];
    shell::must_run(shell::cargo(&stage.root).args(arguments))?;
    Ok(shell::target(&stage.root).join("debug/examples").join(example))
}

/// A link that signs a browser in.
fn link(server: &HttpServer, mut ours: Command) -> Result<String> {
    let link = shell::stdout_of(ours.args(["login", "--server", &format!("http://{}", server.address())]))?;
    let link: Value = serde_json::from_str(&link).context("the link")?;
    Ok(link["link"].as_str().context("there is no link")?.to_owned())
}

/// A command of ours on a small project.
fn small(stage: &Stage, state: &str) -> Command {
    let mut command = Command::new(&stage.program);
    command.arg("--root").arg(stage.playground.pages()).arg("--state").arg(stage.playground.state(state)).arg("--json");
    command
}

/// From the answer of a call that changes something until an open page of a real browser has it: of a hundred, the ninety-fifth.
pub(crate) fn change(stage: &Stage) -> Result<Measured> {
    let measure = built(stage, "page_latency")?;
    let ours = || small(stage, "page-latency");
    let server = HttpServer::serve(1, ours)?;
    let mut command = Command::new(measure);
    command.args([server.address(), &link(&server, ours())?, server.token()?, server.project(), CHANGES]);
    let mut times: Vec<f64> = serde_json::from_str(&shell::stdout_of(&mut command)?).context("the times")?;
    times.sort_unstable_by(f64::total_cmp);
    let time = *times.get(times.len() * 95 / 100).context("nothing was measured")?;
    Ok(Measured { ours: time, peer: None })
}

/// Memory of a server to which so many open pages listen, beside the same before them.
pub(crate) fn streams(stage: &Stage) -> Result<Measured> {
    let config = stage.playground.state("streams").with_extension("toml");
    std::fs::create_dir_all(config.parent().context("it is below the playground")?)?;
    std::fs::write(&config, format!("[server.limits]\nstreams_of_person = {STREAMS}\n"))?;
    let ours = || {
        let mut command = small(stage, "streams");
        command.arg("--config").arg(&config);
        command
    };
    let server = HttpServer::serve(1, ours)?;
    let mut browser = Connection::signed_in(server.address(), &link(&server, ours())?)?;
    browser.page("/")?;
    let before = server.memory_kib()? as f64 / KIB_PER_MIB;
    let open: Vec<TcpStream> = (0..STREAMS).map(|_| browser.live(server.address())).collect::<Result<_>>()?;
    // Each has been told of a change.
    let mut caller = server.connect(0)?;
    server.call(&mut caller, "file.write", &json!({ "path": "written.txt", "content": "1" }))?;
    for stream in &open {
        let mut lines = BufReader::new(stream).lines();
        lines.find(|line| line.as_ref().map_or(true, |line| line == "event: changed")).context("a stream ended")??;
    }
    let after = server.memory_kib()? as f64 / KIB_PER_MIB;
    Ok(Measured { ours: after, peer: Some(("before", before)) })
}
