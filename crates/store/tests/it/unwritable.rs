//! When the audit cannot be written, nothing that could change something runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use toolhost_contract::{AnyTool, Ctx, Effect, ErrorKind, Facts, Packed, Success, ToolError, ToolInfo};
use toolhost_testkit::facts::READS;
use toolhost_testkit::{House, HouseBuilder, SaysYes};

type Ran<'a> = Pin<Box<dyn Future<Output = Result<Success, ToolError>> + Send + 'a>>;

/// Counts how often it runs.
struct Counts {
    name: &'static str,
    effect: Effect,
    runs: Arc<AtomicU64>,
}

impl AnyTool for Counts {
    fn info(&self) -> ToolInfo {
        let closed = || json!({ "type": "object", "additionalProperties": false });
        ToolInfo {
            name: self.name.into(),
            title: self.name.into(),
            description: "counts".to_owned(),
            facts: Facts { effect: self.effect, ..READS },
            version: 1,
            aliases: Vec::new(),
            other_names: &[],
            called_elsewhere: &[],
            input_schema: closed(),
            output_schema: Packed::new(&closed()),
            examples: Vec::new(),
        }
    }

    fn run<'a>(&'a self, _: &'a Ctx<'a>, _: Value) -> Ran<'a> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(Success {
            data: json!({}),
            text: "ran".to_owned(),
            attachments: Vec::new(),
            revision: None,
            workflow: None,
        })))
    }
}

async fn house() -> (House, Arc<AtomicU64>) {
    let runs = Arc::new(AtomicU64::new(0));
    let tool = |name, effect| -> Box<dyn AnyTool> { Box::new(Counts { name, effect, runs: Arc::clone(&runs) }) };
    let tools = vec![
        tool("count.read", Effect::Reads),
        tool("count.write", Effect::Writes),
        tool("count.run", Effect::Executes),
        tool("count.send", Effect::Reaches),
    ];
    (HouseBuilder::new(tools).person(SaysYes).build().await, runs)
}

/// Runs a statement on the house's own file, as another process would.
async fn alter(house: &House, sql: &'static str) {
    let file = house.workspace.state().join("toolhost.db");
    let mut connection = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
}

const BREAK: &str = "CREATE TRIGGER broken BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'the disk is full'); END";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_recorded_does_not_run() {
    let (house, runs) = house().await;
    alter(&house, BREAK).await;
    for tool in ["count.write", "count.run", "count.send"] {
        let outcome = house.call(tool, json!({})).await;
        let error = outcome.error.clone().unwrap();
        assert_eq!(error.kind, ErrorKind::Internal, "{tool}: {error:?}");
        assert!(!format!("{outcome:?}").contains("the disk is full"), "{outcome:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0, "nothing ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_could_not_be_written_are_written_once_it_is_possible_again() {
    let (house, runs) = house().await;
    alter(&house, BREAK).await;
    let refused = house.call("count.write", json!({})).await;
    let read = house.call("count.read", json!({})).await;
    assert!(read.ok && !refused.ok, "what only reads goes on");
    // The row of the read is tried, and kept.
    assert!(house.store.audit().flush().await.is_err());
    alter(&house, "DROP TRIGGER broken").await;
    let wrote = house.call("count.write", json!({})).await;
    assert!(wrote.ok, "{wrote:?}");
    assert_eq!(house.events_of(&refused).await, ["finished"], "the refusal is told, and that it never started");
    assert_eq!(house.events_of(&read).await, ["finished"]);
    assert_eq!(house.events_of(&wrote).await, ["started", "finished"]);
    assert!(house.verify().await.problems.is_empty());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}
