//! An agent of adk-rust whose tools are Toolhost's, in one process.
//!
//! ```sh
//! cargo run -- WORKSPACE STATE "what to do"
//! ```
//!
//! The model is that of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL. STATE is the folder of Toolhost's database: never
//! inside the workspace, where the agent could reach it.

use std::process::ExitCode;
use std::sync::Arc;

use adk_agent::LlmAgentBuilder;
use adk_core::{Content, Part};
use adk_model::openai::{OpenAIClient, OpenAIConfig};
use adk_runner::Runner;
use adk_session::{CreateRequest, InMemorySessionService, SessionService};
use anyhow::{Context, bail};
use futures::StreamExt;
use toolhost::Host;
use toolhost::contract::{Caller, CallerKind};
use toolhost_adk::Toolset;

const APP: &str = "toolhost-example";
const USER: &str = "local";
const INSTRUCTION: &str =
    "You work in one workspace, with tools only. Read before you change. Say in the end what you did.";

fn main() -> ExitCode {
    // Commands run in a fence, behind this very program: see `toolhost::fence_helper`.
    if let Some(code) = toolhost::fence_helper(std::env::args_os()) {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workspace, state, goal] = arguments.as_slice() else {
        bail!("usage: toolhost-example-adk WORKSPACE STATE \"what to do\"");
    };
    let host = Host::builder()
        .workspace(workspace)
        .state(state)
        .fence_program(std::env::current_exe()?)
        // What the environment calls a secret is shown to no model and kept in no audit.
        .redact(std::env::vars())
        .open()
        .await?;
    let tools = tools(&host, "developer")?;
    let mut agent = LlmAgentBuilder::new("developer").instruction(INSTRUCTION).model(Arc::new(model()?));
    for tool in tools.tools() {
        agent = agent.tool(tool);
    }
    let sessions = Arc::new(InMemorySessionService::new());
    let session = CreateRequest {
        app_name: APP.to_owned(),
        user_id: USER.to_owned(),
        session_id: None,
        state: Default::default(),
    };
    let session = sessions.create(session).await?.id().to_owned();
    let runner = Runner::builder().app_name(APP).agent(Arc::new(agent.build()?)).session_service(sessions).build()?;
    let mut events = runner.run_str(USER, &session, Content::new("user").with_text(goal)).await?;
    while let Some(event) = events.next().await {
        let Some(content) = event?.llm_response.content else { continue };
        for part in content.parts {
            match part {
                Part::Text { text } => print!("{text}"),
                Part::FunctionCall { name, .. } => eprintln!("[calls {name}]"),
                _ => {}
            }
        }
    }
    println!();
    host.settle().await;
    Ok(host.close().await?)
}

fn model() -> anyhow::Result<OpenAIClient> {
    let set = |name: &str| std::env::var(name).with_context(|| format!("set {name}"));
    let url = std::env::var("OPENAI_BASE_URL").unwrap_or_else(|_| "https://api.openai.com/v1".to_owned());
    let model = std::env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5.1".to_owned());
    Ok(OpenAIClient::new(OpenAIConfig::compatible(set("OPENAI_API_KEY")?, url, model))?)
}

/// The tools of a profile, for the model of this agent.
fn tools(host: &Host, profile: &str) -> anyhow::Result<Toolset> {
    let caller = Caller {
        kind: CallerKind::Model,
        door: "adk".into(),
        profile: profile.to_owned(),
        persona: "adk-rust".to_owned(),
    };
    Ok(Toolset::new(host.gate(), host.scope(None), caller)?)
}
