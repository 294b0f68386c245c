//! An open database, seen as one user of one project: what a person does here without a tool is recorded in the audit.

use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolhost_contract::{Call, CallId, IdSource, Redactor, Trace};
use toolhost_host::{Person, Queue, keepable};
use toolhost_store::Who;
use toolhost_store::{Entry, Event, Outage, Project, Role, Store};

use crate::error::{Error, Result};
use crate::limits::PROJECT_CHARS_MAX;

/// Most of one text that the audit keeps of what was asked for, bytes.
const DEED_STRING_BYTES_MAX: usize = 4096;

/// In whose name everything is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: i64,
    pub name: String,
}

/// Whether something may be done that the audit cannot record, because its database cannot be written.
#[derive(Clone, Copy)]
pub enum Recording<'a> {
    /// It is not done.
    Required,
    /// It is done, and the function is told why it is not recorded: it only reads, and the owner of a project must be able to
    /// save the project's data before the disk is lost.
    IfWritable(&'a (dyn Fn(&toolhost_store::Error) + Send + Sync)),
}

/// A database and a project in it, in the name of a user. Cloning it is cheap.
#[derive(Clone)]
pub struct Connection {
    store: Arc<Store>,
    project: Project,
    user: User,
    door: Cow<'static, str>,
    ids: Arc<dyn IdSource>,
    redactor: Arc<Redactor>,
    packages: toolhost_builder::Packages,
    unrecorded: Option<Arc<toolhost_store::Error>>,
}

impl Connection {
    pub(crate) async fn new(
        store: Arc<Store>,
        project: Project,
        user: &str,
        (door, ids, redactor): (Cow<'static, str>, Arc<dyn IdSource>, Arc<Redactor>),
        unrecorded: Option<toolhost_store::Error>,
    ) -> Result<Self> {
        let user = find_user(&store, user).await?;
        let packages = toolhost_builder::Packages::new(store.database());
        Ok(Self { store, project, user, door, ids, redactor, packages, unrecorded: unrecorded.map(Arc::new) })
    }

    /// The same project for another user.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn as_user(&self, name: &str) -> Result<Self> {
        let user = find_user(&self.store, name).await?;
        Ok(Self { user, ..self.clone() })
    }

    pub(crate) fn through(self, door: &'static str) -> Self {
        Self { door: door.into(), ..self }
    }

    /// The same database with another project, which is created if it is new and then belongs to the user.
    ///
    /// # Errors
    /// If the name cannot be one, or there is no such user.
    pub async fn open_project(&self, name: &str, user: &str) -> Result<Self> {
        let project = self.store.project(&key_of(name)?, name, user).await?;
        let user = find_user(&self.store, user).await?;
        Ok(Self { project, user, ..self.clone() })
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The project's workflow package, read and changed in this name.
    pub(crate) fn shelf(&self, who: &Who) -> Result<toolhost_builder::packages::ProjectPackage> {
        Ok(self.packages.shelf(who.clone())?)
    }

    #[must_use]
    pub fn project(&self) -> &Project {
        &self.project
    }

    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    pub(crate) fn door(&self) -> &Cow<'static, str> {
        &self.door
    }

    pub(crate) fn ids(&self) -> &Arc<dyn IdSource> {
        &self.ids
    }

    /// Why nothing that is done is recorded: the database was opened to be read only.
    #[must_use]
    pub fn unrecorded(&self) -> Option<&toolhost_store::Error> {
        self.unrecorded.as_deref()
    }

    /// Takes secrets out of a text that is shown.
    pub fn redact(&self, text: &mut String) {
        self.redactor.redact(text);
    }

    /// The user, as somebody who answers.
    #[must_use]
    pub fn person(&self) -> Person {
        Person { user_id: self.user.id, project_id: self.project.id, name: self.user.name.clone() }
    }

    /// What people are asked.
    #[must_use]
    pub fn queue(&self) -> Queue {
        let store = &self.store;
        Queue::new(store.asks(), store.audit(), store.people(), Arc::clone(&self.redactor))
    }

    /// In whose name records are read and written without a tool, with a number of its own as a call has one.
    #[must_use]
    pub fn who(&self) -> Who {
        let call_id = self.ids.call_id().to_string();
        Who { project_id: self.project.id, user_id: self.user.id, name: self.user.name.clone(), call_id }
    }

    /// As [`Connection::who`], with the number of a call.
    #[must_use]
    pub fn who_calls(&self, call: &Call) -> Who {
        Who { call_id: call.id.to_string(), ..self.who() }
    }

    /// Passes if the user has this role in the project, or one that may do more.
    ///
    /// # Errors
    /// [`Error::Denied`], also for a user who is no member.
    pub async fn need_role(&self, at_least: Role) -> Result<()> {
        let role = self.store.people().role(self.project.id, self.user.id).await?;
        // Owners come first.
        if role.is_some_and(|role| role <= at_least) {
            return Ok(());
        }
        let (user, project) = (self.user.name.clone(), self.project.name.clone());
        Err(Error::Denied { user, project, role: at_least })
    }

    /// Does what a person asked for without a tool, between its two rows of the audit. If the first cannot be written,
    /// nothing is done. The caller has checked the user's role.
    ///
    /// # Errors
    /// Those of `work`, or if the audit cannot be written.
    pub async fn record<T, E: From<Error> + Display>(
        &self,
        who: &Who,
        what: &str,
        arguments: Value,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        self.record_if(Recording::Required, who, what, arguments, work).await
    }

    /// As [`Connection::record`], with `recording`.
    ///
    /// # Errors
    /// As [`Connection::record`].
    pub async fn record_if<T, E: From<Error> + Display>(
        &self,
        recording: Recording<'_>,
        who: &Who,
        what: &str,
        arguments: Value,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        self.record_about(None, recording, who, what, arguments, work).await
    }

    /// Does what a person asked of a session, between its two rows of the audit.
    ///
    /// # Errors
    /// As [`Connection::record`].
    pub(crate) async fn record_session<T, E: From<Error> + Display>(
        &self,
        session: &str,
        what: &str,
        arguments: Value,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        self.record_about(Some(session), Recording::Required, &self.who(), what, arguments, work).await
    }

    async fn record_about<T, E: From<Error> + Display>(
        &self,
        session: Option<&str>,
        recording: Recording<'_>,
        who: &Who,
        what: &str,
        arguments: Value,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        let row = |event, outcome| Entry {
            session_id: session.map(str::to_owned),
            ..self.row(who, what, ("writes", event), arguments.clone(), outcome)
        };
        match (self.store.audit().append(row(Event::Started, None)).await, recording) {
            (Err(error), Recording::IfWritable(tell)) if is_unwritable(&error) => {
                tell(&error);
                return work.await;
            }
            (started, _) => started.map_err(Error::from)?,
        }
        let done = work.await;
        let finished = row(Event::Finished, Some(ended(&done, &self.redactor)));
        self.store.audit().append(finished).await.map_err(Error::from)?;
        done
    }

    /// Reads something for a person without a tool. One row of the audit is queued after it, as for calls that only read.
    pub(crate) async fn record_read<T, E: From<Error> + Display>(
        &self,
        who: &Who,
        what: &str,
        arguments: Value,
        work: impl Future<Output = std::result::Result<T, E>>,
    ) -> std::result::Result<T, E> {
        let done = work.await;
        let row = self.row(who, what, ("reads", Event::Finished), arguments, Some(ended(&done, &self.redactor)));
        if self.unrecorded.is_none()
            && let Err(error) = self.store.audit().note(row).await
        {
            tracing::error!(%error, what, "not recorded in the audit");
        }
        done
    }

    fn row(
        &self,
        who: &Who,
        what: &str,
        (effect, event): (&str, Event),
        arguments: Value,
        outcome: Option<Value>,
    ) -> Entry {
        let arguments = keepable(&arguments, &self.redactor, DEED_STRING_BYTES_MAX);
        Entry {
            event,
            call_id: CallId::new(who.call_id.clone()),
            session_id: None,
            user_id: who.user_id,
            project_id: who.project_id,
            caller: json!({ "door": self.door, "kind": "person", "persona": who.name }),
            tool: what.to_owned(),
            effect: Some(effect.to_owned()),
            arguments,
            digest: None,
            decision: None,
            outcome,
            duration_ms: None,
            fence: String::new(),
            trace: Trace::None,
        }
    }

    /// Commits what is queued and closes the database, also for the clones of this connection and of its host.
    ///
    /// # Errors
    /// If the last rows cannot be written.
    pub async fn close(&self) -> Result<()> {
        Ok(self.store.close().await?)
    }
}

/// How something ended, for the audit. What an error says may name files and quote them; that is for the person.
/// Characters of the reason that the audit keeps of what failed.
const REASON_CHARS_MAX: usize = 500;

/// What the audit keeps of how something ended: that it did, or why not.
fn ended<T, E: Display>(done: &std::result::Result<T, E>, redactor: &Redactor) -> Value {
    let Err(error) = done else { return json!({ "ok": true }) };
    let mut message = error.to_string();
    redactor.redact(&mut message);
    let message: String = message.chars().take(REASON_CHARS_MAX).collect();
    json!({ "ok": false, "message": message })
}

async fn find_user(store: &Store, name: &str) -> Result<User> {
    match store.people().user(name).await? {
        Some(id) => Ok(User { id, name: name.to_owned() }),
        None => Err(Error::NoUser { user: name.to_owned(), place: store.place().to_owned() }),
    }
}

/// What a project with a name is found by.
pub(crate) fn key_of(name: &str) -> Result<PathBuf> {
    if name.chars().count() > PROJECT_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(Error::ProjectName);
    }
    Ok(Path::new(&format!("project:{name}")).to_owned())
}

/// Whether what failed is the writing, and reading may still work.
#[must_use]
pub fn is_unwritable(error: &toolhost_store::Error) -> bool {
    matches!(error.outage(), Some(Outage::DiskFull | Outage::ReadOnly | Outage::Disk))
}
