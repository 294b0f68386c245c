//! People who answer at once.

use toolhost_host::{ApprovalRequest, Approver, Decision};
use toolhost_sandbox::BoxFuture;

/// Allows whatever is asked.
#[derive(Debug, Default)]
pub struct SaysYes;

impl Approver for SaysYes {
    fn place(&self) -> &'static str {
        "test"
    }

    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::Allow))
    }
}

/// Denies whatever is asked, with a comment.
#[derive(Debug)]
pub struct SaysNo(pub &'static str);

impl Approver for SaysNo {
    fn place(&self) -> &'static str {
        "test"
    }

    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Decision> {
        Box::pin(std::future::ready(Decision::Deny { comment: Some(self.0.to_owned()) }))
    }
}
