//! The queue of what people are asked: putting in, waiting, deciding.
//!
//! Every place where a person can answer works on the same rows, also another process on another machine. The first
//! answer wins; whoever comes later is told whose it was. Cancel, silence and an unknown answer never mean yes: the only
//! way to a yes is a row that says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio_util::sync::CancellationToken;
use toolhost_contract::BoxFuture;
use toolhost_contract::shell::Analyzed;
use toolhost_contract::{Answer, Approval, Call, CallId, ErrorKind, Pending, Redactor, ToolError, visible};
use toolhost_store::{Ask, AskChange, AskKind, AskState, Asks, Audit, Entry, Event, NewPermit, People, Permit};

use crate::arguments::{Analyzer, Arguments};
use crate::policy::{Looked, Rule};
use crate::profile::Explained;
use crate::registry::Registered;
use crate::shown::Shown;

/// How often a row is looked at that another process may answer.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a person has to answer, and a call to use the answer, unless the operator says otherwise (Cowork's limit).
pub const ASK_LIVES_MS_DEFAULT: u64 = 3_000_000;
/// How long a permission by rule may last.
pub const PERMIT_LIVES_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// How long it lasts where nobody says.
pub const PERMIT_LIVES_MS_DEFAULT: u64 = 8 * 3600 * 1000;

/// An answer, and whether it is to hold for calls like this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub answer: Answer,
    pub rule: Option<Standing>,
}

/// A permission by rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Argument name to glob.
    pub conditions: BTreeMap<String, String>,
    pub lives_ms: u64,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub user_id: i64,
    pub project_id: i64,
    pub name: String,
}

/// What came of showing an ask somewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum Presented {
    Decided(Decision),
    /// Nobody is there any more, or they want to answer later and elsewhere.
    Gone,
}

/// A place where a person can be asked while a call waits.
pub trait Presenter: Send + Sync {
    /// Where the answer comes from, for the audit.
    fn place(&self) -> &'static str;

    fn person(&self) -> Person;

    fn present<'a>(&'a self, ask: &'a Ask, shown: &'a Shown) -> BoxFuture<'a, Presented>;

    /// Somebody else has answered first, or it is too late.
    fn ended(&self, ask: &Ask);
}

/// What happens to a call that needs a person where none can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unattended {
    /// It waits in the queue until somebody answers or it expires.
    #[default]
    Wait,
    Deny,
}

/// The queue of one host.
#[derive(Clone)]
pub struct Queue {
    asks: Asks,
    audit: Audit,
    people: People,
    redactor: Arc<Redactor>,
    /// Rung for every answer that this process gives.
    answered: Arc<Notify>,
}

/// What a person said, as it is about to be written.
pub(crate) struct UnwrittenAnswer {
    row: Entry,
    pub(crate) number: i64,
    pub(crate) answer: Value,
    pub(crate) by: String,
    permit: Option<NewPermit>,
}

impl UnwrittenAnswer {
    fn parts(self) -> (Entry, AskChange) {
        let Self { row, number, answer, by, permit } = self;
        (row, AskChange::Answer { number, answer, by, permit })
    }
}

/// Whether this user is one who may allow it at all.
pub(crate) fn may_allow(user_id: i64, ask: &Ask, shown: &Shown) -> bool {
    !shown.second_person || ask.user_id != user_id
}

/// `ask-7`
pub fn ask_id(number: i64) -> String {
    format!("ask-{number}")
}

/// The number in `ask-7`, or in `7`.
pub fn ask_number(id: &str) -> Option<i64> {
    numbered(id, "ask-")
}

/// What stands for one part of what is shown.
fn part_digest(shown: &Shown, part: usize) -> String {
    format!("{}#{part}", shown.digest())
}

/// `rule-9`
pub fn rule_id(number: i64) -> String {
    format!("rule-{number}")
}

/// The number in `rule-9`, or in `9`.
pub fn rule_number(id: &str) -> Option<i64> {
    numbered(id, "rule-")
}

fn numbered(id: &str, prefix: &str) -> Option<i64> {
    id.strip_prefix(prefix).unwrap_or(id).parse().ok().filter(|number| *number > 0)
}

impl Queue {
    pub fn new(asks: Asks, audit: Audit, people: People, redactor: Arc<Redactor>) -> Self {
        Self { asks, audit, people, redactor, answered: Arc::default() }
    }

    pub fn asks(&self) -> &Asks {
        &self.asks
    }

    /// An ask of the project, with what a person is shown of it.
    pub async fn get(&self, project: i64, number: i64) -> Result<(Ask, Shown), ToolError> {
        let (mut ask, shown) = self.whole(project, number).await?;
        // What somebody wrote in place of a call's arguments may be a secret, and is shown to others.
        ask.answer.iter_mut().for_each(|answer| self.redactor.redact_json(answer));
        Ok((ask, shown))
    }

    /// The same with the answer as it was given, for the call that uses it.
    pub(crate) async fn whole(&self, project: i64, number: i64) -> Result<(Ask, Shown), ToolError> {
        let ask = self.asks.get(project, number).await.map_err(ToolError::from)?.ok_or_else(|| no_ask(number))?;
        if ask.state == AskState::Expired {
            // Whoever is told so must not see it live again when a clock goes back.
            self.asks.expire(project, number).await.map_err(ToolError::from)?;
        }
        let shown = shown(&ask)?;
        Ok((ask, shown))
    }

    /// Hears every answer that this process gives from now on.
    pub(crate) fn listen(&self) -> Notified<'_> {
        self.answered.notified()
    }

    /// Waits until the ask is no longer open. Ends early, with the open ask, after `patience`. Who has found it open since
    /// `heard` listens need not look first.
    pub(crate) async fn settled(
        &self,
        project: i64,
        number: i64,
        heard: Option<Notified<'_>>,
        patience: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Result<Ask, ToolError> {
        let until = patience.map(|patience| tokio::time::Instant::now() + patience);
        let mut heard = heard;
        loop {
            let answered = match heard.take() {
                Some(answered) => answered,
                None => {
                    // Listened for before looking, so that an answer in between is not missed.
                    let answered = self.listen();
                    let state = self.asks.state(project, number).await.map_err(ToolError::internal)?;
                    let late = until.is_some_and(|until| tokio::time::Instant::now() >= until);
                    if state != Some(AskState::Open) || late {
                        return Ok(self.get(project, number).await?.0);
                    }
                    answered
                }
            };
            let pause = tokio::time::Instant::now() + LOOK_EVERY;
            tokio::select! {
                () = answered => {}
                () = tokio::time::sleep_until(until.map_or(pause, |until| until.min(pause))) => {}
                () = cancel.cancelled() => return Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled")),
            }
        }
    }

    /// Writes down that a person has been shown all of an ask. Who agrees to one of several pages must have been.
    pub async fn saw(&self, person: &Person, ask: &Ask, shown: &Shown, place: &'static str) -> Result<(), ToolError> {
        if !shown.is_long() || self.has_seen(person, ask, shown).await? {
            return Ok(());
        }
        let kept = json!({ "ask": ask_id(ask.number), "say": "seen", "place": place, "shown": shown.digest() });
        self.note_seen(person, ask, (shown.digest(), kept), place).await
    }

    /// Adds the row that says so, with what the person was shown.
    async fn note_seen(
        &self,
        person: &Person,
        ask: &Ask,
        (digest, kept): (String, Value),
        place: &'static str,
    ) -> Result<(), ToolError> {
        let row = self.row(person, &ask.call, &ask.tool, Some(ask.digest.clone()), kept, place);
        let change = AskChange::Seen { number: ask.number, account_id: person.user_id, digest, place };
        self.audit.append_with(row, change).await.map_err(refusal)
    }

    /// Writes down that a person has been shown one of the parts that a door shows a long ask in.
    pub async fn saw_part(
        &self,
        person: &Person,
        (ask, shown): (&Ask, &Shown),
        part: usize,
        place: &'static str,
    ) -> Result<(), ToolError> {
        if self.has_seen_part(person, ask, (shown, part)).await? {
            return Ok(());
        }
        let kept = json!({
            "ask": ask_id(ask.number), "say": "seen", "part": part, "place": place, "shown": shown.digest(),
        });
        self.note_seen(person, ask, (part_digest(shown, part), kept), place).await
    }

    async fn has_seen_part(
        &self,
        person: &Person,
        ask: &Ask,
        (shown, part): (&Shown, usize),
    ) -> Result<bool, ToolError> {
        let digest = part_digest(shown, part);
        let seen = self.asks.was_seen(person.project_id, ask.number, person.user_id, &digest).await;
        seen.map_err(ToolError::internal)
    }

    /// Which of so many parts the person has not been shown, from 1.
    pub async fn unseen_parts(
        &self,
        person: &Person,
        (ask, shown): (&Ask, &Shown),
        parts: usize,
    ) -> Result<Vec<usize>, ToolError> {
        let mut unseen = Vec::new();
        for part in 1..=parts {
            if !self.has_seen_part(person, ask, (shown, part)).await? {
                unseen.push(part);
            }
        }
        Ok(unseen)
    }

    async fn has_seen(&self, person: &Person, ask: &Ask, shown: &Shown) -> Result<bool, ToolError> {
        let seen = self.asks.was_seen(person.project_id, ask.number, person.user_id, &shown.digest()).await;
        seen.map_err(ToolError::internal)
    }

    /// Whether a person may say this: it is an answer to what was asked, and they agree to nothing that they were not shown
    /// whole. Every way to an answer passes here.
    pub async fn check(&self, person: &Person, ask: &Ask, shown: &Shown, answer: &Answer) -> Result<(), ToolError> {
        shown.check(answer)?;
        if answer.agrees() && !may_allow(person.user_id, ask, shown) {
            let message = format!(
                "{} is a call in the name of {}: somebody else has to allow it",
                ask_id(ask.number),
                visible(&person.name)
            );
            return Err(
                ToolError::new(ErrorKind::Permission, message).hint("another editor or owner of the project can")
            );
        }
        if answer.agrees() { self.check_seen(person, ask, shown).await } else { Ok(()) }
    }

    /// Whether the person has been shown all of it.
    pub async fn check_seen(&self, person: &Person, ask: &Ask, shown: &Shown) -> Result<(), ToolError> {
        if !shown.is_long() || self.has_seen(person, ask, shown).await? {
            return Ok(());
        }
        let (id, pages) = (ask_id(ask.number), shown.pages().len());
        let message = format!(
            "{} has not been shown all {pages} pages of {id}: `toolhost review show {id} --all` shows them, and then it \
             can be answered so",
            visible(&person.name)
        );
        Err(ToolError::new(ErrorKind::Validation, message))
    }

    /// Writes down what a person says. The first answer stays.
    pub async fn decide(
        &self,
        person: &Person,
        number: i64,
        decision: Decision,
        place: &'static str,
    ) -> Result<Ask, ToolError> {
        self.need_approver(person).await?;
        let (ask, shown) = self.get(person.project_id, number).await?;
        let command = if decision.rule.is_some() {
            let arguments = ask.call.get("arguments").cloned().unwrap_or_default();
            // No call is under way here: the one that asked is another process's, or pending.
            #[expect(clippy::disallowed_methods, reason = "no call is under way")]
            let analyzer: Analyzer = Arc::new(crate::analyze);
            Arguments::analyze(&analyzer, &shown.kinds, arguments).await?.command().cloned()
        } else {
            None
        };
        self.write(self.unwritten(person, (&ask, &shown), (&decision, command.as_ref()), place).await?).await?;
        Ok(self.get(person.project_id, number).await?.0)
    }

    /// What is to be written of a person's answer to an ask in hand, with what its call's command runs, after all that can be known before: what an ask asks never
    /// changes, and whether it is still open is looked at as the answer is written.
    pub(crate) async fn prepare(
        &self,
        person: &Person,
        asked: (&Ask, &Shown),
        said: (&Decision, Option<&Analyzed>),
        place: &'static str,
    ) -> Result<UnwrittenAnswer, ToolError> {
        self.need_approver(person).await?;
        self.unwritten(person, asked, said, place).await
    }

    async fn unwritten(
        &self,
        person: &Person,
        (ask, shown): (&Ask, &Shown),
        (decision, command): (&Decision, Option<&Analyzed>),
        place: &'static str,
    ) -> Result<UnwrittenAnswer, ToolError> {
        let number = ask.number;
        self.check(person, ask, shown, &decision.answer).await?;
        let permit = match &decision.rule {
            Some(standing) => Some(permit((ask, shown), standing, &decision.answer, command)?),
            None => None,
        };
        let answer = serde_json::to_value(&decision.answer).map_err(ToolError::internal)?;
        let mut kept = json!({
            "ask": ask_id(number), "place": place, "effectDigest": ask.effect_digest,
            "rule": decision.rule.as_ref().map(|standing| &standing.conditions),
        });
        if let (Value::Object(kept), Value::Object(answer)) = (&mut kept, &answer) {
            kept.extend(answer.clone());
        }
        // Edited arguments and texts are kept with the ask; the audit shows their beginning and their hash.
        let kept = crate::record::keepable(&kept, &self.redactor, DECISION_STRING_BYTES_MAX);
        let row = self.row(person, &ask.call, &ask.tool, Some(ask.digest.clone()), kept, place);
        Ok(UnwrittenAnswer { row, number, answer, by: person.name.clone(), permit })
    }

    /// Writes down what a person says.
    pub(crate) async fn write(&self, answer: UnwrittenAnswer) -> Result<(), ToolError> {
        let (row, change) = answer.parts();
        self.audit.append_with(row, change).await.map_err(refusal)?;
        self.answered.notify_waiters();
        Ok(())
    }

    /// Writes down what a person says and the row of the call that uses it at once: in one commit, or neither.
    pub(crate) async fn write_and_use(&self, answer: UnwrittenAnswer, started: Entry) -> Result<(), ToolError> {
        let number = answer.number;
        self.audit.append_both(answer.parts(), (started, AskChange::Use { number })).await.map_err(refusal)?;
        self.answered.notify_waiters();
        Ok(())
    }

    /// Takes an answer back that no call has used.
    pub async fn take_back(&self, person: &Person, number: i64, place: &'static str) -> Result<(), ToolError> {
        self.need_approver(person).await?;
        let (ask, _) = self.get(person.project_id, number).await?;
        let kept = json!({ "ask": ask_id(number), "say": "take_back", "place": place });
        let row = self.row(person, &ask.call, &ask.tool, Some(ask.digest.clone()), kept, place);
        self.audit.append_with(row, AskChange::TakeBack { number }).await.map_err(refusal)
    }

    /// Ends a permission by rule.
    pub async fn revoke(&self, person: &Person, number: i64, place: &'static str) -> Result<(), ToolError> {
        self.need_approver(person).await?;
        let kept = json!({ "rule": rule_id(number), "say": "revoke", "place": place });
        let row = self.row(person, &json!({ "id": rule_id(number) }), "approvals.revoke", None, kept, place);
        let change = AskChange::RevokePermit { number, by: person.name.clone() };
        self.audit.append_with(row, change).await.map_err(refusal)
    }

    /// The permission by rule that allows this call, if there is one.
    pub(crate) async fn permit_for(&self, call: &Call, looked: &Looked<'_>) -> Result<Option<Permit>, ToolError> {
        self.permit_in(call.scope.project_id, &call.caller.profile, looked).await
    }

    /// Whether another user than this one has made a rule. One that was made in a client, by whoever controls it, is nobody's.
    pub(crate) async fn is_of_another(&self, permit: &Permit, user_id: i64) -> Result<bool, ToolError> {
        let by = self.people.user(&permit.granted_by).await.map_err(ToolError::from)?;
        Ok(by.is_some_and(|by| by != user_id))
    }

    /// The permission by rule that would allow a call that is explained.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn explain_permit(
        &self,
        project: i64,
        profile: &str,
        tool: &Registered,
        call: &Explained,
    ) -> Result<Option<Permit>, ToolError> {
        let looked = call.arguments.looked(tool);
        if tool.info.facts.approval == Approval::ByPolicy {
            self.permit_in(project, profile, &looked).await
        } else {
            Ok(None)
        }
    }

    async fn permit_in(&self, project: i64, profile: &str, looked: &Looked<'_>) -> Result<Option<Permit>, ToolError> {
        let tool = looked.tool();
        let permits = self.asks.permits_for(project, tool, profile).await.map_err(ToolError::from)?;
        Ok(permits.into_iter().find(|permit| {
            let conditions = serde_json::from_value(permit.conditions.clone()).unwrap_or_default();
            Rule::permission(tool, &conditions).is_ok_and(|rule| rule.matches(looked))
        }))
    }

    pub(crate) fn pending(&self, ask: &Ask) -> Pending {
        Pending { approval_id: ask_id(ask.number), expires_at_ms: ask.expires_at_ms }
    }

    /// Whether somebody may answer what people are asked in their project.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn is_approver(&self, person: &Person) -> Result<bool, ToolError> {
        self.people.is_approver(person.project_id, person.user_id).await.map_err(ToolError::from)
    }

    async fn need_approver(&self, person: &Person) -> Result<(), ToolError> {
        if self.is_approver(person).await? {
            return Ok(());
        }
        let message =
            format!("{} may not decide in this project: it takes the right `approver`", visible(&person.name));
        Err(ToolError::new(ErrorKind::Permission, message).hint("an owner of the project can give you the right"))
    }

    fn row(
        &self,
        person: &Person,
        call: &Value,
        tool: &str,
        digest: Option<String>,
        decision: Value,
        place: &str,
    ) -> Entry {
        Entry {
            event: Event::Decision,
            call_id: CallId::new(call.get("id").and_then(Value::as_str).unwrap_or_default()),
            session_id: None,
            user_id: person.user_id,
            project_id: person.project_id,
            caller: json!({ "door": place, "kind": "person", "persona": person.name }),
            tool: tool.to_owned(),
            effect: None,
            arguments: Value::Null,
            digest,
            decision: Some(decision),
            outcome: None,
            duration_ms: None,
            fence: String::new(),
            trace: toolhost_contract::Trace::None,
        }
    }
}

/// Longest text of a decision that the audit keeps whole, bytes.
const DECISION_STRING_BYTES_MAX: usize = 4096;

pub(crate) fn shown(ask: &Ask) -> Result<Shown, ToolError> {
    serde_json::from_value(ask.shown.clone()).map_err(ToolError::internal)
}

/// What the row says was answered. What is not known is a no.
pub(crate) fn answer_of(ask: &Ask) -> Answer {
    let known = ask.answer.clone().and_then(|answer| serde_json::from_value(answer).ok());
    known.unwrap_or(match ask.kind {
        AskKind::Approval => Answer::Deny { comment: None },
        AskKind::Review | AskKind::Question => Answer::Cancel,
    })
}

/// A rule must allow the very call it was made for, and its reach is what the person was shown or has typed.
fn permit(
    (ask, shown): (&Ask, &Shown),
    standing: &Standing,
    answer: &Answer,
    command: Option<&Analyzed>,
) -> Result<NewPermit, ToolError> {
    let invalid = |message: String| Err(ToolError::new(ErrorKind::Validation, message));
    if *answer != Answer::Allow {
        return invalid("a rule can only be saved with `allow`".to_owned());
    }
    if shown.rule.is_none() {
        return invalid(format!("`{}` is allowed one call at a time, never by a rule", shown.tool));
    }
    if !(1..=PERMIT_LIVES_MS_MAX).contains(&standing.lives_ms) {
        return invalid(format!("a rule lasts from 1 ms to {PERMIT_LIVES_MS_MAX} ms"));
    }
    let rule = Rule::permission(&ask.tool, &standing.conditions)
        .map_err(|problem| ToolError::new(ErrorKind::Validation, format!("the rule is not valid: {problem}")))?;
    let arguments = ask.call.get("arguments").cloned().unwrap_or_default();
    if !rule.matches(&Looked::new(&ask.tool, &shown.kinds, &arguments, command)) {
        return invalid(format!("the rule `{}` would not allow this very call", visible(&rule.text)));
    }
    Ok(NewPermit {
        tool: ask.tool.clone(),
        profile: shown.profile.clone(),
        conditions: serde_json::to_value(&standing.conditions).map_err(ToolError::internal)?,
        lives_ms: standing.lives_ms,
    })
}

pub(crate) fn no_ask(number: i64) -> ToolError {
    ToolError::new(ErrorKind::NotFound, format!("there is no `{}` in this project", ask_id(number)))
        .hint("`toolhost review list` shows what waits for a person")
}

/// What the store refuses is the caller's to know; what fails in it is not.
pub(crate) fn refusal(error: toolhost_store::Error) -> ToolError {
    use toolhost_store::Error as E;
    match error {
        E::NoAsk { number } => no_ask(number),
        E::AskEnded { .. } => ToolError::new(ErrorKind::Conflict, error.to_string()),
        E::NoPermit { .. } => ToolError::new(ErrorKind::NotFound, error.to_string()),
        E::TooManyAsks { .. } | E::TooManyAsksOfSession { .. } | E::TooLargeAsks { .. } => {
            let hint = "wait for the answers to those that are asked already";
            ToolError::new(ErrorKind::Limit, error.to_string()).hint(hint)
        }
        error => error.into(),
    }
}
