//! `toolhost mcp --server`: a client on standard input and output, and a server that runs already.

use serde_json::{Value, json};
use toolhost_testkit::{Era, McpProcess, Program, TempWorkspace, until};

use crate::room::program;
use crate::served::{Served, token};

fn bridge(program: &Program, server: &Served, token: &str) -> Program {
    let url = format!("http://{}/mcp", server.address("address"));
    program.clone().variable("TOOLHOST_SERVER", url).variable("TOOLHOST_TOKEN", token)
}

#[tokio::test]
async fn clients_of_both_protocols_call_tools_of_a_server_through_it() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "from the server");
    let program = program(&workspace);
    let (secret, _) = token(&program, &[]);
    let server = Served::start(&program, &[]);
    for era in [Era::Session, Era::Stateless] {
        let mut client = McpProcess::open(&bridge(&program, &server, &secret), &[], era).await;
        let answer = client.call("file_read", json!({ "path": "a.txt" })).await;
        assert!(answer.to_string().contains("from the server"), "{era:?}: {answer}");
        let missing = client.call("file_read", json!({ "path": "none.txt" })).await;
        assert_eq!(missing["isError"], Value::Bool(true), "{era:?}: {missing}");
    }
    // What only read is written down a moment later.
    until("the calls are in the audit", || program.run(&["--json", "audit", "show"]).stdout.contains("token:tok-"))
        .await;
}

#[tokio::test]
async fn a_server_that_was_restarted_goes_on_with_a_client_that_was_not() {
    let workspace = TempWorkspace::new();
    workspace.write("a.txt", "still here");
    let program = program(&workspace);
    let (secret, _) = token(&program, &[]);
    let server = Served::start(&program, &[]);
    let mut client = McpProcess::open(&bridge(&program, &server, &secret), &[], Era::Session).await;
    assert!(client.call("file_read", json!({ "path": "a.txt" })).await.to_string().contains("still here"));
    let address = server.address("address").to_string();
    assert_eq!(server.end(), Some(0));
    let gone = client.request("tools/call", json!({ "name": "file_read", "arguments": { "path": "a.txt" } })).await;
    assert!(gone["error"]["message"].as_str().unwrap().contains("cannot be reached"), "{gone}");
    let _again = Served::start_at(&program, &address, &[]);
    let answer = client.call("file_read", json!({ "path": "a.txt" })).await;
    assert!(answer.to_string().contains("still here"), "{answer}");
}

#[test]
fn what_is_wrong_with_token_and_address_is_said() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let server = Served::start(&program, &[]);
    let url = format!("http://{}/mcp", server.address("address"));
    let without = program.run(&["mcp", "--server", &url]);
    assert!(without.code == Some(2) && without.stderr.contains("TOOLHOST_TOKEN"), "{without:?}");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\nno json\n";
    let wrong = program.clone().variable("TOOLHOST_TOKEN", format!("thp_{}_{}", "0".repeat(8), "0".repeat(64)));
    let ran = wrong.run_with_input(&["mcp", "--server", &url], ping.as_bytes());
    let said: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |id: Value| said.iter().find(|said| said["id"] == id).unwrap()["error"].clone();
    assert!(of(json!(7))["message"].as_str().unwrap().contains("401"), "{ran:?}");
    assert_eq!(of(Value::Null)["code"], -32700, "{ran:?}");
    let elsewhere = wrong.run(&["mcp", "--server", "http://example.org/mcp"]);
    assert!(elsewhere.code == Some(1) && elsewhere.stderr.contains("https://"), "{elsewhere:?}");
}
