//! However a command ends, or its host does, nothing of it is left running.

use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Fence, Tier, Watch};
use toolhost_sandbox::{FenceChoice, LocalExecutor};

use crate::room::{
    Bystander, Room, child_of, config, crowd, processes_about, processes_named, rerun_alone, rooms, runs_alone, until,
};

/// A name for processes that no other test's have.
fn marker(workspace: &Path) -> String {
    format!("toolhost-test-{}", workspace.display())
}

/// Starts daemons in every way there is, deaf to what can be ignored, and waits.
fn tree(marker: &str) -> Command {
    let sleeper = format!("exec -a \"{marker}\" sleep 1000");
    let script = format!(
        "trap '' TERM HUP INT QUIT; ({sleeper}) & nohup bash -c '{sleeper}' & setsid bash -c '{sleeper}' &
        setsid -f bash -c 'trap \"\" TERM; {sleeper}'; (setsid bash -c '({sleeper} &)' &); {sleeper}"
    );
    Command::new(["bash", "-c", &script], Duration::from_secs(500))
}

/// Processes that [`tree`] ends up with.
const TREE: usize = 6;
const FENCE: &Fence = &Fence::closed(Access::Write);

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_command_ends_with_its_whole_tree() {
    for (tier, room) in rooms().await {
        let marker = marker(&room.ws());
        let watch = Watch::unattended();
        let cancel = watch.cancel.clone();
        let running = room.executor.run(tree(&marker), FENCE, watch);
        let cancelling = async {
            until("the tree runs", || processes_named(&marker) == TREE).await;
            cancel.cancel();
        };
        let (result, ()) = futures::join!(running, cancelling);
        assert!(matches!(result, Err(Error::Cancelled)), "{tier:?}: {result:?}");
        assert_eq!(processes_named(&marker), 0, "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_nobody_waits_for_ends_with_its_whole_tree() {
    for (tier, room) in rooms().await {
        let marker = marker(&room.ws());
        {
            let running = room.executor.run(tree(&marker), FENCE, Watch::unattended());
            let started = until("the tree runs", || processes_named(&marker) == TREE);
            tokio::select! {
                result = running => unreachable!("{tier:?} ended by itself: {result:?}"),
                () = started => {}
            }
        }
        until(&format!("the tree is gone in {tier:?}"), || processes_named(&marker) == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_dropped_while_it_starts_does_not_run_on() {
    for (tier, room) in rooms().await {
        let marker = marker(&room.ws());
        // From "not even asked for" to "just started", whatever the machine makes of it.
        for yields in 0..60 {
            let running = room.executor.run(tree(&marker), FENCE, Watch::unattended());
            tokio::select! {
                biased;
                result = running => unreachable!("ended by itself: {result:?}"),
                () = tokio::time::sleep(Duration::from_micros(yields * 100)) => {}
            }
        }
        // The one after all those is started last, by the one thread that starts commands: what the others left would
        // be seen by now or is about to be ended.
        assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
        until(&format!("nothing is left in {tier:?}"), || processes_about(&marker) == 0).await;
        for _ in 0..20 {
            assert_eq!(room.bash("true", Access::Write).await.exit_code, 0);
            assert_eq!(processes_named(&marker), 0, "{tier:?}");
        }
    }
}

/// A person may kill a supervisor, or the kernel when memory is short.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_supervisor_is_killed_ends_with_its_whole_tree() {
    // A command that only reads leaves nothing to put back, so only its own host ends what is left of it.
    let fences = [Access::Read, Access::Write].map(Fence::closed);
    for ((tier, room), fence) in rooms().await.iter().flat_map(|room| fences.iter().map(move |fence| (room, fence))) {
        let marker = marker(&room.ws());
        let running = room.executor.run(tree(&marker), fence, Watch::unattended());
        let killing = async {
            until("the tree runs", || processes_named(&marker) == TREE).await;
            rustix::process::kill_process(child_of(std::process::id(), &marker), rustix::process::Signal::KILL)
                .unwrap();
        };
        let (result, ()) = futures::join!(running, killing);
        assert_eq!(result.unwrap().exit_code, 128 + libc::SIGKILL, "{tier:?}");
        if *tier == Tier::Landlock {
            assert_eq!(processes_named(&marker), 0, "{tier:?}");
        }
        // The kernel ends a namespace a moment after its first process.
        until(&format!("the tree is gone in {tier:?}"), || processes_named(&marker) == 0).await;
    }
}

/// A Python program whose main thread exits while another thread keeps a lock. `/proc` shows such a process as a zombie.
const LEADERLESS: &str = "import ctypes, fcntl, platform, threading, time
lock = open('lock', 'w')
fcntl.flock(lock, fcntl.LOCK_EX)
def go_on():
    open('ready', 'w').close()
    while True: time.sleep(0.01)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)";

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_first_thread_has_ended_ends_with_its_command() {
    for (tier, room) in rooms().await {
        let lock = || std::fs::File::open(room.ws().join("lock")).unwrap().try_lock();
        let wait = |then: &str| {
            format!("python3 -c \"{LEADERLESS}\" & until [ -e ready ]; do sleep 0.01; done; sleep 0.1; {then}")
        };
        let result = room.bash(&wait("exit 3"), Access::Write).await;
        assert_eq!(result.exit_code, 3, "{tier:?}: {result:?}");
        lock().unwrap();
        for name in ["ready", "lock"] {
            std::fs::remove_file(room.ws().join(name)).unwrap();
        }
        let marker = marker(&room.ws());
        let command =
            Command::new(["bash", "-c", &wait(&format!("sleep 1000; : '{marker}'"))], Duration::from_secs(500));
        let running = room.executor.run(command, FENCE, Watch::unattended());
        let killing = async {
            until("it holds the lock", || room.ws().join("ready").exists()).await;
            rustix::process::kill_process(child_of(std::process::id(), &marker), rustix::process::Signal::KILL)
                .unwrap();
        };
        let (result, ()) = futures::join!(running, killing);
        assert_eq!(result.unwrap().exit_code, 128 + libc::SIGKILL, "{tier:?}");
        // The kernel ends a namespace a moment after its first process.
        until(&format!("it has ended in {tier:?}"), || lock().is_ok()).await;
    }
}

/// Each process starts one child, in a new session, and exits at once.
#[tokio::test(flavor = "multi_thread")]
async fn chains_of_forks_end_where_their_supervisor_is_killed() {
    let _turn = crowd();
    let chain = "import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        while True:
            if os.fork(): os._exit(0)
            os.setsid()
open('ready', 'w').close()
import time; time.sleep(1000)";
    let room = Room::with(FenceChoice::Landlock, |_| {}, |_| {});
    let marker = marker(&room.ws());
    let script = format!("python3 -c \"{chain}\" 40 '{marker}'; :");
    let running =
        room.executor.run(Command::new(["bash", "-c", &script], Duration::from_secs(500)), FENCE, Watch::unattended());
    let killing = async {
        until("they run", || room.ws().join("ready").exists()).await;
        rustix::process::kill_process(child_of(std::process::id(), &marker), rustix::process::Signal::KILL).unwrap();
    };
    let (result, ()) = futures::join!(running, killing);
    assert_eq!(result.unwrap().exit_code, 128 + libc::SIGKILL);
    assert_eq!(processes_about(&marker), 0);
}

/// This limit is the mark by which a host finds the processes of a command.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_change_the_limit_that_marks_its_processes() {
    for (tier, room) in rooms().await {
        let script = "
            marks() { grep 'file locks' /proc/self/limits; }
            marks
            for how in -x -Hx -Sx; do ulimit $how 5 && echo $how; ulimit $how unlimited && echo $how; done 2>/dev/null
            prlimit --pid $$ --locks=5 2>/dev/null && echo prlimit
            python3 -c 'import resource as r; r.setrlimit(10, (5, 5))' 2>/dev/null && echo python
            python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(160, 10, (ctypes.c_ulong * 2)(5, 5)))' && echo call
            marks; (setsid bash -c \"$(declare -f marks); marks\")
            ulimit -n 100 && ulimit -n; prlimit --nofile=99 bash -c 'ulimit -n'; python3 -c 'import resource as r; r.getrlimit(10)'";
        let result = room.bash(script, Access::Write).await;
        let said: Vec<&str> = result.stdout.text.lines().collect();
        let mark = said[0];
        assert_eq!(said, [mark, mark, mark, "100", "99"], "{tier:?}: {result:?}");
        assert_eq!(mark.contains("unlimited"), tier == Tier::Full, "{tier:?}: {mark}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_host_that_dies() {
    const THIS: &str = "attacks::endings::nothing_outlives_a_host_that_dies";
    const WORKSPACE: &str = "TOOLHOST_TEST_WORKSPACE";
    if runs_alone(THIS) {
        let workspace = std::env::var_os(WORKSPACE).unwrap().into_string().unwrap();
        let (tier, root) = workspace.split_once(' ').unwrap();
        let choice = if tier == "full" { FenceChoice::Full } else { FenceChoice::Landlock };
        let executor = LocalExecutor::open(config(root.into(), choice)).unwrap();
        let result = executor.run(tree(&marker(root.as_ref())), FENCE, Watch::unattended()).await;
        unreachable!("the host was to be killed while this ran: {result:?}");
    }
    for tier in ["full", "landlock"] {
        let room = Room::new();
        let marker = marker(&room.ws());
        let mut host = rerun_alone(THIS, (WORKSPACE, &format!("{tier} {}", room.ws().display()))).spawn().unwrap();
        until("the tree runs", || processes_named(&marker) == TREE).await;
        host.kill().unwrap();
        host.wait().unwrap();
        until(&format!("the tree is gone in {tier}"), || processes_named(&marker) == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_host_that_dies_while_it_starts_a_command() {
    const THIS: &str = "attacks::endings::nothing_outlives_a_host_that_dies_while_it_starts_a_command";
    const WORKSPACE: &str = "TOOLHOST_TEST_STARTING";
    if runs_alone(THIS) {
        let workspace = std::env::var_os(WORKSPACE).unwrap().into_string().unwrap();
        let (tier, root) = workspace.split_once(' ').unwrap();
        let choice = if tier == "full" { FenceChoice::Full } else { FenceChoice::Landlock };
        let executor = LocalExecutor::open(config(root.into(), choice)).unwrap();
        let marker = marker(root.as_ref());
        let many = (0..20).map(|_| executor.run(tree(&marker), FENCE, Watch::unattended()));
        futures::future::join_all(many).await;
        unreachable!("the host was to be killed while these ran");
    }
    for tier in ["full", "landlock"] {
        let room = Room::new();
        let marker = marker(&room.ws());
        for started in 0..10 {
            let mut host = rerun_alone(THIS, (WORKSPACE, &format!("{tier} {}", room.ws().display()))).spawn().unwrap();
            // Between the first of twenty commands and the last one: some are running, one is about to.
            until("some have begun", || processes_named(&marker) > started * TREE).await;
            host.kill().unwrap();
            host.wait().unwrap();
            until(&format!("nothing is left in {tier}"), || processes_about(&marker) == 0).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_its_own_group_ends_a_command_and_not_what_watches_over_it() {
    for (tier, room) in rooms().await {
        let marker = marker(&room.ws());
        let script = format!("setsid -f bash -c 'exec -a \"{marker}\" sleep 1000'; kill -KILL 0; sleep 1000");
        let result = room.bash(&script, Access::Write).await;
        assert_eq!(result.signal.map(|signal| signal.name()), Some("SIGKILL".to_owned()), "{tier:?}: {result:?}");
        assert_eq!(processes_named(&marker), 0, "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_no_descriptor_of_its_hosts_or_its_supervisors() {
    // As what a shell or a service manager leaves open for the host: closed by no `exec`.
    let outside = Room::new();
    let secret = std::fs::File::options().append(true).open(outside.outside().join("secret.txt")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    for (tier, room) in rooms().await {
        let script = "for fd in /proc/self/fd/*; do echo ${fd##*/}; done; env | grep -c HANDED; true";
        let result = room.bash(script, Access::Read).await;
        // The streams, and the folder that the shell reads.
        assert_eq!(result.stdout.text, "0\n1\n2\n3\n0\n", "{tier:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_ends_a_command_is_named() {
    for (tier, room) in rooms().await {
        for signal in ["SEGV", "KILL", "TERM", "ABRT", "PIPE", "HUP"] {
            let result = room.bash(&format!("kill -{signal} $$; sleep 1000"), Access::Read).await;
            let name = result.signal.map(|s| s.name());
            assert_eq!(name, Some(format!("SIG{signal}")), "{tier:?}: {result:?}");
            assert_eq!(result.exit_code, 128 + result.signal.unwrap().0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_end_what_watches_over_it() {
    for (tier, room) in rooms().await {
        let marker = marker(&room.ws());
        let script = format!(
            "for pid in $PPID 1 2 $(ls /proc | grep '^[0-9]*$'); do [ $pid = $$ ] || kill -KILL $pid; done 2>/dev/null
            setsid -f bash -c 'exec -a \"{marker}\" sleep 1000'; echo still here"
        );
        let result = room.bash(&script, Access::Write).await;
        assert_eq!((result.exit_code, result.stdout.text.as_str()), (0, "still here\n"), "{tier:?}: {result:?}");
        assert_eq!(processes_named(&marker), 0, "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_says_of_no_other_process_when_and_where_it_runs() {
    let bystander = Bystander::start();
    for (tier, room) in rooms().await {
        let others = format!("$PPID {} {}", bystander.pid(), std::process::id());
        let script = format!(
            "for pid in {others}; do taskset -p 1 $pid && echo moved; chrt -i -p 0 $pid && echo idle; done >out 2>&1
            grep -c 'moved\\|idle$' out; taskset 1 echo own; chrt -i 0 echo calm"
        );
        let result = room.bash(&script, Access::Write).await;
        let said: Vec<&str> = result.stdout.text.lines().collect();
        // In a namespace of their own they have other numbers; there only the supervisor is to be found.
        let changed = if tier == Tier::Landlock { "0" } else { said[0] };
        assert_eq!(said, [changed, "own", "calm"], "{tier:?}: {result:?}");
    }
}
