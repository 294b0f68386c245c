//! On the machine's own cgroups, as far as nothing but the tree of them is needed: `cargo xtask soak cgroup` has the memory.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test says by panicking what does not hold")]

use std::process::{Child, Command, Stdio};

use tokio::io::AsyncReadExt;

use super::*;
use crate::fence::Plan;
use crate::spawner::Spawner;

/// A cgroup of a test's own, removed with all below it when dropped.
struct Base(PathBuf);

impl Base {
    /// `None` where this user may make no cgroups: then there is nothing to test.
    fn new(name: &str) -> Option<Self> {
        let mounts = read_to_string("/proc/self/mountinfo").unwrap();
        let top = mounts.lines().find_map(|mount| folder_below(mount, "/"))?;
        let base = top.join(format!("test-{name}-{}", std::process::id()));
        match create_dir(&base) {
            Ok(()) => Some(Self(base.canonicalize().unwrap())),
            Err(error) => {
                eprintln!("not tested: no cgroup can be made here: {error}");
                None
            }
        }
    }

    fn delegate(&self) {
        rustix::fs::setxattr(&self.0, DELEGATED[0], b"1", rustix::fs::XattrFlags::empty()).unwrap();
    }

    fn hosts(&self) -> Vec<String> {
        folders(&self.0).into_iter().map(|(name, _)| name).collect()
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        for (_, host) in folders(&self.0) {
            for (_, part) in folders(&host) {
                end(&part);
                let _ = remove_dir(part);
            }
            end(&host);
            let _ = remove_dir(host);
        }
        end(&self.0);
        remove_dir(&self.0).unwrap();
    }
}

fn sleeper_in(cgroup: &Path) -> Child {
    let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    write(&cgroup.join("cgroup.procs"), &child.id().to_string()).unwrap();
    child
}

fn members(cgroup: &Path) -> Vec<String> {
    words(&cgroup.join("cgroup.procs"))
}

/// Where the memory controller belongs to version 1, everything else can be tried without it.
fn begin(base: &Base) -> Result<Arc<Cgroups>, String> {
    Cgroups::begin(&base.0, None, &[]).map(Arc::new)
}

#[test]
fn a_mount_line_says_where_a_cgroup_is() {
    let Some(base) = Base::new("mount") else { return };
    let (top, name) = (base.0.parent().unwrap().display(), base.0.file_name().unwrap().to_str().unwrap());
    let line = |root: &str, kind: &str| format!("30 25 0:26 {root} {top} rw,nosuid shared:4 - {kind} cgroup2 rw");
    let own = format!("/{name}");
    assert_eq!(folder_below(&line("/", "cgroup2"), &own).as_ref(), Some(&base.0));
    // A container's mount shows a part of the tree.
    assert_eq!(folder_below(&line("/of/container", "cgroup2"), &format!("/of/container{own}")).as_ref(), Some(&base.0));
    assert_eq!(folder_below(&line("/of/container", "cgroup2"), &own), None);
    assert_eq!(folder_below(&line("/", "cgroup"), &own), None);
    assert_eq!(folder_below(&line("/", "cgroup2"), &format!("/../..{own}")), None);
    assert_eq!(folder_below(&line("/", "cgroup2"), "/removed (deleted)"), None);
    assert_eq!(folder_below("", &own), None);
}

#[test]
fn only_what_is_marked_is_delegated() {
    let Some(base) = Base::new("marked") else { return };
    assert_eq!(delegated_to(&base.0), None);
    rustix::fs::setxattr(&base.0, DELEGATED[0], b"0", rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(delegated_to(&base.0), None);
    base.delegate();
    assert_eq!(delegated_to(&base.0).as_ref(), Some(&base.0));
    // Below it only a host's own place is.
    let cgroups = begin(&base).unwrap();
    let (host, other) = (cgroups.folder.join(HOST), base.0.join("other"));
    create_dir(&host).unwrap();
    create_dir(&other).unwrap();
    assert_eq!(delegated_to(&host).as_ref(), Some(&base.0));
    assert_eq!(delegated_to(&cgroups.folder), None);
    assert_eq!(delegated_to(&other), None);
    remove_dir(other).unwrap();
}

#[test]
fn a_named_folder_must_be_a_cgroup_with_the_controller() {
    let refused = |path: &Path| Cgroups::open(Some(path)).map(|_| ()).unwrap_err().why();
    assert!(refused(Path::new("/tmp")).contains("not a folder of a cgroup2"), "{}", refused(Path::new("/tmp")));
    assert!(refused(Path::new("/nowhere")).contains("/nowhere"));
    let Some(base) = Base::new("named") else { return };
    if !words(&base.0.join("cgroup.controllers")).iter().any(|word| word == MEMORY) {
        assert!(refused(&base.0).contains("the controller `memory` is not available"), "{}", refused(&base.0));
    }
    let lacking = Cgroups::begin(&base.0, None, &["no-such"]).map(|_| ()).unwrap_err();
    assert!(lacking.contains("the controller `no-such` is not available"), "{lacking}");
    assert_eq!(base.hosts(), [""; 0], "nothing was made in it");
}

#[test]
fn each_command_has_a_folder_that_is_emptied_and_removed_with_it() {
    let Some(base) = Base::new("command") else { return };
    let cgroups = begin(&base).unwrap();
    let (one, two) = (cgroups.command(&Limits::default()).unwrap(), cgroups.command(&Limits::default()).unwrap());
    let mut child = sleeper_in(&one.folder);
    let mut other = sleeper_in(&two.folder);
    assert_eq!(members(&one.folder), [child.id().to_string()]);
    assert!(!one.ran_out_of_memory());
    one.end();
    assert_eq!(members(&one.folder), [""; 0]);
    let (folder, others) = (one.folder.clone(), two.folder.clone());
    drop(one);
    assert!(!folder.exists());
    assert!(!child.wait().unwrap().success());
    // One that nobody waits for stays until it is empty, and goes with the next.
    assert!(other.try_wait().unwrap().is_none(), "another command was killed");
    drop(two);
    assert!(others.exists());
    other.kill().unwrap();
    other.wait().unwrap();
    drop(cgroups.command(&Limits::default()).unwrap());
    assert!(!others.exists());
    drop(cgroups);
    assert_eq!(base.hosts(), [""; 0]);
}

#[test]
fn two_hosts_have_folders_of_their_own_and_leave_each_other_alone() {
    let Some(base) = Base::new("two") else { return };
    let first = begin(&base).unwrap();
    let command = first.command(&Limits::default()).unwrap();
    let mut child = sleeper_in(&command.folder);
    let second = begin(&base).unwrap();
    assert_ne!(first.folder, second.folder);
    assert!(child.try_wait().unwrap().is_none(), "a living host's command was killed");
    assert_eq!(members(&command.folder), [child.id().to_string()]);
    drop(second);
    assert!(command.folder.exists());
    command.end();
    child.wait().unwrap();
}

#[test]
fn what_a_dead_host_left_is_removed_and_its_commands_ended() {
    let Some(base) = Base::new("stale") else { return };
    let (dead, unit) = (base.0.join("toolhost-1-0"), base.0.join("toolhost-mcp.scope"));
    for folder in [&dead, &dead.join(HOST), &dead.join("command-0"), &dead.join("command-1"), &unit] {
        create_dir(folder).unwrap();
    }
    let mut child = sleeper_in(&dead.join("command-1"));
    // The host's own place is not emptied: another host may have been started by the dead one.
    let mut started = sleeper_in(&dead.join(HOST));
    drop(begin(&base).unwrap());
    assert!(!child.wait().unwrap().success());
    assert!(started.try_wait().unwrap().is_none());
    assert_eq!(folders(&dead).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), [HOST]);
    started.kill().unwrap();
    started.wait().unwrap();
    // The kernel takes a process out of its cgroup a moment after its parent has read how it ended.
    let is_over = || {
        drop(begin(&base).unwrap());
        base.hosts() == ["toolhost-mcp.scope"]
    };
    assert!((0..1000).any(|_| is_over()), "{:?}", base.hosts());
}

#[test]
fn a_host_moves_itself_and_what_it_has_started_and_nobody_else() {
    let Some(base) = Base::new("moves") else { return };
    // Their parent is this process, which is itself elsewhere. One whose parent has ended is nobody's here.
    let mut own = sleeper_in(&base.0);
    let orphan = Command::new("sh")
        .args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $! > \"$0/cgroup.procs\"; echo $!"])
        .arg(&base.0)
        .output()
        .unwrap();
    let orphan = String::from_utf8(orphan.stdout).unwrap().trim().to_owned();
    let host = base.0.join("host");
    move_host(&base.0, &host).unwrap();
    assert_eq!(members(&host), [own.id().to_string()]);
    assert_eq!(members(&base.0), [orphan.as_str()]);
    let busy = std::io::Error::from_raw_os_error(libc::EBUSY);
    let said = not_enabled(&base.0, MEMORY, &busy);
    assert!(said.contains(&orphan) && said.contains("not the host's"), "{said}");
    own.kill().unwrap();
    own.wait().unwrap();
}

#[test]
fn names_of_hosts_are_told_from_others() {
    assert!(is_hosts_name("toolhost-12-0"));
    for other in
        ["toolhost-12", "toolhost-mcp.scope", "toolhost--", "toolhost-1-", "toolhost-1-2.scope", "command-1", ""]
    {
        assert!(!is_hosts_name(other), "{other}");
    }
}

/// Prints where it is.
fn teller(cgroup: OwnedFd) -> Arc<Plan> {
    Arc::new(Plan {
        program: PathBuf::from("/bin/cat"),
        args: vec!["/proc/self/cgroup".into()],
        env: Vec::new(),
        cwd: PathBuf::from("/"),
        id_map: None,
        ends_in_order: false,
        lock: None,
        cgroup: Some(cgroup),
        stdin: None,
        streams_of: None,
        in_memory: Vec::new(),
        mark: None,
        temp: None,
        session: None,
    })
}

#[tokio::test]
async fn a_program_is_in_its_cgroup_when_it_begins_or_does_not_begin() {
    let Some(base) = Base::new("enters") else { return };
    let cgroups = begin(&base).unwrap();
    let command = cgroups.command(&Limits::default()).unwrap();
    let spawner = Spawner::start().unwrap();
    let mut started = spawner.spawn(teller(command.door().unwrap())).await.unwrap();
    let mut said = String::new();
    started.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
    started.child.wait().await.unwrap();
    let place = command.folder.strip_prefix(base.0.parent().unwrap()).unwrap().to_str().unwrap();
    let own = said.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    assert!(own.ends_with(place), "{own} is not {place}");

    let gone = command.door().unwrap();
    drop(command);
    assert!(spawner.spawn(teller(gone)).await.is_err(), "it began outside");
}
