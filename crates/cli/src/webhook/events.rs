//! The asks of one project as events: what is sent of them, and when.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{Clock, Redactor, visible_line};
use toolhost_host::ask_id;
use toolhost_outbound::webhook::Message;
use toolhost_store::{Ask, AskState, Asks};

use crate::{print, projects};

/// How often the asks of a project are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Numbers of new asks that are read at once.
const PAGE: i64 = 200;
/// Longest title, characters.
const TITLE_CHARS_MAX: usize = 200;

/// A project whose asks are told.
pub(crate) struct Watched {
    pub(crate) name: String,
    /// What names it in addresses.
    pub(crate) key: String,
    pub(crate) id: i64,
    pub(crate) asks: Asks,
}

/// Tells of asks. Cloning it is cheap.
#[derive(Clone)]
pub(super) struct Teller {
    queue: mpsc::Sender<Message>,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
}

/// What has been told.
struct Told {
    /// The newest ask that is known.
    last: i64,
    /// Those that are known and not told, the oldest first.
    untold: VecDeque<i64>,
    /// Those that were open when they were last looked at.
    open: BTreeSet<i64>,
}

impl Teller {
    pub(super) fn new(queue: mpsc::Sender<Message>, redactor: Arc<Redactor>) -> Self {
        Self { queue, redactor, clock: projects::clock() }
    }

    /// Tells of each ask of the project, and once more when it has ended; until `stop`, and then of what has happened by then.
    pub(super) async fn tell(self, watched: Watched, stop: CancellationToken) {
        let mut told = None;
        let mut failed = false;
        loop {
            let is_last = stop.is_cancelled();
            let looked = self.look(&watched, &mut told).await;
            // Said once: a database that is away stays so for a while.
            if let (Err(error), false) = (&looked, failed) {
                tracing::warn!(project = watched.key, %error, "the asks cannot be read for the webhook");
            }
            failed = looked.is_err();
            if is_last {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn look(&self, watched: &Watched, told: &mut Option<Told>) -> toolhost_store::Result<()> {
        let Watched { id, asks, .. } = watched;
        let told = match told {
            Some(told) => told,
            None => {
                // What ended before this process could tell of it is not told.
                let last = asks.newest(*id, 1).await?.asks.first().map_or(0, |ask| ask.number);
                let untold = asks.open_numbers(*id).await?.into_iter().filter(|number| *number <= last).collect();
                told.insert(Told { last, untold, open: BTreeSet::new() })
            }
        };
        loop {
            // It stays among the untold until it is told: the database may be away meanwhile.
            while let Some(number) = told.untold.front().copied() {
                if let Some(ask) = asks.get(*id, number).await? {
                    self.send(watched, "ask.opened", &ask).await;
                    told.open.insert(number);
                }
                told.untold.pop_front();
            }
            told.untold.extend(asks.numbers_after(*id, told.last, PAGE).await?);
            let Some(newest) = told.untold.back() else { break };
            told.last = *newest;
        }
        if told.open.is_empty() {
            return Ok(());
        }
        let open: BTreeSet<i64> = asks.open_numbers(*id).await?.into_iter().collect();
        let ended: Vec<i64> = told.open.difference(&open).copied().collect();
        for number in ended {
            // One that is not kept any more has ended long ago.
            if let Some(ask) = asks.get(*id, number).await?
                && let Some(event) = end_of(&ask)
            {
                self.send(watched, event, &ask).await;
            }
            told.open.remove(&number);
        }
        Ok(())
    }

    /// Waits while too many messages wait.
    async fn send(&self, watched: &Watched, event: &'static str, ask: &Ask) {
        // The receiver is gone only when the program ends.
        let _ = self.queue.send(self.message(watched, event, ask)).await;
    }

    /// What is told: nothing of arguments, of files, and of what a person wrote.
    fn message(&self, watched: &Watched, event: &'static str, ask: &Ask) -> Message {
        let now = self.clock.unix_ms();
        let shown = |field: &str| self.plain(ask.shown.get(field).and_then(Value::as_str).unwrap_or_default());
        let said = ask.answer.as_ref().and_then(|answer| answer.get("say")).and_then(Value::as_str);
        let at = match event {
            "ask.opened" => ask.created_at_ms,
            "ask.expired" => ask.expires_at_ms,
            _ => ask.answered_at_ms.unwrap_or(now),
        };
        let body = json!({
            "type": event,
            "timestamp": print::time(at),
            "data": {
                "project": self.plain(&watched.name),
                "projectKey": watched.key,
                "id": ask_id(ask.number),
                "kind": ask.kind,
                "state": ask.state,
                "tool": ask.tool,
                "title": shown("title"),
                "risk": shown("effect"),
                "askedBy": shown("persona"),
                "profile": shown("profile"),
                "session": ask.session_id,
                "openedAt": print::time(ask.created_at_ms),
                "expiresAt": print::time(ask.expires_at_ms),
                "ageSeconds": now.saturating_sub(ask.created_at_ms).max(0) / 1000,
                "answer": said,
                "answeredBy": ask.answered_by.as_deref().map(|by| self.plain(by)),
            },
        });
        Message { id: id_of(watched, ask, event), body: body.to_string() }
    }

    /// One line without secrets: an agent may have written it.
    fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.redactor.redact(&mut text);
        visible_line(&print::first_line(&text)).chars().take(TITLE_CHARS_MAX).collect()
    }
}

/// What the end of an ask is called. An answer that nobody used in time, or that was taken back, was given all the same.
fn end_of(ask: &Ask) -> Option<&'static str> {
    match ask.state {
        AskState::Open => None,
        _ if ask.answered_by.is_some() => Some("ask.decided"),
        AskState::Expired => Some("ask.expired"),
        _ => Some("ask.withdrawn"),
    }
}

/// An id that every process makes the same way, so that a message about one event has one id.
fn id_of(watched: &Watched, ask: &Ask, event: &str) -> String {
    let of = format!("{}\n{}\n{}\n{}\n{event}", watched.key, watched.id, ask.number, ask.created_at_ms);
    format!("msg_{}", &hex::encode(Sha256::digest(of))[..32])
}

/// A message that tells of nothing.
pub(super) fn trial_message() -> Message {
    let now = projects::clock().unix_ms();
    let body = json!({ "type": "toolhost.test", "timestamp": print::time(now), "data": {} });
    let id = toolhost_contract::IdSource::call_id(&toolhost_contract::RandomIds);
    Message { id: format!("msg_{id}"), body: body.to_string() }
}
