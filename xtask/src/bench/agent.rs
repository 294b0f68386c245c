//! What a step of the agent's loop costs, beside the in-memory loop of adk-rust on the same model server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::rows::Stage;
use crate::bench::table::Measured;
use crate::shell;

/// Steps of the loops that take longer.
const PYTHON_STEPS: &str = "50";
/// Sessions that run at once, and the steps of each.
const SESSIONS: &str = "1000";
const CROWD_STEPS: &str = "10";
/// Steps of the session whose first and last are compared.
const LONG: &str = "1000";
/// How often each side runs; the best counts, for both.
const TURNS: usize = 5;
/// How often the long session runs: its two ends are moments of a fraction of a second, which a busy machine may hit.
const LONG_TURNS: usize = 15;

/// Milliseconds a step.
pub(crate) fn steps(stage: &Stage, count: &str) -> Result<Measured> {
    beside(stage, count, "adk-rust, in memory", || stage.peers.adk_loop())
}

/// The same beside a loop of Python's.
pub(crate) fn beside_python(stage: &Stage, name: &'static str) -> Result<Measured> {
    beside(stage, PYTHON_STEPS, name, || stage.peers.python_loop(&stage.root, name))
}

fn beside(stage: &Stage, count: &str, name: &'static str, peer: impl Fn() -> Option<Command>) -> Result<Measured> {
    let ours = stage.loop_cost()?;
    let server = ModelServer::start(&ours, count)?;
    let ms = |command: &mut Command| -> Result<f64> {
        told(command)?["msPerStep"].as_f64().context("it told no `msPerStep`")
    };
    let (mut our_best, mut peer_best) = (f64::INFINITY, None::<f64>);
    for _ in 0..TURNS {
        our_best = our_best.min(ms(Command::new(&ours).args(["steps", &server.url, count]))?);
        if let Some(mut peer) = peer() {
            let took = ms(peer.args([&server.url, count]))?;
            peer_best = Some(peer_best.map_or(took, |best| best.min(took)));
        }
    }
    Ok(Measured { ours: our_best, peer: peer_best.map(|best| (name, best)) })
}

/// Our own part of a step: the last fifty of a long session beside the first fifty.
pub(crate) fn own(stage: &Stage) -> Result<Measured> {
    let program = stage.loop_cost()?;
    let (mut first, mut last) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..LONG_TURNS {
        let told = told(Command::new(&program).args(["own", LONG]))?;
        let ms =
            |field: &str| told[field].as_f64().map(|us| us / 1000.0).with_context(|| format!("it told no `{field}`"));
        (first, last) = (first.min(ms("firstUs")?), last.min(ms("lastUs")?));
    }
    Ok(Measured { ours: last, peer: Some(("its first steps", first)) })
}

/// The worst median of shortening an envelope of 5 MB.
pub(crate) fn trim(stage: &Stage) -> Result<Measured> {
    let told = told(&mut Command::new(stage.trim_cost()?))?;
    Ok(Measured { ours: told["worstMedianMs"].as_f64().context("it told no `worstMedianMs`")?, peer: None })
}

/// Peak memory of a thousand sessions at once.
pub(crate) fn crowd_memory(stage: &Stage) -> Result<Measured> {
    Ok(Measured { ours: crowd(stage)?["peakMiB"].as_f64().context("it told no `peakMiB`")?, peer: None })
}

/// When the last of them ends, beside the one in the middle: nobody starves.
pub(crate) fn crowd_last(stage: &Stage) -> Result<Measured> {
    let told = crowd(stage)?;
    let ms = |field: &str| told[field].as_f64().map(|s| s * 1000.0).with_context(|| format!("it told no `{field}`"));
    Ok(Measured { ours: ms("lastS")?, peer: Some(("the one in the middle", ms("medianS")?)) })
}

fn crowd(stage: &Stage) -> Result<Value> {
    let program = stage.loop_cost()?;
    let server = ModelServer::start(&program, CROWD_STEPS)?;
    told(Command::new(&program).args(["crowd", &server.url, SESSIONS, CROWD_STEPS]))
}

fn told(command: &mut Command) -> Result<Value> {
    let said = shell::stdout_of(command)?;
    let line = said.lines().last().context("it said nothing")?;
    serde_json::from_str(line).with_context(|| format!("it said {line}"))
}

/// The server in a process of its own; it ends with its standard input.
struct ModelServer {
    child: Child,
    url: String,
}

impl ModelServer {
    fn start(program: &std::path::Path, count: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", count]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the model server")?;
        let mut url = String::new();
        let output = child.stdout.take().context("the model server has no output")?;
        BufReader::new(output).read_line(&mut url)?;
        ensure!(url.starts_with("http://"), "the model server says {url:?}");
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Whether it had ended already is all the same.
        let _ = self.child.wait();
    }
}
