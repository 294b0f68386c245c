//! The part of the API for webhooks: where the owners of a project want its asks to be told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolhost_contract::ToolError;
use toolhost_store::Webhook;

use super::api_work::{by, work};
use super::envelope::{Reply, data};
use super::routes::{Answer, Asked, Input, Method, NOTHING, Route, Takes, run, schema};
use super::token::Right;

/// The operations of this part.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::Get,
        path: "/projects/{project}/webhooks",
        name: "listWebhooks",
        summary: "The webhooks of the project, the oldest first, for owners",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(Vec<WebhookInfo>)),
        run: run!(list),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/webhooks",
        name: "addWebhook",
        summary: "Adds a webhook: a signed request goes to its URL when an ask is opened and when it ends. The secret that checks the \
                  signatures is in this answer and nowhere else",
        right: Some(Right::Manage),
        takes: Takes { body: Some(Input::Json(schema!(WebhookRequest))), ..NOTHING },
        answer: Answer::Data(schema!(WebhookAdded)),
        run: run!(add),
    },
    Route {
        method: Method::Delete,
        path: "/projects/{project}/webhooks/{webhook}",
        name: "removeWebhook",
        summary: "Removes a webhook; what still waits to be sent to it is dropped",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(WebhookRemoved)),
        run: run!(remove),
    },
    Route {
        method: Method::Post,
        path: "/projects/{project}/webhooks/{webhook}/test",
        name: "testWebhook",
        summary: "Sends a webhook one signed request that says nothing, and answers how it was answered",
        right: Some(Right::Manage),
        takes: NOTHING,
        answer: Answer::Data(schema!(WebhookTested)),
        run: run!(test),
    },
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookRequest {
    /// It begins as the operator lets webhooks begin: `https://…`.
    url: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Webhook")]
struct WebhookInfo {
    id: String,
    url: String,
    created_by: String,
    /// Milliseconds since 1970.
    created_at_ms: i64,
}

#[derive(Serialize, JsonSchema)]
struct WebhookAdded {
    #[serde(flatten)]
    webhook: WebhookInfo,
    /// `whsec_…`, as the libraries of Standard Webhooks take it.
    secret: String,
}

#[derive(Serialize, JsonSchema)]
struct WebhookRemoved {
    id: String,
    removed: bool,
}

#[derive(Serialize, JsonSchema)]
struct WebhookTested {
    id: String,
    /// The status of the answer.
    status: u16,
}

impl From<Webhook> for WebhookInfo {
    fn from(Webhook { id, url, created_by, created_at_ms }: Webhook) -> Self {
        Self { id, url, created_by, created_at_ms }
    }
}

async fn list(asked: Asked) -> Result<Reply, ToolError> {
    let webhooks = work(&asked)?.webhooks().list(by(&asked)).await?;
    data(&webhooks.into_iter().map(WebhookInfo::from).collect::<Vec<_>>())
}

async fn add(mut asked: Asked) -> Result<Reply, ToolError> {
    let WebhookRequest { url } = asked.body()?;
    let (webhook, secret) = work(&asked)?.webhooks().add(by(&asked), &url).await?;
    data(&WebhookAdded { webhook: webhook.into(), secret })
}

async fn remove(asked: Asked) -> Result<Reply, ToolError> {
    let id = asked.part("webhook").to_owned();
    work(&asked)?.webhooks().remove(by(&asked), &id).await?;
    data(&WebhookRemoved { id, removed: true })
}

async fn test(asked: Asked) -> Result<Reply, ToolError> {
    let id = asked.part("webhook").to_owned();
    let status = work(&asked)?.webhooks().test(by(&asked), &id).await?;
    data(&WebhookTested { id, status })
}
