//! Taking a deploy back.

use super::journal::{Deploy, Marker, Stage, Work};
use super::listing::{EntryChecker, Job, Place};
use super::plan::{Reason, name_some};
use super::roll::{Known, Roll, is_content};
use super::root::look;
use super::{DeployStep, Deployer, PATHS_NAMED_MAX, Port, UndoPlan, Undone};
use toolhost_contract::workspace::{Error, Result};
use toolhost_sandbox::from_io;

/// What is known of the state that it is taken back from.
#[derive(Clone, Copy)]
pub(super) enum Certainty {
    Verified,
    AfterCrash,
}

pub(super) fn plan(deployer: &Deployer) -> Result<Option<UndoPlan>> {
    let Some(work) = Work::open(&deployer.target, &deployer.key, &|| false)? else { return Ok(None) };
    deployer.recover_work(&work, &mut Port::new(&mut ()))?;
    let Some(id) = newest(&work)? else { return Ok(None) };
    plan_of(deployer, &work.load(&id)?).map(Some)
}

pub(super) fn undo(deployer: &Deployer, id: Option<&str>, port: &mut Port<'_>) -> Result<Undone> {
    let none = || Error::NoDeploy { what: "is there to undo".to_owned() };
    let work = Work::open(&deployer.target, &deployer.key, &|| false)?.ok_or_else(none)?;
    deployer.recover_work(&work, port)?;
    let newest = newest(&work)?.ok_or_else(none)?;
    if let Some(asked) = id.filter(|asked| *asked != newest) {
        let what = format!("`{asked}` can be undone: the newest one that is not undone is `{newest}`");
        return Err(Error::NoDeploy { what });
    }
    let deploy = work.load(&newest)?;
    let plan = plan_of(deployer, &deploy)?;
    if !plan.conflicts.is_empty() {
        let paths: Vec<&str> = plan.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        return Err(Error::UndoBlocked { paths: name_some(&paths, PATHS_NAMED_MAX) });
    }
    work.mark(&deploy.id, Marker::Undo)?;
    port.step(DeployStep::UndoMarked)?;
    let kept = take_back(deployer, &work, &deploy, Certainty::Verified, port)?;
    Ok(Undone {
        id: plan.id,
        restored: plan.restored.len(),
        removed: plan.removed.len(),
        returned: plan.returned.len(),
        kept,
    })
}

/// Everything after the mark, also after a crash.
pub(super) fn take_back(
    deployer: &Deployer,
    work: &Work,
    deploy: &Deploy,
    certainty: Certainty,
    port: &mut Port<'_>,
) -> Result<Vec<Reason>> {
    let known = match certainty {
        Certainty::Verified => Known::Whole,
        Certainty::AfterCrash => Known::Nothing,
    };
    let mut roll = Roll::new(deployer, deploy, known);
    roll.back(port)?;
    work.write_manifest(&work.former_manifest(&deploy.id)?)?;
    port.step(DeployStep::FormerManifest)?;
    deployer.sync()?;
    work.mark(&deploy.id, Marker::Undone)?;
    port.step(DeployStep::Undone)?;
    Ok(roll.kept)
}

fn newest(work: &Work) -> Result<Option<String>> {
    let done = work.deploys()?.into_iter().rfind(|about| matches!(work.stage(&about.id), Ok(Stage::Done)));
    Ok(done.map(|about| about.id))
}

const TAMPERED: &str = "what was there before was changed where it is kept";

/// Whether what would come back is what was put away: the journal is sealed, the files beside it are not.
fn is_as_put_away(deploy: &Deploy, n: usize, noted: Option<(u32, &String)>) -> Result<bool> {
    let name = n.to_string();
    match noted {
        Some((mode, sha256)) => is_content((&deploy.former, &name), mode, sha256),
        None => Ok(false),
    }
}

fn plan_of(deployer: &Deployer, deploy: &Deploy) -> Result<UndoPlan> {
    let record = &deploy.record;
    let kept = |name: usize| {
        let name = name.to_string();
        look(&deploy.former, &name).map(|found| found.is_some()).map_err(|e| from_io(&name, e))
    };
    let mut plan = UndoPlan {
        id: deploy.id.clone(),
        restored: Vec::new(),
        removed: Vec::new(),
        returned: Vec::new(),
        conflicts: Vec::new(),
    };
    let mut looker = EntryChecker::new(&deployer.target);
    let mut there = Vec::with_capacity(record.files.len());
    for (n, file) in record.files.iter().enumerate() {
        let kept = kept(n)?;
        let noted = file.former.as_ref().map(|former| (former.mode, &former.sha256));
        let noted = deploy.late.get(&n.to_string()).map(|late| (late.mode, &late.sha256)).or(noted);
        if kept && !is_as_put_away(deploy, n, noted)? {
            plan.conflicts.push(Reason::new(&file.path, false, TAMPERED));
            continue;
        }
        let lost = file.former.is_some() && !kept;
        let conflict = match looker.at(&file.path)? {
            Place::File(_) if lost => "what was there before is no longer kept",
            Place::File(_) => {
                there.push(file);
                if kept { &mut plan.restored } else { &mut plan.removed }.push(file.path.clone());
                continue;
            }
            Place::Free => "it was deleted since",
            Place::Blocked(why) => why,
        };
        plan.conflicts.push(Reason::new(&file.path, false, conflict));
    }
    let jobs: Vec<Job<'_>> = there.iter().map(|file| Job { root: &deployer.target, path: &file.path }).collect();
    for (file, hashed) in there.iter().zip(deployer.hashes.all(&jobs, &|| false)?) {
        if hashed.is_none_or(|hashed| hashed.sha256 != file.sha256 || hashed.stat.mode() != file.mode) {
            plan.conflicts.push(Reason::new(&file.path, false, "it was changed since"));
        }
    }
    for (k, orphan) in record.orphans.iter().enumerate() {
        if !kept(record.files.len() + k)? {
            continue;
        }
        if !is_as_put_away(deploy, record.files.len() + k, Some((orphan.mode, &orphan.sha256)))? {
            plan.conflicts.push(Reason::new(&orphan.path, false, TAMPERED));
            continue;
        }
        match looker.at(&orphan.path)? {
            Place::Free => plan.returned.push(orphan.path.clone()),
            Place::File(_) => plan.conflicts.push(Reason::new(&orphan.path, false, "it was made again since")),
            Place::Blocked(why) => plan.conflicts.push(Reason::new(&orphan.path, false, why)),
        }
    }
    plan.conflicts.sort_unstable();
    Ok(plan)
}
