//! Every door reads a package through the gate: the same answer, and a row of the audit for each call.

use serde_json::{Map, Value, json};
use toolhost::execute_semantic_read_tool;
use toolhost_agent::session::Status;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::{FLOW, call, house_with_sample};
use toolhost_testkit::session::{Sitting, script, target};
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::room::program;

const TOOL: &str = "builder.step.read";

fn arguments() -> Map<String, Value> {
    json!({ "workflowId": FLOW, "nodeId": "draft" }).as_object().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_door_reads_a_package_through_the_gate_with_the_same_answer() {
    let house = house_with_sample(&engines().next().unwrap()).await;
    let at_gate = serde_json::to_value(call(&house, TOOL, Value::Object(arguments())).await).unwrap();
    let (gate, project) = (&house.gate, house.project.id);
    let library = execute_semantic_read_tool(gate, 1, project, None, Some("s9"), TOOL, arguments()).await;
    let chat = json!({ "responseType": "chat", "assistantSummary": "Read." }).to_string();
    let turns = json!([{ "calls": [{ "tool": "builder_step_read", "arguments": arguments() }] }, { "text": chat }]);
    let sitting = Sitting::new(&house, "builder");
    let result = sitting.play(&script(&turns), &target(TargetType::Agent, "scout", Mode::Optimize)).await;
    assert_eq!(result.status, Status::Completed, "{result:?}");
    let in_loop: Value = serde_json::from_str(sitting.contents().await[0].1["content"].as_str().unwrap()).unwrap();
    let rows = house.rows().await;
    for (door, answer) in [("library", &library), ("agent", &in_loop)] {
        assert_eq!((&answer["ok"], &answer["data"]), (&json!(true), &at_gate["data"]), "{door}");
        assert_eq!(answer["meta"]["revision"], at_gate["meta"]["revision"], "{door}");
        let row = rows.iter().find(|row| row["callId"] == answer["meta"]["callId"]);
        let row = row.unwrap_or_else(|| unreachable!("no row of a call through {door}"));
        assert_eq!((&row["caller"]["door"], &row["tool"]), (&json!(door), &json!(TOOL)));
        assert_eq!((&row["sessionId"], &row["userId"]), (&answer["meta"]["sessionId"], &json!(1)), "{door}");
    }
    // The doors of the program.
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    for arguments in [&["init"][..], &["package", "import", package.to_str().unwrap()]] {
        assert_eq!(program.run(arguments).code, Some(0));
    }
    let typed = program.run(&["call", TOOL, &Value::Object(arguments()).to_string(), "--json"]).json();
    let mut agent = McpProcess::open(&program, &["--profile", "builder", "--session", "s1"], Era::Session).await;
    let over_mcp = agent.call("builder_step_read", Value::Object(arguments())).await["structuredContent"].clone();
    agent.close().await;
    let shown = program.run(&["audit", "show", "--json"]).stdout;
    let rows: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (door, answer) in [("cli", &typed), ("mcp", &over_mcp)] {
        assert_eq!((&answer["ok"], &answer["data"]), (&json!(true), &at_gate["data"]), "{door}");
        let row = rows.iter().find(|row| row["callId"] == answer["meta"]["callId"]);
        let row = row.unwrap_or_else(|| unreachable!("no row of a call through {door}: {shown}"));
        assert_eq!((&row["caller"]["door"], &row["tool"]), (&json!(door), &json!(TOOL)), "{door}");
    }
}
