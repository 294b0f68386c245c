//! An agent of adk-rust whose tools are Toolhost's, in one process.
//!
//! ```sh
//! cargo run -- WORKSPACE STATE "what to do"
//! ```
//!
//! The model is that of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL. STATE is the folder of Toolhost's database: never
//! inside the workspace, where the agent could reach it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use adk_agent::LlmAgentBuilder;
use adk_core::{Content, Part};
use adk_model::openai::{OpenAIClient, OpenAIConfig};
use adk_runner::Runner;
use adk_session::{CreateRequest, InMemorySessionService, SessionService};
use anyhow::{Context, bail};
use futures::StreamExt;
use toolhost_adk::Toolset;
use toolhost_contract::{Caller, CallerKind, Clock, RandomIds, Scope, SystemClock};
use toolhost_host::{Asking, Gate, GateConfig, Limits, Members, Profiles, Queue, Redactor, Registry};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};
use toolhost_store::Store;

const APP: &str = "toolhost-example";
const USER: &str = "local";
const INSTRUCTION: &str =
    "You work in one workspace, with tools only. Read before you change. Say in the end what you did.";

fn main() -> ExitCode {
    // Commands run in a fence, behind this very program: see `toolhost_sandbox::helper`.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == toolhost_sandbox::helper::SUBCOMMAND) {
        return toolhost_sandbox::helper::main(arguments.collect());
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
    let host = Host::open(Path::new(workspace), Path::new(state)).await?;
    let tools = host.tools("developer")?;
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
    host.close().await
}

fn model() -> anyhow::Result<OpenAIClient> {
    let set = |name: &str| std::env::var(name).with_context(|| format!("set {name}"));
    let url = std::env::var("OPENAI_BASE_URL").unwrap_or_else(|_| "https://api.openai.com/v1".to_owned());
    let model = std::env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5.1".to_owned());
    Ok(OpenAIClient::new(OpenAIConfig::compatible(set("OPENAI_API_KEY")?, url, model))?)
}

/// Toolhost without a command line.
struct Host {
    gate: Arc<Gate>,
    store: Store,
    scope: Scope,
}

impl Host {
    async fn open(workspace: &Path, state: &Path) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let root = workspace.canonicalize().with_context(|| format!("the workspace {}", workspace.display()))?;
        let store = Store::open(state, Arc::clone(&clock)).await?;
        let project = store.project(&root, "example", USER).await?;
        let user_id = store.people().user(USER).await?.context("who opens a project is its owner")?;
        let registry = Arc::new(Registry::new(toolhost_tools::all(&store.records()))?);
        let profiles = Profiles::load(&registry, &[], None)?;
        let executor = LocalExecutor::open(LocalConfig {
            root,
            helper: std::env::current_exe()?,
            fence: FenceChoice::Auto,
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            home: PathBuf::from("/home/agent"),
            temp: std::env::temp_dir(),
            guard: state.join("guard"),
            env: Vec::new(),
            toolchains: Vec::new(),
            deploy: None,
            remotes: Vec::new(),
            command_cgroup: None,
            limits: toolhost_sandbox::Limits::default(),
        })?;
        // What the environment calls a secret is shown to no model and kept in no audit.
        let redactor = Arc::new(Redactor::new(std::env::vars()));
        let gate = Gate::new(GateConfig {
            analyzer: Arc::new(toolhost_sandbox::analyze),
            registry,
            profiles: Arc::new(profiles),
            executor: Arc::new(executor),
            audit: store.audit(),
            file_log: store.file_log(),
            queue: Queue::new(store.asks(), store.audit(), store.people(), Arc::clone(&redactor)),
            asking: Asking::default(),
            members: Arc::new(Members::new(store.people(), Arc::clone(&clock))),
            redactor,
            clock,
            ids: Arc::new(RandomIds),
            limits: Limits::default(),
        });
        let scope = Scope { user_id, project_id: project.id, session_id: None, workflow_id: None, ticket_id: None };
        Ok(Self { gate, store, scope })
    }

    fn tools(&self, profile: &str) -> anyhow::Result<Toolset> {
        let caller = Caller {
            kind: CallerKind::Model,
            door: "adk".into(),
            profile: profile.to_owned(),
            persona: "adk-rust".to_owned(),
        };
        Ok(Toolset::new(&self.gate, self.scope.clone(), caller)?)
    }

    async fn close(self) -> anyhow::Result<()> {
        self.gate.settle().await;
        Ok(self.store.close().await?)
    }
}
