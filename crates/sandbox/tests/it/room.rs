//! A workspace with something secret beside it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use toolhost_sandbox::{
    Access, Command, CommandResult, Executor, Fence, FenceChoice, HostRule, Limits, LocalConfig, LocalExecutor, Result,
    Watch, WsPath,
};

/// What stands in the file outside; no answer may ever hold it.
pub const SECRET: &str = "the-secret-outside";

pub struct Room {
    pub folder: TempDir,
    pub executor: LocalExecutor,
}

impl Room {
    pub fn new() -> Self {
        Self::fenced(FenceChoice::Auto)
    }

    pub fn fenced(fence: FenceChoice) -> Self {
        // Not below `/tmp`: there the fence puts a private folder of its own, and nothing outside could be reached anyway.
        let folder = tempfile::Builder::new().prefix("room-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        std::fs::write(folder.path().join("outside/secret.txt"), SECRET).unwrap();
        let executor = LocalExecutor::open(config(folder.path().join("ws"), fence)).unwrap();
        Self { folder, executor }
    }

    pub fn ws(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub async fn bash(&self, script: &str, access: Access) -> CommandResult {
        self.try_bash(script, access, Duration::from_secs(20)).await.unwrap()
    }

    pub async fn try_bash(&self, script: &str, access: Access, timeout: Duration) -> Result<CommandResult> {
        let fence = Fence { workspace: access, network: Vec::new() };
        self.executor.run(Command::new(["bash", "-c", script], timeout), &fence, Watch::unattended()).await
    }

    pub async fn bash_with_hosts(&self, script: &str, hosts: &[String]) -> Result<CommandResult> {
        let network = hosts.iter().map(|h| HostRule::parse(h).unwrap()).collect();
        let fence = Fence { workspace: Access::Read, network };
        let command = Command::new(["bash", "-c", script], Duration::from_secs(20));
        self.executor.run(command, &fence, Watch::unattended()).await
    }

    /// Nothing outside the workspace was read into `text` or changed.
    pub fn assert_untouched(&self, text: &str) {
        assert!(!text.contains(SECRET), "the secret was read: {text}");
        let outside: Vec<_> = std::fs::read_dir(self.outside()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(outside, ["secret.txt"], "something was made or removed outside");
        assert_eq!(std::fs::read_to_string(self.outside().join("secret.txt")).unwrap(), SECRET);
    }
}

pub fn config(root: PathBuf, fence: FenceChoice) -> LocalConfig {
    LocalConfig {
        root,
        helper: Path::new(env!("CARGO_BIN_EXE_toolhost-sandbox-exec")).to_owned(),
        fence,
        path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
        home: PathBuf::from("/home/agent"),
        temp: PathBuf::from("/tmp"),
        env: Vec::new(),
        toolchains: Vec::new(),
        limits: Limits::default(),
    }
}

pub fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}
