//! The service behind every MCP transport: lists the profile's tools and puts calls through the gate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation,
    InitializeRequestParams, InitializeResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ReadResourceRequestParams, ReadResourceResponse, ResourcesCapability,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Call, Caller, CallerKind, Progress, ProgressSink};
use toolhost_host::{Gate, Hooks, Pace, Person, Registered};

use super::door::{Door, Listed, Results, takes_hints};
use super::slots::Slot;
use super::{callers, elicit, render, resources};

/// Tools of one page of `tools/list`.
const PAGE_TOOLS: usize = 100;

/// One door in service.
pub(crate) struct McpService {
    door: Door,
    given: elicit::Given,
    /// Whether the client has sent its `initialize`.
    begun: AtomicBool,
    /// Cancelled when the client has gone.
    pub(crate) closing: CancellationToken,
}

impl McpService {
    pub(crate) fn new(door: Door) -> Result<Self, toolhost_host::Error> {
        door.gate.profile(&door.profile)?;
        Ok(Self {
            door,
            given: elicit::Given::default(),
            begun: AtomicBool::new(false),
            closing: CancellationToken::new(),
        })
    }

    /// The profile's tools.
    fn tools(&self) -> impl Iterator<Item = &Registered> {
        let profile = self.door.gate.profile(&self.door.profile);
        profile.into_iter().flat_map(|profile| self.door.gate.tools_of(profile))
    }

    /// What the client is told of the tools that it is told of. Made when it asks, which is once.
    fn listed(&self, client: &str) -> Vec<Tool> {
        let door = &self.door;
        let told = |tool: &&Registered| match door.listed {
            Listed::All => tool.is_told(),
            Listed::Core => !tool.is_told() || door.core.contains(&&*tool.info.name),
        };
        let rendered = |tool: &Registered| {
            let mut rendered = render::tool(tool, door);
            if takes_hints(client) {
                rendered.meta = render::loading_hints(tool, door.core);
            }
            rendered
        };
        let mut listed: Vec<Tool> = self.tools().filter(told).map(rendered).collect();
        if door.listed == Listed::Core {
            let search = self.tools().find(|tool| !tool.is_told()).map_or("", |tool| door.names.of(tool));
            listed.extend(callers::all(door.names, search));
        }
        listed
    }

    pub(crate) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.door.gate)
    }

    fn has_resources(&self) -> bool {
        self.tools().any(|tool| tool.info.name == resources::TOOL)
    }

    /// What the answers to this client hold. A tool that lists the schema of its answers has to keep to it.
    fn holds(&self, context: &RequestContext<RoleServer>) -> Results {
        if self.door.output_schemas {
            return Results::Both;
        }
        self.door.results.unwrap_or_else(|| Results::needed_by(&elicit::client_name(context)))
    }

    fn call(&self, tool: String, arguments: Value) -> Call {
        Call {
            id: self.door.ids.call_id(),
            tool,
            arguments,
            scope: self.door.scope.clone(),
            caller: Caller {
                kind: CallerKind::Model,
                door: "mcp".into(),
                profile: self.door.profile.clone(),
                persona: self.door.persona.clone(),
            },
        }
    }
}

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let mut implementation = Implementation::new("toolhost", self.door.version.clone());
        implementation.title = Some("Toolhost".to_owned());
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        capabilities.resources = self.has_resources().then(ResourcesCapability::default);
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.door.instructions.clone())
    }

    /// What a client declares when its session begins holds for the whole session: a later `initialize` changes nothing.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if self.begun.swap(true, Ordering::Relaxed) {
            return Err(ErrorData::invalid_request("this session is initialized already: open another one", None));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listed = self.listed(&elicit::client_name(&context));
        let count = listed.len();
        let first = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .ok()
                .filter(|first| *first <= count)
                .ok_or_else(|| ErrorData::invalid_params("that cursor is not one of tools/list", None))?,
        };
        let page: Vec<Tool> = listed.into_iter().skip(first).take(PAGE_TOOLS).collect();
        let next = first + page.len();
        let mut result = ListToolsResult::with_all_items(page);
        result.next_cursor = (next < count).then(|| next.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (request, through) = match self.door.listed {
            Listed::All => (request, None),
            Listed::Core => callers::unwrapped(request, self.door.names)?,
        };
        let cancel = self.closing.child_token();
        let holds = self.holds(&context);
        let progress: Arc<dyn ProgressSink> = match context.meta.get_progress_token() {
            Some(token) => Arc::new(Notifier::new(context.peer.clone(), token)),
            None => Arc::new(toolhost_contract::Silent),
        };
        let slot = context.extensions.get::<Slot>().cloned();
        let pace = slot.clone().map(|slot| Arc::new(slot) as Arc<dyn Pace>);
        let session = Some(self.closing.clone());
        let names = self.door.names;
        let mut hooks = Hooks { cancel: cancel.clone(), progress, pace, names, session, through, ..Hooks::default() };
        let forms = if self.door.ask_in_client { elicit::Forms::of(&context) } else { elicit::Forms::None };
        let person = || Person {
            user_id: self.door.scope.user_id,
            project_id: self.door.scope.project_id,
            name: elicit::approver(&context, &self.door.user),
        };
        let mut answered = false;
        match forms {
            elicit::Forms::Asked => {
                let queue = self.door.gate.queue().clone();
                let peer = context.peer.clone();
                hooks.presenter = Some(Arc::new(elicit::Elicitation { queue, peer, slot, person: person() }));
            }
            elicit::Forms::Returned => {
                hooks.hold = Some(Duration::ZERO);
                answered = elicit::answer(&self.door, &self.given, &person(), &request).await;
            }
            elicit::Forms::None => {}
        }
        let gate = &self.door.gate;
        let call = self.call(request.name.into_owned(), request.arguments.map_or(Value::Null, Value::Object));
        // The handler of a request is a task of its own already, and polls nothing else but the end of its request.
        let running = gate.call_here(call, hooks);
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = context.ct.cancelled() => {
                cancel.cancel();
                running.await
            }
        };
        // Who has just been asked and did not say is not asked again at once.
        if forms == elicit::Forms::Returned
            && !answered
            && let Some(required) = elicit::required(&self.door, &self.given, &person(), &outcome).await
        {
            return Ok(required.into());
        }
        Ok(render::result(outcome, holds).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(if self.has_resources() { resources::all() } else { Vec::new() }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = self.call(resources::TOOL.to_owned(), resources::arguments(&request.uri)?);
        let hooks = Hooks { cancel: self.closing.child_token(), names: self.door.names, ..Hooks::default() };
        let outcome = self.door.gate.call(call, hooks).await;
        resources::contents(request.uri, outcome).map(Into::into)
    }

    /// Of a request that the protocol's types do not take: its method is unknown here, or its parameters do not fit its method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let why = match method.as_str() {
            "tools/call" => misfit::<CallToolRequestParams>(&method, params),
            "tools/list" | "resources/list" => misfit::<PaginatedRequestParams>(&method, params),
            "resources/read" => misfit::<ReadResourceRequestParams>(&method, params),
            "initialize" => misfit::<InitializeRequestParams>(&method, params),
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        };
        Err(ErrorData::invalid_params(why, None))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let named = |tool: &&Registered| self.door.names.of(tool) == name;
        self.tools().find(named).map(|tool| render::tool(tool, &self.door))
    }
}

/// Characters that are told of why parameters do not fit: the reason may quote them.
const MISFIT_CHARS_MAX: usize = 200;

/// Why parameters are not those of a method.
pub(super) fn misfit<T: DeserializeOwned>(method: &str, params: Option<Value>) -> String {
    let problem: String = match serde_json::from_value::<T>(params.unwrap_or(Value::Null)) {
        Err(error) => error.to_string().chars().take(MISFIT_CHARS_MAX).collect(),
        Ok(_) => "the message is none of the protocol".to_owned(),
    };
    format!("the parameters of `{method}` do not fit: {problem}")
}

/// Sends a call's progress to the client, in order.
struct Notifier {
    queue: Mutex<tokio::sync::mpsc::Sender<Progress>>,
}

/// Progress notes that may wait for a slow client; further ones are dropped.
const NOTES_MAX: usize = 16;

impl Notifier {
    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let (queue, mut notes) = tokio::sync::mpsc::channel::<Progress>(NOTES_MAX);
        tokio::spawn(async move {
            while let Some(note) = notes.recv().await {
                let mut param = ProgressNotificationParam::new(token.clone(), note.done);
                param.total = note.total;
                param.message = Some(note.message);
                if peer.notify_progress(param).await.is_err() {
                    return;
                }
            }
        });
        Self { queue: Mutex::new(queue) }
    }
}

impl ProgressSink for Notifier {
    fn report(&self, progress: Progress) {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that does not read gets fewer notes.
        let _ = queue.try_send(progress);
    }
}
