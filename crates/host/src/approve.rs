//! Asking a person.
//!
//! Cancel, silence and an unknown answer never mean yes: whoever implements [`Approver`] answers [`Decision::Deny`]
//! for all of them.

use serde_json::Value;
use toolhost_contract::{CallId, Effect};
use toolhost_sandbox::BoxFuture;

/// A call that policy does not allow without a person.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    pub call_id: CallId,
    pub tool: String,
    pub title: String,
    pub effect: Effect,
    /// Redacted; `digest` covers them whole.
    pub arguments: Value,
    /// What the decision is bound to.
    pub digest: String,
    /// Why policy asks.
    pub why: String,
    /// Who wants it.
    pub persona: String,
    pub profile: String,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// The comment goes back to the model.
    Deny {
        comment: Option<String>,
    },
}

/// A place where a person can be asked.
pub trait Approver: Send + Sync {
    /// Where the answer comes from, for the audit.
    fn place(&self) -> &'static str;

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Decision>;
}

/// Nobody can be asked here, so the answer is no.
#[derive(Debug, Default)]
pub struct NobodyHere;

impl Approver for NobodyHere {
    fn place(&self) -> &'static str {
        "nobody"
    }

    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        let comment = "nobody is here to allow it".to_owned();
        Box::pin(std::future::ready(Decision::Deny { comment: Some(comment) }))
    }
}
