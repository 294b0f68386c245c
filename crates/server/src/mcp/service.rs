//! The service behind every MCP transport: lists the profile's tools and puts calls through the gate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    Implementation, InitializeRequestParams, InitializeResult, InputRequiredResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, PromptMessage, PromptsCapability, ReadResourceRequestParams,
    ReadResourceResponse, Reference, ResourcesCapability, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolhost_contract::{Call, Caller, CallerKind, Outcome, Progress, ProgressSink, Session};
use toolhost_host::{Hooks, Pace, Person, Registered};

use super::door::{Door, Listed, Results, takes_hints};
use super::slots::Slot;
use super::{attached, callers, elicit, prompts, render, resources};
use crate::origin;

/// An argument that is the id of a ticket, and the tool that lists them.
const TICKET: &str = "ticketId";
const LISTS_TICKETS: &str = "ticket.list";
/// Tickets of which the ids are looked through.
const TICKETS_MAX: usize = 1000;
/// Tools of one page of `tools/list`.
const PAGE_TOOLS: usize = 100;

/// One door in service.
pub(crate) struct McpService {
    door: Arc<Door>,
    given: Arc<elicit::Given>,
    /// Where the pages of asks are; `None`: there are none.
    pages: Option<elicit::AskPages>,
    /// Whether the client has sent its `initialize`.
    begun: AtomicBool,
    /// Ends when the client of a session has gone.
    closing: Session,
    /// Of whoever calls without a session: all these calls are one session.
    life: Session,
}

impl Drop for McpService {
    /// What a session has in the background ends with it. A request without a session has a service of its own, which ends nothing.
    fn drop(&mut self) {
        if *self.begun.get_mut() {
            self.closing.end();
        }
    }
}

impl McpService {
    /// `given` are the forms that this caller was given, also by the services of its earlier requests.
    pub(crate) fn new(door: Arc<Door>, given: Arc<elicit::Given>, life: Session) -> Result<Self, toolhost_host::Error> {
        door.gate.profile(&door.profile)?;
        let closing = Session::new(life.child_token());
        Ok(Self { door, given, pages: None, begun: AtomicBool::new(false), closing, life })
    }

    /// Sends clients that can open addresses to the pages of asks.
    pub(crate) fn with_pages(mut self, pages: Option<elicit::AskPages>) -> Self {
        self.pages = pages;
        self
    }

    /// With what it ends what goes on in the background, where the transport does not know better.
    fn session(&self) -> &Session {
        if self.has_begun() { &self.closing } else { &self.life }
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> elicit::Client {
        elicit::Client::of(context, self.has_begun())
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

    /// Whether the profile has a tool, by its canonical name.
    fn has(&self, tool: &str) -> bool {
        self.door.gate.profile(&self.door.profile).is_ok_and(|profile| profile.has(tool))
    }

    /// A call of one of the profile's tools that the client has asked for in another way.
    async fn read(&self, tool: &str, arguments: Value) -> Outcome {
        self.door.gate.call(self.call(tool.to_owned(), arguments), self.hooks()).await
    }

    /// What every call from here is made with.
    fn hooks(&self) -> Hooks {
        Hooks { cancel: self.closing.child_token(), names: self.door.names, ..Hooks::default() }
    }

    /// The same for a call that answers this request.
    fn hooks_of(
        &self,
        context: &RequestContext<RoleServer>,
        method: &'static str,
        prompt: Option<&'static str>,
    ) -> Hooks {
        let session = self.door.scope.session_id.as_deref();
        let is_observed = self.door.gate.is_observed();
        let origin = is_observed.then(|| origin::of_request(context, (method, prompt), session));
        Hooks { origin, ..self.hooks() }
    }

    /// Makes a call whose person may be asked in the client: by a form that is sent while the call waits, or by one that is returned in
    /// place of the outcome.
    ///
    /// # Errors
    /// The request brings back a state that its client was not given.
    async fn ask_and_call(
        &self,
        call: Call,
        mut hooks: Hooks,
        returned: &elicit::Returned,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, ErrorData> {
        let client = self.client(context);
        // Forms are decided by whoever speaks for the client; on a page, a person has signed in.
        let forms = if self.door.ask_in_client { client.forms } else { elicit::Forms::None };
        let can_open = client.pages != elicit::Forms::None;
        let pages = self.pages.as_ref().filter(|_| can_open).and_then(|pages| pages.base(context));
        let way = if pages.is_some() { client.pages } else { forms };
        let by = elicit::By { forms: forms != elicit::Forms::None, pages };
        let person = || Person {
            user_id: self.door.scope.user_id,
            project_id: self.door.scope.project_id,
            name: client.approver(&self.door.user),
        };
        let mut heard = elicit::Heard::Nothing;
        match way {
            elicit::Forms::Asked => {
                let queue = self.door.gate.queue().clone();
                let (peer, slot) = (context.peer.clone(), context.extensions.get::<Slot>().cloned());
                hooks.presenter =
                    Some(Arc::new(elicit::Elicitation { queue, by: by.clone(), peer, slot, person: person() }));
            }
            elicit::Forms::Returned => {
                hooks.hold = Some(Duration::ZERO);
                heard = elicit::answer(&self.door, &self.given, &person(), &call, returned).await?;
                if heard == elicit::Heard::Opened {
                    hooks.hold = Some(elicit::PAGE_WAIT);
                }
            }
            elicit::Forms::None => {}
        }
        let cancel = hooks.cancel.clone();
        // The handler of a request is a task of its own already, and polls nothing else but the end of its request.
        let running = self.door.gate.call_here(call, hooks);
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = context.ct.cancelled() => {
                cancel.cancel();
                running.await
            }
        };
        // Whoever has just been asked and did not decide is not asked again at once. Whoever decided may be asked the next question.
        if way == elicit::Forms::Returned
            && !matches!(heard, elicit::Heard::NoDecision | elicit::Heard::Opened)
            && let Some(required) = elicit::required(&self.door, &self.given, (&person(), &by), &outcome).await
        {
            return Ok(Answered::Required(required));
        }
        Ok(Answered::Outcome(Box::new(outcome)))
    }

    /// The values of a tool's argument that begin like this: those that its schema names, or the ids of what there is.
    async fn values(&self, tool: &str, argument: &str, start: &str) -> Vec<String> {
        let gate = &self.door.gate;
        let words = |tool: &Registered| {
            let words = tool.info.input_schema.pointer(&format!("/properties/{argument}/enum"))?.as_array()?.clone();
            Some(words.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let mut values = match gate.registry().get(tool).filter(|_| self.has(tool)).and_then(words) {
            Some(words) => words,
            None if argument == TICKET && self.has(LISTS_TICKETS) => {
                let listed = self.read(LISTS_TICKETS, json!({ "limit": TICKETS_MAX })).await;
                let tickets = listed.data.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                tickets.iter().filter_map(|ticket| ticket.get("id")?.as_str().map(str::to_owned)).collect()
            }
            None => Vec::new(),
        };
        values.retain(|value| value.to_lowercase().starts_with(&start.to_lowercase()));
        values
    }

    /// What the answers to this client hold. A tool that lists the schema of its answers has to keep to it.
    fn holds(&self, context: &RequestContext<RoleServer>) -> Results {
        if self.door.output_schemas {
            return Results::Both;
        }
        self.door.results.unwrap_or_else(|| Results::needed_by(&self.client(context).name))
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

/// How a call ended whose person could be asked in the client.
enum Answered {
    Outcome(Box<Outcome>),
    /// What the client has to bring back with the same request.
    Required(InputRequiredResult),
}

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let mut implementation = Implementation::new("toolhost", self.door.version.clone());
        implementation.title = Some("Toolhost".to_owned());
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        capabilities.resources =
            resources::any(self.door.offers.resources, |tool| self.has(tool)).then(ResourcesCapability::default);
        if !prompts::all(self.door.offers.prompts, |tool| self.has(tool)).is_empty() {
            capabilities.prompts = Some(PromptsCapability::default());
        }
        capabilities.completions = Some(JsonObject::new());
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
        let listed = self.listed(&self.client(&context).name);
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
        // A session over HTTP outlasts this service, which goes while the session rests.
        let held = context.extensions.get::<Session>();
        let cancel = held.unwrap_or(&self.closing).child_token();
        let holds = self.holds(&context);
        let notifier = context.meta.get_progress_token().map(|token| Notifier::new(context.peer.clone(), token));
        let notifier = notifier.map(Arc::new);
        let progress: Arc<dyn ProgressSink> = match &notifier {
            Some(notifier) => Arc::<Notifier>::clone(notifier),
            None => Arc::new(toolhost_contract::Silent),
        };
        let slot = context.extensions.get::<Slot>().cloned();
        let pace = slot.map(|slot| Arc::new(slot) as Arc<dyn Pace>);
        let session = Some(held.unwrap_or_else(|| self.session()).clone());
        let hooks = Hooks { cancel, progress, pace, session, through, ..self.hooks_of(&context, "tools/call", None) };
        let returned = elicit::Returned { state: request.request_state, responses: request.input_responses };
        let call = self.call(request.name.into_owned(), request.arguments.map_or(Value::Null, Value::Object));
        let answered = self.ask_and_call(call, hooks, &returned, &context).await;
        if let Some(notifier) = notifier {
            notifier.sent().await;
        }
        match answered? {
            Answered::Outcome(outcome) => Ok(render::result(*outcome, holds).into()),
            Answered::Required(required) => Ok(required.into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::all(self.door.offers.resources, |tool| self.has(tool))))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let reading = resources::reading(self.door.offers.resources, &request.uri)?;
        let returned = elicit::Returned { state: request.request_state, responses: request.input_responses };
        let call = self.call(reading.tool.to_owned(), reading.arguments.clone());
        let hooks = self.hooks_of(&context, "resources/read", None);
        match self.ask_and_call(call, hooks, &returned, &context).await? {
            Answered::Outcome(outcome) => resources::contents(request.uri, &reading, *outcome).map(Into::into),
            Answered::Required(required) => Ok(required.into()),
        }
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates(self.door.offers.resources, |tool| {
            self.has(tool)
        })))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all(self.door.offers.prompts, |tool| self.has(tool))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompts::get(self.door.offers.prompts, &request.name)?;
        let values = prompt.values(request.arguments)?;
        let returned = elicit::Returned { state: request.request_state, responses: request.input_responses };
        let call = self.call(prompt.reads.to_owned(), prompt.arguments(&values));
        let hooks = self.hooks_of(&context, "prompts/get", Some(prompt.name));
        let outcome = match self.ask_and_call(call, hooks, &returned, &context).await? {
            Answered::Outcome(outcome) => *outcome,
            Answered::Required(required) => return Ok(required.into()),
        };
        let attachments = outcome.attachments.clone();
        let read = resources::text_of(outcome, &json!({ "prompt": request.name }))?;
        let called = |name: &str| {
            let tool = self.door.gate.registry().get(name).filter(|_| self.has(name))?;
            Some(self.door.names.of(tool).to_owned())
        };
        let attached = attachments.into_iter().map(attached::block);
        let text = ContentBlock::text(prompt.text(&values, &read, called));
        let messages = attached.chain([text]).map(|content| PromptMessage::new(Role::User, content)).collect();
        Ok(GetPromptResult::new(messages).with_description(prompt.description).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (ArgumentInfo { name, value, .. }, offers) = (request.argument, self.door.offers);
        let variable = match &request.r#ref {
            Reference::Prompt(prompt) => prompts::variable_of(offers.prompts, &prompt.name, &name),
            Reference::Resource(resource) => {
                resources::variable_of(offers.resources, &resource.uri).filter(|(_, argument)| *argument == name)
            }
            _ => None,
        };
        let mut values = match variable {
            Some((tool, argument)) => self.values(tool, argument, &value).await,
            None => Vec::new(),
        };
        let (total, has_more) = (u32::try_from(values.len()).ok(), values.len() > CompletionInfo::MAX_VALUES);
        values.truncate(CompletionInfo::MAX_VALUES);
        let completion = CompletionInfo::with_pagination(values, total, has_more);
        completion.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    /// Of a request that the protocol's types do not take: its method is unknown here, or its parameters do not fit its method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        // From 2026-07-28 on there is no such method, whatever its parameters are.
        if method == "initialize" && elicit::is_stateless(&context) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let why = match method.as_str() {
            "tools/call" => misfit::<CallToolRequestParams>(&method, params),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                misfit::<PaginatedRequestParams>(&method, params)
            }
            "prompts/get" => misfit::<GetPromptRequestParams>(&method, params),
            "completion/complete" => misfit::<CompleteRequestParams>(&method, params),
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
    queue: Mutex<mpsc::Sender<Note>>,
}

enum Note {
    Progress(Progress),
    /// All before it were sent.
    Sent(oneshot::Sender<()>),
}

/// Progress notes that may wait for a slow client; further ones are dropped.
const NOTES_MAX: usize = 16;
/// How long an answer waits until the notes before it are sent.
const NOTES_WAIT: Duration = Duration::from_secs(1);

impl Notifier {
    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let (queue, mut notes) = mpsc::channel(NOTES_MAX);
        tokio::spawn(async move {
            while let Some(note) = notes.recv().await {
                let note = match note {
                    Note::Progress(note) => note,
                    Note::Sent(told) => {
                        // Whoever waited has waited long enough.
                        let _ = told.send(());
                        continue;
                    }
                };
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

    /// Waits until the notes are sent: over HTTP the answer ends the stream that they go by.
    async fn sent(&self) {
        let (told, sent) = oneshot::channel();
        if self.put(Note::Sent(told)) {
            // A client that does not read gets its answer all the same.
            let _ = tokio::time::timeout(NOTES_WAIT, sent).await;
        }
    }

    fn put(&self, note: Note) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.try_send(note).is_ok()
    }
}

impl ProgressSink for Notifier {
    fn report(&self, progress: Progress) {
        // A client that does not read gets fewer notes.
        self.put(Note::Progress(progress));
    }
}
