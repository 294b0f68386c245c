//! What an MCP client of the builder finds beside the tools: the schemas as resources, and how to work on the package.

use serde_json::json;
use toolhost_builder::guide::TOPICS;
use toolhost_testkit::{Era, McpProcess, TempWorkspace};

use crate::room::program;

#[tokio::test(flavor = "multi_thread")]
async fn an_mcp_client_of_the_builder_finds_the_schemas_as_resources_and_others_do_not() {
    for era in [Era::Session, Era::Stateless] {
        let workspace = TempWorkspace::new();
        let program = program(&workspace);
        let mut client = McpProcess::open(&program, &["--profile", "builder"], era).await;
        let listed = client.request("resources/list", json!({})).await;
        let resources = listed["result"]["resources"].as_array().unwrap().clone();
        assert_eq!(resources.len(), TOPICS.len(), "{listed}");
        for resource in &resources {
            let uri = resource["uri"].as_str().unwrap();
            let read = client.request("resources/read", json!({ "uri": uri })).await;
            let contents = &read["result"]["contents"][0];
            assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("text/markdown")), "{read}");
            assert!(contents["text"].as_str().unwrap().contains("## Example: "), "{read}");
        }
        let other = client.request("resources/read", json!({ "uri": "toolhost://builder/schema/menu" })).await;
        assert!(other["error"]["message"].as_str().unwrap().contains("toolhost://builder/schema/step"), "{other}");
        client.close().await;
        let mut client = McpProcess::open(&program, &["--profile", "researcher"], era).await;
        let listed = client.request("resources/list", json!({})).await;
        assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
        let refused = client.request("resources/read", json!({ "uri": "toolhost://builder/schema/step" })).await;
        assert_eq!(refused["error"]["data"]["code"], json!("AI_TOOL_NOT_ALLOWED"), "{refused}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_builder_is_told_how_to_work_on_the_package_with_the_names_it_has() {
    let workspace = TempWorkspace::new();
    let program = program(&workspace);
    let mut client = McpProcess::start(&program, &["--profile", "builder"], Era::Session);
    let told = client.initialize().await["result"]["instructions"].as_str().unwrap().to_owned();
    for word in ["workflow package", "`builder_schema_read`", "`builder_change_stage`", "A person applies"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let listed = client.request("tools/list", json!({})).await;
    let text = listed["result"]["tools"].to_string();
    for name in ["`builder.schema.read`", "`builder.change.validate`", "`tool.describe`"] {
        assert!(!text.contains(name), "{name}");
    }
    assert!(text.contains("`builder_schema_read`") && text.contains("`tool_describe`"), "{text}");
    client.close().await;
}
