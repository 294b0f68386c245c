//! Putting back what file tools have changed.
//!
//! First the whole undo is played through on what the files are now, and whatever was changed since by somebody else
//! stops it; only then is anything written. It goes through the workspace like every other change, and is written down
//! like one: an undo can be undone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use toolhost_contract::BoxFuture;
use toolhost_contract::workspace::{
    ChangeLog, EntryKind, Error as WorkspaceError, FORMER_BYTES_MAX, FileChange, Present, ReadSpan, Workspace,
    WriteGuard, WsPath, decode,
};
use toolhost_contract::{Call, ErrorKind, Made, ToolError, visible_line};
use toolhost_store::{Change, Changes, FileLog, NewChange};

/// Stands for the hash of what was too large to be kept, or no plain file.
const UNKEPT: &str = "unkept";
/// Stands for the hash of a folder that was made on the way.
const FOLDER: &str = "folder";

/// What a caller hears of a failure that is the operator's alone.
const UNTOLD: &str = "the host's database failed; the operator finds the cause in the log";

/// Writes the changes of one call down.
pub(crate) struct Logged {
    log: FileLog,
    project_id: i64,
    call_id: String,
    session_id: Option<String>,
}

impl Logged {
    pub(crate) fn new(log: FileLog, call: &Call) -> Self {
        let (project_id, session_id) = (call.scope.project_id, call.scope.session_id.clone());
        Self { log, project_id, call_id: call.id.to_string(), session_id }
    }
}

impl ChangeLog for Logged {
    fn before(&self, change: FileChange) -> BoxFuture<'_, toolhost_contract::workspace::Result<()>> {
        Box::pin(async move {
            let (former_sha256, former_mode, former) = match change.former {
                Present::Nothing => (None, None, None),
                Present::Kept(former) => (Some(former.sha256), Some(former.mode), Some(former.bytes)),
                Present::TooLarge | Present::NoFile => (Some(UNKEPT.to_owned()), None, None),
            };
            let new = NewChange {
                project_id: self.project_id,
                call_id: self.call_id.clone(),
                session_id: self.session_id.clone(),
                path: change.path.to_string(),
                moved_to: change.moved_to.map(|path| path.to_string()),
                former_sha256,
                former_mode,
                former,
                after_sha256: if change.folder { Some(FOLDER.to_owned()) } else { change.after_sha256 },
            };
            self.log.before(&new).await.map_err(|error| {
                let why = error.outage().map_or(UNTOLD, |outage| outage.told().0).to_owned();
                WorkspaceError::Unkept { path: change.path.to_string(), why, source: Box::new(error) }
            })
        })
    }
}

/// What an undo does to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoStep {
    pub path: String,
    /// Hash of what is there now, and of what comes back; `None`: nothing.
    pub now: Option<String>,
    pub then: Option<String>,
    /// From what is there now to what comes back.
    pub diff: String,
    /// Permission bits that come back, where they are others now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// A file that stops an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoConflict {
    pub path: String,
    pub why: String,
}

/// An undo, played through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undo {
    pub steps: Vec<UndoStep>,
    pub conflicts: Vec<UndoConflict>,
    /// Folders that were made on the way, the innermost first: they go if nothing is in them.
    pub folders: Vec<String>,
    /// The calls whose changes are undone, the newest first.
    pub calls: Vec<String>,
}

/// What a path holds in the play.
#[derive(Clone, Default)]
struct Held {
    sha256: Option<String>,
    mode: Option<u32>,
    /// It was gone in between: its permission bits are those of a new file, and no longer its own.
    made_anew: bool,
}

/// What a path holds now.
struct Real {
    sha256: Option<String>,
    mode: Option<u32>,
    bytes: Vec<u8>,
}

impl Undo {
    /// Plays the changes back, the newest first.
    pub async fn plan(log: &FileLog, project: i64, workspace: &Workspace, which: &Changes) -> Result<Self, ToolError> {
        let changes = log.changes(project, which).await.map_err(ToolError::from)?;
        let mut undo = Self { steps: Vec::new(), conflicts: Vec::new(), folders: Vec::new(), calls: Vec::new() };
        let mut real: BTreeMap<String, Real> = BTreeMap::new();
        let mut play: BTreeMap<String, Held> = BTreeMap::new();
        for change in &changes {
            if undo.calls.last() != Some(&change.call_id) {
                undo.calls.push(change.call_id.clone());
            }
            if change.after_sha256.as_deref() == Some(FOLDER) {
                undo.folder(workspace, &change.path).await?;
                continue;
            }
            for path in std::iter::once(&change.path).chain(&change.moved_to) {
                if real.contains_key(path) || undo.conflicts.iter().any(|conflict| conflict.path == *path) {
                    continue;
                }
                match look(workspace, path).await? {
                    Ok(now) => {
                        play.insert(path.clone(), Held { sha256: now.sha256.clone(), ..Held::default() });
                        real.insert(path.clone(), now);
                    }
                    Err(why) => undo.conflicts.push(UndoConflict { path: path.clone(), why }),
                }
            }
            let is_known = undo.conflicts.iter().any(|conflict| conflict.path == change.path);
            if let Err(why) = play_back(&mut play, change)
                && !is_known
            {
                undo.conflicts.push(UndoConflict { path: change.path.clone(), why });
            }
        }
        for (path, held) in play {
            let Some(now) = real.remove(&path) else { continue };
            let mode = held.mode.filter(|mode| held.made_anew && now.mode != Some(*mode));
            let same = now.sha256 == held.sha256 && mode.is_none();
            if same || undo.conflicts.iter().any(|conflict| conflict.path == path) {
                continue;
            }
            let then = match &held.sha256 {
                None => Vec::new(),
                Some(sha256) => match log.content(project, sha256).await.map_err(ToolError::from)? {
                    Some(content) => content,
                    None => {
                        let why = "its former content is no longer kept".to_owned();
                        undo.conflicts.push(UndoConflict { path, why });
                        continue;
                    }
                },
            };
            let mut diff = diff(&path, &now.bytes, &then);
            if let (Some(now), Some(then)) = (now.mode, mode) {
                diff.push_str(&format!("{}: its permissions {now:o} become {then:o}\n", visible_line(&path)));
            }
            // One that is made has no other bits than these.
            let mode = mode.or(held.mode.filter(|_| now.sha256.is_none()));
            undo.steps.push(UndoStep { path, now: now.sha256, then: held.sha256, diff, mode });
        }
        Ok(undo)
    }

    /// Whether there is nothing to put back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.conflicts.is_empty() && self.folders.is_empty()
    }

    /// SHA-256 of all that it does, hex: what a person who has seen it agrees to.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn digest(&self) -> Result<String, ToolError> {
        Ok(hex::encode(Sha256::digest(serde_json::to_vec(self).map_err(ToolError::internal)?)))
    }

    /// A folder that was made goes, if it is still one.
    async fn folder(&mut self, workspace: &Workspace, path: &str) -> Result<(), ToolError> {
        let parsed = WsPath::parse(path)?;
        let spot = workspace.spot(&parsed, false).await;
        let is_there = spot.is_ok_and(|spot| spot.path == parsed && spot.kind == Some(EntryKind::Folder));
        if is_there && !self.folders.iter().any(|known| known == path) {
            self.folders.push(path.to_owned());
        }
        Ok(())
    }

    /// Puts everything back. Whatever has changed since it was planned stops it before that file.
    pub async fn apply(&self, log: &FileLog, project: i64, call: &Call, workspace: Workspace) -> Result<(), ToolError> {
        if let Some(conflict) = self.conflicts.first() {
            let message = format!("`{}`: {}; nothing was undone", conflict.path, conflict.why);
            return Err(ToolError::new(ErrorKind::Conflict, message));
        }
        let workspace = workspace.logged(Arc::new(Logged::new(log.clone(), call))).exactly();
        for step in &self.steps {
            let path = WsPath::parse(&step.path)?;
            let Some(then) = &step.then else {
                workspace.remove(&path, step.now.as_deref()).await.map_err(|error| meanwhile(&step.path, error))?;
                continue;
            };
            let content = log.content(project, then).await.map_err(ToolError::from)?;
            let content = content.ok_or_else(|| changed(&step.path))?;
            let guard = WriteGuard {
                expected_sha256: step.now.clone(),
                create_only: step.now.is_none(),
                mode: step.mode,
                exact: true,
            };
            workspace.write(&path, content, guard).await.map_err(|error| meanwhile(&step.path, error))?;
        }
        for folder in &self.folders {
            // Something else may be in it by now: then it stays.
            let _ = workspace.remove(&WsPath::parse(folder)?, None).await;
        }
        Ok(())
    }
}

fn meanwhile(path: &str, error: WorkspaceError) -> ToolError {
    match error {
        WorkspaceError::Changed { .. } | WorkspaceError::NotFound { .. } | WorkspaceError::Exists { .. } => {
            changed(path)
        }
        error => error.into(),
    }
}

fn changed(path: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("`{path}` has just been changed; it was left as it is"))
}

/// One change backwards. A change that never happened leaves everything as it is.
fn play_back(play: &mut BTreeMap<String, Held>, change: &Change) -> Result<(), String> {
    let place = change.moved_to.as_ref().unwrap_or(&change.path);
    let at = |path: &String| play.get(path).and_then(|held| held.sha256.clone());
    let is_kept = change.former_sha256.as_deref() != Some(UNKEPT);
    // A large file that was moved has no hash that is known.
    if at(place) != change.after_sha256 && (is_kept || change.moved_to.is_none()) {
        let never =
            at(&change.path) == change.former_sha256 && change.moved_to.as_ref().is_none_or(|to| at(to).is_none());
        return if never { Ok(()) } else { Err("it was changed since".to_owned()) };
    }
    if !is_kept {
        return Err("what was there before was too large to be kept, or no plain file".to_owned());
    }
    // What is made or comes to this place is no longer the file that was here before.
    let made_anew = play.get(&change.path).is_some_and(|held| held.made_anew || held.sha256.is_none());
    if let Some(to) = &change.moved_to {
        if at(&change.path).is_some() {
            return Err(format!("it was moved to `{to}`, and something else is in its place now"));
        }
        play.insert(to.clone(), Held { made_anew: true, ..Held::default() });
    }
    let held = Held { sha256: change.former_sha256.clone(), mode: change.former_mode, made_anew };
    play.insert(change.path.clone(), held);
    Ok(())
}

/// Compares what a call has logged with the files as they are.
pub(crate) async fn made(log: &FileLog, project: i64, workspace: &Workspace, call: &str) -> Result<Made, ToolError> {
    let changes = log.changes(project, &Changes::Call(call.to_owned())).await.map_err(ToolError::internal)?;
    let mut seen = BTreeSet::new();
    let mut all = None;
    for change in &changes {
        // A folder is made on the way to a file and decides nothing: making it again changes nothing. Where a change was
        // tried anew, the newest row has what was replaced.
        if change.after_sha256.as_deref() == Some(FOLDER) || !seen.insert(&change.path) {
            continue;
        }
        let one = was_made(workspace, change).await?;
        if all.is_some_and(|all| all != one) {
            return Ok(Made::Unknown);
        }
        all = Some(one);
    }
    // Only folders: the change that they were made for was not even logged.
    Ok(all.unwrap_or(Made::No))
}

async fn was_made(workspace: &Workspace, change: &Change) -> Result<Made, ToolError> {
    let there = async |path: &str| look(workspace, path).await.map(|found| found.ok().map(|real| real.sha256));
    let Some(place) = there(&change.path).await? else { return Ok(Made::Unknown) };
    let (former, after) = (&change.former_sha256, &change.after_sha256);
    let Some(target) = &change.moved_to else {
        return Ok(match place {
            place if place == *after => Made::Yes,
            place if place == *former => Made::No,
            _ => Made::Unknown,
        });
    };
    let Some(target) = there(target).await? else { return Ok(Made::Unknown) };
    // A file that is too large to be kept has no hash to compare.
    Ok(match (place, target) {
        (None, target) if target.is_some() && target == *after => Made::Yes,
        (place, None) if place.is_some() && place == *former => Made::No,
        _ => Made::Unknown,
    })
}

/// What is at the very path: no link is followed there, for it may be another than when the change was made. The error
/// says what stands in the way.
async fn look(workspace: &Workspace, path: &str) -> Result<Result<Real, String>, ToolError> {
    let parsed = WsPath::parse(path)?;
    let spot = match workspace.spot(&parsed, false).await {
        Ok(spot) => spot,
        Err(WorkspaceError::NotFound { .. }) => {
            return Ok(Err("something else stands on the way there now".to_owned()));
        }
        Err(WorkspaceError::Escape { .. }) => return Ok(Err("a link stands on the way there now".to_owned())),
        Err(error) => return Err(error.into()),
    };
    let why = match spot.kind {
        _ if spot.path != parsed => "a link stands on the way there now",
        Some(EntryKind::Link) => "it is a link now",
        Some(EntryKind::Folder) => "it is a folder now",
        Some(EntryKind::Other) => "it is no regular file now",
        Some(EntryKind::File) => {
            // One byte more than is ever kept: such a file has another hash than any that is known.
            let span = ReadSpan { start: 0, bytes_max: FORMER_BYTES_MAX + 1 };
            let content = workspace.read(&spot.path, span).await?;
            let sha256 = Some(hex::encode(Sha256::digest(&content.bytes)));
            return Ok(Ok(Real { sha256, mode: Some(content.mode), bytes: content.bytes }));
        }
        None => return Ok(Ok(Real { sha256: None, mode: None, bytes: Vec::new() })),
    };
    Ok(Err(why.to_owned()))
}

fn diff(path: &str, before: &[u8], after: &[u8]) -> String {
    let path = visible_line(path);
    match (decode(before), decode(after)) {
        (Some(before), Some(after)) => toolhost_contract::workspace::diff(&path, &before.text, &after.text),
        _ => format!("{path}: {} bytes become {}\n", before.len(), after.len()),
    }
}
