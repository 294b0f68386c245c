//! Whoever looks at a page: a person who has signed in, and what they are in which projects.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use toolhost_contract::{Clock, ErrorKind, ToolError, WORKBENCH_DOOR, visible_line};
use toolhost_store::{Login, Role, Terminals};

use super::super::work::{By, Work};
use super::super::{OpenProject, Projects};
use super::heard::{BETWEEN, standing};
use super::{Place, encoded};

/// Where what is done on a page comes from, as the audit names it.
pub(super) const PLACE: &str = WORKBENCH_DOOR;
/// How old a login may be for what only a person may allow, each time anew.
const RECENT: Duration = Duration::from_secs(15 * 60);

pub(crate) struct Visitor<'a> {
    pub(crate) login: &'a Login,
    pub(crate) projects: &'a dyn Projects,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) terminals: Terminals,
    /// What this person has just done by a form; empty for nothing.
    pub(super) done: &'static str,
    /// The first project of the page in which the person is a viewer who may not answer.
    pub(super) looks_at: &'a OnceLock<Arc<OpenProject>>,
}

/// A project that the person is a member of.
pub(crate) struct Membership {
    pub(crate) project: Arc<OpenProject>,
    pub(crate) user_id: i64,
    pub(crate) role: Role,
    /// Whether they may answer what people are asked there.
    pub(crate) approver: bool,
    /// Where the project stood before anything of it was read for the page.
    pub(super) heard: String,
}

impl Membership {
    /// A text of an agent in one line, without what looks like a secret.
    pub(super) fn masked_line(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.project.gate.redact_text(&mut text);
        visible_line(&text)
    }

    /// The key of the project, as addresses write it.
    pub(crate) fn key(&self) -> String {
        encoded(&self.project.key)
    }

    /// What people do with the project besides calls.
    ///
    /// # Errors
    /// If it takes calls and nothing else.
    pub(super) fn work(&self) -> Result<&dyn Work, ToolError> {
        let nothing = || ToolError::new(ErrorKind::Permission, "This server only takes calls for this project");
        self.project.work.as_deref().ok_or_else(nothing)
    }

    /// The address of a page of the project; `path` begins below the project.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("/projects/{}/{path}", self.key())
    }

    /// Where a page of a section of the project is.
    pub(super) fn place<'a>(&'a self, visitor: &'a Visitor<'_>, section: &'static str) -> Place<'a> {
        Place { project: Some(self), section, ..visitor.place() }
    }
}

/// Where all projects of a page stood before it was made.
pub(super) fn heard_of_all(memberships: &[Membership]) -> String {
    memberships.iter().map(|membership| &*membership.heard).collect::<Vec<_>>().join(BETWEEN)
}

impl<'a> Visitor<'a> {
    /// Where a page is that is about no project.
    pub(super) fn place(&self) -> Place<'a> {
        Place { done: self.done, ..Place::of(Some(&self.login.user)) }
    }
}

fn nothing() -> ToolError {
    let error = ToolError::new(ErrorKind::NotFound, "You have no such project.");
    error.hint("If it is yours, this server could not open it: its operator finds the reason in the log.")
}

impl Visitor<'_> {
    /// The person, as one who does something with a project on a page.
    pub(super) fn by(&self) -> By<'_> {
        By { user: &self.login.user, door: PLACE }
    }

    /// All projects of the person, and whether any project of the server could not be opened: one that cannot be opened cannot say whose it is,
    /// so its name is for the log alone.
    ///
    /// # Errors
    /// If it cannot be told which projects there are.
    pub(crate) async fn memberships(&self) -> Result<(Vec<Membership>, bool), ToolError> {
        let (mut memberships, mut is_one_closed) = (Vec::new(), false);
        let mut keys = self.projects.keys().await?;
        keys.sort();
        for key in keys {
            let found = match self.projects.open(&key).await {
                Ok(Some(project)) => self.member_of(project).await,
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match found {
                Ok(membership) => memberships.push(membership),
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(key, error = &error as &dyn std::error::Error, "a project could not be opened");
                    is_one_closed = true;
                }
            }
        }
        Ok((memberships, is_one_closed))
    }

    /// One project of the person. The answer is the same for a project that does not exist, is somebody else's, or cannot be opened,
    /// because the server cannot know whose a project is that it cannot open.
    ///
    /// # Errors
    /// If the person has no such project, or it cannot be opened.
    pub(crate) async fn membership(&self, key: &str) -> Result<Membership, ToolError> {
        let opened = self.projects.open(key).await.unwrap_or_else(|error| {
            tracing::warn!(key, error = &error as &dyn std::error::Error, "a project could not be opened");
            None
        });
        self.member_of(opened.ok_or_else(nothing)?).await
    }

    async fn member_of(&self, project: Arc<OpenProject>) -> Result<Membership, ToolError> {
        let user_id = project.people.user(&self.login.user).await?.ok_or_else(nothing)?;
        let role = project.people.role(project.id, user_id).await?.ok_or_else(nothing)?;
        let approver = project.people.is_approver(project.id, user_id).await?;
        if role == Role::Viewer && !approver {
            self.looks_at.get_or_init(|| Arc::clone(&project));
        }
        let heard = standing(&project).await?;
        Ok(Membership { project, user_id, role, approver, heard })
    }

    /// Whether the person has proven a moment ago who they are.
    ///
    /// # Errors
    /// With this message if not.
    pub(crate) fn need_recent(&self, message: &str) -> Result<(), ToolError> {
        let age = self.clock.unix_ms().saturating_sub(self.login.created_at_ms);
        if u128::try_from(age).is_ok_and(|age| age < RECENT.as_millis()) {
            return Ok(());
        }
        Err(ToolError::new(ErrorKind::Permission, message).hint("Sign in again, then do it once more."))
    }

    /// `12 minutes ago`
    pub(crate) fn time_since(&self, at_ms: i64) -> String {
        let minutes = self.clock.unix_ms().saturating_sub(at_ms).max(0) / 60_000;
        match minutes {
            0 => "less than a minute ago".to_owned(),
            1 => "1 minute ago".to_owned(),
            2..120 => format!("{minutes} minutes ago"),
            120..2880 => format!("{} hours ago", minutes / 60),
            _ => format!("{} days ago", minutes / 1440),
        }
    }

    /// `12 minutes left`
    pub(crate) fn time_left(&self, until_ms: i64) -> String {
        let minutes = until_ms.saturating_sub(self.clock.unix_ms()).max(0) / 60_000;
        match minutes {
            0 => "less than a minute left".to_owned(),
            1 => "1 minute left".to_owned(),
            2..120 => format!("{minutes} minutes left"),
            120..2880 => format!("{} hours left", minutes / 60),
            _ => format!("{} days left", minutes / 1440),
        }
    }
}
