//! A session as a person sees it: what is said as it is said, each call with its time and outcome, what it has cost.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use toolhost_agent::model::Usage;
use toolhost_agent::session::{Answer, AnswerForm, Event, LoopResult, Status as Ending, Watch, summary_of};
use toolhost_contract::{ErrorKind, QUOTE_MARK, quoted, visible_line};
use toolhost_host::Registry;

use super::status::Status;
use crate::fold::Fold;
use crate::markdown::Markdown;
use crate::print::{self, BAD, BOLD, DIM, GOOD, WARN, paint, visible};

/// Characters of a name in a line.
const NAME_CHARS_MAX: usize = 80;
/// Characters of the arguments of a call whose tool is not known.
const ARGUMENTS_CHARS_MAX: usize = 100;
/// Lines of what a model says beside its calls in a session on a package, where it may copy what it works on.
const ASIDE_LINES_MAX: usize = 6;
/// Lines of a diff, or of a new file, below its call.
const DIFF_LINES_MAX: usize = 30;
/// Lines of a running command's output, and of what stays of it.
const OUTPUT_LINES_MAX: usize = 6;
/// Calls of a session whose end has not come; more of them have no lines of their own.
const RUNNING_MAX: usize = 64;
/// How often the lines of the status are drawn.
const DRAW_EVERY: Duration = Duration::from_millis(120);
/// What a program says that met the fence, as the C library words it.
const FENCE_WORDS: [&str; 4] =
    ["Operation not permitted", "Permission denied", "Read-only file system", "Network is unreachable"];

/// The terminal.
pub(in crate::commands) struct Live {
    inner: Arc<Mutex<Inner>>,
    /// Draws what it does now, for as long as it lives.
    _drawing: Option<AbortOnDropHandle<()>>,
}

impl Live {
    /// For a session with such answers. One on a package answers with JSON that carries whole objects: people are told the
    /// summary in it. The registry tells what its calls are for.
    pub(in crate::commands) fn of(answer: &AnswerForm, registry: Option<Arc<Registry>>) -> Self {
        let on_package = matches!(answer, AnswerForm::Change);
        Self { inner: Arc::new(Mutex::new(Inner { on_package, registry, ..Inner::default() })), _drawing: None }
    }

    /// The same, with lines below that tell what the session does at the moment, where a person looks on.
    pub(in crate::commands) fn with_status(mut self) -> Self {
        let status = Status::new();
        if status.is_on() {
            lock(&self.inner).status = status;
            let inner = Arc::clone(&self.inner);
            self._drawing = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                let mut ticks = tokio::time::interval(DRAW_EVERY);
                loop {
                    ticks.tick().await;
                    lock(&inner).draw();
                }
            })));
        }
        self
    }

    /// The same for a session whose history was shown: what comes before this message is not told again.
    pub(in crate::commands) fn since_message(self, said: String) -> Self {
        lock(&self.inner).is_known_until = Some(said);
        self
    }

    /// Hides the status while a person is asked something, or shows it again.
    pub(in crate::commands) fn hide(&self, is_hidden: bool) {
        lock(&self.inner).status.hide(is_hidden);
    }
}

fn lock(inner: &Mutex<Inner>) -> std::sync::MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Inner {
    /// The message that ends what a person has seen already.
    is_known_until: Option<String>,
    on_package: bool,
    registry: Option<Arc<Registry>>,
    status: Status,
    /// Whether the cursor stands in the middle of streamed text.
    open: bool,
    /// Where that text stands in its line.
    fold: Option<Fold>,
    markdown: Markdown,
    /// The end of it that is not printed yet.
    held: String,
    /// Whether the text of the turn was streamed as it came.
    streamed: bool,
    /// What a session on a package says of its answer, which is not taken yet.
    summary: Option<String>,
    /// Since when the model is being asked.
    asked: Option<Instant>,
    /// Calls that have begun and not ended.
    running: VecDeque<Running>,
    usage: Usage,
    cost: Option<f64>,
    elapsed_ms: u64,
}

/// A call under way.
struct Running {
    step: String,
    told: String,
    since: Instant,
    /// The end of what its command has printed.
    output: Option<String>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            is_known_until: None,
            on_package: false,
            registry: None,
            status: Status::default(),
            open: false,
            fold: None,
            markdown: Markdown::default(),
            held: String::new(),
            streamed: false,
            summary: None,
            asked: None,
            running: VecDeque::new(),
            usage: Usage::default(),
            cost: Some(0.0),
            elapsed_ms: 0,
        }
    }
}

impl Watch for Live {
    fn event(&self, event: &Event) {
        let mut inner = lock(&self.inner);
        if let Some(until) = &inner.is_known_until {
            match event {
                Event::Said { usage, cost, ms, .. } => inner.add(usage, *cost, *ms),
                Event::Message { text } if text == until => inner.is_known_until = None,
                // It never came to the message.
                Event::Ended { .. } | Event::Asked { .. } => inner.is_known_until = None,
                _ => {}
            }
            return;
        }
        inner.status.erase();
        match event {
            Event::Repair { .. } => inner.summary = None,
            Event::Ended { result } if result.status != Ending::Completed => inner.summary = None,
            Event::Message { .. } | Event::Asked { .. } | Event::Said { .. } | Event::Ended { .. } => inner.settle(),
            _ => {}
        }
        match event {
            Event::Text { text, .. } if !inner.on_package => inner.stream(text),
            Event::Text { .. } | Event::Thought { .. } => {}
            Event::Opened { session, model } => {
                print::aside(paint(DIM, format_args!("session {session} with {}", name(model))));
            }
            Event::Message { text } => {
                print::aside(format_args!("{} {}", paint(BOLD, ">"), visible(text)));
            }
            Event::Asked { .. } => (inner.streamed, inner.asked) = (false, Some(Instant::now())),
            Event::Again { attempt, wait_ms, why, .. } => {
                inner.close();
                let wait = *wait_ms as f64 / 1000.0;
                print::note(paint(
                    WARN,
                    format_args!("the model's server: {}; attempt {attempt} in {wait:.1} s", visible_line(why)),
                ));
            }
            Event::Said { .. } => inner.said(event),
            Event::CallStarted { step, tool, arguments } => inner.call_started(step, tool, arguments),
            Event::CallProgress { step, output, .. } => {
                if let (Some(running), Some(output)) = (inner.running(step), output) {
                    running.output = Some(output.clone());
                }
            }
            Event::CallEnded { .. } => inner.call_ended(event),
            Event::Repair { findings, .. } => {
                print::note(paint(WARN, format_args!("sent back:\n{}", quoted(findings))));
            }
            Event::Aged { results, tokens_before, tokens_after } => {
                print::aside(paint(
                    DIM,
                    format_args!("{results} old results put away: {tokens_before} -> {tokens_after} tokens"),
                ));
            }
            Event::Stopped { code, message } => {
                inner.close();
                print::note(paint(
                    WARN,
                    format_args!("stopped with {}: {}", visible_line(code), visible_line(message)),
                ));
            }
            Event::Ended { .. } => {
                inner.close();
                inner.running.clear();
                inner.asked = None;
            }
        }
        inner.draw();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut inner = lock(&self.inner);
        inner.status.hide(true);
        inner.settle();
    }
}

impl Inner {
    fn said(&mut self, event: &Event) {
        let Event::Said { turn, text, calls, usage, cost, ms, replayed } = event else { return };
        let told = if self.on_package { told_of_package(text, calls.is_empty()) } else { text.clone() };
        if self.on_package && calls.is_empty() {
            // It may be sent back.
            self.summary = Some(told);
        } else if !self.streamed && !told.trim().is_empty() {
            self.stream(&told);
        }
        // What was recalled is told without having been asked for again.
        (self.streamed, self.asked) = (false, None);
        self.close();
        self.add(usage, *cost, *ms);
        if !replayed {
            print::aside(paint(DIM, self.budget(turn + 1)));
        }
    }

    fn running(&mut self, step: &str) -> Option<&mut Running> {
        self.running.iter_mut().find(|running| running.step == step)
    }

    fn call_started(&mut self, step: &str, tool: &str, arguments: &Value) {
        self.close();
        let (title, told) = told_call(self.registry.as_deref(), tool, arguments);
        print::aside(format_args!("{} {}{told}", paint(DIM, "->"), paint(BOLD, &title)));
        if self.running.len() < RUNNING_MAX {
            let told = format!("{title}{told}");
            let (step, since) = (step.to_owned(), Instant::now());
            self.running.push_back(Running { step, told, since, output: None });
        }
    }

    fn call_ended(&mut self, event: &Event) {
        let Event::CallEnded { step, tool, ok, code, kind, brief, waits, output, diff, exit_code, ms, replayed } =
            event
        else {
            return;
        };
        let place = self.running.iter().position(|running| running.step == *step);
        let is_one_of_many = self.running.len() > 1;
        let running = place.and_then(|place| self.running.remove(place));
        let mut brief = without_digest(brief);
        let code = code.as_deref();
        let mark = End { ok: *ok, waits: *waits, exit_code: *exit_code, code, kind: *kind }.told(&mut brief);
        let again = if *replayed { paint(DIM, " (from before)") } else { String::new() };
        // Of a command that was ended, what was seen of it while it ran.
        let seen = running.as_ref().and_then(|running| running.output.as_deref()).map(last_lines);
        let output = output.clone().filter(|output| output.lines().nth(1).is_some()).or(seen);
        if let Some(output) = output.filter(|_| print::has_asides()) {
            print::note(paint(DIM, quoted(&output)));
            brief.clear();
        }
        let name = match running.filter(|_| is_one_of_many) {
            // Calls that ran at once end in any order.
            Some(running) => running.told,
            None => name(tool),
        };
        let took = paint(DIM, took(*ms));
        print::aside(format_args!("   {mark} {name} {took}{again} {}", paint(DIM, visible(&brief))));
        if let Some(diff) = diff {
            print::aside(print::asked(&quoted(&first_lines(diff))));
        }
    }

    /// Draws what the session does now.
    fn draw(&mut self) {
        if !self.status.is_on() {
            return;
        }
        let mut lines = Vec::new();
        if !self.held.trim().is_empty() {
            lines.push(format!("{QUOTE_MARK}{}", self.held));
        }
        let mut parts = Vec::new();
        if let Some(last) = self.running.back() {
            let output = last.output.as_deref().map(last_lines);
            lines.extend(
                output
                    .iter()
                    .flat_map(|output| output.lines())
                    .map(|line| paint(DIM, format_args!("{QUOTE_MARK}{}", visible_line(line)))),
            );
            parts.push(format!("{} s", last.since.elapsed().as_secs()));
            if self.running.len() > 1 {
                parts.push(format!("{} calls", self.running.len()));
            }
            parts.push(last.told.clone());
        } else if let Some(asked) = self.asked {
            parts.extend([format!("{} s", asked.elapsed().as_secs()), "the model works".to_owned()]);
        } else {
            return self.status.draw(&lines);
        }
        if self.usage.total() > 0 {
            parts.push(format!("{} tokens so far", self.usage.total()));
        }
        parts.extend(self.cost.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.4}")));
        let line = format!("{} {}", self.status.spinner(), parts.join(" · "));
        lines.push(paint(DIM, line));
        self.status.draw(&lines);
    }

    /// Prints the words of an answer that was taken.
    fn settle(&mut self) {
        if let Some(summary) = self.summary.take().filter(|summary| !summary.trim().is_empty()) {
            self.stream(&summary);
            self.close();
        }
    }

    fn stream(&mut self, text: &str) {
        let text = visible(text);
        if text.is_empty() {
            return;
        }
        (self.streamed, self.open) = (true, !text.ends_with('\n'));
        if std::io::stdout().is_terminal() {
            // Line by line, as Markdown is read.
            self.held.push_str(&text);
            while let Some(end) = self.held.find('\n') {
                let line: String = self.held.drain(..=end).collect();
                self.styled(line.trim_end_matches('\n'));
            }
        } else {
            self.stream_beside(text);
        }
    }

    /// A line of the model's at a terminal. Its mark tells it from what the host says.
    fn styled(&mut self, line: &str) {
        self.quoted_lines(|markdown| markdown.line(line));
    }

    fn quoted_lines(&mut self, shown: impl FnOnce(&mut Markdown) -> Vec<String>) {
        for line in shown(&mut self.markdown) {
            print::line(format_args!("{QUOTE_MARK}{line}"));
        }
    }

    /// Text for a program. Where a person reads it beside what the host says, its lines have a mark.
    fn stream_beside(&mut self, mut text: String) {
        let open = self.fold.is_some();
        if print::is_shown_beside_notes() {
            text = marked(&text, open);
            if !open {
                self.fold = Fold::of(&std::io::stderr());
            }
            if let Some(fold) = &mut self.fold {
                text = fold.push(&text);
            }
            // It comes to the terminal by way of another program, and a note may come before it: what is in the middle of
            // a line then would begin one.
            self.held.push_str(&text);
            let whole = self.held.rfind('\n').map_or(0, |end| end + 1);
            text = self.held.drain(..whole).collect();
        }
        if !self.open {
            self.fold = None;
        }
        print::piece(&text);
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let held = std::mem::take(&mut self.held);
            self.fold = None;
            if std::io::stdout().is_terminal() { self.styled(&held) } else { print::line(held) }
        }
        self.quoted_lines(Markdown::rest);
    }

    fn add(&mut self, usage: &Usage, cost: Option<f64>, ms: u64) {
        self.usage.add(usage);
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
        self.elapsed_ms += ms;
    }

    fn budget(&self, turn: u32) -> String {
        let cost = self.cost.filter(|cost| *cost > 0.0).map(|cost| format!(" · ${cost:.4}")).unwrap_or_default();
        let cached = match self.usage.cached_tokens {
            0 => String::new(),
            cached => format!(" ({cached} cached)"),
        };
        let tokens = match self.usage.total() {
            0 => String::new(),
            _ => {
                let about = if self.usage.estimated { "about " } else { "" };
                format!(" · {about}{} tokens in{cached}, {} out", self.usage.input_tokens, self.usage.output_tokens)
            }
        };
        format!("turn {turn}{tokens}{cost} · model {:.1} s", self.elapsed_ms as f64 / 1000.0)
    }
}

/// A call as a sentence: the tool's title, and `: ` with what it works on where there is anything to say.
pub(in crate::commands) fn told_call(registry: Option<&Registry>, tool: &str, arguments: &Value) -> (String, String) {
    let known = registry.and_then(|registry| registry.told_call(tool, arguments));
    let (title, told) = known.unwrap_or_else(|| (name(tool), brief(arguments)));
    let told = if told.is_empty() { told } else { format!(": {told}") };
    (title, told)
}

/// How a call ended.
pub(in crate::commands) struct End<'a> {
    pub(in crate::commands) ok: bool,
    pub(in crate::commands) waits: bool,
    pub(in crate::commands) exit_code: Option<i64>,
    pub(in crate::commands) code: Option<&'a str>,
    pub(in crate::commands) kind: Option<ErrorKind>,
}

impl End<'_> {
    /// In a word or two. The error's code, which is for programs, is taken out of `brief`.
    pub(in crate::commands) fn told(&self, brief: &mut String) -> String {
        if let Some(exit_code) = self.exit_code.filter(|exit_code| self.ok && *exit_code != 0) {
            let style = if FENCE_WORDS.iter().any(|words| brief.contains(words)) { WARN } else { BAD };
            return paint(style, format_args!("exit {exit_code}"));
        }
        if self.waits {
            return paint(WARN, "waits");
        }
        if self.ok {
            return paint(GOOD, "ok");
        }
        let code = self.code.unwrap_or_default();
        let end = brief.rfind(" (").filter(|start| brief[*start..].contains(code));
        brief.truncate(end.unwrap_or(brief.len()));
        match self.kind {
            Some(ErrorKind::Security) => paint(WARN, "fenced off"),
            Some(ErrorKind::Permission) => paint(WARN, "not allowed"),
            Some(ErrorKind::Denied) => paint(WARN, "denied"),
            Some(ErrorKind::Cancelled) => paint(WARN, "cancelled"),
            Some(_) => paint(BAD, "failed"),
            None if code.is_empty() => paint(BAD, "failed"),
            // Of a version that did not keep the kind.
            None => paint(BAD, name(code)),
        }
    }
}

/// What a call has done, without the SHA-256 of a file, which is for whoever edits it next.
fn without_digest(brief: &str) -> String {
    const BEFORE: &str = ", sha256 ";
    let Some((start, rest)) = brief.split_once(BEFORE) else { return brief.to_owned() };
    let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    format!("{start}{}", &rest[end..])
}

fn took(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { format!("{:.1} s", ms as f64 / 1000.0) }
}

/// The last lines of an output, without blank ones at its end.
fn last_lines(output: &str) -> String {
    // What a program draws over again in one line is that line.
    let lines: Vec<&str> =
        output.trim_end().lines().map(|line| line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or("")).collect();
    lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..].join("\n")
}

/// The first lines of a text, and how many more there are.
fn first_lines(text: &str) -> String {
    let all = text.lines().count();
    let mut kept: Vec<&str> = text.lines().take(DIFF_LINES_MAX).collect();
    let more = format!("… {} more lines", all.saturating_sub(kept.len()));
    if all > kept.len() {
        kept.push(&more);
    }
    kept.join("\n")
}

/// A name as a model may have made it up: one line, and not a long one.
fn name(text: &str) -> String {
    let line = visible_line(text);
    match line.char_indices().nth(NAME_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_string(),
    }
}

fn brief(arguments: &Value) -> String {
    let text = visible(&arguments.to_string()).replace('\n', " ");
    match text.char_indices().nth(ARGUMENTS_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

/// The next piece of a text with a mark before each line that begins in it.
fn marked(piece: &str, mut open: bool) -> String {
    let mut shown = String::with_capacity(piece.len());
    for line in piece.split_inclusive('\n') {
        if !open {
            shown.push_str(QUOTE_MARK);
        }
        shown.push_str(line);
        open = !line.ends_with('\n');
    }
    shown
}

/// What a person reads of a model's words in a session on a package: no object as it would be written.
fn told_of_package(text: &str, is_answer: bool) -> String {
    let text = text.trim();
    if is_answer && let Some(summary) = summary_of(text) {
        return summary;
    }
    let mut told: Vec<String> = text.lines().take(ASIDE_LINES_MAX).map(print::cell).collect();
    let more = text.lines().count().saturating_sub(ASIDE_LINES_MAX);
    if more > 0 {
        told.push(format!("… {more} more lines"));
    }
    told.join("\n")
}

/// How a run has ended, and what to do with what it came to.
pub(in crate::commands) fn conclude(result: &LoopResult) {
    let failed = result.calls.iter().filter(|call| call.has_failed()).count();
    if let Some(Answer::Change { change_set_id, warnings, .. }) = &result.answer {
        print::note(format_args!(
            "{} {change_set_id} is staged and valid, with {}; apply it with: toolhost change apply {change_set_id}",
            paint(GOOD, "change set"),
            print::count(warnings.len(), "warning")
        ));
    }
    for id in &result.unvalidated {
        print::note(format_args!(
            "{} {id} is staged but not validated; validate it with: toolhost change validate {id}",
            paint(WARN, "change set")
        ));
    }
    for id in &result.invalid {
        print::note(format_args!(
            "{} {id} is staged but not valid; see why with: toolhost change validate {id}",
            paint(WARN, "change set")
        ));
    }
    let word = match result.status {
        Ending::Completed => paint(GOOD, "done"),
        Ending::Paused => paint(WARN, "paused"),
        Ending::Limited => paint(WARN, "stopped at a limit"),
        Ending::Failed => paint(BAD, "failed"),
        Ending::Cancelled => paint(BAD, "cancelled"),
    };
    let why = result.error.as_ref().map(|error| format!(": {} ({})", visible(&error.message), error.code.as_str()));
    print::note(format_args!("{word}{}", why.unwrap_or_default()));
    let seconds = result.elapsed_ms as f64 / 1000.0;
    let turns = print::count(result.iterations as usize, "turn");
    let calls = print::count(result.calls.len(), "call");
    print::aside(paint(
        DIM,
        format_args!("session {} · {turns}, {calls}, {failed} failed · {seconds:.1} s", result.session),
    ));
}

/// Prints each event as one line of JSON. It leaves out `ended`: the command prints the staged change set first, then `ended`.
pub(in crate::commands) struct Lines;

impl Watch for Lines {
    fn event(&self, event: &Event) {
        if matches!(event, Event::Ended { .. }) {
            return;
        }
        // An event's JSON cannot fail; a closed pipe is the reader's choice.
        let _ = print::json_line(event);
        if !std::io::stdout().is_terminal() {
            let _ = std::io::stdout().flush();
        }
    }
}
