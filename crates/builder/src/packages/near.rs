//! Names that are there and are written almost like one that is not.

use crate::envelope::EnvelopeError;
use toolhost_contract::nearest_names;

use super::drafts::made_workflows;
use super::error::{NAMES_SHOWN_MAX, PackageError};
use super::part::Want;
use super::{ProjectPackage, WorkflowName};
use toolhost_store::db::{Tx, sql};

/// Names that one is compared with.
const COMPARED_MAX: usize = 1_000;
/// Workflows whose nodes are looked at where none is named.
const WORKFLOWS_MAX: i64 = 50;

impl ProjectPackage {
    /// The same error; where something was not found, with the names that may have been meant.
    pub(super) async fn with_near(
        &self,
        tx: &mut Tx,
        error: PackageError,
        workflow: Option<&WorkflowName>,
        session: Option<&str>,
    ) -> PackageError {
        let (what, name) = match &error {
            PackageError::NotFound { what, name } => (*what, name.clone()),
            PackageError::Unnamed(what) => (*what, String::new()),
            PackageError::Envelope(EnvelopeError::Missing { kind, id, .. }) => (*kind, id.clone()),
            _ => return error,
        };
        let mut there = match self.names_of(tx, what, workflow, session).await {
            Ok(names) => names,
            Err(PackageError::Store(broken)) => return PackageError::Store(broken),
            // What was asked for is not there, which is what is said.
            Err(_) => return error,
        };
        there.dedup();
        let near = nearest_names(&name, &there).into_iter().map(str::to_owned).collect();
        let count = there.len();
        there.truncate(NAMES_SHOWN_MAX);
        PackageError::Near { error: Box::new(error), near, there, count }
    }

    /// Ids and paths of any kind that the session sees and that are written almost like this.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn near_names(&self, name: &str, session: Option<&str>) -> super::Result<Vec<String>> {
        let mut tx = self.db.snapshot().await?;
        let mut there = Vec::new();
        for what in ["step", "agent", "workflow", "asset"] {
            there.extend(self.names_of(&mut tx, what, None, session).await?);
        }
        there.sort();
        there.dedup();
        Ok(nearest_names(name, &there).into_iter().map(str::to_owned).collect())
    }

    /// The names of all objects of this kind that the session sees; of steps, those of the workflow if one is named, else
    /// all that its workflows name.
    async fn names_of(
        &self,
        tx: &mut Tx,
        what: &str,
        workflow: Option<&WorkflowName>,
        session: Option<&str>,
    ) -> super::Result<Vec<String>> {
        let drafts = self.drafts(tx, session).await?;
        if what == "step" {
            if let Some(name) = workflow {
                let id = self.workflow_id(tx, name, &drafts).await?;
                let part = self.part(tx, &Want::workflows([id.as_str()]), &drafts).await?;
                let nodes = part.package().workflow(&id).into_iter().flat_map(|workflow| &workflow.nodes);
                let names = nodes.flat_map(|node| [Some(node.id.clone()), node.path.clone()]).flatten();
                return Ok(names.take(COMPARED_MAX).collect());
            }
            let text = "SELECT id FROM package_workflow WHERE project_id = $1 ORDER BY position LIMIT $2";
            let query = sql(text).bind(self.who.project_id).bind(WORKFLOWS_MAX);
            let ids =
                query.all(tx).await?.iter().map(|row| Ok(row.get("id")?)).collect::<super::Result<Vec<String>>>()?;
            let part = self.part(tx, &Want::workflows(ids.iter().map(String::as_str)), &drafts).await?;
            let nodes = part.package().workflows().iter().flat_map(|workflow| &workflow.nodes);
            let mut names: Vec<String> = nodes.map(|node| node.id.clone()).take(COMPARED_MAX).collect();
            names.extend(drafts.iter().filter_map(|draft| match &draft.object {
                crate::refs::Object::Step { node, .. } => Some(node.clone()),
                _ => None,
            }));
            names.sort();
            return Ok(names);
        }
        let mut want = Want { asset_names: what == "asset", workflow_names: what == "workflow", ..Want::default() };
        want.workflows.extend(made_workflows(&drafts));
        let part = self.part(tx, &want, &drafts).await?;
        let package = part.package();
        Ok(match what {
            "agent" => package.agents().iter().map(|agent| agent.id.clone()).take(COMPARED_MAX).collect(),
            "asset" => package.asset_paths().map(str::to_owned).take(COMPARED_MAX).collect(),
            "workflow" => package.workflow_ids().into_iter().map(str::to_owned).take(COMPARED_MAX).collect(),
            // Of what else is not there, there are no names to tell.
            _ => return Err(PackageError::NotFound { what: "kind", name: what.to_owned() }),
        })
    }
}
