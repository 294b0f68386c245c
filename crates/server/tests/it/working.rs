//! What people do with a project's package and its sessions, over the real package in a test's database.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolhost_builder::change::Side;
use toolhost_builder::limits::Size;
use toolhost_builder::packages::{Apply, ChangeSetLine, Deed, PackageError, Packages, ProjectPackage, WorkflowLine};
use toolhost_builder::{Files, Package, from_zip_up_to, to_zip, validate};
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_host::Undo;
use toolhost_records::{RecordId, Records};
use toolhost_server::http::{
    Archive, By, ChangePreview, DeployLine, DeployUndo, DeployWork, Done, Forked, Imported, MemberChanged, ModelLine,
    NewRole, NewRun, PackageFindings, Replaces, SessionInfo, Stop, TokenMade, TokenWish, WebhookWork, WholePackage,
    Work,
};
use toolhost_store::{NewSession, Quota, Sessions, Who};
use toolhost_testkit::{House, USER};

/// The work of a test's project. Sessions are kept, and no model answers.
pub(crate) struct PackageWork {
    packages: Packages,
    records: Records,
    sessions: Sessions,
    project: i64,
}

impl PackageWork {
    pub(crate) fn of(house: &House) -> Option<Arc<dyn Work>> {
        let (packages, records) = (Packages::new(house.store.database()), Records::new(house.store.database()));
        Some(Arc::new(Self { packages, records, sessions: house.store.sessions().clone(), project: house.project.id }))
    }

    fn who(&self, user: &str) -> Who {
        Who { project_id: self.project, user_id: USER, name: user.to_owned(), call_id: "test".to_owned() }
    }

    fn shelf(&self, user: &str) -> ProjectPackage {
        self.packages.shelf(self.who(user)).unwrap()
    }

    async fn session(&self, id: &str) -> Result<SessionInfo, ToolError> {
        Ok(self.sessions.get(self.project, id).await?.into())
    }
}

fn number(id: &str) -> Result<i64, ToolError> {
    let missing = || ToolError::new(ErrorKind::NotFound, "no such set");
    id.strip_prefix("cs-").and_then(|number| number.parse().ok()).ok_or_else(missing)
}

fn unzipped(zip: &[u8]) -> Result<Files, ToolError> {
    from_zip_up_to(zip, Size::default()).map_err(|_| ToolError::new(ErrorKind::Validation, "this is no package"))
}

fn nothing<T>() -> Result<T, ToolError> {
    Err(ToolError::new(ErrorKind::NotFound, "not in this test"))
}

impl Work for PackageWork {
    fn models<'a>(&'a self, _: By<'a>) -> Done<'a, Vec<ModelLine>> {
        Box::pin(async { Ok(vec![ModelLine { name: "script".to_owned(), is_usual: true }]) })
    }

    fn try_model<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, ()> {
        Box::pin(async { nothing() })
    }

    fn export<'a>(&'a self, by: By<'a>) -> Done<'a, Archive> {
        Box::pin(async move {
            let files = self.shelf(by.user).export().await?;
            let (moment, _) = self.shelf(by.user).files_since(None).await?;
            Ok(Archive { zip: to_zip(&files), revision: format!("r{moment}") })
        })
    }

    fn import<'a>(&'a self, by: By<'a>, zip: &'a [u8], replaces: Replaces) -> Done<'a, Imported> {
        Box::pin(async move {
            let package = Package::read(unzipped(zip)?);
            if let Replaces::Revision(expected) = &replaces
                && self.export(by).await?.revision != *expected
            {
                return Err(ToolError::new(ErrorKind::Conflict, "the package has changed since it was read"));
            }
            let brought = self.shelf(by.user).import(&package, replaces != Replaces::Nothing, Size::default()).await?;
            Ok(Imported { brought, revision: String::new() })
        })
    }

    fn findings<'a>(&'a self, zip: &'a [u8]) -> Done<'a, PackageFindings> {
        Box::pin(async move {
            let findings = match from_zip_up_to(zip, Size::default()) {
                Ok(files) => validate(&Package::read(files)),
                Err(findings) => findings,
            };
            let valid = findings.iter().all(|finding| finding.severity != toolhost_builder::Severity::Error);
            Ok(PackageFindings { valid, findings })
        })
    }

    fn package<'a>(&'a self, by: By<'a>) -> Done<'a, Option<Arc<WholePackage>>> {
        Box::pin(async move {
            match self.shelf(by.user).files_since(None).await {
                Ok((moment, files)) => Ok(files.map(|files| Arc::new(WholePackage::of(moment, files)))),
                Err(PackageError::NoPackage) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn file_undo<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, Undo> {
        Box::pin(async { nothing() })
    }

    fn undo_files<'a>(&'a self, _: By<'a>, _: &'a str, _: &'a str) -> Done<'a, ()> {
        Box::pin(async { nothing() })
    }

    fn seen_by<'a>(&'a self, by: By<'a>, session: &'a str) -> Done<'a, Option<toolhost_builder::packages::Seen>> {
        Box::pin(async move { Ok(self.shelf(by.user).seen_by(session).await?) })
    }

    fn titles<'a>(&'a self, by: By<'a>, ids: &'a [RecordId]) -> Done<'a, BTreeMap<RecordId, String>> {
        Box::pin(async move { Ok(self.records.desk(self.who(by.user)).unwrap().titles(ids).await?) })
    }

    fn workflows<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<WorkflowLine>> {
        Box::pin(async move { Ok(self.shelf(by.user).workflows(0, 1000).await?) })
    }

    fn changes<'a>(&'a self, by: By<'a>, session: Option<&'a str>, open_only: bool) -> Done<'a, Vec<ChangeSetLine>> {
        Box::pin(async move { Ok(self.shelf(by.user).change_sets(session, open_only).await?) })
    }

    fn preview<'a>(&'a self, by: By<'a>, id: &'a str, operations: Option<Vec<i64>>) -> Done<'a, ChangePreview> {
        Box::pin(async move {
            let wish = Apply { number: number(id)?, operations, ..Apply::default() };
            let preview = self.shelf(by.user).preview_of(&wish).await?;
            let toolhost_builder::packages::Preview { line, body, report, conflicts, diff } = preview;
            Ok(ChangePreview { change_set: line, body, report, conflicts, diff })
        })
    }

    fn history<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<Deed>> {
        Box::pin(async move { Ok(self.shelf(by.user).history().await?) })
    }

    fn undo_plan<'a>(&'a self, by: By<'a>, moment: i64) -> Done<'a, toolhost_builder::packages::UndoPlan> {
        Box::pin(async move { Ok(self.shelf(by.user).undo_plan(moment).await?) })
    }

    fn start<'a>(&'a self, _: By<'a>, run: NewRun) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            let entry = run.target.map(|target| {
                let mode = if target.is_new { "create" } else { "optimize" };
                let inside = target.workflow.map(|workflow| format!("{workflow}/")).unwrap_or_default();
                let named = format!("{}:{inside}{}", target.kind, target.id);
                serde_json::json!({ "targetType": target.kind, "mode": mode, "target": named })
            });
            let id = format!("as-{}", self.sessions.list(self.project, 100).await?.len() + 1);
            let new = NewSession {
                project_id: self.project,
                user_id: USER,
                id: id.clone(),
                profile: run.profile,
                model: "scripted".to_owned(),
                title: run.goal.clone(),
                steps: vec![("open".to_owned(), serde_json::json!({ "goal": run.goal, "entry": entry }))],
            };
            self.sessions.create(&new).await?;
            self.session(&id).await
        })
    }

    fn go_on<'a>(&'a self, _: By<'a>, session: &'a str, message: Option<String>) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            let held = self.sessions.hold(self.project, session).await?;
            held.say("say_1_0", serde_json::json!({ "text": message })).await?;
            held.release(toolhost_store::SessionState::Done, None).await?;
            self.session(session).await
        })
    }

    fn stop<'a>(&'a self, _: By<'a>, _: &'a str, _: Stop) -> Done<'a, SessionInfo> {
        Box::pin(async { nothing() })
    }

    fn fork<'a>(&'a self, _: By<'a>, _: &'a str, _: Option<u32>) -> Done<'a, Forked> {
        Box::pin(async { nothing() })
    }

    fn set_member<'a>(&'a self, _: By<'a>, _: &'a str, _: Option<NewRole<'a>>) -> Done<'a, MemberChanged> {
        Box::pin(async { nothing() })
    }

    fn quota<'a>(&'a self, _: By<'a>) -> Done<'a, Quota> {
        Box::pin(async { nothing() })
    }
    fn set_quota<'a>(&'a self, _: By<'a>, _: Quota) -> Done<'a, ()> {
        Box::pin(async { nothing() })
    }
    fn webhooks(&self) -> &dyn WebhookWork {
        unreachable!()
    }
    fn deploys(&self) -> &dyn DeployWork {
        self
    }
    fn take_sides<'a>(
        &'a self,
        by: By<'a>,
        id: &'a str,
        operations: Option<Vec<i64>>,
        sides: &'a BTreeMap<String, Vec<Side>>,
    ) -> Done<'a, ()> {
        Box::pin(async move {
            let wish = Apply { number: number(id)?, operations, ..Apply::default() };
            Ok(self.shelf(by.user).take_sides(&wish, sides).await?)
        })
    }
    fn make_token<'a>(&'a self, _: By<'a>, _: TokenWish) -> Done<'a, TokenMade> {
        Box::pin(async { nothing() })
    }

    fn revoke_token<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, ()> {
        Box::pin(async { nothing() })
    }
}

impl DeployWork for PackageWork {
    fn has_target(&self) -> bool {
        false
    }

    fn list<'a>(&'a self, _: By<'a>) -> Done<'a, Vec<DeployLine>> {
        let line = |id: &str, state| DeployLine {
            id: id.to_owned(),
            at_ms: 1_764_323_400_000,
            who: "Coding Agent".to_owned(),
            state,
            new: 3,
            changed: 2,
            deleted: 0,
        };
        Box::pin(async move { Ok(vec![line("d2", "done"), line("d1", "undone")]) })
    }

    fn undo_plan<'a>(&'a self, _: By<'a>) -> Done<'a, Option<DeployUndo>> {
        let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let undo = DeployUndo {
            id: "d2".to_owned(),
            restored: paths(&["src/statement.rs", "src/lib.rs"]),
            removed: paths(&["src/bank.rs"]),
            returned: Vec::new(),
            conflicts: Vec::new(),
        };
        Box::pin(async { Ok(Some(undo)) })
    }

    fn undo<'a>(&'a self, _: By<'a>, _: &'a str) -> Done<'a, ()> {
        Box::pin(async { nothing() })
    }
}
