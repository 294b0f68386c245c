//! Deploys: a finished workspace, copied into the user's own folder.
//!
//! A plan says what would happen, a person approves its digest, and a run does exactly that. Nothing of the user's is
//! ever overwritten: files come into place by a rename and what stood there is moved aside, so that [`Deployer::undo`]
//! can bring it back. A crash at any moment leaves a journal from which the next call finishes what was begun or takes
//! it back; the target is never left half-deployed.
//!
//! All of this blocks: callers bring a thread where blocking is allowed. Who may deploy is decided elsewhere.

mod deployment;
mod ignored;
mod journal;
mod listing;
mod plan;
mod roll;
mod root;
mod rules;
mod run;
mod tool;
mod undo;

use std::path::{Path, PathBuf};

use serde::Serialize;

use self::journal::{Manifest, Stage, Work};
use self::listing::Hashes;
use self::root::Root;
use toolhost_contract::AnyTool;
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::{from_io, real_folder};

pub use self::deployment::{DeployProgress, Deployment};
pub use self::journal::DeployKey;
pub use self::plan::{DeployPlan, FormerFile, PlannedFile, PlannedRemoval, Reason};
pub use self::rules::{DeployRules, Orphans, PROTECT_DEFAULT, SHIP_DEFAULT};

/// Where the target keeps the state of deploys.
const WORK_FOLDER: &str = toolhost_contract::workspace::STATE_FOLDER;
/// Deploys that can be looked at and undone; what older ones replaced is deleted.
const DEPLOYS_KEPT: usize = 10;
/// Folders inside each other. What is deeper is listed as left out, in the workspace and in the target.
const DEPTH_MAX: usize = 256;
/// Paths that an error names.
const PATHS_NAMED_MAX: usize = 5;

/// The tools of deploys. `None`: the operator has not said where the workspace is deployed to, and each call says so.
pub fn tools(deployment: Option<&Deployment>) -> Vec<Box<dyn AnyTool>> {
    vec![Box::new(tool::Copy(deployment.cloned()))]
}

/// A workspace and the folder it is deployed to, both held open.
pub struct Deployer {
    source: Root,
    target: Root,
    source_path: PathBuf,
    target_path: PathBuf,
    /// The workspace's path in the target, if it is in there.
    own: Option<String>,
    hashes: Hashes,
    key: DeployKey,
    /// What was recovered through this value, until somebody asks.
    recovered: std::sync::Mutex<Vec<Recovered>>,
    /// Whether the file system supports `RENAME_EXCHANGE`, as far as is known.
    exchanges: bool,
}

/// Id, time and author of a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployMark {
    /// Letters, digits, `-` and `_`; not used before.
    pub id: String,
    pub at_ms: i64,
    pub who: String,
}

/// Told of each step, and of how far the long ones have come.
pub trait DeployWatch: Send {
    /// An error ends everything at once, as the end of the process would: the next call recovers what is left.
    fn step(&mut self, _step: DeployStep) -> Result<()> {
        Ok(())
    }

    fn progress(&mut self, _done: usize, _total: usize, _doing: &'static str) {}
}

/// Watches nothing.
impl DeployWatch for () {}

/// What has just been done. Numbers count the files of the deploy's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeployStep {
    Planned,
    Recorded,
    Staged,
    Verified,
    Committed,
    FolderMade(usize),
    /// What stood at the file's place is out of the way, but not yet where it is kept.
    MovedAside(usize),
    Renamed(usize),
    Deleted(usize),
    Manifest,
    Done,
    UndoMarked,
    Restored(usize),
    FolderRemoved(usize),
    FormerManifest,
    Undone,
}

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    /// `None` if there was nothing to do: then nothing was recorded either.
    pub id: Option<String>,
    pub new: usize,
    pub changed: usize,
    pub deleted: usize,
    pub unchanged: usize,
    pub bytes: u64,
    /// What somebody changed at the last moment, and where it is now.
    pub kept: Vec<Reason>,
}

/// What taking back the newest deploy would do, or has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndoPlan {
    pub id: String,
    /// Files that get their former content back.
    pub restored: Vec<String>,
    /// Files that the deploy brought.
    pub removed: Vec<String>,
    /// Files that the deploy deleted.
    pub returned: Vec<String>,
    /// What was changed since; with any of these nothing is undone.
    pub conflicts: Vec<Reason>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    pub id: String,
    pub restored: usize,
    pub removed: usize,
    pub returned: usize,
    /// What somebody changed at the last moment, and where it is now.
    pub kept: Vec<Reason>,
}

/// What a crash had left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Recovered {
    /// It had not begun to change the target.
    Discarded {
        id: String,
    },
    Finished {
        id: String,
        kept: Vec<Reason>,
    },
    TakenBack {
        id: String,
        kept: Vec<Reason>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployRecord {
    pub id: String,
    pub at_ms: i64,
    pub who: String,
    pub new: usize,
    pub changed: usize,
    pub deleted: usize,
    pub bytes: u64,
    pub state: DeployState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeployState {
    /// Under way, or left by a crash.
    Unfinished,
    Done,
    Undone,
}

/// The caller's watch, and whether it has ended everything.
struct Port<'a> {
    watch: &'a mut dyn DeployWatch,
    ended: bool,
}

impl<'a> Port<'a> {
    fn new(watch: &'a mut dyn DeployWatch) -> Self {
        Self { watch, ended: false }
    }

    fn step(&mut self, step: DeployStep) -> Result<()> {
        let told = self.watch.step(step);
        self.ended |= told.is_err();
        told
    }
}

impl Deployer {
    /// Opens both folders. The workspace may be inside the target, but not the other way round.
    pub fn open(source: &Path, target: &Path, key: DeployKey) -> Result<Self> {
        let source_path = real_folder(source).map_err(|e| from_io("the workspace", e))?;
        let target_path = real_folder(target).map_err(|_| Error::DeployFolders {
            why: "the deploy target is not a folder, or it does not exist: a person must create it, or name another one",
        })?;
        let (source, target) = (Root::open(&source_path)?, Root::open(&target_path)?);
        if source_path == target_path || (source.device, source.inode) == (target.device, target.inode) {
            return Err(Error::DeployFolders { why: "the workspace and the target of the deploy are the same folder" });
        }
        if target_path.starts_with(&source_path) {
            return Err(Error::DeployFolders { why: "the target of the deploy is inside the workspace" });
        }
        let own = match source_path.strip_prefix(&target_path) {
            Ok(below) => Some(below.to_str().map(str::to_owned).ok_or(Error::DeployFolders {
                why: "the workspace is inside the target, and its path there is not UTF-8",
            })?),
            Err(_) => None,
        };
        if own.as_deref().is_some_and(|own| own.split('/').next() == Some(WORK_FOLDER)) {
            return Err(Error::DeployFolders {
                why: "the workspace is inside the folder that deploys keep their state in",
            });
        }
        let (hashes, recovered) = (Hashes::default(), std::sync::Mutex::default());
        Ok(Self { source, target, source_path, target_path, own, hashes, key, recovered, exchanges: true })
    }

    /// Finishes or takes back what a crash left. Every other call that changes or plans something does this first.
    pub fn recover(&self, watch: &mut dyn DeployWatch) -> Result<Vec<Recovered>> {
        match Work::open(&self.target, &self.key, &|| false)? {
            Some(work) => self.recover_work(&work, &mut Port::new(watch)),
            None => Ok(Vec::new()),
        }
    }

    /// What a run would do. Changes nothing but what a crash left.
    pub fn plan(&self, rules: &DeployRules, stop: &(dyn Fn() -> bool + Sync)) -> Result<DeployPlan> {
        let work = Work::open(&self.target, &self.key, stop)?;
        let manifest = match &work {
            Some(work) => {
                self.recover_work(work, &mut Port::new(&mut ()))?;
                work.manifest()?
            }
            None => Manifest::default(),
        };
        Ok(plan::survey(self, rules, &manifest, stop)?.plan)
    }

    /// Does what a person has approved, if the world is still the one that the plan was made for.
    pub fn run(
        &self,
        approved: &DeployPlan,
        rules: &DeployRules,
        mark: &DeployMark,
        watch: &mut dyn DeployWatch,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Deployed> {
        run::run(self, &run::Order { approved, rules, mark }, &mut Port::new(watch), stop)
    }

    /// What [`undo`](Self::undo) would do now; `None` if there is nothing to undo.
    pub fn undo_plan(&self) -> Result<Option<UndoPlan>> {
        undo::plan(self)
    }

    /// Takes back the newest deploy that is not yet undone. A name asks for that very one.
    pub fn undo(&self, id: Option<&str>, watch: &mut dyn DeployWatch) -> Result<Undone> {
        undo::undo(self, id, &mut Port::new(watch))
    }

    /// The deploys that are kept, newest first.
    pub fn history(&self) -> Result<Vec<DeployRecord>> {
        Work::look(&self.target, &self.key)?.map_or(Ok(Vec::new()), |work| work.history())
    }

    /// Takes the list of deploys that were recovered since the last call of this function. The caller records them in the audit.
    pub fn take_recovered(&self) -> Vec<Recovered> {
        std::mem::take(&mut *self.recovered.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn recover_work(&self, work: &Work, port: &mut Port<'_>) -> Result<Vec<Recovered>> {
        let mut recovered = Vec::new();
        let done = self.recover_all(work, port, &mut recovered);
        self.recovered.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(recovered.iter().cloned());
        done.map(|()| recovered)
    }

    fn recover_all(&self, work: &Work, port: &mut Port<'_>, recovered: &mut Vec<Recovered>) -> Result<()> {
        for id in work.folders()? {
            match work.stage(&id)? {
                Stage::Preparing => {
                    work.remove(&id)?;
                    recovered.push(Recovered::Discarded { id });
                }
                Stage::Committed => {
                    let deploy = work.load(&id)?;
                    recovered.push(match run::finish(self, work, &deploy, None, port)? {
                        run::End::Done { kept } => Recovered::Finished { id, kept },
                        run::End::TakenBack { kept, .. } => Recovered::TakenBack { id, kept },
                    });
                }
                Stage::Undoing => {
                    let deploy = work.load(&id)?;
                    let kept = undo::take_back(self, work, &deploy, undo::Certainty::AfterCrash, port)?;
                    recovered.push(Recovered::TakenBack { id, kept });
                }
                Stage::Done | Stage::Undone => {}
            }
        }
        Ok(())
    }

    /// Everything that was written so far is on disk when this returns.
    fn sync(&self) -> Result<()> {
        let io = |e: std::io::Error| from_io(".", e);
        let root = self.target.listed_folder("").map_err(io)?;
        rustix::fs::syncfs(root).map_err(|e| io(e.into()))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests, on real folders")]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct EndAfter(usize);

    impl DeployWatch for EndAfter {
        fn step(&mut self, _: DeployStep) -> Result<()> {
            self.0 = self.0.checked_sub(1).ok_or(Error::Cancelled)?;
            Ok(())
        }
    }

    /// Three small files on each side: one new, one changed, one deleted.
    struct Small(tempfile::TempDir);

    impl Small {
        fn new() -> Self {
            let small = Self(tempfile::tempdir().unwrap());
            for (path, text) in [("s/changed.html", "former"), ("s/gone.html", "gone")] {
                small.write(path, text);
            }
            std::fs::create_dir(small.0.path().join("t")).unwrap();
            small.run("first", usize::MAX).unwrap();
            small.write("s/changed.html", "brought");
            small.write("s/folder/new.html", "new");
            std::fs::remove_file(small.0.path().join("s/gone.html")).unwrap();
            small
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        /// As on a file system where two names cannot change places in one step.
        fn deployer(&self) -> Deployer {
            let deployer =
                Deployer::open(&self.0.path().join("s"), &self.0.path().join("t"), DeployKey::new([7; 32])).unwrap();
            Deployer { exchanges: false, ..deployer }
        }

        fn run(&self, id: &str, steps: usize) -> Result<Deployed> {
            let deployer = self.deployer();
            let plan = deployer.plan(&DeployRules::default(), &|| false)?;
            let mark = DeployMark { id: id.to_owned(), at_ms: 0, who: String::new() };
            deployer.run(&plan, &plan.rules, &mark, &mut EndAfter(steps), &|| false)
        }

        fn tree(&self) -> BTreeMap<&'static str, String> {
            let read = |path: &'static str| Some((path, std::fs::read_to_string(self.0.path().join(path)).ok()?));
            ["t/changed.html", "t/gone.html", "t/folder/new.html"].into_iter().filter_map(read).collect()
        }
    }

    #[test]
    fn where_names_cannot_change_places_recovery_works_all_the_same() {
        let small = Small::new();
        let former = small.tree();
        small.run("second", usize::MAX).unwrap();
        let complete = small.tree();
        assert_eq!(complete.get("t/gone.html"), None);
        small.deployer().undo(None, &mut ()).unwrap();
        assert_eq!(small.tree(), former);
        for steps in 0.. {
            let small = Small::new();
            let ended = small.run("second", steps);
            small.deployer().recover(&mut EndAfter(steps % 3)).ok();
            small.deployer().recover(&mut ()).unwrap();
            let tree = small.tree();
            assert!(tree == complete || (tree == former && ended.is_err()), "{steps} steps: {tree:?}");
            if tree == complete {
                let undone = small.deployer().undo(None, &mut EndAfter(steps % 7)).is_ok();
                let recovered = small.deployer().recover(&mut ()).unwrap();
                let marked = undone || !recovered.is_empty();
                assert_eq!(small.tree(), if marked { former.clone() } else { complete.clone() }, "{steps} steps");
            }
            if ended.is_ok() {
                break;
            }
        }
    }
}
