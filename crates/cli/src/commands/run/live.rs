//! A session as a person sees it: what is said as it is said, each call with its time and outcome, what it has cost.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use toolhost_agent::model::Usage;
use toolhost_agent::session::{Answer, AnswerForm, Event, LoopResult, Status, Watch, summary_of};

use toolhost_contract::{QUOTE_MARK, quoted, visible_line};

use crate::fold::Fold;
use crate::print::{self, BAD, BOLD, DIM, GOOD, WARN, paint, visible};

/// Characters of a name in a line.
const NAME_CHARS_MAX: usize = 80;
/// Characters of a call's arguments in its line.
const ARGUMENTS_CHARS_MAX: usize = 100;

/// Lines of what a model says beside its calls in a session on a package, where it may copy what it works on.
const ASIDE_LINES_MAX: usize = 6;

/// The terminal.
#[derive(Default)]
pub(in crate::commands) struct Live {
    inner: Mutex<Inner>,
}

impl Live {
    /// For a session with such answers. One on a package answers with JSON that carries whole objects: people are told the
    /// summary in it.
    pub(in crate::commands) fn of(answer: &AnswerForm) -> Self {
        let on_package = matches!(answer, AnswerForm::Change);
        Self { inner: Mutex::new(Inner { on_package, ..Inner::default() }) }
    }
}

struct Inner {
    on_package: bool,
    /// Whether the cursor stands in the middle of streamed text.
    open: bool,
    /// Where that text stands in its line.
    fold: Option<Fold>,
    /// The end of it that is not printed yet.
    held: String,
    /// Whether the text of the turn was streamed as it came.
    streamed: bool,
    /// What a session on a package says of its answer, which is not taken yet.
    summary: Option<String>,
    usage: Usage,
    cost: Option<f64>,
    elapsed_ms: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            on_package: false,
            open: false,
            fold: None,
            held: String::new(),
            streamed: false,
            summary: None,
            usage: Usage::default(),
            cost: Some(0.0),
            elapsed_ms: 0,
        }
    }
}

impl Watch for Live {
    fn event(&self, event: &Event) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Repair { .. } => inner.summary = None,
            Event::Ended { result } if result.status != Status::Completed => inner.summary = None,
            Event::Message { .. } | Event::Asked { .. } | Event::Said { .. } | Event::Ended { .. } => inner.settle(),
            _ => {}
        }
        match event {
            Event::Text { text, .. } if !inner.on_package => inner.stream(text),
            Event::Text { .. } | Event::Thought { .. } | Event::CallProgress { .. } => {}
            Event::Opened { session, model } => {
                print::aside(paint(DIM, format_args!("session {session} with {}", name(model))));
            }
            Event::Message { text } => {
                print::aside(format_args!("{} {}", paint(BOLD, ">"), visible(text)));
            }
            Event::Asked { .. } => inner.streamed = false,
            Event::Again { attempt, wait_ms, why, .. } => {
                inner.close();
                let wait = *wait_ms as f64 / 1000.0;
                print::note(paint(
                    WARN,
                    format_args!("the model's server: {}; attempt {attempt} in {wait:.1} s", visible_line(why)),
                ));
            }
            Event::Said { turn, text, calls, usage, cost, ms, replayed } => {
                let told = if inner.on_package { told_of_package(text, calls.is_empty()) } else { text.clone() };
                if inner.on_package && calls.is_empty() {
                    // It may be sent back.
                    inner.summary = Some(told);
                } else if !inner.streamed && !told.trim().is_empty() {
                    inner.stream(&told);
                }
                // What was recalled is told without having been asked for again.
                inner.streamed = false;
                inner.close();
                inner.add(usage, *cost, *ms);
                if !replayed {
                    print::aside(paint(DIM, inner.budget(turn + 1)));
                }
            }
            Event::CallStarted { tool, arguments, .. } => {
                inner.close();
                print::aside(format_args!(
                    "{} {} {}",
                    paint(DIM, "->"),
                    paint(BOLD, name(tool)),
                    paint(DIM, brief(arguments))
                ));
            }
            Event::CallEnded { tool, ok, code, brief, ms, replayed, .. } => {
                let mark = if *ok { paint(GOOD, "ok") } else { paint(BAD, code.as_deref().unwrap_or("failed")) };
                let again = if *replayed { paint(DIM, " (from before)") } else { String::new() };
                print::aside(format_args!(
                    "   {mark} {} {}{again} {}",
                    name(tool),
                    paint(DIM, format_args!("{ms} ms")),
                    paint(DIM, visible(brief)),
                ));
            }
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
            Event::Ended { .. } => inner.close(),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).settle();
    }
}

impl Inner {
    /// Prints the words of an answer that was taken.
    fn settle(&mut self) {
        if let Some(summary) = self.summary.take().filter(|summary| !summary.trim().is_empty()) {
            self.stream(&summary);
            self.close();
        }
    }

    fn stream(&mut self, text: &str) {
        let mut text = visible(text);
        if text.is_empty() {
            return;
        }
        let is_open = !text.ends_with('\n');
        // Where a person reads it beside what the host says, its lines have a mark; a program is given the text alone.
        if print::is_shown_beside_notes() {
            text = marked(&text, self.open);
            if !self.open {
                self.fold = Fold::of(&std::io::stdout()).or_else(|| Fold::of(&std::io::stderr()));
            }
            if let Some(fold) = &mut self.fold {
                text = fold.push(&text);
            }
            if !std::io::stdout().is_terminal() {
                // It comes to the terminal by way of another program, and a note may come before it: what is in the middle of
                // a line then would begin one.
                self.held.push_str(&text);
                let whole = self.held.rfind('\n').map_or(0, |end| end + 1);
                text = self.held.drain(..whole).collect();
            }
        }
        (self.open, self.streamed) = (is_open, true);
        print::piece(&text);
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            print::line(std::mem::take(&mut self.held));
        }
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
    let failed = result.calls.iter().filter(|call| !call.ok).count();
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
        Status::Completed => paint(GOOD, "done"),
        Status::Paused => paint(WARN, "paused"),
        Status::Limited => paint(WARN, "stopped at a limit"),
        Status::Failed => paint(BAD, "failed"),
        Status::Cancelled => paint(BAD, "cancelled"),
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
