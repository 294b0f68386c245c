//! Which tools a session on a workflow package has: those for packages, whatever its profile, unless a person says more.

use serde_json::{Value, json};
use toolhost_contract::ErrorCode;
use toolhost_testkit::engines::engines;
use toolhost_testkit::sample::house_with_sample;
use toolhost_testkit::session::{Sitting, script};
use toolhost_testkit::{ModelFormat, ModelServer, Program, TempWorkspace, Turn};

use crate::room::program;

/// The six reads and three writes that the seed freezes.
const FROZEN: [&str; 9] = [
    "builder_agent_read",
    "builder_asset_read",
    "builder_change_discard",
    "builder_change_stage",
    "builder_change_validate",
    "builder_context_get",
    "builder_refs_find",
    "builder_step_read",
    "builder_workflow_read",
];
/// What neither reads nor changes a package: how a set is written, earlier results, questions to people and their answers.
const BESIDE: [&str; 6] =
    ["approval_wait", "builder_schema_read", "human_ask", "review_content", "review_file", "session_result"];

fn chat(summary: &str) -> Turn {
    Turn::text(&json!({ "responseType": "chat", "assistantSummary": summary }).to_string())
}

/// The names of the tools in each request that a server got.
fn offered(server: &ModelServer) -> Vec<Vec<String>> {
    let names = |body: &Value| {
        let tools = body["tools"].as_array().unwrap().iter();
        let mut names: Vec<String> = tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    server.requests().iter().map(|request| names(&request.body)).collect()
}

fn with_package(workspace: &TempWorkspace, server: &ModelServer) -> Program {
    let spec = format!("openai:mock@{}", server.url());
    let config = format!("model = \"{spec}\"\n[models.\"{spec}\"]\nkey = \"MOCK_KEY\"\nwindow = 200000\n");
    workspace.write_beside("operator.toml", &config);
    let program = program(workspace)
        .variable("TOOLHOST_CONFIG", workspace.beside("operator.toml"))
        .variable("MOCK_KEY", ModelServer::KEY);
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research-report");
    for arguments in [&["init"][..], &["package", "import", package.to_str().unwrap()]] {
        let ran = program.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    program
}

/// Rules: 001.33.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_on_a_package_is_offered_the_tools_for_packages_whatever_its_profile() {
    // Of the profile, and whether the program says that another one stands in.
    for (profile, is_replaced) in [(None, false), (Some("all"), false), (Some("developer"), true)] {
        let wants = Turn::call("bash", &json!({ "command": "echo out > out.txt" }))
            .and_call("ticket_create", &json!({ "title": "T" }))
            .and_call("builder_agent_read", &json!({ "agentId": "scout" }));
        let server =
            ModelServer::start(ModelFormat::OpenAi, vec![wants.clone(), chat("Done."), wants, chat("Still done.")])
                .await;
        let workspace = TempWorkspace::new();
        let program = with_package(&workspace, &server);
        let mut arguments = vec!["run", "look", "--target", "agent:scout"];
        arguments.extend(profile.iter().flat_map(|profile| ["--profile", profile]));
        let ran = program.run(&arguments);
        assert_eq!(ran.code, Some(0), "{profile:?}: {ran:?}");
        assert_eq!(ran.stderr.contains("using the profile builder"), is_replaced, "{profile:?}: {ran:?}");
        let id = program.run(&["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        let resumed = program.run(&["session", "resume", &id, "and again"]);
        assert_eq!(resumed.code, Some(0), "{profile:?}: {resumed:?}");
        let offered = offered(&server);
        assert_eq!(offered.len(), 4);
        for names in &offered {
            let frozen = |name: &&String| FROZEN.contains(&name.as_str());
            assert_eq!(names.iter().filter(frozen).count(), FROZEN.len(), "{profile:?}: {names:?}");
            let other = names.iter().filter(|name| !frozen(name));
            assert!(other.clone().all(|name| BESIDE.contains(&name.as_str())), "{profile:?}: {names:?}");
            let needed = ["builder_schema_read", "human_ask", "approval_wait", "session_result"];
            assert!(needed.iter().all(|name| names.iter().any(|known| known == name)), "{profile:?}: {names:?}");
        }
        // Each request begins with all of the one before, also after the session was resumed.
        let requests = server.requests();
        let messages: Vec<&Vec<Value>> =
            requests.iter().map(|request| request.body["messages"].as_array().unwrap()).collect();
        assert!(messages.windows(2).all(|two| two[1].starts_with(two[0])), "{profile:?}");
        // What is not offered is refused, and recorded.
        let shown = program.run(&["session", "show", &id, "--json"]).json();
        let calls =
            shown["steps"].as_array().unwrap().iter().filter(|row| row["step"].as_str().unwrap().starts_with("call_"));
        let codes: Vec<(String, Value)> =
            calls.map(|row| (row["body"]["tool"].as_str().unwrap().to_owned(), row["body"]["code"].clone())).collect();
        assert_eq!(codes.len(), 6);
        for (tool, code) in codes {
            let expected = if tool == "builder.agent.read" { Value::Null } else { json!("AI_TOOL_NOT_ALLOWED") };
            assert_eq!(code, expected, "{profile:?} {tool}");
        }
        assert!(!workspace.has("out.txt"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_may_give_such_a_session_every_tool_of_its_profile() {
    let wants = Turn::call("bash", &json!({ "command": "echo out >> out.txt" }));
    let turns = vec![wants.clone(), chat("Done."), wants, chat("Still done.")];
    let server = ModelServer::start(ModelFormat::OpenAi, turns).await;
    let workspace = TempWorkspace::new();
    let program = with_package(&workspace, &server);
    let ran = program.run(&["run", "look", "--target", "agent:scout", "--profile", "all", "--all-tools"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = program.run(&["session", "list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let resumed = program.run(&["session", "resume", &id, "and again"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(workspace.read("out.txt"), "out\nout\n");
    assert!(offered(&server).iter().all(|names| names.iter().any(|name| name == "bash")));
    assert!(offered(&server).iter().flatten().all(|name| name != "builder_change_apply"), "that stays a person's");
    let alone = program.run(&["run", "look", "--all-tools"]);
    assert!(alone.code == Some(2) && alone.stderr.contains("--target"), "{alone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_names_the_tools_of_its_session_as_the_model_calls_them() {
    let house = house_with_sample(&engines().next().unwrap()).await;
    let sitting = Sitting::new(&house, "all");
    let call = |tool: &str, arguments: Value| json!({ "calls": [{ "tool": tool, "arguments": arguments }] });
    let context = json!({ "targetType": "agent", "targetId": "scout", "mode": "optimize" });
    let chat = json!({ "responseType": "chat", "assistantSummary": "Seen." });
    let model = script(&json!([
        call("tool_list", json!({})),
        call("builder_context_get", context),
        { "text": chat.to_string() },
    ]));
    let target = toolhost_testkit::session::target(
        toolhost_builder::envelope::TargetType::Agent,
        "scout",
        toolhost_builder::envelope::Mode::Optimize,
    );
    let result = sitting.play(&model, &target).await;
    assert_eq!(result.calls[0].code.as_deref(), Some(ErrorCode::ToolNotAllowed.as_str()), "{:?}", result.calls);
    let told = sitting.contents().await;
    let context: Value = serde_json::from_str(told[1].1["content"].as_str().unwrap()).unwrap();
    let mut allowed: Vec<&str> = context["data"]["tool_capabilities"]["allowed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    allowed.sort_unstable();
    let mut expected = [&FROZEN[..], &["builder_schema_read"]].concat();
    expected.sort_unstable();
    assert_eq!(allowed, expected);
}
