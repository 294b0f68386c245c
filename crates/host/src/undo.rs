//! Putting back what file tools have changed.
//!
//! First the whole undo is played through on what the files are now, and whatever was changed since by somebody else
//! stops it; only then is anything written. It goes through the workspace like every other change, and is written down
//! like one: an undo can be undone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use similar::TextDiff;
use toolhost_contract::{Call, ErrorKind, ToolError};
use toolhost_sandbox::{
    BoxFuture, ChangeLog, Error as SandboxError, FORMER_BYTES_MAX, FileChange, Present, ReadSpan, Workspace,
    WriteGuard, WsPath, decode,
};
use toolhost_store::{Change, Changes, FileLog, NewChange};

/// Stands for the hash of what was too large to be kept, or no plain file.
const UNKEPT: &str = "unkept";

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
    fn before(&self, change: FileChange) -> BoxFuture<'_, toolhost_sandbox::Result<()>> {
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
                after_sha256: change.after_sha256,
            };
            self.log.before(&new).await.map_err(|error| {
                let source = std::io::Error::other(error);
                SandboxError::Io { path: change.path.to_string(), source }
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
    #[serde(skip)]
    mode: Option<u32>,
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
    /// The calls whose changes are undone, the newest first.
    pub calls: Vec<String>,
}

/// What a path holds in the play.
#[derive(Clone)]
struct Held {
    sha256: Option<String>,
    mode: Option<u32>,
}

impl Undo {
    /// Plays the changes back, the newest first.
    pub async fn plan(log: &FileLog, project: i64, workspace: &Workspace, which: &Changes) -> Result<Self, ToolError> {
        let changes = log.changes(project, which).await.map_err(ToolError::internal)?;
        let mut undo = Self { steps: Vec::new(), conflicts: Vec::new(), calls: Vec::new() };
        let mut real: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut play: BTreeMap<String, Held> = BTreeMap::new();
        for change in &changes {
            if undo.calls.last() != Some(&change.call_id) {
                undo.calls.push(change.call_id.clone());
            }
            for path in std::iter::once(&change.path).chain(&change.moved_to) {
                if !real.contains_key(path) {
                    let now = hash_of(workspace, path).await?;
                    real.insert(path.clone(), now.clone());
                    play.insert(path.clone(), Held { sha256: now, mode: None });
                }
            }
            if let Err(why) = play_back(&mut play, change) {
                undo.conflicts.push(UndoConflict { path: change.path.clone(), why });
            }
        }
        for (path, held) in play {
            let now = real.remove(&path).flatten();
            if now == held.sha256 || undo.conflicts.iter().any(|conflict| conflict.path == path) {
                continue;
            }
            let then = match &held.sha256 {
                None => Vec::new(),
                Some(sha256) => match log.content(project, sha256).await.map_err(ToolError::internal)? {
                    Some(content) => content,
                    None => {
                        let why = "its former content is no longer kept".to_owned();
                        undo.conflicts.push(UndoConflict { path, why });
                        continue;
                    }
                },
            };
            let before = read(workspace, &path).await?.unwrap_or_default();
            let diff = diff(&path, &before, &then);
            undo.steps.push(UndoStep { path, now, then: held.sha256, diff, mode: held.mode });
        }
        Ok(undo)
    }

    /// Puts everything back. Whatever has changed since it was planned stops it before that file.
    pub async fn apply(&self, log: &FileLog, project: i64, call: &Call, workspace: Workspace) -> Result<(), ToolError> {
        if let Some(conflict) = self.conflicts.first() {
            let message = format!("`{}`: {}; nothing was undone", conflict.path, conflict.why);
            return Err(ToolError::new(ErrorKind::Conflict, message));
        }
        let workspace = workspace.logged(Arc::new(Logged::new(log.clone(), call)));
        for step in &self.steps {
            let path = WsPath::parse(&step.path)?;
            let Some(then) = &step.then else {
                if hash_of(&workspace, &step.path).await? != step.now {
                    return Err(changed(&step.path));
                }
                workspace.remove(&path).await?;
                continue;
            };
            let content = log.content(project, then).await.map_err(ToolError::internal)?;
            let content = content.ok_or_else(|| changed(&step.path))?;
            let guard =
                WriteGuard { expected_sha256: step.now.clone(), create_only: step.now.is_none(), mode: step.mode };
            workspace.write(&path, content, guard).await?;
        }
        Ok(())
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
    if let Some(to) = &change.moved_to {
        if at(&change.path).is_some() {
            return Err(format!("it was moved to `{to}`, and something else is in its place now"));
        }
        play.insert(to.clone(), Held { sha256: None, mode: None });
    }
    let held = Held { sha256: change.former_sha256.clone(), mode: change.former_mode };
    play.insert(change.path.clone(), held);
    Ok(())
}

async fn hash_of(workspace: &Workspace, path: &str) -> Result<Option<String>, ToolError> {
    Ok(read(workspace, path).await?.map(|bytes| hex::encode(Sha256::digest(bytes))))
}

async fn read(workspace: &Workspace, path: &str) -> Result<Option<Vec<u8>>, ToolError> {
    let path = WsPath::parse(path)?;
    // One byte more than is ever kept: such a file has another hash than any that is known.
    match workspace.read(&path, ReadSpan { start: 0, bytes_max: FORMER_BYTES_MAX + 1 }).await {
        Ok(content) => Ok(Some(content.bytes)),
        Err(SandboxError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn diff(path: &str, before: &[u8], after: &[u8]) -> String {
    match (decode(before), decode(after)) {
        (Some(before), Some(after)) => TextDiff::from_lines(&before.text, &after.text)
            .unified_diff()
            .header(&format!("a/{path}"), &format!("b/{path}"))
            .to_string(),
        _ => format!("{path}: {} bytes become {}\n", before.len(), after.len()),
    }
}
