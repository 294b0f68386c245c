//! Webhooks of a project, which its owners set: where they may go, what signs them, and what changes them.
//!
//! An owner on a server is not its operator. So the operator lists where such requests may go: otherwise an owner could make the server
//! send to machines that only the server reaches. The key of each webhook is made of the operator's key and the webhook's id, so that no
//! database holds a secret.

use serde_json::json;
use sha2::{Digest, Sha256};
use toolhost::Connection;
use toolhost_contract::{ErrorKind, IdSource, RandomIds, ToolError};
use toolhost_outbound::webhook::{AllowedUrls, Endpoint, SigningKey};
use toolhost_store::{Role, WEBHOOKS_MAX, Webhook};

use super::events::trial_message;
use super::signing_key;
use crate::projects;
use crate::settings::Settings;

/// Longest URL, bytes.
const URL_BYTES_MAX: usize = 2048;
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 24;

/// Where webhooks of projects may go, and what their keys are made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectWebhooks {
    allowed: AllowedUrls,
    /// There is one where anything is allowed.
    key: Option<SigningKey>,
}

impl ProjectWebhooks {
    /// # Errors
    /// If what is configured are no URLs, or the key is missing.
    pub(crate) fn of(settings: &Settings) -> anyhow::Result<Self> {
        let (table, vault) = settings.notify()?;
        let allowed = AllowedUrls::parse(&table.project_webhooks)
            .map_err(|error| crate::Usage::error(format!("`project_webhooks` below `[notify]`: {error}")))?;
        let key = if allowed.is_empty() { None } else { signing_key(&table, &vault)? };
        Ok(Self { allowed, key })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Where a webhook's messages go, if they may: the operator may have changed the list since it was added.
    pub(super) fn endpoint(&self, webhook: &Webhook) -> Result<Endpoint, ToolError> {
        let key = self.check(&webhook.url)?.derive(&purpose(&webhook.id));
        Endpoint::new(&webhook.url, key, projects::clock()).map_err(|error| invalid(&error))
    }

    fn check(&self, url: &str) -> Result<&SigningKey, ToolError> {
        let Some(key) = &self.key else {
            let message = "the operator lets projects have no webhooks";
            return Err(ToolError::new(ErrorKind::Permission, message).hint(
                "the operator lists how their URLs may begin: `project_webhooks = [\"https://…/\"]` below `[notify]`",
            ));
        };
        if self.allowed.covers(url).map_err(|error| invalid(&error))? {
            return Ok(key);
        }
        let message = "the operator does not let webhooks go to this URL";
        Err(ToolError::new(ErrorKind::Permission, message).hint(format!("a URL may begin with {}", self.allowed)))
    }

    /// The oldest first; for owners, since a URL may be a password.
    pub(crate) async fn list(&self, connection: &Connection) -> Result<Vec<Webhook>, ToolError> {
        connection.need_role(Role::Owner).await?;
        Ok(connection.store().webhooks().list(connection.project().id).await?)
    }

    /// Adds a webhook. Answers with it and with the secret that checks its messages.
    pub(crate) async fn add(&self, connection: &Connection, url: &str) -> Result<(Webhook, String), ToolError> {
        connection.need_role(Role::Owner).await?;
        let url = url.trim();
        if url.len() > URL_BYTES_MAX {
            return Err(ToolError::new(ErrorKind::Validation, format!("a URL has {URL_BYTES_MAX} bytes at most")));
        }
        let key = self.check(url)?;
        let id = new_id();
        let (webhooks, project) = (connection.store().webhooks(), connection.project().id);
        let work = async {
            let full = || ToolError::new(ErrorKind::Limit, format!("a project has {WEBHOOKS_MAX} webhooks at most"));
            let added = webhooks.add(project, &id, url, &connection.user().name).await?;
            added.ok_or_else(|| full().hint("remove one"))
        };
        // The audit has the host: the rest may be a password.
        let said = json!({ "webhook": id, "to": Endpoint::origin_of(url) });
        let added = connection.record(&connection.who(), "webhook.add", said, work).await?;
        Ok((added, key.derive(&purpose(&id)).to_secret()))
    }

    pub(crate) async fn remove(&self, connection: &Connection, id: &str) -> Result<(), ToolError> {
        connection.need_role(Role::Owner).await?;
        let (webhooks, project) = (connection.store().webhooks(), connection.project().id);
        let work = async { if webhooks.remove(project, id).await? { Ok(()) } else { Err(missing()) } };
        connection.record(&connection.who(), "webhook.remove", json!({ "webhook": id }), work).await
    }

    /// Sends a message that says nothing, once. Answers the status that it was answered with.
    pub(crate) async fn test(&self, connection: &Connection, id: &str) -> Result<u16, ToolError> {
        connection.need_role(Role::Owner).await?;
        let found = connection.store().webhooks().get(connection.project().id, id).await?;
        let endpoint = self.endpoint(&found.ok_or_else(missing)?)?;
        let work = async {
            let sent = endpoint.send(&trial_message()).await;
            sent.map_err(|error| ToolError::new(ErrorKind::Io, error.to_string()))
        };
        connection.record(&connection.who(), "webhook.test", json!({ "webhook": id }), work).await
    }
}

fn purpose(id: &str) -> String {
    format!("toolhost webhook of a project {id}")
}

fn new_id() -> String {
    let random = RandomIds.call_id();
    format!("wh_{}", &hex::encode(Sha256::digest(random.as_str()))[..ID_DIGITS])
}

fn missing() -> ToolError {
    ToolError::new(ErrorKind::NotFound, "the project has no such webhook")
}

fn invalid(error: &toolhost_outbound::webhook::Error) -> ToolError {
    ToolError::new(ErrorKind::Validation, error.to_string())
}
