//! The rows that say what is in a package, made of its files.

use std::collections::{BTreeMap, BTreeSet};

use crate::refs::{Index, Object, Ref};
use crate::{Elsewhere, Files, Package, Place, Workflow, revision};
use serde_json::{Map, Value};

use super::error::Result;
use super::{BATCH, ProjectPackage};
use toolhost_store::Error;
use toolhost_store::db::{Argument, Tx, places, sql, sql_of};

/// Longest name that can be looked for, bytes.
const NAME_BYTES_MAX: usize = 1000;

/// References that leave one unit, by the object they lead to.
pub(super) type Outgoing = BTreeMap<Object, Vec<Ref>>;

/// The manifest without its list of workflows.
pub(super) fn head_of(manifest: Option<&Value>) -> Value {
    let mut head = manifest.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(fields) = head.as_object_mut() {
        fields.remove("workflows");
    }
    head
}

/// What the manifest says of a workflow, as its row keeps it.
pub(super) fn about(place: &Place) -> Option<String> {
    place.about.as_ref().map(ToString::to_string)
}

/// The names by which something in a workflow is found.
pub(super) fn names_of(workflow: &Workflow, index: &Index) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = workflow.nodes.iter().map(|node| node.id.clone()).collect();
    names.extend(workflow.nodes.iter().filter_map(|node| node.path.clone()));
    names.extend([workflow.path.clone(), workflow.graph_path.clone()]);
    for one in index.all() {
        if let Object::Variable { workflow: id, name } = &one.to
            && *id == workflow.id
        {
            names.insert(name.clone());
        }
    }
    // An index row has a largest size, and a text of PostgreSQL no zero.
    names.retain(|name| name.len() <= NAME_BYTES_MAX && !name.contains('\0'));
    names
}

/// What a unit refers to outside itself.
pub(super) fn outgoing(index: &Index, is_inside: impl Fn(&Object) -> bool) -> Outgoing {
    let mut out = Outgoing::new();
    let is_kept = |one: &&Ref| {
        let name = one.to.to_string();
        is_inside(&one.from) && !is_inside(&one.to) && name.len() <= NAME_BYTES_MAX && !name.contains('\0')
    };
    for one in index.all().iter().filter(is_kept) {
        out.entry(one.to.clone()).or_default().push(one.clone());
    }
    out
}

/// One workflow of a package, and nothing else of it.
pub(super) fn only(package: &Package, workflow: &Workflow) -> Package {
    let paths = [&workflow.path, &workflow.graph_path].into_iter();
    let paths = paths.chain(workflow.nodes.iter().filter_map(|node| node.path.as_ref()));
    let files: Files = paths.filter_map(|path| Some((path.clone(), package.files().get(path)?.clone()))).collect();
    Package::part(head_of(package.manifest()), files, vec![workflow.place()], Elsewhere::default())
}

/// The agents of a package, with all that they may name.
pub(super) fn agents_only(package: &Package, places: Vec<Place>) -> Package {
    let path = package.agents_path();
    let files = path.and_then(|path| Some((path.to_owned(), package.files().get(path)?.clone())));
    Package::part(head_of(package.manifest()), files.into_iter().collect(), places, Elsewhere::default())
}

/// Rows of a table, to be written many at once.
pub(super) struct Rows {
    insert: &'static str,
    columns: usize,
    values: Vec<Argument>,
}

impl Rows {
    pub(super) fn into(insert: &'static str, columns: usize) -> Self {
        Self { insert, columns, values: Vec::new() }
    }

    pub(super) fn add<const N: usize>(&mut self, row: [Argument; N]) {
        debug_assert_eq!(N, self.columns);
        self.values.extend(row);
    }

    pub(super) fn is_full(&self) -> bool {
        self.values.len() >= BATCH * self.columns
    }

    pub(super) async fn write(&mut self, tx: &mut Tx) -> Result<()> {
        let mut values = std::mem::take(&mut self.values).into_iter().peekable();
        while values.peek().is_some() {
            let batch: Vec<Argument> = values.by_ref().take(BATCH * self.columns).collect();
            let rows: Vec<String> = (0..batch.len() / self.columns)
                .map(|n| format!("({})", places(1 + n * self.columns, self.columns)))
                .collect();
            let mut query = sql_of(format!("{} VALUES {}", self.insert, rows.join(", ")));
            for value in batch {
                query = query.bind(value);
            }
            query.run(tx).await?;
        }
        Ok(())
    }
}

/// Everything that is written about workflows.
pub(super) struct Derived {
    workflows: Rows,
    names: Rows,
    refs: Rows,
    revisions: Rows,
    project: i64,
    moment: i64,
}

impl Derived {
    pub(super) fn new(project: i64, moment: i64) -> Self {
        Self {
            workflows: Rows::into(
                "INSERT INTO package_workflow
                     (project_id, id, number, position, pointer, path, graph_path, about, steps, revision)",
                10,
            ),
            names: Rows::into("INSERT INTO package_name (project_id, name, workflow)", 3),
            refs: Rows::into("INSERT INTO package_ref (project_id, target, unit, number, refs)", 5),
            revisions: Rows::into("INSERT INTO package_revision (project_id, scope, revision, moment)", 4),
            project,
            moment,
        }
    }

    /// A workflow that is at hand. Answers its revision.
    pub(super) fn workflow(
        &mut self,
        package: &Package,
        workflow: &Workflow,
        number: i64,
        position: i64,
    ) -> Result<()> {
        let alone = only(package, workflow);
        let index = Index::of(&alone);
        let revision = revision::workflow(package, workflow);
        let (id, project) = (workflow.id.as_str(), self.project);
        self.workflows.add([
            project.into(),
            id.into(),
            number.into(),
            position.into(),
            workflow.pointer.as_str().into(),
            workflow.path.as_str().into(),
            workflow.graph_path.as_str().into(),
            about(&workflow.place()).into(),
            (workflow.nodes.len() as i64).into(),
            revision.as_str().into(),
        ]);
        for name in names_of(workflow, &index) {
            self.names.add([project.into(), name.into(), id.into()]);
        }
        let scope = format!("workflow:{id}");
        self.refs(&scope, &outgoing(&index, |object| object.workflow() == Some(id)))?;
        self.revision(&scope, &revision);
        Ok(())
    }

    pub(super) fn refs(&mut self, unit: &str, outgoing: &Outgoing) -> Result<()> {
        for (target, refs) in outgoing {
            let number = refs.len() as i64;
            let text = serde_json::to_string(refs)?;
            self.refs.add([self.project.into(), target.to_string().into(), unit.into(), number.into(), text.into()]);
        }
        Ok(())
    }

    pub(super) fn revision(&mut self, scope: &str, revision: &str) {
        self.revisions.add([self.project.into(), scope.into(), revision.into(), self.moment.into()]);
    }

    pub(super) async fn write_full(&mut self, tx: &mut Tx) -> Result<()> {
        for rows in [&mut self.workflows, &mut self.names, &mut self.refs, &mut self.revisions] {
            if rows.is_full() {
                rows.write(tx).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn write(&mut self, tx: &mut Tx) -> Result<()> {
        for rows in [&mut self.workflows, &mut self.names, &mut self.refs, &mut self.revisions] {
            rows.write(tx).await?;
        }
        Ok(())
    }
}

impl ProjectPackage {
    /// Takes away what was said about a workflow.
    pub(super) async fn forget_workflow(&self, tx: &mut Tx, id: &str) -> Result<()> {
        let project = self.who.project_id;
        sql("DELETE FROM package_workflow WHERE project_id = $1 AND id = $2").bind(project).bind(id).run(tx).await?;
        sql("DELETE FROM package_name WHERE project_id = $1 AND workflow = $2").bind(project).bind(id).run(tx).await?;
        self.forget_refs(tx, &format!("workflow:{id}")).await
    }

    pub(super) async fn forget_refs(&self, tx: &mut Tx, unit: &str) -> Result<()> {
        let text = "DELETE FROM package_ref WHERE project_id = $1 AND unit = $2";
        sql(text).bind(self.who.project_id).bind(unit).run(tx).await?;
        Ok(())
    }

    /// The workflows that one of these files belongs to.
    pub(super) async fn workflows_with(
        &self,
        tx: &mut Tx,
        paths: impl Iterator<Item = &String> + Send,
    ) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let paths: Vec<&String> = paths.collect();
        for batch in paths.chunks(BATCH) {
            let text = format!(
                "SELECT workflow FROM package_name WHERE project_id = $1 AND name IN ({})",
                places(2, batch.len())
            );
            let mut query = sql_of(text).bind(self.who.project_id);
            for path in batch {
                query = query.bind(*path);
            }
            for row in query.all(tx).await? {
                found.insert(row.get("workflow")?);
            }
        }
        Ok(found)
    }

    /// The package's revision of its assets, from their hashes.
    pub(super) async fn assets_revision(&self, tx: &mut Tx) -> Result<String> {
        let hashes = self.asset_hashes(tx).await?;
        Ok(revision::of(&serde_json::to_value(hashes).map_err(|e| Error::Row(e.to_string()))?))
    }
}
