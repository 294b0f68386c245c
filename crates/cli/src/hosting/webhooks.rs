//! Webhooks of a served project, for its owners.

use toolhost::Host;
use toolhost_server::http::{Done, WebhookWork};
use toolhost_store::Webhook;

use crate::webhook::ProjectWebhooks;

/// The webhooks of one project.
pub(super) struct OwnersWebhooks {
    pub(super) host: Host,
    pub(super) webhooks: ProjectWebhooks,
}

impl WebhookWork for OwnersWebhooks {
    fn list<'a>(&'a self, user: &'a str) -> Done<'a, Vec<Webhook>> {
        Box::pin(async move { self.webhooks.list(self.host.as_user(user).await?.connection()).await })
    }

    fn add<'a>(&'a self, user: &'a str, url: &'a str) -> Done<'a, (Webhook, String)> {
        Box::pin(async move { self.webhooks.add(self.host.as_user(user).await?.connection(), url).await })
    }

    fn remove<'a>(&'a self, user: &'a str, id: &'a str) -> Done<'a, ()> {
        Box::pin(async move { self.webhooks.remove(self.host.as_user(user).await?.connection(), id).await })
    }

    fn test<'a>(&'a self, user: &'a str, id: &'a str) -> Done<'a, u16> {
        Box::pin(async move { self.webhooks.test(self.host.as_user(user).await?.connection(), id).await })
    }
}
