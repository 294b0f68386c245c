//! Cgroups as far as a machine whose memory belongs to version 1 has them; `cargo xtask soak cgroup` has the rest.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use toolhost_contract::workspace::{Access, Executor, Tier};
use toolhost_sandbox::FenceChoice;

use crate::room::{AGENT_UID, Room, is_root};

/// A cgroup of a test's own, which belongs to whom commands become; removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// `None` where this user may make none, or there is no such file system.
    fn new(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|mount| mount.contains(" - cgroup2 "))?;
        let folder = Path::new(mount.split(' ').nth(4)?).join(format!("it-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).ok().filter(|()| is_root())?;
        for part in ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"] {
            chown(folder.join(part), Some(AGENT_UID), Some(AGENT_UID)).unwrap();
        }
        Some(Self(folder))
    }

    fn has_memory(&self) -> bool {
        std::fs::read_to_string(self.0.join("cgroup.controllers"))
            .unwrap()
            .split_whitespace()
            .any(|word| word == "memory")
    }

    fn parts(&self) -> usize {
        std::fs::read_dir(&self.0).unwrap().flatten().filter(|entry| entry.path().is_dir()).count()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Whoever was moved into it by a test that fails.
        let _ = std::fs::write(self.0.join("cgroup.kill"), "1");
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cgroup_without_the_controller_is_left_alone_and_the_report_says_why() {
    let Some(cgroup) = Cgroup::new("lacking") else { return };
    if cgroup.has_memory() {
        return;
    }
    for named in [cgroup.0.clone(), PathBuf::from("/var/tmp")] {
        let room = Room::with(FenceChoice::Auto, |_| {}, |config| config.command_cgroup = Some(named.clone()));
        let result = room.bash("echo fine", Access::Read).await;
        assert_eq!(result.stdout.text, "fine\n", "{result:?}");
        let memory = room.executor.report().await.memory;
        assert_eq!(memory.cgroup, None);
        let why = memory.why.unwrap();
        assert!(why.contains(named.to_str().unwrap()), "{why}");
    }
    assert_eq!(cgroup.parts(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_change_cgroups_that_its_own_user_may_change() {
    let Some(cgroup) = Cgroup::new("leaving") else { return };
    let folder = cgroup.0.display();
    // To be sure that only the fence is in the way, it is tried without one, too; there commands are the host's user.
    for (choice, expected) in
        [(FenceChoice::Full, ""), (FenceChoice::Landlock, ""), (FenceChoice::Off, "entered\nmade\n")]
    {
        let room = Room::with(choice, |_| {}, |_| {});
        let script = format!(
            "(echo $BASHPID > {folder}/cgroup.procs) 2>/dev/null && echo entered; mkdir {folder}/mine 2>/dev/null && echo made; rmdir {folder}/mine; true"
        );
        let result = room.bash(&script, Access::Write).await;
        assert_eq!(result.stdout.text, expected, "{choice:?}: {result:?}");
        assert_eq!(result.tier == Tier::Off, choice == FenceChoice::Off);
    }
}
