//! Changing files, the only way: what is derived from them changes with them, and what was before is kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::refs::{Index, Object};
use crate::{ASSETS_FOLDER, Edits, MANIFEST, Package, Place, revision};

use super::derive::{Derived, Rows, about, agents_only, head_of, outgoing};
use super::error::Result;
use super::part::{Head, Want, place};
use super::{BATCH, ProjectPackage};
use toolhost_store::db::{Tx, places, sql, sql_of};

/// Why files change.
pub(super) struct Cause<'a> {
    /// `new`, `import`, `apply` or `undo`.
    pub(super) kind: &'static str,
    pub(super) set: Option<i64>,
    /// The operations of the set that were chosen.
    pub(super) operations: Option<&'a [i64]>,
    /// The moment that is taken back.
    pub(super) undoes: Option<i64>,
}

/// Files written by one query: they may be large.
const FILES_BATCH: usize = 50;

impl ProjectPackage {
    /// Changes files of a package that is there, in a transaction that holds the project's lock. Answers the new moment,
    /// or none if nothing is different.
    pub(super) async fn commit(
        &self,
        tx: &mut Tx,
        head: &Head,
        edits: &Edits,
        cause: &Cause<'_>,
    ) -> Result<Option<i64>> {
        let before = self.files(tx, &edits.keys().cloned().collect(), None).await?;
        let edits: Edits = edits
            .iter()
            .filter(|(path, bytes)| before.get(*path) != bytes.as_ref())
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect();
        if edits.is_empty() {
            return Ok(None);
        }
        let moment = head.moment + 1;
        self.keep_former(tx, moment, &edits, &before).await?;
        // Before and after: a file may go from one workflow to another.
        let mut touched = self.workflows_with(tx, edits.keys()).await?;
        self.write_files(tx, &edits).await?;
        let mut derived = Derived::new(self.who.project_id, moment);
        let mut last_number = head.last_number;
        let mut next_head = head.head.clone();
        let agents_path = match edits.get(MANIFEST) {
            Some(bytes) => {
                let manifest = bytes.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok());
                next_head = head_of(manifest.as_ref());
                self.relist(tx, &crate::places_of(manifest.as_ref()), &mut touched, &mut last_number).await?;
                next_head.pointer("/entry/agents").and_then(|path| path.as_str()).map(str::to_owned)
            }
            None => head.agents_path.clone(),
        };
        let now = Head {
            moment,
            head: next_head,
            agents_path,
            agents_revision: head.agents_revision.clone(),
            assets_revision: head.assets_revision.clone(),
            last_number,
        };
        self.store_head(tx, &now).await?;
        self.rederive(tx, &mut derived, &touched).await?;
        let now = self.rederive_shared(tx, &mut derived, now, &edits).await?;
        derived.write(tx).await?;
        self.store_head(tx, &now).await?;
        self.note(tx, moment, cause).await?;
        Ok(Some(moment))
    }

    pub(super) async fn store_head(&self, tx: &mut Tx, head: &Head) -> Result<()> {
        let text =
            "INSERT INTO package (project_id, moment, head, agents_path, agents_revision, assets_revision, last_number)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (project_id) DO UPDATE SET moment = excluded.moment, head = excluded.head,
                 agents_path = excluded.agents_path, agents_revision = excluded.agents_revision,
                 assets_revision = excluded.assets_revision, last_number = excluded.last_number";
        sql(text)
            .bind(self.who.project_id)
            .bind(head.moment)
            .bind(head.head.to_string())
            .bind(&head.agents_path)
            .bind(&head.agents_revision)
            .bind(&head.assets_revision)
            .bind(head.last_number)
            .run(tx)
            .await?;
        Ok(())
    }

    /// Says who made this change. What was valid against the package as it was has to be validated again.
    pub(super) async fn note(&self, tx: &mut Tx, moment: i64, cause: &Cause<'_>) -> Result<()> {
        let text = "INSERT INTO package_change (project_id, moment, kind, account_id, by_name, call_id, set_number,
                 operations, undoes, created_at_ms)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
        let operations = cause.operations.map(serde_json::to_string).transpose()?;
        sql(text)
            .bind(self.who.project_id)
            .bind(moment)
            .bind(cause.kind)
            .bind(self.who.user_id)
            .bind(&self.who.name)
            .bind(&self.who.call_id)
            .bind(cause.set)
            .bind(operations)
            .bind(cause.undoes)
            .bind(self.clock.unix_ms())
            .run(tx)
            .await?;
        self.unvalidate(tx, cause.set).await
    }

    async fn keep_former(&self, tx: &mut Tx, moment: i64, edits: &Edits, before: &crate::Files) -> Result<()> {
        let mut rows = Rows::into("INSERT INTO package_former (project_id, moment, path, former)", 4);
        for (n, path) in edits.keys().enumerate() {
            rows.add([self.who.project_id.into(), moment.into(), path.into(), before.get(path).cloned().into()]);
            if n % FILES_BATCH == FILES_BATCH - 1 {
                rows.write(tx).await?;
            }
        }
        rows.write(tx).await
    }

    pub(super) async fn write_files(&self, tx: &mut Tx, edits: &Edits) -> Result<()> {
        let paths: Vec<&String> = edits.keys().collect();
        for batch in paths.chunks(BATCH) {
            let text =
                format!("DELETE FROM package_file WHERE project_id = $1 AND path IN ({})", places(2, batch.len()));
            let mut query = sql_of(text).bind(self.who.project_id);
            for path in batch {
                query = query.bind(*path);
            }
            query.run(tx).await?;
        }
        let mut rows = Rows::into("INSERT INTO package_file (project_id, path, sha256, content)", 4);
        let new = edits.iter().filter_map(|(path, bytes)| Some((path, bytes.as_ref()?)));
        for (n, (path, bytes)) in new.enumerate() {
            let sha256 = crate::sha256(bytes);
            rows.add([self.who.project_id.into(), path.into(), sha256.into(), bytes.clone().into()]);
            if n % FILES_BATCH == FILES_BATCH - 1 {
                rows.write(tx).await?;
            }
        }
        rows.write(tx).await
    }

    /// Brings the list of workflows up to date. New ones, and those that are elsewhere now, are among `touched` after it.
    async fn relist(
        &self,
        tx: &mut Tx,
        listed: &[Place],
        touched: &mut BTreeSet<String>,
        last_number: &mut i64,
    ) -> Result<()> {
        let project = self.who.project_id;
        let text = "SELECT id, pointer, path, graph_path, about, position FROM package_workflow WHERE project_id = $1";
        let mut known: BTreeMap<String, (Place, i64)> = BTreeMap::new();
        for row in sql(text).bind(project).all(tx).await? {
            let place = place(&row)?;
            known.insert(place.id.clone(), (place, row.get("position")?));
        }
        let mut seen = BTreeSet::new();
        for (position, place) in (0_i64..).zip(listed) {
            if !seen.insert(place.id.clone()) {
                continue;
            }
            match known.remove(&place.id) {
                Some(same) if same == (place.clone(), position) => {}
                Some((was, _)) => {
                    let text = "UPDATE package_workflow SET pointer = $3, path = $4, graph_path = $5, position = $6,
                             about = $7
                         WHERE project_id = $1 AND id = $2";
                    let query = sql(text).bind(project).bind(&place.id).bind(&place.pointer);
                    query.bind(&place.path).bind(&place.graph_path).bind(position).bind(about(place)).run(tx).await?;
                    let moved = Place { pointer: place.pointer.clone(), ..was };
                    if moved != *place {
                        touched.insert(place.id.clone());
                    }
                }
                None => {
                    *last_number += 1;
                    let text = "INSERT INTO package_workflow
                             (project_id, id, number, position, pointer, path, graph_path, about, steps, revision)
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, '')";
                    let query = sql(text).bind(project).bind(&place.id).bind(*last_number).bind(position);
                    query
                        .bind(&place.pointer)
                        .bind(&place.path)
                        .bind(&place.graph_path)
                        .bind(about(place))
                        .run(tx)
                        .await?;
                    touched.insert(place.id.clone());
                }
            }
        }
        for gone in known.into_keys() {
            self.forget_workflow(tx, &gone).await?;
            touched.remove(&gone);
        }
        Ok(())
    }

    /// Says anew what is in these workflows.
    async fn rederive(&self, tx: &mut Tx, derived: &mut Derived, touched: &BTreeSet<String>) -> Result<()> {
        let ids: Vec<&String> = touched.iter().collect();
        for batch in ids.chunks(FILES_BATCH) {
            let want = Want::workflows(batch.iter().map(|id| id.as_str()));
            let part = self.part(tx, &want, &[]).await?;
            for workflow in part.base.workflows() {
                let text = "SELECT number, position FROM package_workflow WHERE project_id = $1 AND id = $2";
                let row = sql(text).bind(self.who.project_id).bind(&workflow.id).one(tx).await?;
                let (number, position) = (row.get("number")?, row.get("position")?);
                self.forget_workflow(tx, &workflow.id).await?;
                derived.workflow(&part.base, workflow, number, position)?;
            }
            derived.write(tx).await?;
        }
        Ok(())
    }

    /// The agents and the assets.
    async fn rederive_shared(&self, tx: &mut Tx, derived: &mut Derived, mut now: Head, edits: &Edits) -> Result<Head> {
        let agents_changed =
            edits.contains_key(MANIFEST) || now.agents_path.as_ref().is_some_and(|path| edits.contains_key(path));
        if agents_changed {
            let part = self.part(tx, &Want::default(), &[]).await?;
            self.forget_refs(tx, AGENTS_UNIT).await?;
            let all = self.all_places(tx).await?;
            derive_agents(derived, &part.base, all)?;
            let revision = revision::agents(&part.base);
            if revision != now.agents_revision {
                derived.revision("agents", &revision);
                now.agents_revision = revision;
            }
        }
        let assets: Vec<(&String, &Option<Vec<u8>>)> =
            edits.iter().filter(|(path, _)| path.starts_with(ASSETS_FOLDER)).collect();
        if !assets.is_empty() {
            for (path, bytes) in assets {
                self.forget_refs(tx, &format!("asset:{path}")).await?;
                if let Some(bytes) = bytes {
                    derive_asset(derived, path, bytes)?;
                }
            }
            now.assets_revision = self.assets_revision(tx).await?;
            derived.revision("assets", &now.assets_revision);
        }
        Ok(now)
    }

    async fn all_places(&self, tx: &mut Tx) -> Result<Vec<Place>> {
        let text = "SELECT id, pointer, path, graph_path, about FROM package_workflow WHERE project_id = $1
             ORDER BY position";
        let rows = sql(text).bind(self.who.project_id).all(tx).await?;
        rows.iter().map(place).collect()
    }
}

/// The unit of all agents.
pub(super) const AGENTS_UNIT: &str = "agents";

pub(super) fn derive_agents(derived: &mut Derived, package: &Package, places: Vec<Place>) -> Result<()> {
    let index = Index::of(&agents_only(package, places));
    derived.refs(AGENTS_UNIT, &outgoing(&index, |object| matches!(object, Object::Agent(_))))
}

pub(super) fn derive_asset(derived: &mut Derived, path: &str, bytes: &[u8]) -> Result<()> {
    let files = [(path.to_owned(), bytes.to_vec())].into();
    let alone = Package::part(head_of(None), files, Vec::new(), crate::Elsewhere::default());
    let own = Object::Asset(path.to_owned());
    derived.refs(&own.to_string(), &outgoing(&Index::of(&alone), |object| *object == own))
}
