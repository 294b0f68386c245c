//! The HTTP door over real gates, databases and sockets: who may knock, what a token opens, what a call comes to, and how it ends.

#![expect(clippy::unwrap_used, reason = "tests")]

mod api;
mod asks;
mod attachments;
mod batch;
mod browser;
mod browser_hostile;
mod browser_keys;
mod browser_live;
mod builder_by_hand;
mod builder_changes;
mod builder_pages;
mod events;
mod forms;
mod hostile;
mod issuer;
mod keyed;
mod line_feedback;
mod lost;
mod markdown_pages;
mod mcp;
mod metrics;
mod oauth;
mod openapi;
mod opened;
mod openid;
mod pages;
mod project_pages;
mod proxies;
mod record_pages;
mod rig;
mod session_asks;
mod session_pages;
mod split_pages;
mod strangers;
mod tenants;
mod tokens;
mod working;
