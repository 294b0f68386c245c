//! Asking the person at the client: by a form that the server sends (up to MCP 2025-11-25), or that it returns and the
//! client brings back filled in with the same call (from 2026-07-28). Where the client can open addresses, an ask with a preview
//! is asked by its page: the address has no secret in it, and the page needs the person's own login.
//!
//! The form only carries an answer to the queue, where it is one of those that may come first. What the client sends back
//! names an ask by its id, which is looked up, must be this caller's and one whose form the client was given: nothing in it
//! is believed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ElicitationSchema,
    InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer};
use serde_json::{Value, json};
use toolhost_contract::{Answer, BoxFuture, Call, Outcome, quoted, visible_line};
use toolhost_host::{Decision, PAGE_BYTES_MAX, Person, Presented, Presenter, Queue, Shown, ask_id, ask_number};
use toolhost_store::{Ask, AskKind};

use super::door::Door;
use super::slots::Slot;

/// Longest name of a client that is kept, characters.
const CLIENT_CHARS_MAX: usize = 60;
/// The one form of a call.
const FORM: &str = "decision";
/// Most forms of a connection that may be answered still; who answers an older one is asked again.
const GIVEN_MAX: usize = 1_000;
/// How long a call waits for the answer on a page that the client has opened; after that it is asked for with `approval_wait`.
pub(crate) const PAGE_WAIT: Duration = Duration::from_secs(45);
/// Where an answer given in a client comes from, for the audit.
const PLACE: &str = "mcp-client";

/// How this client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forms {
    None,
    /// The server sends a request of its own while the call waits.
    Asked,
    /// The call comes back as "input required", and again with the input.
    Returned,
}

/// What a client says of itself where its era has it said: in `initialize` for as long as that session lasts, or else in the very
/// request. A session does not gain by what a request of it says.
pub(crate) struct Client {
    /// As it was sent; empty if it does not say.
    pub(crate) name: String,
    /// How it can be asked by forms.
    pub(crate) forms: Forms,
    /// How it can be asked to open the page of an ask.
    pub(crate) pages: Forms,
}

/// Where the pages of a project's asks are; they are named as their client names the server.
#[derive(Clone)]
pub(crate) struct AskPages {
    pub(crate) is_tls: bool,
    /// The key of the project.
    pub(crate) project: String,
}

impl AskPages {
    /// What the addresses of the asks begin with, in the words of this request.
    pub(crate) fn base(&self, context: &RequestContext<RoleServer>) -> Option<String> {
        let parts = context.extensions.get::<axum::http::request::Parts>()?;
        let of_head = parts.headers.get(axum::http::header::HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(axum::http::uri::Authority::as_str).or(of_head)?;
        let project = percent_encoding::utf8_percent_encode(&self.project, percent_encoding::NON_ALPHANUMERIC);
        Some(format!("{}://{host}/asks/{project}/", if self.is_tls { "https" } else { "http" }))
    }
}

impl Client {
    /// `has_begun`: whether a session was opened by `initialize`. Over HTTP the library tells of a session without name and abilities
    /// for each request that belongs to none.
    pub(crate) fn of(context: &RequestContext<RoleServer>, has_begun: bool) -> Self {
        if let Some(session) = context.peer.peer_info().filter(|_| has_begun) {
            let able = session.capabilities.elicitation.as_ref();
            let [forms, pages] =
                [shows_forms(able), opens_pages(able)].map(|can| if can { Forms::Asked } else { Forms::None });
            return Self { name: session.client_info.name.clone(), forms, pages };
        }
        let declared = context.meta.client_capabilities();
        let able = declared.as_ref().and_then(|declared| declared.elicitation.as_ref());
        let able = able.filter(|_| is_stateless(context));
        let [forms, pages] =
            [shows_forms(able), opens_pages(able)].map(|can| if can { Forms::Returned } else { Forms::None });
        Self { name: context.meta.client_info().map(|client| client.name).unwrap_or_default(), forms, pages }
    }

    /// Whoever answers in a client is known by what the client says of itself, and acts for the user of the session.
    pub(crate) fn approver(&self, user: &str) -> String {
        let name: String = visible_line(&self.name).chars().take(CLIENT_CHARS_MAX).collect();
        format!("the client {} for {user}", if name.trim().is_empty() { "without a name" } else { name.trim() })
    }
}

/// Whether a request says that it is of the era without sessions.
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// A client that names no kind of elicitation means forms.
fn shows_forms(able: Option<&ElicitationCapability>) -> bool {
    able.is_some_and(|able| able.form.is_some() || able.url.is_none())
}

fn opens_pages(able: Option<&ElicitationCapability>) -> bool {
    able.is_some_and(|able| able.url.is_some())
}

/// By what a person is asked in this client.
#[derive(Clone)]
pub(crate) struct By {
    /// Whether its forms decide.
    pub(crate) forms: bool,
    /// What the addresses of pages begin with, where it opens them.
    pub(crate) pages: Option<String>,
}

/// A request to the client.
enum Wish {
    Form(ElicitRequestParams),
    /// Opening a page decides nothing.
    Page(ElicitRequestParams),
}

impl By {
    async fn wish(&self, queue: &Queue, person: &Person, ask: &Ask, shown: &Shown) -> Option<Wish> {
        let has_preview = shown.kind != AskKind::Question && !shown.detail.is_empty();
        match &self.pages {
            Some(base) if has_preview || !self.forms => Some(Wish::Page(opened(base, ask, shown))),
            _ if self.forms => form(queue, person, ask, shown).await.map(Wish::Form),
            _ => None,
        }
    }
}

/// The request to open the page of an ask.
fn opened(base: &str, ask: &Ask, shown: &Shown) -> ElicitRequestParams {
    let id = ask_id(ask.number);
    let summary = visible_line(if shown.kind == AskKind::Review { &shown.title } else { &shown.summary });
    let message = format!(
        "{} asks ({id}): {summary}\nThe page shows all of it, and takes your answer.",
        visible_line(&shown.persona)
    );
    ElicitRequestParams::UrlElicitationParams { meta: None, message, url: format!("{base}{id}"), elicitation_id: id }
}

/// Asks by a request of the server's.
pub(crate) struct Elicitation {
    pub(crate) queue: Queue,
    pub(crate) by: By,
    pub(crate) peer: Peer<RoleServer>,
    /// Of the call that asks.
    pub(crate) slot: Option<Slot>,
    pub(crate) person: Person,
}

impl Presenter for Elicitation {
    fn place(&self) -> &'static str {
        PLACE
    }

    fn person(&self) -> Person {
        self.person.clone()
    }

    fn present<'a>(&'a self, ask: &'a Ask, shown: &'a Shown) -> BoxFuture<'a, Presented> {
        Box::pin(async move {
            let Some(wish) = self.by.wish(&self.queue, &self.person, ask, shown).await else { return Presented::Gone };
            let _waiting = self.slot.as_ref().map(Slot::wait_for_the_client);
            let (request, is_page) = match wish {
                Wish::Form(form) => (form, false),
                Wish::Page(page) => (page, true),
            };
            match self.peer.create_elicitation(request).await {
                Ok(result) if is_page => {
                    if result.action == ElicitationAction::Accept {
                        // The answer comes from the page; whoever waits for it here hears of it.
                        tokio::time::sleep(PAGE_WAIT).await;
                    }
                    Presented::Gone
                }
                Ok(result) => decision(shown, result).map_or(Presented::Gone, Presented::Decided),
                Err(error) => {
                    tracing::warn!(%error, "the client could not ask");
                    Presented::Gone
                }
            }
        })
    }

    // The form stays open in the client; its answer comes too late and changes nothing.
    fn ended(&self, _: &Ask) {}
}

/// The asks whose form this client was given in this connection, the latest of them: it answers no others.
#[derive(Default)]
pub(crate) struct Given(Mutex<VecDeque<(i64, Way)>>);

/// How a client was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Form,
    Page,
}

impl Given {
    fn add(&self, number: i64, way: Way) {
        let mut numbers = self.numbers();
        if !numbers.contains(&(number, way)) {
            numbers.push_back((number, way));
        }
        if numbers.len() > GIVEN_MAX {
            numbers.pop_front();
        }
    }

    /// The last way in which it was asked this.
    fn way(&self, number: i64) -> Option<Way> {
        self.numbers().iter().rev().find(|(given, _)| *given == number).map(|(_, way)| *way)
    }

    fn numbers(&self) -> MutexGuard<'_, VecDeque<(i64, Way)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a repeated request brings back of a form that was returned for it.
#[derive(Default)]
pub(crate) struct Returned {
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<InputResponses>,
}

/// What a repeated request said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is a new request, or brings back nothing that counts.
    Nothing,
    /// A form came back, and decided nothing: it was dismissed or garbled, or came too late.
    NoDecision,
    Decision,
    /// The client has opened the page of the ask, where the answer will come from.
    Opened,
}

/// Takes the answer that a repeated call brings to a form that this client was given.
///
/// # Errors
/// The state that came with it names no ask of this client. What a client sends back as its state is refused unless it is
/// what it was given.
pub(crate) async fn answer(
    door: &Door,
    given: &Given,
    person: &Person,
    call: &Call,
    returned: &Returned,
) -> Result<Heard, ErrorData> {
    let Some(state) = &returned.state else { return Ok(Heard::Nothing) };
    let unknown = || {
        let message = "this `requestState` was not given to this client: repeat the request without it";
        ErrorData::invalid_params(message, None)
    };
    let number = ask_number(state).filter(|number| ask_id(*number) == *state).ok_or_else(unknown)?;
    // What an ask asks never changes: it is what the form said.
    let (ask, shown) = door.gate.queue().get(person.project_id, number).await.map_err(|_| unknown())?;
    // An ask of another session is another person's to answer, as far as this client is concerned.
    if ask.user_id != person.user_id || ask.session_id != door.scope.session_id {
        return Err(unknown());
    }
    let (Some(responses), Some(way)) = (returned.responses.as_ref(), given.way(number)) else {
        return Ok(Heard::Nothing);
    };
    // Under 2026-07-28 a client repeats the request that the form was returned for; beside any other call it decides nothing.
    if !is_asked_by(door, &ask, call) {
        return Ok(Heard::Nothing);
    }
    let Some(result) = responses.get(FORM) else { return Ok(Heard::Nothing) };
    let result = serde_json::from_value::<ElicitResult>(result.clone()).ok();
    if way == Way::Page {
        let is_opened = result.is_some_and(|result| result.action == ElicitationAction::Accept);
        return Ok(if is_opened { Heard::Opened } else { Heard::NoDecision });
    }
    let Some(decision) = result.and_then(|result| decision(&shown, result)) else { return Ok(Heard::NoDecision) };
    match door.gate.queue().decide(person, number, decision, PLACE).await {
        Ok(_) => Ok(Heard::Decision),
        // Too late, or somebody was faster: the call finds what the row says.
        Err(error) => {
            tracing::info!(ask = number, %error, "an answer from the client was not taken");
            Ok(Heard::NoDecision)
        }
    }
}

/// Whether a call is the one that an ask is about, or one that waits for the ask.
fn is_asked_by(door: &Door, ask: &Ask, call: &Call) -> bool {
    let empty = serde_json::Map::new();
    let arguments = call.arguments.as_object().unwrap_or(&empty);
    if arguments.get("approvalId").and_then(Value::as_str) == Some(&ask_id(ask.number)) {
        return true;
    }
    let tool = door.gate.registry().get(&call.tool);
    // An alias may have set arguments that its caller did not give.
    tool.is_some_and(|tool| tool.info.name == ask.tool)
        && arguments.iter().all(|(name, value)| ask.call["arguments"].get(name) == Some(value))
}

/// What to return for a call that waits for a person, to a client that can ask.
pub(crate) async fn required(
    door: &Door,
    given: &Given,
    (person, by): (&Person, &By),
    outcome: &Outcome,
) -> Option<InputRequiredResult> {
    let status = outcome.data.get("status").and_then(Value::as_str)?;
    if !status.starts_with("pending_") {
        return None;
    }
    let id = outcome.data.get("approvalId").and_then(Value::as_str)?;
    let queue = door.gate.queue();
    let (ask, shown) = queue.get(door.scope.project_id, ask_number(id)?).await.ok()?;
    let (wish, way) = match by.wish(queue, person, &ask, &shown).await? {
        Wish::Form(form) => (form, Way::Form),
        Wish::Page(page) => (page, Way::Page),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(wish));
    given.add(ask.number, way);
    Some(InputRequiredResult::new(Some(InputRequests::from([(FORM.to_owned(), request)])), Some(id.to_owned())))
}

/// The first page, with the answers that its person may give: the queue takes no others.
async fn form(queue: &Queue, person: &Person, ask: &Ask, shown: &Shown) -> Option<ElicitRequestParams> {
    let text = match (shown.kind, shown.wanted) {
        (AskKind::Approval, _) => "Why not, or for `edit` the arguments as JSON",
        _ => "The text of an edit, of feedback or of an answer",
    };
    let pages = shown.pages();
    let mut answers = shown.answers().to_vec();
    if shown.is_long() {
        // Any answer that agrees stands for all of them here.
        let may_agree = queue.check_seen(person, ask, shown).await.is_ok();
        answers.retain(|answer| may_agree || !shown.agrees(answer));
    }
    let mut message = pages.first().cloned().unwrap_or_default();
    if pages.len() > 1 {
        message.push_str(&format!(
            "\n\nNOT ALL OF IT: this is page 1 of {}. `toolhost review show {} --all` shows the rest; until then it \
             cannot be agreed to",
            pages.len(),
            ask_id(ask.number)
        ));
    } else if shown.kind == AskKind::Approval {
        let arguments = format!("\n\narguments:\n{}", quoted(&shown.arguments.to_string()));
        // They are beside the effect, which is there whole.
        if message.len() + arguments.len() <= PAGE_BYTES_MAX {
            message.push_str(&arguments);
        }
    }
    let mut schema = json!({
        "type": "object",
        "properties": {
            "decision": { "type": "string", "title": "Decision", "enum": answers },
            "text": { "type": "string", "title": "Text", "description": text },
        },
        "required": ["decision"],
    });
    if !shown.choices.is_empty() {
        let choices: Vec<String> = shown.choices.iter().map(|choice| visible_line(choice)).collect();
        let numbers: Vec<String> = (1..=choices.len()).map(|number| number.to_string()).collect();
        let choice = json!({ "type": "string", "title": "Answer", "enum": numbers, "enumNames": choices });
        schema["properties"]["choice"] = choice;
        schema["properties"]["text"]["description"] = "Another answer, where none of these is right".into();
    }
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// What the form says. Dismissed: nothing. Declined, and whatever is no answer: no.
fn decision(shown: &Shown, result: ElicitResult) -> Option<Decision> {
    let no = || match shown.kind {
        AskKind::Approval => Answer::Deny { comment: None },
        AskKind::Review | AskKind::Question => Answer::Cancel,
    };
    let answer = match result.action {
        ElicitationAction::Accept => {
            let content = result.content.unwrap_or_default();
            let field = |name: &str| content.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let word = content.get("decision").and_then(Value::as_str).unwrap_or_default();
            // Words go before the list, and are taken as they are.
            let text = match (field("text"), field("choice")) {
                (None, Some(choice)) if !shown.choices.is_empty() => shown.chosen(choice.to_owned()).map(Some),
                (text, _) => Ok(text.map(str::to_owned)),
            };
            text.and_then(|text| shown.answer(word, text)).unwrap_or_else(|_| no())
        }
        ElicitationAction::Decline => no(),
        _ => return None,
    };
    Some(Decision { answer, rule: None })
}
