//! The calls of one turn: reads at once, everything else in order, each once.

use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use serde_json::{Value, json};
use toolhost_contract::{
    CallId, ErrorCode, ErrorKind, Fate, JournalError, Meta, Outcome, Progress, ProgressSink, Trace,
};

use toolhost_host::Made;

use super::event::{Event, Watch};
use super::run::{Halt, Run, millis, recall};
use super::{CallStep, CallSummary, ResultForm, TurnStep, step};
use crate::host::{is_held, is_pending};
use crate::model::{Arguments, DEPTH_MAX, Message, ToolCall};
use crate::prompt::mark_untrusted;
use crate::tools::SessionTools;

/// Characters of the one line that people are told of a result.
const BRIEF_CHARS_MAX: usize = 160;
/// The end of a command's output that the journal keeps for people beside its answer: lines, and characters of each.
const OUTPUT_LINES_MAX: usize = 6;
const OUTPUT_LINE_CHARS_MAX: usize = 400;
/// Bytes of a call's diff that the journal keeps for people beside its answer.
const DIFF_BYTES_MAX: usize = 8 * 1024;
/// Characters of broken arguments that the model is shown.
const RAW_CHARS_MAX: usize = 400;

impl Run<'_> {
    /// Runs what a turn asks for, and adds the answers to the conversation in the order in which they were asked for.
    pub(super) async fn run_calls(&mut self, turn: u32, said: &TurnStep, resumed: bool) -> Result<(), Halt> {
        let calls = &said.reply.calls;
        let mut at = 0;
        while at < calls.len() {
            let reads = calls[at..].iter().take_while(|call| self.host.only_reads(&call.name)).count();
            let group = reads.max(1);
            let one = |n: usize| One { turn, n, call: &calls[n], said, resumed, reads: reads > 0 };
            let ended: Vec<Result<(CallStep, bool), Halt>> = {
                let this = &*self;
                let running = (at..at + group).map(|n| this.call_once(one(n)));
                futures::stream::iter(running).buffered(this.limits.parallel_reads.max(1)).collect().await
            };
            let mut took_before = 0;
            for (n, ended) in (at..).zip(ended) {
                let (ended, replayed) = ended?;
                if replayed {
                    took_before = took_before.max(ended.ms);
                }
                self.add_result(step::call(turn, n), &calls[n], ended);
            }
            // The turn's own time was taken before its calls ran.
            self.ran_before(self.before_ms.saturating_add(took_before));
            at += group;
        }
        Ok(())
    }

    fn add_result(&mut self, step: String, call: &ToolCall, ended: CallStep) {
        let mut content = mark_untrusted(&ended.tool, &self.shown(&ended.content, &step));
        // Who waits asks the same again and again, and is right to.
        if !self.host.waits(&call.name)
            && let Some(note) = self.asked_before.note(call, &ended, self.host.only_reads(&call.name))
        {
            content.push_str(&format!("\n{note}"));
        }
        self.sets.note(self.host.own(), &ended);
        match serde_json::from_str(&ended.content) {
            Ok(answer) => self.answered.add(&answer),
            Err(_) => self.answered.add_text(&ended.content),
        }
        self.messages.push(Message::Tool {
            tool_call_id: step.clone(),
            name: call.name.clone(),
            content,
            failed: !ended.ok,
        });
        self.calls.push(ended.summary(step));
    }

    /// What a call came to: in an earlier run, or now.
    async fn call_once(&self, one: One<'_>) -> Result<(CallStep, bool), Halt> {
        let step = step::call(one.turn, one.n);
        if let Some(ended) = recall::<CallStep>(self.session.journal, &step)? {
            self.tell_start(&step, one.call);
            self.tell_end(&step, &ended, true);
            return Ok((ended, true));
        }
        let ended = match self.fate(&one).await? {
            Before::Ended(ended) => {
                self.tell_start(&step, one.call);
                ended
            }
            Before::Nothing { id } => self.call_now(&one, &step, id).await?,
        };
        let value = serde_json::to_value(&ended).map_err(|error| JournalError::Failed(error.to_string()))?;
        self.session.journal.keep(&step, value, None).await?;
        self.tell_end(&step, &ended, false);
        Ok((ended, false))
    }

    /// What became of a call in an earlier run that did not live to keep it.
    async fn fate(&self, one: &One<'_>) -> Result<Before, Halt> {
        let Some(given) = one.said.call_ids.get(one.n) else { return Ok(Before::Nothing { id: self.host.new_id() }) };
        if !one.resumed {
            return Ok(Before::Nothing { id: given.clone() });
        }
        if one.reads {
            // It may have run before under its id, and the audit tells two runs apart by their ids.
            return Ok(Before::Nothing { id: self.host.new_id() });
        }
        let former = self.former((one.turn, one.n), given, true)?;
        let trace = self.host.trace(&one.call.name);
        let id = former.id.clone();
        let meta = self.host.meta(&id, &one.call.name).await;
        let told = |ok: bool, text: &str| {
            let code = (!ok).then_some(ErrorCode::ToolExecution);
            let (tool, brief) =
                (one.call.name.clone(), "told by the audit, for its host ended before it could tell".to_owned());
            let content = self.told(ok, code, text, &meta);
            let code = code.map(|code| code.as_str().to_owned());
            let call_id = id.clone();
            // Only what the audit knows to have begun has become of it.
            let ended = CallStep { ran: true, code, ..CallStep::new(call_id, tool, ok, content, brief) };
            Ok(Before::Ended(ended))
        };
        let asks = self.host.asks(&one.call.name);
        match self.standing(&former, trace).await? {
            Standing::New(id) => Ok(Before::Nothing { id }),
            // Who asks the same again finds what was asked, and its answer.
            Standing::Done(_) | Standing::Committed(_) | Standing::Unknown if asks => {
                Ok(Before::Nothing { id: self.anew(&former).await? })
            }
            Standing::Committed(wrote) => {
                let wrote = self.host.redacted(wrote);
                let text = format!(
                    "This call ran and succeeded, but the host ended before its answer was kept. It was not run again. It \
                     wrote: {wrote}"
                );
                told(true, &text)
            }
            Standing::Done(ok) => {
                let how = if ok { "succeeded" } else { "failed" };
                let text = format!(
                    "This call ran and {how}, but the host ended before its answer was kept. It was not run again. Look \
                     at what it changed before you go on."
                );
                told(ok, &text)
            }
            Standing::Unknown => told(
                false,
                "It is unknown whether this call ran: the host ended while it was under way. It was not run again. Look \
                 at what it would have changed before you decide whether to repeat it.",
            ),
        }
    }

    /// A call that an earlier run may have made, under the id that it was given then or that came after that. A journal
    /// is asked for each step once.
    pub(super) fn former(&self, place: (u32, usize), given: &CallId, resumed: bool) -> Result<Former, Halt> {
        let again = |tries| recall(self.session.journal, &step::again(place.0, place.1, tries));
        let (mut id, mut tries) = (given.clone(), 0);
        while let Some(next) = if resumed { again(tries)? } else { None } {
            (id, tries) = (next, tries + 1);
        }
        Ok(Former { place, id, tries, resumed })
    }

    /// What became of it.
    pub(super) async fn standing(&self, former: &Former, trace: Trace) -> Result<Standing, Halt> {
        if !former.resumed {
            return Ok(Standing::New(former.id.clone()));
        }
        Ok(match self.session.journal.fate(&former.id, trace).await? {
            Fate::NeverStarted => Standing::New(former.id.clone()),
            Fate::Undone => Standing::New(self.anew(former).await?),
            Fate::Ended(outcome) => Standing::Done(outcome.get("ok").and_then(Value::as_bool).unwrap_or(false)),
            Fate::Logged => match self.host.made(&former.id, trace).await {
                Made::No => Standing::New(self.anew(former).await?),
                Made::Yes => Standing::Done(true),
                Made::Unknown => Standing::Unknown,
            },
            Fate::Committed(wrote) => Standing::Committed(wrote),
            Fate::Unknown => Standing::Unknown,
        })
    }

    /// An id to make it again. Known before it is used: the run after this one must ask what became of it.
    pub(super) async fn anew(&self, former: &Former) -> Result<CallId, Halt> {
        let (id, (turn, n)) = (self.host.new_id(), former.place);
        let value = serde_json::to_value(&id).map_err(|error| JournalError::Failed(error.to_string()))?;
        self.session.journal.keep(&step::again(turn, n, former.tries), value, None).await?;
        Ok(id)
    }

    async fn call_now(&self, one: &One<'_>, step: &str, id: CallId) -> Result<CallStep, Halt> {
        self.stop.check()?;
        let arguments = one.call.arguments.value();
        let broken = match &one.call.arguments {
            Arguments::Json(_) => None,
            Arguments::Malformed(raw) => Some(raw),
        };
        let tool = one.call.name.clone();
        if one.n >= self.limits.calls_per_turn {
            let most = self.limits.calls_per_turn;
            let text = format!("not run: at most {most} calls of one turn are run; ask for it again");
            let meta = self.host.meta(&id, &tool).await;
            let content = self.told(false, Some(ErrorCode::LoopLimit), &text, &meta);
            let code = Some(ErrorCode::LoopLimit.as_str().to_owned());
            let brief = brief(&text);
            return Ok(CallStep { code, ..CallStep::new(id, tool, false, content, brief) });
        }
        if !one.reads || is_reread(self.host.own(), &one.call.name) {
            // The gate writes "started" before it runs: the journal has to know which call that is. And who reads an
            // earlier result again reads it from the journal.
            self.session.journal.settle().await?;
        }
        self.tell_start(step, one.call);
        let began = self.session.clock.monotonic();
        let progress = Arc::new(CallProgress::new(step.to_owned(), Arc::clone(self.watch)));
        let told = Some(Arc::<CallProgress>::clone(&progress) as _);
        let written = arguments.get("content").and_then(Value::as_str).map(str::to_owned);
        let mut outcome = self.host.call(id.clone(), &tool, arguments, &self.stop.calls, told).await;
        if self.is_unsaid(&id, &tool, &outcome).await? {
            // Whoever resumes the session asks for it again, and finds the same ask.
            self.stop.check()?;
        }
        progress.keep_output(&mut outcome);
        let ms = millis(self.session.clock.monotonic().saturating_sub(began));
        let error = outcome.error.as_ref().map(|error| error.code);
        let content = match broken {
            Some(raw) => self.told(false, error, &broken_arguments(raw), &outcome.meta),
            None => self.render(&outcome),
        };
        let code = error.map(|code| code.as_str().to_owned());
        let brief = brief(&outcome.text);
        // What waits for a person has not run, and of what failed it is not known here whether it had begun.
        let ran = outcome.ok && outcome.meta.allow_write && !is_pending(&outcome);
        let diff = outcome.meta.allow_write.then(|| diff_of(&outcome.data, written.as_deref())).flatten();
        let (waits, output) = (is_pending(&outcome), output_of(&outcome.data));
        let exit_code = outcome.data.get("exitCode").and_then(Value::as_i64);
        let ended = CallStep::new(id, outcome.meta.tool, outcome.ok, content, brief);
        let kind = outcome.error.as_ref().map(|error| error.kind);
        Ok(CallStep { ran, code, kind, waits, output, diff, exit_code, ms, ..ended })
    }

    /// Whether a call was stopped before a person had answered, and has done nothing.
    async fn is_unsaid(&self, id: &CallId, tool: &str, outcome: &Outcome) -> Result<bool, Halt> {
        if self.stop.check().is_ok() {
            return Ok(false);
        }
        let waits = self.host.waits(tool);
        if is_held(outcome) || waits && is_pending(outcome) {
            return Ok(true);
        }
        if outcome.error.as_ref().is_none_or(|error| error.kind != ErrorKind::Cancelled) {
            return Ok(false);
        }
        Ok(waits || self.has_done_nothing(id, tool).await?)
    }

    /// Whether a call that has ended, or never began, left everything as it was.
    async fn has_done_nothing(&self, id: &CallId, tool: &str) -> Result<bool, Halt> {
        let fate = self.session.journal.fate(id, self.host.trace(tool)).await?;
        Ok(matches!(fate, Fate::NeverStarted | Fate::Undone))
    }

    /// What the loop itself has to say of a call, in the form of a result.
    fn told(&self, ok: bool, code: Option<ErrorCode>, text: &str, meta: &Meta) -> String {
        match self.session.opening.results {
            ResultForm::Text => text.to_owned(),
            ResultForm::Envelope => {
                let error = code.map(|code| json!({ "code": code, "message": text }));
                let data = if ok { json!({ "note": text }) } else { Value::Null };
                json!({ "ok": ok, "data": data, "error": error, "meta": meta }).to_string()
            }
        }
    }

    /// The answer as every door gives it.
    fn render(&self, outcome: &Outcome) -> String {
        match self.session.opening.results {
            ResultForm::Text => outcome.text.clone(),
            ResultForm::Envelope => json!(outcome).to_string(),
        }
    }

    /// A result as the model is shown it: the beginning and the end of one that is too long.
    fn shown(&self, content: &str, step: &str) -> String {
        let chars_max = self.limits.result_chars_max;
        if content.len() <= chars_max {
            return content.to_owned();
        }
        let total = content.chars().count();
        if total <= chars_max {
            return content.to_owned();
        }
        let head: String = content.chars().take(chars_max * 3 / 4).collect();
        let tail: String = content.chars().skip(total - chars_max / 4).collect();
        let left_out = total - chars_max * 3 / 4 - chars_max / 4;
        let how = match self.host.reread() {
            Some(tool) => format!("`{tool}` with handle `{step}` reads them"),
            None => "call the tool again for a part of it".to_owned(),
        };
        format!("{head}\n[{left_out} characters left out; {how}]\n{tail}")
    }

    fn tell_start(&self, step: &str, call: &ToolCall) {
        let (tool, arguments) = (call.name.clone(), call.arguments.value());
        self.watch.event(&Event::CallStarted { step: step.to_owned(), tool, arguments });
    }

    fn tell_end(&self, step: &str, ended: &CallStep, replayed: bool) {
        self.watch.event(&ended.event(step, replayed));
    }
}

/// Where a call stands, as events.
struct CallProgress {
    step: String,
    watch: Arc<dyn Watch>,
    /// The end of what a command has printed.
    output: Mutex<Option<String>>,
}

impl CallProgress {
    fn new(step: String, watch: Arc<dyn Watch>) -> Self {
        Self { step, watch, output: Mutex::default() }
    }

    /// A call that somebody has ended says what its command had printed by then.
    fn keep_output(&self, outcome: &mut Outcome) {
        let Some(error) = outcome.error.as_mut().filter(|error| error.kind == ErrorKind::Cancelled) else { return };
        let Some(output) = self.output.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let had = format!("\nThe end of what it had printed by then:\n{output}");
        error.message.push_str(&had);
        outcome.text.push_str(&had);
    }
}

impl ProgressSink for CallProgress {
    fn report(&self, progress: Progress) {
        let Progress { message, output, .. } = progress;
        if output.is_some() {
            self.output.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&output);
        }
        self.watch.event(&Event::CallProgress { step: self.step.clone(), message, output });
    }
}

/// One call of a turn.
struct One<'a> {
    turn: u32,
    n: usize,
    call: &'a ToolCall,
    said: &'a TurnStep,
    /// The turn was said in an earlier run: this call may have run then.
    resumed: bool,
    reads: bool,
}

/// A call that an earlier run may have made.
pub(super) struct Former {
    place: (u32, usize),
    /// Under which it was made last.
    id: CallId,
    /// How often it was begun again.
    tries: u32,
    resumed: bool,
}

/// What became of a call in an earlier run.
pub(super) enum Standing {
    /// It has changed nothing; it is to be made under this id, of which the audit has no row that says otherwise.
    New(CallId),
    /// It came to its end; whether rightly.
    Done(bool),
    /// Its transaction was committed, and this is what it wrote, as JSON.
    Committed(Value),
    Unknown,
}

/// What is known of a call before it is run.
enum Before {
    /// It has run, or may have, and this is what can be told of it.
    Ended(CallStep),
    /// It has changed nothing; it is to run under this id, of which the audit has no row that says otherwise.
    Nothing { id: CallId },
}

/// Whether a tool reads an earlier result again, by either of its names.
fn is_reread(own: &SessionTools, name: &str) -> bool {
    name.replace('.', "_") == own.read_result
}

impl CallStep {
    fn new(call_id: CallId, tool: String, ok: bool, content: String, brief: String) -> Self {
        Self {
            call_id,
            tool,
            ok,
            ran: false,
            code: None,
            kind: None,
            content,
            brief,
            waits: false,
            output: None,
            diff: None,
            exit_code: None,
            ms: 0,
        }
    }

    /// What is told of it when its session has ended.
    #[must_use]
    pub fn summary(self, step: String) -> CallSummary {
        let Self { call_id, tool, ok, code, exit_code, ms, .. } = self;
        CallSummary { step, call_id, tool, ok, code, exit_code, ms }
    }
}

/// The last lines of what a command has printed, errors behind the rest.
fn output_of(data: &Value) -> Option<String> {
    let (stdout, stderr) = (data.get("stdout")?.as_str()?, data.get("stderr")?.as_str()?);
    let both = [stdout.trim_end(), stderr.trim_end()].join("\n");
    let lines: Vec<&str> = both.lines().filter(|line| !line.is_empty()).collect();
    let last: Vec<String> = lines[lines.len().saturating_sub(OUTPUT_LINES_MAX)..]
        .iter()
        .map(|line| line.chars().take(OUTPUT_LINE_CHARS_MAX).collect())
        .collect();
    (!last.is_empty()).then(|| last.join("\n"))
}

/// The diff of an answer that has one, or that of a file that is new; of a long one the first lines, and how many were left out.
fn diff_of(data: &Value, written: Option<&str>) -> Option<String> {
    let is_new = data.get("created").and_then(Value::as_bool) == Some(true);
    let added =
        written.filter(|_| is_new).map(|text| text.lines().map(|line| format!("+{line}\n")).collect::<String>());
    let diff = data.get("diff").and_then(Value::as_str).map(str::to_owned).or(added).filter(|diff| !diff.is_empty())?;
    let mut kept = String::new();
    for (n, line) in diff.split_inclusive('\n').enumerate() {
        if kept.len() + line.len() > DIFF_BYTES_MAX {
            kept.push_str(&format!("… {} more lines\n", diff.lines().count() - n));
            break;
        }
        kept.push_str(line);
    }
    Some(kept)
}

fn brief(text: &str) -> String {
    // How the arguments were read is for the model.
    let is_told = |line: &&str| !line.trim().is_empty() && !line.starts_with("[toolhost ");
    let mut lines = text.lines().filter(is_told);
    let first = lines.next().unwrap_or_default();
    // A heading such as `[stderr]` says less than what is below it.
    let inner = first.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_heading = inner.is_some_and(|inner| inner.chars().all(char::is_alphabetic));
    if first.ends_with(':') {
        // What is announced says more than that something is.
        let second = lines.next().map(str::trim).unwrap_or_default();
        return format!("{first} {second}").trim_end().chars().take(BRIEF_CHARS_MAX).collect();
    }
    let line = lines.next().filter(|_| is_heading).unwrap_or(first);
    line.chars().take(BRIEF_CHARS_MAX).collect()
}

fn broken_arguments(raw: &str) -> String {
    let problem = match serde_json::from_str::<Value>(raw) {
        Ok(Value::Object(_)) => format!("they are nested deeper than {DEPTH_MAX} levels"),
        Ok(_) => "they are not a JSON object".to_owned(),
        Err(error) => format!("they are not JSON: {error}"),
    };
    let start: String = raw.chars().take(RAW_CHARS_MAX).collect();
    format!(
        "not run: the arguments could not be read, {problem}. They began:\n{start}\nCall again with one JSON object."
    )
}
