//! JSON-RPC as lines, with an answer to every request, also to one that cannot be taken.
//!
//! rmcp's own line transport drops a message that is too long, nested too deep or not UTF-8 without a word, and the
//! client waits for its answer forever. Here such a message is answered with an error, if its id can be told.
//!
//! This is also where a client is held back. Requests are handed on as slots are free; those that come meanwhile are held,
//! and while too many are held nothing is read. Notifications and answers pass the requests that are held.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ClientRequest, GetExtensions, GetMeta, InitializeRequestParams, JsonRpcMessage, JsonRpcRequest,
    RequestId,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held::Held;
use super::service::misfit;
use super::slots::{Class, Slot, Slots};

/// Longest message, bytes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most values in a message: each costs tens of bytes in memory, however short it is.
pub(crate) const MESSAGE_VALUES_MAX: usize = 256 * 1024;
/// Where the id of a message is looked for that cannot be parsed, bytes.
const HEAD_BYTES: usize = 1024;
/// What a call may still take once the client has closed its side: short ones of a script that is piped in get their
/// answer, and a command that nobody waits for any more ends.
const LEFT_GRACE: Duration = Duration::from_millis(500);
/// Answers to what is no request that are written at once; while that many wait for the client, nothing is read.
const REFUSALS_MAX: usize = 16;
/// What most answers need. A text that grows is copied each time.
const BUFFER_BYTES: usize = 16 * 1024;
/// Bytes from which on an answer takes room while it is encoded, or is measured first where there is none.
const MEASURED_FROM_BYTES: usize = 256 * 1024;
/// The least room that is taken.
const ROOM_BYTES_MIN: usize = 1024 * 1024;
/// JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
/// The method that opens a session.
const INITIALIZE: &str = "initialize";
/// Of those that a server may define.
const BUSY: i32 = -32000;

pub(crate) struct Lines<R, W> {
    reader: BufReader<R>,
    /// The line so far; reading may be interrupted anywhere and goes on.
    line: Vec<u8>,
    /// Bytes of the line that were too many to keep.
    dropped: usize,
    output: Arc<Output<W>>,
    slots: Slots,
    held: Held,
    refusals: Arc<Semaphore>,
    /// Whether a session, or a client without one, has begun. rmcp ends at a notification or an answer that comes before.
    is_open: bool,
    /// Whether a client without a session has begun: none opens then, as each request says what its client can.
    is_stateless: bool,
    /// Set when the client has closed its side: until when an answer must have been taken.
    ended: Option<Instant>,
    /// Cancelled a moment after the client has closed its side.
    left: CancellationToken,
}

/// Where answers are written.
struct Output<W> {
    writer: Mutex<Option<W>>,
    /// Cancelled when the connection is closed, or a write has failed. A client that does not read may leave a write waiting
    /// forever, and closing must not wait for it.
    closed: CancellationToken,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(crate) fn new(reader: R, writer: W, slots: Slots, left: CancellationToken) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            line: Vec::new(),
            dropped: 0,
            output: Arc::new(Output { writer: Mutex::new(Some(writer)), closed: CancellationToken::new() }),
            slots,
            held: Held::default(),
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
            is_open: false,
            is_stateless: false,
            ended: None,
            left,
        }
    }

    /// Reads up to the end of a line; false at the end of the input.
    async fn fill_line(&mut self) -> bool {
        loop {
            let available = match self.reader.fill_buf().await {
                // A last message may lack its newline.
                Ok([]) => return !self.line.is_empty() || self.dropped > 0,
                Err(_) => return false,
                Ok(available) => available,
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(available.len());
            let room = MESSAGE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&available[..part.min(room)]);
            self.dropped += part.saturating_sub(room);
            self.reader.consume(end.map_or(part, |end| end + 1));
            if end.is_some() {
                return true;
            }
        }
    }

    /// The message of the line just read, or an answer to what is none.
    fn take_line(&mut self) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
        let mut line = std::mem::take(&mut self.line);
        let mut parsed = self.parse(&line);
        if let Some(as_object) = parsed.as_ref().ok().and_then(|message| with_arguments_as_object(message.as_ref()?)) {
            line = as_object;
            parsed = self.parse(&line);
        }
        match parsed {
            Ok(Some(message)) => self.admit(message, line),
            other => other,
        }
    }

    /// A request that has no slot is held, and passed by whatever is none.
    fn admit(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
        line: Vec<u8>,
    ) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
        match message {
            JsonRpcMessage::Request(request) => {
                // One of the two would run without an answer, and neither could be cancelled.
                if self.slots.has(&request.id) || self.held.has(&request.id) {
                    let why = "a request with this id is under way: each request needs an id of its own";
                    return Err(error_of(request.id.into_json_value(), INVALID_REQUEST, why));
                }
                if self.is_stateless && matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    let why = "requests that each carry their client's capabilities have begun here: open another connection for a session";
                    return Err(error_of(request.id.into_json_value(), INVALID_REQUEST, why));
                }
                let class = class_of(&request.request);
                if self.held.is_empty_of(class)
                    && let Some(slot) = self.slots.take(class, &request.id, line.len())
                {
                    return Ok(Some(with_slot(JsonRpcMessage::Request(request), slot)));
                }
                if self.held.is_full() {
                    let why = "every call of this client waits for the client itself, and too many more wait for them";
                    return Err(error_of(request.id.into_json_value(), BUSY, why));
                }
                self.held.push(class, request.id, line);
                Ok(None)
            }
            JsonRpcMessage::Notification(note) => {
                if let Some(id) = cancelled(&note.notification) {
                    if self.held.cancel(id) {
                        return Ok(None);
                    }
                    // It gets no answer; its handler has the slot until it has ended.
                    drop(self.slots.ended(id));
                }
                Ok(Some(JsonRpcMessage::Notification(note)))
            }
            other => Ok(Some(other)),
        }
    }

    fn note_opening(&mut self, message: &RxJsonRpcMessage<RoleServer>) {
        if !self.is_open && opens(message) {
            self.is_open = true;
            self.is_stateless = !is_initialize(message);
        }
    }

    /// The oldest request that is held and has a slot now.
    fn next_held(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        for class in [Class::Other, Class::Call] {
            let slots = &self.slots;
            if let Some((slot, line)) = self.held.pop(class, |id, bytes| slots.take(class, id, bytes))
                && let Ok(message) = serde_json::from_slice(&line)
            {
                return Some(with_slot(message, slot));
            }
        }
        None
    }

    /// Whether the next line may be read now. While every call waits for the client, it is read whatever is held: the answer
    /// that lets them go on may come next, and further requests are refused.
    fn may_read(&self) -> bool {
        self.ended.is_none()
            && self.refusals.available_permits() > 0
            && (!self.held.is_full() || self.slots.all_wait_for_the_client())
    }

    /// No line comes any more. What is held is still served for as long as the client takes answers.
    async fn drain(&mut self, until: Instant) -> Option<RxJsonRpcMessage<RoleServer>> {
        while !self.held.is_empty() {
            if let Some(message) = self.next_held() {
                self.ended = Some(Instant::now() + LEFT_GRACE);
                return Some(message);
            }
            if tokio::time::timeout_at(until, self.slots.freed()).await.is_err() {
                self.held = Held::default();
            }
        }
        let left = self.left.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LEFT_GRACE).await;
            left.cancel();
        });
        None
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, Value> {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let length = line.len() + dropped;
            let why = format!("the message is {length} bytes long; {MESSAGE_BYTES_MAX} is the most");
            return Err(error_of(id_in_head(line).unwrap_or_default(), INVALID_REQUEST, &why));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let values = values_in(line);
        if values > MESSAGE_VALUES_MAX {
            let why = format!("the message has {values} values; {MESSAGE_VALUES_MAX} is the most");
            return Err(error_of(id_in_head(line).unwrap_or_default(), INVALID_REQUEST, &why));
        }
        let error = match serde_json::from_slice(line) {
            Ok(message) => return first_fits(message).map(Some),
            Err(error) => error,
        };
        match serde_json::from_slice::<Value>(line) {
            // Some notification this version does not know: none is ever answered.
            Ok(Value::Object(message)) if message.contains_key("method") && !message.contains_key("id") => Ok(None),
            // No answer is answered, however wrong it is. Our own refusals are such messages, so two peers of this kind cannot
            // answer each other without end.
            Ok(Value::Object(message)) if message.contains_key("error") || message.contains_key("result") => Ok(None),
            Ok(message) => {
                let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
                Err(error_of(id.unwrap_or_default(), INVALID_REQUEST, "this is not a JSON-RPC message"))
            }
            Err(_) => {
                let why = format!("the message is not JSON that can be taken: {error}");
                Err(error_of(id_in_head(line).unwrap_or_default(), PARSE_ERROR, &why))
            }
        }
    }

    /// Writes an answer to what is no request that can be handed on. On a task of its own: this reading may be dropped at any
    /// await, an answer may not be cut in two.
    fn refuse(&self, answer: Value) {
        // There is one: it was looked before the line was read.
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        let (output, slots) = (Arc::clone(&self.output), self.slots.clone());
        tokio::spawn(async move {
            if let Ok(mut bytes) = serde_json::to_vec(&answer)
                && let Err(error) = output.write_line(&mut bytes).await
            {
                tracing::warn!(%error, "a refusal could not be written");
            }
            drop(permit);
            slots.tell_freed();
        });
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = Arc::clone(&self.output);
        let slots = self.slots.clone();
        let id = answered(&message);
        let (is_answer, slot) = (id.is_some(), id.and_then(|id| slots.ended(id)));
        let message = with_next_step(message);
        let is_last = is_answer && slots.are_all_answered();
        let mut sending = Box::pin(async move {
            let mut encoded = Encoded::start(&message, &slots)?;
            // A form may have to pass the answers that wait.
            let room = match encoded.room.take() {
                Some(room) => Some(room),
                None if is_answer => slots.room(encoded.length).await,
                None => None,
            };
            let mut bytes = encoded.finish(&message)?;
            drop(message);
            if let Some(slot) = &slot {
                slot.ran();
            }
            let written = output.write_line(&mut bytes).await;
            // Not before: what is not written costs memory.
            drop((room, slot));
            written
        });
        // rmcp polls the returned future in another task. That change of threads costs a seventh of a short read, so the last
        // open answer is written here if the client takes it at once.
        let begun = if is_last { poll_once(&mut sending) } else { None };
        async move {
            match begun {
                Some(written) => written,
                None => sending.await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let output = Arc::clone(&self.output);
        loop {
            if output.closed.is_cancelled() {
                // Nobody can take an answer any more: what is held is not begun, and what runs is ended.
                self.held = Held::default();
                self.left.cancel();
                return None;
            }
            if let Some(until) = self.ended {
                return self.drain(until).await;
            }
            if let Some(message) = self.next_held() {
                self.note_opening(&message);
                return Some(message);
            }
            let slots = self.slots.clone();
            if !self.may_read() {
                tokio::select! {
                    () = slots.freed() => {}
                    () = output.closed.cancelled() => {}
                }
                continue;
            }
            let read = tokio::select! {
                read = self.fill_line() => read,
                () = slots.freed() => continue,
                () = output.closed.cancelled() => continue,
            };
            if !read {
                self.ended = Some(Instant::now() + LEFT_GRACE);
                continue;
            }
            match self.take_line() {
                Ok(Some(message)) => {
                    self.note_opening(&message);
                    if self.is_open || matches!(message, JsonRpcMessage::Request(_)) {
                        return Some(message);
                    }
                    tracing::debug!("a notification or an answer that came before the first request is passed over");
                }
                Ok(None) => {}
                Err(answer) => self.refuse(answer),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.closed.cancel();
        drop(self.output.writer.lock().await.take());
        Ok(())
    }
}

/// Polls the future once. If it is not ready, its owner polls it again with a waker.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A message as JSON. One that is long is only measured until there is room for it; most often there is, and it is encoded once.
struct Encoded<'s> {
    slots: &'s Slots,
    /// The whole message; empty if there was no room for it.
    bytes: Vec<u8>,
    length: usize,
    /// For [`Encoded::bytes`], where they are more than [`MEASURED_FROM_BYTES`].
    room: Option<OwnedSemaphorePermit>,
    /// There was no room, and the message is measured.
    is_measured: bool,
}

impl<'s> Encoded<'s> {
    fn start(message: &TxJsonRpcMessage<RoleServer>, slots: &'s Slots) -> serde_json::Result<Self> {
        let bytes = Vec::with_capacity(BUFFER_BYTES);
        let mut encoded = Self { slots, bytes, length: 0, room: None, is_measured: false };
        serde_json::to_writer(&mut encoded, message)?;
        if let Some(room) = &mut encoded.room {
            drop(room.split(room.num_permits().saturating_sub(encoded.length)));
        }
        Ok(encoded)
    }

    fn finish(self, message: &TxJsonRpcMessage<RoleServer>) -> serde_json::Result<Vec<u8>> {
        if !self.is_measured {
            return Ok(self.bytes);
        }
        // With its newline.
        let mut bytes = Vec::with_capacity(self.length + 1);
        serde_json::to_writer(&mut bytes, message)?;
        Ok(bytes)
    }

    /// Takes room for a longer message. Without it, what is encoded so far is given up.
    fn grow(&mut self) {
        // Twice as much each time, so that what is encoded is not copied often.
        let more = self.slots.room_now(self.length.max(ROOM_BYTES_MIN));
        match (more, &mut self.room) {
            (Some(more), Some(room)) => room.merge(more),
            (Some(more), room) => *room = Some(more),
            (None, _) => (self.is_measured, self.bytes, self.room) = (true, Vec::new(), None),
        }
        if !self.is_measured {
            // No more memory than there is room for.
            self.bytes.reserve_exact(self.held() + 1 - self.bytes.len());
        }
    }

    /// Bytes that may be encoded.
    fn held(&self) -> usize {
        self.room.as_ref().map_or(MEASURED_FROM_BYTES, OwnedSemaphorePermit::num_permits)
    }
}

impl std::io::Write for Encoded<'_> {
    fn write(&mut self, part: &[u8]) -> std::io::Result<usize> {
        self.length += part.len();
        if !self.is_measured && self.length > self.held() {
            self.grow();
        }
        if !self.is_measured {
            self.bytes.extend_from_slice(part);
        }
        Ok(part.len())
    }

    /// A text is written in many parts, and none of them is taken half.
    fn write_all(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.write(part).map(|_| ())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write_line(&self, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        bytes.push(b'\n');
        let closed = || std::io::Error::new(std::io::ErrorKind::NotConnected, "the connection is closed");
        let writing = async {
            let mut writer = self.writer.lock().await;
            let writer = writer.as_mut().ok_or_else(closed)?;
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        let writing = async {
            // A client that has closed its end takes no further answer either.
            writing.await.inspect_err(|_| self.closed.cancel())
        };
        tokio::select! {
            written = writing => written,
            () = self.closed.cancelled() => Err(closed()),
        }
    }
}

/// Whether a message begins a session, or is a request of a client that keeps none.
fn opens(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            other => other.get_meta().protocol_version().is_some(),
        },
        _ => false,
    }
}

fn is_initialize(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::InitializeRequest(_)))
}

fn class_of(request: &ClientRequest) -> Class {
    match request {
        ClientRequest::CallToolRequest(_) => Class::Call,
        _ => Class::Other,
    }
}

/// The request with its slot, which its handler is handed among its extensions.
fn with_slot(mut message: RxJsonRpcMessage<RoleServer>, slot: Slot) -> RxJsonRpcMessage<RoleServer> {
    if let JsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(slot);
    }
    message
}

/// rmcp names only the fields that it misses where the first request is not `initialize`; most clients mean a session.
fn with_next_step(mut message: TxJsonRpcMessage<RoleServer>) -> TxJsonRpcMessage<RoleServer> {
    if let JsonRpcMessage::Error(refused) = &mut message
        && let Some((_, fields)) =
            refused.error.message.split_once("_meta is missing or has malformed required fields: ")
    {
        let told = format!(
            "send `initialize` before any other request; a client that keeps no session (protocol 2026-07-28) puts these \
             fields into `_meta` of each request instead: {fields}"
        );
        refused.error.message = told.into();
    }
    message
}

/// Refuses an `initialize` whose parameters are none. rmcp takes it for a request that comes before the session, and would
/// tell the client to send what it has just sent.
fn first_fits(message: RxJsonRpcMessage<RoleServer>) -> Result<RxJsonRpcMessage<RoleServer>, Value> {
    match message {
        JsonRpcMessage::Request(JsonRpcRequest { id, request: ClientRequest::CustomRequest(request), .. })
            if request.method == INITIALIZE =>
        {
            let why = misfit::<InitializeRequestParams>(&request.method, request.params);
            Err(error_of(id.into_json_value(), INVALID_PARAMS, &why))
        }
        fits => Ok(fits),
    }
}

/// The same call with its arguments as an object, where `arguments` is a string that holds one. Some models send such strings, and clients
/// pass them on.
fn with_arguments_as_object(message: &RxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
    let JsonRpcMessage::Request(JsonRpcRequest { id, request: ClientRequest::CustomRequest(request), .. }) = message
    else {
        return None;
    };
    if request.method != "tools/call" {
        return None;
    }
    let mut params = request.params.clone()?;
    let text = params.get("arguments")?.as_str().filter(|text| values_in(text.as_bytes()) <= MESSAGE_VALUES_MAX)?;
    let arguments = serde_json::from_str(text).ok().filter(Value::is_object)?;
    params["arguments"] = arguments;
    let line =
        json!({ "jsonrpc": "2.0", "id": id.clone().into_json_value(), "method": request.method, "params": params });
    serde_json::to_vec(&line).ok()
}

/// The request that a message answers.
fn answered(message: &TxJsonRpcMessage<RoleServer>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// The request that a notification takes back.
fn cancelled(notification: &ClientNotification) -> Option<&RequestId> {
    match notification {
        ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
        _ => None,
    }
}

/// How many values a message has at the most, by the marks before each of them. A text that is no JSON may have any.
fn values_in(line: &[u8]) -> usize {
    // There is a mark for each.
    if line.len() <= MESSAGE_VALUES_MAX {
        return 0;
    }
    let (mut values, mut in_text, mut is_escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values
}

fn error_of(id: Value, code: i32, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
}

/// The id of a message that cannot be parsed, from its first bytes. Only one that stands before `params` counts: further
/// in, an argument may be called `id` too.
fn id_in_head(line: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES)]);
    let head = head.split("\"params\"").next()?;
    let after = head.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let end = match after.strip_prefix('"') {
        Some(text) => text.find('"')? + 2,
        None => after.find(|c: char| !c.is_ascii_digit() && c != '-')?,
    };
    // What is left may be the rest of a number that is none of ours, such as `1e400`.
    let is_whole = after[end..].starts_with(|c: char| c.is_ascii_whitespace() || matches!(c, ',' | '}'));
    serde_json::from_str(after.get(..end).filter(|_| is_whole)?).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock, ServerResult};

    use super::*;

    #[test]
    fn values_are_counted_where_they_could_be_too_many() {
        assert_eq!(values_in(br#"{"a":[1,2]}"#), 0);
        let many = format!("[{}0]", "0,".repeat(MESSAGE_VALUES_MAX));
        assert_eq!(values_in(many.as_bytes()), MESSAGE_VALUES_MAX + 2);
        let text = format!(r#"{{"a":"\"{}","b":1}}"#, ",".repeat(MESSAGE_VALUES_MAX));
        assert_eq!(values_in(text.as_bytes()), 3);
    }

    #[tokio::test]
    async fn a_long_answer_is_the_same_whether_there_is_room_at_once_or_not() {
        let slots = Slots::new(1);
        for lines in [1, 100_000, 2_000_000] {
            let text = ContentBlock::text("\n".repeat(lines));
            let message = TxJsonRpcMessage::<RoleServer>::response(
                ServerResult::CallToolResult(CallToolResult::success(vec![text])),
                RequestId::Number(1),
            );
            let whole = serde_json::to_vec(&message).expect("a message is JSON");
            let encoded = Encoded::start(&message, &slots).expect("a message is JSON");
            let room = encoded.room.as_ref().map(OwnedSemaphorePermit::num_permits);
            assert_eq!(room, (whole.len() > MEASURED_FROM_BYTES).then_some(whole.len()), "exactly what it takes");
            assert!(encoded.finish(&message).is_ok_and(|bytes| bytes == whole), "{lines}");
            let all = slots.room(usize::MAX).await;
            let encoded = Encoded::start(&message, &slots).expect("a message is JSON");
            assert!(encoded.room.is_none() && encoded.length == whole.len(), "{lines}");
            assert!(encoded.bytes.len() <= MEASURED_FROM_BYTES, "it is only measured");
            assert!(encoded.finish(&message).is_ok_and(|bytes| bytes == whole), "{lines}");
            drop(all);
        }
    }

    #[test]
    fn ids_are_found_where_they_can_only_be_the_message_s_own() {
        let check = |line: &str, expected: Option<Value>| assert_eq!(id_in_head(line.as_bytes()), expected, "{line}");
        check(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{[[["#, Some(json!(7)));
        check(r#"{"jsonrpc":"2.0", "id" : "a-1", "method"#, Some(json!("a-1")));
        check(r#"{"jsonrpc":"2.0","method":"x","params":{"id":9"#, None);
        check(r#"{"id":"#, None);
        check(r#"{"jsonrpc":"2.0","id":1e400,"method":"x"}"#, None);
        check("", None);
    }
}
