//! Where a workspace is deployed to, as the operator says it: [`Deployer`] for those who do not
//! block.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolhost_contract::workspace::{Error, Result};
use toolhost_contract::{BoxFuture, CallId, Deploys, Made, ToolError};

use super::{
    DeployKey, DeployMark, DeployPlan, DeployRecord, DeployRules, DeployState, DeployWatch, Deployed, Deployer,
    Recovered, UndoPlan, Undone,
};

/// Told how far a deploy has come: files done, files in all, what is being done.
pub type DeployProgress = Arc<dyn Fn(usize, usize, &'static str) + Send + Sync>;

/// A workspace, the folder it is deployed to, and by which rules.
#[derive(Debug, Clone)]
pub struct Deployment {
    source: PathBuf,
    target: PathBuf,
    rules: DeployRules,
    key: DeployKey,
    /// Of all clones.
    recovered: Arc<Mutex<Vec<Recovered>>>,
}

struct Told(DeployProgress);

impl DeployWatch for Told {
    fn progress(&mut self, done: usize, total: usize, doing: &'static str) {
        (self.0)(done, total, doing);
    }
}

impl Deployment {
    pub fn new(source: PathBuf, target: PathBuf, rules: DeployRules, key: DeployKey) -> Self {
        Self { source, target, rules, key, recovered: Arc::default() }
    }

    /// A host path: for people on this machine.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The folder's name, for everybody else.
    pub fn name(&self) -> String {
        self.target.file_name().map_or_else(|| "the project".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// What a crash had left and has been recovered since this was last asked, for the audit.
    pub fn take_recovered(&self) -> Vec<Recovered> {
        std::mem::take(&mut *self.recovered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a deploy would do now. What a crash left of an earlier one is recovered first.
    pub async fn plan(&self, cancel: &CancellationToken) -> Result<DeployPlan> {
        let (this, cancel) = (self.clone(), cancel.clone());
        self.blocking(move || this.opened(|deployer| deployer.plan(&this.rules, &|| cancel.is_cancelled()))).await
    }

    /// Does what the plan says, if nothing has changed since it was made. It can be cancelled until it begins to change
    /// the target.
    pub async fn run(
        &self,
        plan: DeployPlan,
        mark: DeployMark,
        progress: DeployProgress,
        cancel: &CancellationToken,
    ) -> Result<Deployed> {
        let (this, cancel) = (self.clone(), cancel.clone());
        self.blocking(move || {
            let mut told = Told(progress);
            this.opened(|deployer| deployer.run(&plan, &this.rules, &mark, &mut told, &|| cancel.is_cancelled()))
        })
        .await
    }

    /// Finishes or takes back what a crash left.
    pub async fn recover(&self) -> Result<Vec<Recovered>> {
        let this = self.clone();
        self.blocking(move || this.opened(|deployer| deployer.recover(&mut ()))).await
    }

    /// What undoing the newest deploy would do; `None`: there is none.
    pub async fn undo_plan(&self) -> Result<Option<UndoPlan>> {
        let this = self.clone();
        self.blocking(move || this.opened(Deployer::undo_plan)).await
    }

    pub async fn undo(&self, id: String, progress: DeployProgress) -> Result<Undone> {
        let this = self.clone();
        self.blocking(move || this.opened(|deployer| deployer.undo(Some(&id), &mut Told(progress)))).await
    }

    /// The newest first.
    pub async fn history(&self) -> Result<Vec<DeployRecord>> {
        let this = self.clone();
        self.blocking(move || this.opened(Deployer::history)).await
    }

    fn opened<T>(&self, work: impl FnOnce(&Deployer) -> Result<T>) -> Result<T> {
        let deployer = Deployer::open(&self.source, &self.target, self.key.clone())?;
        let done = work(&deployer);
        self.recovered.lock().unwrap_or_else(PoisonError::into_inner).extend(deployer.take_recovered());
        done
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| Error::Io { path: "the deploy".to_owned(), source: std::io::Error::other(error) })?
    }
}

impl Deploys for Deployment {
    fn take_recovered(&self) -> Vec<Value> {
        let recovered = Self::take_recovered(self);
        // They hold ids and paths: each of them is an object.
        recovered.iter().filter_map(|one| serde_json::to_value(one).ok()).collect()
    }

    fn made<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, std::result::Result<Made, ToolError>> {
        Box::pin(async move {
            self.recover().await?;
            let known = self.history().await?.into_iter().find(|deploy| deploy.id == call.as_str());
            Ok(match known.map(|deploy| deploy.state) {
                None => Made::No,
                Some(DeployState::Done | DeployState::Undone) => Made::Yes,
                Some(DeployState::Unfinished) => Made::Unknown,
            })
        })
    }
}
