//! The conformance suite of MCP against our server, in both eras of the protocol. The server is an example of the server crate: the
//! real gate, the real HTTP door and the real MCP service, with tools that answer what the suite expects.
//!
//! Each scored scenario passes or stands in the table of those that cannot apply, with its reason.

mod proxy;
mod table;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::table::{EXEMPT, Verdict};
use crate::{npm, shell};

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
/// How long a run of the suite may take, as `timeout` has it.
const TIME_MAX: &str = "300";
/// What the suite adds to the name of a scenario for the folder of its results: `server-` before it, and the time after it.
const BEFORE: &str = "server-";
const TIME_CHARS: usize = "-2026-07-28T00-00-00-000Z".len();

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where the suite is installed; a relative path begins at the root of the repository
    #[arg(long, value_name = "DIR", default_value = "target/mcp-conformance")]
    folder: PathBuf,
    /// Run only one era of the protocol
    #[arg(long, value_name = "ERA", value_parser = ["2025-11-25", "2026-07-28"])]
    era: Option<String>,
}

/// The checks of each scenario that was run.
type Ran = BTreeMap<String, Vec<Value>>;

pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let folder = root.join(&arguments.folder);
    npm::install(&folder, &[SUITE, npm::NODE])?;
    let server = Server::start(root)?;
    let address = proxy::start(server.address, server.token.clone())?;
    let (mut is_whole, mut summary) = (true, Vec::new());
    for era in ["2025-11-25", "2026-07-28"] {
        if arguments.era.as_ref().is_some_and(|only| only != era) {
            continue;
        }
        let requirements =
            folder.join(format!("node_modules/@modelcontextprotocol/conformance/requirements/{era}.yaml"));
        let requirements = std::fs::read_to_string(&requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let scored = table::scored(&requirements);
        ensure!(!scored.is_empty(), "the suite scores nothing for {era}");
        let ran = run_suite(&folder, era, address)?;
        let (line, is_expected) = show(era, &scored, &ran);
        show_not_scored(&table::not_scored(&requirements), &ran);
        is_whole &= is_expected;
        summary.push(line);
    }
    println!("{}", summary.join("\n"));
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what became of each scored scenario; the count, and whether all of it was expected.
fn show(era: &str, scored: &[String], ran: &Ran) -> (String, bool) {
    let (mut passed, mut cannot, mut is_expected) = (0, 0, true);
    println!("{}", shell::bold(&format!("{:<12}{:<48}result", era, "scenario")));
    for scenario in scored {
        let checks = ran.get(scenario).map(Vec::as_slice);
        let said = match table::verdict(EXEMPT, era, scenario, checks) {
            Verdict::Passed => {
                passed += 1;
                let warned: Vec<&str> = warnings(checks.unwrap_or_default()).collect();
                if warned.is_empty() { "passed".to_owned() } else { format!("passed, warned: {}", warned.join("; ")) }
            }
            Verdict::CannotApply(reason) => {
                cannot += 1;
                let passing = passing(checks.unwrap_or_default());
                format!("cannot apply, {passing} other checks pass: {reason}")
            }
            Verdict::Surprise(what) => {
                is_expected = false;
                format!("SURPRISE: {what}")
            }
        };
        println!("{:<12}{scenario:<48}{said}", "");
    }
    for scenario in table::unknown(EXEMPT, era, scored) {
        is_expected = false;
        println!("{:<12}{scenario:<48}SURPRISE: the table names it, and the suite does not score it", "");
    }
    (format!("{era}: {passed} of {} pass, {cannot} cannot apply", scored.len()), is_expected)
}

/// Prints what became of the scenarios that decide nothing.
fn show_not_scored(scenarios: &[String], ran: &Ran) {
    let passes = |checks: &Vec<Value>| !checks.is_empty() && !checks.iter().any(|check| check["status"] == "FAILURE");
    let (passed, others): (Vec<&str>, Vec<&str>) =
        scenarios.iter().map(String::as_str).partition(|scenario| ran.get(*scenario).is_some_and(passes));
    println!("{:<12}not scored, passed: {}", "", passed.join(", "));
    println!("{:<12}not scored, failed: {}", "", others.join(", "));
}

fn passing(checks: &[Value]) -> usize {
    checks.iter().filter(|check| check["status"] == "SUCCESS").count()
}

/// What the suite would rather see, and does not demand.
fn warnings(checks: &[Value]) -> impl Iterator<Item = &str> {
    let warned = checks.iter().filter(|check| check["status"] == "WARNING");
    warned.map(|check| check["id"].as_str().unwrap_or_default())
}

/// Runs all scenarios of an era.
fn run_suite(folder: &Path, era: &str, address: SocketAddr) -> Result<Ran> {
    let results = tempfile::tempdir_in(folder).context("cannot make a folder")?;
    let mut suite = Command::new("timeout");
    suite.arg(TIME_MAX).arg(folder.join("node_modules/.bin/node"));
    suite.arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    suite.args(["server", "--requirements", era, "--url", &format!("http://{address}/mcp"), "-o"]).arg(results.path());
    // It fails where a scenario fails, also one that cannot apply: what it wrote says more.
    let output = suite.output().context("cannot start the suite")?;
    let mut ran = Ran::new();
    let entries = std::fs::read_dir(results.path())
        .with_context(|| format!("the suite wrote nothing: {}", String::from_utf8_lossy(&output.stderr)))?;
    for entry in entries {
        let entry = entry.context("a folder of results")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let scenario = name.strip_prefix(BEFORE).and_then(|name| name.get(..name.len().checked_sub(TIME_CHARS)?));
        let Some(scenario) = scenario else { continue };
        let checks =
            std::fs::read(entry.path().join("checks.json")).with_context(|| format!("the checks of {name}"))?;
        let checks = serde_json::from_slice(&checks).with_context(|| format!("the checks of {name}"))?;
        ran.insert(scenario.to_owned(), checks);
    }
    Ok(ran)
}

/// The server that the suite is run against. Dropped, it ends.
struct Server {
    child: Child,
    /// It serves until this ends.
    _input: ChildStdin,
    address: SocketAddr,
    token: String,
}

impl Server {
    fn start(root: &Path) -> Result<Self> {
        shell::must_run(shell::cargo(root).args([
            "build",
            "--quiet",
            "--locked",
            "--workspace",
            "--example",
            "conformance",
        ]))?;
        let mut command = Command::new(shell::target(root).join("debug/examples/conformance"));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start the server")?;
        let input = child.stdin.take().context("its input was piped above")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("its output was piped above")?).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))?;
        let address = told["address"].as_str().and_then(|address| address.parse().ok());
        let token = told["token"].as_str().context("the server says no token")?.to_owned();
        Ok(Self { child, _input: input, address: address.context("the server says no address")?, token })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where it has ended before, nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
