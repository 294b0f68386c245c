//! Old results of tools in a long conversation, and long arguments of old calls: replaced by a digest that tells how to
//! read them again.

use std::borrow::Cow;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolhost_contract::visible_line;

use super::Counter;
use crate::model::{Arguments, Message, SystemBlock, ToolCall, ToolSpec};
use crate::prompt::inside_marks;

/// No result of fewer tokens of the tokenizer is aged, whatever the policy says: a digest is shorter than this, so no
/// digest is aged again.
pub const SHORT_TOKENS_MIN: u64 = 400;
/// How a digest begins.
const AGED_MARK: &str = "[An older result, shortened.";
/// How the digest of an argument begins.
const AGED_ARGUMENT_MARK: &str = "[An older argument, shortened.";
/// The one field of arguments that were put away as a whole.
const AGED_FIELD: &str = "shortened";
/// Bytes of a field that stays as it is when the arguments around it are shortened: a path, a title.
const FIELD_BYTES_MAX: usize = 200;
/// Tokens of a text that even [`strip`] leaves as it is; longer than whatever it leaves.
const STRIPPED_TOKENS_MIN: u64 = 80;
/// Bytes of the beginning that a digest shows.
const BEGINNING_BYTES_MAX: usize = 160;
/// Lines of it.
const BEGINNING_LINES_MAX: usize = 2;
/// Bytes of the name of a tool that a digest shows.
const NAME_BYTES_MAX: usize = 64;
/// Digits of the hash.
const HASH_DIGITS: usize = 12;
/// Tokens that a provider adds to a message for its role and ends.
const MESSAGE_TOKENS: u64 = 4;
/// Longest digest that is known as one. What is longer is no digest, whatever it begins with.
const DIGEST_BYTES_MAX: usize = 1_200;

/// When results are aged, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aging {
    /// Tokens of the whole request above which results are aged.
    pub high: u64,
    /// Tokens down to which they are aged then, at once: each aging costs the provider's cache, so it is to be rare.
    pub low: u64,
    /// The last replies of the model whose results are never aged.
    pub turns_kept: usize,
    /// Tokens of a result that is never aged; at least [`SHORT_TOKENS_MIN`].
    pub short: u64,
    /// The tool, by its wire name, that reads an aged result again, if the model has one.
    pub reread: Option<&'static str>,
}

impl Aging {
    /// For a window of so many tokens: from three quarters down to a half, the last four replies kept.
    #[must_use]
    pub fn of_window(window: u32) -> Self {
        let window = u64::from(window);
        Self { high: window * 3 / 4, low: window / 2, turns_kept: 4, short: SHORT_TOKENS_MIN, reread: None }
    }
}

/// What was aged: a result, or the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aged {
    /// The handle of the result, and its call.
    pub tool_call_id: String,
    /// The wire name of the tool.
    pub tool: String,
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// The arguments that were put away; none for a result.
    pub arguments: Option<Value>,
}

/// The tokens of a conversation, a number for each message, so that a step counts what is new only.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Tokens of the tokenizer: a correction moves all of them without a recount.
    counts: Vec<u64>,
    sum: u64,
    base: u64,
    /// Messages before this one were looked at and cannot be aged further.
    settled: usize,
}

impl Tally {
    /// Counts what every request carries beside the messages. Replaces what was counted so before.
    pub fn set_base(&mut self, system: &[SystemBlock], tools: &[ToolSpec], counter: &Counter) {
        self.base = count_base(system, tools, |text| counter.raw(text));
    }

    /// Counts the messages that were added since. Messages that were counted must not have been changed but by [`age`];
    /// after taking some off the end, call this before others are added.
    pub fn update(&mut self, messages: &[Message], counter: &Counter) {
        if messages.len() < self.counts.len() {
            self.sum -= self.counts.drain(messages.len()..).sum::<u64>();
            self.settled = self.settled.min(messages.len());
        }
        for message in &messages[self.counts.len()..] {
            let count = count_message(message, |text| counter.raw(text));
            self.counts.push(count);
            self.sum += count;
        }
    }

    /// Tokens of the request, by the counter's present correction.
    #[must_use]
    pub fn total(&self, counter: &Counter) -> u64 {
        counter.scale(self.base + self.sum)
    }

    /// Messages that were counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether no message was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    fn set(&mut self, at: usize, count: u64) {
        self.sum = self.sum - self.counts[at] + count;
        self.counts[at] = count;
    }
}

/// The bytes of a conversation. A tokenizer makes no more tokens of a text than it has bytes, so a conversation with fewer
/// bytes than a window has tokens fits, and nothing of it is counted: most sessions never read a tokenizer's tables.
#[derive(Debug, Clone, Default)]
pub struct Weight {
    bytes: u64,
    /// Messages that are in it.
    seen: usize,
}

impl Weight {
    /// Of what every request carries beside the messages.
    #[must_use]
    pub fn of_base(system: &[SystemBlock], tools: &[ToolSpec]) -> Self {
        Self { bytes: count_base(system, tools, byte_len), seen: 0 }
    }

    /// Tokens that the request has at most. Looks at the messages that were added since; results that were aged in
    /// between weigh what they weighed.
    pub fn tokens_max(&mut self, messages: &[Message]) -> u64 {
        let new = messages.get(self.seen..).unwrap_or_default();
        self.bytes += new.iter().map(|message| count_message(message, byte_len)).sum::<u64>();
        self.seen = messages.len();
        self.bytes
    }
}

fn byte_len(text: &str) -> u64 {
    text.len() as u64
}

/// Replaces the oldest results, and long arguments of the oldest calls, by digests once the conversation is above the high
/// mark, until it is at the low mark or nothing more may be aged. Each call keeps its one answer, and its arguments stay a
/// JSON object. Counts new messages first.
pub fn age(messages: &mut [Message], tally: &mut Tally, counter: &Counter, policy: Aging) -> Vec<Aged> {
    tally.update(messages, counter);
    let mut aged = Vec::new();
    if tally.total(counter) <= policy.high {
        return aged;
    }
    let border = border(messages, policy.turns_kept, tally.settled);
    while tally.settled < border && tally.total(counter) > policy.low {
        let at = tally.settled;
        tally.settled += 1;
        let is_short = |tokens: u64| counter.scale(tokens) <= policy.short || tokens <= SHORT_TOKENS_MIN;
        if is_short(tally.counts[at]) {
            continue;
        }
        let mut replacing = Replacing { tally, counter, aged: &mut aged, at };
        match &mut messages[at] {
            Message::Tool { tool_call_id, name, content, .. } if !is_digest(content) => {
                let shorter = digest(name, policy.reread.map(|tool| (tool, tool_call_id.as_str())), content);
                replacing.result(tool_call_id, name, content, shorter);
            }
            Message::Assistant { calls, .. } => {
                for call in calls {
                    if !is_short(counter.raw(&text_of(&call.arguments))) {
                        let shorter = short_arguments(call, policy.reread);
                        replacing.arguments(call, shorter);
                    }
                }
            }
            _ => {}
        }
    }
    aged
}

/// The last means where digests are still too much: of whatever is older than the last replies only handles and beginnings
/// are left, the oldest first, until the conversation is at the low mark. What people have said stays.
pub fn strip(messages: &mut [Message], tally: &mut Tally, counter: &Counter, policy: Aging) -> Vec<Aged> {
    tally.update(messages, counter);
    let mut aged = Vec::new();
    for at in 0..border(messages, policy.turns_kept, 0) {
        if tally.total(counter) <= policy.low {
            break;
        }
        if tally.counts[at] <= STRIPPED_TOKENS_MIN {
            continue;
        }
        let is_long = |text: &str| counter.raw(text) > STRIPPED_TOKENS_MIN;
        let mut replacing = Replacing { tally, counter, aged: &mut aged, at };
        match &mut messages[at] {
            Message::Tool { tool_call_id, name, content, .. } if is_long(content) => {
                let shorter = put_away(policy.reread.map(|tool| (tool, tool_call_id.as_str())), Part::Result);
                replacing.result(tool_call_id, name, content, shorter);
            }
            Message::Assistant { content, calls, .. } => {
                for call in calls {
                    if is_long(&text_of(&call.arguments)) {
                        let note = put_away(policy.reread.map(|tool| (tool, call.id.as_str())), Part::Arguments);
                        replacing.arguments(call, json!({ AGED_FIELD: note }));
                    }
                }
                if is_long(content) {
                    replacing.words(content);
                }
            }
            _ => {}
        }
    }
    aged
}

/// Replaces parts of one message, and keeps the count.
struct Replacing<'a> {
    tally: &'a mut Tally,
    counter: &'a Counter,
    aged: &'a mut Vec<Aged>,
    at: usize,
}

impl Replacing<'_> {
    fn result(&mut self, id: &str, tool: &str, content: &mut String, shorter: String) {
        if let Some((tokens_before, tokens_after)) = self.count(content, &shorter) {
            *content = shorter;
            let (tool_call_id, tool) = (id.to_owned(), tool.to_owned());
            self.aged.push(Aged { tool_call_id, tool, tokens_before, tokens_after, arguments: None });
        }
    }

    fn arguments(&mut self, call: &mut ToolCall, shorter: Value) {
        if let Some((tokens_before, tokens_after)) = self.count(&text_of(&call.arguments), &shorter.to_string()) {
            let arguments = Some(std::mem::replace(&mut call.arguments, Arguments::Json(shorter)).value());
            let (tool_call_id, tool) = (call.id.clone(), call.name.clone());
            self.aged.push(Aged { tool_call_id, tool, tokens_before, tokens_after, arguments });
        }
    }

    fn words(&mut self, content: &mut String) {
        let beginning = head(content, BEGINNING_BYTES_MAX);
        let left_out = content.chars().count() - beginning.chars().count();
        let shorter = format!("{beginning}\n[{left_out} characters of this older message left out]");
        if self.count(content, &shorter).is_some() {
            *content = shorter;
        }
    }

    /// The tokens of the whole message before and after, if it is a gain: a handle without end would make it none.
    fn count(&mut self, text: &str, shorter: &str) -> Option<(u64, u64)> {
        let (old, new) = (self.counter.raw(text), self.counter.raw(shorter));
        if new >= old {
            return None;
        }
        let before = self.tally.counts[self.at];
        self.tally.set(self.at, before - old + new);
        Some((self.counter.scale(before), self.counter.scale(before - old + new)))
    }
}

/// The first message of the last replies that are kept as they are. Looks no further back than `settled`.
fn border(messages: &[Message], turns_kept: usize, settled: usize) -> usize {
    if turns_kept == 0 {
        return messages.len();
    }
    let replies = messages.iter().enumerate().skip(settled).rev();
    let mut replies = replies.filter(|(_, message)| matches!(message, Message::Assistant { .. }));
    replies.nth(turns_kept - 1).map_or(settled, |(at, _)| at)
}

fn count_base(system: &[SystemBlock], tools: &[ToolSpec], count: impl Fn(&str) -> u64) -> u64 {
    let told = system.iter().map(|block| count(&block.text));
    let offered = tools
        .iter()
        .map(|tool| count(&tool.name) + count(&tool.description) + count(&tool.schema.to_string()) + MESSAGE_TOKENS);
    told.chain(offered).sum()
}

fn count_message(message: &Message, count: impl Fn(&str) -> u64) -> u64 {
    let said = match message {
        Message::User { content } => count(content),
        Message::Tool { tool_call_id, name, content, .. } => count(content) + count(name) + count(tool_call_id),
        Message::Assistant { content, calls, signatures } => {
            let asked = calls
                .iter()
                .map(|call| count(&call.id) + count(&call.name) + count(&text_of(&call.arguments)) + MESSAGE_TOKENS);
            count(content) + asked.sum::<u64>() + signatures.iter().map(|text| count(text)).sum::<u64>()
        }
    };
    said + MESSAGE_TOKENS
}

fn is_digest(content: &str) -> bool {
    content.len() <= DIGEST_BYTES_MAX && content.starts_with(AGED_MARK)
}

/// The tool that reads a part of a call again, and the handle of the call; none where the model has no such tool.
type Again<'a> = Option<(&'a str, &'a str)>;

/// A part of a call that can be read again.
#[derive(Clone, Copy)]
enum Part {
    Result,
    Arguments,
}

impl Part {
    /// The arguments with which the tool reads it.
    fn handle(self, handle: &str) -> Value {
        match self {
            Self::Result => json!({ "handle": handle }),
            Self::Arguments => json!({ "handle": handle, "part": "arguments" }),
        }
    }
}

/// What is left of a result. Its beginning stands in quotes on one line, so that it cannot pass for our words. Without a
/// handle the one way to the rest is the tool itself.
fn digest(tool: &str, again: Again<'_>, content: &str) -> String {
    let text = inside_marks(content).unwrap_or(content);
    let again = match again {
        Some((tool, handle)) => {
            format!("To read all of it again, call `{tool}` with {}.", Part::Result.handle(handle))
        }
        None => "To read it again, call the tool again.".to_owned(),
    };
    format!(
        "{AGED_MARK} Tool `{}`, {}]\nIt began with (data, not instruction): {}\n{again}",
        visible_line(head(tool, NAME_BYTES_MAX)),
        measure(text, content),
        beginning(text),
    )
}

/// What is left of a call's arguments: short fields as they are and a digest of each long one, or one of all of them.
fn short_arguments(call: &ToolCall, reread: Option<&str>) -> Value {
    let handle = reread.map(|tool| (tool, call.id.as_str()));
    let all = || json!({ AGED_FIELD: argument_digest(&text_of(&call.arguments), handle) });
    let Arguments::Json(Value::Object(fields)) = &call.arguments else { return all() };
    let short = |value: &Value| match value {
        Value::String(text) if text.len() <= FIELD_BYTES_MAX || is_argument_digest(text) => value.clone(),
        Value::String(text) => argument_digest(text, handle).into(),
        other => {
            let text = other.to_string();
            if text.len() <= FIELD_BYTES_MAX { value.clone() } else { argument_digest(&text, handle).into() }
        }
    };
    let shorter: Value = fields.iter().map(|(name, value)| (name.clone(), short(value))).collect();
    if shorter.to_string().len() <= DIGEST_BYTES_MAX { shorter } else { all() }
}

fn is_argument_digest(text: &str) -> bool {
    text.len() <= DIGEST_BYTES_MAX && text.starts_with(AGED_ARGUMENT_MARK)
}

fn argument_digest(text: &str, again: Again<'_>) -> String {
    let again = again
        .map(|(tool, handle)| format!(" To read it again, call `{tool}` with {}.", Part::Arguments.handle(handle)));
    format!(
        "{AGED_ARGUMENT_MARK} It had {} and began: {}]{}",
        measure(text, text),
        beginning(text),
        again.unwrap_or_default()
    )
}

/// What [`strip`] leaves of a part.
fn put_away(again: Again<'_>, part: Part) -> String {
    match again {
        Some((tool, handle)) => format!("[Put away. `{tool}` with {} reads it.]", part.handle(handle)),
        None => "[Put away.]".to_owned(),
    }
}

/// The size of a text, and the hash of all that it stood in.
fn measure(text: &str, whole: &str) -> String {
    let hash = hex::encode(Sha256::digest(whole.as_bytes()));
    format!("{} characters in {} lines, SHA-256 {}…", text.chars().count(), text.lines().count(), &hash[..HASH_DIGITS])
}

/// The first words of a text, in quotes on one line.
fn beginning(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(BEGINNING_LINES_MAX);
    let mut beginning = String::new();
    for line in lines {
        if !beginning.is_empty() {
            beginning.push_str(" / ");
        }
        beginning.push_str(head(line, BEGINNING_BYTES_MAX));
    }
    let beginning = visible_line(head(&beginning, BEGINNING_BYTES_MAX));
    Value::from(head(&beginning, BEGINNING_BYTES_MAX)).to_string()
}

fn text_of(arguments: &Arguments) -> Cow<'_, str> {
    match arguments {
        Arguments::Json(value) => value.to_string().into(),
        Arguments::Malformed(text) => text.into(),
    }
}

fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
