//! Landlock, seccomp, resource limits and no-new-privileges, applied to the calling process or thread.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::mark;

use super::policy::{NetworkMode, Policy, ResourceLimits};

/// Newest Landlock ABI asked for; older kernels give what they have.
const LANDLOCK_ABI: ABI = ABI::V6;

/// From this ABI on Landlock holds `truncate(2)` too.
const LANDLOCK_ABI_TRUNCATE: i32 = 3;
/// From this ABI on Landlock holds signals to processes outside.
pub(crate) const LANDLOCK_ABI_SIGNALS: i32 = 6;

/// Largest piece of shared memory of System V, of which a machine has some thousands; PostgreSQL needs 56 bytes.
const SYSV_SHARED_BYTES_MAX: u64 = 64 * 1024;
/// Most semaphores of System V in one set, of which a machine has 32,000: the kernel would allow 32,000 in each.
const SYSV_SEMAPHORES_MAX: u64 = 32;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The kernel's Landlock ABI, 0 if it has none.
pub(crate) fn landlock_abi() -> i32 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    #[expect(unsafe_code, reason = "no crate at hand exposes the version query")]
    // SAFETY: with the version flag the kernel takes a null attribute of size 0 and only returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    i32::try_from(abi).unwrap_or(0).max(0)
}

/// Leaves the calling thread nothing but reading beneath `folder`, for good.
pub(crate) fn landlock_thread(folder: &impl std::os::fd::AsFd) -> Result<(), Failure> {
    let read = AccessFs::from_read(LANDLOCK_ABI);
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .create()?
        .add_rule(PathBeneath::new(folder.as_fd(), read))?
        .restrict_self()?;
    Ok(())
}

/// Applies a policy to this process, in the order that each step still permits the next.
pub(crate) fn apply(policy: &Policy) -> Result<(), Failure> {
    limit_resources(&policy.limits)?;
    // Landlock's crate sets no-new-privileges first; seccomp needs it too.
    restrict_files(policy)?;
    restrict_calls(policy)
}

fn restrict_files(policy: &Policy) -> Result<(), Failure> {
    let read = AccessFs::from_read(LANDLOCK_ABI);
    let all = AccessFs::from_all(LANDLOCK_ABI);
    // A device node in a folder the command can write would be a door to the machine.
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    for (paths, access) in [(&policy.readable, read), (&policy.writable, write)] {
        for path in paths {
            // What is not there cannot be reached either.
            let Ok(fd) = PathFd::new(path) else { continue };
            if let Some(meant) = policy.opened.iter().find(|meant| meant.path == *path) {
                let found = rustix::fs::fstat(&fd)?;
                if (found.st_dev, found.st_ino) != (meant.device, meant.inode) {
                    return Err(format!("{} was exchanged for another folder", path.display()).into());
                }
            }
            ruleset = ruleset.add_rule(PathBeneath::new(fd, access))?;
        }
    }
    for path in &policy.readable_plain {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)?;
        ruleset = ruleset.add_rule(PathBeneath::new(fd, read))?;
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel has no Landlock".into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn limit_resources(limits: &ResourceLimits) -> Result<(), Failure> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let set = |resource, wanted: u64| {
        let wanted = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
        setrlimit(resource, Rlimit { current: Some(wanted), maximum: Some(wanted) })
    };
    set(Resource::Core, 0)?;
    set(Resource::Cpu, limits.cpu_seconds)?;
    set(Resource::Fsize, limits.file_bytes)?;
    set(Resource::Nofile, limits.open_files)?;
    // Not of address space, which many programs reserve by the terabyte: of what is theirs to write.
    if let Some(bytes) = limits.memory_bytes {
        set(Resource::Data, bytes)?;
    }
    if let Some(processes) = limits.processes {
        set(Resource::Nproc, processes)?;
    }
    limits.mark.map_or(Ok(()), |mark| Ok(mark::set(mark)?))
}

/// A filter for each answer: "not permitted"; "no such call" so that programs fall back; and "this file system has no such
/// thing", which programs that copy attributes take for a reason to go on.
fn restrict_calls(policy: &Policy) -> Result<(), Failure> {
    let filters =
        [(refused_calls(policy)?, libc::EPERM), (whole(&ABSENT), libc::ENOSYS), (attribute_calls()?, libc::EOPNOTSUPP)];
    for (rules, answer) in filters {
        let errno = u32::try_from(answer)?;
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(errno),
            std::env::consts::ARCH.try_into()?,
        )?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)?;
    }
    Ok(())
}

/// `clone3` hides its flags behind a pointer that a filter cannot follow, and `openat2` its mode; libc and programs fall back
/// to `clone` and `openat`. Rules of Landlock are memory of the kernel's, gigabytes in seconds, that nothing counts.
const ABSENT: [i64; 7] = [
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Calls that change extended attributes and flags of files. A filter cannot see an attribute's name, and among them are access
/// lists: the default list of a folder says which modes new files in it have, also those of the host and of people.
const ATTRIBUTE_CALLS: [i64; 9] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];
/// Numbers of calls that `libc` does not name yet; they are the same on every architecture.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// Requests of `ioctl` that set flags of a file, such as "no backup" and "no access times", and its version: `FS_IOC_SETFLAGS`,
/// `FS_IOC32_SETFLAGS`, `FS_IOC_FSSETXATTR`, `FS_IOC_SETVERSION`, `FS_IOC32_SETVERSION`.
const ATTRIBUTE_REQUESTS: [u64; 5] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4008_7602, 0x4004_7602];

/// The calls that set attributes of files, beside permissions and times.
fn attribute_calls() -> Result<BTreeMap<i64, Vec<SeccompRule>>, Failure> {
    let mut rules = whole(&ATTRIBUTE_CALLS);
    let mut requests = Vec::new();
    for request in ATTRIBUTE_REQUESTS {
        let is_it = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
        requests.push(SeccompRule::new(vec![is_it])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    Ok(rules)
}

/// These calls, whatever their arguments.
fn whole(calls: &[i64]) -> BTreeMap<i64, Vec<SeccompRule>> {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn refused_calls(policy: &Policy) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Failure> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALWAYS_REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let arg = |index, op, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value);
    let rule = |condition| SeccompRule::new(vec![condition]);

    let namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    let mut clone_rules = Vec::new();
    for bit in (0..32).map(|n| 1i64 << n).filter(|bit| i64::from(namespaces) & bit != 0) {
        let bit = u64::try_from(bit)?;
        clone_rules.push(rule(arg(0, SeccompCmpOp::MaskedEq(bit), bit)?)?);
    }
    rules.insert(libc::SYS_clone, clone_rules);

    // Limits and priorities of other processes: the supervisor's among them. Its own are process 0.
    for (call, index) in [(libc::SYS_prlimit64, 0), (libc::SYS_setpriority, 1), (libc::SYS_ioprio_set, 1)] {
        rules.insert(call, vec![rule(arg(index, SeccompCmpOp::Ne, 0)?)?]);
    }
    // A command may read its limit of file locks, which is its mark, but not set it. A call that only reads passes no pointer to
    // a new value.
    let is_mark = |index| arg(index, SeccompCmpOp::Eq, libc::RLIMIT_LOCKS.into());
    let is_new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.entry(libc::SYS_prlimit64).or_default().push(SeccompRule::new(vec![is_mark(1)?, is_new])?);
    rules.insert(libc::SYS_setrlimit, vec![rule(is_mark(0)?)?]);

    // Typing into, or pasting on, the operator's terminal.
    let mut ioctl_rules = Vec::new();
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        ioctl_rules.push(rule(arg(1, SeccompCmpOp::Eq, u64::from(u32::try_from(request)?))?)?);
    }
    rules.insert(libc::SYS_ioctl, ioctl_rules);

    let socket_rules = match policy.network {
        NetworkMode::None => Vec::new(),
        NetworkMode::Loopback | NetworkMode::Proxy | NetworkMode::Direct => {
            let other_than = |family: i32| -> Result<_, Failure> {
                Ok(arg(0, SeccompCmpOp::Ne, u64::from(u32::try_from(family)?))?)
            };
            let mut conditions = vec![other_than(libc::AF_INET)?, other_than(libc::AF_INET6)?];
            if policy.network == NetworkMode::Direct {
                // The C library asks the kernel which addresses this machine has before it chooses one.
                conditions.push(other_than(libc::AF_NETLINK)?);
            }
            // Each further protocol is a piece of the kernel that few have tried, loaded when it is first asked for.
            let protocols = [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
            let others = protocols.map(|known| arg(2, SeccompCmpOp::Ne, u64::try_from(known).unwrap_or_default()));
            let others = others.into_iter().collect::<Result<Vec<_>, _>>()?;
            vec![SeccompRule::new(conditions)?, SeccompRule::new(others)?]
        }
    };
    rules.insert(libc::SYS_socket, socket_rules);
    if policy.network == NetworkMode::None {
        // One of a pair could still get a name, also one that the whole machine sees, or look for what listens.
        rules.extend(whole(&[libc::SYS_bind, libc::SYS_connect, libc::SYS_listen]));
    }
    // One of a pair of datagram sockets can still be led to any other such socket of the machine, with open files in what it
    // sends. The type stands beside flags.
    let datagram = u64::try_from(libc::SOCK_DGRAM)?;
    let kind = arg(1, SeccompCmpOp::MaskedEq(SOCKET_KINDS), datagram)?;
    rules.insert(libc::SYS_socketpair, vec![rule(kind)?]);
    // Who leases a file keeps others from opening it, also one that it may only read.
    let lease = u64::try_from(libc::F_SETLEASE)?;
    rules.insert(libc::SYS_fcntl, vec![rule(arg(1, SeccompCmpOp::Eq, lease)?)?]);
    // It leaves a device behind, in the place of what it moves.
    let whiteout = u64::from(libc::RENAME_WHITEOUT);
    let leaves = arg(4, SeccompCmpOp::MaskedEq(whiteout), whiteout)?;
    rules.insert(libc::SYS_renameat2, vec![rule(leaves)?]);
    rules.extend(set_id_calls()?);
    rules.extend(ipc_calls(policy.private_ipc)?);
    if landlock_abi() < LANDLOCK_ABI_TRUNCATE {
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    Ok(rules)
}

/// The bits of a socket's type that are no flags.
const SOCKET_KINDS: u64 = 0xf;

/// Calls that make, reach or remove what other processes of the machine share by a number or a name.
const MACHINE_IPC: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that say when and where a process runs, its number first.
const SCHEDULING: [i64; 4] =
    [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setaffinity, libc::SYS_sched_setattr];

/// Calls that make what the kernel keeps and counts for no process: shared memory, semaphores and queues. In a namespace of
/// their own they end with it, so small ones are allowed there, and queues, which the kernel holds to half a GiB. In the machine's
/// they would stay when their maker ends.
fn ipc_calls(is_private: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Failure> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    if is_private {
        let above = |width, limit| SeccompRule::new(vec![SeccompCondition::new(1, width, SeccompCmpOp::Gt, limit)?]);
        calls.insert(libc::SYS_shmget, vec![above(SeccompCmpArgLen::Qword, SYSV_SHARED_BYTES_MAX)?]);
        calls.insert(libc::SYS_semget, vec![above(SeccompCmpArgLen::Dword, SYSV_SEMAPHORES_MAX)?]);
    } else {
        calls.extend(MACHINE_IPC.map(|call| (call, Vec::new())));
        // Without a namespace of processes the others of the same user are there by their numbers; 0 is the caller itself.
        let other = || SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?]);
        for call in SCHEDULING {
            calls.insert(call, vec![other()?]);
        }
    }
    Ok(calls)
}

/// Calls that would make a file or folder run as its owner or group, as systemd's `RestrictSUIDSGID=` refuses them: on disk
/// what a command makes may belong to root.
fn set_id_calls() -> Result<BTreeMap<i64, Vec<SeccompRule>>, Failure> {
    /// A call and which of its arguments is the mode.
    const WITH_MODE: &[(i64, u8)] = &[
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (libc::SYS_fchmodat2, 2),
        (libc::SYS_mkdirat, 2),
        (libc::SYS_mknodat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mkdir, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1),
    ];
    /// The same for calls that make a file only with certain flags: then the argument before it is the flags. Without them it
    /// is whatever stood there.
    const WITH_FLAGS: &[(i64, u8)] = &[
        (libc::SYS_openat, 3),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 2),
    ];
    /// `O_TMPFILE` without `O_DIRECTORY`, which is part of that constant.
    const TMPFILE_BIT: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

    let has =
        |index, bits: u64| SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits);
    let set_id = [u64::from(libc::S_ISUID), u64::from(libc::S_ISGID)];
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for bit in set_id {
        for (call, mode) in WITH_MODE {
            calls.entry(*call).or_default().push(SeccompRule::new(vec![has(*mode, bit)?])?);
        }
        for (call, mode) in WITH_FLAGS {
            for flag in [libc::O_CREAT, TMPFILE_BIT] {
                let makes = has(mode - 1, u64::try_from(flag)?)?;
                calls.entry(*call).or_default().push(SeccompRule::new(vec![makes, has(*mode, bit)?])?);
            }
        }
    }
    Ok(calls)
}

/// Other processes, mounts, namespaces, kernel code, keys, the clock: nothing a build or a test needs.
const ALWAYS_REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Memory that no process has and no file system counts: of pages that a pipe holds, and of pages without a file.
    libc::SYS_vmsplice,
    libc::SYS_memfd_secret,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];
