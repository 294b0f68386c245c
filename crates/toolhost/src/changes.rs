//! Changes of a project's workflow package: staged, validated, previewed, applied, discarded and undone by a person.
//!
//! What changes something is a call of the tool through the gate, made by the user as a person; what only looks has one row in
//! the audit.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolhost_builder::change::Side;
use toolhost_builder::packages::{Apply, ChangeSetLine, Deed, PackageError, Preview, ProjectPackage, Seen, UndoPlan};
use toolhost_contract::{CONFIRM_SOURCE, Outcome};
use toolhost_store::Role;

use crate::error::{Error, Result};
use crate::host::{Host, done};

/// The changes of a project's workflow package.
#[derive(Clone, Copy)]
pub struct Changes<'a> {
    host: &'a Host,
}

/// What of a change set is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The positions of the operations that are applied, from 0; none: all.
    pub operations: Option<Vec<i64>>,
    /// The objects that the set deletes, each by its name, such as `step:main/step-03`: a delete that is not named here is
    /// refused.
    pub confirm_deletes: Vec<String>,
}

impl Host {
    /// The staged and applied changes of the project's workflow package.
    #[must_use]
    pub fn changes(&self) -> Changes<'_> {
        Changes::new(self)
    }
}

impl<'a> Changes<'a> {
    pub(crate) fn new(host: &'a Host) -> Self {
        Self { host }
    }

    /// Stages a change set under a session of any name. The data of the outcome has its `changeSetId` and what its validation
    /// found.
    ///
    /// # Errors
    /// [`Error::Call`] if it is refused.
    pub async fn stage(&self, session: &str, change_set: Value) -> Result<Outcome> {
        self.call("builder.change.stage", json!({ "sessionId": session, "changeSet": change_set })).await
    }

    /// Checks a change set as its apply would; `valid` in the data says how it went.
    ///
    /// # Errors
    /// [`Error::Call`] if there is none.
    pub async fn validate(&self, id: &str) -> Result<Outcome> {
        self.call("builder.change.validate", json!({ "changeSetId": set_id(id)? })).await
    }

    /// Applies a change set for everybody. Only call this when a person has looked at the set and wants it.
    ///
    /// # Errors
    /// [`Error::Call`] if it is not valid, in conflict with what was applied since, or the user may not.
    pub async fn apply(&self, id: &str, options: &ApplyOptions) -> Result<Outcome> {
        let mut arguments = json!({
            "changeSetId": set_id(id)?, "confirmSource": CONFIRM_SOURCE, "confirmDeletes": options.confirm_deletes,
        });
        if let Some(operations) = &options.operations {
            arguments["operations"] = json!(operations);
        }
        self.call("builder.change.apply", arguments).await
    }

    /// Gives a staged change set up.
    ///
    /// # Errors
    /// [`Error::Call`] if there is none, or it is not staged.
    pub async fn discard(&self, id: &str) -> Result<Outcome> {
        self.call("builder.change.discard", json!({ "changeSetId": set_id(id)? })).await
    }

    /// Takes an applied change back: `moment` is its number in the history.
    ///
    /// # Errors
    /// [`Error::Call`] if there is none, or later changes touch the same.
    pub async fn undo(&self, moment: i64) -> Result<Outcome> {
        self.call("builder.change.undo", json!({ "moment": moment })).await
    }

    /// A change set and what an apply would say and change of the package as it is now; of one that was applied, what it did.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member; [`Error::Package`] if there is none.
    pub async fn preview(&self, id: &str) -> Result<Preview> {
        self.preview_with(id, &ApplyOptions::default()).await
    }

    /// As [`Changes::preview`], of the operations that these options choose.
    ///
    /// # Errors
    /// As there; and [`Error::Package`] where they cannot be applied without others.
    pub async fn preview_with(&self, id: &str, options: &ApplyOptions) -> Result<Preview> {
        let wish = Apply { number: number(id)?, operations: options.operations.clone(), ..Apply::default() };
        let arguments = json!({ "changeSetId": set_id(id)?, "operations": options.operations });
        self.read("change show", arguments, async |shelf: &ProjectPackage| shelf.preview_of(&wish).await).await
    }

    /// As [`Changes::preview_with`], for who has looked before: with the mark of what was looked at, and `None` where that is still
    /// `known`.
    ///
    /// # Errors
    /// As there.
    pub async fn preview_since(
        &self,
        id: &str,
        options: &ApplyOptions,
        known: Option<&str>,
    ) -> Result<(String, Option<Preview>)> {
        let wish = Apply { number: number(id)?, operations: options.operations.clone(), ..Apply::default() };
        let arguments = json!({ "changeSetId": set_id(id)?, "operations": options.operations });
        self.read("change show", arguments, async |shelf: &ProjectPackage| shelf.preview_since(&wish, known).await)
            .await
    }

    /// As [`Changes::list`], for who has looked before: with the mark of what was looked at, and `None` where that is still `known`.
    ///
    /// # Errors
    /// As there.
    pub async fn list_since(
        &self,
        session: Option<&str>,
        open_only: bool,
        known: Option<&str>,
    ) -> Result<(String, Option<Vec<ChangeSetLine>>)> {
        let arguments = json!({ "sessionId": session });
        self.read("change list", arguments, async |shelf: &ProjectPackage| {
            shelf.change_sets_since(session, open_only, known).await
        })
        .await
    }

    /// The change sets, the newest first: of one session if it is named; with `open_only`, those that may still be applied.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member.
    pub async fn list(&self, session: Option<&str>, open_only: bool) -> Result<Vec<ChangeSetLine>> {
        let arguments = json!({ "sessionId": session });
        self.read("change list", arguments, async |shelf: &ProjectPackage| shelf.change_sets(session, open_only).await)
            .await
    }

    /// The whole package as a session sees it, with what it has staged; `None` where it has staged nothing.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member; [`Error::Package`] if there is none.
    pub async fn seen_by(&self, session: &str) -> Result<Option<Seen>> {
        let arguments = json!({ "sessionId": session });
        self.read("package seen", arguments, async |shelf: &ProjectPackage| shelf.seen_by(session).await).await
    }

    /// What has been applied, the newest first.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member.
    pub async fn history(&self) -> Result<Vec<Deed>> {
        self.read("change history", json!({}), async |shelf: &ProjectPackage| shelf.history().await).await
    }

    /// What an undo of a change would do now.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who is no member; [`Error::Package`] where it cannot be undone.
    pub async fn undo_plan(&self, moment: i64) -> Result<UndoPlan> {
        let arguments = json!({ "moment": moment });
        self.read("change undo plan", arguments, async |shelf: &ProjectPackage| shelf.undo_plan(moment).await).await
    }

    /// Takes a side at each place where a set, or the operations of it that these options choose, clashes with the package: for each object
    /// of [`Preview::conflicts`] the sides of its clashes, in their order. Nothing is applied: the set can be, then.
    ///
    /// # Errors
    /// [`Error::Denied`] for a user who may not change the package; [`Error::Package`] where it clashes at other places.
    pub async fn take_sides(
        &self,
        id: &str,
        options: &ApplyOptions,
        sides: &BTreeMap<String, Vec<Side>>,
    ) -> Result<()> {
        let connection = self.host.connection();
        connection.need_role(Role::Editor).await?;
        let wish = Apply { number: number(id)?, operations: options.operations.clone(), ..Apply::default() };
        let arguments = json!({ "changeSetId": set_id(id)?, "operations": options.operations, "sides": sides });
        let who = connection.who();
        let shelf = connection.shelf(&who)?;
        let work = async { Ok::<_, Error>(shelf.take_sides(&wish, sides).await?) };
        connection.record(&who, "change.sides", arguments, work).await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Outcome> {
        done(self.host.call(tool, arguments).await)
    }

    async fn read<T>(
        &self,
        what: &str,
        arguments: Value,
        work: impl AsyncFnOnce(&ProjectPackage) -> std::result::Result<T, PackageError>,
    ) -> Result<T> {
        let connection = self.host.connection();
        connection.need_role(Role::Viewer).await?;
        let who = connection.who();
        let shelf = connection.shelf(&who)?;
        let work = async { Ok::<_, Error>(work(&shelf).await?) };
        connection.record_read(&who, what, arguments, work).await
    }
}

/// `cs-3`, also for `3`.
fn set_id(id: &str) -> Result<String> {
    Ok(format!("cs-{}", number(id)?))
}

fn number(id: &str) -> Result<i64> {
    id.strip_prefix("cs-").unwrap_or(id).parse().map_err(|_| Error::ChangeSetId(id.to_owned()))
}
