//! Reading a part of a package: the files that a question is about, as they are or as they were, with a session's
//! drafts over them.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Rename, overlay};
use crate::refs::Object;
use crate::{ASSETS_FOLDER, Elsewhere, Files, Finding, MANIFEST, Package, Place, Severity};
use serde_json::Value;
use toolhost_contract::ErrorCode;

use super::drafts::Draft;
use super::error::{PackageError, Result};
use super::{BATCH, ProjectPackage, UNITS_MAX};
use toolhost_store::db::{Row, Tx, places, sql, sql_of};

/// What is to be at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Want {
    /// Ids of workflows; those that are not there are left out.
    pub(super) workflows: BTreeSet<String>,
    /// Paths of assets whose content is wanted.
    pub(super) assets: BTreeSet<String>,
    /// The names of all assets, and their hashes.
    pub(super) asset_names: bool,
    /// The ids of all workflows.
    pub(super) workflow_names: bool,
    pub(super) manifest: bool,
    /// Paths of other files.
    pub(super) paths: BTreeSet<String>,
    /// As it was after this moment; now if `None`.
    pub(super) at: Option<i64>,
}

/// The package's own row.
pub(super) struct Head {
    pub(super) moment: i64,
    pub(super) head: Value,
    pub(super) agents_path: Option<String>,
    pub(super) agents_revision: String,
    pub(super) assets_revision: String,
    pub(super) last_number: i64,
}

/// A part of the package.
pub(super) struct Part {
    pub(super) head: Head,
    /// Without drafts.
    pub(super) base: Package,
    /// With the drafts of the session, if it has any.
    pub(super) after: Option<Package>,
    /// These drafts, over the package as it is now.
    pub(super) drafts: Vec<Draft>,
    /// What of the drafts no longer fits.
    pub(super) findings: Vec<Finding>,
}

impl Part {
    /// As the session sees it.
    pub(super) fn package(&self) -> &Package {
        self.after.as_ref().unwrap_or(&self.base)
    }

    /// The session's draft of an object.
    pub(super) fn draft(&self, object: &Object) -> Option<&Draft> {
        self.drafts.iter().find(|draft| draft.object == *object)
    }
}

/// Paths that drafts write to, or name where nothing named them.
struct Met {
    paths: BTreeSet<String>,
}

impl Met {
    fn of(base: &Package, after: &Package) -> Self {
        let nodes = |package: &Package| -> BTreeSet<String> {
            let nodes = package.workflows().iter().flat_map(|workflow| &workflow.nodes);
            nodes.filter_map(|node| node.path.clone()).collect()
        };
        let mut paths: BTreeSet<String> = nodes(after).difference(&nodes(base)).cloned().collect();
        let files = (base.files(), after.files());
        paths.extend(
            files.1.iter().filter(|(path, bytes)| files.0.get(*path) != Some(bytes)).map(|(path, _)| path.clone()),
        );
        paths.extend(files.0.keys().filter(|path| !files.1.contains_key(*path)).cloned());
        // These have owners of another kind.
        paths.retain(|path| path != MANIFEST && Some(path.as_str()) != base.agents_path());
        Self { paths }
    }
}

impl Want {
    /// What a reference stands in.
    pub(super) fn add_unit(&mut self, unit: &str) {
        match unit.split_once(':') {
            Some(("workflow", id)) => drop(self.workflows.insert(id.to_owned())),
            Some(("asset", path)) => drop(self.assets.insert(path.to_owned())),
            _ => {}
        }
    }

    pub(super) fn workflows<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        Self { workflows: ids.into_iter().map(str::to_owned).collect(), ..Self::default() }
    }

    /// What it takes to look at these objects, and to change them.
    pub(super) fn objects<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Self {
        let mut want = Self { asset_names: true, workflow_names: true, ..Self::default() };
        for object in objects {
            want.workflows.extend(object.workflow().map(str::to_owned));
            if let Object::Asset(path) = object {
                want.assets.insert(path.clone());
            }
        }
        want
    }
}

impl ProjectPackage {
    pub(super) async fn head(&self, tx: &mut Tx) -> Result<Head> {
        let text = "SELECT moment, head, agents_path, agents_revision, assets_revision, last_number
             FROM package WHERE project_id = $1";
        let row = sql(text).bind(self.who.project_id).optional(tx).await?.ok_or(PackageError::NoPackage)?;
        Ok(Head {
            moment: row.get("moment")?,
            head: serde_json::from_str(&row.get::<String>("head")?)?,
            agents_path: row.get("agents_path")?,
            agents_revision: row.get("agents_revision")?,
            assets_revision: row.get("assets_revision")?,
            last_number: row.get("last_number")?,
        })
    }

    /// Reads what is wanted, and lays the drafts over it.
    pub(super) async fn part(&self, tx: &mut Tx, want: &Want, drafts: &[Draft]) -> Result<Part> {
        let head = self.head(tx).await?;
        if drafts.is_empty() {
            let base = self.base(tx, &head, want, drafts).await?;
            return Ok(Part { head, base, after: None, drafts: Vec::new(), findings: Vec::new() });
        }
        let is_wanted = |draft: &Draft| draft.object.workflow().is_none_or(|id| want.workflows.contains(id));
        // A draft may write to, or name, a file that is another's: what it meets has to be at hand, too. An asset that is not
        // at hand can be neither merged nor taken out.
        let mut wider = want.clone();
        wider.assets.extend(drafts.iter().filter_map(|draft| match &draft.object {
            Object::Asset(path) => Some(path.clone()),
            _ => None,
        }));
        loop {
            let base = self.base(tx, &head, &wider, drafts).await?;
            let (mut rebased, mut findings) = (Vec::new(), Vec::new());
            for draft in drafts {
                let over = if is_wanted(draft) { draft.over(&base) } else { Ok(draft.clone()) };
                findings.extend(over.is_err().then(|| shown_alone(&draft.object)));
                rebased.push(over.unwrap_or_else(|_| draft.clone()));
            }
            let seen = rebased.iter().filter(|draft| is_wanted(draft));
            let seen: Vec<_> = seen.map(|draft| (draft.object.clone(), draft.wanted.clone())).collect();
            let (after, unwritten) = overlay(&base, &seen);
            let met = Met::of(&base, &after);
            let known = wider.workflows.len();
            wider.workflows.extend(self.workflows_with(tx, met.paths.iter()).await?);
            // What is at hand, or is nowhere, need not be read.
            let is_elsewhere =
                |path: &String| !base.files().contains_key(path) && (base.may_have_file(path) || base.has_asset(path));
            let are_at_hand = !met.paths.iter().any(|path| !wider.paths.contains(path) && is_elsewhere(path));
            wider.paths.extend(met.paths);
            if wider.workflows.len() == known && are_at_hand {
                findings.extend(unwritten);
                return Ok(Part { head, base, after: Some(after), drafts: rebased, findings });
            }
        }
    }

    /// Adds what refers to objects that are renamed, or may do so in what the session has staged.
    pub(super) async fn want_referring(
        &self,
        tx: &mut Tx,
        want: &mut Want,
        (renames, drafts): (&[Rename], &[Draft]),
    ) -> Result<()> {
        for rename in renames {
            want.workflows.extend(drafts.iter().filter_map(|draft| Some(draft.object.workflow()?.to_owned())));
            for unit in self.units_with(tx, &rename.from).await? {
                want.add_unit(&unit);
            }
        }
        Ok(())
    }

    /// What the objects of these drafts take, and what refers to those that go.
    pub(super) async fn part_for(&self, tx: &mut Tx, drafts: &[Draft]) -> Result<Part> {
        let mut want = Want::objects(drafts.iter().map(|draft| &draft.object));
        want.manifest = drafts.iter().any(|draft| matches!(draft.object, Object::Workflow(_)));
        for draft in drafts.iter().filter(|draft| draft.wanted.is_none()) {
            for unit in self.units_with(tx, &draft.object).await? {
                want.add_unit(&unit);
            }
        }
        self.part(tx, &want, drafts).await
    }

    /// Units that refer to an object; all of them, or none.
    pub(super) async fn units_with(&self, tx: &mut Tx, object: &Object) -> Result<Vec<String>> {
        let text = "SELECT unit FROM package_ref WHERE project_id = $1 AND target = $2 ORDER BY unit LIMIT $3";
        let query = sql(text).bind(self.who.project_id).bind(object.to_string()).bind(UNITS_MAX as i64 + 1);
        let units: Vec<String> =
            query.all(tx).await?.iter().map(|row| row.get("unit")).collect::<std::result::Result<_, _>>()?;
        if units.len() > UNITS_MAX {
            return Err(PackageError::UsedTooMuch { object: object.to_string(), max: UNITS_MAX });
        }
        Ok(units)
    }

    async fn base(&self, tx: &mut Tx, head: &Head, want: &Want, drafts: &[Draft]) -> Result<Package> {
        let mut paths: BTreeSet<String> = want.assets.union(&want.paths).cloned().collect();
        paths.extend(head.agents_path.clone());
        // What a workflow is, the manifest says, too.
        let lists = |draft: &Draft| matches!(&draft.object, Object::Workflow(id) if want.workflows.contains(id));
        let mut places_at_hand = self.places(tx, want).await?;
        let mut names = Elsewhere::default();
        if want.manifest || want.at.is_some() || drafts.iter().any(lists) {
            paths.insert(MANIFEST.to_owned());
        }
        paths.extend(places_at_hand.iter().flat_map(|place| [place.path.clone(), place.graph_path.clone()]));
        let mut files = self.files(tx, &paths, want.at).await?;
        if want.at.is_some() {
            // The list of workflows was another one, too.
            let manifest = files.get(MANIFEST).and_then(|bytes| serde_json::from_slice(bytes).ok());
            let then = crate::places_of(manifest.as_ref());
            names.workflows = then.iter().map(|place| place.id.clone()).collect();
            places_at_hand = then.into_iter().filter(|place| want.workflows.contains(&place.id)).collect();
            let paths = places_at_hand.iter().flat_map(|place| [place.path.clone(), place.graph_path.clone()]);
            files.extend(self.files(tx, &paths.collect(), want.at).await?);
        } else if want.workflow_names {
            let text = "SELECT id FROM package_workflow WHERE project_id = $1 ORDER BY position";
            for row in sql(text).bind(self.who.project_id).all(tx).await? {
                names.workflows.insert(row.get("id")?);
            }
            names.files = Some(self.other_files(tx).await?);
        }
        let graphs = places_at_hand.iter().map(|place| &place.graph_path);
        let steps: BTreeSet<String> =
            graphs.flat_map(|path| crate::step_paths(path, files.get(path).map(Vec::as_slice))).collect();
        let steps: BTreeSet<String> = steps.into_iter().filter(|path| !files.contains_key(path)).collect();
        files.extend(self.files(tx, &steps, want.at).await?);
        if want.asset_names {
            names.assets = self.asset_hashes(tx).await?;
        }
        Ok(Package::part(head.head.clone(), files, places_at_hand, names))
    }

    async fn places(&self, tx: &mut Tx, want: &Want) -> Result<Vec<Place>> {
        let mut found = Vec::new();
        for batch in want.workflows.iter().collect::<Vec<_>>().chunks(BATCH) {
            let text = format!(
                "SELECT id, pointer, path, graph_path, about FROM package_workflow WHERE project_id = $1 AND id IN ({})
                 ORDER BY position",
                places(2, batch.len())
            );
            let mut query = sql_of(text).bind(self.who.project_id);
            for id in batch {
                query = query.bind(*id);
            }
            for row in query.all(tx).await? {
                found.push(place(&row)?);
            }
        }
        Ok(found)
    }

    /// The files of these paths that are there, now or after a moment.
    pub(super) async fn files(&self, tx: &mut Tx, paths: &BTreeSet<String>, at: Option<i64>) -> Result<Files> {
        let mut files = Files::new();
        let paths: Vec<&String> = paths.iter().collect();
        for batch in paths.chunks(BATCH) {
            let mut read = sql_of(format!(
                "SELECT path, content FROM package_file WHERE project_id = $1 AND path IN ({})",
                places(2, batch.len())
            ))
            .bind(self.who.project_id);
            for path in batch {
                read = read.bind(*path);
            }
            for row in read.all(tx).await? {
                files.insert(row.get("path")?, row.get("content")?);
            }
            let Some(at) = at else { continue };
            // Of each path the first change since then says what was before it.
            let text = format!(
                "SELECT path, former FROM package_former f WHERE project_id = $1 AND moment = (
                     SELECT MIN(moment) FROM package_former g
                     WHERE g.project_id = $1 AND g.path = f.path AND g.moment > $2)
                 AND path IN ({})",
                places(3, batch.len())
            );
            let mut before = sql_of(text).bind(self.who.project_id).bind(at);
            for path in batch {
                before = before.bind(*path);
            }
            for row in before.all(tx).await? {
                match row.get::<Option<Vec<u8>>>("former")? {
                    Some(former) => files.insert(row.get("path")?, former),
                    None => files.remove(&row.get::<String>("path")?),
                };
            }
        }
        Ok(files)
    }

    /// The paths of all files that are no assets.
    async fn other_files(&self, tx: &mut Tx) -> Result<BTreeSet<String>> {
        let text = "SELECT path FROM package_file WHERE project_id = $1 AND (path < $2 OR path >= $3)";
        let end = ASSETS_FOLDER.replace('/', "0");
        let rows = sql(text).bind(self.who.project_id).bind(ASSETS_FOLDER).bind(end).all(tx).await?;
        rows.iter().map(|row| Ok(row.get("path")?)).collect()
    }

    pub(super) async fn asset_hashes(&self, tx: &mut Tx) -> Result<BTreeMap<String, String>> {
        let text = "SELECT path, sha256 FROM package_file WHERE project_id = $1 AND path >= $2 AND path < $3";
        // The character after `/`.
        let end = ASSETS_FOLDER.replace('/', "0");
        let rows = sql(text).bind(self.who.project_id).bind(ASSETS_FOLDER).bind(end).all(tx).await?;
        rows.iter().map(|row| Ok((row.get("path")?, row.get("sha256")?))).collect()
    }
}

/// Says of a draft that others have changed the same places since, so that theirs is not in what the session sees.
fn shown_alone(object: &Object) -> Finding {
    let message =
        format!("somebody else has changed the same places of {object} since; what is shown is this session's text");
    Finding {
        severity: Severity::Warning,
        file: String::new(),
        pointer: String::new(),
        line: None,
        column: None,
        code: ErrorCode::RevisionMismatch.as_str().to_owned(),
        expected: "as it was when this change was begun".to_owned(),
        actual: "another one".to_owned(),
        message,
        hint: "validate the change set: it tells both texts, and how to go on".to_owned(),
    }
}

/// The place of a workflow, from its row.
pub(super) fn place(row: &Row) -> Result<Place> {
    let about: Option<String> = row.get("about")?;
    Ok(Place {
        about: about.map(|text| serde_json::from_str(&text)).transpose()?,
        id: row.get("id")?,
        pointer: row.get("pointer")?,
        path: row.get("path")?,
        graph_path: row.get("graph_path")?,
    })
}
