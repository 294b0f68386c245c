//! Step 7 of the gate, and what tools ask people: an ask is put into the queue, shown where a person may be, and waited
//! for; its answer is used once.
//!
//! A call whose caller cannot wait ends as "pending", with its ask in the queue. `approval.wait` runs it later as it was
//! stored, through the whole gate again: the gate then finds the answer by the call's digest. A client that simply
//! repeats its call finds the same answer, and the two cannot both use it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::futures::Notified;
use tokio::time::Instant;
use toolhost_contract::BoxFuture;
use toolhost_contract::shell::Analyzed;
use toolhost_contract::workspace::Workspace;
use toolhost_contract::{
    AGENT_DOOR, Answer, Approval, Asked, Call, ErrorKind, Help, Outcome, People, Preview, Question, Success, ToolError,
    Waited, Wanted,
};
use toolhost_store::{Ask, AskChange, AskKind, AskState, NewAsk};

use crate::arguments::Arguments;
use crate::digest::digest;
use crate::gate::{Gate, Hooks, ProfileCatalog, cancelled, json_bytes};
use crate::kinds::ArgumentKinds;
use crate::policy::{Decide, Verdict, suggest};
use crate::profile::Profile;
use crate::queue::{
    Decision, LOOK_EVERY, Presented, Presenter, Unattended, Words, answer_of, ask_id, ask_number, refusal, rule_id,
};
use crate::record::{Record, keepable};
use crate::registry::Registered;
use crate::shown::Shown;
use crate::validate::validate;

/// Outcomes larger than this, in bytes of JSON, are not kept with their ask; the audit says how they ended.
const OUTCOME_BYTES_MAX: usize = 1 << 20;
/// Longest preview that is kept for a person to look at. A call whose effect is longer can only be denied.
const DETAIL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest subject that is kept as it is.
const SUBJECT_BYTES_MAX: usize = 1024;

/// How a call goes on from step 7.
pub(crate) enum Passage<'h> {
    Go {
        arguments: Arguments,
        /// The answer it uses.
        answer: Option<Answered<'h>>,
        /// What its effect rested on when it was allowed.
        approved: Option<Value>,
    },
    /// Nobody has answered yet.
    Pending(Success),
}

/// A person's answer that lets a call run.
pub(crate) enum Answered<'h> {
    /// Its ask says so.
    Written(i64),
    /// They have just said so here; it is written with the row of the call that uses it.
    Spoken(Box<Spoken<'h>>),
}

pub(crate) struct Spoken<'h> {
    words: Words,
    said: Said<'h>,
}

/// A call that policy asks about.
#[derive(Clone, Copy)]
pub(crate) struct Case<'c> {
    pub(crate) call: &'c Call,
    pub(crate) tool: &'c Registered,
    pub(crate) profile: &'c Profile,
    pub(crate) verdict: &'c Verdict,
    pub(crate) hooks: &'c Hooks,
}

/// How asking people ended.
enum Heard<'h> {
    /// The row says so: somebody answered elsewhere, it is too late, or nobody has said anything yet.
    Row(Box<Ask>),
    Said(Box<Said<'h>>),
}

/// What a person said where the call shows its ask; not written down yet.
struct Said<'h> {
    presenter: &'h dyn Presenter,
    ask: Ask,
    shown: Shown,
    decision: Decision,
}

impl Gate {
    pub(crate) async fn approve<'c>(
        &self,
        case: Case<'c>,
        arguments: Arguments,
        record: &mut Record,
    ) -> Result<Passage<'c>, ToolError> {
        let Case { call, tool, verdict, hooks, .. } = case;
        match verdict.decide {
            Decide::Allow => return Ok(Passage::Go { arguments, answer: None, approved: None }),
            Decide::Deny => return Err(denied_by_policy(tool, verdict)),
            Decide::Ask => {}
        }
        let queue = &self.config.queue;
        if tool.info.facts.approval == Approval::ByPolicy
            && let Some(permit) = queue.permit_for(call, &arguments.looked(tool)).await?
        {
            record.decision =
                Some(json!({ "policy": verdict, "rule": rule_id(permit.number), "by": permit.granted_by }));
            return Ok(Passage::Go { arguments, answer: None, approved: None });
        }
        let preview = self.preview(case, &arguments).await?;
        let new = self.new_approval(call, tool, verdict, &arguments, &preview, record)?;
        let listening = queue.listen();
        let ask = queue.asks().open(&new).await.map_err(refusal)?;
        record.decision = Some(json!({ "policy": verdict, "ask": ask_id(ask.number) }));
        match self.hear(ask, listening, call, hooks).await? {
            Heard::Row(ask) => self.answered(case, &ask, arguments, None, record).await,
            Heard::Said(said) if said.decision.answer == Answer::Allow => {
                self.allowed_here(case, *said, arguments, record).await
            }
            Heard::Said(said) => {
                let ask = self.write_down(*said, arguments.command()).await?;
                self.answered(case, &ask, arguments, None, record).await
            }
        }
    }

    /// A person has just said yes, and that is not written down yet.
    async fn allowed_here<'c>(
        &self,
        case: Case<'c>,
        said: Said<'c>,
        arguments: Arguments,
        record: &mut Record,
    ) -> Result<Passage<'c>, ToolError> {
        let queue = &self.config.queue;
        let (person, place) = (said.presenter.person(), said.presenter.place());
        let (words, now) = tokio::join!(
            queue.prepare(&person, (&said.ask, &said.shown), (&said.decision, arguments.command()), place),
            self.preview(case, &arguments),
        );
        let words = words?;
        match now {
            Ok(now) if effect_digest(&now) == said.ask.effect_digest => {
                record.decision = Some(json!({
                    "policy": case.verdict, "ask": ask_id(words.number), "by": words.by, "answer": words.answer.get("say"),
                }));
                let answer = Some(Answered::Spoken(Box::new(Spoken { words, said })));
                Ok(Passage::Go { arguments, answer, approved: Some(now.rests_on) })
            }
            // What they said is written down whatever comes of it.
            now => {
                let ask = self.write_words(words, &said).await?;
                self.answered(case, &ask, arguments, Some(now), record).await
            }
        }
    }

    /// Step 8 for a call that uses a person's answer: its "started" and the use are one commit, with the answer itself where
    /// it was just given. Somebody else may have been faster: then what the row says holds, and comes back as a passage.
    pub(crate) async fn start_answered<'c>(
        &self,
        case: Case<'c>,
        (arguments, answer): (&Arguments, Answered<'c>),
        fence: &str,
        record: &mut Record,
    ) -> Result<Option<Passage<'c>>, ToolError> {
        let row = record.started(case.call, fence);
        let number = match answer {
            Answered::Written(number) => {
                let used = self.config.audit.append_with(row, AskChange::Use { number }).await;
                used.map_err(refusal)?;
                number
            }
            Answered::Spoken(spoken) => {
                let Spoken { words, said } = *spoken;
                match self.config.queue.write_and_use(words, row).await {
                    Ok(()) => said.ask.number,
                    Err(error) if error.kind == ErrorKind::Conflict => {
                        let ask = self.too_late(&said).await?;
                        return self.answered(case, &ask, arguments.clone(), None, record).await.map(Some);
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        record.answer = Some(number);
        record.started = true;
        Ok(None)
    }

    /// Writes down an answer whose call has to wait before it can use it. Somebody else may have been faster: then what the
    /// row says holds.
    pub(crate) async fn settle_answer<'c>(
        &self,
        case: Case<'c>,
        (arguments, approved): (Arguments, Option<Value>),
        spoken: Spoken<'c>,
        record: &mut Record,
    ) -> Result<Passage<'c>, ToolError> {
        let Spoken { words, said } = spoken;
        match self.config.queue.write(words).await {
            Ok(()) => Ok(Passage::Go { arguments, answer: Some(Answered::Written(said.ask.number)), approved }),
            Err(error) if error.kind == ErrorKind::Conflict => {
                let ask = self.too_late(&said).await?;
                self.answered(case, &ask, arguments, None, record).await
            }
            Err(error) => Err(error),
        }
    }

    /// What the row of an ask says of the call that asked. `seen`: what it would do, if that has been looked at.
    async fn answered<'c>(
        &self,
        case: Case<'c>,
        ask: &Ask,
        arguments: Arguments,
        seen: Option<Result<Preview, ToolError>>,
        record: &mut Record,
    ) -> Result<Passage<'c>, ToolError> {
        let Case { call, tool, profile, verdict, hooks } = case;
        if ask.state != AskState::Answered {
            return self.without_answer(ask, tool).map(Passage::Pending);
        }
        record.decision = Some(json!({
            "policy": verdict, "ask": ask_id(ask.number), "by": ask.answered_by, "answer": said(ask),
        }));
        let answer = Some(Answered::Written(ask.number));
        let arguments = match answer_of(ask) {
            Answer::Allow => arguments,
            Answer::AllowEdited { arguments } => {
                // What a person typed passes the same checks as what a model sent.
                let checked = match validate(tool, &arguments) {
                    Ok(()) => self.analyze(tool, profile, arguments, hooks).await,
                    Err(error) => Err(error),
                };
                let admitted = checked.and_then(|arguments| {
                    let verdict = profile.decide(tool, &arguments.looked(tool));
                    if verdict.decide == Decide::Deny { Err(denied_by_policy(tool, &verdict)) } else { Ok(arguments) }
                });
                let arguments = match admitted {
                    Ok(arguments) => arguments,
                    Err(error) => {
                        self.told(call, ask.number, record).await?;
                        return Err(error);
                    }
                };
                let json = &arguments.json;
                record.arguments = keepable(json, &self.config.redactor, self.config.limits.audit_string_bytes);
                record.digest = Some(digest(&tool.info, json, call)?);
                return Ok(Passage::Go { arguments, answer, approved: None });
            }
            answer => {
                self.told(call, ask.number, record).await?;
                let comment = if let Answer::Deny { comment } = answer { comment } else { None };
                return Err(denied_by_person(tool, comment.as_deref()));
            }
        };
        // A person may have looked long ago: what they allowed must still be what would happen.
        let now = match seen {
            Some(seen) => seen?,
            None => self.preview(case, &arguments).await?,
        };
        if effect_digest(&now) != ask.effect_digest {
            self.told(call, ask.number, record).await?;
            let message = format!("what this call of `{}` would do has changed since it was allowed", tool.info.name);
            return Err(ToolError::new(ErrorKind::Conflict, message).hint("look at it anew and ask again"));
        }
        Ok(Passage::Go { arguments, answer, approved: Some(now.rests_on) })
    }

    /// An answer that lets nothing run is told once: who asks the same again asks a person again.
    async fn told(&self, call: &Call, number: i64, record: &mut Record) -> Result<(), ToolError> {
        // Where another call has used it, what became of that one stays with it.
        if self.config.queue.asks().take(call.scope.project_id, number, call.id.as_str()).await.map_err(refusal)? {
            record.answer = Some(number);
        }
        Ok(())
    }

    /// What a person is shown: what the tool says the call would do, or else its arguments.
    async fn preview(&self, case: Case<'_>, arguments: &Arguments) -> Result<Preview, ToolError> {
        let Case { call, tool, profile, hooks, .. } = case;
        let workspace = Workspace::new(Arc::clone(&self.config.executor), profile.fence.clone());
        let shelf =
            ProfileCatalog { gate: self, profile, names: hooks.names, kind: call.caller.kind, only: hooks.only };
        let people = CallPeople { gate: self, call, hooks, tool, digest: String::new(), used: OnceLock::new() };
        let mut ctx = self.ctx(call, &workspace, &shelf, &people, profile, hooks, hooks.cancel.child_token());
        ctx.command = arguments.command();
        let made = tool.tool.preview(&ctx, arguments.json.clone()).await?;
        Ok(made.unwrap_or_else(|| Preview {
            summary: format!("{}: {}", tool.info.name, tool.info.title),
            // Not as the audit keeps them, which shortens them.
            detail: serde_json::to_string_pretty(&self.without_secrets(&arguments.json)).unwrap_or_default(),
            left_out: 0,
            rests_on: Value::Null,
        }))
    }

    fn without_secrets(&self, arguments: &Value) -> Value {
        let mut shown = arguments.clone();
        self.config.redactor.redact_json(&mut shown);
        shown
    }

    /// Nobody is asked to allow what they could not be shown: a command, its input or its folder with what looks like a secret,
    /// which may be a part of what runs, and a path that looks like one.
    fn refuse_hidden(&self, kinds: &ArgumentKinds, arguments: &Arguments) -> Result<(), ToolError> {
        let has_secret = |name: &str| {
            let value = arguments.json.get(name).into_iter();
            let texts = value.flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
            let mut texts = texts.filter_map(Value::as_str);
            texts.any(|text| !self.config.redactor.spans(text).is_empty())
        };
        let Some(name) = kinds.telling().find(|name| has_secret(name)) else { return Ok(()) };
        let message = format!("a part of `{name}` looks like a secret, which nobody is shown, so nobody can be asked");
        Err(ToolError::new(ErrorKind::Validation, message)
            .hint("name secrets by a variable of the environment or a file, and give files other names"))
    }

    fn new_approval(
        &self,
        call: &Call,
        tool: &Registered,
        verdict: &Verdict,
        arguments: &Arguments,
        preview: &Preview,
        record: &Record,
    ) -> Result<NewAsk, ToolError> {
        self.refuse_hidden(&tool.kinds, arguments)?;
        let mut detail = preview.detail.clone();
        self.config.redactor.redact(&mut detail);
        let mut unmasked = format!("{}\n\n{}", preview.summary, preview.detail);
        let mut masked = self.config.redactor.spans(&unmasked).len();
        let mut left_out = preview.left_out;
        for text in [&mut detail, &mut unmasked] {
            if text.len() > DETAIL_BYTES_MAX {
                let kept = text.floor_char_boundary(DETAIL_BYTES_MAX);
                left_out = left_out.max(preview.left_out.saturating_add((text.len() - kept) as u64));
                text.truncate(kept);
            }
        }
        let mut shown_arguments = self.without_secrets(&arguments.json);
        // Whoever edits them begins with all of them, or not at all.
        let whole = json_bytes(&shown_arguments) <= DETAIL_BYTES_MAX && shown_arguments == arguments.json;
        if !whole {
            shown_arguments.clone_from(&record.arguments);
        }
        let mut summary = preview.summary.clone();
        self.config.redactor.redact(&mut summary);
        if masked == 0 && summary == preview.summary && detail == preview.detail {
            unmasked.clear();
        } else {
            masked = masked.max(1);
        }
        let shown = Shown {
            kind: AskKind::Approval,
            summary,
            detail,
            left_out,
            masked,
            unmasked,
            why: verdict.why.clone(),
            arguments: shown_arguments,
            editable: whole && tool.info.facts.approval != Approval::Always,
            // A rule is shown and kept as it is: one over a secret is not offered.
            rule: suggest(&tool.info, &arguments.looked(tool)).filter(|rule| {
                left_out == 0
                    && rule.values().all(|pattern| {
                        let mut shown = pattern.clone();
                        self.config.redactor.redact(&mut shown);
                        shown == *pattern
                    })
            }),
            ..blank(call, tool)
        };
        let mut stored = call.clone();
        stored.arguments = arguments.json.clone();
        self.new_ask(&stored, record.digest.clone().unwrap_or_default(), effect_digest(preview), None, 1, &shown)
    }

    fn new_ask(
        &self,
        call: &Call,
        digest: String,
        effect_digest: String,
        subject: Option<String>,
        round: i64,
        shown: &Shown,
    ) -> Result<NewAsk, ToolError> {
        Ok(NewAsk {
            project_id: call.scope.project_id,
            kind: shown.kind,
            digest,
            effect_digest,
            subject,
            round,
            user_id: call.scope.user_id,
            session_id: call.scope.session_id.clone(),
            tool: shown.tool.clone(),
            call: serde_json::to_value(call).map_err(ToolError::internal)?,
            shown: serde_json::to_value(shown).map_err(ToolError::internal)?,
            lives_ms: self.config.asking.lives_ms,
            limits: self.config.asking.limits,
        })
    }

    /// Shows an open ask where a person may be, and waits for what comes first: an answer from there, one from anywhere
    /// else, the end of its time or of the caller's wish.
    async fn put_to_people(
        &self,
        ask: Ask,
        listening: Notified<'_>,
        call: &Call,
        hooks: &Hooks,
    ) -> Result<Ask, ToolError> {
        match self.hear(ask, listening, call, hooks).await? {
            Heard::Row(ask) => Ok(*ask),
            Heard::Said(said) => self.write_down(*said, None).await,
        }
    }

    /// As [`Gate::put_to_people`]; what a person says here is still to be written. `listening` since before the ask was
    /// looked at.
    async fn hear<'h>(
        &self,
        ask: Ask,
        listening: Notified<'_>,
        call: &Call,
        hooks: &'h Hooks,
    ) -> Result<Heard<'h>, ToolError> {
        if ask.state != AskState::Open {
            return Ok(Heard::Row(Box::new(ask)));
        }
        let (queue, project, number) = (&self.config.queue, self.project_of(&ask), ask.number);
        // The same call, perhaps in another host, may have asked it: then it waits for the answer, too.
        let is_ours = ask.call.get("id").and_then(Value::as_str) == Some(call.id.as_str());
        let mut listening = Some(listening);
        if let Some(presenter) = &hooks.presenter {
            let shown = crate::queue::shown(&ask)?;
            tokio::select! {
                presented = presenter.present(&ask, &shown) => match presented {
                    Presented::Decided(decision) => {
                        let said = Said { presenter: &**presenter, ask, shown, decision };
                        return Ok(Heard::Said(Box::new(said)));
                    }
                    Presented::Gone => {}
                },
                () = hooks.let_go.cancelled() => {
                    presenter.ended(&ask);
                    return Ok(Heard::Row(Box::new(ask)));
                }
                ask = queue.settled(project, number, listening.take(), None, &hooks.cancel) => {
                    let ask = self.or_withdrawn(ask, project, number, is_ours).await?;
                    presenter.ended(&ask);
                    return Ok(Heard::Row(Box::new(ask)));
                }
            }
        }
        if self.config.asking.unattended == Unattended::Deny {
            if is_ours {
                queue.asks().withdraw(project, number).await.map_err(refusal)?;
            }
            let ask = queue.get(project, number).await?.0;
            let state = if ask.state == AskState::Open { AskState::Withdrawn } else { ask.state };
            return Ok(Heard::Row(Box::new(Ask { state, ..ask })));
        }
        let hold = match (hooks.hold, &hooks.presenter) {
            (Some(hold), _) => hold,
            // They have seen it and want to answer later.
            (None, Some(_)) => Duration::ZERO,
            (None, None) => self.config.asking.hold,
        };
        let ask = tokio::select! {
            ask = queue.settled(project, number, listening, Some(hold), &hooks.cancel) => ask,
            () = hooks.let_go.cancelled() => Ok(ask),
        };
        self.or_withdrawn(ask, project, number, is_ours).await.map(|ask| Heard::Row(Box::new(ask)))
    }

    /// Writes down what a person said where they were asked.
    async fn write_down(&self, said: Said<'_>, command: Option<&Analyzed>) -> Result<Ask, ToolError> {
        let Said { presenter, ask, shown, decision } = &said;
        let (person, place) = (presenter.person(), presenter.place());
        let words = self.config.queue.prepare(&person, (ask, shown), (decision, command), place).await?;
        self.write_words(words, &said).await
    }

    /// The ask as it is then, but for the time of its answer.
    async fn write_words(&self, words: Words, said: &Said<'_>) -> Result<Ask, ToolError> {
        let (answer, by) = (words.answer.clone(), words.by.clone());
        match self.config.queue.write(words).await {
            Ok(()) => {
                let ask = said.ask.clone();
                Ok(Ask { state: AskState::Answered, answer: Some(answer), answered_by: Some(by), ..ask })
            }
            Err(error) if error.kind == ErrorKind::Conflict => self.too_late(said).await,
            Err(error) => Err(error),
        }
    }

    /// Somebody was faster, or it is too late: what the row says holds.
    async fn too_late(&self, said: &Said<'_>) -> Result<Ask, ToolError> {
        let (ask, _) = self.config.queue.get(self.project_of(&said.ask), said.ask.number).await?;
        said.presenter.ended(&ask);
        Ok(ask)
    }

    /// A caller that has gone wants no answer any more.
    async fn or_withdrawn(
        &self,
        ask: Result<Ask, ToolError>,
        project: i64,
        number: i64,
        is_ours: bool,
    ) -> Result<Ask, ToolError> {
        if is_ours && ask.as_ref().is_err_and(|error| error.kind == ErrorKind::Cancelled) {
            self.config.queue.asks().withdraw(project, number).await.map_err(refusal)?;
        }
        ask
    }

    fn project_of(&self, ask: &Ask) -> i64 {
        ask.call.pointer("/scope/projectId").and_then(Value::as_i64).unwrap_or_default()
    }

    /// A call that has no answer: it waits, or it is refused.
    fn without_answer(&self, ask: &Ask, tool: &Registered) -> Result<Success, ToolError> {
        let name = &tool.info.name;
        let refused = |message: String| Err(ToolError::new(ErrorKind::Denied, message).hint(HINT_GO_ON));
        match ask.state {
            AskState::Open => {
                let pending = self.config.queue.pending(ask);
                let wait = self.config.registry.helper(Help::AwaitsApproval);
                let how = wait.map(|wait| format!(" `{wait}` with this approvalId runs it as soon as it is allowed."));
                let text = format!(
                    "`{name}` waits for a person's approval as {}. It has not run.{}",
                    pending.approval_id,
                    how.unwrap_or_default()
                );
                let data = json!({
                    "status": "pending_approval", "approvalId": pending.approval_id, "expiresAt": pending.expires_at_ms,
                });
                Ok(Success { data, text, revision: None, workflow: None })
            }
            AskState::Expired => refused(format!("nobody allowed this call of `{name}` in time")),
            AskState::Withdrawn => {
                refused(format!("`{name}` needs a person's approval, and nobody is here to give it"))
            }
            // Another call of the same was faster.
            AskState::Answered | AskState::Used => Err(ToolError::new(
                ErrorKind::Conflict,
                format!("{} has been used by another call", ask_id(ask.number)),
            )),
        }
    }

    /// What is kept of an outcome for whoever asks again; it is written with the row of the call's end, so that who sees
    /// that the call has ended finds what became of it.
    pub(crate) fn kept(&self, number: i64, outcome: &Outcome) -> Option<AskChange> {
        let mut kept = serde_json::to_value(outcome).ok()?;
        if json_bytes(&kept) > OUTCOME_BYTES_MAX {
            kept = json!({ "ok": outcome.ok, "data": null, "error": outcome.error, "meta": outcome.meta });
        }
        if let Value::Object(fields) = &mut kept {
            fields
                .insert("text".to_owned(), outcome.text.chars().take(OUTCOME_BYTES_MAX / 4).collect::<String>().into());
        }
        Some(AskChange::Keep { number, outcome: kept })
    }
}

const HINT_GO_ON: &str = "go on without it, or tell the person what you need";

fn denied_by_policy(tool: &Registered, verdict: &Verdict) -> ToolError {
    let message = format!("policy denies this call of `{}`: {}", tool.info.name, verdict.why);
    ToolError::new(ErrorKind::Denied, message).hint("do the task another way, or tell the person what you need")
}

fn denied_by_person(tool: &Registered, comment: Option<&str>) -> ToolError {
    let because = comment.map(|comment| format!(": {comment}")).unwrap_or_default();
    let message = format!("`{}` needs a person's approval and was not given it{because}", tool.info.name);
    ToolError::new(ErrorKind::Denied, message).hint(HINT_GO_ON)
}

/// The one word of an answer.
fn said(ask: &Ask) -> Value {
    ask.answer.as_ref().and_then(|answer| answer.get("say")).cloned().unwrap_or_default()
}

fn effect_digest(preview: &Preview) -> String {
    let canonical = serde_json_canonicalizer::to_vec(preview).unwrap_or_default();
    hex::encode(Sha256::digest(canonical))
}

fn blank(call: &Call, tool: &Registered) -> Shown {
    Shown {
        kind: AskKind::Question,
        title: tool.info.title.to_string(),
        tool: tool.info.name.to_string(),
        effect: tool.info.facts.effect,
        why: String::new(),
        persona: call.caller.persona.clone(),
        profile: call.caller.profile.clone(),
        summary: String::new(),
        detail: String::new(),
        left_out: 0,
        masked: 0,
        unmasked: String::new(),
        arguments: Value::Null,
        rule: None,
        kinds: tool.kinds.clone(),
        editable: tool.info.facts.approval != Approval::Always,
        wanted: None,
        round: 1,
    }
}

/// The people behind the host, as one call sees them.
pub(crate) struct CallPeople<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) call: &'a Call,
    pub(crate) hooks: &'a Hooks,
    pub(crate) tool: &'a Registered,
    /// Of the call: a review that is asked again by the same call is the same review.
    pub(crate) digest: String,
    /// The ask whose answer the call has used.
    pub(crate) used: OnceLock<i64>,
}

impl People for CallPeople<'_> {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Asked, ToolError>> {
        Box::pin(self.put(question))
    }

    fn wait<'a>(&'a self, approval_id: &'a str, timeout_ms: u64) -> BoxFuture<'a, Result<Waited, ToolError>> {
        Box::pin(self.await_answer(approval_id, timeout_ms))
    }
}

impl CallPeople<'_> {
    async fn put(&self, question: &Question) -> Result<Asked, ToolError> {
        let (queue, scope) = (&self.gate.config.queue, &self.call.scope);
        let subject = subject_key(&question.subject);
        let earlier = queue.asks().rounds(scope.project_id, &subject).await.map_err(ToolError::from)?;
        let round = round(&earlier);
        let kind = match question.wanted {
            Wanted::PassOrEdit | Wanted::PassEditOrFeedback => AskKind::Review,
            Wanted::YesOrNo | Wanted::Text => AskKind::Question,
        };
        let shown = Shown {
            kind,
            title: question.title.clone(),
            summary: question.title.clone(),
            detail: question.text.clone(),
            wanted: Some(question.wanted),
            round,
            ..blank(self.call, self.tool)
        };
        let text = hex::encode(Sha256::digest(question.text.as_bytes()));
        let new = self.gate.new_ask(self.call, self.digest.clone(), text, Some(subject), round, &shown)?;
        let listening = queue.listen();
        let ask = queue.asks().open(&new).await.map_err(refusal)?;
        let ask = self.gate.put_to_people(ask, listening, self.call, self.hooks).await?;
        match ask.state {
            AskState::Open => Ok(Asked::Pending(queue.pending(&ask))),
            AskState::Answered => {
                let taken = queue.asks().take(scope.project_id, ask.number, self.call.id.as_str()).await;
                if !taken.map_err(refusal)? {
                    let message = format!("{} has been used by another call", ask_id(ask.number));
                    return Err(ToolError::new(ErrorKind::Conflict, message));
                }
                // A tool that asks twice is known by its first answer.
                let _ = self.used.set(ask.number);
                let by = ask.answered_by.clone().unwrap_or_default();
                Ok(Asked::Answered { answer: answer_of(&ask), by, round: ask.round })
            }
            AskState::Expired => Err(ToolError::new(ErrorKind::Denied, "nobody answered in time").hint(HINT_GO_ON)),
            AskState::Withdrawn | AskState::Used => {
                Err(ToolError::new(ErrorKind::Denied, "nobody is here to answer").hint(HINT_GO_ON))
            }
        }
    }

    async fn await_answer(&self, approval_id: &str, timeout_ms: u64) -> Result<Waited, ToolError> {
        let (queue, project) = (&self.gate.config.queue, self.call.scope.project_id);
        let unknown = || ToolError::new(ErrorKind::NotFound, format!("there is no `{approval_id}` of yours"));
        let number = ask_number(approval_id).ok_or_else(unknown)?;
        let found = queue.asks().get(project, number).await.map_err(ToolError::from)?.ok_or_else(unknown)?;
        let stored: Call = serde_json::from_value(found.call.clone()).map_err(ToolError::internal)?;
        // What others wait for is as if it were not there.
        let mine = stored.scope.user_id == self.call.scope.user_id
            && stored.scope.project_id == project
            && stored.caller.profile == self.call.caller.profile
            && stored.caller.kind == self.call.caller.kind
            && (stored.caller.door != AGENT_DOOR || stored.scope.session_id == self.call.scope.session_id);
        if !mine {
            return Err(unknown());
        }
        let patience = Duration::from_millis(timeout_ms);
        let until = Instant::now() + patience;
        let ask = tokio::select! {
            ask = queue.settled(project, number, None, Some(patience), &self.hooks.cancel) => ask?,
            () = self.hooks.let_go.cancelled() => found,
        };
        match ask.state {
            AskState::Open => Ok(Waited::Pending(queue.pending(&ask))),
            AskState::Expired => Ok(Waited::Expired),
            AskState::Withdrawn => Ok(Waited::Withdrawn),
            AskState::Used => self.used(&ask, until).await,
            AskState::Answered => {
                self.check_its_own(&ask, &stored).await?;
                let gate = self.gate;
                let id = gate.config.ids.call_id();
                // Nobody is shown anything anew: the answer is there.
                let hooks = Hooks { presenter: None, ..self.hooks.clone() };
                let outcome = gate.conduct(Call { id, ..stored }, hooks).await;
                let mut finished = serde_json::to_value(&outcome).map_err(ToolError::internal)?;
                if let Value::Object(fields) = &mut finished {
                    fields.insert("text".to_owned(), outcome.text.into());
                }
                Ok(Waited::Finished { outcome: finished })
            }
        }
    }

    /// A call that was allowed is run for whoever asked. Another session runs it only where the one that asked has died.
    async fn check_its_own(&self, ask: &Ask, stored: &Call) -> Result<(), ToolError> {
        let same = stored.scope.session_id == self.call.scope.session_id
            && stored.caller.persona == self.call.caller.persona
            && stored.scope.ticket_id == self.call.scope.ticket_id;
        let alive = match &ask.host {
            _ if same => false,
            Some(host) => self.gate.config.audit.is_alive(host).await.map_err(ToolError::from)?,
            None => false,
        };
        if !alive {
            return Ok(());
        }
        let message = format!("{} has its answer, and is for the session that asked to run", ask_id(ask.number));
        Err(ToolError::new(ErrorKind::Conflict, message).hint("that session is still there; make a call of your own"))
    }

    /// What became of the call that used the answer; while it runs, it is waited for.
    async fn used(&self, ask: &Ask, until: Instant) -> Result<Waited, ToolError> {
        let (asks, project) = (self.gate.config.queue.asks(), self.call.scope.project_id);
        let by = ask.used_by.as_deref().unwrap_or_default();
        loop {
            let running = asks.is_running(project, by).await.map_err(ToolError::from)?;
            // Looked at after that: its outcome is kept before it is known to have ended.
            let now = asks.get(project, ask.number).await.map_err(ToolError::from)?;
            if let Some(outcome) = now.and_then(|ask| ask.outcome) {
                return Ok(Waited::Finished { outcome });
            }
            if !running {
                return Ok(Waited::Unknown);
            }
            if Instant::now() >= until {
                return Ok(Waited::Running);
            }
            // Its host may have died since this one looked; else nobody would ever say so.
            self.gate.config.audit.close_orphans().await.map_err(ToolError::from)?;
            tokio::select! {
                () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)) => {}
                () = self.hooks.cancel.cancelled() => return Err(cancelled()),
            }
        }
    }
}

/// A subject as it is looked up by: no database's index takes a text of any length, nor any character.
fn subject_key(subject: &str) -> String {
    if subject.len() <= SUBJECT_BYTES_MAX && !subject.contains('\0') {
        return subject.to_owned();
    }
    format!("sha256:{}", hex::encode(Sha256::digest(subject.as_bytes())))
}

/// Which round it is since the last one that settled the matter. The same question asked again is the same round.
fn round(earlier: &[Ask]) -> i64 {
    let settled = earlier.iter().rposition(|ask| {
        ask.answer.is_some() && matches!(answer_of(ask), Answer::Pass | Answer::Edit { .. } | Answer::Cancel)
    });
    let since = &earlier[settled.map_or(0, |n| n + 1)..];
    let answered = since.iter().filter(|ask| ask.answer.is_some()).count();
    i64::try_from(answered).unwrap_or(i64::MAX).saturating_add(1)
}
