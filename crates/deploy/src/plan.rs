//! What a deploy would do, as a person approves it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::ignored::{Folders, Reach, above_root};
use super::journal::Manifest;
use super::listing::{CLOSED, EntryChecker, FolderAt, Hashed, Job, Next, Place, Source, folder_at, unreachable, walk};
use super::root::{Stat, Stop, split};
use super::rules::{DeployRules, Filter, Orphans, lineage};
use super::{Deployer, WORK_FOLDER};
use toolhost_contract::workspace::Result;

/// What a deploy would do. Only what it would do is in its digest: what is refused or protected is told to the reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployPlan {
    pub target: String,
    pub rules: DeployRules,
    pub new: Vec<PlannedFile>,
    /// Files whose content or mode differs, each with its former state.
    pub changed: Vec<PlannedFile>,
    pub unchanged: usize,
    /// Over the unchanged files' paths, modes and contents.
    pub unchanged_sha256: String,
    pub orphans: Vec<PlannedRemoval>,
    /// Would be orphans, but stay.
    pub protected: Vec<Reason>,
    /// In the workspace, but does not ship.
    pub refused: Vec<Reason>,
    /// Bytes of what is new and changed.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedFile {
    pub path: String,
    pub bytes: u64,
    pub mode: u32,
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerFile {
    pub bytes: u64,
    pub mode: u32,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRemoval {
    pub path: String,
    pub bytes: u64,
    pub mode: u32,
    pub sha256: String,
}

/// A path and why it is treated as it is; a folder ends with a slash and stands for all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    pub path: String,
    pub why: String,
    /// No rule says so: it would be deployed or deleted if it could be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
}

impl Reason {
    /// A rule says so.
    pub(super) fn new(path: &str, folder: bool, why: &str) -> Self {
        let slash = if folder { "/" } else { "" };
        Self { path: format!("{path}{slash}"), why: why.to_owned(), held_back: false }
    }

    /// Something stands in the way.
    pub(super) fn hindrance(path: &str, folder: bool, why: &str) -> Self {
        Self { held_back: true, ..Self::new(path, folder, why) }
    }
}

impl DeployPlan {
    /// SHA-256 of all that the deploy would do: what a person approves.
    pub fn digest(&self) -> String {
        let content = (&self.target, &self.rules, &self.new, &self.changed, &self.unchanged_sha256, &self.orphans);
        let canonical = serde_json::to_vec(&content).expect("strings and numbers have a JSON form");
        hex::encode(Sha256::digest(canonical))
    }

    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.orphans.is_empty()
    }

    /// What would be deployed or deleted if nothing stood in its way.
    pub fn held_back(&self) -> impl Iterator<Item = &Reason> {
        self.protected.iter().chain(&self.refused).filter(|reason| reason.held_back)
    }

    /// Where two plans differ, for a message.
    pub(super) fn differences(&self, other: &Self, most: usize) -> String {
        let mine = self.intents();
        let theirs = other.intents();
        let paths: BTreeSet<&str> = mine.keys().chain(theirs.keys()).copied().collect();
        let differing: Vec<&str> = paths.into_iter().filter(|path| mine.get(path) != theirs.get(path)).collect();
        if differing.is_empty() {
            let rules = self.rules != other.rules || self.target != other.target;
            return (if rules { "the rules" } else { "files that were left alone" }).to_owned();
        }
        name_some(&differing, most)
    }

    fn intents(&self) -> BTreeMap<&str, String> {
        let files = self.new.iter().chain(&self.changed).map(|file| {
            let former = file.former.as_ref().map(|former| (former.mode, &former.sha256));
            (file.path.as_str(), format!("{:?}", (file.mode, &file.sha256, former)))
        });
        let orphans = self.orphans.iter().map(|orphan| (orphan.path.as_str(), format!("delete {}", orphan.sha256)));
        files.chain(orphans).collect()
    }
}

/// The first few of many paths.
pub(super) fn name_some(paths: &[&str], most: usize) -> String {
    let mut text = paths.iter().take(most).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    if paths.len() > most {
        text.push_str(&format!(" and {} more", paths.len() - most));
    }
    text
}

/// A folder that a deploy makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MadeFolder {
    pub(super) path: String,
    pub(super) mode: u32,
}

/// A plan and what a run needs besides.
pub(super) struct Survey {
    pub(super) plan: DeployPlan,
    pub(super) folders: Vec<MadeFolder>,
    /// What is to be replaced or deleted, by its path.
    pub(super) formers: BTreeMap<String, Stat>,
    /// What the manifest has and the target has no more.
    pub(super) gone: Vec<String>,
}

/// Looks at both trees.
pub(super) fn survey(deployer: &Deployer, rules: &DeployRules, manifest: &Manifest, stop: Stop<'_>) -> Result<Survey> {
    let filter = Filter::new(rules)?;
    let above = above_root(&deployer.source, &deployer.source_path, Reach::Tree)?;
    let own = deployer.own.as_deref();
    let mut source = Source::list(&deployer.source, &filter, rules.files_max, own, above, stop)?;
    let places = places(deployer, &mut source)?;
    let mut orphans = Candidates::default();
    match rules.orphans {
        Orphans::Ours => orphans.ours(deployer, &filter, manifest, &source)?,
        Orphans::Everything => orphans.everything(deployer, &filter, &source, stop)?,
    }
    let mut jobs: Vec<Job<'_>> = Vec::with_capacity(2 * source.files.len());
    jobs.extend(source.files.iter().map(|(path, _)| Job { root: &deployer.source, path }));
    let present = source.files.iter().zip(&places).filter(|(_, place)| place.is_some());
    jobs.extend(present.map(|((path, _), _)| Job { root: &deployer.target, path }));
    jobs.extend(orphans.found.iter().map(|path| Job { root: &deployer.target, path }));
    let mut hashed = deployer.hashes.all(&jobs, stop)?;
    let of_orphans = hashed.split_off(hashed.len() - orphans.found.len());
    let of_targets = hashed.split_off(source.files.len());
    let mut survey = compare(deployer, rules, source, &places, hashed, of_targets)?;
    orphans.settle(of_orphans, manifest, rules.orphans, &mut survey.formers);
    survey.plan.orphans = orphans.removals;
    survey.plan.protected = orphans.protected;
    survey.plan.protected.sort_unstable();
    survey.gone = orphans.gone;
    Ok(survey)
}

/// What stands where each file would go; files that cannot go there are refused.
fn places(deployer: &Deployer, source: &mut Source) -> Result<Vec<Option<Stat>>> {
    let mut looker = EntryChecker::new(&deployer.target);
    let mut places = Vec::with_capacity(source.files.len());
    for (path, stat) in std::mem::take(&mut source.files) {
        match looker.at(&path)? {
            Place::Free => places.push(None),
            Place::File(former) => places.push(Some(former)),
            Place::Blocked(why) => {
                source.hold_back(&path, false, why);
                continue;
            }
        }
        source.files.push((path, stat));
    }
    Ok(places)
}

/// Sorts files into new, changed and unchanged.
fn compare(
    deployer: &Deployer,
    rules: &DeployRules,
    source: Source,
    places: &[Option<Stat>],
    hashed: Vec<Option<Hashed>>,
    of_targets: Vec<Option<Hashed>>,
) -> Result<Survey> {
    let mut plan = DeployPlan {
        target: deployer.target_path.to_string_lossy().into_owned(),
        rules: rules.clone(),
        new: Vec::new(),
        changed: Vec::new(),
        unchanged: 0,
        unchanged_sha256: String::new(),
        orphans: Vec::new(),
        protected: Vec::new(),
        refused: source.refused,
        bytes: 0,
    };
    let mut formers = BTreeMap::new();
    let mut unchanged = Sha256::new();
    let mut of_targets = of_targets.into_iter();
    for (((path, _), place), hashed) in source.files.into_iter().zip(places).zip(hashed) {
        let former = if place.is_some() { of_targets.next() } else { None };
        let (Some(hashed), Some(former)) = (hashed, former.map_or(Some(None), |former| former.map(Some))) else {
            plan.refused.push(Reason::hindrance(&path, false, "it, or what stands at its place, cannot be read"));
            continue;
        };
        let (mode, bytes) = (hashed.stat.mode(), hashed.stat.bytes);
        let Some(former) = former else {
            plan.bytes += bytes;
            plan.new.push(PlannedFile { path, bytes, mode, sha256: hashed.sha256, former: None });
            continue;
        };
        if former.sha256 == hashed.sha256 && former.stat.mode() == mode {
            plan.unchanged += 1;
            // No path has a NUL, so no two lists look the same.
            unchanged.update(format!("{path}\0{mode:o}\0{}\0", hashed.sha256));
            continue;
        }
        formers.insert(path.clone(), former.stat);
        plan.bytes += bytes;
        let former = Some(FormerFile { bytes: former.stat.bytes, mode: former.stat.mode(), sha256: former.sha256 });
        plan.changed.push(PlannedFile { path, bytes, mode, sha256: hashed.sha256, former });
    }
    plan.unchanged_sha256 = hex::encode(unchanged.finalize());
    plan.refused.sort_unstable();
    let folders = missing_folders(deployer, &plan.new, &source.folders)?;
    Ok(Survey { plan, folders, formers, gone: Vec::new() })
}

/// The folders that new files need, outermost first.
fn missing_folders(
    deployer: &Deployer,
    new: &[PlannedFile],
    modes: &std::collections::HashMap<String, u32>,
) -> Result<Vec<MadeFolder>> {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    for file in new {
        let folder = split(&file.path).0;
        if folder.is_empty() || known.contains_key(folder) {
            continue;
        }
        for part in lineage(folder) {
            if !known.contains_key(part) {
                let missing = matches!(folder_at(&deployer.target, part)?, FolderAt::Missing);
                known.insert(part, missing);
            }
        }
    }
    let missing = known.into_iter().filter(|(_, missing)| *missing);
    // Whatever the workspace says, its owner must be able to put files there.
    let mode = |path: &str| modes.get(path).copied().unwrap_or(0o755) | 0o700;
    Ok(missing.map(|(path, _)| MadeFolder { path: path.to_owned(), mode: mode(path) }).collect())
}

/// Files of the target that the workspace does not have.
#[derive(Default)]
struct Candidates {
    found: Vec<String>,
    removals: Vec<PlannedRemoval>,
    protected: Vec<Reason>,
    gone: Vec<String>,
}

impl Candidates {
    fn ours(&mut self, deployer: &Deployer, filter: &Filter<'_>, manifest: &Manifest, source: &Source) -> Result<()> {
        let above = above_root(&deployer.target, &deployer.target_path, Reach::Repository)?;
        let mut ignored = Folders::new(&deployer.target, above);
        let mut looker = EntryChecker::new(&deployer.target);
        for path in manifest.files.keys().filter(|path| !source.has(path)) {
            match looker.at(path)? {
                Place::Free => self.gone.push(path.clone()),
                Place::Blocked(why) => self.protected.push(Reason::hindrance(path, false, why)),
                Place::File(_) => match filter.protects_below(path) {
                    Some(why) => self.protected.push(Reason::new(path, false, &why)),
                    None if ignored.ignores_below(path, false)? => {
                        self.protected.push(Reason::new(path, false, "git ignores it"));
                    }
                    None => self.found.push(path.clone()),
                },
            }
        }
        Ok(())
    }

    fn everything(&mut self, deployer: &Deployer, filter: &Filter<'_>, source: &Source, stop: Stop<'_>) -> Result<()> {
        let above = above_root(&deployer.target, &deployer.target_path, Reach::Repository)?;
        let closed = walk(&deployer.target, above, stop, &mut |entry| {
            let folder = entry.stat.is_folder();
            if entry.path == WORK_FOLDER || deployer.own.as_deref() == Some(entry.path) {
                return Ok(Next::Pass);
            }
            let in_workspace = source.has(entry.path);
            if in_workspace && !folder {
                return Ok(Next::Pass);
            }
            let why = match () {
                () if !entry.utf8 => Some("its name is not UTF-8".to_owned()),
                () if in_workspace => Some("the workspace has it, and it does not ship".to_owned()),
                () if entry.ignored => Some("git ignores it".to_owned()),
                () if folder && entry.stat.device != deployer.target.device => {
                    Some("it is another file system".to_owned())
                }
                () if !folder && !entry.stat.is_file() => Some(format!("it is {}", entry.stat.what())),
                () => filter.protects(entry.path),
            };
            match why {
                Some(why) => {
                    self.protected.push(Reason::new(entry.path, folder, &why));
                    return Ok(Next::Pass);
                }
                None if unreachable(&entry).is_some() => {
                    let why = unreachable(&entry).unwrap_or_default();
                    self.protected.push(Reason::hindrance(entry.path, folder, why));
                    return Ok(Next::Pass);
                }
                None if folder => return Ok(Next::Descend),
                None => self.found.push(entry.path.to_owned()),
            }
            Ok(Next::Pass)
        })?;
        self.protected.extend(closed.iter().map(|folder| Reason::hindrance(folder, true, CLOSED)));
        self.found.sort_unstable();
        let mut looker = EntryChecker::new(&deployer.target);
        let mut found = Vec::with_capacity(self.found.len());
        for path in self.found.drain(..) {
            match looker.at(&path)? {
                Place::Blocked(why) => self.protected.push(Reason::hindrance(&path, false, why)),
                Place::Free | Place::File(_) => found.push(path),
            }
        }
        self.found = found;
        Ok(())
    }

    /// Of what a deploy has put there, only what is still the same goes.
    fn settle(
        &mut self,
        hashed: Vec<Option<Hashed>>,
        manifest: &Manifest,
        rule: Orphans,
        formers: &mut BTreeMap<String, Stat>,
    ) {
        for (path, hashed) in std::mem::take(&mut self.found).into_iter().zip(hashed) {
            let Some(Hashed { sha256, stat }) = hashed else {
                self.protected.push(Reason::hindrance(&path, false, CLOSED));
                continue;
            };
            let put_there = manifest.files.get(&path);
            let same = put_there.is_some_and(|file| file.sha256 == sha256 && file.mode == stat.mode());
            if rule == Orphans::Ours && !same {
                self.protected.push(Reason::new(&path, false, "it was changed since it was deployed"));
                continue;
            }
            formers.insert(path.clone(), stat);
            self.removals.push(PlannedRemoval { path, bytes: stat.bytes, mode: stat.mode(), sha256 });
        }
    }
}
