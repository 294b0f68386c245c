//! A host is killed, and the processes of its command end later. What they have planted is gone when they have ended.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use toolhost_contract::workspace::{Access, Command, Executor, Fence, Watch};
use toolhost_sandbox::{FenceChoice, LocalConfig, LocalExecutor};

use super::plant::{fill, prepare, use_git};
use crate::room::{Room, child_of, config, processes_about, rerun_alone, runs_alone, until};

const PLANTS: &str =
    "HOOK > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; CONFIG >> .git/config; touch started;
    while :; do sleep 0.01; HOOK > .git/hooks/pre-commit; done & setsid -f sleep 600; wait";

/// With a guard of the workspace's own, in which its files can be told.
fn config_of(ws: &Path) -> LocalConfig {
    LocalConfig { guard: ws.with_file_name("guard"), ..config(ws.to_owned(), FenceChoice::Landlock) }
}

/// A file of the guard.
fn of_guard(ws: &Path, ending: &str) -> PathBuf {
    let files = std::fs::read_dir(ws.with_file_name("guard")).unwrap().map(|entry| entry.unwrap().path());
    let mut fitting = files.filter(|path| path.extension().is_some_and(|extension| extension == ending));
    fitting.next().unwrap()
}

/// Kills a host while its command runs, which has planted hooks. The answer still holds the command's lock, as a process would that
/// does not end, and with `another_lives` also the lock of a living host.
async fn killed(room: &Room, name: &str, another_lives: bool) -> Vec<File> {
    let ws = room.ws();
    let victim = ws.display().to_string();
    let mut host = rerun_alone(name, (super::VICTIM, &victim)).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("it is planted", || ws.join("started").exists()).await;
    let held = if another_lives { &["use", "host"][..] } else { &["use"] };
    let held: Vec<File> = held.iter().map(|name| File::open(of_guard(&ws, name)).unwrap()).collect();
    held.iter().for_each(|file| file.lock_shared().unwrap());
    host.kill().unwrap();
    host.wait().unwrap();
    // Everything else that held it has ended.
    let others_ended = || {
        let file = File::open(of_guard(&ws, "host")).unwrap();
        another_lives || !matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    };
    until("the host has ended", others_ended).await;
    held
}

fn is_planted(ws: &Path) -> bool {
    ws.join(".git/hooks/pre-commit").exists()
}

async fn run_as_victim(name: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test starts itself, and says so by a variable")]
    let Ok(ws) = std::env::var(super::VICTIM) else { return false };
    if !runs_alone(name) {
        return false;
    }
    let ws = PathBuf::from(ws);
    let executor = LocalExecutor::open(config_of(&ws)).unwrap();
    let command = Command::new(["bash", "-c", &fill(PLANTS, &ws)], Duration::from_secs(600));
    executor.run(command, &Fence::closed(Access::Write), Watch::unattended()).await.unwrap();
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_open_when_what_a_killed_one_s_command_planted_is_gone() {
    const NAME: &str = "git_person::orphans::a_host_is_open_when_what_a_killed_one_s_command_planted_is_gone";
    if run_as_victim(NAME).await {
        return;
    }
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
    let ws = room.ws();
    let held = killed(&room, NAME, false).await;
    // Whoever looks whether a host is there makes it anew.
    let looked = of_guard(&ws, "host");
    std::fs::remove_file(&looked).unwrap();
    let opening = tokio::task::spawn_blocking({
        let config = config_of(&ws);
        move || LocalExecutor::open(config)
    });
    until("it has looked", || looked.exists() || opening.is_finished()).await;
    assert!(!opening.is_finished() && is_planted(&ws), "it waits");
    drop(held);
    let next = opening.await.unwrap().unwrap();
    assert!(!is_planted(&ws));
    use_git(&ws, "a killed host");
    drop(next);
}

/// `pkill -9 toolhost` kills a host and its supervisors, which have the same name. After that only the mark tells which processes
/// belong to a command.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_supervisor_has_left_ends_before_it_is_put_back() {
    const NAME: &str = "git_person::orphans::what_a_killed_supervisor_has_left_ends_before_it_is_put_back";
    if run_as_victim(NAME).await {
        return;
    }
    for is_open in [false, true] {
        let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
        let ws = room.ws();
        let open = || LocalExecutor::open(config_of(&ws)).unwrap();
        let idle = is_open.then(open);
        let victim = ws.display().to_string();
        let mut host = rerun_alone(NAME, (super::VICTIM, &victim)).stdout(std::process::Stdio::null()).spawn().unwrap();
        until("it is planted", || ws.join("started").exists()).await;
        let host_pid = rustix::process::Pid::from_child(&host);
        let send = |pid, signal| rustix::process::kill_process(pid, signal).unwrap();
        // Stopped, so that it does not see its supervisor's end.
        send(host_pid, Signal::STOP);
        send(child_of(host.id(), &victim), Signal::KILL);
        host.kill().unwrap();
        host.wait().unwrap();
        let next = idle.unwrap_or_else(open);
        if is_open {
            until("it is put back", || !is_planted(&ws)).await;
        }
        assert!(!is_planted(&ws));
        assert_eq!(processes_about(&victim), 0, "of the command nothing is left");
        use_git(&ws, "a killed host and supervisor");
        drop(next);
    }
}

/// Nobody calls this host. It was open when the other one was killed.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_host_puts_back_what_another_one_leaves_that_is_killed() {
    const NAME: &str = "git_person::orphans::an_idle_host_puts_back_what_another_one_leaves_that_is_killed";
    if run_as_victim(NAME).await {
        return;
    }
    let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "true"), |_| {});
    let ws = room.ws();
    let held = killed(&room, NAME, true).await;
    let idle = LocalExecutor::open(config_of(&ws)).unwrap();
    assert!(is_planted(&ws), "a command of a host that lives may be under way");
    drop(held);
    until("it is put back", || !is_planted(&ws)).await;
    use_git(&ws, "a killed host");
    drop(idle);
}

/// The person's git in a worktree obeys the settings and hooks of the repository, which another workspace has.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_a_worktree_puts_back_what_one_of_the_repository_has_left() {
    const NAME: &str = "git_person::orphans::a_host_of_a_worktree_puts_back_what_one_of_the_repository_has_left";
    if run_as_victim(NAME).await {
        return;
    }
    for is_open in [false, true] {
        let room = Room::with(FenceChoice::Landlock, |ws| prepare(ws, "git worktree add -q ../wt"), |_| {});
        let (ws, worktree) = (room.ws(), room.ws().with_file_name("wt"));
        let open = || LocalExecutor::open(config_of(&worktree)).unwrap();
        let idle = is_open.then(open);
        drop(killed(&room, NAME, false).await);
        let next = idle.unwrap_or_else(open);
        if is_open {
            until("it is put back", || !is_planted(&ws)).await;
        }
        assert!(!is_planted(&ws));
        use_git(&ws, "a killed host");
        drop(next);
    }
}
