//! Where an agent works, beside its ticket: the branch that is checked out, and the remote that git tools use.

use toolhost_contract::workspace::{Executor, ReadSpan, Remote, WsPath};
use toolhost_sandbox::LocalExecutor;

/// Largest file of git's that is looked at.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// What an agent is told when it begins.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Place {
    pub branch: Option<String>,
    pub remote: Option<String>,
}

/// Looks into the repository. A workspace without one has neither.
pub(crate) async fn look(executor: &LocalExecutor) -> Place {
    let head = read(executor, ".git/HEAD").await;
    let branch = head.as_deref().and_then(|head| head.trim().strip_prefix("ref: refs/heads/"));
    let config = read(executor, ".git/config").await.unwrap_or_default();
    let url = |line: &str| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "url").then(|| value.trim().to_owned())
    };
    let urls: Vec<String> = config.lines().filter_map(url).collect();
    // A grant for all workspaces holds where the repository names its address.
    let holds = |remote: &&Remote| remote.workspace.is_some() || urls.iter().any(|url| remote.url.is_same(url));
    let mut granted: Vec<&Remote> = executor.granted_remotes().into_iter().filter(holds).collect();
    granted.sort_by_key(|remote| remote.name != "origin");
    Place { branch: branch.map(str::to_owned), remote: granted.first().map(|remote| remote.name.clone()) }
}

async fn read(executor: &LocalExecutor, path: &str) -> Option<String> {
    let path = WsPath::parse(path).ok()?;
    let content = executor.read(&path, ReadSpan { start: 0, bytes_max: FILE_BYTES_MAX }).await.ok()?;
    Some(String::from_utf8_lossy(&content.bytes).into_owned())
}
