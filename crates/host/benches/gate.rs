//! The gate alone: what a call costs before and after its tool, audit included.
//!
//! The tool does nothing, so all that is measured is ours: names, profile, schema, limits, policy, digest, rows,
//! redaction, outcome. `cargo bench -p toolhost-host` prints the table.

#![expect(clippy::unwrap_used, reason = "a measurement")]

use divan::Bencher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Runtime;
use toolhost_contract::{Ctx, Example, Facts, Tool, ToolError};
use toolhost_testkit::facts;
use toolhost_testkit::{House, HouseBuilder};

/// Echoes a text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The text.
    text: String,
}

#[derive(Serialize, JsonSchema)]
struct Output {
    text: String,
}

/// One tool that reads and one that writes, so that both kinds of audit row are measured.
struct Echo<const WRITES: bool>;

impl<const WRITES: bool> Tool for Echo<WRITES> {
    type Input = Input;
    type Output = Output;
    const NAME: &'static str = if WRITES { "echo.write" } else { "echo.read" };
    const TITLE: &'static str = "Echo";
    const FACTS: Facts = if WRITES { facts::WRITES } else { facts::READS };

    fn examples(&self) -> Vec<Example> {
        Vec::new()
    }

    fn render(&self, output: &Output) -> String {
        output.text.clone()
    }

    async fn run(&self, _: &Ctx<'_>, input: Input) -> Result<Output, ToolError> {
        Ok(Output { text: input.text })
    }
}

fn main() {
    divan::main();
}

fn house() -> (Runtime, House) {
    let runtime = Runtime::new().unwrap();
    let house = runtime.block_on(HouseBuilder::new(vec![Box::new(Echo::<false>), Box::new(Echo::<true>)]).build());
    (runtime, house)
}

/// Queues its row and goes on.
#[divan::bench(args = [16, 4096, 65536])]
fn read(bencher: Bencher, bytes: usize) {
    let (runtime, house) = house();
    let arguments = json!({"text": "x".repeat(bytes)});
    bencher.bench_local(|| runtime.block_on(house.call("echo.read", arguments.clone())));
}

/// Waits for two commits to the disk.
#[divan::bench(args = [16, 4096])]
fn write(bencher: Bencher, bytes: usize) {
    let (runtime, house) = house();
    let arguments = json!({"text": "x".repeat(bytes)});
    bencher.bench_local(|| runtime.block_on(house.call("echo.write", arguments.clone())));
}

/// Lists every violation.
#[divan::bench]
fn refuse(bencher: Bencher) {
    let (runtime, house) = house();
    let arguments = json!({"txt": 1, "more": []});
    bencher.bench_local(|| runtime.block_on(house.call("echo.read", arguments.clone())));
}
