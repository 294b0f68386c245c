//! What refers to what, over all workflows.

use std::collections::{BTreeMap, BTreeSet};

use crate::refs::{Index, Locator, Object, Ref, Refs};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::Result;
use super::part::{Part, Want};
use super::{BATCH, ProjectPackage, REFS_MAX, WORKFLOWS_LOOKED_AT_MAX};
use toolhost_store::db::{Tx, places, sql, sql_of};

/// References that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundRefs {
    #[serde(flatten)]
    pub refs: Refs,
    /// Whether there are more than are told: name one object to see those of it alone.
    pub truncated: bool,
    /// The revisions of the workflows that refer to it, as `extensions.baseRevisions` of a change set takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub base_revisions: BTreeMap<String, String>,
}

impl ProjectPackage {
    /// What refers to what the locator means, and what it refers to.
    pub async fn find_refs(&self, locator: &Locator, session: Option<&str>) -> Result<FoundRefs> {
        let mut tx = self.db.snapshot().await?;
        let drafts = self.drafts(&mut tx, session).await?;
        let mut want = Want { manifest: matches!(locator, Locator::Path(_)), ..Want::default() };
        let mut looked_at = BTreeSet::new();
        match locator {
            Locator::Id(name) => {
                let first = name.split_once('/').map_or(name.as_str(), |(workflow, _)| workflow);
                looked_at.insert(first.to_owned());
                looked_at.insert(name.clone());
                looked_at.extend(self.workflows_named(&mut tx, name).await?);
            }
            Locator::Path(path) => {
                looked_at.extend(self.workflows_named(&mut tx, path).await?);
                want.assets.insert(path.clone());
            }
            Locator::Object(object) => {
                looked_at.extend(object.workflow().map(str::to_owned));
                if let Object::Asset(path) = object {
                    want.assets.insert(path.clone());
                }
            }
        }
        let mut truncated = looked_at.len() as i64 > WORKFLOWS_LOOKED_AT_MAX;
        want.workflows = looked_at.into_iter().take(WORKFLOWS_LOOKED_AT_MAX as usize).collect();
        // What is staged may refer to anything.
        want.workflows.extend(drafts.iter().filter_map(|draft| draft.object.workflow().map(str::to_owned)));
        let agents_drafted = drafts.iter().any(|draft| matches!(draft.object, Object::Agent(_)));
        // What a menu names is a workflow only if there is one.
        want.workflow_names = agents_drafted;
        let part = self.part(&mut tx, &want, &drafts).await?;
        let index = Index::of(part.package());
        let mut refs = index.find(locator);
        if matches!(locator, Locator::Path(path) if path == crate::MANIFEST) {
            truncated |= self.add_entries(&mut tx, &mut refs).await?;
        }
        let of_agents = refs.objects.iter().any(|object| matches!(object, Object::Agent(_)));
        if of_agents && !agents_drafted {
            self.add_menus(&mut tx, &mut refs).await?;
        }
        for object in refs.objects.clone() {
            if matches!(object, Object::Agent(_) | Object::Asset(_) | Object::Workflow(_)) {
                let (more, left_out) = self.inbound(&mut tx, &object, &part, &drafts).await?;
                refs.inbound.extend(more);
                truncated |= left_out;
            }
        }
        for list in [&mut refs.inbound, &mut refs.outbound] {
            truncated |= list.len() > REFS_MAX;
            list.truncate(REFS_MAX);
        }
        self.resolve(&mut tx, &part, &mut refs.outbound).await?;
        let base_revisions = self.revisions_of(&mut tx, part.package(), &refs.inbound).await?;
        Ok(FoundRefs { refs, truncated, base_revisions })
    }

    /// Agents refer to workflows, which need not be at hand.
    async fn add_menus(&self, tx: &mut Tx, refs: &mut Refs) -> Result<()> {
        let text = "SELECT refs FROM package_ref WHERE project_id = $1 AND unit = $2 ORDER BY target LIMIT $3";
        let query = sql(text).bind(self.who.project_id).bind(super::change::AGENTS_UNIT).bind(REFS_MAX as i64);
        for row in query.all(tx).await? {
            let found: Vec<Ref> = serde_json::from_str(&row.get::<String>("refs")?)?;
            for one in found.into_iter().filter(|one| refs.objects.contains(&one.from)) {
                if !refs.outbound.iter().any(|known| (&known.to, &known.pointer) == (&one.to, &one.pointer)) {
                    refs.outbound.push(Ref { resolved: matches!(one.to, Object::Workflow(_)), ..one });
                }
            }
        }
        Ok(())
    }

    /// A package refers to all its workflows, also to those that are not at hand.
    async fn add_entries(&self, tx: &mut Tx, refs: &mut Refs) -> Result<bool> {
        let text = "SELECT id, pointer FROM package_workflow WHERE project_id = $1 ORDER BY position LIMIT $2";
        let rows = sql(text).bind(self.who.project_id).bind(REFS_MAX as i64 + 1).all(tx).await?;
        let more = rows.len() > REFS_MAX;
        refs.outbound.clear();
        for row in rows.into_iter().take(REFS_MAX) {
            refs.outbound.push(Ref {
                from: Object::Package,
                to: Object::Workflow(row.get("id")?),
                kind: crate::refs::Kind::Entry,
                file: crate::MANIFEST.to_owned(),
                pointer: row.get("pointer")?,
                line: None,
                resolved: true,
            });
        }
        Ok(more)
    }

    /// Whether what is referred to is there, where it is not at hand.
    async fn resolve(&self, tx: &mut Tx, part: &Part, refs: &mut [Ref]) -> Result<()> {
        let open: BTreeSet<&Object> = refs.iter().filter(|one| !one.resolved).map(|one| &one.to).collect();
        let mut there: BTreeSet<Object> = BTreeSet::new();
        let assets: Vec<&String> =
            open.iter().filter_map(|object| if let Object::Asset(path) = object { Some(path) } else { None }).collect();
        let ids: Vec<&String> =
            open.iter().filter_map(|object| if let Object::Workflow(id) = object { Some(id) } else { None }).collect();
        let gone = |path: &String| part.after.as_ref().is_some_and(|_| part.base.files().contains_key(path));
        for batch in assets.chunks(BATCH) {
            let text =
                format!("SELECT path FROM package_file WHERE project_id = $1 AND path IN ({})", places(2, batch.len()));
            let query = batch.iter().fold(sql_of(text).bind(self.who.project_id), |query, path| query.bind(*path));
            for row in query.all(tx).await? {
                let path: String = row.get("path")?;
                if !gone(&path) {
                    there.insert(Object::Asset(path));
                }
            }
        }
        for batch in ids.chunks(BATCH) {
            let text =
                format!("SELECT id FROM package_workflow WHERE project_id = $1 AND id IN ({})", places(2, batch.len()));
            let query = batch.iter().fold(sql_of(text).bind(self.who.project_id), |query, id| query.bind(*id));
            for row in query.all(tx).await? {
                there.insert(Object::Workflow(row.get("id")?));
            }
        }
        for one in refs.iter_mut().filter(|one| there.contains(&one.to)) {
            one.resolved = true;
        }
        Ok(())
    }
}
