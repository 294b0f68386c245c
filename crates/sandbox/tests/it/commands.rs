//! Commands in every tier this machine has: what they may do, and what the kernel refuses them.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Executor, Tier, WriteGuard};
use toolhost_sandbox::FenceChoice;

use crate::room::{AGENT_UID, Bystander, Room, copy, crowd, is_root, path, processes_named, rooms};

#[tokio::test(flavor = "multi_thread")]
async fn a_developer_writes_the_workspace_and_a_researcher_cannot() {
    for (_, room) in rooms().await {
        let wrote = room.bash("echo hello > made.txt && mkdir -p a/b && cat made.txt", Access::Write).await;
        assert_eq!((wrote.exit_code, wrote.stdout.text.as_str()), (0, "hello\n"), "{wrote:?}");
        assert_eq!(std::fs::read_to_string(room.ws().join("made.txt")).unwrap(), "hello\n");
        for script in ["touch x", "echo y >> made.txt", "rm made.txt", "mkdir d", "mv made.txt z", "ln -s /etc l"] {
            let refused = room.bash(script, Access::Read).await;
            assert_ne!(refused.exit_code, 0, "{script}: {refused:?}");
            let said = refused.stderr.text.to_lowercase();
            assert!(said.contains("read-only") || said.contains("permission denied"), "{script}: {said}");
        }
        assert_eq!(std::fs::read_to_string(room.ws().join("made.txt")).unwrap(), "hello\n");
        assert!(!room.ws().join("x").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_redirections_and_failures_are_ordinary_results() {
    for (_, room) in rooms().await {
        let piped = room.bash("ls -la | wc -l; echo oops >&2; exit 3", Access::Read).await;
        assert_eq!(piped.exit_code, 3);
        assert_eq!(piped.stderr.text, "oops\n");
        assert!(!piped.timed_out);
        let missing = room.bash("no-such-program", Access::Read).await;
        assert_eq!(missing.exit_code, 127);
        let killed = room.bash("kill -SEGV $$", Access::Read).await;
        assert_eq!(killed.signal.map(|s| s.name()).as_deref(), Some("SIGSEGV"), "{killed:?}");
    }
}

/// What nothing counts is not to be had: files in `/dev`, and rules of Landlock, which are memory of the kernel's.
#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_memory_that_nothing_counts() {
    for (tier, room) in rooms().await {
        let script = "echo x >/dev/new && echo made; echo x >/dev/null && echo x >/dev/shm/x 2>/dev/null; \
                      echo y";
        let result = room.bash(script, Access::Read).await;
        assert_eq!(result.stdout.text, "y\n", "{tier:?}: {result:?}");
        let script = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n\
                      for call in (444, 445): print(libc.syscall(call, 0, 0, 0), ctypes.get_errno())";
        let result = room.bash(&format!("python3 -c '{script}'"), Access::Read).await;
        assert_eq!(result.stdout.text, "-1 38\n-1 38\n", "{tier:?}: no such call: {result:?}");
    }
}

/// Another command's processes do not make the next host do with root, or with a lower tier.
#[tokio::test(flavor = "multi_thread")]
async fn commands_that_use_up_the_processes_weaken_no_fence() {
    const PROCESSES: u64 = 60;
    // Elsewhere the kernel counts nothing that another command could use up.
    if !is_root() {
        return;
    }
    let _turn = crowd();
    let _others: Vec<Bystander> = (0..=PROCESSES).map(|_| Bystander::start()).collect();
    for (choice, tier) in [(FenceChoice::Auto, Tier::Full), (FenceChoice::Landlock, Tier::Landlock)] {
        let room = Room::with(choice, |_| {}, |config| config.limits.processes = PROCESSES);
        let ran = room.bash("exec id -u", Access::Read).await;
        assert_eq!((ran.stdout.text, ran.tier), (format!("{AGENT_UID}\n"), tier), "{choice:?}");
    }
}

/// Where too little is left to try a fence, nothing runs in a weaker one, and a later call tries again.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_too_busy_for_a_fence_gets_none_until_it_is_not() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The helper has too few processes, in the kernel's words, while that file is there.
    let (busy, source, helper) =
        (folder.path().join("busy"), folder.path().join("source"), folder.path().join("helper"));
    let script = format!(
        "#!/bin/sh\n[ ! -e '{}' ] || {{ echo 'fork: Resource temporarily unavailable' >&2; exit 1; }}\nexec '{}' \"$@\"\n",
        busy.display(),
        crate::room::helper().display()
    );
    std::fs::write(&source, script).unwrap();
    copy(&source, &helper);
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let id = async |room: &Room| room.try_bash("id -u", Access::Read, Duration::from_secs(20)).await;
    for choice in [FenceChoice::Auto, FenceChoice::Landlock] {
        std::fs::write(&busy, "").unwrap();
        let room = Room::with(choice, |_| {}, |config| config.helper.clone_from(&helper));
        let refused = id(&room).await;
        assert!(matches!(refused, Err(Error::FenceBusy)), "{choice:?}: {refused:?}");
        let report = room.executor.report().await;
        assert_eq!((report.tier, report.why[0].contains("too busy")), (None, true), "{choice:?}: {report:?}");
        let written = room.executor.write(&path("new.txt"), b"text".to_vec(), WriteGuard::default()).await;
        assert!(matches!(written, Err(Error::FenceBusy)), "{choice:?}: it is not known what git obeys: {written:?}");
        std::fs::remove_file(&busy).unwrap();
        let mut ran = id(&room).await;
        while matches!(ran, Err(Error::FenceBusy)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            ran = id(&room).await;
        }
        let ran = ran.unwrap();
        assert_eq!(ran.exit_code, 0, "{choice:?}: {ran:?}");
        assert_ne!(ran.stdout.text, "0\n", "{choice:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_never_root() {
    for (_, room) in rooms().await {
        let who = room.bash("id -u; grep CapEff /proc/self/status; touch mine; stat -c %u mine", Access::Write).await;
        assert!(who.stdout.text.contains("CapEff:\t0000000000000000"), "{who:?}");
        assert_ne!(who.stdout.text.lines().next(), Some("0"), "{who:?}");
        // On disk the file belongs to whoever owns the workspace, so the person can work with it.
        use std::os::unix::fs::MetadataExt;
        let owner = |path: &std::path::Path| std::fs::metadata(path).unwrap().uid();
        assert_eq!(owner(&room.ws().join("mine")), owner(&room.ws()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_the_whole_tree_even_daemons() {
    for (_, room) in rooms().await {
        let marker = format!("toolhost-test-{}-{}", std::process::id(), room.ws().display());
        let script = format!(
            "setsid bash -c 'exec -a \"{marker}\" sleep 1000' & setsid -f bash -c 'exec -a \"{marker}\" sleep 1000'; sleep 1000"
        );
        let ended = room.try_bash(&script, Access::Read, Duration::from_millis(700)).await.unwrap();
        assert!(ended.timed_out, "{ended:?}");
        assert_eq!(processes_named(&marker), 0, "{:?}", ended.tier);
        let left = format!("setsid -f bash -c 'exec -a \"{marker}\" sleep 1000'; echo done");
        let ended = room.bash(&left, Access::Read).await;
        assert_eq!(ended.stdout.text, "done\n");
        assert_eq!(processes_named(&marker), 0, "{:?}", ended.tier);
    }
}

/// Rules: 002.14.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_a_terminal_is_ended_long_before_the_deadline() {
    for (_, room) in rooms().await {
        room.bring_probe();
        let opened = room.bash("true < /dev/tty", Access::Read).await;
        assert_ne!(opened.exit_code, 0, "{opened:?}");
        for script in ["./probe wait-for-terminal; echo $?", "./probe wait-for-terminal 60000; echo $?"] {
            let waited = room.bash(script, Access::Read).await;
            assert_eq!((waited.stdout.text.as_str(), waited.timed_out), ("137\n", false), "{waited:?}");
            assert_eq!(waited.waited_for_terminal, ["probe"], "{waited:?}");
        }
        // Who waits with an end, or for something else, goes on.
        for script in ["./probe wait-for-terminal 500", "bash -c 'sleep 0.5; echo ok' <&2", "sleep 0.5 <&2; echo ok"] {
            let ended = room.bash(script, Access::Read).await;
            assert_eq!((ended.stdout.text.as_str(), ended.waited_for_terminal.len()), ("ok\n", 0), "{ended:?}");
        }
    }
}

/// The kernel gives a new folder the set-group-id bit of the folder around it.
#[tokio::test(flavor = "multi_thread")]
async fn folders_made_in_a_set_group_id_folder_do_not_inherit_the_bit() {
    for (_, room) in rooms().await {
        let mode = |name: &str| std::fs::metadata(room.ws().join(name)).unwrap().permissions().mode() & 0o7777;
        std::fs::set_permissions(room.ws(), PermissionsExt::from_mode(0o2755)).unwrap();
        std::fs::create_dir(room.ws().join("by-the-kernel")).unwrap();
        assert_eq!(mode("by-the-kernel") & 0o6000, 0o2000, "the trap itself is broken");
        room.executor.write(&path("new/deep/file"), b"x".to_vec(), WriteGuard::default()).await.unwrap();
        room.executor.rename(&path("new/deep/file"), &path("other/deeper/file")).await.unwrap();
        for made in ["new", "new/deep", "other", "other/deeper"] {
            assert_eq!(mode(made) & 0o6000, 0, "{made}: {:o}", mode(made));
            assert_eq!(mode(made) & 0o700, 0o700, "{made}: {:o}", mode(made));
        }
        // What holds a name for a command goes with the command, whatever bits it inherited.
        assert_eq!(room.bash("mkdir by-a-command", Access::Write).await.exit_code, 0);
        for held in [".git", "HEAD"] {
            assert!(!room.ws().join(held).exists(), "{held}");
        }
        // Not prevented: neither a seccomp filter nor systemd's RestrictSUIDSGID sees it.
        assert_eq!(mode("by-a-command") & 0o6000, 0o2000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_command_leaves_those_alone_that_only_read_and_gits_own() {
    for (tier, room) in rooms().await {
        let wait = "until [ -e ended ]; do sleep 0.01; done; echo done";
        let begin_and_wait = format!("touch began; {wait}");
        let mut command = Command::new(["bash", "-c", &begin_and_wait], Duration::from_secs(60));
        command.is_git = true;
        let others = async {
            while !room.ws().join("began").exists() {
                room.bash("touch other", Access::Write).await;
            }
            // Each is the last of its kind when it ends.
            for _ in 0..10 {
                room.bash("touch other", Access::Write).await;
            }
            std::fs::write(room.ws().join("ended"), "").unwrap();
        };
        let (read, by_git, ()) = tokio::join!(room.bash(wait, Access::Read), room.run(command, Access::Write), others);
        let said = [read.stdout.text, by_git.unwrap().stdout.text];
        assert_eq!(said, ["done\n", "done\n"], "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_closes_the_workspace_stops_no_later_one() {
    for (tier, room) in rooms().await {
        // Its owner may close a folder, and so may a command that is its owner.
        let closed = room.try_bash("chmod 0 .", Access::Write, Duration::from_secs(20)).await.unwrap();
        let after = room.bash("echo ok", Access::Write).await;
        assert_eq!(after.stdout.text, "ok\n", "{tier:?}: {closed:?}");
        let mode = std::fs::metadata(room.ws()).unwrap().permissions().mode();
        assert_eq!(mode & 0o700, 0o700, "{tier:?}: {closed:?}");
    }
}
