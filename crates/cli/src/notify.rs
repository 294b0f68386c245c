//! The table `[notify]` of the configuration: who is told of asks, besides those who look.

use schemars::JsonSchema;
use serde::Deserialize;

/// The name of the key where the configuration has none.
const KEY_DEFAULT: &str = "TOOLHOST_WEBHOOK_SECRET";

/// The table `[notify]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotifyTable {
    /// The URL that a signed request goes to when an ask is opened and when it ends: `https://…`, or `http://` of this machine.
    pub(crate) webhook: Option<String>,
    /// The name of the key that signs the requests, as `toolhost key set` keeps it; `TOOLHOST_WEBHOOK_SECRET` if left out.
    secret: Option<String>,
    /// How the URLs begin that owners of projects may name as webhooks of their projects. Without one, projects have no webhooks.
    #[serde(default)]
    pub(crate) project_webhooks: Vec<String>,
}

impl NotifyTable {
    /// The name of the key, where there is something to sign.
    pub(crate) fn key_name(&self) -> Option<&str> {
        let signs = self.webhook.is_some() || !self.project_webhooks.is_empty();
        signs.then(|| self.secret.as_deref().unwrap_or(KEY_DEFAULT))
    }
}
