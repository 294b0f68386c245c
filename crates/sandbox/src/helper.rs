//! The inside of the fence: what `toolhost sandbox-exec` does before it becomes the command.
//!
//! It runs single-threaded in a process of its own, so nothing here has to be async-signal-safe. The one hard problem is
//! order: become the user, bridge the network, supervise, limit, Landlock, seccomp; each step takes away what an earlier
//! one needed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::fence::{HANDED_DOWN, HandedDown, Mounted, NetworkMode, Policy, apply};
use crate::mark::{behind_name, has_ended, stat_of};
use crate::proxy;
use crate::spawner::be_ended_first;

/// The hidden subcommand a program that embeds this crate must route to [`main`].
pub const SUBCOMMAND: &str = "sandbox-exec";
/// Argument: say which orders this program understands, as [`FORMAT`].
pub const FORMAT_ARGUMENT: &str = "--format";
/// The orders that this version gives, as a number made of the texts that say what they mean: a helper of another version
/// must not guess.
pub const FORMAT: u64 = fingerprint(&[include_bytes!("helper.rs"), include_bytes!("fence/policy.rs")]);
/// Argument: enter a new user namespace, say so, and wait to be ended.
pub(crate) const HOLD_NAMESPACE: &str = "--hold-user-namespace";
/// How long descendants may take that are asked to end.
pub(crate) const ORDER_GRACE: Duration = Duration::from_secs(5);
/// How long descendants that end in order may go on by themselves after their host has died. To ask is not safe at every
/// moment: git that is asked between making a lock file and noting that it is its own leaves it behind.
const ORPHAN_GRACE: Duration = Duration::from_secs(3);
/// How often it is looked whether they have ended.
const ORDER_LOOK: Duration = Duration::from_millis(20);
/// As `env` and shells: the command was not found, or could not be run.
const EXIT_NOT_FOUND: u8 = 127;
const EXIT_NOT_RUN: u8 = 126;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the helper with the arguments after `sandbox-exec`: a policy as JSON, then the command's argv.
///
/// Returns only if the command could not be started.
pub fn main(args: Vec<OsString>) -> ExitCode {
    default_signals();
    if args.first().is_some_and(|arg| arg == HOLD_NAMESPACE) {
        return hold_namespace();
    }
    match enter(args) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("toolhost sandbox-exec: {error}"));
            ExitCode::from(EXIT_NOT_RUN)
        }
    }
}

/// Prints [`FORMAT`].
pub fn say_format() -> ExitCode {
    match writeln!(std::io::stdout(), "{FORMAT:016x}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Whether this program is a helper of the very version that asks.
pub fn fits(program: &std::path::Path) -> bool {
    let said = std::process::Command::new(program).arg(FORMAT_ARGUMENT).env_clear().output();
    said.is_ok_and(|said| said.status.success() && said.stdout.trim_ascii() == format!("{FORMAT:016x}").as_bytes())
}

/// FNV-1a.
const fn fingerprint(texts: &[&[u8]]) -> u64 {
    let (mut hash, mut text) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while text < texts.len() {
        let mut at = 0;
        while at < texts[text].len() {
            hash = (hash ^ texts[text][at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        text += 1;
    }
    hash
}

fn say(line: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn enter(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let mut args = args.into_iter();
    let policy = args.next().ok_or("no policy given; this subcommand is for the host's own use")?;
    let policy: Policy = serde_json::from_slice(policy.as_bytes())?;
    let argv: Vec<OsString> = args.collect();
    let inherited = Inherited::take()?;
    let (program, rest) = argv.split_first().ok_or("no command given")?;

    if let Some((uid, gid)) = policy.become_user {
        become_user(uid, gid)?;
    }
    // As the command's own user: root without its capabilities may not pass a private folder.
    check_mounts(&policy.mounted)?;
    if let Some(cwd) = &policy.cwd {
        rustix::process::chdir(cwd)?;
    }
    if policy.drop_capabilities {
        drop_capabilities()?;
    }
    if policy.network == NetworkMode::Proxy {
        bridge_in_background()?;
    }
    // Only the child goes on from here.
    let ready = match supervise(&policy, inherited)? {
        Side::Supervisor(code) => return Ok(code),
        Side::Command(ready) => ready,
    };
    // Before the fence: signals that the command sends its own group must not reach the supervisor.
    rustix::process::setsid()?;
    if policy.limits.mark.is_some() {
        // After a change of user, the kernel lets a process write its own files in `/proc` only once it has said this.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
        be_ended_first()?;
    }
    if policy.enforce {
        apply(&policy)?;
    }
    rustix::io::write(&ready, b"1")?;
    drop(ready);
    let error = std::process::Command::new(program).args(rest).env_remove(HANDED_DOWN).exec();
    say(&format!("{}: {error}", program.to_string_lossy()));
    let code = if error.kind() == std::io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_RUN };
    Ok(ExitCode::from(code))
}

/// Each mount must be at its own name, and show what the host meant.
fn check_mounts(mounted: &[Mounted]) -> Result<(), Failure> {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    for expected in mounted {
        let found = statx(CWD, &expected.path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?;
        let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
        let meant = (device, found.stx_ino) == (expected.device, expected.inode);
        // Where a link was followed, something else stands at the link's target, and nothing is mounted here.
        if !meant || !found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Err(format!("{} was exchanged while it was mounted", expected.path.display()).into());
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "libc's process-wide set*id; this process has one thread")]
fn become_user(uid: u32, gid: u32) -> std::io::Result<()> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: plain calls with integers and an empty list.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(gid, gid, gid))?;
        check(libc::setresuid(uid, uid, uid))?;
        // Leaving uid 0 clears the capabilities; ambient and inheritable ones must not come back with an exec.
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
    }
    Ok(())
}

/// Leaves root without any of its powers, also after an `exec`.
#[expect(unsafe_code, reason = "capset has no safe wrapper in libc")]
fn drop_capabilities() -> std::io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // _LINUX_CAPABILITY_VERSION_3: two words each of effective, permitted, inheritable.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let none = [0u32; 6];
    // SAFETY: plain calls with integers, and two locals of the layout the kernel documents for this version.
    let result = unsafe {
        for capability in 0..64 {
            // The kernel refuses numbers it does not know; those it knows must go.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr())
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// What the host handed down. The command gets nothing of it: one that held the lock, too, could keep it for good.
struct Inherited {
    ready: OwnedFd,
    host: OwnedFd,
    lock: Option<OwnedFd>,
}

impl Inherited {
    fn take() -> Result<Self, Failure> {
        #[expect(clippy::disallowed_methods, reason = "said by the host to this program alone")]
        let text =
            std::env::var(HANDED_DOWN).map_err(|_| "no descriptors; this subcommand is for the host's own use")?;
        let numbers = HandedDown::parse(&text).ok_or("no descriptors")?;
        let mut sorted: Vec<_> = numbers.numbers().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let are_open = sorted.iter().all(|number| *number > libc::STDERR_FILENO && is_open(*number));
        if !are_open || sorted.len() != numbers.numbers().count() {
            return Err(format!("`{text}` are not the descriptors that were handed down").into());
        }
        close_others(&sorted)?;
        #[expect(unsafe_code, reason = "the host has put them there, and their numbers are all that is known of them")]
        // SAFETY: each is open, named once, and nothing in this process has taken it before.
        let own = |number| unsafe { OwnedFd::from_raw_fd(number) };
        let inherited = Self { ready: own(numbers.ready), host: own(numbers.host), lock: numbers.lock.map(own) };
        for descriptor in [&inherited.ready, &inherited.host].into_iter().chain(&inherited.lock) {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(inherited)
    }
}

/// Closes what the host itself was started with, such as a file that its shell had open, or a socket of a service manager's:
/// who holds a descriptor needs no leave to use it.
fn close_others(kept: &[i32]) -> std::io::Result<()> {
    let mut first = libc::STDERR_FILENO + 1;
    for end in kept.iter().copied().chain([i32::MAX]) {
        if first < end {
            close_range(first, end - 1)?;
        }
        first = end.saturating_add(1);
    }
    Ok(())
}

#[expect(unsafe_code, reason = "closing numbers that no value owns")]
fn close_range(first: i32, last: i32) -> std::io::Result<()> {
    // SAFETY: at the start of a process with one thread, no value owns any of them.
    match unsafe { libc::close_range(first.cast_unsigned(), last.cast_unsigned(), 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn is_open(number: i32) -> bool {
    #[expect(unsafe_code, reason = "a number that may be no descriptor cannot be borrowed")]
    // SAFETY: a plain call with integers.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags >= 0
}

/// The result of a fork, as the parent or the child sees it.
enum Fork {
    Parent(rustix::process::Pid),
    Child,
}

#[expect(unsafe_code, reason = "fork has no safe wrapper")]
fn fork() -> std::io::Result<Fork> {
    // SAFETY: this process has a single thread, so the child is not left with locks held by others.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(rustix::process::Pid::from_raw(pid).map_or(Fork::Child, Fork::Parent)),
    }
}

/// Leaves a process behind that carries connections to the host's proxy; it is no child of the command's.
fn bridge_in_background() -> Result<(), Failure> {
    let listener = proxy::bridge_listener()?;
    match fork()? {
        Fork::Parent(child) => {
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
            Ok(())
        }
        Fork::Child => {
            if matches!(fork(), Ok(Fork::Child)) {
                proxy::bridge(&listener);
            }
            quit(0)
        }
    }
}

#[expect(clippy::exit, reason = "a forked child must not return into its parent's code")]
fn quit(code: i32) -> ! {
    std::process::exit(code)
}

/// Which of the two goes on after [`supervise`].
enum Side {
    /// The parent, when all has ended, with the command's exit code.
    Supervisor(ExitCode),
    /// The child, with the descriptor on which it says that the fence stands.
    Command(OwnedFd),
}

/// Splits into a parent that outlives the command and ends all its descendants, and the child that becomes the command.
fn supervise(policy: &Policy, inherited: Inherited) -> Result<Side, Failure> {
    use rustix::process::WaitOptions;
    let Inherited { ready, host, lock } = inherited;
    // The kernel ends a pid namespace with its first process, and gives it all orphans.
    let is_first = rustix::process::getpid().is_init();
    if !is_first {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    block_endings()?;
    let signals = ending_signals_as_file()?;
    if asked_by_host(&host).is_some() {
        return Err("the host has gone, or does not want the command any more".into());
    }
    let child = match fork()? {
        Fork::Child => {
            unblock_endings()?;
            return Ok(Side::Command(ready));
        }
        Fork::Parent(child) => child,
    };
    // The host waits for the end of the streams; only the command may hold them.
    drop(ready);
    release_streams();
    let mut code = None;
    let mut orphaned = false;
    while code.is_none() {
        match wait_for_ending(&signals, &host) {
            Ending::Child => {}
            Ending::Asked => break,
            Ending::HostGone => {
                orphaned = true;
                break;
            }
        }
        // `wait`, not `waitpid(None)`: that one knows only our own process group, and daemons leave it.
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == child {
                let exit = status.exit_status().or_else(|| status.terminating_signal().map(|s| 128 + s));
                code = Some(u8::try_from(exit.unwrap_or(1)).unwrap_or(1));
            }
        }
    }
    // Also where the command has ended by itself, as a shell does that writes to a host that is gone: what it has started
    // may hold a lock.
    if policy.ends_in_order {
        let alone = orphaned && outlast(ORPHAN_GRACE, None);
        if !alone {
            outlast(ORDER_GRACE, Some(rustix::process::Signal::TERM));
        }
    }
    if !is_first {
        end_descendants();
    }
    drop(lock);
    // 143: ended by SIGTERM, as a shell would say.
    Ok(Side::Supervisor(ExitCode::from(code.unwrap_or(143))))
}

/// Waits until no descendant is left, which it tells, and sends them `signal` meanwhile. Again and again: a shell between
/// its fork and its exec forgets a signal, and others are started meanwhile.
fn outlast(grace: Duration, signal: Option<rustix::process::Signal>) -> bool {
    use rustix::process::{WaitOptions, kill_process, wait};
    let until = Instant::now() + grace;
    while Instant::now() < until {
        if let Some(signal) = signal {
            for pid in descendants().into_iter().filter_map(rustix::process::Pid::from_raw) {
                // It may have ended by itself meanwhile.
                let _ = kill_process(pid, signal);
            }
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
            return true;
        }
        std::thread::sleep(ORDER_LOOK);
    }
    false
}

/// Most rounds in which new descendants are stopped before all are killed.
const STOPS_MAX: usize = 100;

/// Kills every descendant until none is left; orphans have become our own children.
fn end_descendants() {
    use rustix::process::{Signal, WaitOptions, kill_process, wait};
    // As the subreaper we inherit every orphan: without children there are no descendants, and nothing to look for.
    if matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
        return;
    }
    // A process that is killed makes room for another one. So all stop first: a fork bomb would else start faster than this kills.
    let mut stopped = std::collections::BTreeSet::new();
    for _ in 0..STOPS_MAX {
        let fresh: Vec<i32> = descendants().into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh.into_iter().filter_map(rustix::process::Pid::from_raw) {
            // It may have ended by itself meanwhile.
            let _ = kill_process(pid, Signal::STOP);
        }
    }
    loop {
        if matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
            return;
        }
        for pid in descendants() {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                // It may have ended by itself meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        std::thread::yield_now();
    }
}

/// All live descendants of this process, by the parent links in `/proc`.
fn descendants() -> Vec<i32> {
    let mut parents: Vec<(i32, i32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let folder = format!("/proc/{pid}");
        let stat = stat_of(&folder);
        let parent = behind_name(&stat).nth(1).and_then(|parent| parent.parse().ok());
        if let Some(parent) = parent.filter(|_| !has_ended(&folder, &stat)) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        found.extend(
            parents
                .iter()
                .filter(|(pid, p)| *p == parent && !found.contains(pid))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
    }
    found.split_off(1)
}

enum Ending {
    /// A child changed state.
    Child,
    /// The host, or a person by a signal, asked for the end.
    Asked,
    /// The host has died.
    HostGone,
}

/// Waits for a change of the command's, of the host's pipe, or for a signal.
fn wait_for_ending(signals: &std::fs::File, host: &OwnedFd) -> Ending {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        let mut either = [PollFd::new(signals, PollFlags::IN), PollFd::new(host, PollFlags::IN)];
        match poll(&mut either, None) {
            Err(rustix::io::Errno::INTR) => continue,
            // What cannot be watched does not run.
            Err(_) => return Ending::Asked,
            Ok(_) => {}
        }
        if let Some(signal) = next_signal(signals) {
            return if signal == libc::SIGCHLD.cast_unsigned() { Ending::Child } else { Ending::Asked };
        }
        if let Some(ending) = asked_by_host(host) {
            return ending;
        }
    }
}

/// What the host's pipe says by now.
fn asked_by_host(host: &OwnedFd) -> Option<Ending> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&at_once)) == Ok(0) {
        return None;
    }
    Some(if rustix::io::read(host, &mut [0; 1]) == Ok(1) { Ending::Asked } else { Ending::HostGone })
}

/// Reads one `signalfd_siginfo`, which begins with the signal's number; `None` where there is none.
fn next_signal(signals: &std::fs::File) -> Option<u32> {
    let mut info = [0; size_of::<libc::signalfd_siginfo>()];
    let mut file = signals;
    file.read_exact(&mut info).ok()?;
    info.first_chunk().map(|number| u32::from_ne_bytes(*number))
}

/// A host under `nohup` ignores SIGHUP, and what is ignored stays so across `exec`: a command must not depend on how its
/// host was started.
fn default_signals() {
    let all = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM, libc::SIGCHLD, libc::SIGXFSZ];
    for signal in all {
        #[expect(unsafe_code, reason = "dispositions have no safe wrapper")]
        // SAFETY: SIG_DFL is no handler, and this process has one thread.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn ending_signals() -> libc::sigset_t {
    #[expect(unsafe_code, reason = "signal sets have no safe wrapper")]
    // SAFETY: the set is initialized by sigemptyset before anything reads it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD] {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

/// The signals as a file that does not wait, so that one call waits for them and for the host's pipe.
#[expect(unsafe_code, reason = "signalfd has no safe wrapper")]
fn ending_signals_as_file() -> std::io::Result<std::fs::File> {
    let set = ending_signals();
    // SAFETY: the set is initialized; the descriptor is new and nobody else's.
    unsafe {
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(std::io::Error::last_os_error()),
            number => Ok(std::fs::File::from_raw_fd(number)),
        }
    }
}

fn block_endings() -> std::io::Result<()> {
    mask(libc::SIG_BLOCK)
}

fn unblock_endings() -> std::io::Result<()> {
    mask(libc::SIG_UNBLOCK)
}

#[expect(unsafe_code, reason = "signal masks have no safe wrapper")]
fn mask(how: i32) -> std::io::Result<()> {
    let set = ending_signals();
    // SAFETY: the set is initialized and the old mask is not asked for.
    match unsafe { libc::sigprocmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn release_streams() {
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        // If one cannot be replaced, the host's grace period after our exit still ends its reading.
        let _ = rustix::stdio::dup2_stdin(null.as_fd());
        let _ = rustix::stdio::dup2_stdout(null.as_fd());
        let _ = rustix::stdio::dup2_stderr(null.as_fd());
    }
}

fn hold_namespace() -> ExitCode {
    #[expect(unsafe_code, reason = "unshare has no safe wrapper")]
    // SAFETY: a plain call in a single-threaded process.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0;
    if !entered || std::io::stdout().write_all(b"1").and_then(|()| std::io::stdout().flush()).is_err() {
        return ExitCode::FAILURE;
    }
    // Until the host has taken its handle and ends us.
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

/// The helper's orders and the command as arguments.
pub(crate) fn arguments(policy: &Policy, argv: &[String]) -> Result<Vec<OsString>, Failure> {
    let policy = serde_json::to_string(policy)?;
    let orders = [OsString::from(SUBCOMMAND), OsString::from(policy)];
    Ok(orders.into_iter().chain(argv.iter().map(OsString::from)).collect())
}
