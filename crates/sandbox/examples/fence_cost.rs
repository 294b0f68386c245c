//! What the fence adds to a bare spawn: medians in microseconds, as JSON.
//!
//! `fence_cost HELPER ROUNDS` runs `true` bare and in each tier, in turns, so that whatever else the machine does hits all
//! alike. `HELPER` is the program that routes `sandbox-exec`: the very binary that is shipped. Then comes the helper run
//! by hand, without and with Landlock, seccomp and limits: their difference is what these cost alone; and last the full tier in a
//! session, whose `/tmp` and home last.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, read by the bench")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use toolhost_contract::Session;
use toolhost_contract::workspace::{Access, Command, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, Limits, LocalConfig, LocalExecutor};

fn main() {
    let mut args = std::env::args().skip(1);
    let helper = PathBuf::from(args.next().unwrap());
    let rounds: usize = args.next().unwrap().parse().unwrap();
    let folder = tempfile::Builder::new().prefix("fence-cost-").tempdir_in("/var/tmp").unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let full = open(&folder, &helper, FenceChoice::Full);
        let landlock = open(&folder, &helper, FenceChoice::Landlock);
        let mut times: [Vec<Duration>; 6] = Default::default();
        let session = Session::new(Watch::unattended().cancel);
        for _ in 0..rounds {
            times[0].push(bare().await);
            times[1].push(fenced(&full, None).await);
            times[2].push(fenced(&landlock, None).await);
            times[3].push(by_hand(&helper, false).await);
            times[4].push(by_hand(&helper, true).await);
            times[5].push(fenced(&full, Some(&session)).await);
        }
        let [bare, full, landlock, helper, enforced, session] = times.map(median_us);
        println!(
            "{{\"bareUs\":{bare},\"fullUs\":{full},\"landlockUs\":{landlock},\"helperUs\":{helper},\"enforcedUs\":{enforced},\"sessionUs\":{session}}}"
        );
    });
}

fn open(folder: &tempfile::TempDir, helper: &std::path::Path, fence: FenceChoice) -> LocalExecutor {
    LocalExecutor::open(LocalConfig {
        root: folder.path().to_owned(),
        helper: helper.to_owned(),
        fence,
        path: "/usr/bin:/bin".to_owned(),
        home: PathBuf::from("/home/agent"),
        guard: PathBuf::from("/var/tmp/toolhost-fence-cost-guard"),
        temp: PathBuf::from("/tmp"),
        sessions: PathBuf::from("/var/tmp"),
        env: Vec::new(),
        toolchains: Vec::new(),
        command_cgroup: None,
        remotes: Vec::new(),
        limits: Limits::default(),
        durability: toolhost_contract::Durability::default(),
    })
    .unwrap()
}

/// As an MCP server without a fence would run it.
async fn bare() -> Duration {
    let began = Instant::now();
    let output = tokio::process::Command::new("/bin/true").output().await.unwrap();
    assert!(output.status.success());
    began.elapsed()
}

/// The helper without namespaces and without another user.
async fn by_hand(helper: &std::path::Path, enforce: bool) -> Duration {
    let policy = serde_json::json!({
        "become_user": null, "drop_capabilities": false, "enforce": enforce, "ends_in_order": false, "cwd": null,
        "readable": ["/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", "/dev", "/proc"], "writable": ["/tmp"],
        "readable_plain": [], "mounted": [], "opened": [], "network": "none", "private_ipc": false,
        "limits": {
            "cpu_seconds": 60, "file_bytes": 1u64 << 30, "open_files": 1024, "memory_bytes": null, "processes": null,
        },
    });
    // Open as long as this host waits for the command.
    let (watched, host) = std::io::pipe().unwrap();
    let began = Instant::now();
    let mut command = tokio::process::Command::new("/bin/sh");
    let script = "exec \"$0\" sandbox-exec \"$1\" true 3>/dev/null 4<&0";
    command.args(["-c", script]).arg(helper).arg(policy.to_string());
    let output = command.env("TOOLHOST_HANDED_DOWN", "3,4").stdin(watched).output().await.unwrap();
    drop(host);
    assert!(output.status.success(), "{output:?}");
    began.elapsed()
}

async fn fenced(executor: &LocalExecutor, session: Option<&Session>) -> Duration {
    let fence = Fence::closed(Access::Write);
    executor.report().await;
    let mut command = Command::new(["true"], Duration::from_secs(10));
    command.session = session.cloned();
    let began = Instant::now();
    let result = executor.run(command, &fence, Watch::unattended()).await.unwrap();
    assert_eq!(result.exit_code, 0);
    began.elapsed()
}

fn median_us(mut times: Vec<Duration>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2].as_micros()
}
