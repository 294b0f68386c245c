//! Pages of the workbench over a full project: 200,000 records, 10,000 sessions and a million rows of the audit.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::http::{Connection, HttpServer};
use crate::bench::records::Engine;
use crate::bench::rows::{Stage, median_ms};
use crate::bench::table::Measured;
use crate::shell;

const SESSIONS: &str = "10000";
const AUDIT_ROWS: &str = "1000000";
/// How often each page is asked for.
const LOOKS: usize = 15;
/// Pages below a project.
const PAGES: [&str; 26] = [
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
    "files",
    "files?path=a.txt",
    "audit",
    "audit?tool=file.write",
    "audit?all=on",
    "audit?session=as_0000000000000200",
    "policy",
    "models",
    "access",
    "clients",
];

/// The slowest page, as who has signed in waits for it.
pub(crate) fn pages(stage: &Stage) -> Result<Measured> {
    let shelf = stage.shelves.get(Engine::Sqlite, &stage.root, &stage.program, &stage.playground.state("records"))?;
    let (state, root) = shelf.state_and_root();
    std::fs::write(root.join("a.txt"), "one\ntwo\n")?;
    let example = ["--example", "full_project", "--package", "toolhost-testkit"];
    shell::must_run(shell::cargo(&stage.root).args(["build", "--locked"]).args(example))?;
    let filler = shell::target(&stage.root).join("debug/examples/full_project");
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
    let server = HttpServer::serve(1, ours)?;
    let link = shell::stdout_of(ours().args(["login", "--server", &format!("http://{}", server.address())]))?;
    let link: Value = serde_json::from_str(&link).context("the link")?;
    let mut browser = Connection::signed_in(server.address(), link["link"].as_str().context("there is no link")?)?;
    let below = PAGES.iter().map(|page| format!("/projects/{}/{page}", server.project()));
    let all = below.chain(["/".to_owned(), "/search?q=task".to_owned(), "/projects".to_owned()]);
    let mut slowest = 0.0_f64;
    for path in all {
        let times = (0..LOOKS).map(|_| Ok(browser.page(&path)?.1)).collect::<Result<Vec<_>>>()?;
        let took = median_ms(times)?;
        println!("  {took:8.2} ms  {path}");
        slowest = slowest.max(took);
    }
    Ok(Measured { ours: slowest, peer: None })
}
