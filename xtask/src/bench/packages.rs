//! A package of 10,000 workflows with 50 steps each, on each engine, brought in by `toolhost package import`.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::client::{Client, Server};
use crate::bench::records::{Engine, ThrowawayPostgres, postgres};
use crate::bench::rows::{Stage, median_ms};
use crate::bench::table::Measured;

/// Workflows, and the steps of each.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) workflows: usize,
    pub(crate) steps: usize,
}

const LARGE: Size = Size { workflows: 10_000, steps: 50 };
const AGENTS: usize = 20;
const ASSETS: usize = 100;
/// More than the package has, files and bytes.
const MOST: [&str; 4] = ["--max-files", "1000000", "--max-bytes", "1073741824"];
const CALLS: usize = 40;
/// Calls before the first that counts.
const WARM_UP: usize = 10;
/// Operations of the set that is validated, over so many workflows.
const OPERATIONS: usize = 200;
const CHANGED_WORKFLOWS: usize = 8;

/// The filled databases, made when they are first asked for.
#[derive(Default)]
pub(crate) struct Packages {
    folder: OnceCell<PathBuf>,
    sqlite: OnceCell<Shelf>,
    postgres: OnceCell<Shelf>,
}

struct Shelf {
    folder: PathBuf,
    database: Option<(String, ThrowawayPostgres)>,
}

impl Packages {
    fn server(&self, stage: &Stage, engine: Engine) -> Result<Server> {
        let cell = match engine {
            Engine::Sqlite => &self.sqlite,
            Engine::Postgres => &self.postgres,
        };
        if cell.get().is_none() {
            let package = match self.folder.get() {
                Some(folder) => folder.clone(),
                None => self.folder.get_or_init(|| stage.playground.state("package")).clone(),
            };
            if !package.exists() {
                write_package(&package, LARGE)?;
            }
            let shelf = Shelf::fill(stage, engine, &package)?;
            drop(cell.set(shelf));
        }
        let shelf = cell.get().context("it was filled above")?;
        let server = Server::new("toolhost", &stage.program).arg("mcp").arg("--profile").arg("builder");
        Ok(shelf.place().iter().fold(server.arg("--session").arg("bench"), Server::arg))
    }
}

impl Shelf {
    fn fill(stage: &Stage, engine: Engine, package: &Path) -> Result<Self> {
        let folder = stage.playground.state(&format!("package-{engine:?}").to_lowercase());
        fs::create_dir_all(folder.join("ws"))?;
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(postgres(&stage.root)?),
        };
        let shelf = Self { folder, database };
        let began = Instant::now();
        let mut import = Command::new(&stage.program);
        let output = import.args(shelf.place()).args(["package", "import"]).arg(package).args(MOST).output()?;
        ensure!(output.status.success(), "the import failed: {}", String::from_utf8_lossy(&output.stderr));
        let files = LARGE.workflows * (LARGE.steps + 2) + ASSETS + 2;
        println!("imported {files} files into {engine:?} in {:.1} s", began.elapsed().as_secs_f64());
        Ok(shelf)
    }

    fn place(&self) -> Vec<PathBuf> {
        let mut place = vec!["--root".into(), self.folder.join("ws"), "--state".into(), self.folder.join("state")];
        if let Some((url, _)) = &self.database {
            place.extend(["--database".into(), url.into()]);
        }
        place
    }
}

/// The reads of one workflow and of what is in it.
pub(crate) fn reads(stage: &Stage, engine: Engine) -> Result<Measured> {
    let mut client = Client::start(&stage.packages.server(stage, engine)?)?;
    let calls = |round: usize| {
        let (id, node) = (id(round * 7919 % LARGE.workflows), format!("step-{:02}", round % LARGE.steps));
        [
            ("builder_workflow_read", json!({ "workflowId": id })),
            ("builder_step_read", json!({ "workflowId": id, "nodeId": node })),
            ("builder_agent_read", json!({ "agentId": agent(round) })),
            ("builder_asset_read", json!({ "path": asset(round) })),
            (
                "builder_context_get",
                json!({ "targetType": "step", "targetId": node, "mode": "optimize", "workflowId": id }),
            ),
        ]
    };
    timed(&mut client, calls)
}

/// What refers to an agent, an asset, a workflow and a step.
pub(crate) fn refs(stage: &Stage, engine: Engine) -> Result<Measured> {
    let mut client = Client::start(&stage.packages.server(stage, engine)?)?;
    let by = |kind: &str, value: String| ("builder_refs_find", json!({ "locator": { "type": kind, "value": value } }));
    timed(&mut client, |round| {
        let flow = id(round * 7919 % LARGE.workflows);
        [by("id", agent(round)), by("path", asset(round)), by("id", flow.clone()), by("id", format!("{flow}/step-07"))]
    })
}

/// The five stages over a set of [`OPERATIONS`].
pub(crate) fn validate(stage: &Stage, engine: Engine) -> Result<Measured> {
    let mut client = Client::start(&stage.packages.server(stage, engine)?)?;
    let mut revisions = serde_json::Map::new();
    for workflow in 0..CHANGED_WORKFLOWS {
        let (read, _) = client.call("builder_workflow_read", &json!({ "workflowId": id(workflow) }))?;
        revisions.insert(
            format!("workflow:{}", id(workflow)),
            read["structuredContent"]["data"]["revisions"]["workflowRevision"].clone(),
        );
    }
    let operations: Vec<Value> = (0..OPERATIONS)
        .map(|n| {
            let (workflow, number) = (n % CHANGED_WORKFLOWS, n / CHANGED_WORKFLOWS);
            json!({
                "op": "upsert", "targetType": "step",
                "target": { "workflowId": id(workflow), "nodeId": format!("step-{number:02}") },
                "payload": { "step_markdown": step(workflow, number, LARGE).replace("as well as", "better than") },
            })
        })
        .collect();
    let set = json!({ "changeSet": {
        "schemaVersion": "1.0", "targetType": "step", "mode": "optimize", "operations": operations,
        "extensions": { "baseRevisions": revisions },
    }});
    let (staged, _) = client.call("builder_change_stage", &set)?;
    let id = &staged["structuredContent"]["data"]["changeSetId"];
    let measured = timed(&mut client, |_| [("builder_change_validate", json!({ "changeSetId": id }))]);
    client.call("builder_change_discard", &json!({ "changeSetId": id }))?;
    measured
}

fn timed<const N: usize>(client: &mut Client, calls: impl Fn(usize) -> [(&'static str, Value); N]) -> Result<Measured> {
    let mut times: Vec<Duration> = Vec::new();
    for round in 0..WARM_UP + CALLS {
        for (tool, arguments) in calls(round) {
            let (answer, took) = client.call(tool, &arguments)?;
            ensure!(answer["structuredContent"]["ok"] == true, "{tool} {arguments}: {:.300}", answer.to_string());
            if round >= WARM_UP {
                times.push(took);
            }
        }
    }
    Ok(Measured { ours: median_ms(times)?, peer: None })
}

pub(crate) fn id(workflow: usize) -> String {
    format!("w{workflow:05}")
}

fn agent(number: usize) -> String {
    format!("agent-{}", number % AGENTS)
}

pub(crate) fn asset(number: usize) -> String {
    format!("assets/a{}.md", number % ASSETS)
}

/// A package of this size, below a folder.
pub(crate) fn write_package(root: &Path, size: Size) -> Result<()> {
    fs::create_dir_all(root.join("assets"))?;
    for number in 0..ASSETS {
        fs::write(root.join(asset(number)), format!("# Asset {number}\n"))?;
    }
    let agents: Vec<Value> = (0..AGENTS)
        .map(|number| {
            json!({
                "id": agent(number), "metadata": { "name": "A", "title": "T", "icon": "A" },
                "persona": { "role": "r", "identity": "i", "communication_style": "s", "principles": ["p"] },
            })
        })
        .collect();
    fs::write(root.join("agents.json"), json!({ "schemaVersion": "1.1", "agents": agents }).to_string())?;
    let place = |workflow: usize, file: &str| format!("workflows/{}/{file}", id(workflow));
    let (document, graph) = ("workflow.md", "workflow.graph.json");
    let mut listed = Vec::new();
    for workflow in 0..size.workflows {
        fs::create_dir_all(root.join(place(workflow, "steps")))?;
        for number in 0..size.steps {
            fs::write(root.join(place(workflow, &format!("steps/step-{number:02}.md"))), step(workflow, number, size))?;
        }
        let front = "---\nschemaVersion: \"1.1\"\nworkflowType: w\nstepsCompleted: []\ncurrentNodeId: \"\"\n";
        fs::write(
            root.join(place(workflow, document)),
            format!("{front}variables:\n  v0: begin\n---\n\n# {workflow}\n"),
        )?;
        fs::write(root.join(place(workflow, graph)), graph_of(workflow, size).to_string())?;
        listed.push(
            json!({ "id": id(workflow), "workflow": place(workflow, document), "graph": place(workflow, graph) }),
        );
    }
    let entry = json!({ "workflow": place(0, document), "graph": place(0, graph), "agents": "agents.json" });
    let manifest =
        json!({ "schemaVersion": "1.1", "name": "large", "version": "1.0.0", "entry": entry, "workflows": listed });
    Ok(fs::write(root.join("bmad.json"), manifest.to_string())?)
}

fn kind(number: usize, size: Size) -> &'static str {
    if number == size.steps - 1 { "end" } else { "step" }
}

fn graph_of(workflow: usize, size: Size) -> Value {
    let nodes: Vec<Value> = (0..size.steps)
        .map(|number| {
            json!({
                "id": format!("step-{number:02}"), "type": kind(number, size), "file": format!("steps/step-{number:02}.md"),
                "title": format!("Step {number}"), "agentId": agent(workflow + number),
                "inputs": [format!("v{number}")], "outputs": [format!("v{}", number + 1)],
            })
        })
        .collect();
    let edge = |number: usize| json!({ "from": format!("step-{number:02}"), "to": format!("step-{:02}", number + 1), "label": "on" });
    let edges: Vec<Value> = (0..size.steps - 1).map(edge).collect();
    json!({ "schemaVersion": "1.1", "entryNodeId": "step-00", "nodes": nodes, "edges": edges })
}

fn step(workflow: usize, number: usize, size: Size) -> String {
    let mut text = format!("---\nschemaVersion: \"1.1\"\nnodeId: step-{number:02}\ntype: {}\n", kind(number, size));
    // A text that cannot be written to memory ends the program anyway.
    let _ = write!(
        text,
        "agentId: {}\n---\n\n## Goal\n\nDo step {number} of workflow {workflow} as well as it can be done.\n\n\
         ## Instructions\n\n1. Read what came before.\n2. Follow `{}` and write down what you did, in the words of the \
         trade.\n\n## Completion (Document-as-State)\n\nAdd `step-{number:02}` to `stepsCompleted`.\n",
        agent(workflow + number),
        asset(workflow * 7 + number),
    );
    text
}
