//! Webhooks of a served project, for its owners.

use toolhost::Host;
use toolhost_contract::ToolError;
use toolhost_server::http::{By, Done, WebhookWork};
use toolhost_store::Webhook;

use crate::webhook::ProjectWebhooks;

/// The webhooks of one project.
pub(super) struct OwnersWebhooks {
    pub(super) host: Host,
    pub(super) webhooks: ProjectWebhooks,
}

impl OwnersWebhooks {
    async fn host_of(&self, by: By<'_>) -> Result<Host, ToolError> {
        Ok(self.host.as_user(by.user).await?.through(by.door))
    }
}

impl WebhookWork for OwnersWebhooks {
    fn list<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<Webhook>> {
        Box::pin(async move { self.webhooks.list(self.host_of(by).await?.connection()).await })
    }

    fn add<'a>(&'a self, by: By<'a>, url: &'a str) -> Done<'a, (Webhook, String)> {
        Box::pin(async move { self.webhooks.add(self.host_of(by).await?.connection(), url).await })
    }

    fn remove<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, ()> {
        Box::pin(async move { self.webhooks.remove(self.host_of(by).await?.connection(), id).await })
    }

    fn test<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, u16> {
        Box::pin(async move { self.webhooks.test(self.host_of(by).await?.connection(), id).await })
    }
}
