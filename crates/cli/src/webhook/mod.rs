//! Tells the operator's own server of asks: a signed request when one is opened, and one when it has ended.
//!
//! `toolhost serve` does it where the configuration names a URL, and `review watch --webhook` for the project that is watched. What was
//! sent is kept nowhere: a request is repeated until it is taken, or a bounded number of times, and the next process tells again of what
//! is open by then. The id of an event is the same for all processes, so whoever gets it twice can know.

mod events;
mod everywhere;
mod of_project;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolhost_contract::Redactor;
use toolhost_outbound::webhook::{Endpoint, Error, Message, SigningKey};

pub(crate) use self::events::Watched;
use self::events::{Teller, trial_message};
pub(crate) use self::of_project::ProjectWebhooks;
use crate::keys::Vault;
use crate::notify::NotifyTable;
use crate::settings::Settings;
use crate::{Usage, projects, wire};

/// Messages that wait for their turn; whoever has more to tell waits.
const WAITING_MAX: usize = 64;
/// How long what still waits at the end may take.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// The webhook of the configuration; `None` where it names no URL.
fn endpoint(settings: &Settings) -> anyhow::Result<Option<Endpoint>> {
    let (table, vault) = settings.notify()?;
    let Some(url) = &table.webhook else { return Ok(None) };
    let Some(key) = signing_key(&table, &vault)? else { return Ok(None) };
    Ok(Some(Endpoint::new(url, key, projects::clock())?))
}

/// The operator's key, where there is something to sign.
fn signing_key(table: &NotifyTable, vault: &Vault) -> anyhow::Result<Option<SigningKey>> {
    let Some(name) = table.key_name() else { return Ok(None) };
    let Some((secret, place)) = vault.find(name)? else {
        return Err(Usage::error(format!(
            "the key {name}, which signs webhooks, is missing: `toolhost key set {name}`"
        )));
    };
    SigningKey::parse(secret.reveal()).with_context(|| format!("the key {name} in {place}")).map(Some)
}

fn needed(settings: &Settings) -> anyhow::Result<Endpoint> {
    endpoint(settings)?.ok_or_else(|| {
        Usage::error("no webhook is set: write `webhook = \"https://…\"` below `[notify]` into the configuration")
    })
}

/// Sends a message that says nothing, once. Answers where it went, and the status of the answer.
pub(crate) async fn test(settings: &Settings) -> anyhow::Result<(String, u16)> {
    let endpoint = needed(settings)?;
    let status = endpoint.send(&trial_message()).await.with_context(|| endpoint.origin())?;
    Ok((endpoint.origin(), status))
}

/// What tells of asks, until it is closed.
pub(crate) struct Notifying {
    stop: CancellationToken,
    telling: JoinHandle<()>,
    /// Sends to the operator's own webhook.
    sending: Option<JoinHandle<()>>,
}

impl Notifying {
    /// Tells of the asks of one project.
    ///
    /// # Errors
    /// If no webhook is set, or it cannot be one.
    pub(crate) fn of_one(settings: &Settings, watched: Watched) -> anyhow::Result<Self> {
        let (teller, sending) = start(needed(settings)?);
        let stop = CancellationToken::new();
        let telling = tokio::spawn(teller.tell(watched, stop.clone()));
        Ok(Self { stop, telling, sending: Some(sending) })
    }

    /// Tells of the asks of all projects that a server serves, if a webhook is set.
    ///
    /// # Errors
    /// If what is set cannot be a webhook, or the projects cannot be found.
    pub(crate) fn of_served(settings: &Settings) -> anyhow::Result<Option<Self>> {
        let (endpoint, of_projects) = (endpoint(settings)?, ProjectWebhooks::of(settings)?);
        if endpoint.is_none() && of_projects.is_empty() {
            return Ok(None);
        }
        let place = everywhere::Place::of(settings)?;
        let (operator, sending) = endpoint.map(start).unzip();
        let stop = CancellationToken::new();
        let told = everywhere::Told { operator, owners: of_projects };
        let telling = tokio::spawn(everywhere::tell(place, told, stop.clone()));
        Ok(Some(Self { stop, telling, sending }))
    }

    /// Tells of what has happened until now, and ends.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        let rest = async {
            for task in [Some(self.telling), self.sending].into_iter().flatten() {
                if let Err(error) = task.await {
                    tracing::error!(%error, "the webhook ended early");
                }
            }
        };
        if tokio::time::timeout(CLOSE_WAIT, rest).await.is_err() {
            tracing::warn!("the webhook does not answer: the last messages to it are dropped");
        }
    }
}

/// One task sends all messages in their order: that an ask has ended is never told before it was opened.
fn start(endpoint: Endpoint) -> (Teller, JoinHandle<()>) {
    let (teller, sending) = sender(endpoint);
    (teller, tokio::spawn(sending))
}

/// What tells, and what sends it until nothing more is told.
fn sender(endpoint: Endpoint) -> (Teller, impl Future<Output = ()> + Send + 'static) {
    let (queue, mut waiting) = mpsc::channel::<Message>(WAITING_MAX);
    let sending = async move {
        let mut is_gone = false;
        while let Some(message) = waiting.recv().await {
            if is_gone {
                continue;
            }
            if let Err(error) = endpoint.deliver(&message).await {
                is_gone = matches!(error, Error::Gone);
                tracing::warn!(to = endpoint.origin(), id = message.id, %error, "a message is dropped");
            }
        }
    };
    (Teller::new(queue, Arc::new(Redactor::new(wire::environment()))), sending)
}
