//! The port to the projects that a server serves. Who implements it opens them.

use std::sync::Arc;

use super::work::Work;
use toolhost_contract::{BoxFuture, IdSource, ToolError};
use toolhost_host::{Gate, Profile};
use toolhost_store::{Error as StoreError, KeyedCalls, People, Reader, Sessions, StepRow, Tokens};

use crate::mcp::Offers;

/// The projects of a server.
pub trait Projects: Send + Sync {
    /// The keys of all, in no order: what names a project in addresses. It opens none.
    fn keys(&self) -> BoxFuture<'_, Result<Vec<String>, ToolError>>;

    /// Those that are open now, in no order.
    fn opened(&self) -> BoxFuture<'_, Vec<Arc<OpenProject>>>;

    /// One of them, opened if it is not open; `None` if there is none.
    fn open<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<OpenProject>>, ToolError>>;
}

/// What a project tells an MCP client of itself.
pub trait Describe: Send + Sync {
    /// The instructions for an agent of this name with this profile.
    fn instructions<'a>(&'a self, profile: &'a Profile, persona: &'a str) -> BoxFuture<'a, String>;
}

/// A project, open. Whoever holds it keeps it open.
pub struct OpenProject {
    pub key: String,
    pub name: String,
    pub id: i64,
    pub gate: Arc<Gate>,
    pub ids: Arc<dyn IdSource>,
    pub people: People,
    pub tokens: Tokens,
    pub reader: Reader,
    pub sessions: Sessions,
    pub keyed_calls: KeyedCalls,
    pub describe: Arc<dyn Describe>,
    /// `None`: it serves calls and nothing else.
    pub work: Option<Arc<dyn Work>>,
    /// The tools that most work is done with, by canonical name.
    pub core: &'static [&'static str],
    /// What an MCP client is offered besides tools.
    pub offers: &'static Offers,
}

/// Steps of sessions, to be shown. The database keeps what people and models have said unmasked, because a session continues from it; here
/// secrets are masked.
impl OpenProject {
    /// The steps of a session after a number, the oldest first.
    pub(crate) async fn steps(&self, session: &str, after: i64, limit: i64) -> Result<Vec<StepRow>, StoreError> {
        let mut steps = self.sessions.steps(self.id, session, after, limit).await?;
        steps.iter_mut().for_each(|step| self.gate.redact(&mut step.body));
        Ok(steps)
    }

    /// A step by its name, if the session has it.
    pub(crate) async fn step(&self, session: &str, name: &str) -> Result<Option<StepRow>, StoreError> {
        let mut step = self.sessions.step(self.id, session, name).await?;
        step.iter_mut().for_each(|step| self.gate.redact(&mut step.body));
        Ok(step)
    }
}
