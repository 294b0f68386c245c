//! A session of an agent: what outlives one call and ends with the session.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

/// What the id of each session of an agent begins with; other sessions are what a client calls itself.
pub const SESSION_MARK: &str = "as_";

/// A session of an agent. Commands of the same session share a private `/tmp` and home, and commands in the background end with it.
///
/// Clones are the same session. Sessions that were made apart are different ones, whatever their names are.
#[derive(Debug, Clone)]
pub struct Session {
    life: CancellationToken,
    /// Its address says which session this is.
    identity: Arc<()>,
    /// For whom its calls are made.
    caller: Arc<str>,
}

impl Session {
    /// A session that ends when `life` is cancelled.
    ///
    /// ```
    /// use toolhost_contract::Session;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let (one, other) = (Session::new(CancellationToken::new()), Session::new(CancellationToken::new()));
    /// assert!(one.is_same(&one.clone()) && !one.is_same(&other));
    /// // What one caller leaves behind is not another caller's.
    /// assert!(!one.for_caller("developer").is_same(&one.for_caller("reviewer")));
    /// ```
    #[must_use]
    pub fn new(life: CancellationToken) -> Self {
        Self { life, identity: Arc::new(()), caller: Arc::from("") }
    }

    /// The same session as one caller has it: nothing of it is shared with another caller.
    #[must_use]
    pub fn for_caller(&self, caller: &str) -> Self {
        Self { caller: Arc::from(caller), ..self.clone() }
    }

    /// Whether both are the same session of the same caller.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity) && self.caller == other.caller
    }

    /// Returns when the session has ended.
    pub async fn ended(&self) {
        self.life.cancelled().await;
    }

    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.life.is_cancelled()
    }

    pub fn end(&self) {
        self.life.cancel();
    }

    /// A token that is cancelled when the session ends.
    #[must_use]
    pub fn child_token(&self) -> CancellationToken {
        self.life.child_token()
    }
}
