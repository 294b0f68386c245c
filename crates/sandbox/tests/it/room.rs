//! A workspace with something secret beside it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use toolhost_contract::workspace::{
    Access, Command, CommandResult, Executor, Fence, HostRule, ListQuery, ReadSpan, Result, SearchQuery, Tier, Watch,
    WsPath,
};
use toolhost_sandbox::{FenceChoice, Limits, LocalConfig, LocalExecutor};

/// What stands in the file outside; no answer may ever hold it.
pub(crate) const SECRET: &str = "the-secret-outside";
/// Who the host's processes in these tests belong to where the tests run as root: the very user that commands become,
/// so that only the fence keeps the two apart.
pub(crate) const AGENT_UID: u32 = 64_999;
const OUTSIDE_MODE: u32 = 0o666;

pub(crate) struct Room {
    pub(crate) folder: TempDir,
    pub(crate) executor: LocalExecutor,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::fenced(FenceChoice::Auto)
    }

    pub(crate) fn fenced(fence: FenceChoice) -> Self {
        Self::with(fence, |_| {}, |_| {})
    }

    /// A room whose workspace `furnish` fills before it is opened, and whose configuration `adjust` changes.
    pub(crate) fn with(fence: FenceChoice, furnish: impl FnOnce(&Path), adjust: impl FnOnce(&mut LocalConfig)) -> Self {
        // Not below `/tmp`: there the fence puts a private folder of its own, and nothing outside could be reached anyway.
        let folder = tempfile::Builder::new().prefix("room-").tempdir_in("/var/tmp").unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(folder.path(), 0o755);
        let (ws, outside) = (folder.path().join("ws"), folder.path().join("outside"));
        std::fs::create_dir(&ws).unwrap();
        std::fs::create_dir(&outside).unwrap();
        // Open to everybody, so that nothing but the fence protects it.
        mode(&outside, 0o777);
        let secret = outside.join("secret.txt");
        std::fs::write(&secret, SECRET).unwrap();
        mode(&secret, OUTSIDE_MODE);
        std::fs::File::options().write(true).open(&secret).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        furnish(&ws);
        let mut config = config(ws, fence);
        adjust(&mut config);
        let executor = LocalExecutor::open(config).unwrap();
        Self { folder, executor }
    }

    pub(crate) fn ws(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub(crate) async fn bash(&self, script: &str, access: Access) -> CommandResult {
        self.try_bash(script, access, Duration::from_secs(20)).await.unwrap()
    }

    pub(crate) async fn try_bash(&self, script: &str, access: Access, timeout: Duration) -> Result<CommandResult> {
        self.run(Command::new(["bash", "-c", script], timeout), access).await
    }

    pub(crate) async fn run(&self, command: Command, access: Access) -> Result<CommandResult> {
        let fence = Fence::closed(access);
        self.executor.run(command, &fence, Watch::unattended()).await
    }

    pub(crate) async fn bash_with_hosts(&self, script: &str, hosts: &[String]) -> Result<CommandResult> {
        let network = hosts.iter().map(|h| HostRule::parse(h).unwrap()).collect();
        let fence = Fence { network, ..Fence::closed(Access::Read) };
        let command = Command::new(["bash", "-c", script], Duration::from_secs(20));
        self.executor.run(command, &fence, Watch::unattended()).await
    }

    /// Builds `probe.c`, which tries forbidden system calls, as `./probe` in the workspace.
    ///
    /// By another process, as [`copy`] is: this one starts others on many threads, and a program that any of them still
    /// holds open for writing cannot be run.
    pub(crate) fn bring_probe(&self) {
        let source = self.ws().join("probe.c");
        std::fs::write(&source, include_str!("probe.c")).unwrap();
        let mut gcc = std::process::Command::new("gcc");
        let built = gcc.args(["-Wall", "-Werror", "-o"]).args([&self.ws().join("probe"), &source]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }

    /// Nothing outside the workspace was read into `text` or changed.
    pub(crate) fn assert_untouched(&self, text: &str) {
        assert!(!text.contains(SECRET), "the secret was read: {text}");
        assert_eq!(names(self.folder.path()), ["outside", "ws"], "something was made or removed beside: {text}");
        assert_eq!(names(&self.outside()), ["secret.txt"], "something was made or removed outside: {text}");
        let secret = self.outside().join("secret.txt");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), SECRET, "{text}");
        let metadata = secret.metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, OUTSIDE_MODE, "{text}");
        assert_eq!(metadata.modified().unwrap(), SystemTime::UNIX_EPOCH, "{text}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn config(root: PathBuf, fence: FenceChoice) -> LocalConfig {
    LocalConfig {
        root,
        helper: helper(),
        fence,
        path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
        home: PathBuf::from("/home/agent"),
        temp: PathBuf::from("/tmp"),
        sessions: PathBuf::from("/var/tmp"),
        guard: guard_folder(),
        env: Vec::new(),
        toolchains: Vec::new(),
        command_cgroup: None,
        remotes: Vec::new(),
        limits: Limits::default(),
        durability: toolhost_contract::Durability::default(),
    }
}

/// One for all tests of a user, as all hosts of a user share one.
pub(crate) fn guard_folder() -> PathBuf {
    PathBuf::from(format!("/var/tmp/toolhost-test-guard-{}", rustix::process::geteuid().as_raw()))
}

/// Beside this program where it was copied for another user, else where cargo built it.
pub(crate) fn helper() -> PathBuf {
    let beside = std::env::current_exe().unwrap().with_file_name("toolhost-sandbox-exec");
    if beside.exists() { beside } else { PathBuf::from(env!("CARGO_BIN_EXE_toolhost-sandbox-exec")) }
}

/// Copies a program; see [`Room::bring_probe`].
pub(crate) fn copy(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").args([from, to]).status().unwrap().success());
}

/// A room in each tier. Both must hold: the absence of one is a broken machine, not a pass.
pub(crate) async fn rooms() -> Vec<(Tier, Room)> {
    let mut rooms = Vec::new();
    for (choice, tier) in [(FenceChoice::Full, Tier::Full), (FenceChoice::Landlock, Tier::Landlock)] {
        let room = Room::fenced(choice);
        let report = room.executor.report().await;
        assert_eq!(report.tier, Some(tier), "does not hold here: {report:?}");
        rooms.push((tier, room));
    }
    rooms
}

pub(crate) fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

/// As many bytes from the start as any test wants.
pub(crate) const WHOLE: ReadSpan = ReadSpan { start: 0, bytes_max: 1 << 20 };

/// Everything below `folder`, hidden and ignored too.
pub(crate) fn everything(folder: &str) -> ListQuery {
    ListQuery {
        path: path(folder),
        pattern: None,
        depth_max: None,
        include_hidden: true,
        include_ignored: true,
        limit: 10_000,
        after: None,
    }
}

/// A plain search of everything below `folder`.
pub(crate) fn look_for(pattern: &str, folder: &str) -> SearchQuery {
    SearchQuery {
        pattern: pattern.to_owned(),
        literal: true,
        ignore_case: false,
        path: path(folder),
        glob: None,
        context: 0,
        include_hidden: true,
        include_ignored: true,
        limit: 10_000,
        after: None,
    }
}

/// Processes of the whole machine whose command line starts with `marker`.
pub(crate) fn processes_named(marker: &str) -> usize {
    let cmdline = |pid: &std::fs::DirEntry| std::fs::read(pid.path().join("cmdline")).unwrap_or_default();
    std::fs::read_dir("/proc").unwrap().flatten().filter(|pid| cmdline(pid).starts_with(marker.as_bytes())).count()
}

/// Processes of the whole machine with `text` anywhere in their command line: those that start others, too.
pub(crate) fn processes_about(text: &str) -> usize {
    let cmdline = |pid: &std::fs::DirEntry| std::fs::read(pid.path().join("cmdline")).unwrap_or_default();
    let is_about = |cmdline: Vec<u8>| cmdline.windows(text.len()).any(|part| part == text.as_bytes());
    std::fs::read_dir("/proc").unwrap().flatten().filter(|pid| is_about(cmdline(pid))).count()
}

/// The process that `parent` has started and that has `text` in its command line.
pub(crate) fn child_of(parent: u32, text: &str) -> rustix::process::Pid {
    let is_child = |pid: &std::fs::DirEntry| {
        let read = |name| std::fs::read_to_string(pid.path().join(name)).unwrap_or_default();
        let stat = read("stat");
        let found = stat.rsplit(')').next().and_then(|fields| fields.split_whitespace().nth(1)?.parse().ok());
        found == Some(parent) && read("cmdline").contains(text)
    };
    let child = std::fs::read_dir("/proc").unwrap().flatten().find(is_child).unwrap();
    rustix::process::Pid::from_raw(child.file_name().to_str().unwrap().parse().unwrap()).unwrap()
}

/// Waits until `holds`; a minute without it is a failure.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(holds(), "not within a minute: {what}");
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// One test at a time starts many processes: the kernel counts all processes together that belong to the user that commands
/// become.
pub(crate) fn crowd() -> std::fs::File {
    let path = format!("/var/tmp/toolhost-test-crowd-{}", rustix::process::geteuid().as_raw());
    let turn = std::fs::File::options().create(true).truncate(false).write(true).open(path).unwrap();
    rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
    turn
}

/// A process of the host's, with a secret in its environment; ended when dropped.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn start() -> Self {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sleep");
        command.arg("1000").env_clear().env("FAKE_API_KEY", SECRET).stdin(Stdio::null());
        if is_root() {
            command.uid(AGENT_UID).gid(AGENT_UID);
        }
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // It may have been killed by the attack under test.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether this process was started by [`rerun_alone`] for this one test.
pub(crate) fn runs_alone(test: &str) -> bool {
    let args: Vec<String> = std::env::args().collect();
    args.iter().any(|arg| arg == "--exact") && args.iter().any(|arg| arg == test)
}

/// This very test program again, for one test only, with a variable in its environment.
pub(crate) fn rerun_alone(test: &str, variable: (&str, &str)) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable.0, variable.1);
    command
}

/// Runs it to its end; one test must have passed.
pub(crate) fn assert_passes_alone(test: &str, variable: (&str, &str)) {
    let output = rerun_alone(test, variable).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
