//! What a model's last word has to be, and what is wrong with it where it is not.
//!
//! The output is summary-only (CrewAgent seed BAI-2, acceptance 7): whole files belong into calls and change sets.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolhost_builder::envelope::Mode;
use toolhost_contract::{CallId, ErrorCode, ErrorKind, JournalError, Outcome, Trace};

use super::calls::Standing;
use super::lines::Lines;
use super::only::{Only, only_object};
use super::run::{Halt, Run, recall};
use super::{CHECK_CALLS, Checked, Entry, TurnStep, step};
use crate::host::is_held;
use crate::model::{Reply, Stop, is_too_deep};
use crate::prompt::mark_untrusted;

/// The places of the calls that stage and discard among the [`CHECK_CALLS`].
const STAGES: usize = 0;
const DISCARDS: usize = 2;
/// Characters of a summary.
const SUMMARY_CHARS_MAX: usize = 6000;
/// Lines in it that are quoted, fenced or indented as code is, in all.
const QUOTED_LINES_MAX: usize = 15;
/// Lines in it that stand so in what the session has written.
const REPEATED_LINES_MAX: usize = 5;
/// Findings of a schema that a model is told, and the bytes of each: it knows what it has said.
const FINDINGS_MAX: usize = 10;
const FINDING_BYTES_MAX: usize = 300;

/// What an answer has to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "form")]
pub enum AnswerForm {
    /// A summary in words.
    Text,
    /// `{responseType: chat|change, assistantSummary, changeSet?}` (CrewAgent seed BAI-2.5). The change set is staged and
    /// validated; a person applies it.
    Change,
    /// JSON that passes a schema.
    Json { schema: Value },
}

/// A good answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "responseType", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Answer {
    Chat { assistant_summary: String },
    Change { assistant_summary: String, change_set_id: String, warnings: Vec<Value> },
    Json { value: Value },
}

/// Looks at the last word of a session.
pub(super) async fn check(run: &Run<'_>, turn: u32, said: &TurnStep, resumed: bool) -> Result<Checked, Halt> {
    let name = step::check(turn);
    if let Some(checked) = recall(run.session.journal, &name)? {
        if let Checked::Bad { discard: Some(set), .. } = &checked {
            discard(run, turn, said, set, true).await?;
        }
        return Ok(checked);
    }
    let opening = &run.session.opening;
    let known = match opening.answer {
        // No text of a file belongs into this answer; a person who asks for words may be answered with what was read.
        AnswerForm::Change => run.seen(),
        AnswerForm::Text | AnswerForm::Json { .. } => run.written(),
    };
    let checked = match read(&opening.answer, opening.entry.as_ref(), &said.reply, &known) {
        Ok(Word::Whole(answer)) => Checked::Good(answer),
        Ok(Word::Change { summary, set }) => stage(run, turn, (said, resumed), summary, set).await?,
        Err(bad) => bad,
    };
    let value = serde_json::to_value(&checked).map_err(|error| JournalError::Failed(error.to_string()))?;
    run.session.journal.keep(&name, value, None).await?;
    if let Checked::Bad { discard: Some(set), .. } = &checked {
        discard(run, turn, said, set, false).await?;
    }
    Ok(checked)
}

/// Discards a set in the model's name, unless an earlier run has.
async fn discard(run: &Run<'_>, turn: u32, said: &TurnStep, set: &str, resumed: bool) -> Result<(), Halt> {
    let [_, _, given] = ids(said)?;
    let former = run.former((turn, DISCARDS), given, resumed)?;
    let id = match run.standing(&former, Trace::None).await? {
        Standing::Done(true) => return Ok(()),
        Standing::New(id) => id,
        // Discarding what is discarded is refused, and changes nothing.
        Standing::Done(false) | Standing::Committed(_) | Standing::Unknown => run.anew(&former).await?,
    };
    let outcome = put(run, id, run.host.own().discard, json!({ "changeSetId": set })).await?;
    match outcome.error {
        // Its draft would be in the way of all that comes instead.
        Some(error) if error.kind == ErrorKind::Denied => {
            let message = format!("{set} may not be applied, and could not be discarded: {}", error.message);
            Err(Halt::Failed(error.code, message))
        }
        _ => Ok(()),
    }
}

/// One call of the check. What was stopped, or waits for a person who has not answered, has said nothing of the answer:
/// whoever resumes the session asks for it again.
async fn put(run: &Run<'_>, id: CallId, tool: &str, arguments: Value) -> Result<Outcome, Halt> {
    // What was found, and under which id this is asked, must be known to whoever comes after a host that dies now.
    run.session.journal.settle().await?;
    let outcome = run.host.call_patiently(id, tool, arguments, &run.stop.calls).await;
    let is_stopped = outcome.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Cancelled);
    if is_held(&outcome) || is_stopped {
        run.stop.check()?;
        return Err(Halt::Failed(ErrorCode::ToolForbidden, format!("`{tool}` was not allowed in time")));
    }
    Ok(outcome)
}

/// The ids of the calls that check an answer: to stage, to validate, to discard.
fn ids(said: &TurnStep) -> Result<&[CallId; CHECK_CALLS], Halt> {
    let ids = said.call_ids.as_slice().try_into();
    ids.map_err(|_| Halt::Failed(ErrorCode::BadResponse, "a turn has no ids for its checks".to_owned()))
}

enum Word {
    Whole(Answer),
    Change { summary: String, set: Value },
}

fn bad(findings: impl Into<String>) -> Checked {
    Checked::Bad { code: ErrorCode::BadResponse, findings: findings.into(), discard: None }
}

fn read(form: &AnswerForm, entry: Option<&Entry>, reply: &Reply, known: &Lines) -> Result<Word, Checked> {
    match reply.stop {
        Stop::Length => return Err(bad("Your answer was cut off: it was longer than a reply may be. Say it shorter.")),
        Stop::Refused => return Err(bad("The provider withheld your answer. Answer again, about the task alone.")),
        Stop::Done | Stop::Calls => {}
    }
    let text = reply.text.trim();
    if text.is_empty() {
        return Err(bad("You said nothing and called nothing. Go on with the task, or give your answer."));
    }
    match form {
        AnswerForm::Text => {
            summary_only(text, known)?;
            Ok(Word::Whole(Answer::Chat { assistant_summary: text.to_owned() }))
        }
        AnswerForm::Json { schema } => json_answer(schema, text),
        AnswerForm::Change => change_answer(text, entry, known),
    }
}

fn json_answer(schema: &Value, text: &str) -> Result<Word, Checked> {
    let value = parse(text, "", None)?;
    let validator = jsonschema::draft202012::new(schema)
        .map_err(|error| bad(format!("The schema of the answer is not one: {error}")))?;
    let finding = |error: jsonschema::ValidationError<'_>| {
        let text = format!("- {}: {}", error.instance_path(), error.masked());
        text[..text.floor_char_boundary(FINDING_BYTES_MAX)].to_owned()
    };
    let found: Vec<String> = validator.iter_errors(&value).take(FINDINGS_MAX).map(finding).collect();
    if found.is_empty() {
        return Ok(Word::Whole(Answer::Json { value }));
    }
    Err(bad(format!("Your answer does not pass its schema:\n{}\nAnswer again with the whole JSON.", found.join("\n"))))
}

fn change_answer(text: &str, entry: Option<&Entry>, known: &Lines) -> Result<Word, Checked> {
    const SHAPE: &str =
        "Answer with exactly {\"responseType\": \"chat\"|\"change\", \"assistantSummary\": \"…\", \"changeSet\": {…}}.";
    let value = parse(text, SHAPE, Some("responseType"))?;
    let Some(fields) = value.as_object() else { return Err(bad(format!("Your answer is not a JSON object. {SHAPE}"))) };
    let may_have = ["responseType", "assistantSummary", "changeSet"];
    if let Some(other) = fields.keys().find(|key| !may_have.contains(&key.as_str())) {
        return Err(bad(format!("Your answer has a field `{other}` that it may not have. {SHAPE}")));
    }
    let Some(summary) = fields.get("assistantSummary").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    else {
        return Err(bad(format!("Your answer has no `assistantSummary`. {SHAPE}")));
    };
    let mut known = known.clone();
    known.add(fields.get("changeSet").unwrap_or(&Value::Null));
    summary_only(summary, &known)?;
    let summary = summary.to_owned();
    match (fields.get("responseType").and_then(Value::as_str), fields.get("changeSet")) {
        (Some("chat"), None | Some(Value::Null)) => Ok(Word::Whole(Answer::Chat { assistant_summary: summary })),
        (Some("chat"), Some(_)) => Err(bad("A `chat` has no `changeSet`; with one it is a `change`.")),
        (Some("change"), Some(set @ Value::Object(_))) => {
            if let Some(found) = not_of_session(set, entry) {
                return Err(bad(format!("{found} Answer again with the whole set.")));
            }
            Ok(Word::Change { summary, set: set.clone() })
        }
        (Some("change"), _) => Err(bad("A `change` needs its `changeSet`, a JSON object.")),
        _ => Err(bad(format!("`responseType` is neither `chat` nor `change`. {SHAPE}"))),
    }
}

/// What of a set is not the session's: its target type, or its mode. `set` has these fields, or names a set by its id.
fn not_of_session(set: &Value, entry: Option<&Entry>) -> Option<String> {
    let Entry { target_type, mode, .. } = entry?;
    let fields = [("targetType", target_type.as_str()), ("mode", mode.as_str())];
    fields.into_iter().find_map(|(field, wanted)| {
        let said = set.get(field)?.as_str().filter(|said| *said != wanted)?;
        Some(format!("Your change set has `{field}: {said}`, and this session is for `{wanted}`."))
    })
}

/// What a session was started to make, if none of its sets has made it: `validated` is what the validation of this one said.
fn not_made(run: &Run<'_>, turn: u32, validated: &Value) -> Result<Option<String>, JournalError> {
    let Some(Entry { mode: Mode::Create, target: Some(target), .. }) = &run.session.opening.entry else {
        return Ok(None);
    };
    let objects = validated.get("objects").and_then(Value::as_array);
    if objects.is_some_and(|objects| objects.contains(&Value::from(target.to_string()))) {
        return Ok(None);
    }
    for earlier in 0..turn {
        if let Some(Checked::Good(Answer::Change { .. })) = recall(run.session.journal, &step::check(earlier))? {
            return Ok(None);
        }
    }
    Ok(Some(format!("Your change set does not make `{target}`, and this session was started to make it.")))
}

/// The summary in an answer of the form [`AnswerForm::Change`], whether or not the rest of it is right.
#[must_use]
pub fn summary_of(text: &str) -> Option<String> {
    let value = parse(text, "", Some("assistantSummary")).ok()?;
    value.get("assistantSummary")?.as_str().map(str::to_owned)
}

fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|rest| rest.trim_end().strip_suffix("```")).unwrap_or(text).trim()
}

/// The JSON of an answer: all of it, or the only object amid other words. `shape` says what is expected, and `mark` is a
/// field that tells it from other objects.
fn parse(text: &str, shape: &str, mark: Option<&str>) -> Result<Value, Checked> {
    let alone = "Answer again with the JSON object alone, and no other word.";
    let value = match (serde_json::from_str(unfenced(text)), only_object(text, mark)) {
        (Ok(value), _) | (Err(_), Only::One(value)) => value,
        (Err(_), Only::Several) => {
            return Err(bad(format!("Your answer has several JSON objects. {alone} {shape}").trim_end()));
        }
        (Err(error), Only::None) => {
            return Err(bad(format!("Your answer is not JSON: {error}. {alone} {shape}").trim_end()));
        }
    };
    if is_too_deep(&value) {
        return Err(bad("Your answer is nested too deeply. Answer again with a flatter JSON."));
    }
    Ok(value)
}

/// The fence that a line opens or closes: its character and how many there are (CommonMark 4.5).
fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|char| *char == mark).count();
    (length >= 3).then_some((mark, length))
}

/// A summary holds no file: nothing long, no long quotation, and little of what was written.
fn summary_only(text: &str, known: &Lines) -> Result<(), Checked> {
    let chars = text.chars().count();
    if chars > SUMMARY_CHARS_MAX {
        return Err(bad(format!(
            "Your summary has {chars} characters; {SUMMARY_CHARS_MAX} is the most. Say what changed, where, its impact, \
             its risk and the next step; no text of files."
        )));
    }
    let told = "It may not carry the text of a file: say what changed, where, its impact, its risk and the next step.";
    let (mut inside, mut quoted, mut repeated) = (None, 0, 0);
    for line in text.lines() {
        let start = line.trim_start();
        // Only a fence of the same kind, at least as long and with nothing behind it ends one.
        match (inside, fence(start)) {
            (None, Some(opened)) => inside = Some(opened),
            (Some((mark, length)), Some(closed))
                if closed.0 == mark && closed.1 >= length && start.trim_end().chars().all(|char| char == mark) =>
            {
                inside = None;
            }
            (Some(_), _) => quoted += 1,
            // Of all quotations together.
            (None, None) => {
                quoted += usize::from(line.starts_with("    ") || line.starts_with('\t') || start.starts_with('>'));
            }
        }
        let bare = start.trim_start_matches(['>', ' ']).trim_end();
        repeated += usize::from(known.has(bare));
        if quoted > QUOTED_LINES_MAX {
            return Err(bad(format!("Your summary quotes more than {QUOTED_LINES_MAX} lines. {told}")));
        }
        if repeated > REPEATED_LINES_MAX {
            return Err(bad(format!(
                "Your summary repeats more than {REPEATED_LINES_MAX} lines of what was read or written. {told}"
            )));
        }
    }
    Ok(())
}

/// Stages and validates a change set in the model's name, through the gate.
async fn stage(
    run: &Run<'_>,
    turn: u32,
    (said, resumed): (&TurnStep, bool),
    summary: String,
    set: Value,
) -> Result<Checked, Halt> {
    let [to_stage, to_validate, _] = ids(said)?;
    run.stop.check()?;
    let named =
        set.get("changeSetId").and_then(Value::as_str).filter(|_| set.as_object().is_some_and(|set| set.len() == 1));
    let name = step::staged(turn);
    let before: Option<String> = recall(run.session.journal, &name)?;
    let id = match named.map(str::to_owned).or(before) {
        Some(id) => id,
        None => {
            let former = run.former((turn, STAGES), to_stage, resumed)?;
            let call = match run.standing(&former, Trace::None).await? {
                Standing::New(id) => id,
                // A set that is open already is not staged twice, whoever staged it.
                Standing::Done(_) | Standing::Committed(_) | Standing::Unknown => run.anew(&former).await?,
            };
            let staged = put(run, call, run.host.own().stage, json!({ "changeSet": set })).await?;
            if let Some(error) = staged.error {
                let details = error.details.map(|details| format!("\n{details}")).unwrap_or_default();
                let hint = error.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
                let found = mark_untrusted(run.host.own().stage, &format!("{}{hint}{details}", error.message));
                let findings = format!("Your change set was not staged. Fix what this says:\n{found}");
                return Ok(Checked::Bad { code: error.code, findings, discard: None });
            }
            let id = staged.data.get("changeSetId").and_then(Value::as_str).ok_or_else(|| shapeless(&staged))?;
            run.session.journal.keep(&name, Value::from(id), None).await?;
            id.to_owned()
        }
    };
    let arguments = json!({ "changeSetId": id });
    // It writes only what it found, so it may run again.
    let call = if resumed { run.host.new_id() } else { to_validate.clone() };
    let found = put(run, call, run.host.own().validate, arguments).await?;
    if let Some(error) = found.error {
        let found = mark_untrusted(run.host.own().validate, &error.message);
        return Ok(Checked::Bad {
            code: error.code,
            findings: format!("Your change set could not be validated:\n{found}"),
            discard: None,
        });
    }
    let is_valid = found.data.get("valid").and_then(Value::as_bool).ok_or_else(|| shapeless(&found))?;
    let data = found.data;
    if is_valid {
        let entry = run.session.opening.entry.as_ref();
        if let Some(found) =
            not_of_session(&data, entry).map_or_else(|| not_made(run, turn, &data), |found| Ok(Some(found)))?
        {
            let findings = format!(
                "{found} {id} was discarded. Stage a set that fits and answer with its id, or answer with the whole set."
            );
            return Ok(Checked::Bad { code: ErrorCode::BadResponse, findings, discard: Some(id) });
        }
        let warnings = data.get("warnings").and_then(Value::as_array).cloned().unwrap_or_default();
        return Ok(Checked::Good(Answer::Change { assistant_summary: summary, change_set_id: id, warnings }));
    }
    let errors = data.get("errors").cloned().unwrap_or_default();
    let errors = mark_untrusted(run.host.own().validate, &errors.to_string());
    Ok(Checked::Bad {
        code: ErrorCode::ValidationFailed,
        findings: format!(
            "Your change set is not valid and was discarded. Fix each of these findings; `hint` says how:\n{errors}\nStage \
             the fixed set and answer with its id, or answer with the whole fixed set."
        ),
        discard: Some(id),
    })
}

fn shapeless(outcome: &Outcome) -> Halt {
    Halt::Failed(ErrorCode::BadResponse, format!("`{}` answered in another shape", outcome.meta.tool))
}
