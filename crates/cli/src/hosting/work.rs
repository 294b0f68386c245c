//! What people do with a served project, over its facade: packages, changes, members, and sessions that run on this server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolhost::{Host, PROFILE_OF_PEOPLE, Session, SessionRequest};
use toolhost_agent::model::{Message, Unfollowed};
use toolhost_agent::session::{Control, Event, Watch};
use toolhost_agent::start::{BuilderTarget, Task};
use toolhost_agent::{ModelError, Request};
use toolhost_builder::change::Side;
use toolhost_builder::envelope::{Mode, TargetType};
use toolhost_builder::limits::Size;
use toolhost_builder::packages::{
    ChangeSetLine, Deed, LISTED_MAX, PackageError, Preview, Seen, UndoPlan, WorkflowLine,
};
use toolhost_builder::{Files, from_zip_up_to, to_zip};
use toolhost_contract::workspace::{Access, Fence, Workspace};
use toolhost_contract::{ErrorKind, Signal, ToolError, is_blank};
use toolhost_host::Undo;
use toolhost_records::{RecordId, Records};
use toolhost_server::http::{
    Archive, By, ChangePreview, DeployWork, Done, Forked, Imported, MemberChanged, ModelLine, NewRole, NewRun,
    PackageFindings, Replaces, SessionInfo, Stop, Target, TokenMade, TokenWish, WebhookWork, WholePackage, Work,
};
use toolhost_store::{Changes, Quota, Role};

use super::deploys::ProjectDeploys;
use super::looked_at::{Look, LookedAt};
use super::webhooks::OwnersWebhooks;
use crate::model::{self, ModelSettings};
use crate::tokens;
use crate::webhook::ProjectWebhooks;

/// Sessions that run at once for one project; further ones are refused.
const RUNS_MAX: usize = 64;
/// How long the end of a server waits for its sessions to stop.
const STOP_MAX: Duration = Duration::from_secs(20);

/// Bytes of a package that is kept as it was read, for the next who looks at it.
const PACKAGE_KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long the start of a session waits for the session's first event.
const BEGIN_MAX: Duration = Duration::from_secs(5);

/// How long until it is looked again whether a run has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long a test of a model takes at most, and how many tokens its answer has.
const TEST_MAX: Duration = Duration::from_secs(30);
const TEST_TOKENS_MAX: u32 = 64;

/// The work of one project.
pub(super) struct ProjectWork {
    /// What names the project in addresses.
    key: String,
    host: Host,
    models: ModelSettings,
    webhooks: OwnersWebhooks,
    deploys: ProjectDeploys,
    /// Sessions that run here, and what stops each.
    runs: Arc<Mutex<HashMap<String, Control>>>,
    tasks: TaskTracker,
    /// Held while a package is compared and replaced.
    importing: tokio::sync::Mutex<()>,
    /// Lists and previews of change sets as they were looked at last.
    looked_at: LookedAt,
    /// The package as it was read last, unless it is large.
    package: Mutex<Option<Arc<WholePackage>>>,
}

impl ProjectWork {
    pub(super) fn new(key: String, host: Host, models: ModelSettings, webhooks: ProjectWebhooks) -> Self {
        Self {
            key,
            webhooks: OwnersWebhooks { host: host.clone(), webhooks },
            deploys: ProjectDeploys { host: host.clone() },
            host,
            models,
            runs: Arc::default(),
            tasks: TaskTracker::new(),
            importing: tokio::sync::Mutex::default(),
            looked_at: LookedAt::default(),
            package: Mutex::default(),
        }
    }

    /// Whether no session runs here.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.runs).is_empty()
    }

    /// Pauses the sessions that run here, so that they can go on elsewhere or later.
    pub(super) async fn close(&self) {
        lock(&self.runs).values().for_each(|control| control.interrupt.cancel());
        self.tasks.close();
        if tokio::time::timeout(STOP_MAX, self.tasks.wait()).await.is_err() {
            tracing::warn!("sessions still run at the end of the server");
        }
    }

    /// The change sets, newly read where they are not those of the last look.
    async fn listed(
        &self,
        by: By<'_>,
        session: Option<&str>,
        open_only: bool,
    ) -> Result<Vec<ChangeSetLine>, ToolError> {
        let key = Look::List(session.map(str::to_owned), open_only);
        let known: Option<(String, Arc<Vec<ChangeSetLine>>)> = self.looked_at.known(&key);
        let mark = known.as_ref().map(|(mark, _)| &**mark);
        let (mark, list) = self.host_of(by).await?.changes().list_since(session, open_only, mark).await?;
        Ok(match (list, known) {
            (None, Some((_, known))) => (*known).clone(),
            (list, _) => self.looked_at.keep(key, mark, list.unwrap_or_default()),
        })
    }

    async fn host_of(&self, by: By<'_>) -> Result<Host, ToolError> {
        Ok(self.host.as_user(by.user).await?.through(by.door))
    }

    /// The models that the operator has named.
    fn known_models(&self) -> BTreeSet<&String> {
        self.models.configs.keys().chain(&self.models.default).collect()
    }

    /// The model of a request. Scripts and cassettes name files of this machine, and an address of a caller's would get the operator's
    /// key: only what the operator has named is there.
    fn model(&self, named: Option<&str>) -> Result<toolhost::OpenModel, ToolError> {
        let known = self.known_models();
        if let Some(named) = named
            && !known.iter().any(|known| *known == named)
        {
            let names: Vec<&str> = known.iter().map(|known| known.as_str()).collect();
            let error = ToolError::new(ErrorKind::Validation, "the operator has configured no such model");
            return Err(if names.is_empty() { error } else { error.hint(format!("there is {}", names.join(", "))) });
        }
        if named.is_none() && self.models.default.is_none() {
            let error =
                ToolError::new(ErrorKind::Conflict, "no model was chosen, and this server has no default model");
            let known: Vec<&str> = known.iter().map(|known| known.as_str()).collect();
            return Err(error.hint(match known[..] {
                [] => "the operator of the server sets one with `model` in the configuration".to_owned(),
                _ => format!("choose one of: {}", known.join(", ")),
            }));
        }
        let opened = model::open(&self.models, named);
        opened.map_err(|error| {
            tracing::warn!("a session cannot have a model: {error:#}");
            ToolError::new(ErrorKind::Conflict, "the model of this server cannot be used")
                .hint("its operator finds the reason in the log")
        })
    }

    /// Runs a session in a task of its own, to its end. Comes back when it runs, or has ended.
    async fn run(&self, session: Session) -> Result<(), ToolError> {
        let id = session.id().to_owned();
        {
            let mut runs = lock(&self.runs);
            if runs.contains_key(&id) {
                return Err(ToolError::new(ErrorKind::Conflict, format!("{id} is running")));
            }
            if runs.len() >= RUNS_MAX {
                let message = format!("{RUNS_MAX} sessions of this project run on this server");
                return Err(ToolError::new(ErrorKind::Limit, message).hint("wait until one has ended"));
            }
            runs.insert(id.clone(), session.control().clone());
        }
        let runs = Arc::clone(&self.runs);
        let (begun, begins) = oneshot::channel();
        self.tasks.spawn(async move {
            let watch: Arc<dyn Watch> = Arc::new(Begun(Mutex::new(Some(begun))));
            if let Err(error) = session.run_watched(None, &watch).await {
                tracing::warn!(%error, session = id, "a session did not run to its end");
            }
            lock(&runs).remove(&id);
        });
        // Whoever waits is told at the first event, or when the task has ended without one.
        let _ = tokio::time::timeout(BEGIN_MAX, begins).await;
        Ok(())
    }

    async fn standing(host: &Host, id: &str) -> Result<SessionInfo, ToolError> {
        Ok(host.session(id).await?.into())
    }
}

/// What an undo of one call's changes of files would do, and the workspace that it would do it in.
async fn planned(host: &Host, call: &str) -> Result<(Undo, Workspace), ToolError> {
    let workspace = Workspace::new(Arc::clone(host.executor()), Fence::closed(Access::Write));
    let (log, project) = (host.store().file_log(), host.connection().project().id);
    let mut undo = Undo::plan(&log, project, &workspace, &Changes::Call(call.to_owned())).await?;
    undo.steps.iter_mut().for_each(|step| host.connection().redact(&mut step.diff));
    Ok((undo, workspace))
}

/// Tells that a session has begun.
struct Begun(Mutex<Option<oneshot::Sender<()>>>);

impl Watch for Begun {
    fn event(&self, _: &Event) {
        if let Some(begun) = lock(&self.0).take() {
            // Whoever has waited long enough has gone.
            let _ = begun.send(());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn json<T: Serialize>(value: &T) -> Result<Value, ToolError> {
    serde_json::to_value(value).map_err(ToolError::internal)
}

/// Changes with any byte of any file.
fn revision(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (name, content) in files {
        for part in [name.as_bytes(), content] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
    }
    hex::encode(hash.finalize())
}

fn unzipped(zip: &[u8]) -> Result<Files, ToolError> {
    let most = Size::default();
    if zip.len() > most.bytes {
        return Err(ToolError::too_large(format!("the zip has more than {} bytes", most.bytes), most.bytes));
    }
    from_zip_up_to(zip, most).map_err(|findings| {
        let details = json(&findings).unwrap_or_default();
        ToolError { details: Some(details), ..ToolError::new(ErrorKind::Validation, "this is no package") }
    })
}

fn task(goal: String, target: Option<Target>) -> Result<Task, ToolError> {
    if is_blank(&goal) {
        return Err(ToolError::new(ErrorKind::Validation, "`goal` says what to do, in words"));
    }
    let Some(Target { kind, id, workflow, is_new }) = target else {
        return Ok(Task::Workspace { goal, schema: None });
    };
    let target_type = match &*kind {
        "workflow" => TargetType::Workflow,
        "step" => TargetType::Step,
        "agent" => TargetType::Agent,
        "asset" => TargetType::Asset,
        _ => {
            let message = "the `kind` of a target is `workflow`, `step`, `agent` or `asset`";
            return Err(ToolError::new(ErrorKind::Validation, message));
        }
    };
    Ok(Task::Builder(BuilderTarget {
        goal,
        target_type,
        target_id: id,
        mode: if is_new { Mode::Create } else { Mode::Optimize },
        workflow_id: workflow,
        context_budget: None,
        reserve_for_response: None,
        all_tools: false,
    }))
}

/// Why a test of a model has failed, in the host's own words: what a provider says may repeat a key.
fn no_answer(error: &ModelError) -> ToolError {
    let message = match error {
        ModelError::Timeout { .. } => error.to_string(),
        ModelError::Unreachable(_) => "the model's server cannot be reached".to_owned(),
        ModelError::Provider { status: Some(status), .. } => format!("the model's server says {status}"),
        ModelError::Disabled(_) => "the model of this server cannot be used".to_owned(),
        _ => "the model has not answered as it should".to_owned(),
    };
    ToolError::new(ErrorKind::Conflict, message).hint("its operator finds the reason in the log")
}

impl Work for ProjectWork {
    fn models<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<ModelLine>> {
        Box::pin(async move {
            // The list is for members only.
            self.host_of(by).await?;
            let usual = self.models.default.as_ref();
            let line = |name: &String| ModelLine { name: name.clone(), is_usual: usual == Some(name) };
            Ok(self.known_models().into_iter().map(line).collect())
        })
    }

    fn try_model<'a>(&'a self, by: By<'a>, name: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            self.host_of(by).await?.connection().need_role(Role::Owner).await?;
            let opened = self.model(Some(name))?;
            let messages = [Message::User { content: "Answer with the word ok.".to_owned() }];
            let (system, tools) = (&[], &[]);
            let request =
                Request { system, messages: &messages, tools, output_tokens_max: Some(TEST_TOKENS_MAX), json: false };
            let cancel = CancellationToken::new();
            let _ends_with_the_request = cancel.clone().drop_guard();
            match tokio::time::timeout(TEST_MAX, opened.model.reply(request, &Unfollowed, &cancel)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => {
                    tracing::warn!(model = name, code = ?error.code(), "a model has not passed a test");
                    Err(no_answer(&error))
                }
                Err(_) => {
                    let message = format!("the model has not answered within {} s", TEST_MAX.as_secs());
                    Err(ToolError::new(ErrorKind::Timeout, message))
                }
            }
        })
    }

    fn export<'a>(&'a self, by: By<'a>) -> Done<'a, Archive> {
        Box::pin(async move {
            let files = self.host_of(by).await?.packages().export().await?;
            Ok(Archive { revision: revision(&files), zip: to_zip(&files) })
        })
    }

    fn import<'a>(&'a self, by: By<'a>, zip: &'a [u8], replaces: Replaces) -> Done<'a, Imported> {
        Box::pin(async move {
            let (host, files) = (self.host_of(by).await?, unzipped(zip)?);
            let _alone = self.importing.lock().await;
            if let Replaces::Revision(expected) = &replaces
                && revision(&host.packages().export().await?) != *expected
            {
                let message = "the package has changed since it was read";
                return Err(ToolError::new(ErrorKind::Conflict, message)
                    .hint("export the package again, and make your change in that one"));
            }
            let brought = host
                .packages()
                .import_from(Some("HTTP"), files, replaces != Replaces::Nothing, Size::default())
                .await?;
            let now = revision(&host.packages().export().await?);
            Ok(Imported { brought, revision: now })
        })
    }

    fn findings<'a>(&'a self, zip: &'a [u8]) -> Done<'a, PackageFindings> {
        Box::pin(async move {
            let findings = match from_zip_up_to(zip, Size::default()) {
                Ok(files) => toolhost::Packages::validate(files, Size::default()),
                Err(findings) => findings,
            };
            let valid = findings.iter().all(|finding| finding.severity != toolhost_builder::Severity::Error);
            Ok(PackageFindings { valid, findings })
        })
    }

    fn package<'a>(&'a self, by: By<'a>) -> Done<'a, Option<Arc<WholePackage>>> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            let known = lock(&self.package).clone();
            let read = host.packages().files_since(known.as_ref().map(|known| known.moment)).await;
            let (moment, files) = match read {
                Ok(read) => read,
                Err(toolhost::Error::Package(PackageError::NoPackage)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(files) = files else { return Ok(known) };
            let bytes: usize = files.values().map(Vec::len).sum();
            let whole = tokio::task::spawn_blocking(move || WholePackage::of(moment, files)).await;
            let whole = Arc::new(whole.map_err(ToolError::internal)?);
            if bytes <= PACKAGE_KEPT_BYTES_MAX {
                *lock(&self.package) = Some(Arc::clone(&whole));
            }
            Ok(Some(whole))
        })
    }

    fn seen_by<'a>(&'a self, by: By<'a>, session: &'a str) -> Done<'a, Option<Seen>> {
        Box::pin(async move { Ok(self.host_of(by).await?.changes().seen_by(session).await?) })
    }

    fn titles<'a>(&'a self, by: By<'a>, ids: &'a [RecordId]) -> Done<'a, BTreeMap<RecordId, String>> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            let connection = host.connection();
            connection.need_role(Role::Viewer).await?;
            let desk = Records::new(connection.store().database()).desk(connection.who())?;
            let mut titles = desk.titles(ids).await?;
            titles.values_mut().for_each(|title| connection.redact(title));
            Ok(titles)
        })
    }

    fn workflows<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<WorkflowLine>> {
        Box::pin(async move { Ok(self.host_of(by).await?.packages().workflows().await?) })
    }

    fn changes<'a>(&'a self, by: By<'a>, session: Option<&'a str>, open_only: bool) -> Done<'a, Vec<ChangeSetLine>> {
        Box::pin(async move {
            let mut all = self.listed(by, session, false).await?;
            if !open_only {
                return Ok(all);
            }
            if i64::try_from(all.len()).is_ok_and(|count| count >= LISTED_MAX) {
                // Older ones may be open, too.
                return self.listed(by, session, true).await;
            }
            all.retain(|set| matches!(&*set.status, "staged" | "validated" | "blocked"));
            Ok(all)
        })
    }

    fn preview<'a>(&'a self, by: By<'a>, id: &'a str, operations: Option<Vec<i64>>) -> Done<'a, ChangePreview> {
        Box::pin(async move {
            let key = Look::Preview(id.to_owned(), operations.clone());
            let options = toolhost::ApplyOptions { operations, confirm_deletes: Vec::new() };
            let known: Option<(String, Arc<ChangePreview>)> = self.looked_at.known(&key);
            let mark = known.as_ref().map(|(mark, _)| &**mark);
            let (mark, preview) = self.host_of(by).await?.changes().preview_since(id, &options, mark).await?;
            Ok(match (preview, known) {
                (Some(Preview { line, body, report, conflicts, diff }), _) => {
                    self.looked_at.keep(key, mark, ChangePreview { change_set: line, body, report, conflicts, diff })
                }
                (None, Some((_, known))) => (*known).clone(),
                (None, None) => return Err(ToolError::internal("a preview that nobody has looked at is not known")),
            })
        })
    }

    fn take_sides<'a>(
        &'a self,
        by: By<'a>,
        id: &'a str,
        operations: Option<Vec<i64>>,
        sides: &'a BTreeMap<String, Vec<Side>>,
    ) -> Done<'a, ()> {
        Box::pin(async move {
            let options = toolhost::ApplyOptions { operations, confirm_deletes: Vec::new() };
            Ok(self.host_of(by).await?.changes().take_sides(id, &options, sides).await?)
        })
    }

    fn history<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<Deed>> {
        Box::pin(async move { Ok(self.host_of(by).await?.changes().history().await?) })
    }

    fn undo_plan<'a>(&'a self, by: By<'a>, moment: i64) -> Done<'a, UndoPlan> {
        Box::pin(async move { Ok(self.host_of(by).await?.changes().undo_plan(moment).await?) })
    }

    fn start<'a>(&'a self, by: By<'a>, run: NewRun) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            let (host, task) = (self.host_of(by).await?, task(run.goal, run.target)?);
            let model = self.model(run.model.as_deref())?;
            let mut request = SessionRequest::new(task).profile(run.profile).files(run.files);
            if let Some(persona) = run.persona {
                request = request.persona(persona);
            }
            if let Some(ticket) = run.ticket {
                request = request.ticket(ticket);
            }
            let session = host.start(request, &model).await?.with_origin(run.origin);
            let id = session.id().to_owned();
            self.run(session).await?;
            Self::standing(&host, &id).await
        })
    }

    fn go_on<'a>(&'a self, by: By<'a>, session: &'a str, message: Option<String>) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            let found = host.resumable(session).await?;
            if found.running && message.is_none() {
                let error = ToolError::new(ErrorKind::Conflict, format!("{session} is at work already"));
                return Err(error.hint("say something to it, or wait until it stops"));
            }
            // A session that was begun at a terminal may have a model of that person's.
            let named = Some(&*found.model).filter(|named| self.models.default.as_deref() != Some(named));
            let opened = async || Ok::<_, ToolError>(host.resume(session, &self.model(named)?).await?);
            // What cannot go on is told nothing: it would wait for good.
            let ready = if found.running { None } else { Some(opened().await?) };
            if let Some(text) = &message {
                // The database keeps the message until a run of the session hears it: the one at work, or the one that begins here.
                let left = host.leave_message(session, text).await?;
                if left.running {
                    return Ok(left.into());
                }
            }
            let opened = match ready {
                Some(ready) => ready,
                // It has ended meanwhile.
                None => opened().await?,
            };
            let kept = |error: ToolError| match message {
                Some(_) => {
                    let step = error.hint.as_ref().map(|step| format!("{step}; ")).unwrap_or_default();
                    error.hint(format!("{step}the message is kept, and is heard when the session goes on"))
                }
                None => error,
            };
            // A run that has just let go of the session may still stand among those here, for a moment.
            let ended = tokio::time::timeout(BEGIN_MAX, async {
                while lock(&self.runs).contains_key(session) && !host.session(session).await?.running {
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                Ok::<_, ToolError>(())
            });
            ended.await.unwrap_or(Ok(()))?;
            match self.run(opened).await {
                // Whoever was faster hears the message.
                Err(error) if message.is_some() && error.kind == ErrorKind::Conflict => {}
                run => run.map_err(kept)?,
            }
            Self::standing(&host, session).await
        })
    }

    fn stop<'a>(&'a self, by: By<'a>, session: &'a str, how: Stop) -> Done<'a, SessionInfo> {
        Box::pin(async move {
            let signal = match how {
                Stop::Pause => Signal::Pause,
                Stop::Cancel => Signal::Cancel,
            };
            Ok(self.host_of(by).await?.connection().signal(session, signal).await?.into())
        })
    }

    fn fork<'a>(&'a self, by: By<'a>, session: &'a str, turns: Option<u32>) -> Done<'a, Forked> {
        Box::pin(async move {
            let fork = self.host_of(by).await?.connection().fork(session, turns).await?;
            Ok(Forked { session: fork.session.into(), turns: fork.turns, unended: fork.unended })
        })
    }

    fn set_member<'a>(&'a self, by: By<'a>, name: &'a str, new: Option<NewRole<'a>>) -> Done<'a, MemberChanged> {
        Box::pin(async move {
            let parsed = |new: NewRole<'_>| {
                let role = Role::parse(new.role).map(|role| (role, new.approver));
                role.ok_or_else(|| ToolError::new(ErrorKind::Validation, "a role is `owner`, `editor` or `viewer`"))
            };
            let new = new.map(parsed).transpose()?;
            let host = self.host_of(by).await?;
            let connection = host.connection();
            connection.need_role(Role::Owner).await?;
            let (people, project) = (connection.store().people(), connection.project().id);
            let arguments = json!({
                "name": name, "role": new.map(|(role, _)| role.as_str()), "approver": new.and_then(|(_, approver)| approver),
            });
            let work = async {
                let Some((role, approver)) = new else {
                    let removed = match people.user(name).await? {
                        Some(id) => people.remove(project, id).await?,
                        None => false,
                    };
                    let missing = || ToolError::new(ErrorKind::NotFound, "the project has no such member");
                    return removed.then_some(None).ok_or_else(missing);
                };
                let id = people.add_user(name).await?;
                Ok::<_, ToolError>(Some(people.set_member(project, id, role, approver).await?))
            };
            let deed = if new.is_some() { "member.add" } else { "member.remove" };
            let approver = connection.record(&connection.who(), deed, arguments, work).await?;
            let role = new.map(|(role, _)| role.as_str().to_owned());
            Ok(MemberChanged { name: name.to_owned(), role, approver })
        })
    }

    fn quota<'a>(&'a self, by: By<'a>) -> Done<'a, Quota> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            let connection = host.connection();
            connection.need_role(Role::Viewer).await?;
            Ok(connection.store().quotas().get(connection.project().id).await?)
        })
    }

    fn set_quota<'a>(&'a self, by: By<'a>, quota: Quota) -> Done<'a, ()> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            let connection = host.connection();
            connection.need_role(Role::Owner).await?;
            let (quotas, project) = (connection.store().quotas(), connection.project().id);
            let work = async { Ok::<_, ToolError>(quotas.set(project, quota).await?) };
            connection.record(&connection.who(), "quota.set", json!(quota), work).await
        })
    }

    fn webhooks(&self) -> &dyn WebhookWork {
        &self.webhooks
    }

    fn deploys(&self) -> &dyn DeployWork {
        &self.deploys
    }

    fn file_undo<'a>(&'a self, by: By<'a>, call: &'a str) -> Done<'a, Undo> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            host.connection().need_role(Role::Viewer).await?;
            Ok(planned(&host, call).await?.0)
        })
    }

    fn undo_files<'a>(&'a self, by: By<'a>, call: &'a str, digest: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            host.connection().need_role(Role::Editor).await?;
            let (undo, workspace) = planned(&host, call).await?;
            if undo.digest()? != digest {
                return Err(ToolError::new(ErrorKind::Conflict, "it would put back something else than was shown")
                    .hint("look at it again"));
            }
            let request = host.request("undo", json!({ "calls": undo.calls }), PROFILE_OF_PEOPLE);
            let who = host.connection().who_calls(&request);
            let (log, project) = (host.store().file_log(), host.connection().project().id);
            let work = undo.apply(&log, project, &request, workspace);
            host.connection().record(&who, "undo", request.arguments.clone(), work).await
        })
    }

    fn make_token<'a>(&'a self, by: By<'a>, wish: TokenWish) -> Done<'a, TokenMade> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            for profile in &wish.profiles {
                host.gate()
                    .profile(profile)
                    .map_err(|error| ToolError::new(ErrorKind::Validation, error.to_string()))?;
            }
            host.connection().need_role(Role::Owner).await?;
            tokens::make(host.connection(), &self.key, wish).await
        })
    }

    fn revoke_token<'a>(&'a self, by: By<'a>, id: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let host = self.host_of(by).await?;
            host.connection().need_role(Role::Owner).await?;
            tokens::revoke(host.connection(), id).await
        })
    }
}
