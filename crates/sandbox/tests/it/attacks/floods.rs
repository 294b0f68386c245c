//! Commands that take or give more than anyone wants.

use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Error, Tier};
use toolhost_sandbox::FenceChoice;

use crate::room::{Room, assert_passes_alone, crowd, is_root, processes_about, rooms, runs_alone, until};

/// Peak memory of this process in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_output_costs_kilobytes() {
    const THIS: &str = "attacks::floods::a_flood_of_output_costs_kilobytes";
    const GROWTH_KIB_MAX: u64 = 16 * 1024;
    if !runs_alone(THIS) {
        // Other tests' memory would be counted too.
        return assert_passes_alone(THIS, ("ALONE", "1"));
    }
    for (tier, room) in rooms().await {
        let floods = [
            ("yes | head -c 1G", 1u64 << 30),
            // One line without an end.
            ("head -c 1G /dev/zero | tr '\\0' x", 1 << 30),
            ("yes | head -c 200M >&2; yes | head -c 200M", 200 << 20),
        ];
        for (script, bytes) in floods {
            let before = peak_kib();
            let result = room.try_bash(script, Access::Read, Duration::from_secs(120)).await.unwrap();
            assert_eq!((result.exit_code, result.stdout.bytes), (0, bytes), "{tier:?}: {script}");
            assert!(result.stdout.truncated && result.stdout.text.len() < 100 * 1024);
            // The kernel counts by thread and adds up later: a peak may look lower a moment after.
            let grown = peak_kib().saturating_sub(before);
            assert!(grown <= GROWTH_KIB_MAX, "{tier:?}: {script}: {grown} KiB");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_writes_without_end_is_ended() {
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.output_bytes = 10 << 20);
        let result = room.try_bash("yes", Access::Read, Duration::from_secs(300)).await.unwrap();
        assert!(result.output_limit_reached && !result.timed_out, "{result:?}");
        assert!(result.stdout.truncated && result.stdout.bytes > 10 << 20);
        assert!(result.stdout.text.starts_with("y\ny\n") && result.stdout.text.ends_with("y\ny\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_neither_escapes_nor_stays() {
    let _turn = crowd();
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.processes = 200);
        let marker = format!("toolhost-bomb-{}", room.ws().display());
        let many = format!("while :; do (exec -a '{marker}' sleep 1000) & done 2>/dev/null");
        // Each killed process makes room for a new one. All have the command line of the first.
        let doubling = format!(": '{marker}'; both() {{ both | both & }}; both 2>/dev/null; sleep 1000");
        for script in [many, doubling] {
            let result = room.try_bash(&script, Access::Read, Duration::from_secs(2)).await.unwrap();
            assert!(result.timed_out || result.exit_code != 0, "{result:?}");
            assert_eq!(processes_about(&marker), 0, "{:?}", result.tier);
            assert_eq!(room.bash("true", Access::Read).await.exit_code, 0, "the next command");
        }
        // Whoever reads is there before the last process is.
        let count = "for n in $(seq 400); do sleep 1000 & done 2> >(exec grep -m1 -i resource)";
        let refused = room.try_bash(count, Access::Read, Duration::from_secs(20)).await.unwrap();
        assert!(refused.stdout.text.contains("esource temporarily unavailable"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_handles_have_limits() {
    for (tier, room) in rooms().await {
        let file = room.bash("truncate -s 1T huge", Access::Write).await;
        assert_eq!(file.signal.map(|s| s.name()).as_deref(), Some("SIGXFSZ"), "{tier:?}: {file:?}");
        let limits = room.bash("ulimit -n; ulimit -c; ulimit -Hn", Access::Write).await;
        assert_eq!(limits.stdout.text, "1024\n0\n1024\n", "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_too_long_for_the_kernel_is_said_to_be() {
    for (tier, room) in rooms().await {
        for argv in [vec!["echo".to_owned(), "x".repeat(200 << 10)], vec!["x".repeat(30 << 10); 200]] {
            let command = Command::new(argv, Duration::from_secs(20));
            let refused = room.run(command, Access::Read).await.unwrap_err();
            assert!(matches!(refused, Error::Limit { .. }), "{tier:?}: {refused:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_command_can_be_is_an_error_and_no_panic() {
    for (tier, room) in rooms().await {
        for argv in [vec!["echo", "a\0b"], vec!["a\0b"], vec![]] {
            let refused = room.run(Command::new(argv.clone(), Duration::from_secs(20)), Access::Read).await;
            assert!(refused.is_err(), "{tier:?}: {argv:?}: {refused:?}");
        }
        let mut command = Command::new(["true"], Duration::from_secs(20));
        command.env = vec![("NAME".to_owned(), "a\0b".to_owned())];
        assert!(room.run(command, Access::Read).await.is_err(), "{tier:?}");
        let empty = room.run(Command::new([""], Duration::from_secs(20)), Access::Read).await.unwrap();
        assert_ne!(empty.exit_code, 0, "{tier:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_empty_and_no_terminal() {
    for (tier, room) in rooms().await {
        let result =
            room.bash("cat; read -r line || echo end; [ -t 0 ] || echo no terminal; echo x > /dev/tty", Access::Read);
        let result = result.await;
        assert_eq!(result.stdout.text, "end\nno terminal\n", "{tier:?}: {result:?}");
        assert_ne!(result.exit_code, 0, "there is no terminal to write to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_folders_are_gone_with_the_command() {
    for (tier, room) in rooms().await {
        let left = room.bash("echo mine > $TMPDIR/left; echo mine > ~/left; echo $TMPDIR $HOME", Access::Read).await;
        assert_eq!(left.exit_code, 0, "{tier:?}: {left:?}");
        let look = room.bash("ls -A $TMPDIR ~", Access::Read).await;
        assert!(!look.stdout.text.contains("left"), "{tier:?}: {look:?}");
        if tier == Tier::Landlock {
            let folder = left.stdout.text.split(' ').next().unwrap();
            assert!(!std::path::Path::new(folder).exists(), "{folder}");
        }
    }
}

/// Takes memory as fast as it can be had, writing to each page.
const HOG: &str = "import sys\nparts = []\nfor _ in range(int(sys.argv[1])):\n    parts.append(bytearray(b'x') * (1 << 20))\nprint('had it all', flush=True)\nimport time; time.sleep(100)";

#[tokio::test(flavor = "multi_thread")]
async fn one_process_does_not_take_the_machines_memory() {
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 4 << 30);
        let script = format!("python3 -c \"{HOG}\" 20480");
        let result = room.try_bash(&script, Access::Read, Duration::from_secs(300)).await.unwrap();
        let refused = result.stderr.text.contains("MemoryError");
        assert!(refused || result.memory_limit_reached.is_some(), "{choice:?}: {result:?}");
        assert!(!result.stdout.text.contains("had it all"), "{choice:?}: {result:?}");
    }
}

/// `/proc` shows the memory of such a process only under the number of a thread that still runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_processes_whose_first_thread_has_ended_is_counted() {
    let hog = "import ctypes, platform, threading, time
def hold():
    part = bytearray(b'x') * (150 << 20)
    time.sleep(1000)
threading.Thread(target=hold).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 300 << 20);
        let script = format!("for n in 1 2 3 4; do python3 -c \"{hog}\" & done; wait; sleep 100");
        let result = room.try_bash(&script, Access::Read, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.memory_limit_reached, Some(300 << 20), "{choice:?}: {result:?}");
    }
}

/// Where the kernel has to choose, it ends a command before the host and what else runs on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_ends_commands_first_when_memory_is_short() {
    for (tier, room) in rooms().await {
        let result = room.bash("cat /proc/self/oom_score_adj; sh -c 'cat /proc/$$/oom_score_adj'", Access::Read).await;
        assert_eq!(result.stdout.text, "1000\n1000\n", "{tier:?}: {result:?}");
    }
}

#[test]
fn where_nobody_says_another_limit_it_is_half_of_the_machine() {
    let half = toolhost_sandbox::machine_memory_bytes() / 2;
    assert_eq!(toolhost_sandbox::Limits::default().memory_bytes, half);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_together_do_not_take_the_machines_memory_either() {
    let _turn = crowd();
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 4 << 30);
        let script = format!("for n in $(seq 200); do python3 -c \"{HOG}\" 200 & done; wait");
        let result = room.try_bash(&script, Access::Read, Duration::from_secs(300)).await.unwrap();
        assert_eq!(result.memory_limit_reached, Some(4 << 30), "{choice:?}: {result:?}");
        assert!(result.duration < Duration::from_secs(100), "{choice:?}: it slept to its end: {result:?}");
        until("none of them is left", || processes_about("had it all") == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_processes_share_is_counted_once() {
    let _turn = crowd();
    // 300 MiB that forty forks only look at are far from 4 GiB.
    let script = "import os, time\nshared = bytearray(b'x') * (300 << 20)\nfor _ in range(40):\n    if os.fork() == 0:\n        time.sleep(2); os._exit(0)\nfor _ in range(40): os.wait()\nprint('fine')";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 4 << 30);
        let result = room.bash(&format!("python3 -c \"{script}\""), Access::Read).await;
        assert_eq!(result.stdout.text, "fine\n", "{choice:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_name_count_as_memory_though_nothing_maps_them() {
    // The file stays when the process that made it has ended: another one has it open.
    let script = "import os, sys, time\nparts = [os.memfd_create(str(n)) for n in range(4)]\nfor part in parts:\n    for _ in range(100): os.write(part, b'x' * (1 << 20))\nif os.fork() == 0: time.sleep(1000)";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 256 << 20);
        let script = format!("python3 -c \"{script}\"; wait; sleep 1000");
        let result = room.try_bash(&script, Access::Read, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.memory_limit_reached, Some(256 << 20), "{choice:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_pipes_counts_as_memory() {
    let _turn = crowd();
    let script = "import os, time\nfor _ in range(150):\n    if os.fork() == 0:\n        try:\n            while True: os.write(os.pipe()[1], b'x' * 4096)\n        except OSError: time.sleep(1000)\ntime.sleep(1000)";
    // A known gap: where the host is an ordinary user, the Landlock tier has been seen not to end it.
    let choices = if is_root() { &[FenceChoice::Full, FenceChoice::Landlock][..] } else { &[FenceChoice::Full] };
    for choice in choices.iter().copied() {
        let limits = |config: &mut toolhost_sandbox::LocalConfig| {
            (config.limits.memory_bytes, config.limits.open_files) = (512 << 20, 1024);
        };
        let room = Room::with(choice, |_| {}, limits);
        let result =
            room.try_bash(&format!("python3 -c \"{script}\""), Access::Read, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.memory_limit_reached, Some(512 << 20), "{choice:?}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn private_folders_in_memory_count_together_with_the_rest() {
    // None of the three is above the limit by itself.
    let script = "for folder in /tmp ~ /dev/shm; do head -c 100M /dev/zero > $folder/x; done; sleep 1000";
    let room = Room::with(FenceChoice::Full, |_| {}, |config| config.limits.memory_bytes = 256 << 20);
    let result = room.try_bash(script, Access::Read, Duration::from_secs(60)).await.unwrap();
    assert_eq!(result.memory_limit_reached, Some(256 << 20), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_a_name_that_is_mapped_is_counted_once() {
    let script = "import mmap, os, time\nfile = os.memfd_create('x')\nos.ftruncate(file, 300 << 20)\nmapped = mmap.mmap(file, 300 << 20)\nfor _ in range(300): mapped.write(b'x' * (1 << 20))\nfor _ in range(3):\n    if os.fork() == 0:\n        [mapped[n] for n in range(0, 300 << 20, 4096)]; time.sleep(2); os._exit(0)\nfor _ in range(3): os.wait()\nprint('fine')";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 512 << 20);
        let result = room.bash(&format!("python3 -c \"{script}\""), Access::Read).await;
        assert_eq!(result.stdout.text, "fine\n", "{choice:?}: {result:?}");
    }
}

/// No process shows it once it was taken out of all tables, and it stays.
#[tokio::test(flavor = "multi_thread")]
async fn shared_memory_without_a_name_counts_though_nobody_has_it_in_his_tables() {
    let hog = "import mmap, time\nshared = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 1 << 20):\n    shared[at:at + (1 << 20)] = b'x' * (1 << 20)\n    shared.madvise(mmap.MADV_DONTNEED, at, 1 << 20)\ntime.sleep(1000)";
    // What is not touched is not there.
    let sparse = "import mmap, time\nshared = mmap.mmap(-1, 8 << 30)\nshared[0:10 << 20] = b'x' * (10 << 20)\ntime.sleep(2)\nprint('fine')";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 256 << 20);
        let script = format!("python3 -c \"{hog}\"");
        let result = room.try_bash(&script, Access::Read, Duration::from_secs(60)).await.unwrap();
        assert_eq!(result.memory_limit_reached, Some(256 << 20), "{choice:?}: {result:?}");
        let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 2 << 30);
        let result = room.bash(&format!("python3 -c \"{sparse}\""), Access::Read).await;
        assert_eq!(result.stdout.text, "fine\n", "{choice:?}: {result:?}");
    }
}

/// What the kernel keeps for a command is the command's, though no process shows it among its memory.
#[tokio::test(flavor = "multi_thread")]
async fn page_tables_and_mappings_count_as_memory() {
    let _turn = crowd();
    // Pages that hold nothing, far apart: 4 KiB of tables for each 2 MiB of addresses.
    let tables = "import mmap, time\nfar = mmap.mmap(-1, 512 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)\nfar.madvise(15)\nfor at in range(0, 512 << 30, 2 << 20): far[at]\ntime.sleep(1000)";
    // Mappings of one page each, none of which is touched.
    let mappings = "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nfor _ in range(40):\n    if os.fork() == 0:\n        at = libc.mmap(None, ctypes.c_size_t(64000 * 8192), 0, 0x22, -1, ctypes.c_long(0))\n        for n in range(0, 32000): libc.mprotect(ctypes.c_void_p(at + n * 8192), 4096, 1)\n        time.sleep(1000)\ntime.sleep(1000)";
    for choice in [FenceChoice::Full, FenceChoice::Landlock] {
        for script in [tables, mappings] {
            let room = Room::with(choice, |_| {}, |config| config.limits.memory_bytes = 256 << 20);
            let script = format!("python3 -c \"{script}\"");
            let result = room.try_bash(&script, Access::Read, Duration::from_secs(60)).await.unwrap();
            assert_eq!(result.memory_limit_reached, Some(256 << 20), "{choice:?}: {script}: {result:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_private_folders_count_as_memory() {
    let script = "import os, time\nfor folder in ['/tmp', os.environ['HOME'], '/dev/shm']:\n    for n in range(150000): os.symlink('x' * 100, f'{folder}/{n}')\ntime.sleep(1000)";
    let room = Room::with(FenceChoice::Full, |_| {}, |config| config.limits.memory_bytes = 256 << 20);
    let script = format!("python3 -c \"{script}\"");
    let result = room.try_bash(&script, Access::Read, Duration::from_secs(60)).await.unwrap();
    assert_eq!(result.memory_limit_reached, Some(256 << 20), "{result:?}");
}
