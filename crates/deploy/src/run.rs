//! A run: prepare everything aside, commit, bring it into place.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags};

use super::journal::{Deploy, Manifest, ManifestFile, Marker, Record, Stage, Work, may_be_deployed};
use super::listing::{EntryChecker, Place};
use super::plan::{DeployPlan, PlannedFile, Survey, survey};
use super::roll::{Known, Roll, folder_name, make_folder};
use super::root::{Stat, Stop, in_parallel, plain_mode};
use super::{
    DEPLOYS_KEPT, DeployMark, DeployRules, DeployStep, Deployed, Deployer, PATHS_NAMED_MAX, Port, Reason, undo,
};
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::from_io;
use toolhost_sandbox::sha256_of;

/// Longest name of a deploy.
const ID_BYTES_MAX: usize = 64;
const PROGRESS_EVERY: usize = 256;

/// What a caller asks for.
pub(super) struct Order<'a> {
    pub(super) approved: &'a DeployPlan,
    pub(super) rules: &'a DeployRules,
    pub(super) mark: &'a DeployMark,
}

/// How bringing into place ended.
pub(super) enum End {
    Done {
        kept: Vec<Reason>,
    },
    /// Something stood in the way, so everything was taken back.
    TakenBack {
        kept: Vec<Reason>,
        why: Error,
    },
}

pub(super) fn run(deployer: &Deployer, order: &Order<'_>, port: &mut Port<'_>, stop: Stop<'_>) -> Result<Deployed> {
    check_id(&order.mark.id)?;
    let work = Work::create(&deployer.target, &deployer.key, stop)?;
    deployer.recover_work(&work, port)?;
    if work.folders()?.contains(&order.mark.id) {
        return Err(Error::Exists { path: order.mark.id.clone() });
    }
    let survey = survey(deployer, order.rules, &work.manifest()?, stop)?;
    if survey.plan.digest() != order.approved.digest() {
        return Err(Error::PlanStale { what: survey.plan.differences(order.approved, PATHS_NAMED_MAX) });
    }
    port.step(DeployStep::Planned)?;
    let plan = &survey.plan;
    let mut deployed = Deployed {
        id: None,
        new: plan.new.len(),
        changed: plan.changed.len(),
        deleted: plan.orphans.len(),
        unchanged: plan.unchanged,
        bytes: plan.bytes,
        kept: Vec::new(),
    };
    if plan.is_empty() {
        return Ok(deployed);
    }
    let deploy = match prepare(deployer, &work, order.mark, &survey, port, stop) {
        Ok(deploy) => deploy,
        Err(e) => {
            if !port.ended {
                // Whatever cannot be removed is removed by the next call.
                let _ = work.remove(&order.mark.id);
            }
            return Err(e);
        }
    };
    match finish(deployer, &work, &deploy, Some(&survey.formers), port)? {
        End::Done { kept } => deployed.kept = kept,
        End::TakenBack { why, .. } => return Err(why),
    }
    deployed.id = Some(deploy.id);
    // The deploy is done; old ones that stay cost nothing but room.
    let _ = prune(&work);
    Ok(deployed)
}

fn check_id(id: &str) -> Result<()> {
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if plain && !id.is_empty() && id.len() <= ID_BYTES_MAX {
        return Ok(());
    }
    let message = format!("`{id}` is not 1 to {ID_BYTES_MAX} letters, digits, `-` and `_`");
    Err(Error::Pattern { what: "name of a deploy", message })
}

/// Everything up to the commit: nothing of it touches the target.
fn prepare(
    deployer: &Deployer,
    work: &Work,
    mark: &DeployMark,
    survey: &Survey,
    port: &mut Port<'_>,
    stop: Stop<'_>,
) -> Result<Deploy> {
    let plan = &survey.plan;
    let record = Record {
        files: plan.new.iter().chain(&plan.changed).cloned().collect(),
        orphans: plan.orphans.clone(),
        folders: survey.folders.clone(),
        gone: survey.gone.clone(),
    };
    let paths = record.files.iter().map(|file| &file.path).chain(record.orphans.iter().map(|orphan| &orphan.path));
    // What the listing lets through a crash must be able to fix.
    if let Some(path) = paths.into_iter().find(|path| !may_be_deployed(path)) {
        return Err(Error::Escape { path: path.clone() });
    }
    let deploy = work.begin(mark, record, plan.bytes)?;
    port.step(DeployStep::Recorded)?;
    stage(deployer, &deploy, port, stop)?;
    port.step(DeployStep::Staged)?;
    verify(deployer, &deploy, &survey.formers)?;
    port.step(DeployStep::Verified)?;
    if stop() {
        return Err(Error::Cancelled);
    }
    deployer.sync()?;
    work.mark(&deploy.id, Marker::Commit)?;
    port.step(DeployStep::Committed)?;
    Ok(deploy)
}

/// Copies what is to come, and makes the folders it needs.
fn stage(deployer: &Deployer, deploy: &Deploy, port: &mut Port<'_>, stop: Stop<'_>) -> Result<()> {
    for (k, folder) in deploy.record.folders.iter().enumerate() {
        let made = make_folder(&deployer.target, &deploy.new, &folder_name(k), folder.mode);
        made.map_err(|e| from_io(&folder.path, e))?;
    }
    let files = &deploy.record.files;
    let done = AtomicUsize::new(0);
    let watch = Mutex::new(&mut *port.watch);
    in_parallel(files.len(), stop, |n, buffer| {
        copy(deployer, &deploy.new, n, &files[n], buffer)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS_EVERY) || done == files.len() {
            watch.lock().unwrap_or_else(PoisonError::into_inner).progress(done, files.len(), "copying");
        }
        Ok(())
    })?;
    Ok(())
}

fn copy(deployer: &Deployer, new: &Dir, n: usize, file: &PlannedFile, buffer: &mut [u8]) -> Result<()> {
    let io = |e: std::io::Error| from_io(&file.path, e);
    let stale = || Error::PlanStale { what: format!("`{}`", file.path) };
    let (from, stat) = deployer.source.file(&file.path).map_err(|e| match e {
        Error::Io { .. } => e,
        _ => stale(),
    })?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::openat(new, n.to_string(), flags, Mode::RUSR | Mode::WUSR).map_err(|e| io(e.into()))?;
    let to = File::from(to);
    let sha256 = sha256_of(Tee { from, to: &to }, buffer).map_err(io)?;
    if sha256 != file.sha256 || stat.mode() != file.mode {
        return Err(stale());
    }
    deployer.target.tree().give_to_owner(&to).map_err(io)?;
    rustix::fs::fchmod(&to, plain_mode(file.mode)).map_err(|e| io(e.into()))
}

/// Writes what it reads.
struct Tee<'a> {
    from: File,
    to: &'a File,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.to.write_all(&buffer[..n])?;
        Ok(n)
    }
}

/// Whether the target is still what the plan saw. Copying may have taken minutes.
fn verify(deployer: &Deployer, deploy: &Deploy, formers: &BTreeMap<String, Stat>) -> Result<()> {
    let record = &deploy.record;
    let mut looker = EntryChecker::new(&deployer.target);
    let paths = record.files.iter().map(|file| &file.path).chain(record.orphans.iter().map(|orphan| &orphan.path));
    for path in paths {
        let same = match looker.at(path)? {
            Place::Free => !formers.contains_key(path),
            Place::File(stat) => formers.get(path) == Some(&stat),
            Place::Blocked(_) => false,
        };
        if !same {
            return Err(Error::PlanStale { what: format!("`{path}`") });
        }
    }
    Ok(())
}

/// Everything after the commit, also after a crash: then `formers` is `None`.
pub(super) fn finish(
    deployer: &Deployer,
    work: &Work,
    deploy: &Deploy,
    formers: Option<&BTreeMap<String, Stat>>,
    port: &mut Port<'_>,
) -> Result<End> {
    let known = formers.map_or(Known::Nothing, Known::Stamps);
    let mut roll = Roll::new(deployer, deploy, known);
    let rolled = roll.forward(port).and_then(|()| seal(deployer, work, deploy, &roll, port));
    match rolled {
        Ok(()) => Ok(End::Done { kept: roll.kept }),
        Err(why) if port.ended => Err(why),
        Err(why) => {
            // Something stands in the way of the rest: half a deploy helps nobody.
            work.mark(&deploy.id, Marker::Undo)?;
            let kept = undo::take_back(deployer, work, deploy, undo::Certainty::AfterCrash, port)?;
            Ok(End::TakenBack { kept, why })
        }
    }
}

fn seal(deployer: &Deployer, work: &Work, deploy: &Deploy, roll: &Roll<'_>, port: &mut Port<'_>) -> Result<()> {
    work.note_late(&deploy.id, &roll.late()?)?;
    work.write_manifest(&manifest_after(work, deploy, roll)?)?;
    port.step(DeployStep::Manifest)?;
    deployer.sync()?;
    work.mark(&deploy.id, Marker::Done)?;
    port.step(DeployStep::Done)
}

/// Counted from the manifest before the deploy, so that it comes out the same however often it is counted.
fn manifest_after(work: &Work, deploy: &Deploy, roll: &Roll<'_>) -> Result<Manifest> {
    let mut manifest = work.former_manifest(&deploy.id)?;
    for path in &deploy.record.gone {
        manifest.files.remove(path);
    }
    for (k, orphan) in deploy.record.orphans.iter().enumerate() {
        if roll.is_away(k)? {
            manifest.files.remove(&orphan.path);
        }
    }
    for file in &deploy.record.files {
        let entry = ManifestFile { sha256: file.sha256.clone(), mode: file.mode };
        manifest.files.insert(file.path.clone(), entry);
    }
    Ok(manifest)
}

fn prune(work: &Work) -> Result<()> {
    let ended =
        work.deploys()?.into_iter().filter(|about| matches!(work.stage(&about.id), Ok(Stage::Done | Stage::Undone)));
    let ended: Vec<_> = ended.collect();
    let most = ended.len().saturating_sub(DEPLOYS_KEPT);
    ended.iter().take(most).try_for_each(|about| work.remove(&about.id))
}
