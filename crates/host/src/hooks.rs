//! How a caller follows, holds back and ends its call.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, Effect, ErrorKind, ProgressSink, Session, Silent, ToolError};

use crate::names::Names;
use crate::origin::Origin;
use crate::queue::Presenter;
use crate::registry::Registered;

/// How the caller follows and ends a call.
#[derive(Clone)]
pub struct Hooks {
    pub cancel: CancellationToken,
    pub progress: Arc<dyn ProgressSink>,
    /// Where a person can be asked while the call waits.
    pub presenter: Option<Arc<dyn Presenter>>,
    /// How long to wait for an answer from elsewhere; `None`: as the host does ([`Asking::hold`](crate::Asking::hold)).
    pub hold: Option<Duration>,
    /// Ends a wait for a person: the call comes back as pending, and its ask stays open.
    pub let_go: CancellationToken,
    /// What holds the call back before it runs; `None`: nothing but the limits of the host.
    pub pace: Option<Arc<dyn Pace>>,
    /// How the caller's tools are spelled in what it is told.
    pub names: Names,
    /// The caller's session, with which what goes on in the background ends, and `/tmp` and home of its commands; `None`: nothing can go
    /// on, and each command has empty ones.
    pub session: Option<Session>,
    /// The session that reads what goes on in the background; `None`: the one of the call.
    pub reader: Option<String>,
    /// The only tools of the profile that the caller has, by canonical name; `None`: all of them.
    pub only: Option<&'static [&'static str]>,
    /// The tool of the door through which the call was made, where that calls only tools of some effects; `None`: the call named its
    /// tool itself.
    pub through: Option<Through>,
    /// Where the call comes from. Observers of calls are told it.
    pub origin: Option<Arc<Origin>>,
}

/// A tool of a door that calls others, but only tools of some effects.
#[derive(Debug, Clone)]
pub struct Through {
    /// The name that the caller knows it by.
    pub by: String,
    pub effects: &'static [Effect],
    /// Which way is for which tools.
    pub hint: String,
}

impl Through {
    /// # Errors
    /// It is not for tools of this effect.
    pub(crate) fn admit(&self, tool: &Registered) -> Result<(), ToolError> {
        let effect = tool.info.facts.effect;
        if self.effects.contains(&effect) {
            return Ok(());
        }
        let message = format!("`{}` {}, and `{}` calls no such tool", tool.info.name, effect.as_str(), self.by);
        Err(ToolError::new(ErrorKind::Validation, message).hint(self.hint.clone()))
    }
}

/// Holds calls back before they run, so that a door can bound what answers its client has in hand.
///
/// Calls that run commands, git's among them, or wait for a person are not held back: they take their time.
pub trait Pace: Send + Sync {
    /// Whether the call may run at once; it then counts as running.
    fn is_ready(&self) -> bool;

    /// Returns when it may run; it then counts as running. May be dropped at any time.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// The call answers now and goes on in the background: it counts no more.
    fn goes_on(&self);
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
            presenter: None,
            hold: None,
            let_go: CancellationToken::new(),
            pace: None,
            names: Names::default(),
            session: None,
            reader: None,
            only: None,
            through: None,
            origin: None,
        }
    }
}

impl Hooks {
    /// What holds this call back before it runs.
    pub(crate) fn pace_of(&self, tool: &Registered) -> Option<&dyn Pace> {
        self.pace.as_deref().filter(|_| !tool.info.facts.runs_program && !tool.waits())
    }
}
