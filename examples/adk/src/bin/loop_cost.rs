//! What a step of adk-rust's own loop costs, with a tool in memory and a session in memory: `loop_cost URL STEPS`. Prints
//! one JSON object, for `cargo xtask bench`.

use std::sync::Arc;
use std::time::Instant;

use adk_agent::LlmAgentBuilder;
use adk_core::{Content, Tool, ToolContext, async_trait};
use adk_model::openai::{OpenAIClient, OpenAIConfig};
use adk_runner::Runner;
use adk_session::{CreateRequest, InMemorySessionService, SessionService};
use anyhow::bail;
use futures::StreamExt;
use serde_json::{Value, json};

const APP: &str = "loop-cost";
const USER: &str = "local";

struct Read;

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &str {
        "file_read"
    }

    fn description(&self) -> &str {
        "Reads a file."
    }

    fn parameters_schema(&self) -> Option<Value> {
        Some(json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] }))
    }

    async fn execute(&self, _: Arc<dyn ToolContext>, _: Value) -> adk_core::Result<Value> {
        Ok(json!({ "content": "a short file\n" }))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, steps] = arguments.as_slice() else { bail!("usage: loop_cost URL STEPS") };
    let steps: u32 = steps.parse()?;
    let model = OpenAIClient::new(OpenAIConfig::compatible("of-nobody", url, "mock"))?;
    let agent = LlmAgentBuilder::new("reader").instruction("Read.").model(Arc::new(model)).tool(Arc::new(Read));
    let agent = agent.max_iterations(steps + 2).build()?;
    let sessions = Arc::new(InMemorySessionService::new());
    let session = CreateRequest {
        app_name: APP.to_owned(),
        user_id: USER.to_owned(),
        session_id: None,
        state: Default::default(),
    };
    let session = sessions.create(session).await?.id().to_owned();
    let runner = Runner::builder().app_name(APP).agent(Arc::new(agent)).session_service(sessions).build()?;
    let began = Instant::now();
    let mut events = runner.run_str(USER, &session, Content::new("user").with_text("read")).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    println!("{}", json!({ "msPerStep": began.elapsed().as_secs_f64() * 1000.0 / f64::from(steps) }));
    Ok(())
}
