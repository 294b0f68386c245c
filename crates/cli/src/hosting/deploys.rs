//! Deploys of a served project: what there were, and taking the newest one back.

use std::sync::Arc;

use serde_json::json;
use toolhost::{Connection, Host, Recording};
use toolhost_contract::{ErrorKind, RECOVERY, ToolError};
use toolhost_deploy::{DeployState, Deployment, Recovered, UndoPlan};
use toolhost_server::http::{By, DeployLine, DeployUndo, DeployWork, Done};
use toolhost_store::Role;

/// The deploys of one project.
pub(super) struct ProjectDeploys {
    pub(super) host: Host,
}

impl ProjectDeploys {
    async fn host_of(&self, by: By<'_>, role: Role) -> Result<Host, ToolError> {
        let host = self.host.as_user(by.user).await?.through(by.door);
        host.connection().need_role(role).await?;
        Ok(host)
    }
}

/// Records what was recovered of deploys that a crash had interrupted, and answers with it.
pub(crate) async fn note_recovered(
    connection: &Connection,
    deployment: &Deployment,
    recording: Recording<'_>,
) -> anyhow::Result<Vec<Recovered>> {
    let recovered = deployment.take_recovered();
    if !recovered.is_empty() {
        let arguments = json!({ "recovered": recovered });
        let nothing = async { anyhow::Ok(()) };
        connection.record_if(recording, &connection.who(), RECOVERY, arguments, nothing).await?;
    }
    Ok(recovered)
}

impl DeployWork for ProjectDeploys {
    fn has_target(&self) -> bool {
        self.host.deployment().is_some()
    }

    fn list<'a>(&'a self, by: By<'a>) -> Done<'a, Vec<DeployLine>> {
        Box::pin(async move {
            let host = self.host_of(by, Role::Viewer).await?;
            let Some(deployment) = host.deployment().filter(|deployment| deployment.target().is_dir()) else {
                return Ok(Vec::new());
            };
            let mut deploys: Vec<DeployLine> = deployment
                .history()
                .await?
                .into_iter()
                .map(|deploy| DeployLine {
                    state: match deploy.state {
                        DeployState::Unfinished => "unfinished",
                        DeployState::Done => "done",
                        DeployState::Undone => "undone",
                    },
                    id: deploy.id,
                    at_ms: deploy.at_ms,
                    who: deploy.who,
                    new: deploy.new,
                    changed: deploy.changed,
                    deleted: deploy.deleted,
                })
                .collect();
            deploys.sort_by_key(|deploy| std::cmp::Reverse(deploy.at_ms));
            Ok(deploys)
        })
    }

    fn undo_plan<'a>(&'a self, by: By<'a>) -> Done<'a, Option<DeployUndo>> {
        Box::pin(async move {
            let host = self.host_of(by, Role::Viewer).await?;
            match host.deployment() {
                Some(deployment) => planned(host.connection(), deployment).await,
                None => Ok(None),
            }
        })
    }

    fn undo<'a>(&'a self, by: By<'a>, digest: &'a str) -> Done<'a, ()> {
        Box::pin(async move {
            let host = self.host_of(by, Role::Editor).await?;
            let gone = || ToolError::new(ErrorKind::NotFound, "there is no deploy to take back");
            let deployment = host.deployment().ok_or_else(gone)?;
            let plan = planned(host.connection(), deployment).await?.ok_or_else(gone)?;
            if plan.digest()? != digest {
                return Err(ToolError::new(ErrorKind::Conflict, "it would put back something else than was shown")
                    .hint("look at it again"));
            }
            let who = host.connection().who();
            let id = plan.id.clone();
            let work = async { Ok::<_, ToolError>(deployment.undo(id, Arc::new(|_, _, _| {})).await?) };
            host.connection().record(&who, "deploy.undo", json!({ "deploy": plan.id }), work).await?;
            Ok(())
        })
    }
}

/// What taking the newest deploy back would do. Looking recovers what a crash has left of deploys, and that is recorded.
async fn planned(connection: &Connection, deployment: &Deployment) -> Result<Option<DeployUndo>, ToolError> {
    let planned = deployment.undo_plan().await;
    note_recovered(connection, deployment, Recording::Required).await.map_err(ToolError::internal)?;
    Ok(planned?.map(shown))
}

fn shown(plan: UndoPlan) -> DeployUndo {
    let conflicts = plan.conflicts.into_iter().map(|conflict| format!("{}: {}", conflict.path, conflict.why)).collect();
    DeployUndo { id: plan.id, restored: plan.restored, removed: plan.removed, returned: plan.returned, conflicts }
}
