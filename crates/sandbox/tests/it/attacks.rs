//! What a hostile command tries, in each tier that is expected to hold it.
//!
//! Each attack is first tried bare, with the fence off, where it must succeed: an attack that would fail anyway proves
//! nothing.

mod calls;
mod endings;
mod floods;

use std::path::Path;
use std::time::Duration;

use toolhost_contract::workspace::{Access, Command, Tier};
use toolhost_sandbox::FenceChoice;

use crate::room::{Bystander, Room, SECRET, assert_passes_alone, copy, is_root, rooms, runs_alone};

/// Which fences hold an attack.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Held {
    /// By both tiers.
    Both,
    /// By the full tier only; the report of the other names the hole.
    Full,
}

/// Where an attack works without a fence.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bare {
    Works,
    /// Root only.
    WorksForRoot,
    /// It would harm the machine, so it is not tried.
    NotTried,
}

/// A script that ends with 0 exactly if the attack succeeded.
type Attack = (&'static str, Held, Bare);

/// Against the folder `$OUT` beside the workspace, in which everybody may do everything.
const ON_FILES: &[Attack] = &[
    ("echo x > $OUT/made", Held::Both, Bare::Works),
    ("echo x >> $OUT/secret.txt", Held::Both, Bare::Works),
    (": > $OUT/secret.txt", Held::Both, Bare::Works),
    ("truncate -s 1 $OUT/secret.txt", Held::Both, Bare::Works),
    ("rm $OUT/secret.txt", Held::Both, Bare::Works),
    ("mv $OUT/secret.txt $OUT/moved", Held::Both, Bare::Works),
    ("mv $OUT/secret.txt stolen", Held::Both, Bare::Works),
    ("echo x > planted; mv planted $OUT/planted", Held::Both, Bare::Works),
    ("ln $OUT/secret.txt stolen", Held::Both, Bare::Works),
    ("echo x > shared; ln shared $OUT/shared", Held::Both, Bare::Works),
    ("mkdir $OUT/folder", Held::Both, Bare::Works),
    ("ln -s / $OUT/link", Held::Both, Bare::Works),
    ("mkfifo $OUT/fifo", Held::Both, Bare::Works),
    ("cat $OUT/secret.txt", Held::Both, Bare::Works),
    ("ls $OUT | grep secret", Held::Both, Bare::Works),
    ("cat ../outside/secret.txt", Held::Both, Bare::Works),
    ("ln -s $OUT l; cat l/secret.txt", Held::Both, Bare::Works),
    ("ln -s $OUT w; echo x > w/made", Held::Both, Bare::Works),
    ("cat /proc/self/root$OUT/secret.txt", Held::Both, Bare::Works),
    ("echo x > /proc/self/root$OUT/made", Held::Both, Bare::Works),
    ("echo x > /proc/self/cwd/../outside/made", Held::Both, Bare::Works),
    ("cd $OUT && cat secret.txt", Held::Both, Bare::Works),
    ("cat /proc/$PPID/cwd/../outside/secret.txt", Held::Both, Bare::WorksForRoot),
    ("chmod 600 $OUT/secret.txt", Held::Full, Bare::Works),
    ("touch -d @5 $OUT/secret.txt", Held::Full, Bare::Works),
    ("stat $OUT/secret.txt", Held::Full, Bare::Works),
];

/// Against the machine and the process `$PID` of the host's.
const ON_THE_MACHINE: &[Attack] = &[
    ("cat /etc/shadow", Held::Both, Bare::WorksForRoot),
    ("ls /root", Held::Both, Bare::WorksForRoot),
    ("grep -z FAKE_API_KEY /proc/$PID/environ", Held::Both, Bare::Works),
    ("grep -qsz FAKE_API_KEY /proc/[0-9]*/environ", Held::Both, Bare::Works),
    ("ls -l /proc/$PID/fd | grep null", Held::Both, Bare::Works),
    ("readlink /proc/$PID/cwd", Held::Both, Bare::Works),
    ("cat /proc/$PID/maps | grep sleep", Held::Both, Bare::Works),
    ("ls -d /proc/$PID", Held::Full, Bare::Works),
    ("kill -KILL $PID", Held::Both, Bare::Works),
    ("kill -0 $PID", Held::Both, Bare::Works),
    ("./probe kill $PID", Held::Both, Bare::Works),
    ("./probe pidfd-kill $PID", Held::Both, Bare::Works),
    ("./probe ptrace $PID", Held::Both, Bare::WorksForRoot),
    ("./probe vm-readv $PID", Held::Both, Bare::WorksForRoot),
    ("./probe mem $PID", Held::Both, Bare::WorksForRoot),
    ("./probe mknod node", Held::Both, Bare::WorksForRoot),
    ("./probe mknod /dev/node", Held::Both, Bare::NotTried),
    ("mkdir m; ./probe mount m", Held::Both, Bare::NotTried),
    ("./probe remount", Held::Both, Bare::NotTried),
    ("./probe setuid", Held::Both, Bare::WorksForRoot),
    ("p=/proc/sys/kernel/core_pattern; v=$(cat $p) && echo \"$v\" > $p", Held::Both, Bare::WorksForRoot),
    ("p=/proc/sys/vm/swappiness; v=$(cat $p) && echo \"$v\" > $p", Held::Both, Bare::WorksForRoot),
    (": > /proc/sysrq-trigger", Held::Both, Bare::NotTried),
    (
        "head -c 1 /dev/mem || head -c 1 /dev/kmsg || head -c 1 /dev/vda || head -c 1 /dev/sda",
        Held::Both,
        Bare::NotTried,
    ),
    ("touch /usr/bin/planted /usr/local/bin/planted", Held::Both, Bare::NotTried),
    ("echo x > /etc/planted || echo x > /planted || echo x > /opt/planted", Held::Both, Bare::NotTried),
    ("echo x >> /etc/passwd", Held::Both, Bare::NotTried),
    ("touch /sys/kernel/mm/planted || echo 1 > /sys/kernel/mm/ksm/run", Held::Both, Bare::NotTried),
    ("mkdir /sys/fs/cgroup/planted || mkdir /sys/fs/cgroup/unified/planted", Held::Both, Bare::NotTried),
];

fn attack(script: &str, room: &Room, bystander: &Bystander) -> Command {
    let mut command = Command::new(["bash", "-c", script], Duration::from_secs(20));
    let outside = room.outside().to_str().unwrap().to_owned();
    command.env = vec![("OUT".to_owned(), outside), ("PID".to_owned(), bystander.pid().to_string())];
    command
}

async fn check(attacks: &[Attack]) {
    for (script, _, bare) in attacks {
        if *bare == Bare::NotTried || (*bare == Bare::WorksForRoot && !is_root()) {
            continue;
        }
        let (room, bystander) = (Room::fenced(FenceChoice::Off), Bystander::start());
        if script.contains("./probe") {
            room.bring_probe();
        }
        let result = room.run(attack(script, &room, &bystander), Access::Write).await.unwrap();
        assert_eq!(result.exit_code, 0, "`{script}` is no attack: it fails without a fence: {result:?}");
    }
    for (tier, room) in rooms().await {
        room.bring_probe();
        for (script, held, _) in attacks.iter().filter(|(_, held, _)| tier == Tier::Full || *held == Held::Both) {
            let mut bystander = Bystander::start();
            let result = room.run(attack(script, &room, &bystander), Access::Write).await.unwrap();
            assert_ne!(result.exit_code, 0, "`{script}` succeeded in {tier:?} ({held:?}): {result:?}");
            // The script itself must have run, and not for lack of a program either.
            assert!(result.exit_code < 126, "`{script}` did not run in {tier:?}: {result:?}");
            assert!(bystander.is_alive(), "`{script}` ended a process of the host's in {tier:?}");
            room.assert_untouched(&format!("`{script}` in {tier:?}: {result:?}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_reads_or_changes_a_file_outside() {
    check(ON_FILES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_reaches_the_machine_or_its_processes() {
    check(ON_THE_MACHINE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_setuid_bit_gives_nothing() {
    for (tier, room) in rooms().await {
        // `su` and `mount` are setuid root wherever they are installed.
        let elevated = room.bash("grep NoNewPrivs /proc/self/status; su -c id root </dev/null", Access::Write).await;
        assert!(elevated.stdout.text.contains("NoNewPrivs:\t1"), "{tier:?}: {elevated:?}");
        assert!(!elevated.stdout.text.contains("uid=0"), "{tier:?}: {elevated:?}");
        if is_root() {
            // Root's own program with root's setuid bit, put there by the host.
            copy(Path::new("/usr/bin/id"), &room.ws().join("root-id"));
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
            std::fs::set_permissions(room.ws().join("root-id"), mode).unwrap();
            let planted = room.bash("./root-id -u", Access::Write).await;
            assert!(planted.exit_code == 0 && planted.stdout.text != "0\n", "{tier:?}: {planted:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_variable_of_the_hosts_reaches_a_command() {
    const THIS: &str = "attacks::no_variable_of_the_hosts_reaches_a_command";
    const VARIABLE: &str = "FAKE_API_KEY";
    if !runs_alone(THIS) {
        return assert_passes_alone(THIS, (VARIABLE, SECRET));
    }
    assert!(std::env::var_os(VARIABLE).is_some_and(|value| value == SECRET));
    let known = "CARGO_NET_OFFLINE CI GIT_CONFIG_NOSYSTEM HOME LANG NO_COLOR OLDPWD PAGER PATH PWD SHELL SHLVL TERM TMPDIR USER _";
    let known: Vec<_> = known.split(' ').collect();
    for (tier, room) in rooms().await {
        let names = room.bash("compgen -e", Access::Write).await;
        let unknown: Vec<_> = names.stdout.text.lines().filter(|name| !known.contains(name)).collect();
        assert!(unknown.is_empty() && names.stdout.text.contains("PATH\n"), "{tier:?}: {unknown:?}");
        let script = "cat /proc/[0-9]*/environ /proc/self/task/*/environ | tr '\\0' '\\n' | grep -a FAKE; env";
        room.assert_untouched(&format!("{:?}", room.bash(script, Access::Write).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_the_workspace_is_nobody_elses() {
    for (tier, room) in rooms().await {
        // Everything the fence itself might look up by name, planted where a careless `PATH` would find it.
        let plant = "for name in bwrap bash sh env toolhost toolhost-sandbox-exec; do
            printf '#!/bin/sh\\necho planted >> %s/ran\\n' \"$PWD\" > $name; chmod +x $name; done";
        assert_eq!(room.bash(plant, Access::Write).await.exit_code, 0);
        let result = room.bash("command -v bash", Access::Write).await;
        assert!(result.stdout.text.ends_with("/bin/bash\n"), "{tier:?}: {result:?}");
        assert!(!result.stdout.text.starts_with('.'), "{tier:?}: {result:?}");
        assert!(!room.ws().join("ran").exists(), "{tier:?}");
    }
}
