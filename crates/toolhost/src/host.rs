//! A host, open: calls through its gate, and what the facade does besides.

use std::sync::Arc;

use serde_json::Value;
use toolhost_agent::SessionObserver;
use toolhost_contract::workspace::Executor;
use toolhost_contract::{Call, Caller, CallerKind, Clock, IdSource, Outcome, Scope};
use toolhost_deploy::Deployment;
use toolhost_host::{Asking, Gate, Hooks, Registry};
use toolhost_records::Records;
use toolhost_records::Ticket;
use toolhost_sandbox::LocalExecutor;
use toolhost_store::Store;

use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::kit::Kit;
use crate::package::Packages;
use crate::place::{self, Place};

/// The profile of calls that a person makes through the embedding program.
pub const PROFILE_OF_PEOPLE: &str = "all";

/// The tools of one project behind their gate, in the name of one user. Cloning it is cheap.
#[derive(Clone)]
pub struct Host {
    connection: Connection,
    gate: Arc<Gate>,
    registry: Arc<Registry>,
    local: Option<Arc<LocalExecutor>>,
    deployment: Option<Deployment>,
    executor: Arc<dyn Executor>,
    /// The ticket that all calls are about.
    ticket: Option<String>,
    asking: Asking,
    clock: Arc<dyn Clock>,
    session_observer: Option<Arc<dyn SessionObserver>>,
}

impl Host {
    pub(crate) fn new(
        connection: Connection,
        gate: Arc<Gate>,
        kit: Kit,
        executor: Arc<dyn Executor>,
        (asking, clock, session_observer): (Asking, Arc<dyn Clock>, Option<Arc<dyn SessionObserver>>),
    ) -> Self {
        let Kit { registry, local, deployment, .. } = kit;
        let ticket = None;
        Self { connection, gate, registry, local, deployment, executor, ticket, asking, clock, session_observer }
    }

    /// The same host for another user of the project.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn as_user(&self, name: &str) -> Result<Self> {
        Ok(Self { connection: self.connection.as_user(name).await?, ticket: None, ..self.clone() })
    }

    /// The same host, whose calls and deeds come through this door, as the audit names it.
    #[must_use]
    pub fn through(self, door: &'static str) -> Self {
        Self { connection: self.connection.through(door), ..self }
    }

    /// The same host for another project without a workspace, which is created if it is new and then belongs to the user: a
    /// service opens one host and a project for each tenant.
    ///
    /// # Errors
    /// [`Error::OneProject`] if this host has a workspace; if the name cannot be one, or there is no such user.
    pub async fn open_project(&self, name: &str, user: &str) -> Result<Self> {
        if self.local.is_some() {
            return Err(Error::OneProject { project: name.to_owned() });
        }
        Ok(Self { connection: self.connection.open_project(name, user).await?, ticket: None, ..self.clone() })
    }

    /// Makes all calls about this ticket.
    ///
    /// # Errors
    /// If the project has no such ticket.
    pub async fn about_ticket(&mut self, ticket: Option<String>) -> Result<()> {
        if let Some(id) = &ticket {
            let desk = Records::new(self.store().database()).desk(self.connection.who())?;
            desk.get::<Ticket>(id).await?;
        }
        self.ticket = ticket;
        Ok(())
    }

    /// As [`Host::about_ticket`], for a ticket that was there when it was written down.
    pub(crate) fn set_ticket(&mut self, ticket: Option<String>) {
        self.ticket = ticket;
    }

    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        self.connection.store()
    }

    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    #[must_use]
    pub fn ticket(&self) -> Option<&str> {
        self.ticket.as_deref()
    }

    #[must_use]
    pub fn ids(&self) -> &Arc<dyn IdSource> {
        self.connection.ids()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn session_observer(&self) -> Option<&Arc<dyn SessionObserver>> {
        self.session_observer.as_ref()
    }

    /// How people are asked.
    #[must_use]
    pub fn asking(&self) -> Asking {
        self.asking
    }

    /// Where the workspace is deployed to.
    #[must_use]
    pub fn deployment(&self) -> Option<&Deployment> {
        self.deployment.as_ref()
    }

    /// The workspace's files, for what a person does without a tool.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// The branch and the remote that an agent in the workspace is told.
    pub async fn place(&self) -> Place {
        match &self.local {
            Some(local) => place::look(local).await,
            None => Place::default(),
        }
    }

    /// The files of the project's workflow package.
    #[must_use]
    pub fn packages(&self) -> Packages<'_> {
        self.connection.packages()
    }

    #[must_use]
    pub fn scope(&self, session: Option<String>) -> Scope {
        Scope {
            user_id: self.connection.user().id,
            project_id: self.connection.project().id,
            session_id: session,
            workflow_id: None,
            ticket_id: self.ticket.clone(),
        }
    }

    /// A call by the user, with the tools of a profile.
    #[must_use]
    pub fn request(&self, tool: &str, arguments: Value, profile: &str) -> Call {
        Call {
            id: self.ids().call_id(),
            tool: tool.to_owned(),
            arguments,
            scope: self.scope(None),
            caller: Caller {
                kind: CallerKind::Person,
                door: self.connection.door().clone(),
                profile: profile.to_owned(),
                persona: self.connection.user().name.clone(),
            },
        }
    }

    /// Calls a tool as the user. It never fails: [`done`] turns an outcome into a result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.gate.call(self.request(tool, arguments, PROFILE_OF_PEOPLE), Hooks::default()).await
    }

    /// Waits until no call is under way.
    pub async fn settle(&self) {
        self.gate.settle().await;
    }

    /// Ends commands in the background, waits for calls that are under way, commits the last rows of the audit and closes the
    /// database, as [`Connection::close`]: projects and users that share this host share its database.
    ///
    /// # Errors
    /// If the last rows cannot be written.
    pub async fn close(&self) -> Result<()> {
        self.gate.close().await;
        self.connection.close().await
    }
}

/// The outcome of a call that ran and succeeded.
///
/// # Errors
/// [`Error::Call`] if the gate refused it or its tool failed, [`Error::Pending`] if it waits for a person.
pub fn done(outcome: Outcome) -> Result<Outcome> {
    let status = outcome.data.get("status").and_then(Value::as_str);
    match status {
        _ if outcome.error.is_some() => Err(Error::Call(Box::new(outcome))),
        Some("pending_approval") => Err(Error::Pending(Box::new(outcome))),
        _ => Ok(outcome),
    }
}
