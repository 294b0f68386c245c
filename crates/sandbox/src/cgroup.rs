//! The kernel holds a command's memory, where a cgroup (version 2) is delegated to the host.
//!
//! A cgroup counts what no look at processes sees in time: memory that is taken faster than anybody looks, files in memory,
//! and files without a name. Delegated means: the operator names it, or the manager of services (`Delegate=yes` of systemd)
//! has marked the one that the host was started in. No other cgroup is touched.
//!
//! ```text
//! delegated/             no processes: beside subgroups that are limited the kernel admits none
//!   toolhost-PID-N/      one host, locked while it lives
//!     host/              the host itself, where it was started in the delegated cgroup
//!     command-N/         one command and all that comes from it
//! ```

use std::fs::{create_dir, read_dir, read_to_string, remove_dir};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};

use crate::limits::Limits;

/// A host's folder is this, its process id, and a number.
const PREFIX: &str = "toolhost-";
const HOST: &str = "host";
const COMMAND: &str = "command-";
const MEMORY: &str = "memory";
/// Limits the number of processes. Without it that number is not held, and memory is.
const PIDS: &str = "pids";
/// Attributes by which a manager of services says that a cgroup is handed over; the second is for root.
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];
/// Hosts of one process id: several in one process, or in containers that share a cgroup.
const HOSTS_MAX: u64 = 1000;
/// How long processes that were killed may take to be gone.
const END_WAIT: Duration = Duration::from_secs(2);

/// Why there is no cgroup for commands.
#[derive(Debug)]
pub(crate) enum NoCgroup {
    /// None is delegated: the usual case.
    NotDelegated,
    /// One is, and cannot be used.
    Unusable(String),
}

impl NoCgroup {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::NotDelegated => "no cgroup is delegated to this host".to_owned(),
            Self::Unusable(why) => why.clone(),
        }
    }
}

/// The part of a delegated cgroup that is one host's.
pub(crate) struct Cgroups {
    folder: PathBuf,
    /// While it is held no other host takes the folder for a dead one's.
    _lock: OwnedFd,
    controllers: Vec<&'static str>,
    count: AtomicU64,
    /// Folders of commands that were not empty when nobody waited for them any more.
    left: Mutex<Vec<PathBuf>>,
}

impl Cgroups {
    /// Takes what is delegated: the cgroup that the operator names, or the one that this process was started in.
    pub(crate) fn open(named: Option<&Path>) -> Result<Self, NoCgroup> {
        let own = own_cgroup();
        let base = match named {
            Some(named) => {
                let unusable = |why: String| NoCgroup::Unusable(format!("{}: {why}", named.display()));
                let base = named.canonicalize().map_err(|error| unusable(error.to_string()))?;
                if !is_cgroup(&base) {
                    return Err(unusable("it is not a folder of a cgroup2 file system".to_owned()));
                }
                base
            }
            None => own.as_deref().and_then(delegated_to).ok_or(NoCgroup::NotDelegated)?,
        };
        Self::begin(&base, own.as_deref(), &[MEMORY]).map_err(NoCgroup::Unusable)
    }

    /// `own` is where this process is.
    fn begin(base: &Path, own: Option<&Path>, needed: &[&'static str]) -> Result<Self, String> {
        let available = words(&base.join("cgroup.controllers"));
        if let Some(lacking) = needed.iter().find(|name| !available.iter().any(|word| word == *name)) {
            return Err(format!("{}: the controller `{lacking}` is not available there", base.display()));
        }
        sweep(base);
        let (folder, lock) = claim(base)?;
        let (count, left) = (AtomicU64::new(0), Mutex::default());
        // From here on dropping it removes what was made.
        let mut cgroups = Self { folder, _lock: lock, controllers: Vec::new(), count, left };
        if own == Some(base) {
            move_host(base, &cgroups.folder.join(HOST))?;
        }
        for controller in needed.iter().copied().chain([PIDS]) {
            let enabled = [base, &cgroups.folder].iter().try_for_each(|folder| enable(folder, controller));
            match enabled {
                Ok(()) => cgroups.controllers.push(controller),
                Err(error) if needed.contains(&controller) => {
                    // Moved back, the host would be in the way of the next one.
                    return Err(format!("{}: {}", base.display(), not_enabled(base, controller, &error)));
                }
                Err(_) => {}
            }
        }
        Ok(cgroups)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn limits_processes(&self) -> bool {
        self.controllers.contains(&PIDS)
    }

    /// Makes the cgroup of one command.
    pub(crate) fn command(self: &Arc<Self>, limits: &Limits) -> std::io::Result<CommandCgroup> {
        self.remove_left();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("{COMMAND}{number}"));
        create_dir(&folder)?;
        let made = CommandCgroup { folder, cgroups: Arc::clone(self) };
        if self.controllers.contains(&MEMORY) {
            made.set("memory.max", &limits.memory_bytes.to_string())?;
            // All of the tree or nothing: half of it would go on and answer wrongly.
            made.set("memory.oom.group", "1")?;
            // Not there where the kernel has no swap.
            match made.set("memory.swap.max", "0") {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.limits_processes() {
            made.set("pids.max", &limits.processes.to_string())?;
        }
        Ok(made)
    }

    fn remove_left(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|folder| remove_dir(folder).is_err());
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        self.remove_left();
        // A host that is in its folder leaves it, and the next one removes it.
        let _ = remove_dir(self.folder.join(HOST));
        let _ = remove_dir(&self.folder);
    }
}

/// The cgroup of one command; removed when dropped, or later where it is not empty then.
pub(crate) struct CommandCgroup {
    folder: PathBuf,
    cgroups: Arc<Cgroups>,
}

impl CommandCgroup {
    fn set(&self, name: &str, value: &str) -> std::io::Result<()> {
        write(&self.folder.join(name), value)
    }

    /// A process that writes `0` there enters.
    pub(crate) fn door(&self) -> std::io::Result<OwnedFd> {
        let door = self.folder.join("cgroup.procs");
        Ok(open(&door, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Whether the kernel has killed it, because it or the machine had no memory left.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|times| times != "0"))
    }

    /// Kills what is left in it, and waits until nothing is.
    pub(crate) fn end(&self) {
        end(&self.folder);
    }
}

impl Drop for CommandCgroup {
    fn drop(&mut self) {
        if remove_dir(&self.folder).is_err() {
            let folder = std::mem::take(&mut self.folder);
            self.cgroups.left.lock().unwrap_or_else(PoisonError::into_inner).push(folder);
        }
    }
}

/// The folder of this process's cgroup, if it can be seen from here.
fn own_cgroup() -> Option<PathBuf> {
    let own = read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|mount| folder_below(mount, own)).and_then(|folder| folder.canonicalize().ok())
}

/// Where a line of `mountinfo`, if it is a cgroup2 mount, shows a cgroup.
fn folder_below(mount: &str, cgroup: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, at) = (place.next()?, place.next()?);
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let below = Path::new(cgroup).strip_prefix(root).ok()?;
    let plain = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let folder = Path::new(&at.replace("\\040", " ")).join(below);
    (plain && is_cgroup(&folder)).then_some(folder)
}

fn is_cgroup(folder: &Path) -> bool {
    let cgroup2 = rustix::fs::statfs(folder).is_ok_and(|found| found.f_type == libc::CGROUP2_SUPER_MAGIC);
    cgroup2 && folder.is_dir()
}

/// The delegated cgroup that `own` is or, where it is the place of a host in one, is below.
///
/// So a second host of one process, and a program that a host starts, find it, too.
fn delegated_to(own: &Path) -> Option<PathBuf> {
    let name_of = |folder: &Path| folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let above = own.parent().filter(|above| {
        name_of(own).as_deref() == Some(HOST) && name_of(above).is_some_and(|name| is_hosts_name(&name))
    });
    [Some(own), above.and_then(Path::parent)]
        .into_iter()
        .flatten()
        .find(|folder| DELEGATED.iter().any(|name| says_yes(folder, name)))
        .map(Path::to_owned)
}

fn says_yes(folder: &Path, attribute: &str) -> bool {
    let mut value = [0; 8];
    let read = rustix::fs::getxattr(folder, attribute, &mut value[..]);
    read.is_ok_and(|bytes| value.get(..bytes) == Some(b"1"))
}

/// `toolhost-PID-N`, and nothing that only begins so: a unit of systemd may.
fn is_hosts_name(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    numbers.is_some_and(|(pid, count)| number(pid) && number(count))
}

/// Makes this host's folder and locks it.
fn claim(base: &Path) -> Result<(PathBuf, OwnedFd), String> {
    let pid = std::process::id();
    for number in 0..HOSTS_MAX {
        let folder = base.join(format!("{PREFIX}{pid}-{number}"));
        match create_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(|error| format!("{}: no cgroup can be made there: {error}", base.display()))?,
        }
        // Another host that began at this moment may have taken it for a dead one's.
        if let Some(lock) = lock(&folder) {
            return Ok((folder, lock));
        }
    }
    Err(format!("{}: it has {HOSTS_MAX} hosts already", base.display()))
}

/// Locks a host's folder; `None` while its host lives, and where it has been removed.
fn lock(folder: &Path) -> Option<OwnedFd> {
    let handle = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    flock(&handle, FlockOperation::NonBlockingLockExclusive).ok()?;
    let same = stat(folder).ok()?.st_ino == fstat(&handle).ok()?.st_ino;
    same.then_some(handle)
}

/// Moves this process, and those it has started, out of the delegated cgroup, which may have no processes then.
fn move_host(base: &Path, to: &Path) -> Result<(), String> {
    create_dir(to).map_err(|error| format!("{}: {error}", to.display()))?;
    let own = std::process::id();
    for pid in words(&base.join("cgroup.procs")) {
        if !pid.parse().is_ok_and(|pid| pid == own || comes_from(pid, own)) {
            continue;
        }
        if let Err(error) = write(&to.join("cgroup.procs"), &pid) {
            // One that has ended is as good as moved.
            if error.raw_os_error() != Some(libc::ESRCH) {
                return Err(format!("{}: process {pid} cannot be moved out of it: {error}", base.display()));
            }
        }
    }
    Ok(())
}

/// Whether one process comes from another.
fn comes_from(mut pid: u32, ancestor: u32) -> bool {
    // Numbers of parents that were taken anew could lead in a circle.
    for _ in 0..1000 {
        let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        match parent {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

fn enable(folder: &Path, controller: &str) -> std::io::Result<()> {
    let control = folder.join("cgroup.subtree_control");
    // A second host finds it enabled, and need not be allowed to do it.
    if words(&control).iter().any(|word| word == controller) {
        return Ok(());
    }
    write(&control, &format!("+{controller}"))
}

fn not_enabled(base: &Path, controller: &str, error: &std::io::Error) -> String {
    let others = words(&base.join("cgroup.procs"));
    if error.raw_os_error() == Some(libc::EBUSY) && !others.is_empty() {
        let others = others.join(", ");
        return format!(
            "processes that are not the host's are in it ({others}); start the host in a cgroup of its own"
        );
    }
    format!("the controller `{controller}` cannot be enabled: {error}")
}

/// Removes what dead hosts have left, and ends commands of theirs.
fn sweep(base: &Path) {
    for (name, folder) in folders(base) {
        if !is_hosts_name(&name) {
            continue;
        }
        let Some(_lock) = lock(&folder) else { continue };
        for (name, part) in folders(&folder) {
            if name.starts_with(COMMAND) {
                end(&part);
            }
            // What a host had started outside of its fence may go on in its place.
            let _ = remove_dir(part);
        }
        let _ = remove_dir(folder);
    }
}

fn folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

/// Kills all processes of a cgroup and waits until they are gone.
fn end(folder: &Path) {
    // Before Linux 5.14 it is not there; then the fence alone ends them.
    let _ = write(&folder.join("cgroup.kill"), "1");
    let Ok(events) = open(folder.join("cgroup.events"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let deadline = Instant::now() + END_WAIT;
    loop {
        let mut text = [0; 128];
        let read = rustix::io::pread(&events, &mut text, 0).unwrap_or(0);
        let populated = text[..read].split(|byte| *byte == b'\n').any(|line| line == b"populated 1");
        let left = deadline.saturating_duration_since(Instant::now());
        if !populated || left.is_zero() {
            return;
        }
        let mut changed = [rustix::event::PollFd::new(&events, rustix::event::PollFlags::PRI)];
        let Ok(left) = rustix::event::Timespec::try_from(left) else { return };
        // Interrupted, it looks again.
        let _ = rustix::event::poll(&mut changed, Some(&left));
    }
}

/// The kernel's files are written in one piece, and never made.
fn write(path: &Path, value: &str) -> std::io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

fn words(path: &Path) -> Vec<String> {
    let text = read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
